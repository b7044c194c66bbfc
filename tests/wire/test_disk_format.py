#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
# timeout: 300
"""Disks of arrays read by another reader, which knows yoke-disk(5) only."""

import os
import uuid

import disk
import scsi
from arrays import Arrays
from harness import case, main
from iscsi import check
from load import Load
from target import wait_until

MIB = 1 << 20


def agree(label, row):
    """LABEL, as read from a disk, and ROW of array.show tell of the same array."""
    for name, read, told in (
            ("name", label.name, row["name"]), ("uuid", label.array, uuid.UUID(row["uuid"])),
            ("level", label.level, row["level"]),
            ("chunk", label.chunk or None, row["chunk_bytes"]),     # level 1 has none
            ("block", label.block, row["block_size_bytes"]),
            ("roles", label.roles, row["members_total"])):
        check(read == told, f"{name}: {read} on the disk, {told} in array.show")
    members = {f"d{index}": member for index, member in label.members.items()
               if member.state in ("in-sync", "rebuilding", "failed", "spare")}
    check(set(members) == {member["member"] for member in row["members"]}, f"{members} {row}")
    for told in row["members"]:
        member = members[told["member"]]
        check(member.uuid == uuid.UUID(told["uuid"]) and member.role == told["role"], f"{told}")
        state = "failed" if told["state"] == "missing" else told["state"]
        check(member.state == state, f"{told['member']}: {member.state}, told {told['state']}")


def paths(row):
    return [member["disk"] for member in row["members"] if os.path.exists(member["disk"])]


def whole(t, row):
    """(deciding label, who holds everything) of the disks that ROW has."""
    disks = [disk.Disk(path) for path in paths(row)]
    check(all(found.label for found in disks), f"{paths(row)}")
    return disk.deciding(disks)


def kill(t):
    t.process.kill()
    t.process.wait()


SHAPES = [(0, 1, {}), (0, 3, {"chunk_bytes": 4096}), (1, 2, {}), (1, 4, {}), (10, 4, {}),
          (10, 6, {"chunk_bytes": 1 << 20}), (5, 3, {}), (5, 5, {"chunk_bytes": 4096}),
          (5, 4, {"full_stripe_log": "intent"})]


@case(each=SHAPES)
def labels_say_what_yokectl_says(level, members, params):
    with Arrays(files=members) as t:
        made = t.make(level, *range(members), **params)
        label, holders = whole(t, made)
        agree(label, t.array("a"))
        check(sorted(holders) == list(range(members)), f"{holders}")
        check(not label.flags & 1, "stopped in order, while it runs")
        for found in holders.values():
            told = t.call("disk.label", disk=found.path)
            own = found.label
            check((f"d{own.own}", f"{own.id:016x}", own.sequence, own.generation,
                   [f"{a.id:016x}" for a in own.ancestors]) ==
                  (told["self"], told["id"], told["sequence"], told["generation"],
                   told["ancestors"]), f"{told}")
            check(not own.lost and not told["lost"], f"lost: {own.lost}, {told['lost']}")
            for name, areas in (("maps", own.maps), ("log", [own.log]), ("data", [own.data])):
                rows = told[name] if name == "maps" else [told[name]]
                check([(row["offset_bytes"], row["length_bytes"]) for row in rows] ==
                      [tuple(area) for area in areas], f"{name}: {areas}, {told[name]}")
        stop(t)
        label, _ = whole(t, made)
        check(label.flags & 1, "not stopped in order")


def stop(t):
    t.process.send_signal(15)
    t.ended()


