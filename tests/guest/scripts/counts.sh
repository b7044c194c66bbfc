#!/bin/sh
# SPDX-License-Identifier: MIT
# fio does a known number of accesses; before and after it, whoever listens on COUNTER of the host
# looks at the target's counters, and closes the connection when it has.
#   run-guest -e COUNTER=PORT scripts/counts.sh PORT
set -eu
# shellcheck source=tests/guest/guest/guest.sh
. /lib/guest.sh

start_iscsid
TARGET=${TARGET:-$(first_target "$PORTAL1")}
login "$TARGET" "$PORTAL1"
disk=$(disk "$TARGET" "$PORTAL1")

# Two accesses that the kernel makes one of would be one command.
echo 2 >"/sys/block/${disk##*/}/queue/nomerges"

look() { nc "${PORTAL1%:*}" "$COUNTER" </dev/null; }

# LOAD BS IO_SIZE: nothing else opens the disk, and there is no udev here.
load() {
	look
	fio --name=count --filename="$disk" --rw="$1" --bs="$2" --io_size="$3" --size=32M \
		--norandommap --direct=1 --ioengine=libaio --iodepth=8 --thread \
		--output-format=json --output=/tmp/fio.json >/dev/null
	look
	echo "fio $1 $(awk -F'[:,]' '/"total_ios"/ { print $2 + 0 }' /tmp/fio.json | head -n 2 | xargs)"
}

# Opened once: the kernel has looked for partitions when this is done.
blockdev --getsize64 "$disk"
say "accesses"
load randread 4k 8M
load randwrite 16k 8M
load randrw 4k 8M

say "logout"
logout "$TARGET" "$PORTAL1"
