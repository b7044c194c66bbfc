#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# timeout: 240
# subtests: yes
"""Commands that compare, fill, unmap and reserve, as hosts use and misuse them."""

import os

import scsi
from harness import case, main
from iscsi import check
from scsi import compare_and_write, run, unmap, verify10, write_same16, write_verify10

ABORT_TASK = 1
LARGE = {"backings": {"disk": {"block_size": 4096}}}
FILE = {"backings": {"disk": {"driver": "file", "path": "{dir}/disk.img", "size": "32M"}}}
RESERVE, RELEASE = bytes([0x16, 0, 0, 0, 0, 0]), bytes([0x17, 0, 0, 0, 0, 0])
MISCOMPARE = "0E/1D/00"


def block_of(t):
    return t.backings["disk"].get("block_size", 512)


def sense_of(task, sense):
    check(task.status == scsi.CHECK_CONDITION and task.sense == sense,
          f"not {sense} but {task.outcome()}")


def information(task):
    check(task.sense_data[0] == 0xF0, "no VALID bit")
    return int.from_bytes(task.sense_data[3:7], "big")


# UNMAP

@case(each=[(0xFFFFFFFFFFFFF000, 0x2000), (0xFFFFFFFFFFFFFFFF, 1), (65536, 1), (65535, 2)])
def unmap_beyond_the_end_or_around_it_is_refused(t, lba, blocks):
    with t.login() as session:
        data = os.urandom(512)
        scsi.write(session, 0, data)
        cdb, listed = unmap([(0, 1), (lba, blocks)])
        sense_of(run(session, cdb, out=listed), "05/21/00")
        check(scsi.read(session, 0, 512) == data, "unmapped all the same")


def unmap_zeroes(t):
    size = block_of(t)
    with t.login() as session:
        capacity = bytes(run(session, scsi.read_capacity16(), read=32).good().received)
        if not capacity[14] & 0x80:
            return
        check(capacity[14] & 0x40, "thin without LBPRZ")
        data = os.urandom(64 * size)
        scsi.write(session, 0, data, block=size)
        cdb, listed = unmap([(3, 1), (9, 0), (16, 32)])
        run(session, cdb, out=listed).good()
        now = scsi.read(session, 0, len(data), block=size)
        for block in range(64):
            want = data[block * size:(block + 1) * size]
            if block == 3 or 16 <= block < 48:
                want = bytes(size)
            check(now[block * size:(block + 1) * size] == want, f"block {block} is wrong")


@case
def pattern_unmap_read(t):
    unmap_zeroes(t)


@case(own=LARGE)
def pattern_unmap_read_4096(t):
    unmap_zeroes(t)


@case(own=FILE)
def pattern_unmap_read_file(t):
    unmap_zeroes(t)


@case
def no_ranges_are_no_error(t):
    with t.login() as session:
        cdb, listed = unmap([])
        run(session, cdb, out=listed).good()
        run(session, bytes([0x42]) + bytes(9)).good()


# WRITE SAME

@case
def write_same_with_ndob_writes_zeroes(t):
    with t.login() as session:
        data = os.urandom(2048)
        scsi.write(session, 0, data)
        task = run(session, write_same16(1, 2, ndob=True)).good()
        check(task.residual == 0, f"residual {task.residual}")
        check(scsi.read(session, 0, 2048) == data[:512] + bytes(1024) + data[1536:], "not zeroes")


@case(each=[0, 511, 513, 1024])
def write_same_wants_one_block(t, length):
    with t.login() as session:
        data = os.urandom(1024)
        scsi.write(session, 0, data)
        task = run(session, write_same16(0, 1), out=os.urandom(length))
        sense_of(task, "05/24/00")
        check(task.residual == 512 - length, f"residual {task.residual}")
        check(scsi.read(session, 0, 1024) == data, "written all the same")


@case(own=FILE)
def write_same_of_a_pattern_and_of_zero_blocks(t):
    with t.login() as session:
        pattern = os.urandom(512)
        run(session, write_same16(5, 1000), out=pattern).good()
        check(scsi.read(session, 5, 512 * 1000) == pattern * 1000, "not the pattern")
        run(session, write_same16(65530, 0), out=pattern).good()
        check(scsi.read(session, 65529, 512) == bytes(512), "too much")
        check(scsi.read(session, 65530, 6 * 512) == pattern * 6, "not to the end")
        sense_of(run(session, write_same16(0, 0), out=pattern), "05/24/00")
        run(session, write_same16(0, 32768), out=pattern).good()
        sense_of(run(session, write_same16(0, 32769), out=pattern), "05/24/00")


# COMPARE AND WRITE

@case(own=FILE)
def a_miscompare_tells_where(t):
    with t.login() as session:
        old, new = os.urandom(1024), os.urandom(1024)
        scsi.write(session, 8, old)
        for offset in (0, 511, 512, 1023):
            wrong = bytearray(old)
            wrong[offset] ^= 0x10
            task = run(session, compare_and_write(8, 2), out=bytes(wrong) + new)
            sense_of(task, MISCOMPARE)
            check(information(task) == offset, f"offset {information(task)}, not {offset}")
        check(scsi.read(session, 8, 1024) == old, "written all the same")
        run(session, compare_and_write(8, 2), out=old + new).good()
        check(scsi.read(session, 8, 1024) == new, "not written")


