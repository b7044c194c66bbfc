#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
"""Wrong digests: a header closes the connection, data cost what RFC 7143 says at level 0."""

import os

import pdu as P
import scsi
from harness import case, main
from iscsi import check
from pdu import Pdu

BOTH = {"HeaderDigest": "CRC32C", "DataDigest": "CRC32C"}
ASKED = {**BOTH, "InitialR2T": "Yes", "ImmediateData": "No", "MaxBurstLength": 8192,
         "FirstBurstLength": 8192}
DIGEST_ERROR = 2
SENSE = "0B/47/05"


def rejected(session, header=None):
    """Takes a Reject for a digest; header: the header it must carry."""
    session.until(lambda: session.others)
    pdu = session.others.pop(0)
    check((pdu.opcode, pdu.reject_reason) == (P.REJECT, DIGEST_ERROR), repr(pdu))
    check(pdu.itt == P.NO_TAG, "Reject with a task tag")
    if header is not None:
        check(pdu.data[:48] == bytes(header), "Reject carries another header")
    return pdu


@case(each=["ping", "command", "data-out", "text", "logout"])
def a_wrong_header_digest_closes(t, what):
    with t.login(**BOTH) as session:
        opcode = {"ping": P.NOP_OUT, "command": P.SCSI_CMD, "data-out": P.DATA_OUT, "text": P.TEXT,
                  "logout": P.LOGOUT}[what]
        pdu = session.number(Pdu(opcode, immediate=1, final=1, itt=session.tag(), ttt=P.NO_TAG))
        session.send(pdu, spoil=("header",))
        session.expect_closed(allow=(P.ASYNC,))
    t.login().close()


@case
def a_wrong_header_digest_closes_with_commands_open(t):
    with t.login(**ASKED) as session:
        task = scsi.start(session, scsi.write10(0, 16), out=bytes(8192), manual=True)
        session.until(lambda: task.r2ts)
        task.send_segment(0, 8192, task.r2ts[0].ttt, final=1, spoil=("header",))
        session.expect_closed(allow=(P.ASYNC,))
    t.login().close()


@case(each=["only", "first", "second", "both"])
def solicited_data(t, which):
    with t.login(**ASKED) as session:
        old = os.urandom(16384)
        scsi.write(session, 32, old)
        task = scsi.start(session, scsi.write10(32, 32), out=os.urandom(16384), manual=True)
        session.until(lambda: task.r2ts)
        ttt = task.r2ts[0].ttt
        if which == "only":
            task.send_segment(0, 8192, ttt, 0, final=1, spoil=("data",))
            rejected(session)
        else:
            task.send_segment(0, 4096, ttt, 0, spoil=("data",) if which != "second" else ())
            if which != "second":
                rejected(session)
                # The command ends only once the F bit is here.
                check(not task.done and session.silent(0.2), "the command ended before the F bit")
            task.send_segment(4096, 4096, ttt, 1, final=1,
                              spoil=("data",) if which != "first" else ())
            if which != "first":
                rejected(session)
        task.wait()
        check(task.status == scsi.CHECK_CONDITION and task.sense == SENSE, task.outcome())
        session.ping(b"the session goes on")
        check(scsi.read(session, 40, 4096) in (old[4096:8192], task.out[4096:8192]),
              "garbage written")
        scsi.write(session, 32, old)
        check(scsi.read(session, 32, 16384) == old, "data differ")


@case
def unsolicited_data(t):
    with t.login(**{**ASKED, "InitialR2T": "No"}) as session:
        task = scsi.start(session, scsi.write10(0, 16), out=os.urandom(8192), manual=True, final=0,
                          unsolicited=False)
        task.send_segment(0, 4096, P.NO_TAG, 0, spoil=("data",))
        rejected(session)
        check(not task.done, "the command ended before the F bit")
        task.send_segment(4096, 4096, P.NO_TAG, 1, final=1)
        task.wait()
        check(task.status == scsi.CHECK_CONDITION and task.sense == SENSE, task.outcome())
        session.ping()


@case
def immediate_data_drop_the_command(t):
    with t.login(**{**ASKED, "ImmediateData": "Yes"}) as session:
        old, new = os.urandom(4096), os.urandom(4096)
        scsi.write(session, 0, old)
        first = session.cmdsn
        task = scsi.start(session, scsi.write10(0, 8), out=os.urandom(4096), spoil=("data",))
        rejected(session, task.pdu.bhs)
        # Its CmdSN is not consumed: the window did not move, and the number is used again.
        check(session.ping(immediate=1).expcmdsn == first, "CmdSN of a dropped command is consumed")
        check(not task.done, "a dropped command was answered")
        del session.tasks[task.itt]
        session.cmdsn = first
        check(scsi.read(session, 0, 4096) == old, "a dropped command was carried out")
        scsi.write(session, 0, new)
        check(scsi.read(session, 0, 4096) == new, "data differ")


@case
def later_commands_wait_for_the_dropped_one(t):
    with t.login(**{**ASKED, "ImmediateData": "Yes"}) as session:
        first, second = os.urandom(4096), os.urandom(4096)
        number = session.cmdsn
        lost = scsi.start(session, scsi.write10(0, 8), out=first, spoil=("data",))
        behind = scsi.start(session, scsi.write10(0, 8), out=second)
        rejected(session, lost.pdu.bhs)
        del session.tasks[lost.itt]
        check(session.silent(0.2) and not behind.done, "executed across a gap")
        again = scsi.start(session, scsi.write10(0, 8), out=first, cmdsn=number)
        session.cmdsn = (number + 2) % (1 << 32)
        again.wait().good()
        behind.wait().good()
        check(scsi.read(session, 0, 4096) == second, "out of order")


@case(each=["ping", "text"])
def other_data(t, what):
    with t.login(**BOTH) as session:
        opcode = P.NOP_OUT if what == "ping" else P.TEXT
        pdu = session.number(Pdu(opcode, b"X-org.yoke.a=1\0", immediate=1, final=1,
                                 itt=session.tag(), ttt=P.NO_TAG))
        session.send(pdu, spoil=("data",))
        rejected(session, pdu.bhs)
        session.ping(b"the session goes on")


if __name__ == "__main__":
    main()
