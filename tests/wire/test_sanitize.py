#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# timeout: 240
# subtests: yes
"""What is deallocated, and SANITIZE: while others do I/O, through resets, faults and restarts."""

import os
import struct

import scsi
from harness import case, main
from iscsi import check
from scsi import run, unmap
from target import wait_until

LUN_RESET = 5
IN_PROGRESS, FAILED = "02/04/1B", "03/31/03"
MIB = 1 << 20
FILE = {"backings": {"disk": {"driver": "file", "path": "{dir}/disk.img", "size": "32M"}}}
TWO = {"backings": {"disk": {}, "other": {}}, "luns": {0: "disk", 1: "other"}}
BLOCK_ERASE, EXIT_FAILURE_MODE = 2, 0x1F
IMMED, AUSE = 0x80, 0x20


def sanitize(byte1):
    return bytes([0x48, byte1, 0, 0, 0, 0, 0, 0, 0, 0])


def lba_status(session, lba=0):
    """Runs from LBA on: (first LBA, blocks, deallocated)."""
    cdb = struct.pack(">BBQIBB", 0x9E, 0x12, lba, 4096, 0, 0)
    data = bytes(run(session, cdb, read=4096).good().received)
    length = int.from_bytes(data[:4], "big") + 4
    check(length == len(data), f"{len(data)} bytes that call themselves {length}")
    return [(*struct.unpack_from(">QI", data, at), data[at + 12] == 1)
            for at in range(8, length, 16)]


def request_sense(session):
    """Key, ASC and ASCQ, and the progress or None."""
    data = run(session, bytes([3, 0, 0, 0, 18, 0]), read=18).good().received
    progress = int.from_bytes(data[16:18], "big") if data[15] & 0x80 else None
    return "%02X/%02X/%02X" % (data[2] & 15, data[12], data[13]), progress


def tur(session):
    """The sense of TEST UNIT READY past unit attentions; "" is ready."""
    while True:
        task = run(session, scsi.TEST_UNIT_READY)
        if task.sense[:2] != "06":
            return task.sense


def told(t, state, problem, backing="disk"):
    """What the administrator hears of it: the state of the LUN, and whether it is a problem."""
    [row] = [r for r in t.call("lun.list")["luns"] if r["backing"] == backing]
    check(row["state"] == state, f"lun list says {row['state']}")
    status = t.call("status.show")
    found = [p["object"] for p in status["problems"] if p["code"] == "sanitize-failed"]
    check(found == ([backing] if problem else []), f"problems: {status['problems']}")
    closed = status["luns"]["total"] - status["luns"]["online"]
    check(closed == (state != "online"), f"{closed} LUNs closed, state {state}")
    check(not problem or status["health"] == "CRIT", f"health {status['health']}")


def over(session):
    wait_until(lambda: tur(session) != IN_PROGRESS, 30, "the end of the sanitize operation")
    return tur(session)


def pattern_unmapped(t):
    with t.login() as session:
        lbprz = run(session, scsi.read_capacity16(), read=32).good().received[14]
        check(lbprz & 0xC0 == 0xC0, "not thin, or no LBPRZ")
        scsi.write(session, 2048, b"\xa5" * MIB)
        mapped = [r for r in lba_status(session) if not r[2]]
        check(any(a <= 2048 and a + n >= 4096 for a, n, _ in mapped), f"not mapped: {mapped}")
        cdb, listed = unmap([(2048, 2048)])
        run(session, cdb, out=listed).good()
        check(scsi.read(session, 2048, MIB) == bytes(MIB), "not zeroes")
        first = lba_status(session, 2048)[0]
        check(first[0] == 2048 and first[1] >= 2048 and first[2], f"still mapped: {first}")


def erased(t):
    with t.login() as session:
        for lba in (0, 4096, 65535):
            scsi.write(session, lba, os.urandom(512))
        run(session, sanitize(BLOCK_ERASE), timeout=60).good()
        for lba in (0, 4096, 65535):
            check(scsi.read(session, lba, 512) == bytes(512), f"LBA {lba} is not zeroes")
        runs = lba_status(session)
        check(all(r[2] for r in runs) and sum(r[1] for r in runs) == 65536, f"left: {runs}")


@case(own={})
def a_pattern_that_was_unmapped_reads_as_zeroes_and_is_deallocated(t):
    pattern_unmapped(t)


@case(own=FILE)
def a_pattern_that_was_unmapped_from_a_file_is_a_hole(t):
    pattern_unmapped(t)


