#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
"""The command window: outside it silence, inside it the order of CmdSN, whatever arrives when."""

import os

import pdu as P
import scsi
from harness import case, main
from iscsi import check
from pdu import Pdu

WRAP = 1 << 32


def later(number, by):
    return (number + by) % WRAP


def ping(session, cmdsn):
    """A NOP-Out with that CmdSN, not immediate; its tag."""
    pdu = Pdu(P.NOP_OUT, b"ping", final=1, itt=session.tag(), ttt=P.NO_TAG, cmdsn=cmdsn,
              expstatsn=session.expstatsn)
    session.send(pdu)
    return pdu.itt


@case(each=["one_behind", "far_behind", "one_beyond", "far_beyond", "half_the_space"])
def outside_the_window_is_ignored(t, where):
    with t.login() as session:
        answer = session.ping()
        number = {"one_behind": later(answer.expcmdsn, -1),
                  "far_behind": later(answer.expcmdsn, -1000),
                  "one_beyond": later(answer.maxcmdsn, 1), "far_beyond": later(answer.maxcmdsn,
                                                                               5000),
                  "half_the_space": later(answer.expcmdsn, 1 << 31)}[where]
        ping(session, number)
        check(session.silent(0.3), "an answer to a command outside the window")
        check(session.ping().expcmdsn == answer.expcmdsn, "ExpCmdSN moved")
        session.ping(immediate=0)
        check(not session.others, f"{session.others}")


@case
def a_duplicate_write_is_not_carried_out(t):
    with t.login() as session:
        number = session.cmdsn
        scsi.write(session, 0, b"1" * 512)
        scsi.write(session, 0, b"2" * 512)
        task = scsi.start(session, scsi.write10(0, 1), out=b"1" * 512, cmdsn=number)
        session.cmdsn = later(number, 2)
        check(session.silent(0.2), "an answer to a duplicate")
        check(scsi.read(session, 0, 512) == b"2" * 512, "a duplicate was carried out")
        check(not task.done, task.outcome())


@case(each=[2, 3, 8, 16])
def writes_that_arrive_backwards_run_in_order(t, count):
    with t.login() as session:
        first = session.cmdsn
        count = min(count, later(session.maxcmdsn, -first) + 1)
        datas = [bytes([n]) * 512 for n in range(count)]
        tasks = [scsi.start(session, scsi.write10(0, 1), out=datas[n], cmdsn=later(first, n))
                 for n in reversed(range(count))]
        session.cmdsn = later(first, count)
        for task in tasks:
            task.wait().good()
        check(scsi.read(session, 0, 512) == datas[-1], "not the write of the highest CmdSN")


@case
def a_gap_waits_and_immediate_commands_do_not(t):
    with t.login() as session:
        first = session.cmdsn
        waiting = scsi.start(session, scsi.read10(0, 1), read=512, cmdsn=later(first, 1))
        check(session.silent(0.3), "executed across a gap")
        session.cmdsn = first
        check(session.ping(b"immediate").expcmdsn == first, "ExpCmdSN moved across a gap")
        scsi.run(session, scsi.TEST_UNIT_READY, immediate=1).good()
        check(not waiting.done, "executed across a gap")
        scsi.run(session, scsi.TEST_UNIT_READY).good()
        waiting.wait().good()
        session.cmdsn = later(first, 2)
        check(session.ping().expcmdsn == later(first, 2), "ExpCmdSN")


@case
def unsolicited_data_behind_a_gap_ends_its_command_with_a_reason(t):
    """Its buffers come with its turn: the data that came before that is not kept."""
    old = bytes(range(256)) * 32
    with t.login(InitialR2T="No", ImmediateData="No", FirstBurstLength=8192) as session:
        scsi.write(session, 0, old)
        first = session.cmdsn
        waiting = scsi.start(session, scsi.write10(0, 16), out=bytes(8192), cmdsn=later(first, 1))
        session.cmdsn = first
        scsi.run(session, scsi.TEST_UNIT_READY).good()
        waiting.wait(5)
        check(waiting.sense[:2] == "0B", waiting.outcome())
        session.cmdsn = later(first, 2)
        check(scsi.read(session, 0, 8192) == old, "the command was carried out")


@case
def a_gap_does_not_hold_a_close(t):
    before = t.fds()
    for _ in range(20):
        with t.login() as session:
            scsi.start(session, scsi.read10(0, 1), read=512, cmdsn=later(session.cmdsn, 2))
            scsi.start(session, scsi.write10(0, 1), out=bytes(512), cmdsn=later(session.cmdsn, 3))
    t.closed_to(before)


@case
def a_gap_does_not_hold_a_logout(t):
    with t.login() as session:
        number = session.cmdsn
        scsi.start(session, scsi.read10(0, 1), read=512, cmdsn=later(number, 1))
        session.cmdsn = number
        check(session.logout().response == 0, "logout refused")


@case
def immediate_commands_use_no_number(t):
    with t.login() as session:
        number = session.cmdsn
        for _ in range(5):
            check(session.ping().expcmdsn == number, "an immediate NOP-Out moved ExpCmdSN")
            data = os.urandom(1024)
            scsi.run(session, scsi.write10(0, 2), out=data, immediate=1).good()
            task = scsi.run(session, scsi.read10(0, 2), read=1024, immediate=1).good()
            check(bytes(task.received) == data, "data differ")
            check(task.final.expcmdsn == number, "an immediate command moved ExpCmdSN")
        check(session.tmf(5, immediate=1) == 0, "LUN RESET refused")
        scsi.ready(session)
        check(session.cmdsn == session.ping().expcmdsn, "ExpCmdSN")


@case
def numbers_wrap(t):
    with t.connect() as session:
        session.cmdsn = session.expcmdsn = session.maxcmdsn = WRAP - 3
        session.login()
        scsi.ready(session)
        for n in range(12):
            scsi.write(session, n, bytes([n]) * 512)
        for n in range(12):
            check(scsi.read(session, n, 512) == bytes([n]) * 512, "data differ")


@case
def a_full_window_is_used_and_reopens(t):
    with t.login() as session:
        answer = session.ping()
        size = later(answer.maxcmdsn, 1 - answer.expcmdsn)
        check(1 <= size <= 65536, f"a window of {size}")
        tasks = [scsi.start(session, scsi.read10(0, 1), read=512) for _ in range(min(size, 512))]
        for task in tasks:
            task.wait().good()
        answer = session.ping()
        check(later(answer.maxcmdsn, 1 - answer.expcmdsn) >= 1, "the window stays closed")


@case(each=[-1, -5, -1000, 1, 100, 1 << 30])
def a_wrong_expstatsn_is_tolerated(t, by):
    with t.login() as session:
        for _ in range(3):
            session.ping(b"behind or ahead", expstatsn=later(session.expstatsn, by))
            scsi.run(session, scsi.read10(0, 8), read=4096,
                     expstatsn=later(session.expstatsn, by)).good()
        scsi.write(session, 0, bytes(4096))


@case
def an_initiator_that_never_acknowledges_status(t):
    with t.login() as session:
        before = t.heap_bytes()
        first = session.expstatsn
        for _ in range(3000):
            scsi.run(session, scsi.read10(0, 8), read=4096, expstatsn=first).good()
        check(t.heap_bytes() - before <= 16 << 10, "memory grows with unacknowledged status")


if __name__ == "__main__":
    main()
