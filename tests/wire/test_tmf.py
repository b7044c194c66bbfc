#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
"""Task management: every function has its answer."""

import pdu as P
import scsi
from harness import case, main
from iscsi import Closed, check
from scsi import ready

ABORT_TASK, ABORT_TASK_SET, CLEAR_ACA, CLEAR_TASK_SET, LUN_RESET = 1, 2, 3, 4, 5
WARM_RESET, COLD_RESET, TASK_REASSIGN = 6, 7, 8
QUERY_TASK, QUERY_TASK_SET, I_T_NEXUS_RESET, QUERY_ASYNC_EVENT = 9, 10, 11, 12
COMPLETE, NO_TASK, NO_LUN, ALLEGIANT, NO_REASSIGN, UNSUPPORTED, SUCCEEDED = 0, 1, 2, 3, 4, 5, 7
TOO_MANY_IMMEDIATE = 6
WAITING = {"InitialR2T": "Yes", "ImmediateData": "No"}


def waiting_write(session, lba=0):
    """A WRITE that stays in the task set because its data do not come."""
    task = scsi.start(session, scsi.write10(lba, 8), out=b"w" * 4096, manual=True)
    session.until(lambda: task.r2ts)
    return task


@case(each=[(ABORT_TASK_SET, COMPLETE), (CLEAR_ACA, UNSUPPORTED), (CLEAR_TASK_SET, COMPLETE),
            (LUN_RESET, COMPLETE), (WARM_RESET, COMPLETE), (TASK_REASSIGN, NO_REASSIGN),
            (0, UNSUPPORTED), (13, UNSUPPORTED), (0x7F, UNSUPPORTED)])
def without_any_task(t, function, expected):
    with t.login() as session:
        response = session.tmf(function)
        # 255, rejected, is what some give a function that is none.
        check(response == expected or (expected, response) == (UNSUPPORTED, 255) and
              function not in range(1, 9), f"response {response}, not {expected}")
        ready(session)


@case(each=[(QUERY_TASK_SET, COMPLETE), (I_T_NEXUS_RESET, COMPLETE), (QUERY_ASYNC_EVENT, COMPLETE)])
def of_protocol_level_2(t, function, expected):
    with t.login(iSCSIProtocolLevel=2) as session:
        check(session.params["iSCSIProtocolLevel"] == "2", "level 2 is not negotiated")
        response = session.tmf(function)
        check(response in (expected, SUCCEEDED), f"response {response}, not {expected}")


@case
def query_async_event_tells_what_is_pending(t):
    with t.login(iSCSIProtocolLevel=2) as session, t.login() as other:
        check(session.tmf(QUERY_ASYNC_EVENT) == COMPLETE, "an event out of nothing")
        other.tmf(LUN_RESET)
        asked = session.request_tmf(QUERY_ASYNC_EVENT)
        pdu = session.expect(P.TMF_RSP, asked.itt)
        check(pdu.response == SUCCEEDED, f"response {pdu.response} after a LUN RESET")
        check(pdu.lun_field >> 40 == 0x162903, f"told {pdu.lun_field >> 40:#x}")
        check(scsi.run(session, scsi.TEST_UNIT_READY).sense == "06/29/03", "not reported")
        ready(other)


@case(each=[QUERY_TASK, QUERY_TASK_SET, I_T_NEXUS_RESET, QUERY_ASYNC_EVENT])
def of_level_2_at_level_1(t, function):
    with t.login(iSCSIProtocolLevel=1) as session:
        response = session.tmf(function)
        # The initiator's breach; what matters is an answer that is one.
        check(response in (COMPLETE, NO_TASK, UNSUPPORTED, SUCCEEDED, 255), f"response {response}")
        session.ping()


@case(each=[ABORT_TASK_SET, CLEAR_TASK_SET, LUN_RESET])
def of_a_lun_that_is_not_there(t, function):
    with t.login() as session:
        check(session.tmf(function, lun=5) == NO_LUN, "no such LUN, and no word of it")


@case
def abort_task_of_an_absent_tag(t):
    with t.login() as session:
        for ref in (0, 0x12345678, 0xFFFFFFFE, P.NO_TAG):
            response = session.tmf(ABORT_TASK, ref_tag=ref, refcmdsn=session.cmdsn - 1)
            check(response in (COMPLETE, NO_TASK), f"tag {ref:#x}: response {response}")