@case(own={})
def block_erase_leaves_nothing(t):
    erased(t)


@case(own=FILE)
def block_erase_leaves_nothing_in_a_file(t):
    erased(t)


@case(own=TWO)
def it_holds_up_neither_other_luns_nor_the_loop(t):
    with t.login() as session, t.login(lun=1) as beside:
        scsi.write(session, 0, os.urandom(MIB))
        t.add_fault("disk", "delay", delay_ms=500, op="write")
        run(session, sanitize(BLOCK_ERASE | IMMED)).good()
        last, rounds = 0, 0
        while tur(session) == IN_PROGRESS:
            data = os.urandom(4096)
            scsi.write(beside, rounds * 8, data, lun=1)
            check(scsi.read(beside, rounds * 8, 4096, lun=1) == data, "the other LUN suffers")
            sense, progress = request_sense(session)
            if sense == IN_PROGRESS:
                check(progress >= last, f"progress {progress} after {last}")
                last = progress
            rounds += 1
        check(rounds >= 2, "it was over before anybody could look")
        task = run(session, scsi.read10(0, 1), read=512).good()
        check(bytes(task.received) == bytes(512), "not erased")


@case(own=TWO)
def while_it_runs_the_medium_is_closed_and_a_reset_does_not_end_it(t):
    with t.login() as session, t.login() as other:
        scsi.write(session, 0, os.urandom(MIB))
        with t.fault("disk", "stuck", op="write"):
            asked = scsi.start(session, sanitize(BLOCK_ERASE))
            t.held()
            told(t, "sanitizing", problem=False)
            check(run(other, scsi.read10(0, 1), read=512).sense == IN_PROGRESS, "read all the same")
            check(run(other, scsi.write10(0, 1), out=bytes(512)).sense == IN_PROGRESS, "written")
            run(other, scsi.inquiry(), read=96).good()
            run(other, scsi.report_luns(), read=256).good()
            check(other.tmf(LUN_RESET) == 0, "LUN RESET refused")
            check(tur(other) == IN_PROGRESS, "the reset ended it")
            check(not asked.done or asked.status == scsi.TASK_ABORTED, "an answer that is none")
        check(over(other) == "", "not ready afterwards")
        check(scsi.read(other, 0, MIB) == bytes(MIB), "not erased")


@case(each=[0, AUSE], own=TWO)
def a_device_that_fails_leaves_it_failed_until_the_way_out(t, ause):
    with t.login() as session:
        scsi.write(session, 0, os.urandom(MIB))
        with t.fault("disk", "error", op="write"):
            task = run(session, sanitize(BLOCK_ERASE | ause))
            check(task.sense == FAILED, f"not failed: {task.outcome()}")
        check(run(session, scsi.read10(0, 1), read=512).sense == FAILED, "read all the same")
        check(request_sense(session)[0] == FAILED, "REQUEST SENSE says nothing")
        told(t, "sanitize-failed", problem=True)
        out = run(session, sanitize(EXIT_FAILURE_MODE))
        if ause:
            out.good()
        else:
            check(out.sense == "05/24/00", f"let out: {out.outcome()}")
            run(session, sanitize(BLOCK_ERASE), timeout=60).good()
            check(scsi.read(session, 0, MIB) == bytes(MIB), "not erased")
        check(tur(session) == "", "not ready")
        told(t, "online", problem=False)


@case(each=["crash", "stop"], own={**FILE})
def a_restart_in_the_middle_leaves_it_failed(t, how):
    with t.login() as session:
        scsi.write(session, 0, os.urandom(MIB))
        t.add_fault("disk", "delay", delay_ms=3000, op="write")
        run(session, sanitize(BLOCK_ERASE | IMMED)).good()
    if how == "crash":
        t.process.kill()
        t.process.wait()
        check(t._launch(), f"yoked does not start again: {t.log()[-500:]}")
    else:
        t.restart()
    with t.login(lun=None) as session:
        check(tur(session) == FAILED, f"after a {how}: {tur(session)}")
        told(t, "sanitize-failed", problem=True)
        run(session, sanitize(BLOCK_ERASE), timeout=60).good()
        check(tur(session) == "", "not ready")
    t.restart()
    with t.login() as session:
        check(tur(session) == "" and scsi.read(session, 0, MIB) == bytes(MIB), "not erased")


if __name__ == "__main__":
    main()
