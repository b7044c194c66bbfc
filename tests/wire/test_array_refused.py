#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
# timeout: 300
"""Arrays that are not made or not started: what is said and asked for, what stays untouched."""

import os
import shutil
import subprocess

import scsi
from arrays import Arrays
from harness import case, main
from iscsi import check
from target import wait_until

MIB = 1 << 20


def contents(t, numbers):
    rows = []
    for number in numbers:
        with open(t.path(number), "rb") as image:
            rows.append(image.read())
    return rows


@case
def numbers_of_disks_that_no_level_takes():
    with Arrays(files=17) as t:
        before = contents(t, range(17))
        for level, count, wanted in (
                (0, 0, "level 0 takes 1 to 16 disks, not 0"),
                (0, 17, "at most 16 disks"),
                (1, 1, "level 1 takes 2 to 4 disks, not 1"),
                (1, 5, "level 1 takes 2 to 4 disks, not 5"),
                (5, 2, "level 5 takes 3 to 16 disks, not 2"),
                (10, 2, "level 10 takes 4 to 16 disks, an even number, not 2"),
                (10, 5, "level 10 takes 4 to 16 disks, an even number, not 5"),
                (6, 4, "no level 6"), (-1, 4, "no level -1"), (11, 4, "no level 11")):
            said = t.refused("array.create", name="b", level=level,
                             disks=[t.path(n) for n in range(count)])
            check(said and wanted in said, f"level {level} of {count}: {said}")
        for chunk, wanted in ((0, "power of two"), (2048, "power of two"), (12288, "power of two"),
                              (2 * MIB, "power of two"), (-4096, "power of two"),
                              (MIB, "too small for a log and a chunk of 1024 KiB")):
            said = t.refused("array.create", name="b", level=5, chunk_bytes=chunk,
                             disks=[t.path(n) for n in range(6)])
            check(said and wanted in said, f"chunk {chunk}: {said}")
        check("data or intent" in t.refused("array.create", name="b", level=5, disks=[],
                                            full_stripe_log="all"), "full_stripe_log")
        check(contents(t, range(17)) == before, "a disk was touched")
        check(not t.call("array.list")["arrays"], f"{t.call('array.list')}")


@case
def one_disk_by_two_names_is_one():
    with Arrays(files=3) as t:
        link = os.path.join(t.dir, "disk9.img")
        os.symlink(t.path(0), link)
        twin = os.path.join(t.dir, "disk8.img")
        os.link(t.path(0), twin)
        for other in (t.path(0), link, twin):
            said = t.refused("array.create", name="b", level=1, disks=[t.path(0), other])
            check(said and "named twice" in said, f"{other}: {said}")


@case
def a_path_that_no_answer_can_have_is_no_disk():
    with Arrays(files=2) as t:
        hidden = os.path.join(t.dir.encode(), b"disk\xe9.img")
        os.rename(t.path(0), hidden)
        subprocess.run([b"mkswap", hidden], check=True, capture_output=True)
        os.symlink(hidden, t.path(9) + ".link")
        with open(hidden, "rb") as image:
            before = image.read()
        said = t.refused("array.create", name="b", level=1, disks=[t.path(9) + ".link", t.path(1)])
        check(said and "not among `disks`" in said, f"{said}")
        check(sorted(t.disks()) == ["backing:plain", "disk1.img"], f"{t.disks()}")
        with open(hidden, "rb") as image:
            check(image.read() == before, "touched")


