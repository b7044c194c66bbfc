#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
"""Keys where or how they must not be: twice, in the wrong stage, malformed, after login."""

import pdu as P
import scsi
from harness import case, main
from iscsi import STAGE_OPERATIONAL, STAGE_SECURITY, Closed, check
from pdu import decode_text, encode_text


def refused(session, pdu):
    check(pdu.login_status >> 8 == 2, f"status {pdu.login_status:04x}, not 02xx")
    session.expect_closed()


REPEATS = [("MaxBurstLength", "8192"), ("InitialR2T", "Yes"), ("HeaderDigest", "None"),
           ("MaxRecvDataSegmentLength", "8192"), ("ErrorRecoveryLevel", "0")]
NAMES = [("InitiatorName", "iqn.2026-11.org.yoke:another"), ("SessionType", "Discovery"),
         ("TargetName", "iqn.2026-11.org.yoke:another")]


@case(each=REPEATS + NAMES)
def twice_in_a_request(t, key, value):
    with t.connect() as session:
        names = session.names()
        names.pop(key, None)
        first = (key, session.names().get(key, value))
        refused(session, session.login_exchange(keys=[*names.items(), first, first]))


@case(each=REPEATS)
def again_in_a_later_request(t, key, value):
    with t.connect() as session:
        keys = {key: value, **session.names()}
        pdu = session.login_exchange(transit=0, keys=keys)
        check(pdu.login_status == 0, f"status {pdu.login_status:04x}")
        session.send(session.login_request(keys={key: keys[key]}))
        refused(session, session.receive())


@case(each=NAMES)
def another_name_in_a_later_request(t, key, value):
    with t.connect() as session:
        # The same one again is harmless, and some initiators send it with every stage.
        pdu = session.login_exchange(transit=0, keys=session.names())
        check(pdu.login_status == 0, f"status {pdu.login_status:04x}")
        session.send(session.login_request(keys={key: value}))
        refused(session, session.receive())


@case(each=["MaxBurstLength", "InitialR2T", "HeaderDigest", "ErrorRecoveryLevel"])
def an_operational_key_in_the_security_stage(t, key):
    values = {"InitialR2T": "Yes", "HeaderDigest": "None", "ErrorRecoveryLevel": "0"}
    value = values.get(key, "8192")
    with t.connect() as session:
        pdu = session.login_exchange(STAGE_SECURITY, STAGE_OPERATIONAL,
                                     keys={**session.names(), "AuthMethod": "None", key: value})
        if pdu.login_status == 0:
            check(dict(decode_text(pdu.data)).get(key) == "Reject", f"{decode_text(pdu.data)}")
        else:
            refused(session, pdu)


@case
def authentication_in_the_operational_stage(t):
    with t.connect() as session:
        pdu = session.login_exchange(keys={**session.names(), "AuthMethod": "None"})
        if pdu.login_status == 0:
            check(dict(decode_text(pdu.data)).get("AuthMethod") == "Reject",
                  f"{decode_text(pdu.data)}")
        else:
            refused(session, pdu)


@case
def sendtargets_during_login(t):
    with t.connect() as session:
        pdu = session.login_exchange(keys={**session.names(), "SendTargets": "All"})
        if pdu.login_status == 0:
            answers = dict(decode_text(pdu.data))
            check(answers.get("SendTargets") in ("Reject", "NotUnderstood", "Irrelevant"),
                  f"{answers}")
            check("TargetName" not in answers, "targets listed during login")


@case(each=[b"NoEquals\0", b"=NoKey\0", b"\x80\xff\xfe=1\0", b"K" * 64 + b"=1\0",
            b"K" * 300 + b"=1\0", b"=\0", b"A B=1\0"])
