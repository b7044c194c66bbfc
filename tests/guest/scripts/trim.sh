#!/bin/sh
# SPDX-License-Identifier: MIT
# ext4 gives space back: by mkfs, by fstrim, and at once when mounted with discard. What is kept
# stays what it was.
#   run-guest -e ASK=PORT scripts/trim.sh PORT
# Whoever connects to ASK is told how many bytes the store holds.
set -eu
# shellcheck source=tests/guest/guest/guest.sh
. /lib/guest.sh

start_iscsid
TARGET=${TARGET:-$(first_target "$PORTAL1")}
held() { echo "-- held $1: $(nc "${PORTAL1%:*}" "$ASK" </dev/null)"; }
fill() { dd if=/dev/urandom of="/mnt/$1" bs=1M count="$2" conv=fsync 2>/dev/null; }
login "$TARGET" "$PORTAL1"
disk=$(disk "$TARGET" "$PORTAL1")
grep -H . "/sys/block/${disk##*/}/device/scsi_disk"/*/provisioning_mode
held before

say "mkfs"
mkfs.ext4 -q -F -E discard "$disk"
held "after mkfs"

say "fill"
mount -t ext4 -o nodiscard "$disk" /mnt
fill one 20
fill kept 4
fill two 20
(cd /mnt && md5sum kept) >/tmp/sums
held "after filling"

say "remove, and trim"
rm /mnt/one /mnt/two
sync
held "after removing"
fstrim -v /mnt
held "after trimming"
umount /mnt

say "mounted with discard"
mount -t ext4 -o discard "$disk" /mnt
fill three 16
held "after filling"
rm /mnt/three
sync
held "after removing"
umount /mnt

say "log out and in again, compare, check"
logout "$TARGET" "$PORTAL1"
login "$TARGET" "$PORTAL1"
disk=$(disk "$TARGET" "$PORTAL1")
mount -t ext4 "$disk" /mnt
(cd /mnt && md5sum -c /tmp/sums)
umount /mnt
e2fsck -f -n "$disk"
logout "$TARGET" "$PORTAL1"
