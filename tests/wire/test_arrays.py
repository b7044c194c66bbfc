#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
# timeout: 300
"""Arrays as LUNs: made, served, failing under load, waiting, found again."""

import fcntl
import os
import shutil
import subprocess
import uuid

import scsi
from arrays import Arrays
from harness import case, main
from iscsi import check
from load import Load
from target import wait_until

MIB = 1 << 20
BLOCK = bytes(range(256)) * 16


def serves(session, lun, seed=0):
    """Blocks all over the LUN come back as they were written; returns how to look again."""
    data = {lba: os.urandom(4096) for lba in (seed * 8, 2048 + seed * 8, 20000 + seed * 8)}
    for lba, block in data.items():
        scsi.write(session, lba, block, lun=lun)

    def again(session=session):
        for lba, block in data.items():
            check(scsi.read(session, lba, 4096, lun=lun) == block, f"block {lba} differs")
    again()
    return again


@case(each=[(0, 2, 2), (0, 5, 5), (1, 2, 1), (1, 3, 1), (5, 3, 2), (5, 6, 5), (10, 4, 2), (10, 6, 3)])
def an_array_of_memory_serves(level, members, data_members):
    with Arrays(files=0, rams=members) as t:
        made = t.call("array.create", name="a", level=level,
                      disks=[f"backing:m{n}" for n in range(members)])
        check(made["state"] == "healthy" and made["roles"] == "[" + "U" * members + "]", f"{made}")
        with t.login(lun=1) as session:
            serves(session, 1)
            capacity = scsi.run(session, scsi.read_capacity16(), read=32, lun=1).good().received
            blocks = int.from_bytes(capacity[:8], "big") + 1
            check(blocks * 512 == made["size_bytes"], f"{blocks} blocks")
            check((t.size - 5) * data_members * MIB < made["size_bytes"] <
                  t.size * data_members * MIB, f"{made['size_bytes']} bytes")
            limits = scsi.run(session, scsi.inquiry(64, page=0xB0), read=64, lun=1).good().received
            optimal = int.from_bytes(limits[12:16], "big")
            if level != 1:
                check(optimal == 128 * data_members, f"optimal transfer length {optimal}")


@case
def identity_is_the_arrays_and_stays():
    with Arrays() as t:
        made = t.make(1, 0, 1)
        serial = uuid.UUID(made["uuid"]).hex
        with t.login(lun=1) as session:
            again = serves(session, 1)
            page = scsi.run(session, scsi.inquiry(255, page=0x80), read=255, lun=1).good().received
            shown = bytes(page[4:]).decode().strip("\0 ").replace("-", "")
            check(shown == serial, f"serial {shown}, array {serial}")
        t.restart()
        t.healthy()
        check(t.array("a")["uuid"] == made["uuid"], "another uuid")
        with t.login(lun=1) as session:
            again(session)


@case
def a_lun_whose_array_was_never_seen_comes_with_it():
    with Arrays() as t, t.login(lun=None) as session:
        task = scsi.run(session, scsi.read10(0, 8), read=4096, lun=1)
        check(task.sense in ("05/25/00", "06/29/00", "06/29/01"), f"{task.outcome()}")
        check("no disk here" in t.problems()["array-incomplete"]["detail"], f"{t.problems()}")
        t.make(0, 0, 1)
        wait_until(lambda: scsi.run(session, scsi.read10(0, 8), read=4096, lun=1).status ==
                   scsi.GOOD, 5, "the LUN")
        check(not t.problems(), f"{t.problems()}")


@case(each=[(1, 2), (10, 4), (5, 3)])
def a_member_fails_under_load_and_comes_back(level, members):
    with Arrays(files=0, rams=4) as t:
        disks = [f"backing:m{n}" for n in range(members)]
        t.call("array.create", name="a", level=level, disks=disks)
        t.healthy()
        with t.login(lun=1) as session:
            load = Load(session, lun=1)
            load.start()
            wait_until(lambda: load.rounds > 5, 20, "some load")
            t.add_fault("m1", "error", op="write")
            wait_until(lambda: "array-degraded" in t.problems(), 20, "a problem")
            problem = t.problems()["array-degraded"]
            check("d1 (backing:m1) failed" in problem["detail"], f"{problem}")
            check("[U_" in problem["detail"], f"{problem}")
            row = t.array("a")
            check(row["state"] == "degraded" and row["members"][1]["state"] == "failed", f"{row}")
            check(row["members"][1]["write_errors"] > 0, f"{row['members']}")
            seen = load.rounds
            wait_until(lambda: load.rounds > seen + 20 or load.error, 20, "load that goes on")
            t.clear_faults()
            t.call("array.add", name="a", disk="backing:m1")
            t.healthy()
            # What it missed is on it: it alone answers now.
            t.add_fault("m0", "error", op="write")
            wait_until(lambda: "array-degraded" in t.problems() or load.error, 20, "a problem")
            seen = load.rounds
            wait_until(lambda: load.rounds > seen + 20 or load.error, 20, "load that goes on")
            load.finish()
        events = [row["name"] for row in t.call("events.list")["events"]]
        for name in ("array-started", "member-failed", "resync-started", "member-added"):
            check(name in events, f"no event {name}: {events}")