@case
def query_task_tells_whether_it_is_there(t):
    with t.login(iSCSIProtocolLevel=2, **WAITING) as session:
        task = waiting_write(session)
        check(session.tmf(QUERY_TASK, ref_tag=task.itt, refcmdsn=task.pdu.cmdsn) == SUCCEEDED,
              "there")
        check(session.tmf(QUERY_TASK_SET) == SUCCEEDED, "a task set with a task")
        task.answer(task.r2ts[0])
        task.wait().good()
        gone = session.tmf(QUERY_TASK, ref_tag=task.itt, refcmdsn=task.pdu.cmdsn)
        check(gone in (COMPLETE, NO_TASK), f"response {gone} for a task that is gone")
        check(session.tmf(QUERY_TASK_SET) == COMPLETE, "an empty task set")


@case(each=[ABORT_TASK_SET, CLEAR_TASK_SET, LUN_RESET, WARM_RESET])
def ends_the_tasks_it_is_about(t, function):
    with t.login(**WAITING, MaxOutstandingR2T=1) as session:
        scsi.write(session, 0, b"o" * 8192)
        tasks = [waiting_write(session, 8 * n) for n in range(2)]
        check(session.tmf(function) == COMPLETE, "refused")
        for task in tasks:
            check(not task.done or task.status, f"a task without its data: {task.outcome()}")
            task.answer(task.r2ts[0])           # late data: no answer
        ready(session)
        check(not session.others, f"{session.others}")
        check(scsi.read(session, 0, 8192) == b"o" * 8192, "an aborted write was carried out")


@case
def abort_task_set_leaves_others_alone(t):
    with t.login(**WAITING) as session, t.login(**WAITING) as other:
        mine, theirs = waiting_write(session, 0), waiting_write(other, 64)
        check(session.tmf(ABORT_TASK_SET) == COMPLETE, "refused")
        theirs.answer(theirs.r2ts[0])
        theirs.wait().good()
        check(not mine.done or mine.status, mine.outcome())


@case(each=[CLEAR_TASK_SET, LUN_RESET])
def reaches_the_tasks_of_others(t, function):
    with t.login(**WAITING) as session, t.login(**WAITING) as other:
        theirs = waiting_write(other, 64)
        check(session.tmf(function) == COMPLETE, "refused")
        theirs.answer(theirs.r2ts[0])
        # TAS=0: no answer and a unit attention; TAS=1: TASK ABORTED.
        for _ in range(3):
            task = scsi.run(other, scsi.TEST_UNIT_READY)
            if task.status:
                break
        check(task.sense[:5] in ("06/2F", "06/29") or theirs.status == scsi.TASK_ABORTED,
              f"{task.outcome()}, {theirs.outcome()}")


@case
def lun_reset_leaves_a_unit_attention(t):
    with t.login() as session, t.login() as other:
        check(session.tmf(LUN_RESET) == COMPLETE, "refused")
        check(scsi.run(other, scsi.TEST_UNIT_READY).sense[:5] == "06/29", "no unit attention")
        ready(other)
        ready(session)


@case
def cold_reset_closes_the_connections(t):
    with t.login() as session, t.login() as other:
        try:
            check(session.tmf(COLD_RESET) == COMPLETE, "refused")
        except Closed:
            pass
        session.expect_closed(allow=(P.ASYNC,))
        other.expect_closed(allow=(P.ASYNC, P.NOP_IN))
    t.login().close()


@case
def not_immediate_it_takes_its_turn(t):
    with t.login() as session:
        number = session.cmdsn
        check(session.tmf(LUN_RESET, immediate=0) == COMPLETE, "refused")
        check(session.cmdsn == (number + 1) % (1 << 32), "the library is wrong")
        ready(session)
        check(session.ping().expcmdsn == session.cmdsn, "ExpCmdSN")


@case
def many_at_once(t):
    with t.login() as session:
        tags = {session.request_tmf(LUN_RESET).itt for _ in range(32)}
        session.until(lambda: len(session.others) == len(tags))
        for pdu in session.others:
            if pdu.opcode == P.REJECT:
                check(pdu.reject_reason == TOO_MANY_IMMEDIATE, f"{pdu.reject_reason:#x}")
            else:
                check(pdu.opcode == P.TMF_RSP and pdu.response == COMPLETE, repr(pdu))
                tags.remove(pdu.itt)
        check(len(tags) < 32, "all were rejected")
        ready(session)


if __name__ == "__main__":
    main()
