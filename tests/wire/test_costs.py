#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
"""What a command costs in counts, which no noise moves: system calls, copies, allocations."""

import mmap
import os
import tempfile

import scsi
from harness import Skip, case, main
from iscsi import check
from loads import COMMANDS, LOADS, reads
from target import BUILD, Target

# Allocations that are not a command's, nor a turn's (there are ROUNDS or more): a line of the log
# about a turn that was slow, a thread that begins.
ODD = 8
PRELOAD = os.path.join(BUILD, "tests/malloc_count.so")
FILE = {"backings": {"disk": {"driver": "file", "path": "{dir}/disk.img", "size": "32M"}}}
MATRIX = [(load, length) for load in LOADS for length in (4096, 65536)]


def counters(t):
    status = t.call("status.show")
    return {**status["loop"], **status["iscsi"]}


@case(each=[("ram", {}, 4), ("file", FILE, 5)])
def a_turn_of_reads_makes_few_system_calls(_, options, most):
    with Target(**options) as t, t.login() as session:
        reads(session, 4096, 4)
        before = counters(t)
        reads(session, 4096)
        after = counters(t)
        turns, calls = (after[name] - before[name] for name in ("turns", "syscalls"))
        check(calls <= most * turns, f"{calls} system calls in {turns} turns")
        check(2 * calls <= COMMANDS, f"{calls} system calls for {COMMANDS} reads")


@case(each=MATRIX)
def data_are_moved_by_nobody_but_the_store(t, load, length):
    with t.login() as session:
        LOADS[load](session, length, 2)     # reading ahead, as at login, is over
        before = counters(t)
        LOADS[load](session, length)
        after = counters(t)
    check(after["pdus_in"] - before["pdus_in"] >= COMMANDS, "the load is not in the counters")
    copies = after["payload_copies"] - before["payload_copies"]
    check(copies == 0, f"{copies} copies for {COMMANDS} commands")


@case
def data_among_commands_without_are_moved_and_counted(t):
    """The counter can count: a write behind a run of reads comes in with them."""
    with t.login() as session:
        reads(session, 4096, 2)
        before = counters(t)["payload_copies"]
        with session.one_send():
            tasks = [scsi.start(session, scsi.read10(0, 8), read=4096) for _ in range(8)]
            tasks.append(scsi.start(session, scsi.write10(0, 8), out=bytes(4096)))
        for task in tasks:
            task.wait().good()
        copies = counters(t)["payload_copies"] - before
    check(1 <= copies <= 2, f"{copies} copies for one write")


class Counting:
    """Daemons that start within the block count their allocations in count()."""

    def __enter__(self):
        if not os.path.exists(PRELOAD):
            raise Skip("malloc_count.so is not built: a sanitizer has its own malloc")
        self.file = tempfile.NamedTemporaryFile()
        self.file.truncate(mmap.PAGESIZE)
        self.map = mmap.mmap(self.file.fileno(), mmap.PAGESIZE)
        os.environ.update(LD_PRELOAD=PRELOAD, MALLOC_COUNT=self.file.name)
        return self

    def __exit__(self, *_):
        del os.environ["LD_PRELOAD"], os.environ["MALLOC_COUNT"]
        self.file.close()

    def count(self):
        return int.from_bytes(self.map[:8], "little")


def _allocations(options, load, length):
    with Counting() as counting, Target(**options) as t, t.login() as session:
        LOADS[load](session, length, 4)
        started = counting.count()
        check(started > 100, f"only {started} allocations since the start: they are not counted")
        LOADS[load](session, length)
        return counting.count() - started


@case(each=MATRIX)
def no_command_on_memory_allocates(load, length):
    count = _allocations({}, load, length)
    check(count <= ODD, f"{count} allocations for {COMMANDS} commands")


@case(each=MATRIX)
def no_command_on_a_file_allocates(load, length):
    count = _allocations(FILE, load, length)
    check(count <= ODD, f"{count} allocations for {COMMANDS} commands")


if __name__ == "__main__":
    main()
