#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
# timeout: 300
"""A connection that has not logged in costs at most 16 KiB, whatever it sent so far."""

import resource

from harness import Skip, case, main
from iscsi import Closed, check
from target import wait_until

COUNT = 1000
# A daemon a case: memory that an earlier one gave back would hide what this one takes.
PATIENT = {"node": {"login_timeout": "120s"}}
LIMIT_KIB = 16


def connections(t, count):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count + 100
    if soft < wanted:
        if hard != resource.RLIM_INFINITY and hard < wanted:
            raise Skip(f"only {hard} descriptors are allowed, {wanted} are needed")
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return [t.connect(isid=n) for n in range(count)]


def sent(session, what):
    request = session.login_request(transit=0, keys=session.names())
    if what == "half_a_header":
        session.send_raw(bytes(request.bhs[:24]))
    elif what == "a_header_that_promises_8192":
        request.data_len = 8192
        session.send_raw(bytes(request.bhs))
    elif what == "one_exchange":
        check(session.login_exchange(transit=0, keys=session.names()).login_status == 0, "refused")
    elif what == "4_KiB_of_continued_text":
        session.login_exchange(transit=0, cont=1, keys=b"X-org.yoke=" + b"v" * 4085)


@case(each=["nothing", "half_a_header", "a_header_that_promises_8192", "one_exchange",
            "4_KiB_of_continued_text"], own=PATIENT)
def a_thousand_that_sent(t, what):
    with t.login() as session:
        session.ping()
        fds, before = t.fds(), t.rss_kib()
        opened = connections(t, COUNT)
        wait_until(lambda: t.fds() >= fds + COUNT, 20, "all connections to be accepted")
        for connection in opened:
            sent(connection, what)
        session.ping(b"not disturbed")
        t.login().close()
        each = (t.rss_kib() - before) / COUNT
        for connection in opened:
            connection.close()
        t.closed_to(fds, 20)
        if not t.sanitized():
            check(each <= LIMIT_KIB, f"{each:.1f} KiB a connection")
    t.turns_are_short()


@case
def more_connections_than_allowed_do_not_stop_the_others(t):
    with t.login() as session:
        opened = []
        try:
            opened = connections(t, 3000)
        except (OSError, Closed):
            pass
        session.ping(b"not disturbed")
        for connection in opened:
            connection.close()
    t.login().close()


if __name__ == "__main__":
    main(**PATIENT)