def malformed_text(t, text):
    with t.connect() as session:
        session.send(session.login_request(keys=encode_text(session.names()) + text))
        try:
            pdu = session.receive()
        except Closed:
            pass
        else:
            if pdu.login_status == 0:       # taken as a key that nobody knows
                check(b"NotUnderstood" in pdu.data or b"Reject" in pdu.data, repr(pdu.data))
    t.login().close()


@case(each=[256, 1000, 4000])
def a_value_too_long(t, length):
    with t.connect() as session:
        pdu = session.login_exchange(keys={**session.names(), "MaxBurstLength": "1" * length})
        if pdu.login_status == 0:
            check(("MaxBurstLength", "Reject") in decode_text(pdu.data), repr(pdu.data[:200]))


@case
def text_without_its_last_nul(t):
    with t.connect() as session:
        pdu = session.login_exchange(keys=encode_text(session.names())[:-1])
        check(pdu.login_status in (0, 0x0200), f"status {pdu.login_status:04x}")
    t.login().close()


@case
def nul_padding_between_keys(t):
    with t.connect() as session:
        keys = b"\0\0" + encode_text(session.names()) + b"\0\0\0" + b"MaxBurstLength=8192\0\0\0"
        pdu = session.login_exchange(keys=keys)
        check(pdu.login_status in (0, 0x0200), f"status {pdu.login_status:04x}")


# After login

LOGIN_ONLY = [("MaxBurstLength", "8192"), ("InitialR2T", "No"), ("HeaderDigest", "CRC32C"),
              ("DataDigest", "CRC32C"), ("MaxConnections", "1"), ("ErrorRecoveryLevel", "0"),
              ("InitiatorName", "iqn.x"), ("TargetName", "iqn.x"), ("SessionType", "Discovery"),
              ("AuthMethod", "None"), ("ImmediateData", "No"), ("FirstBurstLength", "512")]


@case(each=LOGIN_ONLY)
def a_login_key_after_login(t, key, value):
    with t.login() as session:
        request = session.request(P.TEXT, encode_text({key: value}), ttt=P.NO_TAG)
        session.until(lambda: session.others)
        pdu = session.others.pop()
        check(pdu.itt == request.itt or pdu.opcode == P.REJECT, repr(pdu))
        if pdu.opcode == P.TEXT_RSP:
            check(dict(decode_text(pdu.data)).get(key) in ("Reject", "Irrelevant", "NotUnderstood"),
                  f"{decode_text(pdu.data)}")
        else:
            check(pdu.opcode == P.REJECT, repr(pdu))
        # Nothing has changed.
        scsi.write(session, 0, bytes(range(256)) * 64)
        check(scsi.read(session, 0, 16384) == bytes(range(256)) * 64, "data differ")


@case
def an_unknown_key_after_login(t):
    with t.login() as session:
        check(session.text([("X-org.yoke.a", "1")]) == [("X-org.yoke.a", "NotUnderstood")],
              "answer")


@case(each=[512, 4096, 65536])
def a_segment_length_after_login_holds_from_then_on(t, length):
    with t.login(MaxRecvDataSegmentLength=8192) as session:
        check(max(p.data_len for p in big_read(session)) == 8192, "segments are not of full length")
        session.text([("MaxRecvDataSegmentLength", str(length))])
        session.own_segment = length
        sizes = [p.data_len for p in big_read(session)]
        check(max(sizes) == length, f"segments of {max(sizes)} after {length} was declared")


def big_read(session):
    return scsi.run(session, scsi.read10(0, 256), read=131072).good().data_pdus


@case
def an_empty_text_request_gets_an_empty_answer(t):
    with t.login() as session:
        check(session.text([]) == [], "an answer to nothing")


@case
def a_text_request_with_a_tag_nobody_gave(t):
    with t.login() as session:
        session.request(P.TEXT, b"", ttt=0x12345678)
        session.until(lambda: session.others)
        check(session.others.pop().opcode in (P.REJECT, P.TEXT_RSP), "no answer")
        session.ping()


if __name__ == "__main__":
    main()
