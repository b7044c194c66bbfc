#!/usr/bin/python3
# SPDX-License-Identifier: MIT
# subtests: yes
"""A store that goes wrong under load: the host hears of it, and never GOOD for what is not there."""

import datetime
import os
import subprocess
import time

import scsi
from harness import Skip, case, main
from iscsi import check
from target import Target, wait_until

MIB = 1 << 20
BLOCK = bytes(range(256)) * 16


class OnFile(Target):
    """One LUN on a file of its own; the name of the file is t.image."""

    def __init__(self, where=None, size=16 * MIB, **backing):
        self.where, self.size, self.backing = where, size, backing
        super().__init__(backings={"disk": {}})

    def configuration(self):
        self.image = os.path.join(self.where or self.dir, "disk.img")
        if not os.path.exists(self.image):
            with open(self.image, "wb") as image:
                image.truncate(self.size)
        self.backings = {"disk": {"driver": "file", "path": self.image, **self.backing}}
        return super().configuration().replace('  size = "32M"\n', "")


class Tmpfs:
    """A small file system in memory, gone at the end."""

    def __init__(self, target_dir, size):
        self.path, self.size = target_dir, size

    def __enter__(self):
        os.makedirs(self.path)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={self.size}", "tmpfs",
                               self.path], capture_output=True, text=True, check=False)
        if done.returncode:
            os.rmdir(self.path)
            raise Skip(f"cannot mount a tmpfs: {done.stderr.strip()}")
        return self.path

    def __exit__(self, *_):
        subprocess.run(["umount", self.path], check=False)
        os.rmdir(self.path)


@case(each=[True, False])
def a_file_cut_short_is_a_medium_error(direct):
    with OnFile(direct=direct) as t, t.login() as session:
        scsi.write(session, 0, BLOCK)
        scsi.write(session, 20000, BLOCK)
        os.truncate(t.image, MIB)
        check(scsi.read(session, 0, 4096) == BLOCK, "what is left is not readable")
        task = scsi.run(session, scsi.read10(20000, 8), read=4096)
        check(task.sense == "03/11/00", f"read past the end: {task.outcome()}")
        check(not task.received.strip(b"\0"), "data of nowhere came")
        # A write past the end must not be answered GOOD and then be unreadable.
        task = scsi.run(session, scsi.write10(20000, 8), out=BLOCK)
        if task.status == scsi.GOOD:
            check(scsi.read(session, 20000, 4096) == BLOCK, "GOOD for data that are not there")
        else:
            # The store as a whole is no longer trusted.
            check(task.sense in ("03/0C/00", "02/04/03"), f"write past the end: {task.outcome()}")
        problems = wait_until(t.problems, 5, "a problem in status")
        check("cut short" in problems["backing-failed"]["detail"], f"{problems}")


@case
def what_was_put_right_serves_again_after_a_reload():
    with OnFile() as t, t.login() as session:
        scsi.write(session, 20000, BLOCK)
        os.truncate(t.image, MIB)
        check(scsi.run(session, scsi.read10(20000, 8), read=4096).sense == "03/11/00", "no error")
        check("still not usable" in t.call("config.reload")["changes"][0], "no word of it")
        check(scsi.run(session, scsi.read10(0, 8), read=4096).sense == "02/04/03", "usable")
        os.truncate(t.image, t.size)
        check(t.call("config.reload")["changes"] == ["backing disk usable again"], "not tried")
        check(not t.problems(), f"status says {t.problems()}")
        scsi.ready(session)
        scsi.write(session, 20000, BLOCK)
        check(scsi.read(session, 20000, 4096) == BLOCK, "data differ")
        with t.login() as again:
            check(scsi.read(again, 20000, 4096) == BLOCK, "data differ")


