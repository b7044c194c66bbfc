#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
"""Header and data digests: every combination, any padding, cut anywhere on the way."""

import itertools
import os

import scsi
from harness import case, main
from iscsi import check

COMBINATIONS = list(itertools.product(("None", "CRC32C"), ("None", "CRC32C")))


def keys(header, data):
    return {"HeaderDigest": header, "DataDigest": data}


@case(each=COMBINATIONS)
def discovery_and_logout(t, header, data):
    with t.login(discovery=True, **keys(header, data)) as session:
        check(session.params["HeaderDigest"] == header, "another header digest")
        check(session.params["DataDigest"] == data, "another data digest")
        check(session.discover(), "nothing discovered")
        check(session.logout().response == 0, "logout refused")


@case(each=COMBINATIONS)
def everything_in_a_normal_session(t, header, data):
    with t.login(InitialR2T="No", **keys(header, data)) as session:
        check(session.header_digest == (header == "CRC32C"), "another header digest")
        check(session.data_digest == (data == "CRC32C"), "another data digest")
        for length in (0, 1, 2, 3, 4, 5, 63, 1021):
            session.ping(os.urandom(length))
        for length in (512, 8192, 300 << 10):
            block = os.urandom(length)
            scsi.write(session, 11, block)
            check(scsi.read(session, 11, length) == block, "data differ")
        check(session.text([("X-org.yoke", "1")]) == [("X-org.yoke", "NotUnderstood")], "text")
        check(session.tmf(5) == 0, "LUN RESET refused")
        check(session.logout().response == 0, "logout refused")


@case(each=list(itertools.product(((1,), (2,), (3,), (1, 2, 3), (3, 1, 48)), (1, 2, 3, 5))))
def odd_pads_dribbled(t, pieces, length):
    with t.login(**keys("CRC32C", "CRC32C")) as session:
        session.pieces = pieces
        for extra in range(4):
            session.ping(os.urandom(length + extra))
        # Data whose length is no multiple of four goes with a parameter list of odd length.
        for data_length in (length, length + 4):
            task = scsi.run(session, scsi.inquiry(data_length), read=data_length)
            check(len(task.good().received) == data_length, "INQUIRY is cut short")


@case(each=[(48, 4), (47, 1, 4), (52, 1), (51, 2), (52, 511, 2), (49, 3, 510, 3)])
def cut_around_the_digests_of_a_write(t, *pieces):
    with t.login(InitialR2T="Yes", **keys("CRC32C", "CRC32C")) as session:
        session.pieces = pieces
        for length in (512, 2048):
            block = os.urandom(length)
            scsi.write(session, 0, block)
            check(scsi.read(session, 0, length) == block, "data differ")


@case
def digests_begin_after_the_last_login_response(t):
    with t.connect() as session:
        session.login(csg=0, **keys("CRC32C,None", "CRC32C,None"))
        check(session.header_digest and session.data_digest, "CRC32C was not chosen")
        session.ping(b"first with digests")


if __name__ == "__main__":
    main()
