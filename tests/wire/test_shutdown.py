#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
"""SIGTERM: sessions are told and closed, whatever they are at, and yoked ends with status 0."""

import signal
import time

import pdu as P
import scsi
from harness import case, main
from iscsi import Closed, check
from target import Target

EVENTS = (1, 2, 3)      # log out, connection will be dropped, all connections will be dropped


def told_and_closed(session):
    """The Async Messages that came before the close."""
    events = []
    try:
        while True:
            session.dispatch()
            events += [pdu.event for pdu in session.others if pdu.opcode == P.ASYNC]
            session.others.clear()
    except Closed:
        return events


@case
def idle_sessions_are_told():
    with Target() as t:
        sessions = [t.login() for _ in range(3)] + [t.login(discovery=True)]
        t.process.send_signal(signal.SIGTERM)
        for session in sessions[:3]:
            events = told_and_closed(session)
            check(events and set(events) <= set(EVENTS), f"Async Messages {events}")
        told_and_closed(sessions[3])
        t.ended()


@case(each=["half_a_header", "between_exchanges", "write_without_data", "unread_data", "gap"])
def it_ends_beside(what):
    with Target() as t:
        session = t.connect() if what in ("half_a_header", "between_exchanges") else \
            t.login(InitialR2T="Yes", ImmediateData="No", receive_buffer=4096)
        if what == "half_a_header":
            session.send_raw(bytes(24))
        elif what == "between_exchanges":
            session.login_exchange(transit=0, keys=session.names())
        elif what == "write_without_data":
            task = scsi.start(session, scsi.write10(0, 8), out=bytes(4096), manual=True)
            session.until(lambda: task.r2ts)
        elif what == "unread_data":
            for _ in range(8):
                scsi.start(session, scsi.read10(0, 1024), read=524288)
        else:
            scsi.start(session, scsi.read10(0, 8), read=4096, cmdsn=session.cmdsn + 1)
        started = time.monotonic()
        t.stop()
        check(time.monotonic() - started < 15, "SIGTERM waited for an initiator")


@case
def acknowledged_writes_are_there_after_a_restart():
    """On a file; what was answered GOOD before SIGTERM is read from the same file after it."""
    with Target(backings={"disk": {"driver": "file", "path": "{dir}/disk.img", "size": "8M"}}) as t:
        with t.login() as session:
            for number in range(64):
                scsi.write(session, 8 * number, bytes([number]) * 4096)
        t.restart()
        with t.login() as session:
            for number in range(64):
                check(scsi.read(session, 8 * number, 4096) == bytes([number]) * 4096, "data lost")


if __name__ == "__main__":
    main()
