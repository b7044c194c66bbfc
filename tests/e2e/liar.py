#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""An iSCSI target in memory that is honest but for one lie, told now and then.

    liar.py LIE [EVERY] [BLOCKS]     prints "port N", then serves until it is killed

    honest   none
    lose     a write is answered GOOD and not done
    stale    a read returns what the block held before its last write
    swap     two blocks change places after a write
    tear     a write leaves a part of the block as it was, at a border of 512 bytes
    flip     a bit of what was written changes
    twice    a write is answered GOOD twice, under the next StatSN
    again    a write is answered GOOD twice, under the same StatSN
    short    a read is answered GOOD with half of its data, and says so
    small    no lie: at most 20 blocks in a command, which VPD page B0 says
    transit  no lie: a write is done, or not, and answered "becoming ready"

Every lie is told only where nothing else explains it: no other command is under way, and what is
hidden had been there to see.

Invariants
 1. Commands take effect in the order they arrive, whole, before they are answered.

Not here: what yoke-bench makes of it (test_bench_lies.sh).
Spec: RFC 7143, SBC-3.
"""

import os
import random
import socket
import socketserver
import struct
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../wire"))

import pdu as P  # noqa: E402
from pdu import Pdu, decode_text, encode_text  # noqa: E402

BLOCK = 512
UNIT = 4096
BURST = 1 << 20
WINDOW = 64
SMALL = 20      # blocks
KEYS = {"HeaderDigest": "None", "DataDigest": "None", "InitialR2T": "No", "ImmediateData": "Yes",
        "MaxBurstLength": str(BURST), "FirstBurstLength": str(BURST), "DefaultTime2Wait": "0",
        "DefaultTime2Retain": "0", "MaxOutstandingR2T": "1", "ErrorRecoveryLevel": "0",
        "MaxConnections": "1", "DataPDUInOrder": "Yes", "DataSequenceInOrder": "Yes"}


class Store:
    """The LUN, and the lie."""

    def __init__(self, lie, every, units):
        self.lie, self.every = lie, every
        self.data = bytearray(units * UNIT)
        self.before = {}        # unit -> what its last write replaced
        self.written = set()
        self.seen = set()       # units read since their last write
        self.count = 0
        self.random = random.Random(1)

    def due(self, lie):
        if self.lie != lie:
            return False
        self.count += 1
        return self.count % self.every == 0

    def unit(self, n):
        return bytes(self.data[n * UNIT:(n + 1) * UNIT])

    def read(self, offset, length):
        units = range(offset // UNIT, (offset + length + UNIT - 1) // UNIT)
        data = bytearray(self.data[offset:offset + length])
        if self.lie == "stale" and length == UNIT and units[0] in self.seen & set(self.before) \
                and self.due("stale"):
            return self.before[units[0]]
        self.seen.update(units)
        return bytes(data)

    def write(self, offset, data):
        if self.due("lose"):
            return
        first = offset // UNIT
        for n in range(first, first + len(data) // UNIT):
            if n in self.seen:
                self.before[n] = self.unit(n)
            else:
                self.before.pop(n, None)
            self.seen.discard(n)
            self.written.add(n)
        kept = self.unit(first)
        self.data[offset:offset + len(data)] = data
        if self.due("tear") and kept != self.unit(first):
            border = self.random.randrange(1, UNIT // BLOCK) * BLOCK
            self.data[offset + border:offset + UNIT] = kept[border:]
        if self.due("flip"):
            self.data[offset + self.random.randrange(64, BLOCK)] ^= 1
        if self.due("swap"):
            other = self.random.choice(sorted(self.written - {first}))
            a, b = self.unit(first), self.unit(other)
            self.data[first * UNIT:(first + 1) * UNIT] = b
            self.data[other * UNIT:(other + 1) * UNIT] = a


class Connection(socketserver.BaseRequestHandler):
    """A session of one connection."""

    def handle(self):
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.statsn, self.cmdsn = 1, 1
        self.writes = {}        # itt -> [command, data]
        try:
            while self.one():
                pass
        except (ConnectionError, EOFError):
            pass

    def exactly(self, length):
        data = bytearray()
        while len(data) < length:
            piece = self.request.recv(length - len(data))
            if not piece:
                raise EOFError
            data += piece
        return bytes(data)

    def send(self, pdu, count=True):
        pdu.statsn = self.statsn
        pdu.expcmdsn, pdu.maxcmdsn = self.cmdsn, (self.cmdsn + WINDOW) & 0xFFFFFFFF
        if count:
            self.statsn += 1
        self.request.sendall(pdu.encode())

    def one(self):
        request = Pdu.of_header(self.exactly(48))
        request.data = self.exactly(-(-request.data_len // 4) * 4)[:request.data_len]
        if request.opcode in (P.SCSI_CMD, P.TEXT, P.NOP_OUT, P.LOGOUT) and not request.immediate:
            self.cmdsn = request.cmdsn + 1
        if request.opcode == P.LOGIN:
            self.login(request)
        elif request.opcode == P.TEXT:
            host, port = self.request.getsockname()
            text = {"TargetName": NAME, "TargetAddress": f"{host}:{port},1"}
            self.send(Pdu(P.TEXT_RSP, encode_text(text), itt=request.itt, ttt=P.NO_TAG, final=1))
        elif request.opcode == P.NOP_OUT and request.itt != P.NO_TAG:
            self.send(Pdu(P.NOP_IN, request.data, itt=request.itt, ttt=P.NO_TAG, final=1))
        elif request.opcode == P.LOGOUT:
            self.send(Pdu(P.LOGOUT_RSP, itt=request.itt, final=1))
            return False
        elif request.opcode == P.SCSI_CMD:
            self.command(request)
        elif request.opcode == P.DATA_OUT:
            self.data_out(request.itt, request.data)
        return True

    def login(self, request):
        if request.csg == 0:
            self.cmdsn = request.cmdsn
        asked = dict(decode_text(request.data))
        answer = {key: KEYS[key] for key in asked if key in KEYS}
        if request.csg == 1 or request.nsg == 3:
            answer["MaxRecvDataSegmentLength"] = str(BURST)
        if "SessionType" in asked:
            answer["TargetPortalGroupTag"] = "1"
        if "AuthMethod" in asked:
            answer["AuthMethod"] = "None"
        self.send(Pdu(P.LOGIN_RSP, encode_text(answer), itt=request.itt, isid=request.isid,
                      tsih=1, transit=request.transit, csg=request.csg, nsg=request.nsg))

    def command(self, request):
        cdb = request.cdb
        moves = cdb[0] in (0x28, 0x2A, 0x88, 0x8A)
        if moves and STORE.lie == "small" and self.span(cdb)[1] > SMALL * BLOCK:
            self.check(request, 5, 0x24, 0)     # ILLEGAL REQUEST, INVALID FIELD IN CDB
        elif cdb[0] in (0x2A, 0x8A):
            self.writes[request.itt] = [request, b""]
            self.data_out(request.itt, request.data)
        elif cdb[0] in (0x28, 0x88):
            offset, length = self.span(cdb)
            with LOCK:
                data = STORE.read(offset, length)
                short = STORE.due("short")
            self.good(request, data[:length // 2] if short else data)
        else:
            self.other(request, cdb)

    @staticmethod
    def span(cdb):
        wide = cdb[0] >= 0x80
        lba, = struct.unpack(">Q" if wide else ">I", cdb[2:10] if wide else cdb[2:6])
        count, = struct.unpack(">I" if wide else ">H", cdb[10:14] if wide else cdb[7:9])
        return lba * BLOCK, count * BLOCK

    def data_out(self, itt, data):
        request, got = self.writes[itt]
        got += data
        self.writes[itt][1] = got
        if len(got) < request.edtl:
            if request.final and request.opcode == P.SCSI_CMD and not data:
                self.send(Pdu(P.R2T, itt=itt, ttt=itt, lun_field=request.lun_field, final=1,
                              desired=request.edtl), count=False)
            return
        del self.writes[itt]
        with LOCK:
            transit = STORE.due("transit")
            if not transit or STORE.random.randrange(2):
                STORE.write(self.span(request.cdb)[0], got)
            twice, again = STORE.due("twice"), STORE.due("again")
        if transit:
            self.check(request, 2, 0x04, 0x01)
            return
        self.good(request)
        if again:
            self.statsn -= 1
        if twice or again:
            self.good(request)

    def good(self, request, data=b""):
        if data:
            missing = request.edtl - len(data)
            self.send(Pdu(P.DATA_IN, data, itt=request.itt, ttt=P.NO_TAG, final=1, has_status=1,
                          underflow=int(missing > 0), residual=missing))
        else:
            self.send(Pdu(P.SCSI_RSP, itt=request.itt, final=1))

    def other(self, request, cdb):
        blocks = len(STORE.data) // BLOCK
        data = None
        if cdb[0] in (0x00, 0x35, 0x91):
            data = b""
        elif cdb[0] == 0x12 and not cdb[1]:
            data = bytes([0, 0, 6, 2, 31, 0, 0, 2]) + b"YOKE    " + b"Liar            " + b"1   "
        elif cdb[0] == 0x12 and cdb[2] == 0xB0 and STORE.lie == "small":
            data = struct.pack(">BBHHHI", 0, 0xB0, 60, 0, 0, SMALL) + bytes(52)
        elif cdb[0] == 0x25:
            data = struct.pack(">II", blocks - 1, BLOCK)
        elif cdb[0] == 0x9E and cdb[1] & 0x1F == 0x10:
            data = struct.pack(">QI", blocks - 1, BLOCK) + bytes(20)
        elif cdb[0] == 0xA0:
            data = struct.pack(">II", 8, 0) + bytes(8)
        if data is not None:
            self.good(request, data[:request.edtl])
            return
        self.check(request, 5, 0x20, 0)  # ILLEGAL REQUEST, INVALID COMMAND OPERATION CODE

    def check(self, request, key, asc, ascq):
        sense = struct.pack(">HBBBIB", 18, 0x70, 0, key, 0, 10) + bytes(4) + bytes([asc, ascq]) \
            + bytes(4)
        self.send(Pdu(P.SCSI_RSP, sense, itt=request.itt, final=1, status=2))


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True


NAME = "iqn.2026-11.org.yoke.test:liar"
LOCK = threading.Lock()
STORE = None


def main():
    global STORE
    lie, every, units = (sys.argv[1:] + ["40", "64"][len(sys.argv) - 2:])[:3]
    STORE = Store(lie, int(every), int(units))
    with Server(("127.0.0.1", 0), Connection) as server:
        print("port", server.server_address[1], flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
