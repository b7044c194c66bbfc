#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
"""How bytes are cut on their way changes nothing: one by one, or ten PDUs at once."""

import os
import threading

import pdu as P
import scsi
from harness import case, main
from iscsi import OFFER, check
from pdu import Pdu


@case(each=[("None", "None"), ("CRC32C", "CRC32C")])
def a_whole_session_byte_by_byte(t, header, data):
    with t.connect() as session:
        session.pieces = (1,)
        session.login(csg=0, HeaderDigest=header, DataDigest=data, ImmediateData="Yes")
        scsi.ready(session)
        session.ping(b"byte by byte")
        block = os.urandom(2048)
        scsi.write(session, 0, block)
        scsi.run(session, scsi.write10(8, 4), out=block, unsolicited=False).good()
        check(scsi.read(session, 0, 2048) == scsi.read(session, 8, 2048) == block, "data differ")
        check(session.tmf(5) == 0, "LUN RESET refused")
        session.text([("X-org.yoke", "1")])
        check(session.logout().response == 0, "logout refused")


@case
def discovery_byte_by_byte(t):
    with t.connect() as session:
        session.pieces = (1,)
        session.login(discovery=True)
        check(len(session.discover()) == 1, "discovery")
        session.logout()


@case(each=[10, 100])
def pdus_in_one_send(t, count):
    with t.login() as session:
        count = min(count, (session.maxcmdsn - session.cmdsn) % (1 << 32))
        blocks = [os.urandom(512) for _ in range(count)]
        with session.one_send():
            tasks = [scsi.start(session, scsi.write10(n, 1), out=blocks[n])
                     for n in range(count // 2)]
            tasks += [scsi.start(session, scsi.read10(n, 1), read=512) for n in range(count // 2)]
        for task in tasks:
            task.wait().good()
        for number, task in enumerate(tasks[count // 2:]):
            # Reads and writes of SIMPLE tasks may pass each other; what is there now is decided.
            check(scsi.read(session, number, 512) == blocks[number], "data differ")
            check(len(task.received) == 512, "short read")


@case
def command_data_ping_and_logout_in_one_send(t):
    with t.login(InitialR2T="No", ImmediateData="No") as session:
        with session.one_send():
            scsi.start(session, scsi.write10(0, 8), out=os.urandom(4096))
            ping = session.request(P.NOP_OUT, b"ping", ttt=P.NO_TAG)
            logout = session.request(P.LOGOUT, reason=0)
        # The write may have ended or may be aborted with the session.
        check(session.expect(P.NOP_IN, ping.itt).data == b"ping", "echo")
        check(session.expect(P.LOGOUT_RSP, logout.itt).response == 0, "logout refused")
        session.expect_closed()


@case
def login_and_first_commands_in_one_send(t):
    """Optimists: what follows the login request is taken once login is done."""
    with t.connect() as session:
        login = session.login_request(keys={**session.names(), **OFFER})
        ping = Pdu(P.NOP_OUT, b"early", immediate=1, final=1, itt=7, ttt=P.NO_TAG,
                   cmdsn=session.cmdsn)
        session.send_raw(login.encode() + ping.encode())
        pdu = session.receive()
        check((pdu.opcode, pdu.login_status) == (P.LOGIN_RSP, 0), repr(pdu))
        check(session.receive().data == b"early", "what came with the login is lost")


@case(each=[(48,), (47, 2), (4096,), (1448,), (65536,), (13, 4099)])
def segments_of(t, *pieces):
    with t.login(InitialR2T="No") as session:
        session.pieces = pieces
        data = os.urandom(256 << 10)
        scsi.write(session, 1, data)
        check(scsi.read(session, 1, len(data)) == data, "data differ")


@case
def eight_sessions_byte_by_byte_at_once(t):
    errors = []

    def one(number):
        try:
            with t.login() as session:
                session.pieces = (1, 2, 3)
                data = bytes([number]) * 4096
                for _ in range(3):
                    scsi.write(session, 8 * number, data)
                    check(scsi.read(session, 8 * number, 4096) == data, "data differ")
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=one, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


if __name__ == "__main__":
    main()
