# SPDX-License-Identifier: MIT
"""A load that checks itself: stamped blocks written and read back, all the while.

Each 4 KiB block carries its own place and the number of its write; a read must return the number
of the last write that was answered GOOD, since one Load is the only writer of its range.

Not here: what goes on meanwhile (the test).
"""

import random
import struct
import threading

import scsi
from iscsi import check

BLOCK = 4096
DEPTH = 8


class Load(threading.Thread):
    """Runs over [first, first + blocks) of a LUN, in units of 4 KiB, until finish()."""

    def __init__(self, session, lun=0, first=0, blocks=512, seed=1):
        super().__init__(daemon=True)
        self.session, self.lun, self.first, self.blocks = session, lun, first, blocks
        self.random = random.Random(seed)
        self.written = {}       # the last write that was answered GOOD
        self.sent = {}
        self.rounds = 0
        self.error = None
        self.ending = threading.Event()

    def stamp(self, block, number):
        return struct.pack(">QQ", block, number) * (BLOCK // 16)

    def _round(self):
        """DEPTH writes at once, then DEPTH reads of anything written so far."""
        number = self.rounds + 1
        places = self.random.sample(range(self.first, self.first + self.blocks), DEPTH)
        self.sent.update(dict.fromkeys(places, number))
        tasks = [scsi.start(self.session, scsi.write10(place * 8, 8), lun=self.lun,
                            out=self.stamp(place, number)) for place in places]
        for place, task in zip(places, tasks):
            task.wait().good()
            self.written[place] = number
        places = self.random.sample(sorted(self.written), min(DEPTH, len(self.written)))
        tasks = [scsi.start(self.session, scsi.read10(place * 8, 8), lun=self.lun, read=BLOCK)
                 for place in places]
        for place, task in zip(places, tasks):
            data = bytes(task.wait().good().received)
            check(data == self.stamp(place, self.written[place]),
                  f"block {place} does not hold write {self.written[place]}")
        self.rounds = number

    def run(self):
        try:
            while not self.ending.is_set():
                self._round()
        except Exception as error:      # shown by finish(), in the test's own thread
            self.error = error

    def finish(self):
        """End it; everything it wrote is read once more."""
        self.ending.set()
        self.join(30)
        check(not self.is_alive(), "the load hangs")
        if self.error:
            raise AssertionError(f"under load: {self.error}") from self.error
        check(self.rounds > 0, "the load never ran")
        for place, number in self.written.items():
            data = scsi.read(self.session, place * 8, BLOCK, lun=self.lun)
            check(data == self.stamp(place, number), f"block {place} lost write {number}")
