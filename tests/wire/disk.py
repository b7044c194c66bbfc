# SPDX-License-Identifier: MIT
"""Another reader of Yoke's disks, from what yoke-disk(5) says and nothing else.

Bytes in, facts out; nothing is written. Shares no code with yoked but the CRC of the tests.

Spec: yoke-disk(5).
"""

import os
import struct
import uuid
from collections import namedtuple

from pdu import crc32c

SLOT = 4096
PAGE_BITS = 32512
REGIONS_MAX = 260096
MIB = 1 << 20
STATES = ["none", "in-sync", "rebuilding", "failed", "spare", "removed"]

Area = namedtuple("Area", "offset length")
Member = namedtuple("Member", "uuid state role")
Ancestor = namedtuple("Ancestor", "id forced listed")


def sealed(block, at):
    """Whether the CRC at offset AT is that of BLOCK with zeroes in its place."""
    return block[at:at + 4] == crc32c(block[:at] + bytes(4) + block[at + 4:])


class Label:
    """One label, or ValueError."""

    def __init__(self, block):
        if block[:8] != b"YOKEDISK" or not sealed(block, 12):
            raise ValueError("no label")
        (version,) = struct.unpack_from("<I", block, 8)
        if version != 1:
            raise ValueError(f"version {version}")
        self.array = uuid.UUID(bytes=block[16:32])
        self.name = block[32:96].rstrip(b"\0").decode("ascii")
        self.sequence, self.id = struct.unpack_from("<QQ", block, 96)
        self.level, self.roles, self.flags, self.own = block[112:116]
        self.chunk, self.block, count = struct.unpack_from("<III", block, 116)
        self.log_incarnation, self.created = struct.unpack_from("<Qq", block, 128)
        areas = [Area(*struct.unpack_from("<QQ", block, at)) for at in (144, 160, 176, 192)]
        self.maps, self.log, self.data = areas[:2], areas[2], areas[3]
        self.generation, self.forced = struct.unpack_from("<QQ", block, 208)
        self.members = {}
        for index in range(32):
            entry = block[256 + index * 32:][:32]
            if entry[16]:
                self.members[index] = Member(uuid.UUID(bytes=entry[:16]), STATES[entry[16]],
                                             None if entry[17] == 0xFF else entry[17])
        (lost,) = struct.unpack_from("<I", block, 224)
        rows = [struct.unpack_from("<QQ", block, 2816 + 16 * index) for index in range(lost)]
        self.lost = [(first % 512, first // 512 * 512, length) for first, length in rows]
        self.ancestors = [Ancestor(*struct.unpack_from("<QQI", block, 1280 + 24 * index))
                          for index in range(count)]

    def listed(self):
        return {index for index, member in self.members.items() if member.state == "in-sync"}


class Disk:
    """A member's file or device."""

    def __init__(self, path):
        self.path = path
        self.size = os.path.getsize(path) // SLOT * SLOT
        labels = []
        for at in (0, SLOT, self.size - 2 * SLOT, self.size - SLOT):
            try:
                labels.append(Label(self.bytes(at, SLOT)))
            except ValueError:
                pass
        self.label = max(labels, key=lambda label: label.sequence, default=None)

    def bytes(self, offset, length):
        with open(self.path, "rb") as image:
            image.seek(offset)
            return image.read(length)

    def member(self):
        return self.label.members[self.label.own]


def deciding(disks):
    """(the label that decides, the disks by index that hold everything); ValueError: two do."""
    table = {}          # id: (its ancestors' ids, whom it lists, the label if a disk carries it)
    for disk in disks:
        label, before = disk.label, []
        for ancestor in label.ancestors:
            listed = {index for index in range(32) if ancestor.listed >> index & 1}
            table.setdefault(ancestor.id, (list(before), listed))
            before.append(ancestor.id)
        table[label.id] = (before, label.listed())

    def carries(disk, wanted):
        return disk.label.id == wanted or wanted in [a.id for a in disk.label.ancestors]
    complete = [wanted for wanted, (_, listed) in table.items()
                if all(carries(disk, wanted) for disk in disks if disk.label.own in listed)]
    deepest = [wanted for wanted in complete
               if not any(wanted in table[other][0] for other in complete)]
    if len(deepest) != 1:
        raise ValueError(f"{len(deepest)} labels decide")
    decider = deepest[0]
    label = next((disk.label for disk in disks if disk.label.id == decider), None)
    return label, {disk.label.own: disk for disk in disks if disk.label.own in table[decider][1]}


def region_bytes(label):
    size = MIB
    while -(-label.data.length // size) > REGIONS_MAX:
        size *= 2
    return size


def map_tag(label):
    first, second = struct.unpack("<QQ", label.array.bytes)
    return first ^ second


def map_of(disk):
    """The numbers of the regions that DISK says may differ; None in the place of those of a page
    that it does not have."""
    label, bits = disk.label, []
    tag = map_tag(label)
    regions = -(-label.data.length // region_bytes(label))
    for page in range(-(-regions // PAGE_BITS)):
        copies = []
        for area in label.maps:
            block = disk.bytes(area.offset + page * SLOT, SLOT)
            number, sequence, owner = struct.unpack_from("<IQQ", block, 12)
            if block[:8] == b"YOKEMAP1" and sealed(block, 8) and (number, owner) == (page, tag):
                copies.append((sequence, block[32:]))
        newest = max(copies, default=(0, None), key=lambda copy: copy[0])[1]
        for index in range(min(PAGE_BITS, regions - page * PAGE_BITS)):
            bits.append(None if newest is None else bool(newest[index // 8] >> index % 8 & 1))
    return bits


def doubtful(disks):
    """The regions that may differ between DISKS, which hold everything."""
    return [index for index, bits in enumerate(zip(*[map_of(disk) for disk in disks]))
            if any(bits) or all(bit is None for bit in bits)]


# ---- data

def place(label, offset):
    """(roles that hold byte OFFSET of the array, where in their data)."""
    if label.level == 1:
        return list(range(label.roles)), offset
    chunk, within = divmod(offset, label.chunk)
    if label.level == 0:
        return [chunk % label.roles], chunk // label.roles * label.chunk + within
    if label.level == 5:
        stripe, column = divmod(chunk, label.roles - 1)
        return [column_role(label, stripe, column)], stripe * label.chunk + within
    pairs = label.roles // 2
    pair = chunk % pairs
    return [2 * pair, 2 * pair + 1], chunk // pairs * label.chunk + within


def parity_role(label, stripe):
    return label.roles - 1 - stripe % label.roles


def column_role(label, stripe, column):
    return (parity_role(label, stripe) + 1 + column) % label.roles


def read(label, holders, offset, length):
    """LENGTH bytes (inside a chunk) of the array, as each of HOLDERS that has them says."""
    roles, at = place(label, offset)
    return [disk.bytes(label.data.offset + at, length) for index, disk in sorted(holders.items())
            if label.members[index].role in roles]


def xor(blocks):
    total = 0
    for block in blocks:
        total ^= int.from_bytes(block, "little")
    return total.to_bytes(len(blocks[0]), "little")


class Five:
    """The data areas of level 5 by role, after what the logs of HOLDERS say."""

    def __init__(self, label, holders):
        self.label, self.roles, self.records = label, {}, 0
        for index, disk in holders.items():
            self.roles[label.members[index].role] = bytearray(
                disk.bytes(label.data.offset, label.data.length))
        for disk in holders.values():
            for record in log_of(disk):
                self.apply(record)

    def apply(self, record):
        self.records += 1
        parity = parity_role(self.label, record.stripe)
        if record.intent:
            others = [role for role in range(self.label.roles) if role != parity]
            if all(role in self.roles for role in others):
                self.put(record, parity, record.start, xor(
                    [self.get(record, role, record.start, record.end) for role in others]))
            return
        at = record.end - record.start
        self.put(record, parity, record.start, record.payload[:at])
        for column, start, end in record.spans:
            self.put(record, column_role(self.label, record.stripe, column), start,
                     record.payload[at:at + end - start])
            at += end - start

    def get(self, record, role, start, end):
        base = record.stripe * self.label.chunk
        return bytes(self.roles[role][base + start:base + end])

    def put(self, record, role, start, block):
        if role in self.roles:
            base = record.stripe * self.label.chunk + start
            self.roles[role][base:base + len(block)] = block

    def read(self, offset, length, without=None):
        """As the member in its role says, or, WITHOUT that role, as the others do."""
        (role,), at = place(self.label, offset)
        if role != without and role in self.roles:
            return bytes(self.roles[role][at:at + length])
        return xor([bytes(self.roles[other][at:at + length])
                    for other in range(self.label.roles) if other != role])

    def torn(self):
        """Stripes whose parity is not that of their data."""
        chunk, stripes = self.label.chunk, self.label.data.length // self.label.chunk
        return {stripe for stripe in range(stripes)
                if any(xor([bytes(area[stripe * chunk:(stripe + 1) * chunk])
                            for area in self.roles.values()]))}


# ---- the log

Record = namedtuple("Record", "sequence batch attempt tail stripe start end intent spans payload")


def record_at(area, at, label, tag):
    """The sound record at AT of the log's bytes, or None."""
    head = area[at:at + label.block]
    if head[:8] != b"YOKEREDO" or struct.unpack_from("<IQQ", head, 12) != \
       (1, tag, label.log_incarnation):
        return None
    sequence, batch, attempt, tail, stripe = struct.unpack_from("<QQQQQ", head, 32)
    start, end, flags, count = struct.unpack_from("<IIII", head, 72)
    spans = [struct.unpack_from("<III", head, 88 + 12 * index) for index in range(min(count, 15))]
    length = 0 if flags & 1 else end - start + sum(span[2] - span[1] for span in spans)
    whole = area[at:at + label.block + length]
    if not sealed(whole, 8):
        return None
    return Record(sequence, batch, attempt, tail, stripe, start, end, bool(flags & 1), spans,
                  whole[label.block:])


def log_of(disk):
    """The records that are to be written in their place, in their order."""
    label, found = disk.label, {}
    area = disk.bytes(label.log.offset, label.log.length)
    at, tag = 0, map_tag(label)
    while at + label.block <= len(area):
        record = record_at(area, at, label, tag)
        if record and (record.sequence not in found or
                       found[record.sequence].attempt < record.attempt):
            found[record.sequence] = record
        at += label.block + (len(record.payload) if record else 0)
    follow = set()
    for sequence in sorted(found):
        record, before = found[sequence], found.get(sequence - 1)
        if sequence - 1 not in follow:
            before = None
        if sequence == record.batch:
            follows = before is None or before.attempt <= record.attempt
        else:
            follows = before is not None and (before.batch, before.attempt) == \
                (record.batch, record.attempt)
        if follows:
            follow.add(sequence)
    if not follow:
        return []
    first = last = max(follow)
    while first - 1 in follow and first - 1 >= found[last].tail:
        first -= 1
    return [found[sequence] for sequence in range(first, last + 1)]
