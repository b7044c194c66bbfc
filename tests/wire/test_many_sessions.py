#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
# timeout: 300
"""Many sessions at once: each has its I/O, and memory goes back when they end."""

import os
import selectors
import time

import scsi
from harness import case, main
from iscsi import check

COUNT = 256
ROUNDS = 8


class Worker:
    """One session as an event machine: write, read back, compare, again."""

    def __init__(self, t, number):
        self.session = t.login(isid=0x400001400000 + number, lun=None)
        self.lba, self.left = 16 * number, ROUNDS
        scsi.ready(self.session)
        self.write()

    def write(self):
        self.data = os.urandom(8192)
        self.task = scsi.start(self.session, scsi.write10(self.lba, 16), out=self.data)

    def step(self):
        """Take what is there; whether it goes on."""
        self.session.dispatch()
        while self.task.done:
            self.task.good()
            if self.task.pdu.write:
                self.task = scsi.start(self.session, scsi.read10(self.lba, 16), read=8192)
                return True
            check(bytes(self.task.received) == self.data, "data of another session, or old ones")
            self.left -= 1
            if not self.left:
                return False
            self.write()
        return True


@case
def each_of_256_does_its_io(t):
    fds = t.fds()
    workers = [Worker(t, number) for number in range(COUNT)]
    check(len(t.sessions()) == COUNT, f"{len(t.sessions())} sessions are listed")
    selector = selectors.DefaultSelector()
    for worker in workers:
        selector.register(worker.session, selectors.EVENT_READ, worker)
    busy, deadline = COUNT, time.monotonic() + 120
    while busy:
        ready = selector.select(10)
        check(ready and time.monotonic() < deadline, f"{busy} of {COUNT} sessions hang")
        for key, _ in ready:
            goes_on = key.data.step()
            while goes_on and len(key.data.session.buffer) >= 48:
                goes_on = key.data.step()
            if not goes_on:
                selector.unregister(key.data.session)
                busy -= 1
    for worker in workers:
        worker.session.close()
    t.closed_to(fds, 20)
    check(not t.sessions(), f"{len(t.sessions())} sessions are left")


@case
def one_initiator_in_eight_sessions_sees_one_disk(t):
    sessions = [t.login() for _ in range(8)]
    for number, session in enumerate(sessions):
        scsi.write(session, 64 + number, bytes([number]) * 512)
    for session in sessions:
        content = scsi.read(session, 64, 8 * 512)
        check(content == b"".join(bytes([n]) * 512 for n in range(8)), "another disk")
        session.close()


@case(own={"node": {"sessions_max": 4}})
def one_more_than_allowed_is_told_so(t):
    sessions = [t.login() for _ in range(4)]
    with t.connect() as session:
        pdu = session.login_exchange(keys=session.names())
        check(pdu.login_status in (0x0301, 0x0302), f"status {pdu.login_status:04x}")
        session.expect_closed()
    sessions.pop().logout()
    sessions.append(t.login())
    for session in sessions:
        session.ping()
        session.close()


@case
def meanwhile_no_turn_was_long(t):
    t.turns_are_short()


if __name__ == "__main__":
    main()
