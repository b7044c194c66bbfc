#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Speed of level 5 as ratios: an array over memory beside a plain LUN of memory, in turns.

In each round every LUN of one yoked takes each workload once, for SECONDS; a ratio is that of two
runs of the same round, and what is shown are medians over ROUNDS rounds. Writes are sequential, 16
at a time, over the same number of bytes of each LUN. A plain LUN copies a byte once; an array of
five also computes parity, and copies both into a log before it does into place (full_stripe_log =
data), or only sums them up (intent).

Where the initiator is the limit, the ratio of rates is near 1; that of processor times is not.

Not here: counts, which need no quiet machine (tests/wire/test_array_costs.py).
"""

import contextlib
import os
import statistics
import tempfile

from compare import SERVER, Server, bench, guarded, load_before, options_of
from target import Target, wait_until

MIB = 1 << 20
SIZE = 128 * MIB        # that is written of each LUN
MEMBERS, DEPTH = 5, 16
LUNS = ["plain", "data", "intent"]
SIZES = {"64K": 65536, "256K": 4 * 65536}
AIMS = {"data": 0.3, "intent": 0.5}


@contextlib.contextmanager
def arrays(scratch):
    """LUN 0 is memory, the others arrays over memory."""
    disks = {log: [f"{log}{n}" for n in range(MEMBERS)] for log in AIMS}
    size = SIZE // (MEMBERS - 1) + 40 * MIB         # labels and a log
    backings = {"plain": {"driver": "ram", "size": SIZE},
                **{disk: {"driver": "ram", "size": size} for log in AIMS for disk in disks[log]}}
    luns = {number: {"array": name} if number else name for number, name in enumerate(LUNS)}
    with Target(backings=backings, luns=luns, node={"faults": False}) as target:
        for log in AIMS:
            target.call("array.create", name=log, level=5, full_stripe_log=log,
                        disks=[f"backing:{disk}" for disk in disks[log]])
            wait_until(lambda name=log: target.array(name)["resync"] is None, 60, "the resync")
        yield Server("yoked", target.process.pid, target.address, 0, scratch)


def write(server, lun, size, seconds):
    """Bytes a second, and the server's processor seconds a gigabyte."""
    cpu = server.cpu_ns()
    measured, _ = bench(server, lun, "--rw", "write", "--bs", str(size), "--qd", str(DEPTH),
                        "--size", str(SIZE), "--time", str(seconds), timeout=seconds + 20)
    done = measured["sides"]["write"]["bytes"]
    return done / measured["measured_s"], (server.cpu_ns() - cpu) / done


def compare(rounds, seconds):
    """By workload and LUN, a list of write()'s results, one a round."""
    samples = {(name, lun): [] for name in SIZES for lun in LUNS}
    with tempfile.TemporaryDirectory(prefix="yoke-compare.", dir="/dev/shm") as scratch:
        os.sched_setaffinity(0, {SERVER})
        with arrays(scratch) as server:
            for number in range(-1, rounds):        # -1 warms up: nothing is touched first
                for name, lun in samples:
                    sample = write(server, LUNS.index(lun), SIZES[name], seconds)
                    if number >= 0:
                        samples[name, lun].append(sample)
    return samples


def ratios(samples, name, lun, which):
    return [one[which] / plain[which]
            for one, plain in zip(samples[name, lun], samples[name, "plain"])]


def show(samples):
    print(f"\n{'workload':<12} {'LUN':<8} {'MiB/s':>7} {'CPU s/GB':>9} {'rate / plain':>13} "
          f"{'aim':>7} {'CPU / plain':>12}")
    for name, lun in samples:
        rate, cpu = (statistics.median(sample[i] for sample in samples[name, lun])
                     for i in range(2))
        line = f"{'write ' + name:<12} {lun:<8} {rate / MIB:>7.0f} {cpu:>9.3f}"
        if lun in AIMS:
            rate, cpu = (statistics.median(ratios(samples, name, lun, i)) for i in range(2))
            line += (f" {rate:>13.2f} {'>= ' + str(AIMS[lun]):>7} {cpu:>12.2f}"
                     f"{'' if rate >= AIMS[lun] else '  missed'}")
        print(line)


def main():
    options = options_of(__doc__)
    load_before("arrays")
    show(compare(options.rounds, options.seconds))


if __name__ == "__main__":
    guarded("arrays", main)
