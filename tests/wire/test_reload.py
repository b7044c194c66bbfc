#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
"""Reload under load: targets, LUNs, allow lists and portals come, change and go; a session that is
not concerned runs verified I/O and does not notice. A bad file changes nothing."""

import fcntl
import os
import signal
import socket
import time

import scsi
from harness import case, main
from iscsi import LoginFailed, check
from load import Load
from target import Target, free_ports, own_address, wait_until

KEPT, OTHER, NEW = ("iqn.2026-11.org.yoke:" + name for name in ("kept", "other", "new"))
HOST = "iqn.2026-11.org.yoke.host:"
LUN_RESET = 5


def lun(backing, **more):
    return {"backing": backing, **more}


class Reloading(Target):
    """A target under load on KEPT, and a configuration that can be changed."""

    def __init__(self, **options):
        super().__init__(
            backings={"a": {"size": "32M"}, "b": {"size": "16M"}},
            targets={KEPT: {"lun": {0: lun("a")}}, OTHER: {"lun": {0: lun("b")}}},
            hosts=[own_address()] * 2, **options)

    def __enter__(self):
        self.start()
        self.session = self.login(target=KEPT)
        self.load = Load(self.session)
        self.load.start()
        return self

    def __exit__(self, kind, *rest):
        if kind is None:
            self.load.finish()
            self.session.logout()
        self.session.close()
        super().__exit__(kind, *rest)

    def under_way(self, rounds=20):
        """The load goes on."""
        until = self.load.rounds + rounds
        wait_until(lambda: self.load.error or self.load.rounds >= until, 20, "the load")
        check(not self.load.error, f"under load: {self.load.error}")

    def rewrite(self):
        with open(self.config_path, "w", encoding="utf-8") as config:
            config.write(self.configuration())

    def reload(self):
        self.rewrite()
        self.under_way()
        changes = self.call("config.reload")["changes"]
        self.under_way()
        return changes


def refused(t, status, **options):
    try:
        t.login(**options).close()
    except LoginFailed as failed:
        check(failed.status == status, f"refused with {failed.status:#x}, not {status:#x}")
    else:
        raise AssertionError("logged in")


@case
def nothing_changes_when_nothing_changed():
    with Reloading() as t:
        check(t.reload() == [], "changes out of nothing")


@case
def a_target_comes_and_goes():
    with Reloading() as t:
        refused(t, 0x0203, target=NEW)
        t.backings["c"] = {"size": "8M"}
        t.targets[NEW] = {"lun": {0: lun("c"), 5: lun("b")}}
        changes = t.reload()
        check(len(changes) == 2, f"{changes}")
        with t.login(target=NEW) as session:
            check(scsi.read(session, 0, 4096) == bytes(4096), "new memory is not zero")
            t.targets.pop(NEW)
            t.backings.pop("c")
            t.reload()
            session.expect_closed(5, allow=None)
        refused(t, 0x0203, target=NEW)
        check([row["name"] for row in t.call("backing.list")["backings"]] == ["a", "b"],
              "a backing that nobody names is still open")


@case
def an_allow_list_that_shrinks_ends_the_sessions_it_no_longer_names():
    with Reloading() as t:
        t.targets[OTHER]["allow"] = [HOST + "a", HOST + "b"]
        t.reload()
        with t.login(target=OTHER, initiator=HOST + "a") as first, \
                t.login(target=OTHER, initiator=HOST + "b") as second:
            t.targets[OTHER]["allow"] = [HOST + "b"]
            t.reload()
            first.expect_closed(5, allow=None)
            second.ping()
            scsi.read(second, 0, 512)
        refused(t, 0x0202, target=OTHER, initiator=HOST + "a")


@case
def a_lun_is_added_masked_and_removed():
    with Reloading() as t, t.login(target=OTHER) as session:
        t.targets[OTHER]["lun"] = {0: lun("b"), 1: lun("a", read_only=True)}
        t.reload()
        check(scsi.run(session, scsi.TEST_UNIT_READY).sense == "06/3F/0E", "no attention")
        scsi.ready(session, 1)
        scsi.read(session, 0, 512, lun=1)
        task = scsi.run(session, scsi.write10(0, 1), out=bytes(512), lun=1)
        check(task.sense == "07/27/00", f"write to a read-only LUN: {task.outcome()}")
        t.targets[OTHER]["lun"][1]["allow"] = [HOST + "somebody"]
        t.reload()
        scsi.ready(session)
        task = scsi.run(session, scsi.TEST_UNIT_READY, lun=1)
        check(task.sense == "05/25/00", f"a masked LUN answers {task.outcome()}")
        t.targets[OTHER]["lun"] = {0: lun("b")}
        t.reload()
        scsi.ready(session)


@case
def a_portal_comes_moves_and_goes():
    with Reloading() as t:
        t.addresses += free_ports([own_address()])
        t.reload()
        with t.login(target=OTHER, portal=2) as session:
            t.addresses[2:] = free_ports([own_address()])
            t.reload()
            session.expect_closed(5, allow=None)
        with t.login(target=OTHER, portal=2) as session:
            del t.addresses[2:]
            t.reload()
            session.expect_closed(5, allow=None)


