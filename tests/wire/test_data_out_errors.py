#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
# timeout: 300
"""Data-Out that breaks a rule ends its command with a reason, never GOOD and never a hang."""

import os
import time

import pdu as P
import scsi
from harness import case, main
from iscsi import Closed, check

LIMIT = 8       # seconds, where data_out_timeout is 1
LENGTH = 16384
ASKED = {"InitialR2T": "Yes", "ImmediateData": "No", "MaxBurstLength": 8192,
         "FirstBurstLength": 8192}


def ends_with_a_reason(session, task, end=LIMIT):
    """CHECK CONDITION, or the connection closed. Rejects before that are as good."""
    started = time.monotonic()
    try:
        session.until(lambda: task.done, end)
        check(task.status == scsi.CHECK_CONDITION, f"ended with {task.outcome()}")
        check(task.sense[:2] == "0B", f"sense {task.sense}, not ABORTED COMMAND")
        session.others.clear()
        session.ping()
    except Closed:
        pass
    check(time.monotonic() - started < end, "a hang")


def is_intact(t, lba, old):
    with t.login() as session:
        check(scsi.read(session, lba, LENGTH) == old, "the command was carried out")


def asked(t, lba, **keys):
    """A session with a write of LENGTH at lba waiting for data, and what was there before."""
    session = t.login(**{**ASKED, **keys})
    old = os.urandom(LENGTH)
    scsi.write(session, lba, old)
    task = scsi.start(session, scsi.write10(lba, LENGTH // 512), out=os.urandom(LENGTH),
                      manual=True)
    session.until(lambda: task.r2ts)
    r2t = task.r2ts[0]
    check((r2t.offset, r2t.desired) == (0, 8192), repr(r2t))
    return session, task, r2t, old


@case(each=[1, 2, 0xFFFFFFFF])
def a_wrong_first_datasn(t, number):
    session, task, r2t, _ = asked(t, 0)
    task.send_segment(0, 8192, r2t.ttt, number, final=1)
    ends_with_a_reason(session, task)


@case(each=[0, 2, 7])
def a_wrong_second_datasn(t, number):
    session, task, r2t, _ = asked(t, 0)
    task.send_segment(0, 4096, r2t.ttt, 0)
    task.send_segment(4096, 4096, r2t.ttt, number, final=1)
    ends_with_a_reason(session, task)


@case(each=[512, 1, 8192, 0x7FFFFFFF, 0xFFFFFFFF])
def a_wrong_first_offset(t, offset):
    session, task, r2t, _ = asked(t, 0)
    task.send_segment(0, 8192, r2t.ttt, 0, final=1, offset=offset)
    ends_with_a_reason(session, task)


@case(each=[0, 2048, 4608, 8192])
def a_wrong_second_offset(t, offset):
    session, task, r2t, _ = asked(t, 0)
    task.send_segment(0, 4096, r2t.ttt, 0)
    task.send_segment(4096, 4096, r2t.ttt, 1, final=1, offset=offset)
    ends_with_a_reason(session, task)


@case(each=[8193, 8196, 8704, 16384, 65536])
def more_than_was_asked_for(t, length):
    session, task, r2t, _ = asked(t, 0)
    task.send_segment(0, length, r2t.ttt, 0, final=1, data=os.urandom(length))
    ends_with_a_reason(session, task)


@case(each=[0, 512, 4096, 8188, 8191])
def f_before_all_was_sent(t, length):
    session, task, r2t, _ = asked(t, 0)
    task.send_segment(0, length, r2t.ttt, 0, final=1)
    ends_with_a_reason(session, task)


@case
def all_sent_and_no_f(t):
    session, task, r2t, _ = asked(t, 0)
    task.send_segment(0, 8192, r2t.ttt, 0, final=0)
    ends_with_a_reason(session, task)


@case
def nothing_behind_the_first_half(t):
    session, task, r2t, old = asked(t, 64)
    task.send_segment(0, 4096, r2t.ttt, 0, final=0)
    ends_with_a_reason(session, task)
    check(task.done or session.buffer == b"", "half a PDU")
    with t.login() as other:
        # Whole blocks of the part that came may have been written, none of the rest.
        check(scsi.read(other, 64, LENGTH)[4096:] == old[4096:], "bytes that were never sent")


@case(each=["unknown", "reserved", "zero"])
def a_wrong_transfer_tag(t, what):
    session, task, r2t, _ = asked(t, 0)
    ttt = {"unknown": r2t.ttt ^ 0x00FF00FF, "reserved": P.NO_TAG, "zero": 0}[what]
    if ttt == r2t.ttt:
        ttt = 0x13572468
    task.send_segment(0, 8192, ttt, 0, final=1)
    ends_with_a_reason(session, task)


@case
def an_unknown_task_tag_hurts_nobody(t):
    session, task, r2t, _ = asked(t, 0)
    task.send_segment(0, 512, r2t.ttt, 0, final=1, itt=0x0BADF00D)
    try:
        task.answer(r2t)
        session.until(lambda: len(task.r2ts) == 2 or task.done)
        if not task.done:
            task.answer(task.r2ts[1])
            task.wait()
        task.good()
    except Closed:
        pass
    t.login().close()


UNASKED = [("InitialR2T_forbids_it", {"InitialR2T": "Yes", "ImmediateData": "No"}, 0, 4096),
           ("beyond_FirstBurst", {"InitialR2T": "No", "ImmediateData": "No"}, 0, 16384),
           ("immediate_and_beyond", {"InitialR2T": "No", "ImmediateData": "Yes"}, 4096, 8192)]


@case(each=UNASKED)
def unsolicited_data(t, _what, keys, immediate, more):
    with t.login(**{**ASKED, **keys}) as session:
        old = os.urandom(LENGTH)
        scsi.write(session, 128, old)
        new = os.urandom(LENGTH)
        task = scsi.start(session, scsi.write10(128, LENGTH // 512), out=new, unsolicited=False,
                          manual=True, final=0, data=new[:immediate])
        task.send_segment(immediate, more, P.NO_TAG, 0, final=1)
        ends_with_a_reason(session, task)
    with t.login() as session:
        check(scsi.read(session, 128, LENGTH) != new, "the command was carried out")


@case(each=[("forbidden", "No", 512), ("beyond_FirstBurst", "Yes", 8704)])
def immediate_data(t, _what, immediate, length):
    with t.login(**{**ASKED, "ImmediateData": immediate}) as session:
        task = scsi.start(session, scsi.write10(0, LENGTH // 512), out=bytes(LENGTH), manual=True,
                          unsolicited=False, data=os.urandom(length))
        ends_with_a_reason(session, task)


@case
def immediate_data_beyond_the_expected_length(t):
    with t.login(InitialR2T="Yes", ImmediateData="Yes") as session:
        task = scsi.start(session, scsi.write10(0, 8), out=bytes(512), data=bytes(4096),
                          manual=True)
        try:
            task.wait(LIMIT)
            check(task.status == scsi.CHECK_CONDITION, task.outcome())
        except Closed:
            pass


@case
def a_segment_longer_than_declared(t):
    with t.login(MaxBurstLength=16776192, FirstBurstLength=512) as session:
        if session.target_segment > 4 << 20:
            return      # nothing longer to send within reason
        length = session.target_segment + 4096
        task = scsi.start(session, scsi.write10(0, length // 512), out=bytes(length), manual=True,
                          unsolicited=False, final=1)
        session.until(lambda: task.r2ts or task.done)
        task.send_segment(0, length, task.r2ts[0].ttt, 0, final=1)
        try:
            ends_with_a_reason(session, task)
        except (ConnectionError, BrokenPipeError):
            pass


@case
def data_for_a_read(t):
    with t.login() as session:
        task = scsi.start(session, scsi.read10(0, 8), read=4096)
        task.send_segment(0, 512, P.NO_TAG, 0, data=bytes(512), final=1)
        try:
            task.wait(LIMIT)
            session.others.clear()
            session.ping()
        except Closed:
            pass


@case
def after_all_of_this_others_are_well(t):
    with t.login() as session:
        data = os.urandom(1 << 20)
        scsi.write(session, 0, data)
        check(scsi.read(session, 0, len(data)) == data, "data differ")


if __name__ == "__main__":
    main(target={"data_out_timeout": "1s"})
