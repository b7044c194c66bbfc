#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
"""The tests' own initiator, against known values and a loopback stub of a target."""

import socket
import threading

import pdu as P
import scsi
from harness import case, main
from iscsi import Closed, Connection, Session, Timeout, serial_less
from pdu import Pdu, crc32c, decode_text, encode_text


class Stub:
    """A target of a few lines: serve(connection) runs in a thread for one connection."""

    def __init__(self, serve):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = self.listener.getsockname()
        self.serve = serve
        self.error = None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        sock, _ = self.listener.accept()
        connection = Connection.__new__(Connection)
        connection.sock, connection.timeout, connection.pieces = sock, 5, None
        connection.header_digest = connection.data_digest = False
        connection.buffer = bytearray()
        try:
            self.serve(connection)
        except Exception as error:
            self.error = error
        sock.close()

    def end(self):
        self.thread.join(5)
        self.listener.close()
        if self.error:
            raise self.error


@case
def crc32c_has_the_values_of_rfc_7143():
    vectors = [(bytes(32), "aa36918a"), (b"\xff" * 32, "43aba862"),
               (bytes(range(32)), "4e79dd46"), (bytes(range(31, -1, -1)), "5cdb3f11"),
               (bytes.fromhex("01c0000000000000000000000000000014000000000004000000001400000018"
                              "28000000000000000200000000000000"), "563a96d9")]
    for data, digest in vectors:
        assert crc32c(data).hex() == digest, (data, crc32c(data).hex())


@case
def header_fields_lie_where_the_rfc_says():
    pdu = Pdu(P.SCSI_CMD, b"abcde", immediate=1, final=1, read=1, attr=1, lun=3, itt=0x01020304,
              edtl=0x05060708, cmdsn=0x0A0B0C0D, expstatsn=0x0E0F1011, cdb=b"\x28\1\2")
    assert pdu.bhs.hex(" ", 4) == ("41c10000 00000005 00030000 00000000 01020304 05060708 "
                                   "0a0b0c0d 0e0f1011 28010200 00000000 00000000 00000000")
    assert len(pdu.encode()) == 48 + 8
    assert len(pdu.encode(True, True)) == 48 + 4 + 8 + 4
    assert Pdu(P.LOGIN, csg=1, nsg=3, transit=1).bhs[1] == 0x87
    assert Pdu(P.NOP_OUT, lun=300).bhs[8:10].hex() == "412c"


@case
def a_spoilt_digest_differs_and_the_rest_does_not():
    pdu = Pdu(P.NOP_OUT, b"abcd")
    right, wrong = pdu.encode(True, True), pdu.encode(True, True, ("data",))
    assert right[:56] == wrong[:56] and right[56:] != wrong[56:]
    wrong = pdu.encode(True, True, ("header",))
    assert right[:48] == wrong[:48] and right[48:52] != wrong[48:52] and right[52:] == wrong[52:]


@case
def text_keeps_order_and_repetition():
    pairs = [("A", "1"), ("A", "2"), ("B", "x=y")]
    assert decode_text(encode_text(pairs)) == pairs
    assert encode_text({"A": None, "B": ""}) == b"B=\0"


@case
def serial_numbers_wrap():
    assert serial_less(0xFFFFFFFF, 0) and not serial_less(0, 0xFFFFFFFF) and not serial_less(5, 5)


@case(each=[(1,), (1, 2, 3), (7, 48)])
def a_pdu_sent_in_pieces_arrives_whole(*pieces):
    def echo(connection):
        for _ in range(2):
            connection.send_raw(connection.receive().encode(True, True), pieces)
    stub = Stub(echo)
    with Connection(stub.address, timeout=5) as connection:
        connection.send_raw(Pdu(P.NOP_OUT, b"x" * 5).encode(), pieces)
        connection.header_digest = connection.data_digest = True
        assert connection.receive().data == b"x" * 5
        connection.send_raw(Pdu(P.NOP_OUT, b"").encode())
        assert connection.receive().data == b""
    stub.end()


@case
def silence_is_a_timeout_and_a_close_is_closed():
    gate = threading.Event()
    stub = Stub(lambda connection: (connection.send_raw(bytes(20)), gate.wait(5)))
    with Connection(stub.address, timeout=5) as connection:
        try:
            connection.receive(0.05)
            raise AssertionError("half a PDU was received")
        except Timeout:
            gate.set()
        try:
            connection.receive()
            raise AssertionError("half a PDU was received")
        except Closed:
            pass
    stub.end()


def _serve_login_and_write(connection):
    login = connection.receive()
    keys = [("InitialR2T", "Yes"), ("ImmediateData", "No"), ("MaxRecvDataSegmentLength", "1024")]
    numbers = {"expcmdsn": login.cmdsn, "maxcmdsn": login.cmdsn + 8}
    connection.send(Pdu(P.LOGIN_RSP, encode_text(keys), itt=login.itt, transit=1, csg=1, nsg=3,
                        isid=login.isid, tsih=1, statsn=100, **numbers))
    command = connection.receive()
    assert command.data_len == 0 and command.final and command.expstatsn == 101
    connection.send(Pdu(P.R2T, itt=command.itt, ttt=7, final=1, statsn=101, offset=0, desired=2500,
                        **numbers))
    data = b""
    for sn in range(3):
        out = connection.receive()
        assert (out.datasn, out.offset, out.ttt, out.final) == (sn, len(data), 7, sn == 2)
        data += out.data
    assert data == bytes(range(250)) * 10
    connection.send(Pdu(P.SCSI_RSP, itt=command.itt, final=1, statsn=101, expdatasn=1, **numbers))
    ping = connection.receive()
    connection.send(Pdu(P.NOP_IN, ping.data, itt=ping.itt, ttt=P.NO_TAG, final=1, statsn=999,
                        **numbers))


@case
def a_write_obeys_r2ts_and_a_wrong_statsn_is_noticed():
    stub = Stub(_serve_login_and_write)
    with Session(stub.address, "iqn.stub", timeout=5) as session:
        session.cmdsn = 5
        session.login()
        scsi.run(session, scsi.write10(0, 5), out=bytes(range(250)) * 10).good()
        try:
            session.ping()
            raise LookupError("StatSN 999 was accepted")
        except AssertionError as error:
            assert "StatSN" in str(error)
    stub.end()


if __name__ == "__main__":
    main()
