#!/bin/sh
# SPDX-License-Identifier: MIT
# Thin provisioning and the block commands beyond READ and WRITE. A command that
# the target does not have is reported, not counted as a failure.
#   run-guest scripts/thin.sh PORT
set -eu
# shellcheck source=tests/guest/guest/guest.sh
. /lib/guest.sh

start_iscsid
TARGET=${TARGET:-$(first_target "$PORTAL1")}
login "$TARGET" "$PORTAL1"
disk=$(disk "$TARGET" "$PORTAL1")

# try COMMAND...: run it; whether it worked.
try() {
	echo "# $*"
	"$@" >/tmp/sg.log 2>&1 && return
	status=$?
	# sg3-utils' status for an invalid operation code is 9, for an invalid field 5.
	case $status:$(cat /tmp/sg.log) in
		5:* | 9:* | *"Invalid opcode"*) echo "not supported by this target (status $status)"; return 1 ;;
	esac
	cat /tmp/sg.log
	die "status $status"
}
block() {
	dd if="$disk" bs=64k skip=$(($1 * 512)) count=$(($2 * 512)) \
		iflag=direct,skip_bytes,count_bytes,fullblock 2>/dev/null
}
# fill LBA BLOCKS CHARACTER
fill() {
	head -c $(($2 * 512)) /dev/zero | tr '\0' "$3" |
		dd of="$disk" bs=$(($2 * 512)) seek=$(($1 * 512)) oflag=direct,seek_bytes conv=fsync 2>/dev/null
}
is() { [ "$(block "$1" "$2" | tr -d "$3" | wc -c)" -eq 0 ] || die "LBA $1+$2 is not all $3"; }

say "what the target says"
sg_readcap --16 "$disk"
sg_vpd --page=bl "$disk" || :
sg_vpd --page=lbpv "$disk" || :
grep -H . "/sys/block/${disk##*/}/queue/"discard_* \
	"/sys/block/${disk##*/}/device/scsi_disk"/*/provisioning_mode

say "UNMAP"
fill 2048 64 A
if try sg_unmap --force --lba=2048 --num=64 "$disk"; then is 2048 64 '\0'; fi
try sg_get_lba_status --lba=2048 "$disk" && cat /tmp/sg.log

say "blkdiscard and blkdiscard --zeroout"
fill 4096 2048 A
blkdiscard -f --offset 2M --length 1M "$disk"
# What a discard leaves need not be zeroes, unless the target says so (LBPRZ).
if sg_readcap --16 "$disk" | grep -q lbprz=1; then is 4096 2048 '\0'; fi
fill 4096 2048 A
blkdiscard -f --zeroout --offset 2M --length 1M "$disk"
is 4096 2048 '\0'

say "WRITE SAME"
head -c 512 /dev/zero | tr '\0' W >/tmp/w
if try sg_write_same --16 --in=/tmp/w --lba=8192 --num=256 --xferlen=512 "$disk"; then is 8192 256 W; fi
if try sg_write_same --10 --in=/tmp/w --lba=8192 --num=64 --xferlen=512 "$disk"; then is 8192 64 W; fi
if try sg_write_same --16 --unmap --in=/dev/zero --lba=8192 --num=256 --xferlen=512 "$disk"; then
	is 8192 256 '\0'
fi

say "COMPARE AND WRITE: the first must write, the second must miscompare (14)"
fill 100 1 A
{ head -c 512 /dev/zero | tr '\0' A; head -c 512 /dev/zero | tr '\0' B; } >/tmp/caw
if try sg_compare_and_write --in=/tmp/caw --lba=100 --num=1 --xferlen=1024 "$disk"; then
	is 100 1 B
	status=0
	sg_compare_and_write --in=/tmp/caw --lba=100 --num=1 --xferlen=1024 "$disk" || status=$?
	[ "$status" -eq 14 ] || die "no miscompare but $status"
	is 100 1 B
fi

say "EXTENDED COPY"
fill 20000 128 X
fill 30000 128 Y
if try sg_xcopy if="$(sg "$disk")" of="$(sg "$disk")" skip=20000 seek=30000 count=128 bs=512; then is 30000 128 X; fi

logout "$TARGET" "$PORTAL1"
