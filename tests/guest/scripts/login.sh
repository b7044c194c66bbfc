#!/bin/sh
# SPDX-License-Identifier: MIT
# Discover, log in, write a pattern, read it back, log out.
#   run-guest scripts/login.sh PORT       (-e TARGET=NAME, or the first found)
set -eu
# shellcheck source=tests/guest/guest/guest.sh
. /lib/guest.sh

start_iscsid
say "discovery"
iscsiadm -m discovery -t sendtargets -p "$PORTAL1" -o nonpersistent
TARGET=${TARGET:-$(first_target "$PORTAL1")}

say "login"
login "$TARGET" "$PORTAL1"
disk=$(disk "$TARGET" "$PORTAL1")
iscsiadm -m session -P 3 | grep -E 'Target:|State|Digest|Length|R2T|Attached scsi disk'
lsblk -o NAME,SIZE,TYPE,VENDOR,MODEL,LOG-SEC,PHY-SEC,DISC-GRAN

say "write, read back and compare 8 MiB"
dd if=/dev/urandom of=/tmp/pattern bs=1M count=8 2>/dev/null
dd if=/tmp/pattern of="$disk" bs=256k oflag=direct conv=fsync
dd if="$disk" of=/tmp/back bs=256k count=32 iflag=direct
cmp /tmp/pattern /tmp/back
echo "the same"

say "logout"
logout "$TARGET" "$PORTAL1"
wait_for 10 [ ! -e "$disk" ]
