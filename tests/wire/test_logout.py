#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
"""Logout: each reason has its answer, which precedes the FIN."""

import pdu as P
import scsi
from harness import case, main
from iscsi import check

CLOSE_SESSION, CLOSE_CONNECTION, RECOVERY = 0, 1, 2


@case(each=[CLOSE_SESSION, CLOSE_CONNECTION])
def closes_with_an_answer_first(t, reason):
    before = t.fds()
    with t.login() as session:
        answer = session.logout(reason)     # checks that nothing but FIN follows
        check(answer.response == 0, f"response {answer.response}")
    t.closed_to(before)


@case(each=[0, 1])
def works_with_and_without_the_immediate_bit(t, immediate):
    with t.login() as session:
        pdu = session.request(P.LOGOUT, reason=0, final=1, immediate=immediate)
        check(session.expect(P.LOGOUT_RSP, pdu.itt).response == 0, "refused")
        session.expect_closed()


@case
def removal_for_recovery_is_not_supported(t):
    with t.login() as session:
        pdu = session.request(P.LOGOUT, reason=RECOVERY, final=1, immediate=1)
        check(session.expect(P.LOGOUT_RSP, pdu.itt).response == 2, "recovery at level 0")


@case
def another_cid_is_not_found(t):
    with t.login() as session:
        pdu = session.request(P.LOGOUT, reason=CLOSE_CONNECTION, final=1, immediate=1, cid=77)
        check(session.expect(P.LOGOUT_RSP, pdu.itt).response == 1,
              "closed a connection that is not")
        session.ping()


@case(each=[3, 0x7F])
def an_unknown_reason(t, reason):
    with t.login() as session:
        session.request(P.LOGOUT, reason=reason, final=1, immediate=1)
        session.until(lambda: session.others)
        pdu = session.others.pop()
        check(pdu.opcode == P.REJECT or (pdu.opcode == P.LOGOUT_RSP and pdu.response), repr(pdu))


@case
def commands_before_it_end_first(t):
    with t.login() as session:
        tasks = [scsi.start(session, scsi.write10(8 * n, 8),
                            out=bytes([n]) * 4096) for n in range(8)]
        pdu = session.request(P.LOGOUT, reason=0, final=1, immediate=0)
        answer = session.expect(P.LOGOUT_RSP, pdu.itt)
        check(answer.response == 0, f"response {answer.response}")
        done = [task.done for task in tasks]
        session.expect_closed()
    with t.login() as session:
        for number, finished in enumerate(done):
            if finished:
                check(scsi.read(session, 4096 * number // 512, 4096) == bytes([number]) * 4096,
                      "a write answered before logout is lost")


@case
def a_write_that_waits_for_data_does_not_hold_it(t):
    before = t.fds()
    with t.login(InitialR2T="Yes", ImmediateData="No") as session:
        task = scsi.start(session, scsi.write10(0, 8), out=bytes(4096), manual=True)
        session.until(lambda: task.r2ts)
        check(session.logout(timeout=3).response == 0, "refused")
    t.closed_to(before)


if __name__ == "__main__":
    main()
