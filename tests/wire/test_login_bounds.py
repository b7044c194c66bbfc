#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
# timeout: 300
"""Before login ends everything is bounded: lengths, exchanges, accumulated text, time."""

import contextlib
import socket
import time

import pdu as P
from harness import case, main
from iscsi import Closed, check
from pdu import decode_text

KEYS = {"MaxBurstLength": 65536}
SLACK_BYTES = 1 << 20


def closed_or_refused(session, timeout=None):
    try:
        pdu = session.receive(timeout)
    except Closed:
        return
    check(pdu.opcode == P.LOGIN_RSP and pdu.login_status >> 8 == 2, repr(pdu))
    session.expect_closed(timeout)


@case(each=[8193, 16384, 0x100000, 0xFFFFFF])
def a_length_beyond_8192_is_refused_from_the_header_alone(t, length):
    t.login().close()
    before = t.heap_bytes()
    sessions = [t.connect() for _ in range(20)]
    for session in sessions:
        session.send_raw(bytes(session.login_request(keys=session.names(), data_len=length).bhs))
    for session in sessions:
        closed_or_refused(session)
        session.close()
    check(t.heap_bytes() - before <= SLACK_BYTES, "memory follows a length on the wire")


@case
def a_length_of_8192_is_taken(t):
    with t.connect() as session:
        text = P.encode_text({**session.names(), "InitiatorAlias": "a" * 200})
        number = 0
        while len(text) < 7700:
            text += P.encode_text({f"X-org.yoke.{number}": "b" * 250})
            number += 1
        text += b"X-org.yoke.last=" + b"c" * (8192 - len(text) - 17) + b"\0"
        pdu = session.login_exchange(keys=text)
        check(len(text) == 8192 and pdu.login_status == 0, f"status {pdu.login_status:04x}")
        # The answers may need several responses.
        answers = pdu.data
        while pdu.cont or not pdu.transit:
            pdu = session.login_exchange()
            check(pdu.login_status == 0, f"status {pdu.login_status:04x}")
            answers += pdu.data
        unknown = [k for k, v in decode_text(answers) if v == "NotUnderstood"]
        check(len(unknown) == number + 1, f"{len(unknown)} of {number + 1} unknown keys answered")


@case
def additional_headers_are_bounded(t):
    with t.connect() as session:
        session.send_raw(bytes(session.login_request(ahs_len=255).bhs))
        closed_or_refused(session)


@case
def exchanges_without_end_are_refused(t):
    with t.connect() as session:
        keys = session.names()
        for count in range(1000):
            session.send(session.login_request(transit=0, keys=keys))
            keys = ()
            pdu = session.receive()
            check(pdu.opcode == P.LOGIN_RSP, repr(pdu))
            if pdu.login_status:
                break
        check(pdu.login_status >> 8 == 2, "1000 exchanges and no end")
        check(count >= 4, f"refused after {count} exchanges, too early for a CHAP login")
        session.expect_closed()


@case
def continued_text_without_end_is_refused(t):
    t.login().close()
    before = t.heap_bytes()
    with t.connect() as session:
        for _ in range(1024):       # 8 MiB
            session.send(session.login_request(transit=0, cont=1, keys=b"X-a=" + b"b" * 8188))
            try:
                pdu = session.receive()
            except Closed:
                break
            if pdu.login_status:
                check(pdu.login_status >> 8 == 2, repr(pdu))
                session.expect_closed()
                break
        else:
            raise AssertionError("8 MiB of login text were taken")
    check(t.heap_bytes() - before <= SLACK_BYTES, "memory is not bounded")


SHORT = {"node": {"login_timeout": "1s"}}


def dropped_in_time(session, started):
    session.expect_closed(5, allow=(P.LOGIN_RSP,))
    took = time.monotonic() - started
    check(took >= 0.9, f"dropped after {took:.3f} s, before its time")


@case(own=SHORT)
def a_connection_that_says_nothing_is_dropped(t):
    started = time.monotonic()
    with t.connect() as session:
        dropped_in_time(session, started)


@case(own=SHORT, each=[1, 20, 47, 48, 60])
def half_a_login_is_dropped(t, length):
    started = time.monotonic()
    with t.connect() as session:
        session.send_raw(session.login_request(keys=session.names()).encode()[:length])
        dropped_in_time(session, started)


@case(own=SHORT)
def a_login_byte_by_byte_without_end_is_dropped(t):
    with t.connect() as session:
        data = session.login_request(keys=session.names()).encode()
        started = time.monotonic()
        try:
            for byte in data:
                session.send_raw(bytes([byte]))
                # The pace is the attack: each byte comes before a read time-out, the whole never.
                if not session.silent(0.05):
                    break
        except Closed:
            return
        took = time.monotonic() - started
        check(took < 5, f"lived {took:.1f} s of a login time-out of 1 s")
        session.expect_closed(5, allow=(P.LOGIN_RSP,))


@case(own=SHORT)
def a_login_stuck_between_exchanges_is_dropped(t):
    with t.connect() as session:
        started = time.monotonic()
        check(session.login_exchange(transit=0, keys=session.names()).login_status == 0, "refused")
        dropped_in_time(session, started)


@case(own={"node": {"sessions_max": 2}})
def connections_that_were_refused_and_stay_keep_nobody_out(t):
    """More than there may be: each was told why, and does not close its side."""
    with t.connect() as pattern:
        request = pattern.encode(pattern.login_request(keys={"InitiatorName": "nobody"}))
        refused = [socket.create_connection(t.address) for _ in range(2 + 1024 + 74)]
        for sock in refused:
            with contextlib.suppress(OSError):
                sock.sendall(request)
        check(len(refused[700].recv(48)) == 48, "no answer")
    # Its descriptor is below 1024, as select() needs it.
    started = time.monotonic()
    t.login().close()
    # They are there for two seconds; on a machine at work a login may need as long by itself.
    check(time.monotonic() - started < 1 or t.fds() > 1024,
          "a login waited for those that were refused")
    for sock in refused:
        sock.close()


@case(own=SHORT)
def a_session_outlives_the_login_timeout(t):
    with t.login() as session:
        check(session.silent(1.6), "something came")
        session.ping()


if __name__ == "__main__":
    main()
