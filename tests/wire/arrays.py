# SPDX-License-Identifier: MIT
"""A yoked with disks for arrays: files that `disks` matches, and memory."""

import os

from target import Target, wait_until

MIB = 1 << 20


class Arrays(Target):
    """Files disk0.img... in the test's folder, matched by `disks`, and ram backings m0..."""

    def __init__(self, files=4, rams=0, luns=None, size=24, **node):
        super().__init__(node={"array_wait": "1s", **node}, luns=luns or {1: {"array": "a"}},
                         backings={"plain": {"size": "1M"},
                                   **{f"m{n}": {"size": f"{size}M"} for n in range(rams)}})
        self.files, self.size = files, size

    def path(self, number):
        return os.path.join(self.dir, f"disk{number}.img")

    def configuration(self):
        for number in range(self.files):
            if not os.path.exists(self.path(number)) and not hasattr(self, "made"):
                with open(self.path(number), "wb") as image:
                    image.truncate(self.size * MIB)
        self.made = True
        return super().configuration()

    def make(self, level, *numbers, name="a", **params):
        return self.call("array.create", name=name, level=level,
                         disks=[self.path(n) for n in numbers], **params)

    def healthy(self, name="a"):
        wait_until(lambda: self.array(name)["state"] == "healthy" and
                   not self.array(name)["resync"], 30, f"{name} to be healthy: {self.array(name)}")

    def disks(self):
        return {os.path.basename(row["disk"]): row for row in self.call("disk.list")["disks"]}
