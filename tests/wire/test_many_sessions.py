#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
# timeout: 300
"""Many sessions at once: each has its I/O, and memory goes back when they end."""

import os
import resource
import selectors
import socket
import time

import scsi
from harness import case, main
from iscsi import LoginFailed, check

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


@case(own={"node": {"sessions_max": 4}})
def who_comes_back_at_the_limit_gets_in(t):
    """The session that a login replaces makes room for it, also if its tasks are stuck."""
    sessions = [t.login() for _ in range(4)]
    for stuck in (0, 4, 8):
        if stuck:
            t.add_fault("disk", "stuck")
            for session in sessions:
                scsi.start(session, scsi.read10(0, 8), read=4096)
            t.held(stuck)
        again = [t.login(isid=session.isid, lun=None) for session in sessions]
        for old, new in zip(sessions, again):
            old.close()
            scsi.run(new, scsi.inquiry(), read=96).good()
        sessions = again
        for session in sessions:
            scsi.ready(session)
    try:
        t.login(lun=None)
    except LoginFailed as failed:
        check(failed.status == 0x0302, f"refused with {failed.status:04x}")
    else:
        raise AssertionError("a fifth session")
    t.clear_faults()
    for session in sessions:
        scsi.ready(session)
        session.close()


@case(own={})
def mute_connections_lock_nobody_out(t):
    """Few descriptors, and somebody who takes them all: hosts and the administrator get in."""
    few = t.fds() + 40
    resource.prlimit(t.process.pid, resource.RLIMIT_NOFILE, (few, few))
    t.call("config.reload")
    mute = [socket.create_connection(t.address) for _ in range(2 * few)]
    with t.login() as session:
        for _ in range(4):
            with t.login() as other:
                scsi.write(other, 0, bytes(4096))
            check(len(t.sessions()) >= 1, "no session is listed")
        session.ping()
    for sock in mute:
        sock.close()


if __name__ == "__main__":
    main()
