#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
# timeout: 300
"""A store that does not answer: its own commands wait, and nothing else does."""

import os
import time

import pdu as P
import scsi
from harness import Prompt, case, main
from iscsi import Closed, check

LUN_RESET = 5
LOGIN_TIMEOUT = 5
TWO = {"backings": {"disk": {}, "other": {}}, "luns": {0: "disk", 1: "other"}}
# Enough outstanding to use a session up, were commands not bounded and isolated.
DEPTH = 16


def stuck_commands(t, session, count=DEPTH):
    count = min(count, (session.maxcmdsn - session.cmdsn) % (1 << 32))
    tasks = [scsi.start(session, scsi.write10(8 * n, 8),
                        out=os.urandom(4096)) for n in range(count)]
    t.held()
    return tasks


def in_time(login):
    """The login that an initiator gives up on after LOGIN_TIMEOUT."""
    started = time.monotonic()
    login()
    took = time.monotonic() - started
    check(took < LOGIN_TIMEOUT, f"login again took {took:.2f} s beside a stalled store")


@case
def logins_nops_and_other_luns_go_on(t):
    with t.login() as session, t.login(lun=1) as other, t.fault("disk", "stuck"), \
            Prompt(2) as timed:
        tasks = stuck_commands(t, session)
        for number in range(20):
            timed("a NOP of the same session", session.ping, b"alive")
            timed("a NOP", other.ping, b"alive")
            data = os.urandom(4096)
            timed("a write to another LUN", scsi.write, other, 8 * number, data, lun=1)
            check(timed("a read", scsi.read, other, 8 * number, 4096, lun=1) == data,
                  "data differ")
            timed("a login", t.login, lun=1).close()
            timed("discovery", lambda: t.login(discovery=True).discover())
            timed("another LUN of the same session", scsi.run, session, scsi.TEST_UNIT_READY,
                  lun=1)
        timed("INQUIRY of the stalled LUN", scsi.run, session, scsi.inquiry(), read=96)
        check(not any(task.done for task in tasks), "a command ended on a stuck store")
        t.clear_faults()
        for task in tasks:
            task.wait().good()


@case(own={"target": {"data_out_timeout": "600ms", "nop_interval": "300ms",
                      "nop_timeout": "5s"}})
def all_data_here_is_no_data_out_timeout(t):
    """The wait is the store's, many times data_out_timeout, and the initiator answers NOPs."""
    with t.login(InitialR2T="Yes", ImmediateData="No") as session, t.fault("disk", "stuck"):
        task = scsi.start(session, scsi.write10(0, 128), out=os.urandom(65536))
        session.until(lambda: session.nops_seen >= 10)
        check(not task.done, f"ended by itself: {task.outcome()}")
        t.clear_faults()
        task.wait().good()
        check(scsi.read(session, 0, 65536) == task.out, "data differ")


@case(own={"target": {"data_out_timeout": "2s"}})
def the_next_burst_has_its_own_time(t):
    """All of them together take longer than one may."""
    with t.login(InitialR2T="Yes", ImmediateData="No", MaxBurstLength=8192,
                 FirstBurstLength=8192) as session:
        data = os.urandom(65536)
        task = scsi.start(session, scsi.write10(0, 128), out=data, manual=True)
        for burst in range(8):
            session.until(lambda burst=burst: len(task.r2ts) > burst)
            check(session.silent(0.3), "something came while a burst was awaited")
            task.answer(task.r2ts[burst])
        task.wait().good()
        check(scsi.read(session, 0, 65536) == data, "data differ")


@case(own={"node": {"login_timeout": f"{LOGIN_TIMEOUT}s"}})
def reset_close_and_login_again_with_the_same_isid(t):
    with t.login() as session, t.fault("disk", "stuck"):
        tasks = stuck_commands(t, session)
        session.request_tmf(LUN_RESET)
        session.close()
        with t.connect(isid=session.isid) as again:
            in_time(again.login)
            again.ping(b"back")
            t.clear_faults()
            scsi.ready(again)
            scsi.write(again, 0, b"n" * 4096)
            check(scsi.read(again, 0, 4096) == b"n" * 4096,
                  "a write of before the reset landed later")
            check(scsi.run(again, scsi.TEST_UNIT_READY).status == scsi.GOOD, "not ready")
    check(tasks, "no command was stuck")


@case(own={"node": {"login_timeout": f"{LOGIN_TIMEOUT}s"}})
def login_again_without_closing(t):
    with t.login() as session, t.fault("disk", "stuck"):
        stuck_commands(t, session)
        session.request_tmf(LUN_RESET)
        with t.connect(isid=session.isid) as again:
            in_time(again.login)
            again.ping(b"back")
            session.expect_closed(allow=(P.ASYNC,))


@case
def many_initiators_come_back_at_once(t):
    sessions = [t.login() for _ in range(20)]
    with t.fault("disk", "stuck"):
        for session in sessions:
            scsi.start(session, scsi.write10(0, 8), out=bytes(4096))
        t.held()
        started = time.monotonic()
        for session in sessions:
            session.reset()
        again = [t.login(isid=session.isid, lun=None) for session in sessions]
        check(time.monotonic() - started < LOGIN_TIMEOUT, "logins waited for the store")
        for session in again:
            session.ping()
    for session in again:
        scsi.ready(session)
        scsi.read(session, 0, 4096)
        session.close()


@case
def a_lun_reset_ends_once_the_store_answers(t):
    with t.login() as session, t.login() as other:
        old = os.urandom(65536)
        scsi.write(session, 0, old)
        with t.fault("disk", "stuck", op="write"):
            tasks = stuck_commands(t, session, 8)
            tag = session.request_tmf(LUN_RESET).itt
            for _ in range(5):
                session.ping(b"not blocked")
        check(session.expect(P.TMF_RSP, tag).response == 0, "refused")
        content = scsi_stable_read(other)
        for task in tasks:
            check(not task.done or task.status != scsi.GOOD or
                  content[task.pdu.cdb[5] * 512:][:4096] == task.out, "GOOD, and not written")
        for _ in range(10):
            check(scsi_stable_read(other) == content, "a write landed after its reset")


def scsi_stable_read(session):
    scsi.ready(session)
    return scsi.read(session, 0, 65536)


@case
def a_drop_with_commands_stuck_leaves_nothing(t):
    fds = t.fds()
    for drop in ("close", "reset"):
        with t.fault("disk", "stuck"):
            sessions = [t.login() for _ in range(10)]
            for session in sessions:
                stuck_commands(t, session, 4)
            for session in sessions:
                getattr(session, drop)()
        t.closed_to(fds)
        with t.login() as session:
            scsi.write(session, 0, bytes(4096))


@case
def errors_reach_the_initiator(t):
    with t.login() as session:
        with t.fault("disk", "error", op="read"):
            task = scsi.run(session, scsi.read10(0, 8), read=4096)
            check(task.sense == "03/11/00", task.outcome())
        with t.fault("disk", "error", op="write"):
            task = scsi.run(session, scsi.write10(0, 8), out=bytes(4096))
            check(task.sense == "03/0C/00", task.outcome())
        scsi.read(session, 0, 4096)


@case(own=TWO)
def sigterm_with_commands_stuck_ends(t):
    session = t.login()
    t.add_fault("disk", "stuck")
    stuck_commands(t, session, 4)
    t.clear_faults()
    try:
        session.until(lambda: not session.tasks, 5)
    except Closed:
        pass


if __name__ == "__main__":
    main(**TWO)
