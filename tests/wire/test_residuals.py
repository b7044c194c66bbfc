#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
"""Residual counts are exact: expected length against what the command moves, both ways."""

import os
import struct

import scsi
from harness import case, main
from iscsi import check

# expected length as a multiple of the command's, over or under
SIZES = [(1, 1), (1, 2), (2, 1), (2, 3), (8, 1), (1, 8), (8, 16), (64, 128), (128, 64), (3, 0)]


def block_of(t):
    return t.backings["disk"].get("block_size", 512)


def reads(t, blocks, expected):
    size = block_of(t)
    with t.login() as session:
        data = os.urandom(size * max(blocks, expected))
        scsi.write(session, 0, data, block=size)
        task = scsi.run(session, scsi.read10(0, blocks), read=1, edtl=expected * size).good()
        moved = min(blocks, expected) * size
        check(bytes(task.received) == data[:moved], f"{len(task.received)} bytes came, or others")
        check(task.residual == (blocks - expected) * size,
              f"residual {task.residual}, not {(blocks - expected) * size}")


def writes(t, blocks, expected, keys):
    size = block_of(t)
    with t.login(**keys) as session:
        old = os.urandom(size * max(blocks, expected))
        scsi.write(session, 0, old, block=size)
        new = os.urandom(expected * size)
        task = scsi.run(session, scsi.write10(0, blocks), out=new, edtl=expected * size)
        check(task.residual == (blocks - expected) * size or task.status,
              f"residual {task.residual}, not {(blocks - expected) * size}")
        now = scsi.read(session, 0, len(old), block=size)
        moved = min(blocks, expected) * size
        if task.status == scsi.GOOD:
            check(now[:moved] == new[:moved], "not written")
        else:
            check(task.sense[:2] in ("05", "0B") and blocks > expected, task.outcome())
        check(now[moved:] == old[moved:], "more was written than there were data")


KEYS = {"solicited": {"InitialR2T": "Yes", "ImmediateData": "No"},
        "immediate": {"InitialR2T": "Yes", "ImmediateData": "Yes"},
        "unsolicited": {"InitialR2T": "No", "ImmediateData": "No"}}
ROWS = [(blocks, expected, how) for blocks, expected in SIZES for how in KEYS]
LARGE = {"backings": {"disk": {"block_size": 4096}}}


@case(each=SIZES)
def read_512(t, blocks, expected):
    reads(t, blocks, expected)


@case(each=SIZES, own=LARGE)
def read_4096(t, blocks, expected):
    reads(t, blocks, expected)


@case(each=ROWS)
def write_512(t, blocks, expected, how):
    writes(t, blocks, expected, KEYS[how])


@case(each=ROWS[:12], own=LARGE)
def write_4096(t, blocks, expected, how):
    writes(t, blocks, expected, KEYS[how])


@case(each=[(allocation, expected) for allocation in (0, 1, 5, 36, 255)
            for expected in (0, 4, 36, 255)])
def inquiry(t, allocation, expected):
    with t.login() as session:
        full = len(scsi.run(session, scsi.inquiry(255), read=255).good().received)
        length = min(allocation, full)
        task = scsi.run(session, scsi.inquiry(allocation), read=1, edtl=expected).good()
        check(len(task.received) == min(length, expected), f"{len(task.received)} bytes came")
        check(task.residual == length - expected,
              f"residual {task.residual}, not {length - expected}")


def mode_page(t):
    """A parameter list of MODE SELECT(10) that changes nothing."""
    with t.login() as session:
        task = scsi.run(session, bytes([0x1A, 8, 0x0A, 0, 255, 0]), read=255).good()
        return bytes(8) + bytes([task.received[4] & 0x3F]) + bytes(task.received[5:])


# Commands beside WRITE that take data: (CDB, its data, sense when there are too few, too many).
# Too few blocks write what came; where the data are one thing, all of it has to be there.
TAKERS = {
    "mode-select-10": (lambda t, size: (struct.pack(">BB5xHB", 0x55, 0x10, 20, 0), mode_page(t)),
                       "05/1A/00", ""),
    "unmap": (lambda t, size: scsi.unmap([(0, 1), (9, 1)]), "05/1A/00", ""),
    "write-same-16": (lambda t, size: (scsi.write_same16(0, 7), bytes(size)),
                      "05/24/00", "05/24/00"),
    "compare-and-write": (lambda t, size: (scsi.compare_and_write(0, 2), bytes(4 * size)),
                          "05/24/00", "05/24/00"),
    "verify-10": (lambda t, size: (scsi.verify10(0, 4), bytes(4 * size)), "", ""),
    "verify-10-one-block": (lambda t, size: (scsi.verify10(0, 4, bytchk=3), bytes(size)),
                            "05/24/00", ""),
    "write-and-verify-10": (lambda t, size: (scsi.write_verify10(0, 4, bytchk=1), bytes(4 * size)),
                            "", ""),
    "write-16": (lambda t, size: (struct.pack(">BBQIBB", 0x8A, 0, 0, 4, 0, 0), bytes(4 * size)),
                 "", ""),
    "orwrite-16": (lambda t, size: (struct.pack(">BBQIBB", 0x8B, 0, 0, 4, 0, 0), bytes(4 * size)),
                   "", ""),
    "write-atomic-16": (lambda t, size: (struct.pack(">BBQHHBB", 0x9C, 0, 0, 0, 4, 0, 0),
                                         bytes(4 * size)), "05/24/00", ""),
}


