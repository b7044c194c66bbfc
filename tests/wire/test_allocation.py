#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# timeout: 240
# subtests: yes
"""Every command that is reported as supported, with every small length: it answers, yields no more
than was asked for, and its residual and sense are exact. Also where no LUN is."""

import struct

import scsi
from harness import case, main
from iscsi import check
from scsi import run

LENGTHS = [0, 1, 2, 3, 4, 5, 6, 7, 8, 252, 255]
NOBODY = {"5": 5, "16383": 16383}
BLOCK = 512
NO_LUN = "05/25/00"

READS = (0x08, 0x28, 0x88, 0xA8)
WRITES = (0x0A, 0x2A, 0x2E, 0x8A, 0x8B, 0x8E, 0x9C, 0xAA, 0xAE)
WRITE_SAME = (0x41, 0x93)
COMPARE_AND_WRITE = 0x89
COMPARED_MAX = 128      # blocks
RANGES = (0x2F, 0x34, 0x35, 0x8F, 0x90, 0x91, 0xAF)    # blocks, but no data
START_STOP = 0x1B
NO_LENGTH = (0x00, 0x16, 0x17, START_STOP, 0x1E, 0x56, 0x57)
MODE_SELECT, UNMAP, SANITIZE = (0x15, 0x55), 0x42, 0x48
READ_CAPACITY_10, REQUEST_SENSE, INQUIRY = 0x25, 0x03, 0x12
# Parameters that come with the command, by opcode; other commands yield parameters.
LISTS = (0x1D, 0x55, 0x15, UNMAP, SANITIZE, 0x5F, 0x83, 0xA4)
# Where the length is, if not where most commands of that size have it.
LENGTH_AT = {INQUIRY: (3, 2), COMPARE_AND_WRITE: (13, 1), REQUEST_SENSE: (4, 1)}
BY_SIZE = {6: (4, 1), 10: (7, 2), 12: (6, 4), 16: (10, 4)}


def commands(session):
    """(opcode, service action or None, length of the CDB) of all that the target says it has."""
    cdb = struct.pack(">BBB3xIxx", 0xA3, 0x0C, 0, 4096)
    data = bytes(run(session, cdb, read=4096).good().received)
    check(len(data) == 4 + int.from_bytes(data[:4], "big"), "the list was cut")
    rows = [(data[at], int.from_bytes(data[at + 2:at + 4], "big") if data[at + 5] & 1 else None,
             int.from_bytes(data[at + 6:at + 8], "big")) for at in range(4, len(data), 8)]
    check(len(rows) > 40, f"only {len(rows)} commands")
    return rows


def with_length(row, length):
    """The CDB of a command that does no harm, with LENGTH where it has a length."""
    opcode, action, size = row
    cdb = bytearray(size)
    cdb[0], cdb[1] = opcode, action or 0
    if opcode in (0x1A, 0x5A):
        cdb[2] = 0x3F
    if opcode in MODE_SELECT:
        cdb[1] = 0x10   # PF
    if opcode == START_STOP:
        cdb[4] = 1      # START
    at, width = LENGTH_AT.get(opcode, BY_SIZE[size])
    if opcode not in NO_LENGTH and opcode != READ_CAPACITY_10:
        cdb[at:at + width] = length.to_bytes(width, "big")
    return bytes(cdb)


def unmap_list(length):
    """As much of a list of nothing to unmap as LENGTH has room for."""
    ranges = max(length - 8, 0) // 16 * 16
    return (struct.pack(">HH4x", max(length - 2, 0), ranges) + bytes(length))[:length]


def mode_list(cdb, length, page):
    """A header and whole pages, until LENGTH cuts them off."""
    header = 8 if cdb[0] == 0x55 else 4
    return (bytes(header) + page * 30)[:length]


def out_of(row, cdb, length, page):
    """The data that go with the command, what it takes of them, and the sense it ends with."""
    opcode = row[0]
    if opcode in MODE_SELECT:
        header = 8 if opcode == 0x55 else 4
        return mode_list(cdb, length, page), length, "" if length in (0, header) else "05/1A/00"
    if opcode == UNMAP:
        return unmap_list(length), length, "05/1A/00" if 0 < length < 8 else ""
    if opcode in WRITE_SAME:
        return bytes(BLOCK), BLOCK, ""
    if opcode == COMPARE_AND_WRITE:
        fits = length <= COMPARED_MAX
        return bytes(2 * length * BLOCK), 2 * length * BLOCK if fits else 0, \
            "" if fits else "05/24/00"
    blocks = 256 if opcode == 0x0A and length == 0 else length
    return bytes(blocks * BLOCK), blocks * BLOCK, ""


