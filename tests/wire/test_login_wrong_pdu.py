#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
"""PDUs other than Login: before login the connection drops, during login it is refused first."""

import os

import pdu as P
from harness import case, main
from iscsi import Closed, check
from pdu import Pdu

REQUESTS = [P.NOP_OUT, P.SCSI_CMD, P.TMF, P.TEXT, P.DATA_OUT, P.LOGOUT, P.SNACK]
RESPONSES = [P.NOP_IN, P.LOGIN_RSP, P.R2T, P.REJECT]
UNKNOWN = [0x07, 0x1F, 0x3E]


@case(each=REQUESTS + RESPONSES + UNKNOWN)
def before_login(t, opcode):
    with t.connect() as session:
        session.send(Pdu(opcode, b"data" * 4, immediate=1, final=1, itt=1, ttt=P.NO_TAG))
        # A refusal of the login is polite; anything else must not come.
        session.expect_closed(allow=(P.LOGIN_RSP,))
    t.login().close()


@case(each=REQUESTS + RESPONSES + UNKNOWN)
def during_login(t, opcode):
    with t.connect() as session:
        check(session.login_exchange(transit=0, keys=session.names()).login_status == 0, "refused")
        session.send(Pdu(opcode, b"data" * 4, immediate=1, final=1, itt=1, ttt=P.NO_TAG))
        pdu = session.receive()
        check((pdu.opcode, pdu.login_status) == (P.LOGIN_RSP, 0x020B), repr(pdu))
        session.expect_closed()
    t.login().close()


@case
def login_after_login(t):
    with t.login() as session:
        session.send(session.login_request(keys=session.names()))
        try:
            pdu = session.receive()
            check(pdu.opcode == P.REJECT or pdu.login_status, f"{pdu} instead of a Reject")
        except Closed:
            pass
    t.login().close()


@case(each=[b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 40, bytes(48), b"\xff" * 4096])
def bytes_that_are_no_pdu(t, data):
    with t.connect() as session:
        session.send_raw(data)
        session.expect_closed(allow=(P.LOGIN_RSP,))
    t.login().close()


@case
def noise(t):
    for _ in range(50):
        with t.connect() as session:
            session.send_raw(b"\x43\x87" + os.urandom(46))
    t.login().close()


if __name__ == "__main__":
    main()