@case(each=[True, False])
def a_full_disk_says_so_and_overwrites_go_on(direct):
    with Tmpfs(f"/tmp/yoke-full-{os.getpid()}", "8M") as where, \
            OnFile(where=where, size=16 * MIB, direct=direct) as t, t.login() as session:
        scsi.write(session, 0, BLOCK)
        outcome = None
        for block in range(1, 16):
            task = scsi.run(session, scsi.write10(block * 2048, 2048), out=os.urandom(MIB))
            if task.status != scsi.GOOD:
                outcome = task.sense
                break
        check(outcome == "07/27/07", f"no room: {outcome}")
        check(scsi.read(session, 0, 4096) == BLOCK, "data lost")
        scsi.write(session, 0, BLOCK[::-1])
        check(scsi.read(session, 0, 4096) == BLOCK[::-1], "overwriting failed")
        check("backing-full" in t.problems(), f"status says {t.problems()}")
        for problem in t.call("status.show")["problems"]:
            since = datetime.datetime.fromisoformat(problem["since_utc"].replace("Z", "+00:00"))
            check(abs(time.time() - since.timestamp()) < 300, f"{problem['code']} since {since}")


def still_writable(file):
    file.seek(-1, os.SEEK_END)
    last = file.read(1)
    file.seek(-1, os.SEEK_END)
    try:
        file.write(last)
    except OSError:
        return False
    return True


@case
def a_file_that_turns_read_only():
    with OnFile() as t, t.login() as session, open(t.image, "r+b", buffering=0) as image:
        scsi.write(session, 0, BLOCK)
        if subprocess.run(["chattr", "+i", t.image], capture_output=True, check=False).returncode:
            raise Skip("this file system has no immutable files")
        try:
            if still_writable(image):
                raise Skip("this file system lets those write who had an immutable file open")
            task = scsi.run(session, scsi.write10(0, 8), out=BLOCK[::-1])
            check(task.sense == "07/27/00", f"write: {task.outcome()}")
            check(scsi.read(session, 0, 4096) == BLOCK, "not readable, or changed")
            check("backing-read-only" in t.problems(), f"status says {t.problems()}")
        finally:
            subprocess.run(["chattr", "-i", t.image], check=False)
        t.call("config.reload")
        scsi.ready(session)
        scsi.write(session, 0, BLOCK[::-1])
        check(not t.problems(), f"status says {t.problems()}")


ERRORS = {
    ("read", "EIO"): "03/11/00",
    ("write", "EIO"): "03/0C/00",
    ("write", "ENOSPC"): "07/27/07",
    ("write", "EROFS"): "07/27/00",
    ("read", "ENXIO"): "02/04/03",
    ("write", "ENXIO"): "02/04/03",
    ("read", "EAGAIN"): "02/04/01",
}


@case(each=ERRORS)
def an_error_of_the_store_becomes_its_sense(op, error):
    with Target() as t, t.login() as session:
        scsi.write(session, 8, BLOCK)
        t.add_fault("disk", "error", op=op, error=error)
        if op == "read":
            task = scsi.run(session, scsi.read10(8, 8), read=4096)
        else:
            task = scsi.run(session, scsi.write10(8, 8), out=BLOCK)
        wanted = ERRORS[op, error]
        check(task.sense == wanted, f"{error} at {op}: {task.outcome()}, not {wanted}")
        check("faults-active" in [row["code"] for row in t.call("status.show")["problems"]],
              "status does not say that faults are on")
        t.clear_faults()
        check(scsi.read(session, 8, 4096) == BLOCK, "not well again")


@case
def a_torn_write_is_not_good():
    with Target() as t, t.login() as session:
        scsi.write(session, 0, bytes(4096))
        t.add_fault("disk", "torn", op="write", torn_bytes=1024, count=1)
        task = scsi.run(session, scsi.write10(0, 8), out=BLOCK)
        check(task.sense == "03/0C/00", f"a torn write: {task.outcome()}")
        check(scsi.read(session, 0, 4096) == BLOCK[:1024] + bytes(3072), "torn elsewhere")


@case
def killed_without_warning_it_has_what_it_said():
    """kill -9 loses what is in the process; GOOD had to be beyond it."""
    with OnFile() as t:
        session = t.login()
        for lba in range(0, 8 * 500, 8):
            scsi.write(session, lba, bytes([lba // 8 % 251]) * 4096)
        t.process.kill()
        t.process.wait()
        session.close()
        check(t._launch(), "does not start again")
        with t.login() as again:
            for lba in range(0, 8 * 500, 8):
                check(scsi.read(again, lba, 4096) == bytes([lba // 8 % 251]) * 4096,
                      f"LBA {lba} lost")


if __name__ == "__main__":
    main()
