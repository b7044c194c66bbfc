#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
"""What a stranger sends cannot fill the log or draw on a terminal, nor appear in lists raw."""

from harness import case, main
from iscsi import check


@case
def a_thousand_refused_logins_make_few_lines(t):
    before = len(t.log().splitlines())
    for _ in range(1000):
        with t.connect(target="iqn.2026-11.org.yoke:nobody") as session:
            session.login_exchange(keys=session.names())
    lines = len(t.log().splitlines()) - before
    check(1 <= lines <= 200, f"{lines} lines for 1000 refused logins")


@case
def control_characters_do_not_reach_log_or_lists(t):
    name = "iqn.2026-11.org.yoke:\x1b[31mred\x07"
    with t.connect(initiator=name) as session:
        session.send(session.login_request(keys=session.names()))
        session.receive()
        shown = t.log() + str(t.sessions())
        check("\x1b" not in shown and "\x07" not in shown, "control characters")
    with t.connect() as session:
        pdu = session.login_exchange(keys={**session.names(), "InitiatorAlias": "a\x1b[2Jb"})
        if pdu.login_status == 0:
            check("\x1b" not in t.log() + str(t.sessions()), "control characters from an alias")


if __name__ == "__main__":
    main()