def told(row, task, moves, expected, sense):
    """What a command that moves MOVES ended with, the initiator having expected EXPECTED."""
    name = f"{row[0]:#04x}/{row[1]}: "
    if sense:
        check((task.response, task.status, task.sense) == (0, scsi.CHECK_CONDITION, sense),
              f"{name}not {sense} but {task.outcome()}")
        check(len(task.sense_data) >= 18, f"{name}sense of {len(task.sense_data)} bytes")
    else:
        check((task.response, task.status) == (0, scsi.GOOD), name + task.outcome())
    check(task.residual == moves - expected,
          f"{name}residual {task.residual}, not {moves - expected}")


def data_in(session, row, length, lun, full, sense):
    """A command that yields FULL bytes if it may; the initiator expects less, the same and more."""
    for expected in sorted({0, length, length + 4, 600}):
        task = run(session, with_length(row, length), read=1, edtl=expected, lun=lun)
        limit = full if row[0] in READS or row[0] == READ_CAPACITY_10 else min(length, full)
        moves = 0 if sense else limit
        told(row, task, moves, expected, sense)
        check(len(task.received) == min(moves, expected),
              f"{row[0]:#04x}/{row[1]}: {len(task.received)} of {moves} bytes, {expected} expected")
        yield task


def whole(session, row, lun):
    """How much a command yields to who asks for everything."""
    most = 255 if row[2] == 6 and row[0] != INQUIRY else 4096
    task = run(session, with_length(row, most), read=4096, lun=lun)
    check(task.status == scsi.GOOD, f"{row[0]:#04x}/{row[1]}: {task.outcome()}")
    return len(task.received)


def is_out(opcode):
    return opcode in WRITES + WRITE_SAME + LISTS or opcode == COMPARE_AND_WRITE


@case(each=LENGTHS)
def each_command_at_a_lun(t, length):
    with t.login() as session:
        rows = commands(session)
        task = run(session, bytes([0x1A, 8, 0x0A, 0, 255, 0]), read=255).good()
        page = bytes([task.received[4] & 0x3F]) + bytes(task.received[5:])
        for row in rows:
            opcode, cdb = row[0], with_length(row, length)
            if opcode == SANITIZE:
                continue    # it would
            if opcode in NO_LENGTH + RANGES:
                task = run(session, cdb, read=1, edtl=length)
                told(row, task, 0, length, "")
                check(not task.received, f"{opcode:#04x}: data of a command that has none")
            elif is_out(opcode):
                data, moves, sense = out_of(row, cdb, length, page)
                for out in (data, data + bytes(BLOCK)) if opcode in WRITES else (data,):
                    told(row, run(session, cdb, out=out), moves, len(out), sense)
            else:
                full = 8 if opcode == READ_CAPACITY_10 else whole(session, row, 0) \
                    if opcode not in READS else BLOCK * (length or (256 if opcode == 0x08 else 0))
                for _ in data_in(session, row, length, 0, full, ""):
                    pass
        session.ping()


@case(each=[(where, length) for where in NOBODY for length in LENGTHS])
def each_command_where_no_lun_is(t, where, length):
    lun = NOBODY[where]
    with t.login() as session:
        for row in commands(session):
            opcode, cdb = row[0], with_length(row, length)
            if is_out(opcode):
                out = bytes(length * 7)
                told(row, run(session, cdb, out=out, lun=lun), 0, len(out), NO_LUN)
                continue
            answers = opcode in (INQUIRY, REQUEST_SENSE)
            full = whole(session, row, lun) if answers else 0
            for task in data_in(session, row, length, lun, full, "" if answers else NO_LUN):
                if opcode == INQUIRY and task.received:
                    check(task.received[0] == 0x7F, f"peripheral {task.received[0]:#04x}")
                if opcode == REQUEST_SENSE and len(task.received) >= 3:
                    check(task.received[2] & 15 == 5, f"sense key {task.received[2] & 15}")
        session.ping()


if __name__ == "__main__":
    main(backings={"disk": {"size": "8M"}})