def foreign(path):
    """(what to write, what it is called)."""
    def table(_):
        sector = bytearray(512)
        sector[446:462] = bytes([0, 0, 2, 0, 0x83, 0, 0, 0]) + (64).to_bytes(4, "little") + \
            (4096).to_bytes(4, "little")
        sector[510:] = b"\x55\xaa"
        with open(path, "r+b") as image:
            image.write(sector)
    rows = [(table, "a partition table (dos)")]
    for tool, name in ((["mkfs.ext4", "-q", "-F", "-L", "mine"], 'ext4 "mine"'),
                       (["mkswap"], "swap"), (["mkfs.vfat"], "vfat"),
                       (["mkfs.xfs", "-q", "-f"], "xfs"),
                       # Its label is no UTF-8.
                       (["mkfs.ext4", "-q", "-F", "-L", b"caf\xe9"], 'ext4 "caf?"')):
        if shutil.which(tool[0]):
            rows.append((lambda p, tool=tool: subprocess.run([*tool, p], check=True,
                                                             capture_output=True), name))
    return rows


@case
def what_others_have_is_touched_by_force_and_name_only():
    with Arrays(files=2) as t:
        for make, name in foreign(t.path(0)):
            os.remove(t.path(0))
            with open(t.path(0), "wb") as image:
                image.truncate(t.size * MIB)
            make(t.path(0))
            before = contents(t, [0])
            params = {"name": "b", "level": 1, "disks": [t.path(0), t.path(1)]}
            said = t.refused("array.create", **params)
            check(said and f"carries {name}. Nothing was touched. Use --force" in said, said)
            plan = t.call("array.create", dry_run=True, **params)
            check(plan["losses"] == [f"{t.path(0)}: carries {name}"], f"{plan}")
            for confirm in ({}, {"confirm": "a"}, {"confirm": ""}):
                said = t.refused("array.create", force=True, **confirm, **params)
                check(said and "Nothing was touched. Confirm with --confirm b" in said, said)
            check(contents(t, [0]) == before, f"{name} was touched")
            row = t.disks()["disk0.img"]
            check((row["state"], row["carries"]) == ("foreign", name), f"{row}")


@case
def a_file_that_a_backing_has_is_told_by_its_name():
    t = Arrays(files=2)
    t.backings["image"] = {"driver": "file", "path": "{dir}/disk7.img", "size": "24M"}
    t.luns[2] = "image"
    with t:
        for shown in (True, False):
            said = t.refused("array.create", name="b", level=1, disks=[t.path(0), t.path(7)])
            check(said and 'it is backing "image". Name backing:image' in said, said)
            params = {"name": "b", "level": 1, "disks": [t.path(0), "backing:image"]}
            if shown:
                said = t.refused("array.create", **params)
                check(said and "or a LUN shows it" in said, said)
                del t.luns[2]
                with open(t.config_path, "w", encoding="utf-8") as config:
                    config.write(t.configuration())
                t.call("config.reload")
            else:
                t.call("array.create", **params)
                check(t.array("b")["roles"] == "[UU]", f"{t.array('b')}")


@case
def a_member_of_an_array_is_not_taken_by_force_either():
    with Arrays(files=4) as t:
        t.make(1, 0, 1)
        t.healthy()
        for params in ({}, {"force": True, "confirm": "b"}):
            said = t.refused("array.create", name="b", level=1, disks=[t.path(1), t.path(2)],
                             **params)
            check(said and "a member of array a. Name another disk" in said, said)
        t.make(1, 2, 3, name="c")
        for params in ({}, {"force": True, "confirm": "a"}):
            said = t.refused("array.add", name="a", disk=t.path(2), **params)
            check(said and "a member of array c" in said, said)
        check(t.array("a")["state"] == "healthy" and t.array("c")["state"] == "healthy", "states")


