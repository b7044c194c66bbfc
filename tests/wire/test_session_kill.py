#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
"""session.kill: the listed session ends and no other; its initiator may come back."""

from harness import case, main
from iscsi import check


def refused(t, session_id, cause):
    try:
        t.call("session.kill", id=session_id)
    except AssertionError as error:
        check(cause in str(error), f"refused with {error}")
        return
    raise AssertionError(f"session {session_id!r} was killed")


@case
def the_listed_one_ends_and_may_come_back(t):
    with t.login(isid=0x400001500000) as first, t.login(isid=0x400001500001) as second:
        ids = {row["isid"]: row["id"] for row in t.sessions()}
        check(len(set(ids.values())) == 2, f"ids {ids}")
        check(all(isinstance(value, str) for value in ids.values()), "an id is no string")
        killed = t.call("session.kill", id=ids["400001500000"])
        check(killed == {"schema": "yoke.session.kill/1", "id": ids["400001500000"]},
              f"answer {killed}")
        first.expect_closed()
        second.ping()
        check([row["id"] for row in t.sessions()] == [ids["400001500001"]], "the wrong one ended")
        refused(t, ids["400001500000"], "no such session")
        with t.login(isid=0x400001500000) as again:
            again.ping()
            check(ids["400001500000"] not in [row["id"] for row in t.sessions()], "id used again")


@case(each=["", "x", "1x", "-1", "99999999999999999999999", " 1"])
def no_id(t, text):
    with t.login() as session:
        refused(t, text, "not an id")
        session.ping()


@case(each=["0", "18446744073709551615"])
def nobody(t, text):
    with t.login() as session:
        refused(t, text, "no such session")
        session.ping()


if __name__ == "__main__":
    main()
