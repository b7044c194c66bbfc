# SPDX-License-Identifier: MIT
"""An iSCSI initiator for tests: polite by default, and rude in any detail a test asks for.

Invariants
 1. Every read has a deadline; a target that says nothing makes a Timeout, never a hang.
 2. Whatever the target sends is checked against the numbering rules of RFC 7143 (StatSN,
    MaxCmdSN, DataSN, R2TSN, offsets, lengths), in every test, without the test asking.
 3. A PDU given to send() goes out as it is. Only request() fills in sequence numbers.

Not here: the layout of PDUs (pdu.py), SCSI commands and their data (scsi.py).
Spec: RFC 7143.
"""

import contextlib
import os
import random
import select
import socket
import time

import pdu as P
from pdu import Pdu, decode_text, encode_text

TIMEOUT = float(os.environ.get("YOKE_WIRE_TIMEOUT", 15))
INITIATOR = "iqn.2026-11.org.yoke.test:initiator"
STAGE_SECURITY, STAGE_OPERATIONAL, STAGE_FULL = 0, 1, 3

# What holds while nobody has said anything (RFC 7143 section 13).
DEFAULTS = {
    "HeaderDigest": "None", "DataDigest": "None", "MaxConnections": "1", "InitialR2T": "Yes",
    "ImmediateData": "Yes", "MaxBurstLength": "262144", "FirstBurstLength": "65536",
    "DefaultTime2Wait": "2", "DefaultTime2Retain": "20", "MaxOutstandingR2T": "1",
    "DataPDUInOrder": "Yes", "DataSequenceInOrder": "Yes", "ErrorRecoveryLevel": "0",
    "iSCSIProtocolLevel": "1",
}
# Said by one side, not negotiated.
DECLARED = ("InitiatorName", "InitiatorAlias", "TargetName", "TargetAlias", "TargetAddress",
            "TargetPortalGroupTag", "SessionType", "MaxRecvDataSegmentLength")
# What login() offers unless told otherwise: about what Linux and libiscsi do.
OFFER = {
    "HeaderDigest": "None", "DataDigest": "None", "InitialR2T": "No", "ImmediateData": "Yes",
    "MaxBurstLength": "262144", "FirstBurstLength": "65536", "DefaultTime2Wait": "2",
    "DefaultTime2Retain": "0", "MaxOutstandingR2T": "1", "ErrorRecoveryLevel": "0",
    "MaxConnections": "1", "DataPDUInOrder": "Yes", "DataSequenceInOrder": "Yes",
}


class Closed(Exception):
    """The target closed the connection."""


class Timeout(Exception):
    """The target said nothing for too long."""


class LoginFailed(Exception):
    def __init__(self, status):
        super().__init__(f"login refused with status {status:04x}")
        self.status = status


def check(condition, text):
    """As assert, for what the target did."""
    if not condition:
        raise AssertionError(text)


def serial_less(a, b):
    """a < b in serial arithmetic of 32 bits."""
    return a != b and (b - a) % (1 << 32) < 1 << 31


