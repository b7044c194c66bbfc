#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
# timeout: 300
"""Disks that are not what they say: old copies of members, new ones, who was taken out."""

import os
import shutil
import subprocess

import disk
import scsi
from arrays import Arrays
from harness import case, main
from iscsi import check
from target import wait_until

LEVELS = [(1, 2), (5, 3), (10, 4)]
LENGTH = 65536


def write(t, byte, lba=0):
    with t.login(lun=1) as session:
        scsi.write(session, lba, bytes([byte]) * LENGTH, lun=1)


def reads(t, byte, lba=0):
    """Whoever answers: reads take turns."""
    with t.login(lun=1) as session:
        for _ in range(8):
            check(scsi.read(session, lba, LENGTH, lun=1) == bytes([byte]) * LENGTH, f"not {byte}")


def ended(t):
    t.process.send_signal(15)
    t.ended()


def content(path):
    with open(path, "rb") as image:
        return image.read()


@case(each=LEVELS)
def an_old_copy_of_a_member_gets_everything(level, members):
    with Arrays(files=members, faults=True) as t:
        t.make(level, *range(members))
        t.healthy()
        write(t, 1)
        old = t.path(0) + ".old"
        shutil.copy(t.path(0), old)
        write(t, 2)
        # Labels come and go, and what was written then is in no map any more.
        for _ in range(2):
            t.restart()
            t.healthy()
        t.add_fault(t.path(0), "error", op="write")
        for lba in (4096, 4224, 4352):      # a chunk each: one of them is on that disk
            write(t, 3, lba)
        wait_until(lambda: "array-degraded" in t.problems(), 10, "a problem")
        ended(t)
        os.replace(old, t.path(0))
        check(t._launch(), "does not start")
        t.healthy()
        reads(t, 2)
        reads(t, 3, 4096)
        # It alone answers, or takes part in it.
        t.add_fault(t.path(1), "error", op="any")
        reads(t, 2)
        reads(t, 3, 4096)


@case(each=LEVELS)
def an_old_copy_among_new_members_is_not_guessed_about(level, members):
    with Arrays(files=members, array_wait="200ms") as t:
        t.make(level, *range(members))
        t.healthy()
        write(t, 1)
        old = t.path(1) + ".old"
        shutil.copy(t.path(1), old)
        write(t, 2)
        t.restart()
        t.healthy()
        ended(t)
        os.replace(old, t.path(1))
        check(t._launch(), "does not start")
        problem, row = t.problems()["array-incomplete"], t.array("a")
        check(row["waits"] == "choice", f"{row}")
        check("yokectl array start a DISK" in problem["do"], f"{problem}")
        count = [t.path(n) for n in range(members) if n != 1]
        t.call("array.start", name="a", disks=count, force=True, confirm="a")
        reads(t, 2)
        # The copy comes back by itself, to be written.
        t.call("config.reload")
        t.healthy()
        reads(t, 2)


@case
def what_is_refused_was_not_wiped():
    with Arrays(files=2, faults=True) as t:
        t.make(1, 0, 1)
        t.healthy()
        twin, other = os.path.join(t.dir, "twin.img"), os.path.join(t.dir, "other.img")
        shutil.copy(t.path(1), twin)
        with open(other, "wb") as image:
            image.truncate(t.size << 20)
        subprocess.run(["mkswap", other], check=True, capture_output=True)
        before = [content(path) for path in (twin, other)]
        t.call("config.reload")
        for params in ({}, {"force": True, "confirm": "a"}):
            for path in (twin, other):
                said = t.refused("array.add", name="a", disk=path, **params)
                wanted = "no role is free" if params else "Nothing was touched"
                check(said and wanted in said, f"{path}: {said}")
        check([content(path) for path in (twin, other)] == before, "touched")
        check("a copy of a member" in t.call("array.add", name="a", disk=twin,
                                             dry_run=True)["losses"][0], "what the copy is")
        # Where there is a role, it is a disk like any other.
        t.add_fault(t.path(0), "error", op="write")
        write(t, 5)
        wait_until(lambda: "array-degraded" in t.problems(), 10, "a problem")
        t.call("array.add", name="a", disk=twin, force=True, confirm="a")
        t.healthy()
        check(disk.Disk(twin).label.own == 2, "it is the member that it was a copy of")


@case
def who_was_taken_out_stays_out():
    with Arrays(files=3, array_wait="200ms") as t:
        t.make(1, 0, 1)
        t.healthy()
        write(t, 1)
        t.call("array.remove", name="a", member="d0", force=True, confirm="a")
        problem = t.problems()["array-degraded"]
        check("was taken out" in problem["detail"] and "yokectl array add a" in problem["do"],
              f"{problem}")
        before = content(t.path(0))
        write(t, 2)
        t.restart()
        wait_until(lambda: t.array("a")["state"] == "degraded", 10, f"{t.array('a')}")
        reads(t, 2)
        t.call("config.reload")
        check(t.array("a")["roles"] == "[_U]", f"{t.array('a')}")
        check(content(t.path(0)) == before, "touched")
        check(t.disks()["disk0.img"]["state"] == "label", f"{t.disks()}")
        made = t.call("array.create", name="b", level=1, disks=[t.path(0), t.path(2)], force=True,
                      confirm="b")
        check(made["state"] == "healthy", f"{made}")


@case
def a_copy_that_is_listed_first_does_not_stand_for_the_member():
    with Arrays(files=3) as t:
        t.make(1, 1, 2)
        t.healthy()
        shutil.copy(t.path(1), t.path(0))
        t.call("config.reload")
        t.call("array.remove", name="a", member="d0", force=True, confirm="a")
        # It is nobody's now.
        made = t.call("array.create", name="b", level=0, disks=[t.path(1)], force=True,
                      confirm="b")
        check(made["state"] == "healthy", f"{made}")


if __name__ == "__main__":
    main()
