#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
# timeout: 300
"""A member of an array misbehaves under load: I/O goes on, status tells what and what to do."""

import os

import disk
import scsi
from arrays import Arrays
from harness import case, main
from iscsi import check
from load import Load
from target import wait_until

MIB = 1 << 20
LEVELS = [(1, 2), (5, 4), (10, 4)]


def loaded(t, trouble, seen, rounds=5, blocks=512):
    """TROUBLE() comes to an array under load; SEEN() becomes true, and the load goes on after it."""
    with t.login(lun=1) as session:
        load = Load(session, lun=1, blocks=blocks)
        load.start()
        wait_until(lambda: load.rounds > rounds or load.error, 60, "some load")
        trouble()
        wait_until(lambda: seen() or load.error, 60, f"what it does: {t.array('a')}")
        before = load.rounds
        wait_until(lambda: load.rounds > before + 5 or load.error, 60, "load that goes on")
        load.finish()


def degraded(t):
    return "array-degraded" in t.problems()


def out(t, index):
    """Member INDEX is out, and status says which it is and what to do."""
    problem, row = t.problems()["array-degraded"], t.array("a")
    check(row["state"] == "degraded", f"{row}")
    check(row["roles"] == "[" + "".join("_" if role == index else "U"
                                        for role in range(row["members_total"])) + "]", f"{row}")
    check([m["state"] for m in row["members"] if m["member"] == f"d{index}"] == ["failed"],
          f"{row['members']}")
    check(row["roles"] in problem["detail"] and
          f"d{index} ({t.path(index)}) failed, " in problem["detail"], f"{problem}")
    member = next(m for m in row["members"] if m["member"] == f"d{index}")
    check(": " in member["note"] and problem["detail"].endswith(member["note"]),
          f"{member} {problem}")
    check("yokectl array add a" in problem["do"], f"{problem}")
    check("one more failure" in problem["risk"], f"{problem}")
    events = t.call("events.list")["events"]
    check([e["fields"]["member"] for e in events if e["name"] == "member-failed"] == [f"d{index}"],
          f"{events}")


@case(each=[(level, members, op) for level, members in LEVELS for op in ("write", "flush")
            if op == "write" or level == 5])
def errors_of_writing_take_it_out(level, members, op):
    with Arrays(files=members, faults=True) as t:
        t.make(level, *range(members))
        t.healthy()
        loaded(t, lambda: t.add_fault(t.path(1), "error", op=op), lambda: degraded(t))
        out(t, 1)
        # Put right, it gets what it missed.
        t.clear_faults()
        loaded(t, lambda: t.call("array.add", name="a", disk=t.path(1)), lambda: not degraded(t))
        t.healthy()
        check(not t.problems(), f"{t.problems()}")
        # And has it: the others may go.
        loaded(t, lambda: t.add_fault(t.path(0), "error", op="write"), lambda: degraded(t))


@case(each=LEVELS)
def cut_short_it_is_out(level, members):
    with Arrays(files=members) as t:
        t.make(level, *range(members))
        t.healthy()
        loaded(t, lambda: os.truncate(t.path(0), 1 * MIB), lambda: degraded(t))
        out(t, 0)


@case(each=LEVELS)
def blocks_that_cannot_be_read_are_healed_from_the_others(level, members):
    with Arrays(files=members, faults=True) as t:
        t.make(level, *range(members))
        t.healthy()

        def hit():
            return [rule["hits"] for rule in t.faults()][0] > 5
        loaded(t, lambda: t.add_fault(t.path(1), "error", op="read", per_million=100000), hit)
        row = t.array("a")["members"][1]
        check(row["read_errors"] > 0, f"{row}")
        check(row["state"] == "in-sync" and not degraded(t), f"{t.array('a')} {t.problems()}")


@case(each=LEVELS)
def a_slow_one_is_named(level, members):
    with Arrays(files=members, faults=True) as t:
        t.make(level, *range(members))
        t.healthy()
        notes = []      # enough is known of all to compare them, when one becomes slow

        def named():
            notes[:] = [m["note"] for m in t.array("a")["members"]]
            return notes[1]
        loaded(t, lambda: t.add_fault(t.path(1), "delay", op="any", delay_ms=200), named,
               rounds=200, blocks=48)
        check(notes[1].startswith("slow: ") and notes[1].endswith("x peers"), f"{notes}")
        # On a busy machine another one may be slow, too, by itself: less so.
        times = [int(note.split()[1]) if note else 0 for note in notes]
        check(times[1] == max(times) and times.count(times[1]) == 1, f"{notes}")
        check(not degraded(t), f"{t.problems()}")


@case(each=[(0, 2), (1, 2)])
def no_room_below_them_is_said(level, members):
    with Arrays(files=members, faults=True) as t:
        t.make(level, *range(members))
        for number in range(members):
            t.add_fault(t.path(number), "error", op="write", error="ENOSPC")
        with t.login(lun=1) as session:
            task = scsi.run(session, scsi.write10(0, 8), out=bytes(4096), lun=1)
            check(task.sense == "07/27/07", f"{task.outcome()}")
        problem = t.problems()["backing-full"]
        check("a: no room on " in problem["detail"] and "disk0.img" in problem["detail"],
              f"{problem}")


def spoil(path, ranges, how):
    """HOW(bytes) in the place of the bytes of RANGES."""
    with open(path, "r+b") as image:
        for offset, length in ranges:
            image.seek(offset)
            old = image.read(length)
            image.seek(offset)
            image.write(how(old))


def zeroed(old):
    return bytes(len(old))


def flipped(old):
    return bytes([old[0] ^ 1]) + old[1:] if old else old


def metadata(path):
    """Labels, maps and log: all but data."""
    found = disk.Disk(path)
    return [(0, found.label.data.offset), (found.size - 8192, 8192)]


@case(each=[(level, members, how) for level, members in LEVELS[1:]
            for how in ("zeroed", "flipped")])
def what_it_says_of_itself_is_lost_while_it_runs(level, members, how):
    with Arrays(files=members, array_wait="300ms") as t:
        t.make(level, *range(members))
        t.healthy()

        def trouble():
            if how == "zeroed":
                spoil(t.path(1), metadata(t.path(1)), zeroed)
            else:
                newest = disk.Disk(t.path(1)).label.sequence % 2
                spoil(t.path(1), [(newest * 4096 + 200, 1), (8192 + 40, 1)], flipped)
        loaded(t, trouble, lambda: True)
        check(not degraded(t), f"{t.problems()}")
        t.process.kill()
        t.process.wait()
        check(t._launch(), "does not start")
        # A flipped bit leaves the label's twin. With none it is a disk that nobody knows, and the
        # others go on without it, as it could not have without them.
        wanted = {"flipped": "healthy", "zeroed": "degraded"}[how]
        wait_until(lambda: t.array("a")["state"] == wanted, 30, f"{wanted}: {t.array('a')}")
        if how == "zeroed":
            check("d1 missing" in t.problems()["array-degraded"]["detail"], f"{t.problems()}")
            loaded(t, lambda: t.call("array.add", name="a", disk=t.path(1)), lambda: not degraded(t))
        t.healthy()


if __name__ == "__main__":
    main()
