#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
# timeout: 120
"""Commands about disks and arrays that come at the same time."""

import threading

from arrays import Arrays
from harness import case, main
from iscsi import check
from target import wait_until


def at_once(*calls):
    """What each of CALLS, called at the same time, says."""
    said = [None] * len(calls)

    def run(index):
        said[index] = calls[index]()
    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return said


@case
def all_who_ask_about_a_disk_are_answered():
    with Arrays(files=2) as t:
        t.disks()
        before = t.fds()

        def ask():
            with t.control() as control:
                said = set()
                for _ in range(50):
                    try:
                        control.call("disk.label", disk=t.path(0))
                    except AssertionError as error:
                        said.add("carries no label" in str(error) or str(error))
                return said
        for said in at_once(*[ask] * 6):
            check(said == {True}, f"{said}")
        t.closed_to(before)
        # Nobody has it open any more, yoked itself least of all.
        check(t.disks()["disk0.img"]["state"] == "blank", f"{t.disks()}")
        t.make(1, 0, 1)


@case(each=[("create",), ("add",)])
def a_disk_goes_to_one_array(what):
    with Arrays(files=5) as t:
        disk = t.path(4)
        if what == "add":
            for name, numbers in (("a", (0, 1)), ("b", (2, 3))):
                t.make(1, *numbers, name=name)
                t.healthy(name)
                t.call("array.remove", name=name, member="d1", force=True, confirm=name)

        def ask(name, other):
            if what == "add":
                return t.refused("array.add", name=name, disk=disk)
            return t.refused("array.create", name=name, level=1, disks=[disk, t.path(other)])
        said = at_once(lambda: ask("a", 0), lambda: ask("b", 1))
        check(said.count(None) == 1, f"{said}")
        refusal = next(filter(None, said))
        check("another command has it under way" in refusal or "a member of array" in refusal,
              refusal)
        winner = "ab"[said.index(None)]
        t.healthy(winner)
        t.restart()
        t.healthy(winner)
        check(t.disks()["disk4.img"]["array"] == winner, f"{t.disks()}")


@case
def a_backing_on_its_way_into_an_array_is_not_shown_nor_closed():
    with Arrays(files=0, rams=2) as t:
        with t.fault("m0", "stuck", op="write"):
            said = []
            thread = threading.Thread(target=lambda: said.append(t.refused(
                "array.create", name="a", level=1, disks=["backing:m0", "backing:m1"])))
            thread.start()
            t.held()
            for change in ("lun", "gone"):
                luns, backings = dict(t.luns), dict(t.backings)
                if change == "lun":
                    t.luns[2] = "m0"
                else:
                    del t.backings["m0"]
                with open(t.config_path, "w", encoding="utf-8") as config:
                    config.write(t.configuration())
                refusal = t.refused("config.reload")
                check(refusal and "a command about its disk is under way" in refusal,
                      f"{change}: {refusal}")
                t.luns, t.backings = luns, backings
        thread.join()
        check(said == [None], f"{said}")
        wait_until(lambda: t.array("a")["state"] == "healthy", 30, "the array")


if __name__ == "__main__":
    main()
