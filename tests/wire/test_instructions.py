#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
# full: yes
"""How many instructions a command costs, its copy in the store's memory included.

Bounds are a sixth above what gcc 12 makes of it: what does not belong on the way of every command
is found, and another compiler is not.
"""

import re
import shutil
import tempfile

from harness import Skip, case, main
from iscsi import check
from loads import COMMANDS, LOADS, ROUNDS
from target import Target


def _instructions(load, length, rounds):
    """Of a daemon's whole life with that many rounds of commands."""
    with tempfile.TemporaryDirectory() as place:
        out = place + "/out"
        under = ["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={out}"]
        with Target(node={"faults": False}, under=under) as t, t.login() as session:
            LOADS[load](session, length, rounds)
        with open(out, encoding="utf-8") as profile:
            return int(re.search(r"^totals: (\d+)", profile.read(), re.M).group(1))


@case(each=[("reads", 512, 4500), ("reads", 4096, 5000),
            ("writes", 512, 5600), ("writes", 4096, 6800)])
def a_command_costs_few_instructions(load, length, most):
    if not shutil.which("valgrind"):
        raise Skip("no valgrind")
    begun = _instructions(load, length, 8)
    each = (_instructions(load, length, 8 + ROUNDS) - begun) // COMMANDS
    check(1000 <= each <= most, f"{each} instructions")


if __name__ == "__main__":
    main()