@case(each=[512, 1023, 1025, 2048])
def compare_and_write_wants_both_halves(t, length):
    with t.login() as session:
        scsi.write(session, 0, bytes(1024))
        sense_of(run(session, compare_and_write(0, 1), out=bytes(length)), "05/24/00")


@case
def two_loop_on_one_block_and_a_third_aborts(t):
    """A counter in a block: every success counts once, and nobody's compare lies."""
    rounds = 200

    def number(value, block=512):
        return value.to_bytes(8, "big") * (block // 8)

    with t.login() as one, t.login() as two, t.login() as third:
        scsi.write(one, 7, number(0))
        counts, known = {one: 0, two: 0}, {one: 0, two: 0}
        for turn in range(rounds):
            aborted = scsi.start(third, compare_and_write(7, 1), out=number(1 << 60) * 2)
            tasks = {s: scsi.start(s, compare_and_write(7, 1),
                                   out=number(known[s]) + number(known[s] + 1))
                     for s in ((one, two) if turn % 2 else (two, one))}
            third.tmf(ABORT_TASK, ref_tag=aborted.itt, refcmdsn=aborted.pdu.cmdsn)
            for session, task in tasks.items():
                task.wait()
                if task.status == scsi.GOOD:
                    counts[session] += 1
                else:
                    sense_of(task, MISCOMPARE)
                known[session] = int.from_bytes(scsi.read(session, 7, 512)[:8], "big")
            check(not aborted.done or aborted.sense == MISCOMPARE, aborted.outcome())
        total = sum(counts.values())
        check(scsi.read(one, 7, 512) == number(total), "the counter is not the successes")
        check(total >= rounds, f"only {total} of {rounds} rounds had a winner")


@case(own={"hosts": ["127.0.0.1", "127.0.0.1"]})
def it_does_not_wait_for_bulk_io_that_a_store_holds(t):
    with t.login() as bulk, t.login(portal=1) as locker:
        scsi.write(locker, 0, bytes(512))
        # Everything but the first block is stuck.
        with t.fault("disk", "stuck", offset=1 << 20, length=31 << 20):
            tasks = [scsi.start(bulk, scsi.read10(4096 + 2048 * (n % 8), 2048), read=1 << 20)
                     for n in range(32)]
            for _ in range(20):
                run(locker, compare_and_write(0, 1), out=bytes(1024), timeout=5).good()
            check(not any(task.done for task in tasks), "nothing was stuck")
            t.clear_faults()
        for task in tasks:
            task.wait(30)


# VERIFY

@case(own=FILE)
def verify_really_compares(t):
    with t.login() as session:
        data = os.urandom(300 * 512)
        run(session, write_verify10(40, 300, bytchk=1), out=data).good()
        check(scsi.read(session, 40, len(data)) == data, "not written")
        run(session, verify10(40, 300), out=data).good()
        run(session, verify10(40, 300, bytchk=0)).good()
        wrong = data[:-1] + bytes([data[-1] ^ 1])
        sense_of(run(session, verify10(40, 300), out=wrong), MISCOMPARE)
        sense_of(run(session, verify10(40, 300, bytchk=3), out=data[:512]), MISCOMPARE)
        run(session, verify10(40, 1, bytchk=3), out=data[:512]).good()
        sense_of(run(session, verify10(40, 1, bytchk=2), out=data[:512]), "05/24/00")


@case(each=[(2, 1), (2, 2), (2, 3), (1, 8), (8, 1)])
def residuals_of_verify_and_write_and_verify(t, blocks, expected):
    with t.login() as session:
        data = os.urandom(512 * expected)
        for cdb in (write_verify10(0, blocks), verify10(0, blocks)):
            task = run(session, cdb, out=data)
            check(task.residual == (blocks - expected) * 512, f"residual {task.residual}")
            check(task.status == scsi.GOOD, task.outcome())


@case
def data_that_a_command_does_not_take_is_no_trouble(t):
    with t.login(InitialR2T="Yes", ImmediateData="Yes") as session:
        task = run(session, verify10(0, 4, bytchk=0), out=os.urandom(2048)).good()
        check(task.residual == -2048, f"residual {task.residual}")
        run(session, write_same16(0, 8, ndob=True), out=os.urandom(512)).good()
    with t.login(InitialR2T="No", ImmediateData="No") as session:
        run(session, verify10(0, 4, bytchk=0), out=os.urandom(2048)).good()


# RESERVE

@case
def a_reservation_ends_with_its_connection(t):
    with t.login() as other:
        with t.login() as holder:
            run(holder, RESERVE).good()
            task = run(other, scsi.read10(0, 1), read=512)
            check(task.status == scsi.RESERVATION_CONFLICT, task.outcome())
            run(other, scsi.inquiry(), read=96).good()
            run(other, RELEASE).good()
            check(run(other, scsi.TEST_UNIT_READY).status == scsi.RESERVATION_CONFLICT,
                  "released by somebody else")
            holder.reset()
        # The drop has to be seen first.
        for _ in range(500):
            task = run(other, RESERVE)
            if task.status == scsi.GOOD:
                break
            check(task.status == scsi.RESERVATION_CONFLICT, task.outcome())
            other.ping()
        task.good()
        scsi.write(other, 0, bytes(512))


if __name__ == "__main__":
    main()
