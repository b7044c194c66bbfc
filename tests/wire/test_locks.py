#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# timeout: 300
# subtests: yes
"""COMPARE AND WRITE as hosts hold locks with it: contended, aborted, beside bulk I/O, on a slow
store. lock_fight.c and lock_load.c are the initiators that Python is too slow for.
"""

import os
import random
import re
import subprocess
import time

import pdu as P
import scsi
from harness import Skip, case, main
from iscsi import check
from scsi import compare_and_write
from target import BUILD, IQN

ABORT_TASK = 1
COMPLETE, NO_TASK = 0, 1
ROUNDS = 10000
SLOW_ROUNDS = ROUNDS if os.environ.get("YOKE_FULL") == "1" else 1000
LOAD_SECONDS, SESSIONS, DEPTH = 3, 4, 64
HEARTBEAT_US = 8_000_000    # ESXi gives a heartbeat up after so long
MEMORY = {"backings": {"disk": {"size": "256M"}}}
FILE = {"backings": {"disk": {"driver": "file", "path": "{dir}/disk.img", "size": "32M",
                              "write_cache": True}}}


def initiator(t, program, *arguments):
    """The numbers on the last line that one of the C initiators prints."""
    path = os.path.join(BUILD, "tests", program)
    if not os.path.exists(path):
        raise Skip(f"{program} is not built: make build/release/tests/{program}")
    host, port = t.address
    done = subprocess.run([path, f"iscsi://{host}:{port}/{IQN}/0", *map(str, arguments)],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=250,
                          check=False)
    check(done.returncode == 0, f"{program} {arguments}: {done.stdout[-500:]}")
    return {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", done.stdout)}


def fight(t, rounds):
    seed = random.randrange(1 << 31)
    found = initiator(t, "lock_fight", rounds, seed)
    told = f"seed {seed}: {found}"
    check(found["winners"] == found["won"] + found["landed"], told)
    check(found["winners"] + found["void"] == found["rounds"] == rounds, told)
    # Everything that can become of a command was met, or the rounds prove nothing.
    check(found["winners"] > rounds // 4 and found["void"], told)
    check(found["miscompares"] > rounds // 10 and found["attentions"] > rounds // 50, told)
    check(found["aborts"] > rounds // 4 and found["functions"] > rounds // 4, told)
    return found, told


@case(own=MEMORY)
def two_want_one_block_and_tasks_are_aborted(t):
    fight(t, ROUNDS)


@case(own=FILE)
def two_want_one_block_of_a_file(t):
    found, told = fight(t, ROUNDS)
    check(found["landed"], f"no aborted command had written: {told}")


@case(own=FILE)
def two_want_one_block_of_a_slow_store(t):
    with t.fault("disk", "delay", delay_ms=1, per_million=300000):
        found, told = fight(t, SLOW_ROUNDS)
    check(found["landed"], f"no aborted command had written: {told}")


@case(own=MEMORY)
def a_lock_does_not_queue_behind_bulk_io(t):
    """Judged by what the bulk commands of the same seconds take, which grows with the machine's
    load as the lock's time does. One line for all would make both equal."""
    found = initiator(t, "lock_load", LOAD_SECONDS, SESSIONS, DEPTH)
    check(found["lock_median_us"] * 3 <= found["bulk_median_us"], f"locks wait in line: {found}")
    check(found["lock_max_us"] < HEARTBEAT_US, f"a heartbeat is given up: {found}")


def number(value):
    return value.to_bytes(8, "big") * 64


@case(each=["read", "write"])
def a_heartbeat_is_aborted_only_when_its_fate_is_final(t, held):
    """The store holds what the command does first or last. The host gives up, asks for an abort,
    reads the block, and takes it that the content is there to stay."""
    with t.login() as host, t.login() as witness:
        scsi.write(host, 0, number(1))
        with t.fault("disk", "stuck", op=held):
            task = scsi.start(host, compare_and_write(0, 1), out=number(1) + number(2))
            t.held()
            request = host.request_tmf(ABORT_TASK, ref_tag=task.itt, refcmdsn=task.pdu.cmdsn)
            for _ in range(20):
                host.ping()
                check(not any(pdu.opcode == P.TMF_RSP for pdu in host.others),
                      "aborted while the store may still write")
        answer = host.expect(P.TMF_RSP, request.itt)
        check(answer.response == COMPLETE, f"response {answer.response}")
        check(not task.done, f"aborted, and answered: {task.outcome()}")
        content = scsi.read(witness, 0, 512)
        # What was read and not yet written is not; what the device had cannot be taken back.
        check(content == number(1 if held == "read" else 2), "not what was under way")
        task = scsi.run(host, compare_and_write(0, 1), out=content + number(3)).good()
        check(scsi.read(witness, 0, 512) == number(3), "the retry is lost")


@case
def heartbeats_on_a_slow_store(t):
    """A host that gives up early: abort, read, go on from what was read. It must never miscompare,
    and its block counts what took effect."""
    now, effects = 0, 0
    with t.login() as host, t.fault("disk", "delay", delay_ms=20):
        scsi.write(host, 0, number(now))
        for turn in range(60):
            task = scsi.start(host, compare_and_write(0, 1), out=number(now) + number(now + 1))
            until = time.monotonic() + random.uniform(0, 0.06)
            while not task.done and time.monotonic() < until:
                host.ping()
            response = host.tmf(ABORT_TASK, ref_tag=task.itt, refcmdsn=task.pdu.cmdsn)
            check(response in (COMPLETE, NO_TASK), f"response {response}")
            check(task.done or response == COMPLETE, "no such task, and yet no answer")
            host.tasks.pop(task.itt, None)
            if task.done:
                check(task.status == scsi.GOOD, f"heartbeat {turn}: {task.outcome()}")
            found = int.from_bytes(scsi.read(host, 0, 512)[:8], "big")
            check(found == now + 1 or (found == now and not task.done), f"{found} after {now}")
            effects += found - now
            now = found
    check(0 < effects, "no heartbeat took effect")


if __name__ == "__main__":
    main()
