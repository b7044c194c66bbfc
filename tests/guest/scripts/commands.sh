#!/bin/sh
# SPDX-License-Identifier: MIT
# What yoked says of itself and does with the block commands beyond READ and WRITE, as sg3-utils
# and the kernel see it. Its first disk is in memory: 64 MiB of 512 bytes. Everything is checked here.
#   run-guest scripts/commands.sh PORT PORT
set -eu
# shellcheck source=tests/guest/guest/guest.sh
. /lib/guest.sh

start_iscsid
TARGET=${TARGET:-$(first_target "$PORTAL1")}
login "$TARGET" "$PORTAL1"
login "$TARGET" "$PORTAL2"
disk=$(disk "$TARGET" "$PORTAL1")
other=$(disk "$TARGET" "$PORTAL2")

# ends STATUS COMMAND...: sg3-utils' 0 good, 5 illegal request, 9 no such opcode, 14 miscompare,
# 22 LBA out of range
ends() {
	_want=$1 _got=0; shift
	echo "# $*"
	"$@" >/tmp/sg.log 2>&1 || _got=$?
	cat /tmp/sg.log
	[ "$_got" = "$_want" ] || die "status $_got, not $_want"
}
# says LINE...: each is a line of what was printed last, whatever the blanks around it.
says() {
	for _line; do
		sed 's/^[[:space:]]*//; s/[[:space:]]*$//' /tmp/sg.log | grep -qxF -e "$_line" ||
			die "not said: $_line"
	done
}
page() { ends 0 sg_vpd --page="$1" "$disk"; }
block() { dd if="$disk" bs=512 skip="$1" count="$2" iflag=direct 2>/dev/null; }
pattern() { head -c $((512 * $2)) /dev/zero | tr '\0' "$1"; }
# is LBA BLOCKS CHARACTER, fill LBA BLOCKS CHARACTER
is() {
	block "$1" "$2" >/tmp/is
	pattern "$3" "$2" | cmp - /tmp/is || die "LBA $1+$2 is not all $3"
}
fill() { pattern "$3" "$2" | dd of="$disk" bs=512 seek="$1" oflag=direct conv=fsync 2>/dev/null; }

say "vital product data"
page 0x00
[ "$(grep -o '\[[a-z]*\]' /tmp/sg.log | tr -d '\n')" = "[sv][sn][di][ei][bl][bdc][lbpv]" ] ||
	die "other pages"
page 0x80
serial=$(sed -n 's/.*Unit serial number: //p' /tmp/sg.log)
page 0x83
says "vendor specific: $serial" "Relative target port: 0x1" "$TARGET,t,0x0001" "$TARGET"
naa=0x3$(echo "$serial" | tr -d - | cut -c 2-16)
says "$naa"
ends 0 sg_vpd --page=0x83 "$other"
says "vendor specific: $serial" "Relative target port: 0x2" "$TARGET,t,0x0002" "$naa"
page 0x86
says "UASK_SUP=0 GROUP_SUP=0 PRIOR_SUP=0 HEADSUP=1 ORDSUP=1 SIMPSUP=1" \
	"WU_SUP=0 [CRD_SUP=0] NV_SUP=0 V_SUP=0"
page 0xb0
says "Write same non-zero (WSNZ): 0" \
	"Maximum compare and write length: 128 blocks" \
	"Maximum transfer length: 32768 blocks" \
	"Maximum unmap LBA count: 1048576" \
	"Maximum unmap block descriptor count: 256" \
	"Maximum write same length: 0x8000 blocks"
page 0xb1
says "Non-rotating medium (e.g. solid state)"
page 0xb2
says "Unmap command supported (LBPU): 1" \
	"Write same (16) with unmap bit supported (LBPWS): 1" \
	"Write same (10) with unmap bit supported (LBPWS10): 1" \
	"Logical block provisioning read zeros (LBPRZ): 1" \
	"Anchored LBAs supported (ANC_SUP): 0" \
	"Provisioning type: 2 (thin provisioned)"
ends 5 sg_vpd --force --page=0xb3 "$disk"

