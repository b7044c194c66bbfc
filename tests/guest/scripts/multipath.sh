#!/bin/sh
# SPDX-License-Identifier: MIT
# Log in through both network cards, put a multipath device on top, and let fio
# write and verify through the loss and the return of one path.
#   run-guest scripts/multipath.sh PORT [PORT]
set -eu
# shellcheck source=tests/guest/guest/guest.sh
. /lib/guest.sh

start_iscsid
start_multipath
TARGET=${TARGET:-$(first_target "$PORTAL1")}

say "two sessions"
login "$TARGET" "$PORTAL1"
login "$TARGET" "$PORTAL2"
iscsiadm -m session
disk=$(disk "$TARGET" "$PORTAL1")
wait_for 20 mpath "$disk"
dev=$(mpath "$disk")
map=${dev##*/}
wait_for 20 live_paths "$map" 2
multipath -ll

# One pass writes 4 MiB in random order, reads it back and compares.
pass() {
	fio --name=pass --filename="$dev" --rw=randwrite --bs=4k --size=4M --direct=1 \
		--ioengine=libaio --iodepth=16 --verify=crc32c --verify_fatal=1 >/tmp/fio.log 2>&1
}
passes() {
	n=0
	until [ -e /tmp/stop ]; do pass || return; n=$((n + 1)); done
	echo "$n passes verified"
}
# Sectors read from and written to the map so far.
sectors() { awk '{ print $3 + $7 }' "/sys/block/$(basename "$(readlink -f "$dev")")/stat"; }
moved() { [ $(($(sectors) - before)) -ge 1000 ]; }
goes_on() {
	before=$(sectors)
	wait_for 20 moved || die "I/O does not go on"
	echo "-- I/O goes on"
}

say "fio verify on $dev, both paths"
pass || { cat /tmp/fio.log; die "fio"; }
grep -E 'IOPS|err=' /tmp/fio.log
passes &
fio=$!

say "eth1 down"
sleep 2
ip link set eth1 down
wait_for 30 live_paths "$map" 1
multipath -ll
goes_on

say "eth1 up"
ip link set eth1 up
wait_for 60 live_paths "$map" 2
multipath -ll
goes_on

say "log the second session out"
logout "$TARGET" "$PORTAL2"
wait_for 30 live_paths "$map" 1
multipath -ll
goes_on

say "result"
touch /tmp/stop
wait "$fio" || { cat /tmp/fio.log; die "fio"; }
multipath -f "$map"
logout "$TARGET" "$PORTAL1"