@case
def a_member_cut_short_under_load_is_left_out():
    with Arrays() as t:
        t.make(1, 0, 1)
        t.healthy()
        with t.login(lun=1) as session:
            load = Load(session, lun=1, first=2048, blocks=512)
            load.start()
            wait_until(lambda: load.rounds > 5, 20, "some load")
            os.truncate(t.path(0), 2 * MIB)
            wait_until(lambda: "array-degraded" in t.problems(), 20, "a problem")
            seen = load.rounds
            wait_until(lambda: load.rounds > seen + 20 or load.error, 20, "load that goes on")
            load.finish()
        # Found bad, it is not listed any more: the other starts alone, by itself and at once.
        t.restart()
        wait_until(lambda: t.array("a")["state"] == "degraded", 10, "the array")


@case
def the_first_of_a_stripe_without_redundancy_fails():
    with Arrays(files=0, rams=2) as t:
        t.call("array.create", name="a", level=0, disks=["backing:m0", "backing:m1"])
        with t.login(lun=1) as session:
            serves(session, 1)
            t.add_fault("m1", "error", op="read")
            task = scsi.run(session, scsi.read10(128, 8), read=4096, lun=1)
            check(task.sense == "03/11/00", f"chunk of the failed one: {task.outcome()}")
            scsi.run(session, scsi.read10(0, 8), read=4096, lun=1).good()
            task = scsi.run(session, scsi.read10(0, 256), read=256 * 512, lun=1)
            check(task.sense == "03/11/00", f"both: {task.outcome()}")


@case
def absent_but_harmless_starts_after_the_delay():
    with Arrays(array_wait="1500ms") as t:
        t.make(10, 0, 1, 2, 3)
        t.healthy()
        with t.login(lun=1) as session:
            again = serves(session, 1)
        os.rename(t.path(1), t.path(1) + ".away")
        t.restart()
        with t.login(lun=None) as session:
            senses = set()

            def ready():
                task = scsi.run(session, bytes(6), lun=1)
                senses.add(task.sense or "good")
                return task.status == scsi.GOOD
            wait_until(ready, 10, "the array")
            check("02/04/01" in senses, f"while it waited: {senses}")
            check(senses <= {"02/04/01", "06/29/00", "06/29/01", "06/2A/09", "06/3F/0E", "good"},
                  f"{senses}")
            again(session)
        check("d1" in t.problems()["array-degraded"]["detail"], f"{t.problems()}")
        os.rename(t.path(1) + ".away", t.path(1))
        t.call("config.reload")
        t.healthy()
        check(not t.problems(), f"{t.problems()}")


@case
def what_may_hold_newer_data_is_waited_for_or_forced():
    with Arrays() as t:
        t.make(1, 0, 1)
        t.healthy()
        with t.login(lun=1) as session:
            again = serves(session, 1)
        os.rename(t.path(1), t.path(1) + ".away")
        t.restart()
        problem = t.problems()["array-incomplete"]
        check("d1 is not there and may hold newer writes" in problem["detail"], f"{problem}")
        check("yokectl array start a --force" in problem["do"], f"{problem}")
        with t.login(lun=None) as session:
            scsi.run(session, bytes(6), lun=1)
            check(scsi.run(session, bytes(6), lun=1).sense == "02/04/01", "not becoming ready")
            check(scsi.run(session, scsi.read10(0, 8), read=4096, lun=1).sense == "02/04/01", "r")
            scsi.run(session, scsi.inquiry(), read=96, lun=1).good()
            check("newer writes" in t.refused("array.start", name="a"), "started")
            check("--force" in t.refused("array.start", name="a", disks=[t.path(0)]), "started")
            check("--confirm a" in t.refused("array.start", name="a", force=True), "started")
            check("--confirm a" in t.refused("array.start", name="a", force=True, confirm="b"),
                  "started")
            plan = t.call("array.start", name="a", force=True, dry_run=True)
            check(len(plan["losses"]) == 1 and "d1" in plan["losses"][0], f"{plan}")
            check(t.array("a")["state"] == "incomplete", "a dry run started it")
            row = t.call("array.start", name="a", force=True, confirm="a")
            check(row["state"] == "degraded", f"{row}")
            wait_until(lambda: scsi.run(session, bytes(6), lun=1).status == scsi.GOOD, 5, "ready")
            again(session)
            more = serves(session, 1, seed=1)
            # Who was left behind comes back as a stranger: everything is copied.
            os.rename(t.path(1) + ".away", t.path(1))
            t.call("config.reload")
            t.healthy()
            again(session)
            more(session)


