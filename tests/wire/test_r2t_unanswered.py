#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
"""An R2T that nobody answers ends that connection after data_out_timeout, and nothing else."""

import time

import scsi
from harness import Prompt, case, main
from iscsi import Closed, check

MIB = 1 << 20
KEYS = {"InitialR2T": "Yes", "ImmediateData": "No"}


@case
def the_connection_ends_and_others_do_not_notice(t):
    with t.login(**KEYS) as stuck, t.login() as other:
        started = time.monotonic()
        task = scsi.start(stuck, scsi.write10(0, MIB // 512), out=bytes(MIB), manual=True)
        stuck.until(lambda: task.r2ts)
        with Prompt(1) as prompt:
            while stuck.silent(0.02) and time.monotonic() - started < 10:
                prompt("a read", scsi.read, other, 4096, 4096)
                prompt("a write", scsi.write, other, 4096, b"o" * 4096)
        took = time.monotonic() - started
        try:
            stuck.expect_closed(2, allow=())
        except AssertionError:
            # Ending the command alone, with a reason, is as good.
            check(task.done and task.status == scsi.CHECK_CONDITION, "neither ended nor closed")
        check(1.9 <= took < 10, f"ended after {took:.2f} s with a time-out of 2 s")


@case(own={"target": {"data_out_timeout": "10m"}})
def the_same_initiator_logs_in_meanwhile(t):
    with t.login(**KEYS) as stuck:
        task = scsi.start(stuck, scsi.write10(0, MIB // 512), out=bytes(MIB), manual=True)
        stuck.until(lambda: task.r2ts)
        # Each of these would give up long before the time-out that they do not wait for.
        with t.login(isid=stuck.isid) as again:
            scsi.write(again, 0, b"n" * 4096)
            check(scsi.read(again, 0, 4096) == b"n" * 4096, "data differ")
        stuck.expect_closed()


@case
def slow_data_that_goes_on_is_no_timeout(t):
    with t.login(**KEYS, MaxBurstLength=65536) as session:
        data = bytes(range(256)) * 16
        task = scsi.start(session, scsi.write10(0, 8), out=data, manual=True)
        session.until(lambda: task.r2ts)
        r2t = task.r2ts[0]
        for sn in range(8):
            check(session.silent(0.4), "something came while data were on their way")
            task.send_segment(512 * sn, 512, r2t.ttt, sn, final=int(sn == 7))
        task.wait().good()
        check(scsi.read(session, 0, 4096) == data, "data differ")


@case
def empty_data_are_no_progress(t):
    with t.login(**KEYS) as session:
        task = scsi.start(session, scsi.write10(0, 8), out=bytes(4096), manual=True)
        session.until(lambda: task.r2ts)
        started = time.monotonic()
        try:
            for sn in range(200):
                task.send_segment(0, 0, task.r2ts[0].ttt, sn, final=0)
                check(session.silent(0.05), "something came")
        except (AssertionError, Closed, OSError):
            pass
        check(task.done or time.monotonic() - started < 8, "held for as long as it likes")


if __name__ == "__main__":
    main(target={"data_out_timeout": "2s"})
