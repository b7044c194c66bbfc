#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
"""ABORT TASK: answered quickly while data are awaited, and only when the fate is final."""

import os
import time

import pdu as P
import scsi
from harness import case, main
from iscsi import check

ABORT_TASK = 1
COMPLETE, NO_TASK = 0, 1
WAITING = {"InitialR2T": "Yes", "ImmediateData": "No", "MaxBurstLength": 8192,
           "FirstBurstLength": 8192}


def abort(session, task, **fields):
    return session.tmf(ABORT_TASK, ref_tag=task.itt, refcmdsn=task.pdu.cmdsn, **fields)


@case(each=["nothing", "half_a_burst", "a_burst"])
def of_a_write_that_waits_for_data(t, sent):
    with t.login(**WAITING) as session:
        old = os.urandom(32768)
        scsi.write(session, 0, old)
        task = scsi.start(session, scsi.write10(0, 64), out=os.urandom(32768), manual=True)
        session.until(lambda: task.r2ts)
        if sent == "half_a_burst":
            task.send_segment(0, 4096, task.r2ts[0].ttt, 0)
        elif sent == "a_burst":
            task.answer(task.r2ts[0])
            session.until(lambda: len(task.r2ts) == 2)
        started = time.monotonic()
        check(abort(session, task) == COMPLETE, "refused")
        check(time.monotonic() - started < 10, "it waited for data")
        check(not task.done, f"answered as well: {task.outcome()}")
        # What was on its way is dropped without a word.
        r2t = task.r2ts[-1]
        task.send_segment(r2t.offset, r2t.desired, r2t.ttt, 0, final=1)
        check(session.silent(0.2), "an answer to late data")
        session.ping(b"the session goes on")
        check(scsi.read(session, 0, 32768)[8192:] == old[8192:], "an aborted write was carried out")


@case
def a_reused_tag_gets_its_own_data(t):
    with t.login(**WAITING) as session:
        task = scsi.start(session, scsi.write10(0, 16), out=b"1" * 8192, manual=True)
        session.until(lambda: task.r2ts)
        check(abort(session, task) == COMPLETE, "refused")
        del session.tasks[task.itt]
        again = scsi.start(session, scsi.write10(0, 16), out=b"2" * 8192, manual=True, itt=task.itt)
        session.until(lambda: again.r2ts)
        again.answer(again.r2ts[0])
        again.wait().good()
        check(scsi.read(session, 0, 8192) == b"2" * 8192, "data of the aborted write")


@case
def of_a_finished_tag(t):
    with t.login() as session:
        for _ in range(20):
            task = scsi.run(session, scsi.write10(0, 8), out=bytes(4096)).good()
            check(abort(session, task) in (COMPLETE, NO_TASK), "neither complete nor absent")


@case
def of_a_command_that_has_not_arrived(t):
    """RFC 7143 section 11.6.1: its CmdSN counts as received, and it is void when it comes."""
    with t.login() as session:
        scsi.write(session, 0, b"o" * 512)
        number, tag = session.cmdsn, session.tag()
        session.cmdsn = (number + 1) % (1 << 32)
        check(session.tmf(ABORT_TASK, ref_tag=tag, refcmdsn=number) == COMPLETE, "refused")
        check(session.ping().expcmdsn == session.cmdsn, "ExpCmdSN did not pass it")
        task = scsi.start(session, scsi.write10(0, 1), out=b"n" * 512, cmdsn=number)
        session.cmdsn = (number + 1) % (1 << 32)
        check(session.silent(0.2) and not task.done, "an aborted command was answered")
        session.tasks.clear()
        check(scsi.read(session, 0, 512) == b"o" * 512, "an aborted write was carried out")


@case
def of_a_command_that_waits_for_its_turn(t):
    with t.login() as session:
        scsi.write(session, 0, b"o" * 512)
        number = session.cmdsn
        task = scsi.start(session, scsi.write10(0, 1), out=b"n" * 512,
                          cmdsn=(number + 1) % (1 << 32))
        session.cmdsn = (number + 2) % (1 << 32)
        check(abort(session, task) == COMPLETE, "refused")
        session.cmdsn = number
        scsi.run(session, scsi.TEST_UNIT_READY).good()
        session.cmdsn = (number + 2) % (1 << 32)
        check(session.ping().expcmdsn == session.cmdsn, "the void number is a gap")
        check(not task.done, f"answered as well: {task.outcome()}")
        check(scsi.read(session, 0, 512) == b"o" * 512, "an aborted write was carried out")


@case
def with_another_lun_is_another_task(t):
    with t.login(**WAITING) as session:
        task = scsi.start(session, scsi.write10(0, 16), out=b"1" * 8192, manual=True)
        session.until(lambda: task.r2ts)
        check(abort(session, task, lun=1) in (NO_TASK, 2), "aborted a task of another LUN")
        task.answer(task.r2ts[0])
        task.wait().good()


@case
def of_a_write_on_a_stuck_store_tells_the_final_fate(t):
    with t.login() as session, t.login() as witness:
        old, new = os.urandom(4096), os.urandom(4096)
        scsi.write(session, 0, old)
        with t.fault("disk", "stuck", op="write"):
            task = scsi.start(session, scsi.write10(0, 8), out=new)
            t.held()
            request = session.request_tmf(ABORT_TASK, ref_tag=task.itt, refcmdsn=task.pdu.cmdsn)
            early = not session.silent(0.5)
            session.ping(b"not blocked")
        answer = session.expect(P.TMF_RSP, request.itt)
        check(answer.response == COMPLETE or task.done, f"response {answer.response}, fate unknown")
        # From the answer on the block keeps its content.
        content = scsi.read(witness, 0, 4096)
        check(content in (old, new), "half a write")
        check(not early or content == old or task.done, "answered before the fate was final")
        for _ in range(20):
            check(scsi.read(witness, 0, 4096) == content, "an aborted write landed later")


@case
def hundred_times_while_they_run(t):
    with t.login() as session:
        for number in range(100):
            data = bytes([number]) * 65536
            task = scsi.start(session, scsi.write10(0, 128), out=data)
            response = abort(session, task)
            check(response in (COMPLETE, NO_TASK), f"response {response}")
            check(response == COMPLETE or task.done, "absent, and yet not answered")
            session.tasks.pop(task.itt, None)
            content = scsi.read(session, 0, 65536)
            if task.done and task.status == 0:
                check(content == data, "GOOD, and not written")


if __name__ == "__main__":
    main()
