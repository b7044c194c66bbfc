#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# timeout: 240
# subtests: yes
"""A host that scans a target of 64 LUNs with gaps finds exactly these, by the list and by asking."""

import random

import scsi
from harness import case, main
from iscsi import check

EDGES = [0, 1, 2, 127, 128, 254, 255, 256, 257, 511, 512, 4095, 8191, 8192, 16382, 16383]
LUNS = sorted(EDGES + random.Random(64).sample(
    [n for n in range(3, 16380) if n not in EDGES], 64 - len(EDGES)))
FEWER = LUNS[1:40:2]    # without LUN 0


def setting(numbers):
    return {"luns": {n: f"b{n}" for n in numbers},
            "backings": {f"b{n}": {"driver": "null", "size": "1M"} for n in LUNS}}


def listed(session):
    """What REPORT LUNS says, asked as Linux does: the length first, then all."""
    first = scsi.run(session, scsi.report_luns(16), read=16).good()
    length = int.from_bytes(first.received[:4], "big")
    task = scsi.run(session, scsi.report_luns(8 + length), read=8 + length).good()
    check(task.residual == 0 and task.received[:4] == first.received[:4], "another length")
    entries = [bytes(task.received[at:at + 8]) for at in range(8, 8 + length, 8)]
    for entry in entries:
        check(entry[2:] == bytes(6), f"a second level in {entry.hex()}")
        # Peripheral addressing as far as it reaches, flat space above (SAM-5 4.7.7).
        check(entry[0] == 0 or entry[0] & 0xC0 == 0x40 and int.from_bytes(entry[:2], "big") > 0x40FF,
              f"addressing method of {entry.hex()}")
    return [int.from_bytes(entry[:2], "big") & 0x3FFF for entry in entries]


def serial(session, lun):
    task = scsi.run(session, scsi.inquiry(64, page=0x80), read=64, lun=lun).good()
    return bytes(task.received[4:])


def neighbours(numbers):
    around = {n + d for n in numbers for d in (-1, 1)} | {n ^ 0x100 for n in numbers}
    return sorted(n for n in around if 0 <= n <= 16383 and n not in numbers)


def scan(t, numbers):
    with t.login(lun=None) as session:
        check(listed(session) == sorted(numbers), "not the LUNs that there are, in order")
        serials = set()
        for lun in numbers:
            task = scsi.run(session, scsi.inquiry(96), read=96, lun=lun).good()
            check(task.received[0] == 0, f"LUN {lun}: peripheral {task.received[0]:#04x}")
            serials.add(serial(session, lun))
            scsi.ready(session, lun)
            task = scsi.run(session, scsi.read_capacity16(), read=32, lun=lun).good()
            check(task.received[:8] == (2047).to_bytes(8, "big"), f"LUN {lun}: another capacity")
        check(len(serials) == len(numbers), "two LUNs are the same disk")
        for lun in neighbours(numbers):
            task = scsi.run(session, scsi.inquiry(96), read=96, lun=lun).good()
            check(task.received[0] == 0x7F, f"LUN {lun}: peripheral {task.received[0]:#04x}")
            task = scsi.run(session, scsi.TEST_UNIT_READY, lun=lun)
            check(task.sense == "05/25/00", f"LUN {lun}: {task.outcome()}")
    return serials


@case
def a_scan_finds_them_all_and_nothing_between(t):
    scan(t, LUNS)


@case
def a_scan_after_a_reload_finds_what_is_left(t):
    before = scan(t, LUNS)
    with t.login() as session:
        t.luns = setting(FEWER)["luns"]
        with open(t.config_path, "w", encoding="utf-8") as config:
            config.write(t.configuration())
        t.call("config.reload")
        for lun in FEWER:
            task = scsi.run(session, scsi.TEST_UNIT_READY, lun=lun)
            while task.sense == "06/29/00":
                task = scsi.run(session, scsi.TEST_UNIT_READY, lun=lun)
            if lun == FEWER[0]:
                check(task.sense == "06/3F/0E", f"LUN {lun}: {task.outcome()}")
                check(listed(session) == FEWER, "not the LUNs that are left")
    check(scan(t, FEWER) < before, "other disks than before")


if __name__ == "__main__":
    main(**setting(LUNS))
