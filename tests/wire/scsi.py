# SPDX-License-Identifier: MIT
"""SCSI commands over a Session: CDBs, and a task's data in both directions.

Invariants
 1. A Task sends no byte that the negotiated keys or an R2T do not allow, unless the test
    takes its R2Ts over (manual=True).
 2. Data-In and R2Ts are checked for order, offset and length as they arrive.

Not here: connections and sequence numbers (iscsi.py).
Spec: RFC 7143 sections 4.2.5, 11.2 to 11.8; SBC-3 for the CDBs.
"""

import struct

import pdu as P
from iscsi import check
from pdu import Pdu

GOOD, CHECK_CONDITION, BUSY = 0x00, 0x02, 0x08
RESERVATION_CONFLICT, TASK_SET_FULL, TASK_ABORTED = 0x18, 0x28, 0x40
SIMPLE = 1
TEST_UNIT_READY = bytes(6)


def read10(lba, blocks):
    return struct.pack(">BBIBHB", 0x28, 0, lba, 0, blocks, 0)


def write10(lba, blocks, fua=False):
    return struct.pack(">BBIBHB", 0x2A, 8 if fua else 0, lba, 0, blocks, 0)


def inquiry(length=96, page=None):
    return struct.pack(">BBBHB", 0x12, page is not None, page or 0, length, 0)


def report_luns(length=256):
    return struct.pack(">B5xI2x", 0xA0, length)


def read_capacity16(length=32):
    return struct.pack(">BB8xIBB", 0x9E, 0x10, length, 0, 0)


class Task:
    """A SCSI command under way."""

    def __init__(self, session, pdu, out, manual):
        self.session, self.pdu, self.out, self.manual = session, pdu, out, manual
        self.itt = pdu.itt
        self.done = False
        self.status = self.response = self.sense_data = None
        self.residual = 0
        self.received = bytearray()
        self.r2ts = []
        self.data_pdus = []
        self.burst = 0
        self.datasn = 0

    def take(self, pdu):
        {P.DATA_IN: self._data_in, P.R2T: self._r2t, P.SCSI_RSP: self._response}[pdu.opcode](pdu)

    def _sequenced(self, pdu):
        check(pdu.datasn == self.datasn, f"DataSN or R2TSN {pdu.datasn}, expected {self.datasn}")
        self.datasn += 1

    def _data_in(self, pdu):
        self._sequenced(pdu)
        check(self.pdu.read, "Data-In without the R bit")
        check(pdu.offset == len(self.received), f"Data-In at {pdu.offset}, a gap or an overlap")
        check(pdu.data_len <= self.session.own_segment, "Data-In longer than we can take")
        self.received += pdu.data
        check(len(self.received) <= self.pdu.edtl, "Data-In beyond the expected length")
        self.data_pdus.append(pdu)
        self.burst += pdu.data_len
        check(self.burst <= self.session.value("MaxBurstLength"), "Data-In burst too long")
        if pdu.final:
            self.burst = 0
        if pdu.has_status:
            check(pdu.final, "status in Data-In without F")
            self._end(pdu, response=0)

    def _r2t(self, pdu):
        self._sequenced(pdu)
        check(self.pdu.write, "R2T without the W bit")
        check(pdu.ttt != P.NO_TAG, "R2T with the reserved tag")
        check(0 < pdu.desired <= self.session.value("MaxBurstLength"), "R2T length out of bounds")
        check(pdu.offset + pdu.desired <= self.pdu.edtl, "R2T beyond the expected length")
        self.r2ts.append(pdu)
        if not self.manual:
            self.answer(pdu)

    def answer(self, r2t):
        """Send the data an R2T asks for."""
        self.send_data(r2t.offset, r2t.desired, r2t.ttt, r2t.lun_field)

    def send_data(self, offset, length, ttt, lun_field=0, final=True):
        """Data-Out of a sequence, in segments of what the target takes."""
        step = self.session.target_segment
        for sn, start in enumerate(range(0, length, step)):
            size = min(step, length - start)
            self.send_segment(offset + start, size, ttt, sn, lun_field=lun_field,
                              final=final and start + size == length)

    def send_segment(self, start, size, ttt, sn=0, spoil=(), data=None, **fields):
        """One Data-Out PDU, as wrong as the caller likes."""
        data = self.out[start:start + size] if data is None else data
        pdu = Pdu(P.DATA_OUT, data, itt=self.itt, ttt=ttt, datasn=sn, offset=start,
                  expstatsn=self.session.expstatsn)
        for name, value in fields.items():
            setattr(pdu, name, value)
        self.session.send(pdu, spoil)

    def _response(self, pdu):
        # Without Data-In it is 0 by the letter of RFC 7143 section 11.4.8; some count R2Ts.
        allowed = (self.datasn,) if self.data_pdus else (0, self.datasn)
        check(pdu.expdatasn in allowed or pdu.response or pdu.status,
              f"ExpDataSN {pdu.expdatasn} after {self.datasn} PDUs")
        if pdu.data:
            length = int.from_bytes(pdu.data[:2], "big")
            check(length <= len(pdu.data) - 2, "sense length beyond the data segment")
            self.sense_data = pdu.data[2:2 + length]
        self._end(pdu, pdu.response)

    def _end(self, pdu, response):
        check(not (pdu.overflow and pdu.underflow), "overflow and underflow at once")
        self.response, self.status, self.done = response, pdu.status, True
        self.final = pdu
        if pdu.overflow:
            self.residual = pdu.residual
        elif pdu.underflow:
            self.residual = -pdu.residual
        else:
            check(pdu.residual == 0, "residual without its flag")

    def wait(self, timeout=None):
        self.session.until(lambda: self.done, timeout)
        return self

    @property
    def sense(self):
        """Key, ASC and ASCQ as in "05/24/00", or "" if the status brought none."""
        data = self.sense_data
        if not data:
            return ""
        if data[0] & 0x7F in (0x72, 0x73):
            return "%02X/%02X/%02X" % (data[1] & 15, data[2], data[3])
        return "%02X/%02X/%02X" % (data[2] & 15, data[12], data[13])

    def good(self):
        """Itself, or an AssertionError that says what the command ended with."""
        check((self.response, self.status) == (0, GOOD), f"not GOOD but {self.outcome()}")
        return self

    def outcome(self):
        if not self.done:
            return "unfinished"
        return f"response {self.response:#x} status {self.status:#04x} sense {self.sense or '-'}"