BAD = {
    "syntax": lambda text: text + "target {",
    "no such backing": lambda text: text.replace('backing = "b"', 'backing = "nothing"'),
    "a backing that cannot be opened": lambda text: text.replace(
        'backing "b" {\n  driver = "ram"', 'backing "b2" {\n  driver = "file"\n  path = "/nowhere/at/all"'
    ).replace('backing = "b"', 'backing = "b2"'),
    "an address that is not here": lambda text: text + (
        'portal "away" { listen = { "192.0.2.55:3260" }  group = 9 }\n'),
    "another size": lambda text: text.replace('"16M"', '"17M"'),
    "another state_dir": lambda text: text.replace('/state"', '/state2"'),
    "garbage": lambda text: "\x00\xff" * 5000,
    "empty": lambda text: "",
}


@case(each=BAD)
def a_bad_file_changes_nothing(what):
    with Reloading() as t, t.login(target=OTHER) as session:
        good = t.configuration()
        t.targets[NEW] = {"lun": {0: lun("b")}}
        with open(t.config_path, "w", encoding="latin-1") as config:
            config.write(BAD[what](t.configuration()))
        try:
            t.call("config.reload")
        except AssertionError as error:
            check("yoke.conf" in str(error), f"the refusal names no file: {error}")
        else:
            raise AssertionError("taken")
        t.under_way()
        session.ping()
        scsi.read(session, 0, 512)
        refused(t, 0x0203, target=NEW)
        problems = [row["code"] for row in t.call("status.show")["problems"]]
        check("config-refused" in problems, f"status says {problems}")
        with open(t.config_path, "w", encoding="utf-8") as config:
            config.write(good)
        check(t.call("config.reload")["changes"] == [], "something had changed")
        check(not t.problems(), f"status still complains: {t.problems()}")


@case
def a_port_that_somebody_has_is_named_and_nothing_changes():
    with Reloading() as t, t.login(target=OTHER) as session, \
            socket.create_server((own_address(), 0)) as holder:
        good = list(t.addresses)
        t.addresses.append(holder.getsockname())
        try:
            t.reload()
        except AssertionError as error:
            check(f"pid {os.getpid()}. Stop it" in str(error), f"who has it is not told: {error}")
        else:
            raise AssertionError("taken")
        t.under_way()
        session.ping()
        t.addresses[:] = good
        check(t.reload() == [], "something had changed")


def moved(luns, what):
    """LUNs 0 and 1, which have stuck commands, as others."""
    return {"exchanged": {0: luns[1], 1: luns[0]},
            "read-only": {n: dict(it, read_only=True) for n, it in luns.items()},
            "gone": {5: luns[0], 6: luns[1]}}[what]


@case(each=["exchanged", "read-only", "gone"])
def luns_with_stuck_commands_become_others_and_come_back(what):
    """Twice, so that two generations of a LUN wait for their commands behind the one that is."""
    with Reloading() as t:
        here = {0: lun("b"), 1: lun("c")}
        t.backings["c"] = {"size": "8M"}
        for name in (OTHER, NEW):
            t.targets[name] = {"lun": here}
        t.reload()
        sessions = [t.login(target=name, lun=None) for name in (OTHER, NEW)]
        tasks = []
        for backing in "b", "c":
            t.add_fault(backing, "stuck")
        for now in (moved(here, what), here) * 2:
            for session in sessions:
                for number in t.targets[NEW]["lun"]:
                    scsi.ready(session, number)
                    tasks.append(scsi.start(session, scsi.read10(0, 8), lun=number, read=4096))
            t.held(len(tasks))
            for name in (OTHER, NEW):
                t.targets[name] = {"lun": now}
            check(t.reload(), "nothing changed")
        t.clear_faults()
        for session in sessions:
            session.until(lambda: not session.tasks)    # pylint: disable=cell-var-from-loop
            check(session.tmf(LUN_RESET) == 0, "LUN RESET after all")
            for number in 0, 1:
                scsi.ready(session, number)
                scsi.write(session, 8, bytes(4096), lun=number)
            session.close()
        check(all(task.done for task in tasks), "a command is left")


@case
def a_hangup_while_a_reload_waits_is_not_lost():
    """The file may have been read before it was written: so it is read once more."""
    with Reloading() as t:
        path = t.dir + "/held.img"
        with open(path, "wb") as held:
            held.truncate(32 << 20)
            fcntl.flock(held, fcntl.LOCK_EX)
            t.backings["held"] = {"driver": "file", "path": path}
            t.targets[NEW] = {"lun": {0: lun("held")}}
            t.rewrite()
            t.process.send_signal(signal.SIGHUP)
            wait_until(lambda: "waiting" in t.log(), what="the reload to wait")
            t.targets[NEW] = {"lun": {3: lun("b")}}
            t.rewrite()
            for _ in range(5):
                t.process.send_signal(signal.SIGHUP)
        wait_until(lambda: [row["lun"] for row in t.call("lun.list")["luns"]
                            if row["target"] == NEW] == [3], what="the newest file")


@case
def reloads_one_after_the_other():
    with Reloading() as t:
        started = time.monotonic()
        for turn in range(50):
            t.targets[NEW] = {"lun": {turn % 8: lun("b")}}
            if turn % 5 == 4:
                t.targets.pop(NEW)
            t.rewrite()
            t.call("config.reload")
        t.under_way()
        check(time.monotonic() - started < 60, "50 reloads took more than a minute")


if __name__ == "__main__":
    main()