say "what the kernel made of it"
for fact in discard_max_bytes:536870912 write_zeroes_max_bytes:16777216 rotational:0 \
	logical_block_size:512 "write_cache:write through"; do
	[ "$(cat "/sys/block/${disk##*/}/queue/${fact%%:*}")" = "${fact#*:}" ] || die "$fact"
done
[ "$(cat "/sys/block/${disk##*/}/device/scsi_disk"/*/provisioning_mode)" = unmap ] || die "not thin"
cmp "/sys/block/${disk##*/}/device/wwid" "/sys/block/${other##*/}/device/wwid"

say "commands"
ends 0 sg_opcodes "$disk"
# Opcode, or opcode and service action.
sed -nE 's/^ ([0-9a-f]{2}) +([0-9a-f]{1,4} +)?(6|10|12|16) +[0-9]+,[0-9]+ .*/\1 \2/p' /tmp/sg.log |
	sed 's/ *$//' >/tmp/opcodes
for row in 00 03 08 0a 12 15 1a 25 28 2a 2f 35 41 42 88 89 8a 8b 8f 91 93 "9e 10" "9e 12" a0 \
	"a3 c" "a3 d" "48 2" "48 1f"; do
	grep -qx "$row" /tmp/opcodes || die "no opcode $row"
done
ends 0 sg_opcodes --opcode=0x89 "$disk"
says "Command is supported [conforming to SCSI standard]" \
	"Usage data: 89 f8 ff ff ff ff ff ff ff ff 00 00 00 ff 00 04"
unless_listed() { # OPCODE COMMAND...: refused as unknown
	_row=$1; shift
	grep -qx "$_row" /tmp/opcodes || ends 9 "$@"
}
unless_listed 83 sg_raw --request=36 "$disk" 84 03 00 00 00 00 00 00 00 00 00 00 00 24 00 00
unless_listed "5e 0" sg_persist --in --read-keys "$disk"
ends 0 sg_opcodes --tmf "$disk"
says "Abort task" "Abort task set" "Clear task set" "Logical unit reset" "Query task" \
	"I_T nexus reset"

say "WRITE SAME"
pattern W 1 >/tmp/w
fill 8191 258 A
ends 0 sg_write_same --16 --in=/tmp/w --lba=8192 --num=256 --xferlen=512 "$disk"
is 8192 256 W
ends 0 sg_write_same --16 --ndob --lba=8192 --num=64 "$disk"
is 8192 64 '\0'
ends 0 sg_write_same --10 --in=/tmp/w --lba=8192 --num=32 --xferlen=512 "$disk"
is 8192 32 W
is 8224 32 '\0'
ends 0 sg_write_same --16 --unmap --in=/dev/zero --lba=8192 --num=256 --xferlen=512 "$disk"
is 8192 256 '\0'
is 8191 1 A
is 8448 1 A
ends 0 sg_write_same --16 --in=/tmp/w --lba=0 --num=32768 --xferlen=512 "$disk"
is 32767 1 W
ends 5 sg_write_same --16 --in=/tmp/w --lba=0 --num=32769 --xferlen=512 "$disk"

say "COMPARE AND WRITE"
fill 100 2 A
{ pattern A 1; pattern B 1; } >/tmp/caw
ends 0 sg_compare_and_write --in=/tmp/caw --lba=100 --num=1 --xferlen=1024 "$disk"
is 100 1 B
is 101 1 A
# Over the other path: the block is the same one, and no longer what was compared.
ends 14 sg_compare_and_write --in=/tmp/caw --lba=100 --num=1 --xferlen=1024 "$other"
is 100 1 B
{ pattern B 1; head -c 300 /tmp/caw; pattern C 3; } | head -c 2048 >/tmp/caw2
ends 14 sg_compare_and_write --verbose --in=/tmp/caw2 --lba=100 --num=2 --xferlen=2048 "$disk"
says "Additional sense: Miscompare during verify operation"
grep -q 'byte offset: 812 ' /tmp/sg.log || die "not where it differs"
is 100 1 B
pattern A 256 >/tmp/caw
fill 2000 128 A
ends 0 sg_compare_and_write --in=/tmp/caw --lba=2000 --num=128 --xferlen=131072 "$disk"
pattern A 258 >/tmp/caw
ends 5 sg_compare_and_write --in=/tmp/caw --lba=2000 --num=129 --xferlen=132096 "$disk"

# lba_status LBA RUN...: descriptors from there on, as LBA, blocks and status; 1 is deallocated
lba_status() {
	_lba=$1; shift
	ends 0 sg_get_lba_status --brief --maxlen=1024 --lba="$_lba" "$disk"
	for _run; do
		grep -q "^$_run  " /tmp/sg.log || die "not told: $_run"
	done
}

say "UNMAP and GET LBA STATUS"
ends 0 sg_unmap --force --lba=0 --num=131072 "$disk"
lba_status 0 "0x0000000000000000  0x20000  1"
fill 4096 1024 A
lba_status 0 "0x0000000000000000  0x1000  1" "0x0000000000001000  0x400  0" \
	"0x0000000000001400  0x1ec00  1"
ends 0 sg_unmap --force --lba=4224 --num=256 "$disk"
is 4096 128 A
is 4224 256 '\0'
is 4480 640 A
lba_status 4096 "0x0000000000001000  0x80  0" "0x0000000000001080  0x100  1" \
	"0x0000000000001180  0x280  0"
lba_status 4230 "0x0000000000001086  0xfa  1"
ends 22 sg_unmap --force --lba=131071 --num=2 "$disk"
ends 22 sg_unmap --force --lba=131072 --num=1 "$disk"
ends 22 sg_get_lba_status --lba=131072 "$disk"

say "SANITIZE"
# Of a thin unit blocks are erased; writing would reach nothing that was given back.
ends 5 sg_sanitize --overwrite --zero --quick "$disk"
ends 5 sg_sanitize --crypto --quick "$disk"
is 4096 128 A
ends 0 sg_sanitize --block --quick --wait "$disk"
lba_status 0 "0x0000000000000000  0x20000  1"
is 4096 1024 '\0'
fill 4096 1024 A
# Not waited for: whoever asks meanwhile is told to come back, and so over the other path.
ends 0 sg_sanitize --block --quick --early "$disk"
wait_for 60 sg_turs "$other"
is 4096 1024 '\0'

say "logout"
logout "$TARGET" "$PORTAL2"
logout "$TARGET" "$PORTAL1"
echo "all as expected"