@case(each=SHAPES)
def data_lies_where_the_page_says(level, members, params):
    with Arrays(files=members) as t:
        made = t.make(level, *range(members), **params)
        unit, written = 4096, {}
        with t.login(lun=1) as session:
            for offset in {k * MIB // 4 + k * unit for k in range(40)}:
                written[offset] = os.urandom(unit)
                scsi.write(session, offset // 512, written[offset], lun=1)
        stop(t)
        label, holders = whole(t, made)
        copies = {0: 1, 1: members, 5: 1, 10: 2}[level]
        for offset, data in written.items():
            check(disk.read(label, holders, offset, unit) == [data] * copies, f"at {offset}")
        if level:
            check(not disk.doubtful(list(holders.values())), "regions are set after a stop")
        if level == 5:
            five = disk.Five(label, holders)
            check(not five.torn(), f"parity of {five.torn()}")
            for offset, data in written.items():
                check(all(five.read(offset, unit, lost) == data for lost in range(members)),
                      f"at {offset}, of parity")


@case(each=[(1, 2), (10, 4)])
def what_was_being_written_is_in_the_map(level, members):
    with Arrays(files=members) as t:
        made = t.make(level, *range(members))
        t.healthy()
        wait_until(lambda: not t.array("a")["regions"]["dirty"], 30, "clean regions")
        row = t.array("a")["regions"]
        with t.login(lun=1) as session:
            places = [3 * MIB, 9 * MIB + 4096, 17 * MIB]
            for offset in places:
                scsi.write(session, offset // 512, os.urandom(4096), lun=1)
            kill(t)
        label, holders = whole(t, made)
        check(disk.region_bytes(label) == row["region_bytes"], f"{row}")
        bits = disk.map_of(next(iter(holders.values())))
        check(len(bits) == row["total"], f"{len(bits)} regions, told {row['total']}")
        wanted = {disk.place(label, offset)[1] // row["region_bytes"] for offset in places}
        check(set(disk.doubtful(list(holders.values()))) == wanted,
              f"{disk.doubtful(list(holders.values()))}, written {wanted}")
        check(t._launch(), "does not start again")


@case(each=[(3, {}), (4, {"chunk_bytes": 4096}), (5, {"full_stripe_log": "intent"})])
def whoever_is_lost_the_log_has_what_was_being_written(members, params):
    with Arrays(files=members) as t:
        made = t.make(5, *range(members), **params)
        t.healthy()
        with t.login(lun=1) as session:
            load = Load(session, lun=1, blocks=200)
            load.start()
            wait_until(lambda: load.rounds > 12, 60, "some load")
            kill(t)
            load.ending.set()
            load.join()
        label, holders = whole(t, made)
        records = sum(len(disk.log_of(found)) for found in holders.values())
        check(records > 0, "nothing was logged")
        for lost in [None, *range(members)]:
            left = {index: found for index, found in holders.items() if index != lost}
            five = disk.Five(label, left)
            if lost is None:
                check(not five.torn(), f"parity of {five.torn()} after {records} records")
            for block, number in load.written.items():
                data = five.read(block * 4096, 4096, lost)
                newer = load.sent.get(block, number)
                check(data in (load.stamp(block, number), load.stamp(block, newer)),
                      f"without {lost}: block {block} holds neither {number} nor {newer}")
        check(t._launch(), "does not start again")
        t.healthy()


@case
def what_an_intent_leaves_torn_is_lost_and_said():
    chunk, stripes = 4096, 64
    stripe = 2 * chunk
    with Arrays(files=3, faults=True, array_wait="300ms") as t:
        made = t.make(5, 0, 1, 2, chunk_bytes=chunk, full_stripe_log="intent")
        t.healthy()
        with t.login(lun=1) as session:
            for number in range(stripes):
                scsi.write(session, number * stripe // 512, b"\1" * stripe, lun=1)
            t.add_fault(t.path(1), "stuck", op="write")
            for number in range(stripes):
                scsi.start(session, scsi.write10(number * stripe // 512, stripe // 512), lun=1,
                           out=b"\2" * stripe)
            wait_until(lambda: any(record.intent for record in disk.log_of(disk.Disk(t.path(0)))),
                       30, "an intent")
            kill(t)
        os.rename(t.path(2), t.path(2) + ".away")
        check(t._launch(), "does not start")
        wait_until(lambda: t.array("a")["state"] == "degraded", 30, f"it: {t.array('a')}")
        row = t.array("a")
        check(row["lost"]["bytes"] > 0, f"{row}")
        problem = t.problems()["array-loss"]
        check(f"{row['lost']['bytes']} bytes" in problem["detail"], f"{problem}")
        label, _ = disk.deciding([disk.Disk(t.path(n)) for n in (0, 1)])
        check((len(label.lost), sum(length for _, _, length in label.lost)) ==
              (row["lost"]["ranges"], row["lost"]["bytes"]), f"{label.lost} {row['lost']}")
        told = t.call("disk.label", disk=t.path(0))["lost"]
        check([(r["role"], r["offset_bytes"], r["length_bytes"]) for r in told] == label.lost,
              f"{label.lost} {told}")
        lost = {(role, offset + at) for role, offset, length in label.lost
                for at in range(0, length, 512)}
        with t.login(lun=1) as session:
            for lba in range(stripes * stripe // 512):
                (role,), at = disk.place(label, lba * 512)
                task = scsi.run(session, scsi.read10(lba, 1), read=512, lun=1)
                if (role, at) in lost:
                    check(task.sense == "03/11/00", f"block {lba}: {task.outcome()}")
                else:
                    check(bytes(task.good().received) in (b"\1" * 512, b"\2" * 512), f"{lba}")
            scsi.write(session, 0, b"\3" * (stripes * stripe), lun=1)
            check(scsi.read(session, 0, stripes * stripe, lun=1) == b"\3" * (stripes * stripe), "r")
        check(t.array("a")["lost"] == {"ranges": 0, "bytes": 0}, f"{t.array('a')}")
        check("array-loss" not in t.problems(), f"{t.problems()}")
        check(made["uuid"] == t.array("a")["uuid"], "another array")


@case
def who_missed_something_does_not_count():
    with Arrays(files=3, faults=True) as t:
        made = t.make(1, 0, 1)
        t.healthy()
        stop(t)
        with open(t.path(0), "rb") as image:
            before = image.read()
        check(t._launch(), "does not start")
        t.healthy()
        t.call("array.remove", name="a", member="d0", force=True, confirm="a")
        t.call("array.add", name="a", disk=t.path(2))
        t.healthy()
        row = t.array("a")
        label, holders = whole(t, row)
        agree(label, row)
        check(sorted(holders) == [1, 2], f"{holders}")
        stop(t)
        with open(t.path(0), "wb") as image:
            image.write(before)
        # The one that was taken out is back as it was: its label decides nothing.
        old = disk.Disk(t.path(0))
        check(old.label.listed() == {0, 1}, f"{old.label.members}")
        label, holders = disk.deciding([disk.Disk(t.path(n)) for n in range(3)])
        check(sorted(holders) == [1, 2], f"{holders}")
        check(label.members[0].state == "removed", f"{label.members}")
        check(old.label.array == uuid.UUID(made["uuid"]), "another array")


@case
def a_torn_label_leaves_its_twin():
    with Arrays(files=2) as t:
        made = t.make(1, 0, 1)
        t.healthy()
        stop(t)
        newest = disk.Disk(t.path(0)).label
        for slot in (newest.sequence % 2, newest.sequence % 2 + 2):
            path = t.path(0) + ".torn"
            with open(t.path(0), "rb") as image, open(path, "wb") as torn:
                bytes_ = bytearray(image.read())
                at = slot * 4096 if slot < 2 else len(bytes_) - (4 - slot) * 4096
                bytes_[at + 512:at + 4096] = bytes(3584)
                torn.write(bytes_)
            check(disk.Disk(path).label.sequence == newest.sequence, f"slot {slot}")
        check(t._launch(), "does not start")
        check(t.array("a")["uuid"] == made["uuid"], "another array")


if __name__ == "__main__":
    main()
