#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
"""Who may see and enter what: name rule x portal x discovery or normal session."""

import scsi
from harness import case, main
from iscsi import LoginFailed, check
from target import own_address

BASE = "iqn.2026-11.org.yoke:"
HOST = "iqn.2026-11.org.yoke.host:"
# target: (rules, portals)
RULES = {
    "everyone": (["*"], [1, 2]),
    "one": ([HOST + "a"], [1, 2]),
    "prefix": ([HOST + "*"], [1, 2]),
    "two-names": ([HOST + "a", HOST + "b"], [1, 2]),
    "second-portal": (["*"], [2]),
    "one-first-portal": ([HOST + "a"], [1]),
    "somebody-else": (["iqn.1998-01.com.vmware:*"], [1, 2]),
}
INITIATORS = [HOST + "a", HOST + "b", HOST + "ab", HOST, "iqn.2026-11.org.other:a"]


def matches(rule, name):
    return name.startswith(rule[:-1]) if rule.endswith("*") else name == rule


def expected(initiator, portal):
    return {BASE + name for name, (rules, portals) in RULES.items()
            if portal in portals and any(matches(rule, initiator) for rule in rules)}


@case(each=[(initiator, portal) for initiator in INITIATORS for portal in (1, 2)])
def discovery_lists_what_may_be_entered(t, initiator, portal):
    with t.login(discovery=True, portal=portal - 1, initiator=initiator) as session:
        found = session.discover()
        # A target of the other portal may be listed, with that portal's address only.
        wanted = expected(initiator, 1) | expected(initiator, 2)
        check(found.keys() <= wanted, f"{found.keys() - wanted} must not be listed")
        check(found.keys() >= expected(initiator, portal), f"{found.keys()} is not all")
        for name, where in found.items():
            for address in where:
                group = int(address.rpartition(",")[2])
                check(name in expected(initiator, group), f"{name} at {address}")


@case(each=[(initiator, portal) for initiator in INITIATORS for portal in (1, 2)])
def a_name_asked_for_is_listed_only_if_allowed(t, initiator, portal):
    with t.login(discovery=True, portal=portal - 1, initiator=initiator) as session:
        wanted = expected(initiator, 1) | expected(initiator, 2)
        for name in RULES:
            found = session.discover(BASE + name)
            check(not found or BASE + name in wanted, f"{name} must not be listed")
            check(found or BASE + name not in expected(initiator, portal), f"{name} is not listed")


@case(each=[(initiator, portal) for initiator in INITIATORS for portal in (1, 2)])
def only_what_is_allowed_is_entered(t, initiator, portal):
    for name, (_, portals) in RULES.items():
        may = BASE + name in expected(initiator, portal)
        try:
            t.login(target=BASE + name, portal=portal - 1, initiator=initiator, lun=None).close()
            check(may, f"{name} was entered")
        except LoginFailed as failure:
            check(not may, f"{name} was refused with {failure.status:04x}")
            allowed = (0x0202,) if portal in portals else (0x0202, 0x0203)
            check(failure.status in allowed, f"{name}: status {failure.status:04x}")


LUNS = {0: {"backing": "a"}, 1: {"backing": "b", "allow": [HOST + "a"]},
        2: {"backing": "c", "allow": [HOST + "b*"]}}


@case(each=[(HOST + "a", [0, 1]), (HOST + "b", [0, 2]), (HOST + "bb", [0, 2]), (HOST + "c", [0])],
      own={"targets": {BASE + "luns": {"lun": LUNS}}, "backings": {"a": {}, "b": {}, "c": {}}})
def a_masked_lun_is_not_there(t, initiator, luns):
    with t.login(target=BASE + "luns", initiator=initiator) as session:
        data = scsi.run(session, scsi.report_luns(), read=256).good().received
        listed = [int.from_bytes(data[i:i + 2], "big") & 0x3FFF for i in range(8, len(data), 8)]
        check(listed == luns, f"LUNs {listed}, not {luns}")
        for lun in range(4):
            task = scsi.run(session, scsi.read10(0, 1), read=512, lun=lun)
            if task.sense[:2] == "06":
                task = scsi.run(session, scsi.read10(0, 1), read=512, lun=lun)
            outcome = "" if lun in luns else "05/25/00"
            check(task.sense == outcome, f"LUN {lun}: {task.outcome()}")


if __name__ == "__main__":
    main(targets={BASE + name: {"allow": rules, "portals": [f"p{p}" for p in portals]}
                  for name, (rules, portals) in RULES.items()}, hosts=[own_address()] * 2)
