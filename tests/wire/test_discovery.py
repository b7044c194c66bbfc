#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
"""Discovery: what SendTargets lists in each kind of session, and what else is refused."""

import pdu as P
import scsi
from harness import case, main
from iscsi import Closed, check
from pdu import Pdu, decode_text, encode_text
from target import IQN

OTHER = "iqn.2026-11.org.yoke:other"
TARGETS = {IQN: {"lun": {0: {"backing": "disk"}}}, OTHER: {}}


def addresses(t):
    return sorted(f"{host}:{port},{group}" for group, (host, port) in enumerate(t.addresses, 1))


def ask(session, value):
    """SendTargets=value: the pairs answered, or "rejected"."""
    request = session.request(P.TEXT, encode_text({"SendTargets": value}), ttt=P.NO_TAG)
    session.until(lambda: session.others)
    pdu = session.others.pop()
    if pdu.opcode == P.REJECT:
        return "rejected"
    check((pdu.opcode, pdu.itt, pdu.final) == (P.TEXT_RSP, request.itt, 1), repr(pdu))
    return decode_text(pdu.data)


@case
def all_lists_every_target_with_every_portal(t):
    with t.login(discovery=True) as session:
        found = session.discover("All")
        check(sorted(found) == sorted(TARGETS), f"{found}")
        for name, where in found.items():
            check(sorted(where) == addresses(t), f"{name} at {where}, not {addresses(t)}")


@case
def a_name_lists_that_target(t):
    with t.login(discovery=True) as session:
        found = session.discover(OTHER)
        check(list(found) == [OTHER] and sorted(found[OTHER]) == addresses(t), f"{found}")


@case(each=[IQN + "x", IQN[:-1], "iqn.nobody", "all", "*"])
def an_unknown_name_lists_nothing(t, name):
    with t.login(discovery=True) as session:
        answer = ask(session, name)
        check(answer in ("rejected", [], [("SendTargets", "Reject")]), f"{answer}")


@case
def nothing_asked_lists_nothing_without_a_target(t):
    with t.login(discovery=True) as session:
        answer = ask(session, "")
        check(answer == "rejected" or not [k for k, _ in answer if k == "TargetName"], f"{answer}")


@case
def discovery_may_be_repeated(t):
    with t.login(discovery=True) as session:
        check(session.discover() == session.discover(), "another list the second time")
        session.logout()


@case
def a_normal_session_lists_its_own_target(t):
    with t.login() as session:
        for value in ("", IQN):
            found = session.discover(value)
            check(list(found) == [IQN] and sorted(found[IQN]) == addresses(t),
                  f"{value!r}: {found}")


@case(each=["All", OTHER])
def a_normal_session_does_not_list_others(t, value):
    with t.login() as session:
        answer = ask(session, value)
        check(answer == "rejected" or not [v for _, v in answer if v == OTHER], f"{answer}")
        check(value != "All" or answer in ("rejected", [], [("SendTargets", "Reject")]),
              f"{answer}")
        session.ping()


@case(each=["scsi", "tmf", "data-out", "snack"])
def a_discovery_session_refuses(t, what):
    with t.login(discovery=True) as session:
        pdu = {"scsi": Pdu(P.SCSI_CMD, final=1, read=1, edtl=96, cdb=scsi.inquiry()),
               "tmf": Pdu(P.TMF, final=1, function=5, ref_tag=P.NO_TAG),
               "data-out": Pdu(P.DATA_OUT, b"data", final=1, ttt=P.NO_TAG),
               "snack": Pdu(P.SNACK, final=1, ttt=P.NO_TAG)}[what]
        pdu.itt = session.tag()
        session.send(session.number(pdu))
        try:
            answer = session.receive()
            check(answer.opcode == P.REJECT, f"{answer} instead of a Reject")
        except Closed:
            pass
    with t.login(discovery=True) as session:
        check(session.discover(), "no discovery any more")


@case
def a_discovery_session_logs_out(t):
    with t.login(discovery=True) as session:
        check(session.logout().response == 0, "logout refused")


@case(own={"hosts": ["::1"]})
def an_ipv6_portal_is_listed_in_brackets(t):
    with t.login(discovery=True) as session:
        found = session.discover()
        check(found == {IQN: [f"[::1]:{t.address[1]},1"]}, f"{found}")
    with t.login() as session:
        scsi.write(session, 0, b"six" * 512)
        check(scsi.read(session, 0, 1536) == b"six" * 512, "data differ")


@case(own={"hosts": ["127.0.0.1", "::1"]})
def both_families_at_once(t):
    for portal in (0, 1):
        with t.login(discovery=True, portal=portal) as session:
            found = session.discover()
            check(sorted(found[IQN]) == sorted([f"127.0.0.1:{t.addresses[0][1]},1",
                                                f"[::1]:{t.addresses[1][1]},2"]), f"{found}")


if __name__ == "__main__":
    main(targets=TARGETS, hosts=["127.0.0.1", "127.0.0.1"])
