#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Speed as ratios: yoked beside two ceilings, Debian's tgt and fio, in turns on one machine.

In each round every target serves each workload once, for SECONDS, one after the other; what is
shown are medians over ROUNDS rounds. Servers have one processor, the initiator the other, and
nobody else is at work. CPU a command is the server's whole time (all threads, user and system)
over the commands that the initiator counted. The initiator is yoke-bench with one session: reads
are random over the LUN, writes sequential; fio does the same to yoked's file without yoked.

That the measuring itself is cheap, iscsi-perf shows, which reads and counts and does nothing else:
against the same yoked, what a command costs each of the two in their own processor time.

Two ratios have no aim and explain others. One is to the ceiling that copies what is read out of as
much memory as yoked. The other is to fio and the ceiling one after the other, 1 / (1 / a + 1 / b):
with DEPTH commands in all, one that is on its way to the initiator is not with the disk.

Invariants
 1. It ends its servers and removes its files whatever happens, and touches no other process.
 2. It ends within its time: every client has a limit, and rounds stop when LIMIT_SECONDS are over.

Not here: counts, which need no quiet machine (tests/wire/test_costs.py).
"""

import argparse
import contextlib
import json
import os
import re
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests/wire"))
os.environ["YOKE_BUILD"] = BUILD = os.path.join(ROOT, "build/release")

from target import IQN, Target, free_ports, wait_until     # noqa: E402 (its path comes first)

LIMIT_SECONDS = 280
SIZE = 256 << 20
DEPTH = 64
CPUS = sorted(os.sched_getaffinity(0))
SERVER, CLIENT = CPUS[0], CPUS[-1]


class Fault(Exception):
    """Something of the comparison itself does not work."""


def run(command, timeout=30):
    """What a command prints, on the initiator's processor, and how many seconds of it it used."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(["taskset", "-c", str(CLIENT), *command], timeout=timeout, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        raise Fault(f"{command[0]}: {done.stdout.strip()[-300:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.stdout, (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


def bench(server, lun, *options, timeout=30):
    """What yoke-bench measured, and how many seconds of its processor it used."""
    report = os.path.join(server.scratch, "bench.json")
    _, used = run([os.path.join(BUILD, "yoke-bench"), "--no-fill", "--destroy", "--warmup", "0",
                   "--json", report, *options, server.url(lun)], timeout)
    with open(report, encoding="utf-8") as file:
        measured = json.load(file)["yoke"]
    if measured["errors"]:
        raise Fault(f"{server.name}: {measured['errors'][0]['text']}")
    return measured, used


class Workload:
    """What one client does: OP is read or write, in units of BYTES."""

    def __init__(self, op, size):
        self.op, self.bytes = op, size
        self.name = f"{op} {size >> 10}K"

        self.rw = {"read": "randread", "write": "write"}[op]

    def over_iscsi(self, server, lun, seconds):
        """Commands done, the seconds that they took, and those that the initiator used."""
        measured, used = bench(server, lun, "--rw", self.rw, "--bs", str(self.bytes),
                               "--qd", str(DEPTH), "--time", str(seconds), timeout=seconds + 20)
        return measured["sides"]["total"]["ops"], measured["measured_s"], used

    def by_iscsi_perf(self, server, lun, seconds):
        out, used = run(["iscsi-perf", "-r", "-m", str(DEPTH), "-b", str(self.bytes // 512),
                         "-t", str(seconds), server.url(lun)], seconds + 20)
        return int(re.findall(r"iops average (\d+)", out)[-1]) * seconds, seconds, used

    def on_file(self, path, seconds):
        out, _ = run(["fio", "--name=file", f"--filename={path}", f"--size={SIZE}",
                      f"--rw={self.rw}", "--ioengine=io_uring", "--direct=1",
                      f"--bs={self.bytes}", "--time_based", f"--iodepth={DEPTH}",
                      f"--runtime={seconds}", "--output-format=json"], seconds + 20)
        job = json.loads(out[out.index("{"):])["jobs"][0][self.op]
        return job["total_ios"], job["runtime"] / 1000


class Server:
    """A target that is running: where it is, and what it has used of its processor."""

    def __init__(self, name, pid, address, lun, scratch):
        self.name, self.pid, self.address, self.lun = name, pid, address, lun
        self.scratch = scratch

    def url(self, lun):
        return f"iscsi://{self.address[0]}:{self.address[1]}/{IQN}/{lun}"

    def cpu_ns(self):
        # The clock of another process: clock_getcpuclockid(3), which Python does not have.
        return time.clock_gettime_ns(~self.pid << 3 | 2)

    def fill(self, lun):
        """No block is read that was never written."""
        measured, _ = bench(self, lun, "--rw", "write", "--bs", "1M", "--qd", "4", "--time", "60",
                            "--io-size", str(SIZE), timeout=90)
        if measured["sides"]["write"]["bytes"] != SIZE:
            raise Fault(f"{self.name}: not filled within 60 s")


@contextlib.contextmanager
def child(command, **options):
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, text=True, **options)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def ceiling(scratch, *how):
    with child([os.path.join(BUILD, "tests/ceiling"), *how], stdout=subprocess.PIPE) as process:
        port = int(process.stdout.readline())
        yield Server(how[0] if how else "ceiling", process.pid, ("127.0.0.1", port), 0, scratch)


