#!/bin/sh
# SPDX-License-Identifier: MIT
# What the kernel's scan finds: a line for each logical unit, none after logout.
#   run-guest -e LUNS=64 scripts/luns.sh PORT
set -eu
# shellcheck source=tests/guest/guest/guest.sh
. /lib/guest.sh

start_iscsid
TARGET=${TARGET:-$(first_target "$PORTAL1")}
found() { set -- /sys/class/scsi_device/*/device/block/sd*; [ -e "$1" ] && echo $#; }
found_all() { [ "$(found)" -ge "$LUNS" ]; }

say "login"
login "$TARGET" "$PORTAL1"
wait_for 120 found_all || :
for path in /sys/class/scsi_device/*; do
	address=${path##*/}
	[ -e "$path/device/block" ] || { echo "lun ${address##*:} without a disk"; continue; }
	disk=$(echo "$path"/device/block/*)
	echo "lun ${address##*:} sectors $(cat "$disk/size") wwid $(cat "$path/device/wwid")"
done
echo "iscsiadm: $(iscsiadm -m session -P 3 | grep -c 'Attached scsi disk sd.*State: running')"
sg_luns --quiet "$(disk "$TARGET" "$PORTAL1")" | grep -c '^ *[0-9a-f]\{16\}$'

say "logout"
logout "$TARGET" "$PORTAL1"
wait_for 60 [ -z "$(found || :)" ]
