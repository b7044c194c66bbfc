#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
# full: yes
# timeout: 300
"""How many instructions a read of an array costs, beside the same read of a backing.

Members are memory, so what is counted is the way there: a read inside one chunk is handed on to its
member as it is. Nearly all "crossing" reads lie in two chunks and become two.
"""

import os
import re
import shutil
import subprocess

from arrays import Arrays
from harness import TRACE, Skip, case, main
from iscsi import check
from loads import COMMANDS, reads

PLAIN, ARRAY = 0, 1
CHUNK = 65536       # what arrays have if nobody says otherwise
CROSSING = 1.25     # two reads of members for one
READS = {"4K": (4096, 4096), "64K": (CHUNK, CHUNK), "crossing": (CHUNK, CHUNK - 4096)}


class Counted(Arrays):
    """Under callgrind; instructions() of what is done in between two calls."""

    def __init__(self, members):
        super().__init__(files=0, rams=members, luns={PLAIN: "flat", ARRAY: {"array": "a"}},
                         faults=False)
        self.backings["flat"] = {"size": f"{self.size}M"}
        self.dumps = 0

    def _launch(self):
        # An instruction that copies by itself counts as one a byte: copying is done without it.
        self.under = ["env", "GLIBC_TUNABLES=glibc.cpu.x86_rep_movsb_threshold=1000000000",
                      "valgrind", "-q", "--tool=callgrind",
                      f"--callgrind-out-file={self.dir}/profile"]
        return super()._launch()

    def instructions(self):
        """Since the last call."""
        subprocess.run(["callgrind_control", "-d", str(self.process.pid)], check=True,
                       capture_output=True)
        self.dumps += 1
        with open(os.path.join(self.dir, f"profile.{self.dumps}"), encoding="utf-8") as profile:
            return int(re.search(r"^totals: (\d+)", profile.read(), re.M).group(1))


@case(each=[(0, 4, 1.15), (1, 2, 1.15), (10, 4, 1.15), (5, 3, 1.2), (5, 4, 1.2)])
def a_read_costs_little_more_than_a_backings(level, members, most):
    if not shutil.which("callgrind_control"):
        raise Skip("no valgrind")
    with Counted(members) as t:
        t.call("array.create", name="a", level=level,
               disks=[f"backing:m{n}" for n in range(members)])
        t.healthy()
        costs = {}
        for lun in (PLAIN, ARRAY):
            with t.login(lun=lun) as session:
                for name, (length, step) in READS.items():
                    reads(session, length, 8, lun, step)
                    t.instructions()
                    reads(session, length, lun=lun, step=step)
                    costs[lun, name] = t.instructions() / COMMANDS
        for name in READS:
            ratio = costs[ARRAY, name] / costs[PLAIN, name]
            what = (f"{name}: {ratio:.3f}, {costs[ARRAY, name]:.0f} beside "
                    f"{costs[PLAIN, name]:.0f} instructions")
            if TRACE:
                print("#", what)
            check(1 < ratio <= (CROSSING if name == "crossing" else most), what)


if __name__ == "__main__":
    main()
