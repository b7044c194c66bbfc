#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
# timeout: 300
"""Every combination of the keys that govern Data-Out writes and reads back random data."""

import itertools
import os

import scsi
from harness import case, main
from iscsi import check
from target import IQN

LENGTHS = [512, 1024, 4096, 8192, 8704, 65536, 66048, 262144, 262656, 1 << 20]
BURSTS = [(512, 512), (512, 4096), (4096, 8192), (8192, 8192), (65536, 65536), (65536, 262144),
          (262144, 1 << 20)]
COMBINATIONS = [(f"InitialR2T={r2t}", f"ImmediateData={immediate}", f"FirstBurst={first}",
                 f"MaxBurst={burst}", f"R2Ts={r2ts}")
                for r2t, immediate, (first, burst), r2ts
                in itertools.product(("Yes", "No"), ("Yes", "No"), BURSTS, (1, 4))]


@case(each=COMBINATIONS)
def a_write_comes_back(t, *combination):
    r2t, immediate, first, burst, r2ts = (text.partition("=")[2] for text in combination)
    with t.login(InitialR2T=r2t, ImmediateData=immediate, FirstBurstLength=first,
                 MaxBurstLength=burst, MaxOutstandingR2T=r2ts) as session:
        check(session.params["InitialR2T"] == "Yes" or r2t == "No", "InitialR2T is not OR")
        check(session.params["ImmediateData"] == "No" or immediate == "Yes", "ImmediateData")
        lengths = LENGTHS if int(burst) >= 4096 else LENGTHS[:7]
        for length in lengths:
            data = os.urandom(length)
            lba = 2 * lengths.index(length)
            task = scsi.start(session, scsi.write10(lba, length // 512), out=data)
            task.wait().good()
            asked = sum(r2t.desired for r2t in task.r2ts)
            sent = free(session, length)
            check(asked == length - sent, f"R2Ts for {asked} bytes, {length - sent} are due")
            check(scsi.read(session, lba, length) == data, f"{length} bytes differ")


def free(session, length):
    """How much of a write goes out without being asked for."""
    first = min(length, session.value("FirstBurstLength"))
    if session.params["InitialR2T"] == "No":
        return first
    if session.params["ImmediateData"] == "Yes":
        return min(first, session.target_segment)
    return 0


@case(each=[1, 2, 4, 8])
def outstanding_r2ts_are_bounded_and_used(t, count):
    with t.login(InitialR2T="Yes", ImmediateData="No", MaxBurstLength=4096, FirstBurstLength=4096,
                 MaxOutstandingR2T=count) as session:
        limit = session.value("MaxOutstandingR2T")
        data = os.urandom(64 << 10)
        task = scsi.start(session, scsi.write10(0, 128), out=data, manual=True)
        answered = 0
        while not task.done:
            session.dispatch()
            waiting = len(task.r2ts) - answered
            check(waiting <= limit, f"{waiting} R2Ts outstanding, {limit} allowed")
            # Answer only when no more can come, so that the limit is really reached.
            while answered < len(task.r2ts) and (len(task.r2ts) - answered == limit or
                                                 len(task.r2ts) == 16):
                task.answer(task.r2ts[answered])
                answered += 1
        task.good()
        check(scsi.read(session, 0, len(data)) == data, "data differ")


@case(each=[512, 1024, 4096, 65536])
def data_out_in_segments_of(t, segment):
    with t.login(InitialR2T="No", ImmediateData="Yes") as session:
        session.target_segment = min(segment, session.target_segment)
        data = os.urandom(300 << 10)
        scsi.write(session, 7, data)
        check(scsi.read(session, 7, len(data)) == data, "data differ")


@case(each=[512, 1000, 4096, 65536, 262144])
def data_in_in_segments_of(t, segment):
    with t.login(MaxRecvDataSegmentLength=segment) as session:
        data = os.urandom(300 << 10)
        scsi.write(session, 3, data)
        check(scsi.read(session, 3, len(data)) == data, "data differ")


@case(each=[(a, b) for a in (1, 3, 16) for b in (2, 8)])
def writes_and_reads_interleave(t, writers, readers):
    with t.login(MaxOutstandingR2T=2, MaxBurstLength=8192, FirstBurstLength=8192) as session:
        old = os.urandom(65536)
        scsi.write(session, 4096, old)
        blocks = [os.urandom(32768) for _ in range(writers)]
        tasks = []
        for number in range(max(writers, readers)):
            if number < writers:
                tasks.append(scsi.start(session, scsi.write10(64 * number, 64), out=blocks[number]))
            if number < readers:
                tasks.append(scsi.start(session, scsi.read10(4096, 128), read=65536))
        for task in tasks:
            task.wait().good()
            check(not task.pdu.read or bytes(task.received) == old, "a read got other data")
        for number, data in enumerate(blocks):
            check(scsi.read(session, 64 * number, 32768) == data, "data differ")


@case(own={"backings": {"disk": {"size": "32M", "block_size": 4096}}})
def blocks_of_4096(t):
    for keys in ({}, {"InitialR2T": "Yes", "ImmediateData": "No"}):
        with t.login(target=IQN, **keys) as session:
            for blocks in (1, 2, 17, 64):
                data = os.urandom(4096 * blocks)
                scsi.write(session, 5, data, block=4096)
                check(scsi.read(session, 5, len(data), block=4096) == data, "data differ")


if __name__ == "__main__":
    main()