def start(session, cdb, read=0, out=None, lun=0, edtl=None, unsolicited=None, manual=False,
          spoil=(), **fields):
    """Send a SCSI command and the data that may go with it unasked.

    read: bytes expected; out: bytes to write; unsolicited: False holds back what the keys allow.
    """
    pdu = Pdu(P.SCSI_CMD, itt=session.tag(), cdb=cdb, lun=lun, attr=SIMPLE, final=1,
              read=1 if read else 0, write=0 if out is None else 1,
              immediate=fields.pop("immediate", 0))
    pdu.edtl = edtl if edtl is not None else len(out) if out is not None else read
    free = 0
    if out and unsolicited is not False:
        free = min(session.value("FirstBurstLength"), pdu.edtl, len(out))
        if session.params["ImmediateData"] == "Yes":
            pdu.data = out[:min(free, session.target_segment)]
            pdu.data_len = len(pdu.data)
        more = session.params["InitialR2T"] == "No" and len(pdu.data) < free
        pdu.final = 0 if more else 1
        free = free if more else len(pdu.data)
    session.number(pdu)
    for name, value in fields.items():
        if name == "data":
            pdu.data, pdu.data_len = value, len(value)
        else:
            setattr(pdu, name, value)
    task = Task(session, pdu, out or b"", manual)
    session.tasks[task.itt] = task
    session.send(pdu, spoil)
    if out and free > len(pdu.data) and not pdu.final:
        task.send_data(len(pdu.data), free - len(pdu.data), P.NO_TAG, pdu.lun_field)
    return task


def run(session, cdb, timeout=None, **options):
    """A SCSI command from start to end."""
    return start(session, cdb, **options).wait(timeout)


def ready(session, lun=0):
    """Use up unit attentions: TEST UNIT READY until GOOD."""
    for _ in range(16):
        task = run(session, TEST_UNIT_READY, lun=lun)
        if task.status == GOOD:
            return session
        check(task.sense[:2] == "06", f"not ready: {task.outcome()}")
    raise AssertionError("unit attentions without end")


def read(session, lba, length, block=512, **options):
    """The bytes at an LBA."""
    task = run(session, read10(lba, length // block), read=length, **options).good()
    check(len(task.received) == length, f"{len(task.received)} of {length} bytes came")
    return bytes(task.received)


def write(session, lba, data, block=512, **options):
    return run(session, write10(lba, len(data) // block), out=data, **options).good()


def verify10(lba, blocks, bytchk=1):
    return struct.pack(">BBIBHB", 0x2F, bytchk << 1, lba, 0, blocks, 0)


def write_verify10(lba, blocks, bytchk=0):
    return struct.pack(">BBIBHB", 0x2E, bytchk << 1, lba, 0, blocks, 0)


def compare_and_write(lba, blocks):
    return struct.pack(">BBQ3xBBB", 0x89, 0, lba, blocks, 0, 0)


def write_same16(lba, blocks, unmap=False, ndob=False):
    return struct.pack(">BBQIBB", 0x93, unmap << 3 | ndob, lba, blocks, 0, 0)


def unmap(ranges):
    """The CDB of an UNMAP and its parameter list."""
    listed = b"".join(struct.pack(">QI4x", lba, blocks) for lba, blocks in ranges)
    listed = struct.pack(">HH4x", len(listed) + 6, len(listed)) + listed
    return struct.pack(">B6xHB", 0x42, len(listed), 0), listed
