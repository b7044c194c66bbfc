#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
# timeout: 900
"""Connect, log in, do I/O, drop, many times (YOKE_CYCLES): memory and descriptors stay flat."""

import os

import scsi
from harness import case, main
from iscsi import check

CYCLES = int(os.environ.get("YOKE_CYCLES") or
             (10000 if os.environ.get("YOKE_FULL") == "1" else 1000))
WARM = 300     # pools and arenas have their size by then
FLAT_BYTES = 8 << 10


def io_and_logout(t, number):
    session = t.login(isid=0x400001370000 + number % 3)
    scsi.write(session, number % 64, bytes([number & 255]) * 4096)
    check(scsi.read(session, number % 64, 4096) == bytes([number & 255]) * 4096, "data differ")
    session.logout()


def io_and_close(t, number):
    session = t.login()
    scsi.read(session, 0, 65536)
    session.close()


def open_commands_and_reset(t, number):
    session = t.login(InitialR2T="Yes", ImmediateData="No")
    for lba in range(4):
        scsi.start(session, scsi.write10(lba, 64), out=bytes(32768), manual=True)
        scsi.start(session, scsi.read10(lba, 128), read=65536)
    session.reset()


def half_a_login(t, number):
    session = t.connect()
    session.send_raw(session.login_request(keys=session.names()).encode()[:1 + number % 150])
    session.close()


def refused_login(t, number):
    session = t.connect(target="iqn.2026-11.org.yoke:nobody")
    pdu = session.login_exchange(keys=session.names())
    check(pdu.login_status == 0x0203, f"status {pdu.login_status:04x}")
    session.close()


def discovery(t, number):
    session = t.login(discovery=True)
    session.discover()
    session.close()


def digests_and_errors(t, number):
    session = t.login(HeaderDigest="CRC32C", DataDigest="CRC32C")
    scsi.start(session, scsi.write10(0, 8), out=bytes(4096), spoil=("data",))
    session.until(lambda: session.others)
    session.close()


KINDS = [io_and_logout, io_and_close, open_commands_and_reset, half_a_login, refused_login,
         discovery, digests_and_errors]


@case(each=[kind.__name__ for kind in KINDS] + ["all_in_turn"])
def nothing_is_left_after(t, name):
    kinds = [kind for kind in KINDS if name in (kind.__name__, "all_in_turn")]
    count = max(CYCLES // 8, WARM)
    fds = t.fds()
    for number in range(WARM):
        kinds[number % len(kinds)](t, number)
    heap = [t.settled_bytes(fds, 20)]
    for _ in range(2):
        for number in range(count // 2):
            kinds[number % len(kinds)](t, number)
        heap.append(t.settled_bytes(fds, 20))
    # What leaks grows in both halves; a table that is wanted late, in one.
    grown = min(heap[1] - heap[0], heap[2] - heap[1])
    check(grown <= FLAT_BYTES, f"bytes after each half of {count} cycles: {heap}")
    check(not t.sessions(), f"{len(t.sessions())} sessions are left")


@case
def meanwhile_no_turn_was_long(t):
    t.turns_are_short()


if __name__ == "__main__":
    main()
