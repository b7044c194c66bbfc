# SPDX-License-Identifier: MIT
"""iSCSI PDUs as bytes: every header field readable and writable, nothing checked.

Invariants
 1. A Pdu never refuses a value that fits its field: tests exist to send nonsense.
 2. DataSegmentLength and TotalAHSLength follow the payload unless the caller sets them.

Not here: sockets and sequence numbers (iscsi.py).
Spec: RFC 7143 section 11; digests, section 13.1 and appendix A.
"""

import struct

NOP_OUT, SCSI_CMD, TMF, LOGIN, TEXT, DATA_OUT, LOGOUT, SNACK = 0, 1, 2, 3, 4, 5, 6, 0x10
NOP_IN, SCSI_RSP, TMF_RSP, LOGIN_RSP, TEXT_RSP, DATA_IN, LOGOUT_RSP = range(0x20, 0x27)
R2T, ASYNC, REJECT = 0x31, 0x32, 0x3F
NO_TAG = 0xFFFFFFFF
OPCODE_NAMES = {
    NOP_OUT: "NOP-Out", SCSI_CMD: "SCSI Command", TMF: "Task Management", LOGIN: "Login",
    TEXT: "Text", DATA_OUT: "Data-Out", LOGOUT: "Logout", SNACK: "SNACK", NOP_IN: "NOP-In",
    SCSI_RSP: "SCSI Response", TMF_RSP: "Task Management Response", LOGIN_RSP: "Login Response",
    TEXT_RSP: "Text Response", DATA_IN: "Data-In", LOGOUT_RSP: "Logout Response", R2T: "R2T",
    ASYNC: "Async Message", REJECT: "Reject",
}


def _crc_table():
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        yield byte


CRC_TABLE = tuple(_crc_table())


def crc32c(data):
    """The digest of data as it goes on the wire, four bytes."""
    crc, table = 0xFFFFFFFF, CRC_TABLE
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return struct.pack("<I", crc ^ 0xFFFFFFFF)


def pad(data):
    return bytes(data) + bytes(-len(data) % 4)


class Field:
    """A big-endian number of the header, or with mask some bits of it."""

    def __init__(self, offset, size=1, mask=None):
        self.span = slice(offset, offset + size)
        self.size = size
        self.mask = mask or (1 << 8 * size) - 1
        self.shift = (self.mask & -self.mask).bit_length() - 1

    def __get__(self, pdu, owner=None):
        if pdu is None:
            return self
        return (int.from_bytes(pdu.bhs[self.span], "big") & self.mask) >> self.shift

    def __set__(self, pdu, value):
        word = int.from_bytes(pdu.bhs[self.span], "big") & ~self.mask
        word |= int(value) << self.shift & self.mask
        pdu.bhs[self.span] = word.to_bytes(self.size, "big")


class Pdu:
    """A 48-byte basic header with its additional headers and its data segment.

    Several names share an offset: which of them means something depends on the opcode.
    """

    opcode = Field(0, mask=0x3F)
    immediate = Field(0, mask=0x40)
    flags = Field(1)
    final = Field(1, mask=0x80)
    ahs_len = Field(4)
    data_len = Field(5, 3)
    lun_field = Field(8, 8)
    itt = Field(16, 4)
    ttt = Field(20, 4)
    # requests
    cmdsn = Field(24, 4)
    expstatsn = Field(28, 4)
    # responses
    statsn = Field(24, 4)
    expcmdsn = Field(28, 4)
    maxcmdsn = Field(32, 4)
    # SCSI Command: flags, expected length, CDB (see also the cdb property)
    read = Field(1, mask=0x40)
    write = Field(1, mask=0x20)
    attr = Field(1, mask=0x07)
    edtl = Field(20, 4)
    # SCSI Response and Data-In
    response = Field(2)
    status = Field(3)
    has_status = Field(1, mask=0x01)
    acknowledge = Field(1, mask=0x40)
    overflow = Field(1, mask=0x04)
    underflow = Field(1, mask=0x02)
    residual = Field(44, 4)
    expdatasn = Field(36, 4)
    # Data-In, Data-Out, R2T, SNACK
    datasn = Field(36, 4)
    offset = Field(40, 4)
    desired = Field(44, 4)
    # Login and Text
    transit = Field(1, mask=0x80)
    cont = Field(1, mask=0x40)
    csg = Field(1, mask=0x0C)
    nsg = Field(1, mask=0x03)
    version_max = Field(2)
    version_min = Field(3)
    version_active = Field(3)
    isid = Field(8, 6)
    tsih = Field(14, 2)
    cid = Field(20, 2)
    login_status = Field(36, 2)
    # Task Management
    function = Field(1, mask=0x7F)
    ref_tag = Field(20, 4)
    refcmdsn = Field(32, 4)
    # Logout, Reject, Async
    reason = Field(1, mask=0x7F)
    reject_reason = Field(2)
    time2wait = Field(40, 2)
    time2retain = Field(42, 2)
    event = Field(36)
    parameters = Field(38, 6)

    def __init__(self, opcode, data=b"", ahs=b"", **fields):
        self.bhs = bytearray(48)
        self.ahs = bytes(ahs)
        self.data = bytes(data)
        self.opcode = opcode
        self.data_len = len(self.data)
        self.ahs_len = len(pad(self.ahs)) // 4
        for name, value in fields.items():
            assert hasattr(type(self), name), f"no PDU field {name}"
            setattr(self, name, value)

    @classmethod
    def of_header(cls, header):
        pdu = cls(0)
        pdu.bhs[:] = header
        return pdu

    @property
    def lun(self):
        """The LUN, of peripheral or flat addressing."""
        return self.lun_field >> 48 & 0x3FFF

    @lun.setter
    def lun(self, number):
        self.lun_field = (number if number < 256 else 0x4000 | number) << 48

    @property
    def cdb(self):
        return bytes(self.bhs[32:48])

    @cdb.setter
    def cdb(self, cdb):
        self.bhs[32:48] = cdb[:16].ljust(16, b"\0")

    def encode(self, header_digest=False, data_digest=False, spoil=()):
        """The bytes to send. spoil names the digests to get wrong: "header", "data"."""
        head = bytes(self.bhs) + pad(self.ahs)
        body = pad(self.data)
        if header_digest:
            head += _digest(head, "header" in spoil)
        if data_digest and body:
            body += _digest(body, "data" in spoil)
        return head + body

    def __repr__(self):
        name = OPCODE_NAMES.get(self.opcode, f"opcode {self.opcode:#x}")
        return f"<{name} {self.bhs.hex(' ', 4)} data={len(self.data)}>"


def _digest(data, wrong):
    digest = crc32c(data)
    return bytes([digest[0] ^ 1]) + digest[1:] if wrong else digest


def encode_text(keys):
    """Text of a dict, or of a list of pairs where order or repetition matters; None is left out."""
    pairs = keys.items() if isinstance(keys, dict) else keys
    return b"".join(f"{key}={value}".encode() + b"\0" for key, value in pairs if value is not None)


def decode_text(data):
    """The list of (key, value) of a text segment."""
    pairs = []
    for item in bytes(data).split(b"\0"):
        if item:
            key, equals, value = item.decode("utf-8", "replace").partition("=")
            assert equals, f"target sent text without '=': {item!r}"
            pairs.append((key, value))
    return pairs
