#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
# timeout: 300
"""NOP-Out is echoed; a NOP-In that nobody answers costs the session, and only that."""

import os
import select
import time

import pdu as P
import scsi
from harness import case, main
from iscsi import Closed, Timeout, check
from pdu import Pdu

# The time-out is long enough for an initiator that the machine lets wait.
QUICK = {"target": {"nop_interval": "200ms", "nop_timeout": "1500ms"}}
WARM, ROUNDS, AT_ONCE = 8, 20, 50


@case(each=[0, 1, 3, 4, 511, 512, 4096, 8192])
def a_ping_comes_back(t, length):
    with t.login() as session:
        for immediate in (0, 1):
            session.ping(os.urandom(length), immediate=immediate)


@case
def a_ping_longer_than_we_take_is_cut(t):
    with t.login(MaxRecvDataSegmentLength=512) as session:
        data = os.urandom(4096)
        pdu = session.request(P.NOP_OUT, data, immediate=1, ttt=P.NO_TAG)
        answer = session.expect(P.NOP_IN, pdu.itt)
        check(answer.data == data[:512], f"{answer.data_len} bytes came back")


@case
def a_nop_out_without_tag_is_not_answered(t):
    with t.login() as session:
        session.send(session.number(Pdu(P.NOP_OUT, b"no answer", immediate=1, final=1,
                                        itt=P.NO_TAG, ttt=P.NO_TAG)))
        check(session.silent(0.2), "an answer to a NOP-Out without tag")
        session.ping()


@case
def an_answer_to_no_question_is_ignored(t):
    with t.login() as session:
        session.send(session.number(Pdu(P.NOP_OUT, immediate=1, final=1, itt=P.NO_TAG, ttt=0x777)))
        session.others.clear()
        try:
            session.dispatch(0.2)
            check(session.others and session.others.pop().opcode == P.REJECT,
                  "neither silence nor Reject")
        except Timeout:
            pass
        session.ping()


@case(own=QUICK)
def an_initiator_that_answers_stays(t):
    with t.login() as session:
        started = time.monotonic()
        while session.nops_seen < 6:
            try:
                session.dispatch(0.1)
            except Timeout:
                check(time.monotonic() - started < 15, f"{session.nops_seen} NOP-Ins in 15 s")
        check(time.monotonic() - started >= 0.9, "NOP-Ins come faster than the interval")
        scsi.write(session, 0, bytes(4096))


@case(own=QUICK)
def an_initiator_that_talks_is_not_dropped(t):
    with t.login() as session:
        started = time.monotonic()
        while time.monotonic() - started < 3:
            scsi.read(session, 0, 4096)


@case(own=QUICK)
def a_silent_initiator_is_dropped(t):
    with t.login() as session, t.login() as other:
        started = time.monotonic()
        session.answer_nops = False
        dropped = False
        while not dropped:
            check(time.monotonic() - started < 15, "not dropped")
            for ready in select.select([session, other], [], [], 1)[0]:
                try:
                    ready.dispatch()
                except Closed:
                    check(ready is session, "the one that answers was dropped")
                    dropped = True
        took = time.monotonic() - started
        check(session.nops_seen >= 1, "dropped without a NOP-In")
        check(1.4 <= took < 10, f"dropped after {took:.2f} s")
        other.until(lambda: other.nops_seen >= 2)
        other.ping(b"the other one stays")


@case(own={"target": {"nop_interval": "50ms", "nop_timeout": "50ms"}})
def a_thousand_silent_initiators_leave_nothing(t):
    """No session stays behind."""
    fds, heap = t.fds(), []
    for number in range(WARM + ROUNDS):
        if number in (WARM, WARM + ROUNDS // 2):
            heap.append(t.settled_bytes(fds))
        sessions = [t.login(lun=None) for _ in range(AT_ONCE)]
        for session in sessions:
            session.expect_closed(20, allow=(P.NOP_IN, P.ASYNC))
            session.close()
        t.closed_to(fds)
    heap.append(t.settled_bytes(fds))
    # What leaks grows in both halves; a table that was too small for one rush, in one.
    grown = min(heap[1] - heap[0], heap[2] - heap[1])
    check(grown <= 16 * ROUNDS * AT_ONCE // 2, f"bytes after each half of {ROUNDS * AT_ONCE}: {heap}")


if __name__ == "__main__":
    main()
