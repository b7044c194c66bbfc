#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
"""traffic.show: exactly what was read and written, by whoever, gone or not."""

import scsi
from harness import case, main
from iscsi import check
from target import IQN

BLOCK = 512
TWO = {"a": {"size": "8M"}, "b": {"size": "8M"}}


def counts(reads, writes, read_bytes, write_bytes):
    return {"read_ops": reads, "write_ops": writes, "read_bytes": read_bytes,
            "write_bytes": write_bytes}


def shown(t, luns=("0",)):
    return t.call("traffic.show", target=IQN, luns=list(luns))


def gained(before, after):
    return {key: after[key] - before[key] for key in counts(0, 0, 0, 0)}


def load(session, lun=0):
    """3 reads of 4096 bytes, 2 writes of 8192."""
    for lba in range(2):
        scsi.write(session, lba * 16, bytes([lba + 1]) * 8192, lun=lun)
    for lba in range(3):
        scsi.read(session, lba * 8, 4096, lun=lun)


LOADED = counts(3, 2, 12288, 16384)
TWICE = counts(6, 4, 24576, 32768)


@case
def sessions_units_and_devices_agree(t):
    with t.login() as session:
        before = shown(t)
        check(before["schema"] == "yoke.traffic/1" and before["target"] == IQN, f"{before}")
        load(session)
        after = shown(t)
        check(gained(before["sessions"], after["sessions"]) == LOADED, f"sessions {after}")
        for level in ("unit", "device"):
            got = gained(before["luns"][0][level], after["luns"][0][level])
            check(got == LOADED, f"{level}: {got}")
        row = after["luns"][0]
        check((row["lun"], row["backing"], row["disk"]) == (0, "disk", False), f"{row}")


@case
def sessions_that_ended_are_in_the_sum(t):
    before = shown(t)
    with t.login(isid=0x400001600000) as first:
        load(first)
        first.logout()
    with t.login(isid=0x400001600001) as second:
        load(second)
        second.reset()
    after = shown(t)
    check(gained(before["sessions"], after["sessions"]) == TWICE, f"{before} {after}")


@case(own={"backings": TWO, "luns": {0: "a", 7: "b"}})
def each_lun_has_its_own(t):
    with t.login() as session:
        before = shown(t, ("7", "0"))
        scsi.ready(session, 7)
        load(session, lun=7)
        after = shown(t, ("7", "0"))
        check([row["lun"] for row in after["luns"]] == [7, 0], f"{after}")
        check(gained(before["luns"][0]["unit"], after["luns"][0]["unit"]) == LOADED, f"{after}")
        check(gained(before["luns"][1]["unit"], after["luns"][1]["unit"]) == counts(0, 0, 0, 0),
              f"{after}")


def refused(t, cause, target=IQN, luns=("0",)):
    try:
        t.call("traffic.show", target=target, luns=list(luns))
    except AssertionError as error:
        check(cause in str(error), f"refused with {error}")
        return
    raise AssertionError(f"{luns} of {target} was answered")


@case(each=["2", "", "0x0", "-0", " 0", "0 ", "99999999999999999999"])
def no_such_lun(t, text):
    refused(t, f'no LUN "{text}"', luns=[text])


@case
def no_such_target(t):
    refused(t, "not served", target="iqn.2026-11.org.yoke:none")


@case
def a_name_is_the_same_in_any_case(t):
    answer = t.call("traffic.show", target=IQN.upper(), luns=["0"])
    check(answer["target"] == IQN, f"{answer}")


@case
def too_many_at_once(t):
    check(len(shown(t, ["0"] * 64)["luns"]) == 64, "not all of 64")
    refused(t, "at most 64", luns=["0"] * 65)


if __name__ == "__main__":
    main()
