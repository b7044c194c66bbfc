#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
"""What writes of level 5 cost its members, by their counters.

Members are memory: nothing but the depth of the load gives writes the time to come together.
Each figure is shown to be another where the load is another: it can fail.
"""

import os
import random
import subprocess

import scsi
from arrays import MIB, Arrays
from harness import TRACE, case, main
from iscsi import check
from target import BUILD, IQN

CHUNK = 65536       # what arrays have if nobody says otherwise
ARRAY = 1
TRIES = 5           # a load that was held up for milliseconds was not of its depth


class Level5(Arrays):
    """Of so many members, as LUN 1."""

    def __init__(self, members, **params):
        super().__init__(files=0, rams=members, faults=False)
        self.members, self.params = members, params

    def start(self):
        super().start()
        self.call("array.create", name="a", level=5, **self.params,
                  disks=[f"backing:m{n}" for n in range(self.members)])
        self.healthy()
        return self

    def counts(self):
        """Sums over all members: reads, writes, and of both together how many for what."""
        rows = [row["counters"] for row in self.call("backing.list")["backings"]
                if row["name"] != "plain"]
        return {**{op: sum(row["by_op"][op]["ops"] for row in rows) for op in ("read", "write")},
                **{purpose: sum(row["ops_by_purpose"][purpose] for row in rows)
                   for purpose in rows[0]["ops_by_purpose"]},
                "commands": self.call("lun.list")["luns"][0]["write_ops"]}

    def cost(self, work):
        """What grew by WORK."""
        before = self.counts()
        work()
        after = self.counts()
        return {name: after[name] - before[name] for name in after}

    def bench(self, rw, size, depth, count):
        host, port = self.address
        cost = self.cost(lambda: subprocess.run(
            [os.path.join(BUILD, "yoke-bench"), "--no-fill", "--warmup", "0", "--rw", rw,
             "--bs", str(size), "--qd", str(depth), "--time", "90", "--io-size", str(size * count),
             f"iscsi://{host}:{port}/{IQN}/{ARRAY}"], check=True, capture_output=True,
            timeout=110))
        if TRACE:
            print(f"# {rw} {size} at depth {depth}: {cost}")
        check(cost["commands"] == count, f"{cost} for {count} writes")
        return cost


@case(each=[3, 4, 6])
def a_small_write_is_two_reads_two_writes_and_a_share_in_a_log_write(members):
    with Level5(members) as t:
        looks = t.bench("randwrite", 4096, 1, 1)["read"] - 2    # before it writes anything
        count, logs = 4096, []
        while len(logs) < TRIES and 4 * min(logs, default=count) > count:
            cost = t.bench("randwrite", 4096, 64, count)
            check(cost["read"] - looks <= 2 * count, f"{cost}, {looks} reads by yoke-bench")
            check(cost["write"] - cost["log"] <= 2 * count, f"{cost}")
            logs.append(cost["log"])
        check(4 * logs[-1] <= count, f"{logs} log writes for {count} writes")
        # One at a time they have nobody to share with.
        alone = t.bench("randwrite", 4096, 1, 128)
        check(alone["log"] == 128 and alone["write"] == 3 * 128, f"{alone}")


@case(each=[(3, "data"), (5, "data"), (5, "intent")])
def aligned_stripes_read_nothing(members, log):
    with Level5(members, full_stripe_log=log) as t, t.login(lun=ARRAY) as session:
        stripe = CHUNK * (members - 1)
        data = random.Random(1).randbytes(stripe)

        def write(offset, count=16):
            return t.cost(lambda: [scsi.write(session, (number * stripe + offset) // 512, data,
                                              lun=ARRAY) for number in range(count)])
        cost = write(0)
        check(cost["read"] == 0 and cost["commands"] == 16, f"{cost}")
        check(cost["write"] - cost["log"] == 16 * members, f"{cost}")
        check(cost["parity"] == 16, f"{cost}")
        shifted = write(4096)
        check(shifted["read"] >= 16, f"{shifted}")


def whole(t, cost):
    """How many of a hundred stripes were written whole, at least.

    One parity is written for each. One that is written in two rounds needs a second, and three
    reads or more: what is there of the columns that are not in the round, or of those that are and
    of the parity.
    """
    stripes = cost["commands"] / (t.members - 1)
    return 100 * (1 - (cost["parity"] - stripes) / 4 / stripes)


@case(each=[(4, "data"), (5, "data"), (5, "intent")])
def a_sequential_stream_lands_as_whole_stripes(members, log):
    with Level5(members, full_stripe_log=log) as t:
        count = 16 * MIB // CHUNK * (members - 1)
        shares = []
        while len(shares) < TRIES and max(shares, default=0) < 95:
            shares.append(whole(t, t.bench("write", CHUNK, 16, count)))
        check(95 <= shares[-1] <= 100, f"of a hundred stripes {shares} whole")
        scattered = whole(t, t.bench("randwrite", CHUNK, 16, count))
        check(scattered < 50, f"of a hundred stripes {scattered} whole that were not written so")


if __name__ == "__main__":
    main()
