#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
"""A login that cannot be: the status says why, then the connection closes."""

from harness import case, main
from iscsi import INITIATOR, STAGE_OPERATIONAL, check
from target import IQN

TARGET = {"allow": [INITIATOR]}
OTHER = "iqn.2026-11.org.yoke.test:stranger"


def refused(session, status, keys, **fields):
    """One login request; its status must be the one (or one of those) given, then closed."""
    allowed = status if isinstance(status, tuple) else (status,)
    pdu = session.login_exchange(keys=keys, **fields)
    check(pdu.login_status in allowed,
          f"status {pdu.login_status:04x}, not {'/'.join(f'{s:04x}' for s in allowed)}")
    check(not pdu.transit, "T bit in a refusal")
    session.expect_closed()


def names(**changes):
    usual = {"InitiatorName": INITIATOR, "SessionType": "Normal", "TargetName": IQN}
    return {**usual, **changes}


@case(each=[
    ("initiator_not_allowed", 0x0202, {"InitiatorName": OTHER}),
    ("prefix_of_an_allowed_name", 0x0202, {"InitiatorName": INITIATOR[:-1]}),
    ("allowed_name_with_more_behind", 0x0202, {"InitiatorName": INITIATOR + "x"}),
    ("unknown_target", 0x0203, {"TargetName": IQN + "x"}),
    ("prefix_of_a_target", 0x0203, {"TargetName": IQN[:-1]}),
    ("no_initiator_name", 0x0207, {"InitiatorName": None}),
    ("no_target_name", 0x0207, {"TargetName": None}),
    ("unknown_session_type", (0x0200, 0x0209), {"SessionType": "Sideways"}),
])
def names_are_refused(t, _what, status, changes):
    with t.connect() as session:
        refused(session, status, names(**changes))


@case(each=[(1, 1), (1, 255), (255, 255)])
def a_version_that_is_not_ours_is_refused(t, low, high):
    with t.connect() as session:
        refused(session, 0x0205, names(), version_min=low, version_max=high)


@case
def version_zero_within_a_range_is_taken(t):
    with t.connect() as session:
        pdu = session.login_exchange(keys=names(), version_min=0, version_max=3)
        check(pdu.login_status == 0 and pdu.transit, f"status {pdu.login_status:04x}")


@case(each=[1, 0x7FFF, 0xFFFF])
def a_session_that_does_not_exist(t, tsih):
    with t.connect() as session:
        session.tsih = tsih
        refused(session, 0x020A, names())


@case
def a_session_of_another_isid_does_not_exist(t):
    with t.login() as first, t.connect() as second:
        second.tsih = first.tsih
        refused(second, 0x020A, names(), cid=1)
        first.ping()


@case
def a_second_connection_is_too_many(t):
    with t.login() as first, t.connect(isid=None) as second:
        second.isid, second.tsih = first.isid, first.tsih
        refused(second, (0x0206, 0x0208), names(), cid=1)
        first.ping(b"still here")


@case
def session_type_decides_whether_a_target_is_needed(t):
    with t.connect() as session:
        pdu = session.login_exchange(keys={"InitiatorName": INITIATOR, "SessionType": "Discovery"})
        check(pdu.login_status == 0, f"status {pdu.login_status:04x}")
    with t.connect() as session:            # Normal is the default
        pdu = session.login_exchange(keys={"InitiatorName": INITIATOR, "TargetName": IQN})
        check(pdu.login_status == 0, f"status {pdu.login_status:04x}")


@case(each=["iqn.2026-11.org.yoke.test:Initiator", "IQN.2026-11.ORG.YOKE.TEST:INITIATOR"])
def a_name_in_capitals_is_the_same_name(t, name):
    # RFC 3722 folds case: the name is either normalised or refused, never taken for another one.
    with t.connect() as session:
        pdu = session.login_exchange(csg=STAGE_OPERATIONAL, keys=names(InitiatorName=name))
        check(pdu.login_status in (0, 0x0202, 0x0200), f"status {pdu.login_status:04x}")


@case(each=["", "x" * 224, "iqn.2026-11.org.yoke\x07bell", "iqn.2026-11.org.yoke\r\nevil: 1",
            "iqn.2026-11.org.yoke:a b"])
def a_name_that_is_none_is_refused(t, name):
    with t.connect() as session:
        pdu = session.login_exchange(keys=names(InitiatorName=name))
        check(pdu.login_status >> 8 == 2, f"status {pdu.login_status:04x}")
        session.expect_closed()
    check("\x07" not in t.log() and "\r" not in t.log(), "control characters in the log")


if __name__ == "__main__":
    main(target=TARGET)
