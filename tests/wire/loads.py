# SPDX-License-Identifier: MIT
"""What is asked of a target where its costs are counted."""

import os

import scsi
from iscsi import check

DEPTH = 32
ROUNDS = 64
COMMANDS = DEPTH * ROUNDS
SPAN = 16 << 20


def reads(session, length, rounds=ROUNDS, lun=0, step=4096):
    """Bursts of DEPTH reads, each of which arrives at once, STEP bytes apart over SPAN bytes."""
    places = (SPAN - length) // step + 1
    for number in range(rounds):
        with session.one_send():
            tasks = [scsi.start(session, scsi.read10((number * DEPTH + i) % places * step // 512,
                                                     length // 512), lun=lun, read=length)
                     for i in range(DEPTH)]
        for task in tasks:
            check(len(task.wait().good().received) == length, "a short read")


def writes(session, length, rounds=ROUNDS):
    data = os.urandom(length)
    for number in range(rounds):
        tasks = [scsi.start(session, scsi.write10((number * DEPTH + i) * 8, length // 512),
                            out=data) for i in range(DEPTH)]
        for task in tasks:
            task.wait().good()


LOADS = {"reads": reads, "writes": writes}
