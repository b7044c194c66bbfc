#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
"""Logins do not wait for each other, least of all for one that never ends."""

import selectors
import time

import pdu as P
from harness import Prompt, case, main
from iscsi import Closed, check

COUNT = 200


class Slow:
    """Half a login header held open meanwhile; it must not have been dropped at the end."""

    def __init__(self, t, isid=0x400001370001):
        self.session = t.connect(isid=isid)
        request = self.session.login_request(keys=self.session.names()).encode()
        self.rest = request[24:]
        self.session.send_raw(request[:24])

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is None:
            self.session.send_raw(self.rest)
            pdu = self.session.receive()
            check((pdu.opcode, pdu.login_status) == (P.LOGIN_RSP, 0), f"{pdu} in the end")
        self.session.close()


@case
def half_a_header_delays_nobody_of_the_same_isid(t):
    with Slow(t), Prompt(1) as prompt:
        for _ in range(COUNT):
            with t.connect(isid=0x400001370001) as session:
                prompt("a login", session.login)


@case
def two_hundred_at_once_end_within_5_s(t):
    with Slow(t):
        sessions = [t.connect(isid=0x400001380000 + n) for n in range(COUNT)]
        selector = selectors.DefaultSelector()
        started = time.monotonic()
        for session in sessions:
            session.send(session.login_request(keys=session.names()))
            selector.register(session, selectors.EVENT_READ, session)
        waiting = len(sessions)
        while waiting:
            left = started + 5 - time.monotonic()
            check(left > 0, f"{waiting} of {COUNT} logins not done after 5 s")
            for key, _ in selector.select(left):
                pdu = key.data.receive()
                check(pdu.login_status == 0 and pdu.transit, f"status {pdu.login_status:04x}")
                selector.unregister(key.data)
                waiting -= 1
        for session in sessions:
            session.expstatsn = None
            session.ping()
            session.close()


@case
def two_hundred_of_one_isid_leave_one_session(t):
    sessions = [t.connect(isid=0x400001390000) for _ in range(COUNT)]
    for session in sessions:
        session.send(session.login_request(keys=session.names()))
    time_limit = time.monotonic() + 5
    alive = 0
    for session in sessions:
        try:
            pdu = session.receive(max(0.1, time_limit - time.monotonic()))
            check(pdu.login_status == 0, f"status {pdu.login_status:04x}")
            session.expstatsn = None
            session.ping()
            alive += 1
        except (ConnectionError, Closed):
            pass
    check(alive >= 1, "nobody is logged in")
    check(time.monotonic() < time_limit, "it took more than 5 s")
    for session in sessions:
        session.close()


@case
def meanwhile_no_turn_was_long(t):
    t.turns_are_short()


if __name__ == "__main__":
    main()