@case
def nothing_but_what_was_said_is_touched():
    with Arrays(files=6) as t:
        t.make(1, 0, 1)
        for number, what in ((2, ["mkfs.ext4", "-q", "-F", "-L", "mine"]), (3, ["mkswap"])):
            subprocess.run([*what, t.path(number)], check=True, capture_output=True)
        with open(t.path(2), "rb") as image:
            before = image.read()
        outside = os.path.join(t.dir, "outside.raw")
        shutil.copy(t.path(4), outside)
        rows = [
            ([4], "level 1 takes 2 to 4 disks, not 1"),
            ([4, 4], "named twice"),
            ([4, 0], "a member of array a"),
            ([4, 2], 'carries ext4 "mine". Nothing was touched'),
            ([4, 3], "carries swap. Nothing was touched"),
            ([4, 9], "not among `disks`"),
        ]
        for numbers, wanted in rows:
            said = t.refused("array.create", name="b", level=1,
                             disks=[t.path(n) for n in numbers])
            check(said and wanted in said, f"{numbers}: {said}")
        for disks, wanted in (([t.path(4), outside], "not among `disks`"),
                              ([t.path(4), "backing:nobody"], "no such backing"),
                              ([t.path(4), "backing:plain"], "smaller than 4 MiB")):
            said = t.refused("array.create", name="b", level=1, disks=disks)
            check(said and wanted in said, f"{disks}: {said}")
        check("one of this name" in t.refused("array.create", name="a", level=1, disks=[]), "a")
        check("not a name" in t.refused("array.create", name="../x", level=1, disks=[]), "name")
        check("no level 7" in t.refused("array.create", name="b", level=7,
                                        disks=[t.path(4), t.path(5)]), "level")
        with open(t.path(2), "rb") as image:
            check(image.read() == before, "a refused disk was touched")
        check(t.disks()["disk4.img"]["state"] == "blank", f"{t.disks()}")
        params = {"name": "b", "level": 1, "disks": [t.path(2), t.path(4)], "force": True}
        check("--confirm b" in t.refused("array.create", **params), "not confirmed")
        t.call("array.create", **params, confirm="b")
        left = subprocess.run(["blkid", "-p", t.path(2)], capture_output=True, text=True,
                              check=False).stdout
        check("ext4" not in left, f"blkid still finds {left}")
        check(t.disks()["disk2.img"]["carries"] == "array b", f"{t.disks()}")


@case
def a_disk_in_use_is_said_and_taken_when_it_is_free():
    with Arrays() as t:
        t.make(1, 0, 1)
        t.process.send_signal(15)
        t.ended()
        with open(t.path(1), "r+b") as image:
            fcntl.flock(image, fcntl.LOCK_EX)
            check(t._launch(), "a disk in use kept yoked from starting")
            check(t.disks()["disk1.img"]["state"] == "in-use", f"{t.disks()}")
            check(f"pid {os.getpid()}" in t.disks()["disk1.img"]["cause"], f"{t.disks()}")
            said = t.refused("array.create", name="b", level=1, disks=[t.path(1), t.path(2)])
            check("in use by" in said, said)
        # Who has it may be on the way out: it is looked at again for a while.
        wait_until(lambda: t.array("a")["state"] == "healthy", 10, "the array")


