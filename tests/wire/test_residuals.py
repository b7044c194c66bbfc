#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
"""Residual counts are exact: expected length against what the command moves, both ways."""

import os

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