@contextlib.contextmanager
def yoked(scratch, path):
    """LUN 0 is memory, LUN 1 the file."""
    backings = {"memory": {"driver": "ram", "size": SIZE},
                "file": {"driver": "file", "path": path, "size": SIZE, "direct": True,
                         "write_cache": True}}
    with Target(backings=backings, luns={0: "memory", 1: "file"},
                node={"faults": False, "disks": [path]}) as target:
        server = Server("yoked", target.process.pid, target.address, 0, scratch)
        server.fill(0)
        server.loop = lambda: target.call("status.show")["loop"]
        yield server


@contextlib.contextmanager
def tgt(scratch):
    """Its store is a file in memory; rdwr is its usual way to one."""
    path = os.path.join(scratch, "tgt.img")
    with open(path, "wb") as image:
        image.truncate(SIZE)
    host, port = free_ports(["127.0.0.1"])[0]
    control = str(1 + os.getpid() % 32000)      # it takes 15 bits
    admin = ["tgtadm", "-C", control, "--lld", "iscsi"]
    with child(["setpriv", "--pdeathsig", "KILL", "tgtd", "-f", "-C", control,
                "--iscsi", f"portal={host}:{port}"],
               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        def answers():
            if process.poll() is not None:
                raise Fault("tgtd does not start: is root needed?")
            return subprocess.run([*admin, "--op", "show", "--mode", "system"], check=False,
                                  capture_output=True, timeout=10).returncode == 0

        wait_until(answers, 10, "tgtd")
        for step in (["new", "--mode", "target", "--tid", "1", "-T", IQN],
                     ["new", "--mode", "logicalunit", "--tid", "1", "--lun", "1",
                      "--bstype", "rdwr", "-b", path],
                     ["bind", "--mode", "target", "--tid", "1", "-I", "ALL"]):
            run([*admin, "--op", *step])
        server = Server("tgt", process.pid, (host, port), 1, scratch)
        server.fill(1)
        try:
            yield server
        finally:
            for left in (f"/var/run/tgtd/socket.{control}", f"/var/run/tgtd/socket.{control}.lock"):
                with contextlib.suppress(OSError):
                    os.unlink(left)


class Point:
    """Samples of one workload on one subject, by round."""

    def __init__(self, subject, workload, measure):
        self.subject, self.workload, self.measure = subject, workload, measure
        self.samples = []

    def medians(self):
        values = {name: statistics.median(sample[name] for sample in self.samples)
                  for name in self.samples[0]}
        return {"subject": self.subject, "workload": self.workload, "rounds": len(self.samples),
                **values}


def measured(server, measure):
    """CPU a command, commands a second, and for yoked system calls a turn of its loop."""
    loop = getattr(server, "loop", None)
    before = loop and loop()
    cpu = server.cpu_ns()
    count, took, used = measure()
    cpu = server.cpu_ns() - cpu
    sample = {"iops": count / took, "cpu_us": cpu / 1000 / count, "client_us": used * 1e6 / count}
    if loop:
        after = loop()
        turns = after["turns"] - before["turns"]
        sample["syscalls_turn"] = (after["syscalls"] - before["syscalls"]) / turns
        sample["commands_turn"] = count / turns
    return sample


def points(servers, path, seconds):
    """Everything that is measured in a round, in its order."""
    def over(server, lun, workload, place):
        return Point(server.name, f"{workload.name} {place}", lambda: measured(
            server, lambda: workload.over_iscsi(server, lun, seconds)))

    def beside(server, workload):
        return Point("iscsi-perf", f"{workload.name} memory", lambda: measured(
            server, lambda: workload.by_iscsi_perf(server, server.lun, seconds)))

    def fio(workload):
        count, took = workload.on_file(path, seconds)
        return {"iops": count / took}

    workloads = [Workload(op, size) for size in (4096, 131072) for op in ("read", "write")]
    for workload in workloads:
        for server in servers:
            if server.name != "copying" or workload.op == "read":
                yield over(server, server.lun, workload, "memory")
            if server.name == "yoked" and workload.name == "read 4K":
                yield beside(server, workload)
    for workload in workloads[:2]:
        yield Point("fio", f"{workload.name} file", lambda workload=workload: fio(workload))
        for server in servers:
            if server.name == "yoked":
                yield over(server, 1, workload, "file")


def in_series(rates):
    return 1 / sum(1 / rate for rate in rates)


def judge(rows):
    """(what, ratio, bound, whether it holds) for each aim that could be measured."""
    by = {(row["subject"], row["workload"]): row for row in rows}

    def ratio(what, name, workload, bound, above, *others, both=min):
        others = [by[key][name] for key in others if key in by]
        if not others:
            return
        value = by["yoked", workload][name] / both(others)
        holds = bound is None or (value >= bound if above else value <= bound)
        limit = (">= " if above else "<= ") + f"{bound:.2f}" if bound else ""
        yield f"{workload}: {what}", value, limit, holds

    for size, cpu, iops in (("4K", 1.6, 0.85), ("128K", 1.5, 0.8)):
        for op in ("read", "write"):
            name = f"{op} {size} memory"
            yield from ratio("CPU / ceiling's", "cpu_us", name, cpu, False, ("ceiling", name))
            if size == "4K":
                yield from ratio("CPU / tgt's", "cpu_us", name, 0.25, False, ("tgt", name))
            yield from ratio("IOPS / ceiling's", "iops", name, iops, True, ("ceiling", name))
            if op == "read":
                yield from ratio("CPU / copying ceiling's", "cpu_us", name, None, False,
                                 ("copying", name))
    name, perf = "read 4K memory", ("iscsi-perf", "read 4K memory")
    yield from ratio("yoke-bench's CPU / iscsi-perf's", "client_us", name, 1.15, False, perf)
    yield from ratio("yoke-bench's IOPS / iscsi-perf's", "iops", name, 0.9, True, perf)
    yield from ratio("yoke-bench's IOPS / iscsi-perf's", "iops", name, 1.1, False, perf)
    for op in ("read", "write"):
        name = f"{op} 4K file"
        alone = ("fio", name), ("ceiling", f"{op} 4K memory")
        yield from ratio("IOPS / min(fio's, ceiling's)", "iops", name, 0.8, True, *alone)
        yield from ratio("IOPS / fio's, ceiling's in series", "iops", name, None, True, *alone,
                         both=in_series)


def show(rows, verdicts):
    print(f"\n{'workload':<18} {'target':<10} {'IOPS':>9} {'MiB/s':>7} {'CPU us':>8} "
          f"{'client us':>9} {'calls/turn':>10} {'cmds/turn':>9}")
    for row in rows:
        size = int(re.search(r"(\d+)K", row["workload"]).group(1))
        print(f"{row['workload']:<18} {row['subject']:<10} {row['iops']:>9.0f} "
              f"{row['iops'] * size / 1024:>7.0f} "
              + "".join(f"{row[name]:>{width}.2f} " if name in row else " " * width + " "
                        for name, width in (("cpu_us", 8), ("client_us", 9), ("syscalls_turn", 10),
                                            ("commands_turn", 9))).rstrip())
    print(f"\n{'yoked':<48} {'ratio':>6}  {'aim':<8}")
    for what, value, bound, holds in verdicts:
        print(f"{what:<48} {value:>6.2f}  {bound:<8} {'' if holds else 'missed'}".rstrip())


def compare(rounds, seconds):
    """The medians of every point, and what could not be compared."""
    deadline = time.monotonic() + LIMIT_SECONDS
    # Not in /tmp, which may be memory; O_DIRECT is for disks.
    disk = tempfile.mkdtemp(prefix="compare.", dir=os.path.join(ROOT, "build"))
    memory = tempfile.mkdtemp(prefix="yoke-compare.", dir="/dev/shm")
    try:
        path = os.path.join(disk, "file.img")
        run(["dd", "if=/dev/urandom", f"of={path}", "bs=1M", f"count={SIZE >> 20}",
             "conv=fsync"], 60)
        with contextlib.ExitStack() as stack:
            os.sched_setaffinity(0, {SERVER})       # inherited by the servers
            servers = [stack.enter_context(server) for server in
                       (ceiling(memory), ceiling(memory, "copying"), yoked(memory, path),
                        tgt(memory))]
            todo = list(points(servers, path, seconds))
            for number in range(-1, rounds):        # -1 warms up
                if time.monotonic() > deadline - 3 * seconds * len(todo):
                    print(f"compare: out of time after {number} rounds", file=sys.stderr)
                    break
                for point in todo:
                    sample = point.measure()
                    if number >= 0:
                        point.samples.append(sample)
                if sys.stderr.isatty():
                    print(f"\rround {number + 1} of {rounds}", end="", file=sys.stderr)
        return [point.medians() for point in todo if point.samples]
    finally:
        shutil.rmtree(disk, ignore_errors=True)
        shutil.rmtree(memory, ignore_errors=True)


def options_of(description, *more):
    """The options of a comparison; MORE are this one's: (name, add_argument()'s keywords)."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=int(os.environ.get("ROUNDS", 7)))
    parser.add_argument("--seconds", type=int, default=int(os.environ.get("SECONDS", 1)))
    for name, keywords in more:
        parser.add_argument(name, **keywords)
    options = parser.parse_args()
    if options.rounds < 1 or options.seconds < 1:
        parser.error("at least one round of one second")
    return options


def load_before(name):
    """The machine's load; says what makes NAME's ratios worth less."""
    busy = os.getloadavg()[0]
    if busy > 0.5:
        print(f"{name}: the machine is at work (load {busy:.1f}): ratios will be rough")
    if SERVER == CLIENT:
        print(f"{name}: one processor for both sides: ratios mean little")
    return busy


def guarded(name, main):
    """MAIN, ended by signals as by its return: servers and files are removed (invariant 1)."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(143))
    try:
        main()
    except (Fault, AssertionError, OSError, subprocess.TimeoutExpired) as error:
        sys.exit(f"{name}: {error}")


def main():
    options = options_of(__doc__, ("--json", {"metavar": "FILE",
                                              "help": "also write the figures there"}))
    busy = load_before("compare")
    rows = compare(options.rounds, options.seconds)
    if not rows:
        raise Fault("no round was finished")
    verdicts = list(judge(rows))
    show(rows, verdicts)
    after = os.getloadavg()[0]
    if after > 2.5:     # about 1.5 is our own
        print(f"compare: others were at work (load {after:.1f}): run it again")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as out:
            json.dump({"schema": "yoke.compare/1", "load": [busy, after], "rows": rows, "aims": [
                {"what": what, "ratio": value, "bound": bound, "holds": holds}
                for what, value, bound, holds in verdicts]}, out, indent=1)


if __name__ == "__main__":
    guarded("compare", main)