@case
def of_two_arrays_with_a_name_one_has_it():
    with Arrays(files=2) as first, Arrays(files=2) as second:
        one, two = first.make(1, 0, 1), second.make(1, 0, 1)
        second.process.send_signal(15)
        second.ended()
        for number in (0, 1):
            shutil.copy(second.path(number), first.path(number + 2))
        first.call("config.reload")
        rows = {row["uuid"]: row for row in first.call("array.list")["arrays"]}
        check(rows[one["uuid"]]["state"] == "healthy", f"{rows}")
        check(rows[two["uuid"]]["state"] == "incomplete", f"{rows}")
        check("has this name. Disconnect" in rows[two["uuid"]]["cause"], f"{rows}")
        check("array-incomplete" in first.problems(), f"{first.problems()}")
        check(second._launch(), "does not start again")


@case
def a_copy_of_a_member_is_not_guessed_about():
    with Arrays(files=2) as t:
        t.make(1, 0, 1)
        t.process.send_signal(15)
        t.ended()
        shutil.copy(t.path(1), t.path(2))
        check(t._launch(), "does not start")
        problem = t.problems()["array-incomplete"]
        check("carry the same label. Disconnect the copy" in problem["detail"], f"{problem}")
        with t.login(lun=None) as session:
            scsi.run(session, bytes(6), lun=1)
            check(scsi.run(session, bytes(6), lun=1).sense == "02/04/03", "not a person's matter")
        os.remove(t.path(2))
        row = t.call("array.start", name="a", disks=[t.path(0), t.path(1)], force=True,
                     confirm="a")
        check(row["state"] == "healthy", f"{row}")


@case
def a_member_is_taken_out_and_its_disk_is_free():
    with Arrays() as t:
        t.make(1, 0, 1)
        t.healthy()
        check("without a copy" in t.refused("array.remove", name="a", member="d1"), "not asked")
        row = t.call("array.remove", name="a", member="d1", force=True, confirm="a")
        check(row["state"] == "degraded", f"{row}")
        check("cannot do without" in t.refused("array.remove", name="a", member="d0", force=True,
                                               confirm="a"), "the last one was taken")
        check("no member d9" in t.refused("array.remove", name="a", member="d9"), "d9")
        row = t.call("array.add", name="a", disk=t.path(2))
        t.healthy()
        check(t.array("a")["roles"] == "[UU]", f"{t.array('a')}")
        made = t.call("array.create", name="b", level=1, disks=[t.path(1), t.path(3)], force=True,
                      confirm="b")
        check(made["state"] == "healthy", f"{made}")


@case
def a_backing_is_a_member_or_a_lun():
    with Arrays(files=0, rams=2) as t:
        t.call("array.create", name="a", level=1, disks=["backing:m0", "backing:m1"])
        with open(t.config_path, encoding="utf-8") as config:
            before = config.read()
        for change, wanted in (
                (("array = \"a\"", "backing = \"m0\""), "is a member of array a"),
                (("backing \"m1\"", "backing \"m9\""), "a member of array a")):
            with open(t.config_path, "w", encoding="utf-8") as config:
                config.write(before.replace(*change))
            said = t.refused("config.reload")
            check(said and wanted in said, f"{change}: {said}")
        with open(t.config_path, "w", encoding="utf-8") as config:
            config.write(before)
        t.call("config.reload")


@case
def ended_in_order_or_not_nothing_stays_open():
    with Arrays() as t:
        t.make(10, 0, 1, 2, 3)
        t.healthy()
        fds = t.fds()
        with t.login(lun=1) as session:
            again = serves(session, 1)
        t.closed_to(fds)
        t.restart()
        t.healthy()
        t.process.kill()
        t.process.wait()
        check(t._launch(), "does not start after a kill")
        wait_until(lambda: t.array("a")["state"] == "healthy", 10, "the array")
        with t.login(lun=1) as session:
            again(session)


@case
def disks_tell_what_they_carry_and_how_fast_they_are():
    with Arrays(files=2, rams=1) as t:
        made = t.make(1, 0, 1)
        label = t.call("disk.label", disk=t.path(1))
        check(label["array_uuid"] == made["uuid"] and label["self"] == "d1", f"{label}")
        check([m["state"] for m in label["members"]] == ["in-sync", "in-sync"], f"{label}")
        check("carries no label" in t.refused("disk.label", disk="backing:m0"), "m0")
        before = [t.call("disk.label", disk=t.path(n)) for n in (0, 1)]
        for disk in (t.path(0), "backing:m0"):
            result = t.call("disk.test", disk=disk)
            check(result["reads"] > 0 and result["read_bytes_per_s"] > MIB, f"{result}")
        check(before == [t.call("disk.label", disk=t.path(n)) for n in (0, 1)], "written to")


if __name__ == "__main__":
    main()