class Connection:
    """A TCP connection on which PDUs travel."""

    def __init__(self, address, timeout=TIMEOUT, receive_buffer=None):
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.sock = socket.socket(family, socket.SOCK_STREAM)
        if receive_buffer:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.sock.settimeout(timeout)
        self.sock.connect(address)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.address = address
        self.timeout = timeout
        self.header_digest = self.data_digest = False
        self.pieces = None
        self.buffer = bytearray()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def fileno(self):
        return self.sock.fileno()

    def close(self):
        self.sock.close()

    def reset(self):
        """Close with RST instead of FIN."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.sock.close()

    def send_raw(self, data, pieces=None):
        """Send bytes; pieces is a cycle of segment sizes to dribble them in."""
        pieces = pieces or self.pieces
        self.sock.settimeout(self.timeout)
        try:
            if not pieces:
                self.sock.sendall(data)
                return
            start, turn = 0, 0
            while start < len(data):
                size = pieces[turn % len(pieces)]
                self.sock.sendall(data[start:start + size])
                start, turn = start + size, turn + 1
        except (BrokenPipeError, ConnectionResetError) as error:
            raise Closed(str(error)) from None
        except socket.timeout:
            raise Timeout("the target does not read") from None

    def encode(self, pdu, spoil=()):
        return pdu.encode(self.header_digest, self.data_digest, spoil)

    def send(self, pdu, spoil=()):
        self.send_raw(self.encode(pdu, spoil))

    def _fill(self, length, deadline):
        while len(self.buffer) < length:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.sock], [], [], left)[0]:
                raise Timeout("no PDU from the target")
            try:
                piece = self.sock.recv(262144)
            except ConnectionResetError:
                raise Closed("reset by the target") from None
            if not piece:
                raise Closed("closed by the target")
            self.buffer += piece

    def receive(self, timeout=None):
        """The next PDU. What arrived before a Timeout stays buffered."""
        deadline = time.monotonic() + (self.timeout if timeout is None else timeout)
        self._fill(48, deadline)
        pdu = Pdu.of_header(self.buffer[:48])
        ahs_end = 48 + 4 * pdu.ahs_len
        data_start = ahs_end + 4 * self.header_digest
        data_end = data_start + pdu.data_len + -pdu.data_len % 4
        end = data_end + 4 * (self.data_digest and pdu.data_len > 0)
        self._fill(end, deadline)
        pdu.ahs = bytes(self.buffer[48:ahs_end])
        pdu.data = bytes(self.buffer[data_start:data_start + pdu.data_len])
        if self.header_digest:
            check(self.buffer[ahs_end:data_start] == P.crc32c(self.buffer[:ahs_end]),
                  f"wrong header digest on {pdu}")
        if end > data_end:
            check(self.buffer[data_end:end] == P.crc32c(self.buffer[data_start:data_end]),
                  f"wrong data digest on {pdu}")
        del self.buffer[:end]
        return pdu

    @contextlib.contextmanager
    def one_send(self):
        """What is sent within the block leaves in one piece at its end."""
        whole = bytearray()
        self.send = lambda pdu, spoil=(): whole.extend(self.encode(pdu, spoil))
        try:
            yield
        finally:
            del self.send
        self.send_raw(whole)

    def expect_closed(self, timeout=None, allow=()):
        """Wait until the target closes; it may send PDUs of the opcodes in allow before."""
        deadline = time.monotonic() + (self.timeout if timeout is None else timeout)
        try:
            while True:
                pdu = self.receive(max(0, deadline - time.monotonic()))
                check(pdu.opcode in allow, f"{pdu} instead of a closed connection")
        except Closed:
            return
        except Timeout:
            raise AssertionError("the target did not close the connection") from None

    def silent(self, seconds):
        """Whether nothing at all arrives for so long."""
        return not self.buffer and not select.select([self.sock], [], [], seconds)[0]


class Session(Connection):
    """A session with its one connection."""

    def __init__(self, address, target=None, initiator=INITIATOR, isid=None, **options):
        super().__init__(address, **options)
        self.target = target
        self.initiator = initiator
        self.isid = random.getrandbits(22) << 16 | 0x400001370000 if isid is None else isid
        self.tsih = self.cid = 0
        self.itt = random.getrandbits(16)
        self.cmdsn = random.getrandbits(32)
        self.expstatsn = None
        self.expcmdsn = self.maxcmdsn = self.cmdsn
        self.params = dict(DEFAULTS)
        self.target_segment = self.own_segment = 8192
        self.tasks = {}
        self.others = []
        self.answer_nops = True
        self.nops_seen = 0

    # Numbers

    def tag(self):
        self.itt = (self.itt + 1) % P.NO_TAG
        return self.itt

    def number(self, pdu):
        """Give a request its tag and sequence numbers, where the caller has not."""
        pdu.expstatsn = self.expstatsn or 0
        pdu.cmdsn = self.cmdsn
        if not pdu.immediate:
            self.cmdsn = (self.cmdsn + 1) % (1 << 32)
        return pdu

    def request(self, opcode, data=b"", **fields):
        """Send a request with the next numbers; fields win over them."""
        pdu = Pdu(opcode, data, itt=self.tag(), final=1,
                  **{"immediate": fields.pop("immediate", 0)})
        self.number(pdu)
        for name, value in fields.items():
            setattr(pdu, name, value)
        self.send(pdu)
        return pdu

    def _count(self, pdu):
        """The numbering rules for whatever a target may send."""
        advances = pdu.opcode in (P.SCSI_RSP, P.TMF_RSP, P.LOGIN_RSP, P.TEXT_RSP, P.LOGOUT_RSP,
                                  P.ASYNC, P.REJECT)
        advances |= pdu.opcode == P.NOP_IN and pdu.itt != P.NO_TAG
        advances |= pdu.opcode == P.DATA_IN and bool(pdu.has_status)
        if self.expstatsn is None:
            self.expstatsn = pdu.statsn
        if pdu.opcode != P.DATA_IN or pdu.has_status:
            check(pdu.statsn == self.expstatsn,
                  f"StatSN {pdu.statsn}, expected {self.expstatsn}, in {pdu}")
        if advances:
            self.expstatsn = (self.expstatsn + 1) % (1 << 32)
        check(not serial_less(pdu.maxcmdsn, (pdu.expcmdsn - 1) % (1 << 32)),
              f"MaxCmdSN {pdu.maxcmdsn} < ExpCmdSN {pdu.expcmdsn} - 1")
        if serial_less(self.expcmdsn, pdu.expcmdsn):
            self.expcmdsn = pdu.expcmdsn
        if serial_less(self.maxcmdsn, pdu.maxcmdsn):
            self.maxcmdsn = pdu.maxcmdsn

    # Receiving

    def dispatch(self, timeout=None):
        """Take one PDU: NOP-Ins are answered, data and status go to their tasks. Returns it."""
        pdu = self.receive(timeout)
        self._count(pdu)
        if pdu.opcode == P.NOP_IN and pdu.ttt != P.NO_TAG:
            self.nops_seen += 1
            if self.answer_nops:
                self.send(self.number(Pdu(P.NOP_OUT, immediate=1, final=1, itt=P.NO_TAG,
                                          ttt=pdu.ttt, lun_field=pdu.lun_field)))
        elif pdu.opcode in (P.DATA_IN, P.R2T, P.SCSI_RSP):
            check(pdu.itt in self.tasks, f"{pdu} for a task that is not there")
            task = self.tasks[pdu.itt]
            task.take(pdu)
            if task.done:
                del self.tasks[pdu.itt]
        else:
            self.others.append(pdu)
        return pdu

    def until(self, condition, timeout=None):
        """Dispatch until condition() holds."""
        deadline = time.monotonic() + (self.timeout if timeout is None else timeout)
        while not condition():
            self.dispatch(max(0, deadline - time.monotonic()))

    def expect(self, opcode, itt=None, timeout=None):
        """The first PDU of that opcode (and tag), here or to come, with no Reject before it."""
        found = []

        def here():
            for pdu in self.others:
                if pdu.opcode == opcode and itt in (None, pdu.itt):
                    found.append(pdu)
                    return True
                check(pdu.opcode != P.REJECT, f"rejected with reason {pdu.reject_reason:#x}")
            return False

        self.until(here, timeout)
        self.others.remove(found[0])
        return found[0]

    # Login

    def login_request(self, csg=STAGE_OPERATIONAL, nsg=STAGE_FULL, transit=1, keys=(), **fields):
        """A login request, not yet sent."""
        data = keys if isinstance(keys, bytes) else encode_text(keys)
        pdu = Pdu(P.LOGIN, data, immediate=1, csg=csg, nsg=nsg if transit else 0, transit=transit,
                  isid=self.isid, tsih=self.tsih, cid=self.cid, itt=self.itt, cmdsn=self.cmdsn,
                  expstatsn=self.expstatsn or 0)
        for name, value in fields.items():
            setattr(pdu, name, value)
        return pdu

    def login_exchange(self, *args, **fields):
        """Send a login request and take its response, of whatever status."""
        request = self.login_request(*args, **fields)
        self.send(request)
        pdu = self.receive()
        check(pdu.opcode == P.LOGIN_RSP, f"{pdu} instead of a login response")
        check(pdu.itt == request.itt, "login response with another tag")
        if pdu.login_status == 0:
            self._count(pdu)
            check(pdu.isid == request.isid, "login response with another ISID")
            check(pdu.csg == request.csg, "login response in another stage")
            check(pdu.version_active == 0 and pdu.version_max == 0, "version is not 0")
            check(not (pdu.transit and pdu.cont), "T and C bits together")
            check(not pdu.transit or request.transit, "T bit unasked")
        return pdu

    def names(self, discovery=False):
        if discovery:
            return {"InitiatorName": self.initiator, "SessionType": "Discovery"}
        return {"InitiatorName": self.initiator, "SessionType": "Normal", "TargetName": self.target}

    def login(self, discovery=False, offer=None, csg=STAGE_OPERATIONAL, **keys):
        """Log in. keys are offered beside offer (if None: OFFER); the value None leaves one out."""
        wanted = dict(self.names(discovery))
        if csg == STAGE_SECURITY:
            pdu = self.login_exchange(csg, STAGE_OPERATIONAL, keys={**wanted, "AuthMethod": "None"})
            if pdu.login_status:
                raise LoginFailed(pdu.login_status)
            wanted = {}
        if offer is None:
            offer = {"HeaderDigest": "None", "DataDigest": "None"} if discovery else OFFER
        wanted.update(offer)
        wanted.setdefault("MaxRecvDataSegmentLength", "262144")
        wanted.update(keys)
        wanted = {key: str(value) for key, value in wanted.items() if value is not None}
        pdu = self._negotiate(wanted)
        check(pdu.tsih != 0, "TSIH 0 after login")
        self.tsih = pdu.tsih
        self.maxcmdsn, self.expcmdsn = pdu.maxcmdsn, pdu.expcmdsn
        check(pdu.expcmdsn == self.cmdsn, "ExpCmdSN moved during login")
        self.apply()
        return self

    def _negotiate(self, offered):
        todo, answers = encode_text(offered), {}
        for _ in range(64):
            # The segment both sides accept during login is 8192.
            piece, todo = todo[:8192], todo[8192:]
            pdu = self.login_exchange(transit=0 if todo else 1, keys=piece, cont=1 if todo else 0)
            if pdu.login_status:
                raise LoginFailed(pdu.login_status)
            for key, value in decode_text(pdu.data):
                check(key not in answers, f"{key} twice")
                answers[key] = value
                if key not in offered and key not in DECLARED:
                    todo += encode_text({key: self._answer(key, value)})
            if pdu.transit:
                break
        else:
            raise AssertionError("login does not end")
        self.answers = answers
        if "MaxRecvDataSegmentLength" in answers:
            self.target_segment = int(answers["MaxRecvDataSegmentLength"])
        self.own_segment = int(offered.get("MaxRecvDataSegmentLength", 8192))
        self.params.update({key: value for key, value in answers.items()
                            if value not in ("Irrelevant", "Reject", "NotUnderstood")})
        return pdu

    def _answer(self, key, value):
        """What this initiator says to a key the target offers by itself."""
        ours = DEFAULTS.get(key)
        if ours is None:
            return "NotUnderstood"
        if key in ("InitialR2T", "DataPDUInOrder", "DataSequenceInOrder"):
            return "Yes" if "Yes" in (ours, value) else "No"
        if key == "ImmediateData":
            return value
        if key == "DefaultTime2Wait":
            return str(max(int(ours), int(value)))
        if value.isdigit():
            return str(min(int(ours), int(value)))
        return "None"

    def apply(self):
        """Go by what was negotiated."""
        self.header_digest = self.params["HeaderDigest"] == "CRC32C"
        self.data_digest = self.params["DataDigest"] == "CRC32C"

    def value(self, key):
        return int(self.params[key])

    # Requests other than SCSI commands

    def ping(self, data=b"", immediate=1, timeout=None, **fields):
        """NOP-Out that asks for an answer; returns it after checking the echo."""
        pdu = self.request(P.NOP_OUT, data, immediate=immediate, ttt=P.NO_TAG, **fields)
        answer = self.expect(P.NOP_IN, pdu.itt, timeout)
        check(answer.ttt == P.NO_TAG, "ping answered with a question")
        check(answer.data == data[:self.own_segment], "ping data came back changed")
        return answer

    def text(self, keys, timeout=None):
        """A text negotiation to its end, target's continuations included; the (key, value) list."""
        data, ttt, itt = encode_text(keys), P.NO_TAG, None
        answer = b""
        for _ in range(100000):
            fields = {} if itt is None else {"itt": itt}
            pdu = self.request(P.TEXT, data, ttt=ttt, immediate=0, **fields)
            itt, data = pdu.itt, b""
            reply = self.expect(P.TEXT_RSP, itt, timeout)
            check(reply.data_len <= self.own_segment, "text longer than we can take")
            answer += reply.data
            if reply.final:
                check(not reply.cont, "F and C bits together")
                return decode_text(answer)
            check(reply.ttt != P.NO_TAG, "text continues without a transfer tag")
            ttt = reply.ttt
        raise AssertionError("text negotiation does not end")

    def discover(self, value="All"):
        """SendTargets: {name: [address, ...]} in the target's order."""
        found, name = {}, None
        for key, text in self.text([("SendTargets", value)]):
            if key == "TargetName":
                check(text not in found, f"{text} listed twice")
                name = text
                found[name] = []
            elif key == "TargetAddress":
                check(name is not None, "address before any name")
                found[name].append(text)
            else:
                raise AssertionError(f"unexpected {key}={text} in discovery")
        return found

    def tmf(self, function, lun=0, timeout=None, **fields):
        """A task management function; its response code."""
        pdu = self.request_tmf(function, lun, **fields)
        return self.expect(P.TMF_RSP, pdu.itt, timeout).response

    def request_tmf(self, function, lun=0, **fields):
        fields.setdefault("ref_tag", P.NO_TAG)
        fields.setdefault("immediate", 1)
        return self.request(P.TMF, function=function, final=1, lun=lun, **fields)

    def logout(self, reason=0, timeout=None, **fields):
        """Log out; the response, after which the target must close."""
        pdu = self.request(P.LOGOUT, reason=reason, final=1, cid=self.cid, immediate=1, **fields)
        answer = self.expect(P.LOGOUT_RSP, pdu.itt, timeout)
        if answer.response == 0:
            self.expect_closed(timeout)
            self.close()
        return answer
