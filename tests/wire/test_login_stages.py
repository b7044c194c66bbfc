#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
"""The stages of a login: which transitions are taken, which are refused, what responses carry."""

import pdu as P
from harness import case, main
from iscsi import (INITIATOR, STAGE_FULL, STAGE_OPERATIONAL, STAGE_SECURITY, check)
from pdu import decode_text
from target import IQN

NAMES = {"InitiatorName": INITIATOR, "TargetName": IQN, "SessionType": "Normal"}


def refused(session, pdu):
    check(pdu.login_status >> 8 == 2, f"status {pdu.login_status:04x}, not 02xx")
    session.expect_closed()


@case
def security_is_entered_and_left_for_operational(t):
    with t.connect() as session:
        pdu = session.login_exchange(STAGE_SECURITY, STAGE_OPERATIONAL,
                                     keys={**NAMES, "AuthMethod": "None"})
        check((pdu.login_status, pdu.transit, pdu.nsg) == (0, 1, STAGE_OPERATIONAL), repr(pdu))
        check(("AuthMethod", "None") in decode_text(pdu.data), "AuthMethod is not answered")
        check(pdu.tsih == 0, "TSIH before the end of login")
        pdu = session.login_exchange()
        check((pdu.login_status, pdu.transit, pdu.nsg) == (0, 1, STAGE_FULL), repr(pdu))
        check(pdu.tsih != 0, "TSIH 0 at the end of login")
        session.ping(b"logged in")


@case
def security_may_lead_straight_to_full_feature(t):
    with t.connect() as session:
        pdu = session.login_exchange(STAGE_SECURITY, STAGE_FULL,
                                     keys={**NAMES, "AuthMethod": "None"})
        check((pdu.login_status, pdu.transit, pdu.nsg) == (0, 1, STAGE_FULL), repr(pdu))
        session.ping()


@case
def none_is_found_among_the_methods_offered(t):
    with t.connect() as session:
        pdu = session.login_exchange(STAGE_SECURITY, STAGE_OPERATIONAL,
                                     keys={**NAMES, "AuthMethod": "KRB5,SRP,X-org.yoke,None"})
        check(("AuthMethod", "None") in decode_text(pdu.data), repr(decode_text(pdu.data)))


@case
def no_common_method_is_refused(t):
    with t.connect() as session:
        refused(session, session.login_exchange(STAGE_SECURITY, STAGE_OPERATIONAL,
                                                keys={**NAMES, "AuthMethod": "KRB5"}))


@case
def t_zero_stays_in_the_stage_until_t_is_one(t):
    with t.connect() as session:
        pdu = session.login_exchange(transit=0, keys=NAMES)
        check((pdu.login_status, pdu.transit, pdu.tsih) == (0, 0, 0), repr(pdu))
        pdu = session.login_exchange(transit=0, keys={"MaxBurstLength": 8192})
        check((pdu.login_status, pdu.transit) == (0, 0), repr(pdu))
        check(("MaxBurstLength", "8192") in decode_text(pdu.data), "an offer without an answer")
        pdu = session.login_exchange()
        check((pdu.login_status, pdu.transit, pdu.nsg) == (0, 1, STAGE_FULL), repr(pdu))
        session.ping()


@case(each=[
    ("operational_to_operational", 1, 1), ("operational_to_security", 1, 0),
    ("operational_to_reserved", 1, 2), ("security_to_security", 0, 0),
    ("security_to_reserved", 0, 2), ("reserved_stage", 2, 3), ("full_feature_stage", 3, 3),
])
def a_transition_that_is_none_is_refused(t, _what, csg, nsg):
    with t.connect() as session:
        request = session.login_request(csg, nsg, keys=NAMES)
        session.send(request)
        pdu = session.receive()
        check(pdu.opcode == P.LOGIN_RSP, repr(pdu))
        refused(session, pdu)


@case
def a_stage_is_not_entered_twice(t):
    with t.connect() as session:
        pdu = session.login_exchange(STAGE_SECURITY, STAGE_OPERATIONAL,
                                     keys={**NAMES, "AuthMethod": "None"})
        check(pdu.login_status == 0, repr(pdu))
        session.send(session.login_request(STAGE_SECURITY, STAGE_OPERATIONAL))
        refused(session, session.receive())


@case
def t_and_c_together_are_refused(t):
    with t.connect() as session:
        session.send(session.login_request(keys=NAMES, transit=1, cont=1))
        refused(session, session.receive())


@case(each=["isid", "cid", "tsih", "itt"])
def identity_must_not_change_on_the_way(t, field):
    with t.connect() as session:
        pdu = session.login_exchange(transit=0, keys=NAMES)
        check(pdu.login_status == 0, repr(pdu))
        request = session.login_request()
        setattr(request, field, getattr(request, field) + 1)
        session.send(request)
        pdu = session.receive()
        if field == "itt" and pdu.login_status == 0:
            return      # a new tag for each request is common, and harmless
        refused(session, pdu)


@case
def cmdsn_of_the_login_is_that_of_the_first_command(t):
    for first in (0, 1, 0xFFFFFFFF):
        with t.connect() as session:
            session.cmdsn = session.expcmdsn = session.maxcmdsn = first
            session.login()
            check(session.expcmdsn == first, f"ExpCmdSN {session.expcmdsn} after CmdSN {first}")
            session.ping(immediate=0)
            session.ping(immediate=0)
            check(session.expcmdsn == (first + 2) % (1 << 32), "ExpCmdSN does not count")


@case
def a_normal_login_declares_the_portal_group(t):
    with t.login() as session:
        check(session.answers.get("TargetPortalGroupTag") == "1",
              f"TargetPortalGroupTag {session.answers.get('TargetPortalGroupTag')}")


if __name__ == "__main__":
    main()