def takes(t, command):
    build, few, many = TAKERS[command]
    size = block_of(t)
    with t.login() as session:
        scsi.write(session, 0, bytes(16 * size), block=size)
    cdb, data = build(t, size)
    for keys in KEYS.values():
        with t.login(**keys) as session:
            for length in sorted({0, 1, len(data) // 2, len(data) - 1, len(data),
                                  len(data) + 1, 2 * len(data), len(data) + 65536}):
                task = scsi.run(session, cdb, out=(data + bytes(length))[:length])
                sense = few if length < len(data) else many if length > len(data) else ""
                check(task.sense == sense and bool(task.status) == bool(sense),
                      f"{length} of {len(data)} bytes: not {sense or 'GOOD'} but {task.outcome()}")
                check(task.residual == len(data) - length,
                      f"{length} of {len(data)} bytes: residual {task.residual}")


@case(each=list(TAKERS))
def takers_512(t, command):
    takes(t, command)


@case(each=list(TAKERS), own=LARGE)
def takers_4096(t, command):
    takes(t, command)


# Commands beside READ that yield data: (CDB for a length, the length field's bytes)
YIELDERS = {
    "inquiry-page-83": lambda n: scsi.inquiry(n, page=0x83),
    "mode-sense-6": lambda n: bytes([0x1A, 0, 0x3F, 0xFF, n, 0]),
    "mode-sense-10": lambda n: struct.pack(">BBBB3xHB", 0x5A, 0x10, 0x3F, 0xFF, n, 0),
    "report-luns": scsi.report_luns,
    "read-capacity-16": scsi.read_capacity16,
    "report-opcodes": lambda n: struct.pack(">BBB3xIxx", 0xA3, 0x0C, 0x80, n),
    "log-sense": lambda n: struct.pack(">BBB4xHB", 0x4D, 0, 0x40, n, 0),
    "request-sense": lambda n: bytes([0x03, 0, 0, 0, n, 0]),
}


@case(each=list(YIELDERS))
def yielders(t, command):
    cdb_of = YIELDERS[command]
    with t.login() as session:
        full = bytes(scsi.run(session, cdb_of(255), read=4096).good().received)
        for allocation in sorted({0, 1, len(full) - 1, len(full), 255}):
            length = min(allocation, len(full))
            for expected in sorted({0, 1, length - 1, length, length + 1, 4096} - {-1}):
                task = scsi.run(session, cdb_of(allocation), read=1, edtl=expected).good()
                check(bytes(task.received) == full[:min(length, expected)],
                      f"{allocation}, {expected}: {len(task.received)} bytes came, or others")
                check(task.residual == length - expected,
                      f"{allocation}, {expected}: residual {task.residual}")


@case
def a_command_without_data_that_expects_some(t):
    with t.login() as session:
        task = scsi.run(session, scsi.TEST_UNIT_READY, read=512).good()
        check(task.residual == -512 and not task.received, f"residual {task.residual}")
        task = scsi.run(session, scsi.TEST_UNIT_READY, out=bytes(512)).good()
        check(task.residual == -512, f"residual {task.residual}")


@case
def a_failed_command_moves_nothing(t):
    with t.login() as session:
        task = scsi.run(session, scsi.read10(0x7FFFFFFF, 8), read=4096)
        check(task.sense == "05/21/00" and task.residual == -4096,
              f"{task.outcome()} {task.residual}")
        check(not task.received, "data of an LBA that is not there")


@case(each=["InitialR2T", "unsolicited"])
def a_failed_write_takes_or_drops_its_data(t, how):
    with t.login(**KEYS["solicited" if how == "InitialR2T" else "unsolicited"]) as session:
        for _ in range(5):
            task = scsi.run(session, scsi.write10(0x7FFFFFFF, 64), out=bytes(32768))
            check(task.sense == "05/21/00", task.outcome())
        session.ping()


if __name__ == "__main__":
    main(backings={"disk": {}})
