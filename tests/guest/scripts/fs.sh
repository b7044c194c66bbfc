#!/bin/sh
# SPDX-License-Identifier: MIT
# A file system on the target: make it, fill it, mount it afresh, compare, check.
#   run-guest scripts/fs.sh PORT          (-e FS=xfs for XFS)
set -eu
# shellcheck source=tests/guest/guest/guest.sh
. /lib/guest.sh

FS=${FS:-ext4}
start_iscsid
TARGET=${TARGET:-$(first_target "$PORTAL1")}
login "$TARGET" "$PORTAL1"
disk=$(disk "$TARGET" "$PORTAL1")

say "mkfs.$FS"
case $FS in
	ext4) mkfs.ext4 -q -F "$disk" ;;
	# These three variables lift its minimum size of 300 MB.
	xfs) TEST_DIR=. TEST_DEV=. QA_CHECK_FS=. mkfs.xfs -q -f "$disk" ;;
esac
mount -t "$FS" "$disk" /mnt

say "copy"
cp -a /usr/sbin /usr/bin /mnt/
dd if=/dev/urandom of=/mnt/random bs=1M count=16 2>/dev/null
(cd /mnt && find . -type f -exec md5sum {} +) >/tmp/sums
sync
df -h /mnt | tail -n 1
umount /mnt

say "log out and in again, so that nothing is cached, and compare"
logout "$TARGET" "$PORTAL1"
login "$TARGET" "$PORTAL1"
disk=$(disk "$TARGET" "$PORTAL1")
mount -t "$FS" "$disk" /mnt
(cd /mnt && md5sum -c /tmp/sums) >/tmp/compared || { grep -v ': OK$' /tmp/compared; die "files differ"; }
echo "$(wc -l </tmp/sums) files are the same"
umount /mnt

say "check"
case $FS in
	ext4) e2fsck -f -n "$disk" ;;
	xfs) xfs_repair -n "$disk" ;;
esac
logout "$TARGET" "$PORTAL1"
