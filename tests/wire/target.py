# SPDX-License-Identifier: MIT
"""A yoked of the test's own: configuration, start, control socket, orderly end.

Invariants
 1. Whatever happens to the test, its daemon ends: by stop(), or by the kernel when we die.
 2. stop() fails if the daemon had died, does not end on SIGTERM with status 0, or printed a
    sanitizer report.
 3. Names of control methods and of their parameters appear in this file only.

Not here: the wire (iscsi.py).
"""

import contextlib
import ctypes
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from iscsi import Session, check
from scsi import ready

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("YOKE_BUILD", os.path.join(ROOT, "build/release")))
IQN = "iqn.2026-11.org.yoke:wire"
SANITIZER = re.compile(r"(ERROR|WARNING): \w+Sanitizer|runtime error:")
ASSERTION = re.compile(r".*Assertion .* failed")
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)


def _die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def own_address():
    """A loopback address that tests running at the same time do not use."""
    pid = os.getpid()
    return f"127.{16 + (pid >> 16) % 200}.{pid >> 8 & 255}.{pid & 255 or 256 - 1}"


def free_ports(hosts):
    """(host, port) for each host, all different."""
    sockets = []
    for host in hosts:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        sockets.append(socket.socket(family, socket.SOCK_STREAM))
        sockets[-1].bind((host, 0))
    ports = [sock.getsockname()[1] for sock in sockets]
    for sock in sockets:
        sock.close()
    return list(zip(hosts, ports))


