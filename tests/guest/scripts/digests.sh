#!/bin/sh
# SPDX-License-Identifier: MIT
# Sessions with header and data digests, in every combination: I/O of many sizes comes back, and
# the kernel says that the digests are on.
#   run-guest scripts/digests.sh PORT
set -eu
# shellcheck source=tests/guest/guest/guest.sh
. /lib/guest.sh

start_iscsid
TARGET=${TARGET:-$(first_target "$PORTAL1")}

# digest_is header|data None|CRC32C: what the kernel says of its one connection.
digest_is() {
	_is=$(cat /sys/class/iscsi_connection/connection*/"$1"_digest)
	case $2:$_is in
	None:0 | None:None | CRC32C:1 | CRC32C:CRC32C) ;;
	*) die "$1 digest is $_is, not $2" ;;
	esac
}

for header in None CRC32C; do
	for data in None CRC32C; do
		say "HeaderDigest=$header DataDigest=$data"
		login "$TARGET" "$PORTAL1" 'node.conn[0].iscsi.HeaderDigest' "$header" \
			'node.conn[0].iscsi.DataDigest' "$data"
		disk=$(disk "$TARGET" "$PORTAL1")
		digest_is header "$header"
		digest_is data "$data"
		fio --name=digests --filename="$disk" --rw=randwrite --bsrange=512-128k \
			--bs_unaligned=0 --size=8M --direct=1 --ioengine=libaio --iodepth=8 \
			--verify=crc32c --verify_fatal=1 >/tmp/fio.log 2>&1 ||
			{ cat /tmp/fio.log; die "fio"; }
		dd if=/dev/urandom of=/tmp/pattern bs=512 count=1025 2>/dev/null
		dd if=/tmp/pattern of="$disk" bs=512 oflag=direct seek=77 conv=fsync 2>/dev/null
		dd if="$disk" of=/tmp/back bs=512 count=1025 skip=77 iflag=direct 2>/dev/null
		cmp /tmp/pattern /tmp/back
		[ "$(cat /sys/class/iscsi_session/session*/state)" = LOGGED_IN ] || die "session lost"
		echo "the same"
		logout "$TARGET" "$PORTAL1"
		wait_for 10 [ ! -e "$disk" ]
	done
done
