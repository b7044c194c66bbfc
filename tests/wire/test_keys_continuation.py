#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
"""Text over several PDUs (C bit), sent and received, keys cut anywhere."""

import pdu as P
from harness import case, main
from iscsi import check
from pdu import decode_text, encode_text
from target import IQN

MANY = {f"iqn.2026-11.org.yoke:many{n:03}": {} for n in range(40)}


@case(each=[1, 2, 7, 20, 40, 100])
def login_text_cut_into_pieces(t, size):
    with t.connect() as session:
        text = encode_text({**session.names(), "MaxBurstLength": 8192, "InitialR2T": "Yes"})
        if len(text) // size > 20:      # exchanges are bounded: short pieces first, then the rest
            pieces = [text[i:i + size] for i in range(0, 16 * size, size)] + [text[16 * size:]]
        else:
            pieces = [text[i:i + size] for i in range(0, len(text), size)]
        for piece in pieces[:-1]:
            pdu = session.login_exchange(transit=0, cont=1, keys=piece)
            check(pdu.login_status == 0, f"status {pdu.login_status:04x}")
            check((pdu.data_len, pdu.transit, pdu.cont) == (0, 0, 0), f"{pdu} amid our text")
        pdu = session.login_exchange(keys=pieces[-1])
        check(pdu.login_status == 0 and pdu.transit, f"status {pdu.login_status:04x}")
        answers = dict(decode_text(pdu.data))
        check(answers.get("MaxBurstLength") == "8192", f"{answers}")
        check("NotUnderstood" not in answers.values(), f"{answers}")
        session.ping()


@case
def transit_amid_continued_text_waits_for_its_end(t):
    with t.connect() as session:
        text = encode_text(session.names())
        pdu = session.login_exchange(transit=0, cont=1, keys=text[:30])
        check(pdu.login_status == 0 and not pdu.transit, repr(pdu))
        pdu = session.login_exchange(transit=0, keys=text[30:])
        check(pdu.login_status == 0 and not pdu.transit, repr(pdu))
        pdu = session.login_exchange()
        check(pdu.login_status == 0 and pdu.transit, repr(pdu))


@case(each=[1, 5, 30])
def text_after_login_cut_into_pieces(t, size):
    with t.login() as session:
        text = encode_text([("X-org.yoke.first", "1"), ("X-org.yoke.second", "2")])
        itt, ttt, reply = None, P.NO_TAG, None
        for start in range(0, len(text), size):
            last = start + size >= len(text)
            fields = {} if itt is None else {"itt": itt}
            pdu = session.request(P.TEXT, text[start:start + size], ttt=ttt, final=int(last),
                                  cont=int(not last), **fields)
            itt = pdu.itt
            reply = session.expect(P.TEXT_RSP, itt)
            if not last:
                check(not reply.final and reply.ttt != P.NO_TAG and not reply.data, repr(reply))
            ttt = reply.ttt
        check(reply.final and reply.ttt == P.NO_TAG, repr(reply))
        check(decode_text(reply.data) == [("X-org.yoke.first", "NotUnderstood"),
                                          ("X-org.yoke.second", "NotUnderstood")], repr(reply.data))


@case(own={"targets": {**MANY, IQN: {}}})
def answers_longer_than_a_segment(t):
    listed = {}
    for segment in (512, 600, 4096, 262144):
        with t.login(discovery=True, MaxRecvDataSegmentLength=segment) as session:
            listed[segment] = session.discover()
    for segment, found in listed.items():
        check(found.keys() == MANY.keys() | {IQN},
              f"{len(found)} targets with segments of {segment}")
        check(found == listed[512], f"another list with segments of {segment}")


@case(own={"targets": {**MANY, IQN: {}}})
def a_list_given_up_half_way_leaves_the_session_usable(t):
    with t.login(discovery=True, MaxRecvDataSegmentLength=512) as session:
        request = session.request(P.TEXT, encode_text({"SendTargets": "All"}), ttt=P.NO_TAG)
        reply = session.expect(P.TEXT_RSP, request.itt)
        check(not reply.final and reply.ttt != P.NO_TAG, "the whole list in 512 bytes")
        check(reply.data_len <= 512, f"{reply.data_len} bytes in a segment of 512")
        # A new negotiation resets the old one.
        check(len(session.discover()) == len(MANY) + 1, "incomplete list")


if __name__ == "__main__":
    main()