def wait_until(condition, timeout=10, what="the condition"):
    """Poll; the first true value that condition() returns."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value:
            return value
        check(time.monotonic() < deadline, f"waited {timeout} s in vain for {what}")
        time.sleep(0.01)


def _value(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, (list, tuple)):
        return "{ " + ", ".join(_value(item) for item in value) + " }"
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _section(kind, title, content, indent=""):
    lines = [f"{indent}{kind} {_value(title)} {{"]
    for key, value in content.items():
        if isinstance(value, dict):     # "lun": {0: {...}, 1: {...}}
            for name, inner in value.items():
                lines += _section(key, str(name), inner, indent + "  ")
        else:
            lines.append(f"{indent}  {key} = {_value(value)}")
    return lines + [indent + "}"]


class Control:
    """The control socket: newline-delimited JSON-RPC 2.0."""

    def __init__(self, path, timeout=10):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(timeout)
        self.sock.connect(path)
        self.stream = self.sock.makefile("rw")
        self.id = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stream.close()
        self.sock.close()

    def call(self, method, **params):
        """The result of a method; its error as an AssertionError."""
        self.id += 1
        request = {"jsonrpc": "2.0", "id": self.id, "method": method}
        if params:
            request["params"] = params
        self.stream.write(json.dumps(request) + "\n")
        self.stream.flush()
        answer = json.loads(self.stream.readline())
        check(answer.get("id") == self.id, f"answer to another request: {answer}")
        check("error" not in answer, f"{method}: {answer.get('error')}")
        return answer["result"]


class Target:
    """A yoked with one portal, one target and one RAM LUN, unless told otherwise.

    node, target: settings of these sections. hosts: one portal (p1, p2, ...) an entry.
    backings: {name: {...}}, where {dir} in a path is the test's own; luns: {number: backing}, or
    {number: {"array": name}}.
    targets: {name: {...}} replaces the one target. under: a command that runs yoked.
    """

    def __init__(self, node=None, target=None, backings=None, luns=None, targets=None, hosts=None,
                 under=()):
        self.under = under
        self.node = node or {}
        self.settings = target or {}
        self.backings = backings or {"disk": {"size": "32M"}}
        self.luns = luns or {0: next(iter(self.backings))}
        self.targets = targets
        self.hosts = hosts or [own_address()]
        self.addresses = []
        self.process = None
        self.dir = None

    def __enter__(self):
        return self.start()

    def __exit__(self, kind, *_):
        if kind is None and self.process is not None:
            self.stop()
        else:
            self.abandon()

    # Life

    def configuration(self):
        node = {"number": 1, "state_dir": self.dir + "/state", "control": self.control_path,
                "threads": 1, "faults": True, "disks": [self.dir + "/*.img"], **self.node}
        lines = _section("node", "wire", node)
        for number, (host, port) in enumerate(self.addresses, 1):
            listen = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            lines += _section("portal", f"p{number}", {"listen": [listen], "group": number})
        for name, backing in self.backings.items():
            backing = {"driver": "ram", "size": "32M", **backing}
            if "path" in backing:
                backing["path"] = backing["path"].format(dir=self.dir)
            lines += _section("backing", name, backing)
        for name, target in (self.targets or {IQN: self.settings}).items():
            usual = {"portals": [f"p{n}" for n in range(1, len(self.addresses) + 1)],
                     "allow": ["*"]}
            if not self.targets:
                usual["lun"] = {n: b if isinstance(b, dict) else {"backing": b}
                                for n, b in self.luns.items()}
            lines += _section("target", name, {**usual, **target})
        return "\n".join(lines) + "\n"

    def start(self):
        self.dir = tempfile.mkdtemp(prefix="yoke-wire-")
        os.mkdir(self.dir + "/state")
        self.control_path = self.dir + "/yoked.sock"
        self.config_path = self.dir + "/yoke.conf"
        self.log_path = self.dir + "/yoked.log"
        try:
            for _ in range(5):      # another process may take a port before yoked does
                self.addresses = free_ports(self.hosts)
                if self._launch():
                    return self
            raise AssertionError(f"yoked does not start: {self.log()[-500:]}")
        except BaseException:
            self.abandon()
            raise

    def _launch(self):
        with open(self.config_path, "w", encoding="utf-8") as config:
            config.write(self.configuration())
        env = dict(os.environ)
        env.setdefault("ASAN_OPTIONS", "detect_leaks=1:exitcode=99:abort_on_error=0")
        env.setdefault("UBSAN_OPTIONS", "print_stacktrace=1:halt_on_error=1")
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [*self.under, os.path.join(BUILD, "yoked"), "-c", self.config_path],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=env, preexec_fn=_die_with_parent)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                check("in use" in self.log(), f"yoked does not start: {self.log()[-500:]}")
                return False
            if self._answers() and all(map(_listens, self.addresses)):
                return True
            time.sleep(0.01)
        raise AssertionError("yoked does not listen after 30 s")

    def _answers(self):
        """Its socket is there before anybody listens, and a killed one's still is."""
        try:
            self.control().__exit__()
        except OSError:
            return False
        return True

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def settled(self, seconds=0.2):
        """Give a daemon that is dying the time to be dead."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            pass

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as log:
            return log.read()

    def stop(self):
        """End the daemon in order; see invariant 2."""
        try:
            check(self.alive(), f"yoked died with {self.process.returncode}: {self._last_words()}")
            self.process.send_signal(signal.SIGTERM)
            self.ended()
        finally:
            self.abandon()

    def ended(self, timeout=20):
        """Wait for the end of a daemon that was told to, and judge it."""
        try:
            status = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"yoked goes on {timeout} s after SIGTERM") from None
        check(not SANITIZER.search(self.log()), f"sanitizer: {self._last_words()}")
        check(status == 0, f"yoked ended with {status} after SIGTERM: {self._last_words()}")
        self.process = None

    def restart(self):
        """End it in order and start it again with the same configuration and files."""
        self.process.send_signal(signal.SIGTERM)
        self.ended()
        check(self._launch(), f"yoked does not start again: {self.log()[-500:]}")

    def _last_words(self):
        log = self.log()
        match = SANITIZER.search(log) or ASSERTION.search(log)
        return log[match.start():][:1500] if match else log[-300:]

    def abandon(self):
        """End it in whatever state it is, and remove its files (YOKE_WIRE_KEEP=1 keeps them)."""
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.dir and not os.environ.get("YOKE_WIRE_KEEP"):
            shutil.rmtree(self.dir, ignore_errors=True)

    # The wire

    @property
    def address(self):
        return self.addresses[0]

    def connect(self, portal=0, target=IQN, **options):
        """A Session that has not logged in."""
        return Session(self.addresses[portal], target, **options)

    def login(self, lun=0, **options):
        """A logged-in Session with its unit attentions used up (unless lun is None).

        Options in lower case are connect()'s or login()'s, the others keys.
        """
        own = {name: options.pop(name) for name in list(options)
               if name in ("portal", "target", "initiator", "isid", "timeout", "receive_buffer")}
        session = self.connect(**own)
        session.login(**options)
        if lun is not None and not options.get("discovery"):
            ready(session, lun)
        return session

    # The process

    def status_value(self, name):
        """A number of /proc/PID/status, in KiB where it is a size."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            for line in status:
                if line.startswith(name + ":"):
                    return int(line.split()[1])
        raise KeyError(name)

    def rss_kib(self):
        return self.status_value("VmRSS")

    def fds(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def closed_to(self, fds, timeout=10):
        """Wait until the daemon has no more descriptors open than it had."""
        wait_until(lambda: self.fds() <= fds, timeout, f"descriptors to go back to {fds}")

    def heap_bytes(self):
        """What its allocations hold. Unlike resident memory it does not depend on how the heap
        is fragmented, so it grows only with what is kept."""
        return self.call("status.show")["memory"]["heap_in_use_bytes"]

    def settled_bytes(self, fds, timeout=10):
        """heap_bytes() once all is closed, and freed: a descriptor goes before its session does,
        in the same turn of the loop, so the first question is for a later turn to answer."""
        self.closed_to(fds, timeout)
        self.sessions()
        return self.heap_bytes()

    def sanitized(self):
        """Whether memory figures mean nothing because a sanitizer keeps freed memory."""
        with open(f"/proc/{self.process.pid}/maps", encoding="utf-8") as maps:
            return re.search(r"lib[atu]san", maps.read()) is not None

    def problems(self):
        """What status says is wrong, by code; a busy machine's slow turns left out."""
        rows = self.call("status.show")["problems"]
        return {row["code"]: row for row in rows if row["code"] != "loop-slow"}

    def turns_are_short(self):
        """Turns of its loop take less than 10 ms (a sanitizer's are not judged).

        Two may be the machine's: interrupts and other guests count as ours.
        """
        loop = self.call("status.show")["loop"]
        check(self.sanitized() or loop["slow_turns"] <= 2,
              f"{loop['slow_turns']} turns of the loop above 10 ms, the longest {loop['turn_max_us']} us")

    # The control socket

    def control(self):
        return Control(self.control_path)

    def call(self, method, **params):
        with self.control() as control:
            return control.call(method, **params)

    def sessions(self):
        """The daemon's own list of sessions."""
        rows, result = [], {"next": "0"}
        while "next" in result:
            result = self.call("session.list", after=result["next"])
            rows += result["sessions"]
        return rows

    def refused(self, method, **params):
        """What a method says that refuses, or None."""
        try:
            self.call(method, **params)
        except AssertionError as error:
            return str(error)
        return None

    def array(self, name):
        return self.call("array.show", name=name)

    def add_fault(self, backing, kind, **params):
        """A rule for a backing: kind "stuck" (until removed), "delay" (delay_ms), "error", "torn";
        op "read", "write", ... or any. Its id."""
        return self.call("fault.add", backing=backing, kind=kind, **params)["id"]

    def faults(self):
        return self.call("fault.list")["faults"]

    def clear_faults(self):
        for fault in self.faults():
            self.call("fault.remove", id=fault["id"])

    def held(self, count=1):
        """Wait until that many ios are held by faults."""
        wait_until(lambda: sum(fault["held"] for fault in self.faults()) >= count,
                   what=f"{count} ios held by a fault")

    @contextlib.contextmanager
    def fault(self, backing, kind, **params):
        """A rule for as long as the block lasts."""
        self.add_fault(backing, kind, **params)
        try:
            yield
        finally:
            if self.alive():
                self.clear_faults()


def _listens(address):
    try:
        socket.create_connection(address, 1).close()
        return True
    except OSError:
        return False
