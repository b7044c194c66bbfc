#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""500 targets on 4 portals, asked for with segments of 512 bytes: the list is complete."""

from harness import case, main
from iscsi import check
from target import own_address

NAMES = [f"iqn.2026-11.org.yoke:{'long-name-' * (n % 12)}{n:03}" for n in range(500)]


@case
def the_list_is_complete_by_continuation(t):
    expected = sorted(f"{host}:{port},{group}" for group, (host, port) in enumerate(t.addresses, 1))
    for portal in range(len(t.addresses)):
        with t.login(discovery=True, portal=portal, MaxRecvDataSegmentLength=512) as session:
            found = session.discover()
            check(sorted(found) == sorted(NAMES), f"{len(found)} of {len(NAMES)} targets listed")
            for name, where in found.items():
                check(sorted(where) == expected, f"{name} at {where}")
            session.logout()


@case
def the_last_target_can_be_entered(t):
    with t.login(target=NAMES[-1], lun=None) as session:
        session.ping()


@case
def meanwhile_no_turn_was_long(t):
    t.turns_are_short()


if __name__ == "__main__":
    main(targets={name: {} for name in NAMES}, hosts=[own_address()] * 4)
