#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# timeout: 240
# subtests: yes
"""Mode parameters that are saved: what a restart, a crash and a damaged state directory leave."""

import os
import random

import scsi
from harness import case, main
from iscsi import Closed, Timeout, check
from scsi import run

SP, PF = 0x01, 0x10
CURRENT, SAVED = 0, 3
CACHING, CONTROL = 0x08, 0x0A
D_SENSE, TAS, WCE = 0x04, 0x40, 0x04
CACHED = {"backings": {"disk": {"driver": "file", "path": "{dir}/disk.img", "size": "32M",
                                "write_cache": True}}}


def mode_sense(session, code, control=CURRENT):
    """The page, its code first."""
    task = run(session, bytes([0x1A, 8, control << 6 | code, 0, 255, 0]), read=255).good()
    return bytes(task.received[4:])


def select_list(page):
    page = bytearray(page)
    page[0] &= 0x3F
    return bytes(4) + bytes(page)


def mode_select(session, page, save=True):
    listed = select_list(page)
    return run(session, bytes([0x15, PF | (SP if save else 0), 0, 0, len(listed), 0]), out=listed)


def control_page(session, both):
    """The control page with D_SENSE on and TAS off, or the other way."""
    page = bytearray(mode_sense(session, CONTROL))
    page[2] = page[2] & ~D_SENSE | (D_SENSE if both else 0)
    page[5] = page[5] & ~TAS | (0 if both else TAS)
    return page


def values(page):
    return bool(page[2] & D_SENSE), not page[5] & TAS


def state_file(t):
    return t.dir + "/state/backing-disk.mode"


def again(t):
    """Start it once more after a crash."""
    t.process.kill()
    t.process.wait()
    check(t._launch(), f"yoked does not start again: {t.log()[-500:]}")


@case(own=CACHED)
def what_is_saved_survives_a_crash_and_what_is_not_does_not(t):
    with t.login() as session:
        check(mode_sense(session, CONTROL)[0] == 0x8A, "PS is not set")
        check(mode_sense(session, CACHING)[0] == 0x88, "PS is not set")
        check(mode_sense(session, 0x1C)[0] == 0x1C, "PS is set on what cannot be saved")
        mode_select(session, control_page(session, True)).good()
        caching = bytearray(mode_sense(session, CACHING))
        check(caching[2] & WCE, "no cache")
        caching[2] &= ~WCE
        mode_select(session, caching, save=False).good()
    again(t)
    with t.login() as session:
        check(values(mode_sense(session, CONTROL)) == (True, True), "not what was saved")
        check(values(mode_sense(session, CONTROL, SAVED)) == (True, True), "not told as saved")
        check(mode_sense(session, CACHING)[2] & WCE, "what was not saved is there")
    t.restart()
    with t.login() as session:
        check(values(mode_sense(session, CONTROL)) == (True, True), "gone after an orderly end")


@case
def a_store_without_a_cache_has_none_to_save(t):
    with t.login() as session:
        check(mode_sense(session, CACHING)[0] == CACHING, "PS where nothing can be changed")


@case(own={})
def a_reload_keeps_what_was_saved(t):
    with t.login() as session:
        mode_select(session, control_page(session, True)).good()
    was = t.luns, t.backings
    t.luns, t.backings = {0: "other"}, {"other": {}}
    rewrite(t)
    with t.login() as session:
        check(values(mode_sense(session, CONTROL)) == (False, False), "it is the other's")
    t.luns, t.backings = was
    rewrite(t)
    with t.login() as session:
        check(values(mode_sense(session, CONTROL)) == (True, True), "not what was saved")


def rewrite(t):
    with open(t.config_path, "w", encoding="utf-8") as config:
        config.write(t.configuration())
    t.call("config.reload")


@case(each=["truncated", "bit", "version", "too-large", "foreign", "empty", "folder"])
def a_damaged_file_is_ignored_and_said_so(t, how):
    with t.login() as session:
        mode_select(session, control_page(session, True)).good()
    with open(state_file(t), "rb") as file:
        good = bytearray(file.read())
    spoilt = {"truncated": good[:-1], "bit": good[:70] + bytes([good[70] ^ 1]) + good[71:],
              "version": good[:8] + b"\x02" + good[9:], "too-large": good + bytes(1 << 21),
              "foreign": good[:16] + bytes([good[16] ^ 1]) + good[17:], "empty": b""}
    t.process.kill()
    t.process.wait()
    os.unlink(state_file(t))
    if how == "folder":
        os.mkdir(state_file(t))
    else:
        with open(state_file(t), "wb") as file:
            file.write(spoilt[how])
    check(t._launch(), f"yoked does not start: {t.log()[-500:]}")
    with t.login() as session:
        check(values(mode_sense(session, CONTROL)) == (False, False), "trusted all the same")
        events = [row for row in t.call("events.list", max=100)["events"]
                  if row["name"] == "state-ignored"]
        check(len(events) == 1 and events[0]["fields"]["backing"] == "disk", f"events: {events}")
        if how == "folder":
            os.rmdir(state_file(t))
        mode_select(session, control_page(session, True)).good()
    again(t)
    with t.login() as session:
        check(values(mode_sense(session, CONTROL)) == (True, True), "not saved over the bad one")
        mode_select(session, control_page(session, False)).good()


@case
def a_save_that_fails_changes_nothing(t):
    os.mkdir(state_file(t) + ".new")
    with t.login() as session:
        before = values(mode_sense(session, CONTROL))
        task = mode_select(session, control_page(session, not before[0]))
        check(task.sense == "04/44/00", task.outcome())
        for control in (CURRENT, SAVED):
            check(values(mode_sense(session, CONTROL, control)) == before, "changed all the same")
        check("state-not-saved" in t.log(), "nobody was told")
        os.rmdir(state_file(t) + ".new")
        mode_select(session, control_page(session, not before[0])).good()
        mode_select(session, control_page(session, before[0])).good()


@case(own={})
def a_crash_in_the_middle_leaves_the_old_or_the_new(t):
    """Two sessions save in turns and do not wait; then it dies."""
    seed = random.getrandbits(32)
    rng = random.Random(seed)
    known = False
    for turn in range(12):
        sessions = [t.login(), t.login()]
        lists = {both: select_list(control_page(sessions[0], both)) for both in (False, True)}
        tasks = []
        for number in range(rng.randrange(1, 12)):
            both = bool(rng.getrandbits(1))
            listed = lists[both]
            tasks.append((both, scsi.start(sessions[number % 2], bytes(
                [0x15, PF | SP, 0, 0, len(listed), 0]), out=listed)))
        wanted = rng.randrange(0, len(tasks) + 1)
        try:
            for both, task in tasks[:wanted]:
                task.wait()
        except (Closed, Timeout) as error:
            raise AssertionError(f"seed {seed} turn {turn}: {error}") from None
        possible = {both for both, task in tasks if not task.done}
        if possible:    # else it can be asked what was saved last
            last = [[both for both, task in tasks[n::2] if task.done][-1:] for n in (0, 1)]
            possible.update(sum(last, []) or [known])
        else:
            possible = {values(mode_sense(scsi.ready(sessions[0]), CONTROL, SAVED))[0]}
        again(t)
        for session in sessions:
            session.close()
        with t.login() as session:
            found = values(mode_sense(session, CONTROL))
            check(found[0] == found[1], f"seed {seed} turn {turn}: mixed: {found}")
            check(found[0] in possible, f"seed {seed} turn {turn}: {found} of {possible}")
            known = found[0]
        check("state-ignored" not in t.log(), f"seed {seed} turn {turn}: a damaged file")


if __name__ == "__main__":
    main()
