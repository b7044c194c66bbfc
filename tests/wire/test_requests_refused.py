#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
"""Requests that are none, or none at level 0, are rejected and the session goes on."""

import pdu as P
import scsi
from harness import case, main
from iscsi import Closed, check
from pdu import Pdu

PROTOCOL_ERROR, UNSUPPORTED, INVALID_FIELD = 4, 5, 9


def answer_to(session, pdu):
    session.send(session.number(pdu))
    session.until(lambda: session.others)
    return session.others.pop()


@case(each=[(kind, tag) for kind in range(4) for tag in ("none", "read")])
def a_snack(t, kind, tag):
    with t.login() as session:
        itt = P.NO_TAG
        if tag == "read":
            itt = scsi.run(session, scsi.read10(0, 8), read=4096).itt
        pdu = Pdu(P.SNACK, immediate=1, final=1, flags=0x80 | kind, itt=itt, ttt=P.NO_TAG)
        reject = answer_to(session, pdu)
        check(reject.opcode == P.REJECT, repr(reject))
        check(reject.reject_reason in (3, PROTOCOL_ERROR, UNSUPPORTED),
              f"{reject.reject_reason:#x}")
        check(reject.data[:48] == bytes(pdu.bhs), "Reject carries another header")
        session.ping()


@case(each=[0x07, 0x08, 0x0F, 0x11, 0x1B, 0x1C, 0x1D, 0x1E, 0x1F, 0x20, 0x25, 0x3F])
def an_unknown_opcode(t, opcode):
    with t.login() as session:
        pdu = Pdu(opcode, b"some data", immediate=1, final=1, itt=session.tag())
        try:
            reject = answer_to(session, pdu)
        except Closed:
            # An initiator that sends a target's PDUs is no initiator: closing is as good.
            check(opcode >= 0x20, "closed instead of a Reject")
            return
        check(reject.opcode == P.REJECT, repr(reject))
        check(reject.reject_reason in (PROTOCOL_ERROR, UNSUPPORTED), f"{reject.reject_reason:#x}")
        check(reject.data[:48] == bytes(pdu.bhs), "Reject carries another header")
        session.ping()


@case
def a_command_with_additional_headers_that_are_unknown(t):
    with t.login() as session:
        pdu = Pdu(P.SCSI_CMD, ahs=b"\0\x05\x7f" + bytes(5), itt=session.tag(), final=1, read=1,
                  edtl=96, cdb=scsi.inquiry())
        task = scsi.Task(session, pdu, b"", False)
        session.tasks[pdu.itt] = task
        session.send(session.number(pdu))
        try:
            session.until(lambda: task.done or session.others)
            check(task.done or session.others[0].opcode == P.REJECT, "neither answer nor Reject")
            session.others.clear()
            session.ping()
        except Closed:
            pass
    t.login().close()


@case
def a_read_and_write_at_once(t):
    with t.login() as session:
        pdu = Pdu(P.SCSI_CMD, itt=session.tag(), final=1, read=1, write=1, edtl=512,
                  cdb=scsi.TEST_UNIT_READY)
        task = scsi.Task(session, pdu, b"", True)
        session.tasks[pdu.itt] = task
        session.send(session.number(pdu))
        try:
            session.until(lambda: task.done or session.others)
        except Closed:
            pass
    t.login().close()


@case
def a_tag_in_use(t):
    with t.login(InitialR2T="Yes", ImmediateData="No") as session:
        first = scsi.start(session, scsi.write10(0, 8), out=bytes(4096), manual=True)
        session.until(lambda: first.r2ts)
        again = Pdu(P.SCSI_CMD, itt=first.itt, final=1, read=1, edtl=512, cdb=scsi.read10(0, 1))
        try:
            session.send(session.number(again))
            session.until(lambda: session.others or first.done)
            check(not first.done or first.status, "the first command ended well without its data")
            check(not session.others or session.others[0].opcode == P.REJECT, f"{session.others}")
        except Closed:
            pass
    t.login().close()


@case(each=["Yes", "No"])
def a_command_without_data_out_that_announces_some(t, initial_r2t):
    """RFC 7143 section 11.3.1: both W and F 0 is an error."""
    with t.login(InitialR2T=initial_r2t) as session:
        pdu = Pdu(P.SCSI_CMD, itt=session.tag(), final=0, read=1, edtl=4096,
                  cdb=scsi.read10(0, 8))
        session.send(session.number(pdu))
        session.send(Pdu(P.DATA_OUT, itt=pdu.itt, ttt=P.NO_TAG, final=1,
                         expstatsn=session.expstatsn))
        session.until(lambda: session.others)
        reject = session.others.pop()
        check(reject.opcode == P.REJECT, repr(reject))
        check(reject.reject_reason == PROTOCOL_ERROR, f"{reject.reject_reason:#x}")
        # Its number is still to come.
        session.cmdsn = pdu.cmdsn
        scsi.read(session, 0, 4096)


@case
def a_lun_field_that_is_none(t):
    with t.login() as session:
        for field in (0xFFFFFFFFFFFFFFFF, 0x0001000100000000, 0x8000000000000000, 1, 0x00FF << 48):
            task = scsi.run(session, scsi.read10(0, 1), read=512, lun_field=field)
            check(task.sense == "05/25/00", f"{field:016x}: {task.outcome()}")
        scsi.read(session, 0, 512)


if __name__ == "__main__":
    main()
