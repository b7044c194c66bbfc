#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
"""A connection that ends with commands open frees everything and lets its initiator back in."""

import os
import time

import pdu as P
import scsi
from harness import Prompt, case, main
from iscsi import check
from target import wait_until

WAITING = {"InitialR2T": "Yes", "ImmediateData": "No", "DefaultTime2Wait": 0,
           "DefaultTime2Retain": 1}


def open_commands(session):
    """Writes that wait for data, reads that nobody fetches, a text half asked."""
    for number in range(4):
        scsi.start(session, scsi.write10(8 * number, 64), out=os.urandom(32768), manual=True)
        scsi.start(session, scsi.read10(0, 512), read=262144)


@case(each=["close", "reset"])
def login_again_after_time2retain(t, how):
    fds = t.fds()
    session = t.login(**WAITING)
    isid = session.isid
    open_commands(session)
    getattr(session, how)()
    wait_until(lambda: t.fds() <= fds, 5, "the connection to be closed")
    deadline = time.monotonic() + session.value("DefaultTime2Retain") + 0.1
    while time.monotonic() < deadline:
        with t.login(lun=None) as other:
            other.ping()
    with t.login(isid=isid, **WAITING) as again:
        scsi.write(again, 0, b"again" * 4096)
        check(scsi.read(again, 0, 20480) == b"again" * 4096, "data differ")
        check(len(t.sessions()) == 1, f"{len(t.sessions())} sessions are left")


@case(each=["close", "reset"])
def login_again_at_once(t, how):
    for _ in range(20):
        session = t.login(**WAITING)
        open_commands(session)
        getattr(session, how)()
        t.login(isid=session.isid).close()


@case
def reinstatement_takes_the_place_of_a_live_session(t):
    with t.login(**WAITING) as session, t.login() as other:
        open_commands(session)
        with t.login(isid=session.isid) as again:
            session.expect_closed(allow=(P.R2T, P.DATA_IN, P.SCSI_RSP, P.ASYNC))
            scsi.write(again, 0, b"x" * 4096)
            check(scsi.read(again, 0, 4096) == b"x" * 4096, "data differ")
            other.ping(b"another ISID is another session")
            check(len(t.sessions()) == 2, f"{len(t.sessions())} sessions")


@case
def an_aborted_write_does_not_land_after_reinstatement(t):
    with t.login(**WAITING) as session:
        scsi.write(session, 0, b"o" * 4096)
        task = scsi.start(session, scsi.write10(0, 8), out=b"l" * 4096, manual=True)
        session.until(lambda: task.r2ts)
        with t.login(isid=session.isid) as again:
            try:
                task.answer(task.r2ts[0])
            except Exception:       # the old connection may be gone by now
                pass
            for _ in range(20):
                check(scsi.read(again, 0, 4096) == b"o" * 4096, "late data were written")


@case
def sessions_of_other_names_or_targets_are_others(t):
    with t.login(initiator="iqn.2026-11.org.yoke.test:x", isid=0x400001370042) as one:
        with t.login(initiator="iqn.2026-11.org.yoke.test:y", isid=0x400001370042) as two:
            one.ping()
            two.ping()


@case(each=[1, 24, 47, 48, 49, 100, 560])
def within_a_pdu(t, length):
    fds = t.fds()
    for _ in range(5):
        with t.login(**{**WAITING, "ImmediateData": "Yes"}) as session:
            pdu = P.Pdu(P.SCSI_CMD, os.urandom(512), itt=session.tag(), final=1, write=1, edtl=512,
                        cdb=scsi.write10(0, 1))
            session.send_raw(session.encode(session.number(pdu))[:length])
    t.closed_to(fds)
    t.login().close()


@case
def during_a_lun_reset(t):
    fds = t.fds()
    for _ in range(20):
        with t.login(**WAITING) as session:
            open_commands(session)
            session.request_tmf(5)
    t.closed_to(fds)
    t.login().close()


@case
def a_reader_that_does_not_read(t):
    """Data-In that nobody takes: bounded memory, others unhindered, gone with the connection."""
    with t.login() as other:
        fds = t.fds()
        scsi.read(other, 0, 4096)
        sessions = [t.login(receive_buffer=4096) for _ in range(8)]
        before = t.rss_kib()
        for session in sessions:
            count = min(32, (session.maxcmdsn - session.cmdsn) % (1 << 32))
            for _ in range(count):
                scsi.start(session, scsi.read10(0, 1024), read=524288)
        with Prompt(2) as prompt:
            for _ in range(50):
                prompt("a read beside slow readers", scsi.read, other, 0, 65536)
        grown = t.rss_kib() - before
        check(grown < 300 << 10, f"{grown} KiB of data pile up")
        for session in sessions:
            session.close()
        t.closed_to(fds)


@case
def meanwhile_no_turn_was_long(t):
    t.turns_are_short()


if __name__ == "__main__":
    main()