@case
def a_disk_that_two_arrays_claim_is_of_the_one_it_names():
    with Arrays(files=4) as t:
        t.make(5, 0, 1, 2)
        t.healthy()
        with t.login(lun=1) as session:
            scsi.write(session, 0, b"\x5a" * 65536, lun=1)
        t.process.send_signal(15)
        t.ended()
        for number in (0, 2):
            os.rename(t.path(number), t.path(number) + ".away")
        with open(t.path(1), "r+b") as image:
            size = image.seek(0, 2)
            for end in (0, size - MIB):
                image.seek(end)
                image.write(bytes(MIB))
        check(t._launch(), "does not start")
        t.make(1, 1, 3, name="b")
        t.healthy("b")
        for number in (0, 2):
            os.rename(t.path(number) + ".away", t.path(number))
        # Array a lists the disk; the disk names b: it stays b's, and a goes on without.
        t.call("config.reload")
        wait_until(lambda: t.array("a")["state"] == "degraded", 10, "array a")
        check("d1" in t.problems()["array-degraded"]["detail"], f"{t.problems()}")
        check(t.array("b")["state"] == "healthy", f"{t.array('b')}")
        check(t.disks()["disk1.img"]["array"] == "b", f"{t.disks()}")
        with t.login(lun=1) as session:
            check(scsi.read(session, 0, 65536, lun=1) == b"\x5a" * 65536, "what a held")


ABSENT = [  # level, members, who is away, how it waits
    (0, 2, [1], "disks"), (1, 2, [1], "force"), (1, 3, [0, 2], "force"), (5, 3, [1], ""),
    (5, 4, [3], ""), (5, 3, [0, 1], "disks"), (10, 4, [1], ""), (10, 4, [1, 2], "force"),
    (10, 4, [2, 3], "disks"), (10, 6, [0, 3], "")]


@case(each=ABSENT)
def members_that_are_away(level, members, away, waits):
    with Arrays(files=members, array_wait="200ms") as t:
        t.make(level, *range(members))
        wait_until(lambda: not t.array("a")["resync"], 30, "copies that are equal")
        t.process.send_signal(15)
        t.ended()
        for number in away:
            os.rename(t.path(number), t.path(number) + ".away")
        check(t._launch(), "does not start")
        wanted = "incomplete" if waits else "degraded"
        wait_until(lambda: t.array("a")["state"] == wanted and t.array("a")["waits"] != "moment",
                   10, f"{wanted}: {t.array('a')}")
        names = " ".join(f"d{n}" for n in away)
        row = t.array("a")
        check(row["waits"] == waits, f"{row}")
        if waits:
            check(names in row["cause"], f"{row['cause']}")
            waiting(t, members, waits)
        else:
            check(all(f"d{n}" in t.problems()["array-degraded"]["detail"] for n in away),
                  f"{t.problems()}")
        # All back, it is as it was.
        for number in away:
            os.rename(t.path(number) + ".away", t.path(number))
        t.call("config.reload")
        t.healthy() if level else wait_until(lambda: t.array("a")["state"] == "healthy", 10, "it")
        check(not t.problems(), f"{t.problems()}")


def waiting(t, members, waits):
    """The array says for what it waits, what force would lose, and asks for its name."""
    problem = t.problems()["array-incomplete"]
    sense = {"force": "02/04/01", "disks": "02/04/03"}[waits]
    with t.login(lun=None) as session:
        scsi.run(session, bytes(6), lun=1)
        task = scsi.run(session, bytes(6), lun=1)
        check(task.sense == sense, f"{task.outcome()}")
    said = t.refused("array.start", name="a", force=True)
    check(said and "Nothing was touched. Confirm with --confirm a" in said, said)
    if waits == "force":
        check("may hold newer writes" in problem["detail"] and "is lost" in problem["do"] and
              "yokectl array start a --force" in problem["do"], f"{problem}")
        check("may hold newer writes" in t.call("array.start", name="a", force=True,
                                                dry_run=True)["losses"][0], "losses")
    else:
        check(f"more of its {members} disks" in problem["detail"], f"{problem}")
        # No force makes data of what is not there.
        said = t.refused("array.start", name="a", force=True, confirm="a")
        check(said and f"more of its {members} disks" in said, said)
    check(t.array("a")["state"] == "incomplete", f"{t.array('a')}")


if __name__ == "__main__":
    main()
