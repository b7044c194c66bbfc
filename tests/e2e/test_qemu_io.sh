#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# qemu-io's patterns: odd places and lengths, over the borders of buffers and bursts, read back
# through the other portal; on 512 and 4096 byte blocks, with and without a write cache.
. "$(dirname "$0")/../functions.sh"

left=$(free_port)
right=$(free_port)
{
	printf 'node "e2e" {\n  state_dir = "%s"\n  control = "%s"\n}\n' "$T/state" "$T/yoked.sock"
	echo "portal \"left\"  { listen = { \"127.0.0.1:$left\" }  group = 1 }"
	echo "portal \"right\" { listen = { \"127.0.0.1:$right\" }  group = 2 }"
	for block in 512 4096; do
		for cache in true false; do
			truncate -s 64M "$T/$block$cache.img"
			echo "backing \"f$block$cache\" { driver = \"file\"  path = \"$T/$block$cache.img\""
			echo "  block_size = $block  physical_block = 4096  write_cache = $cache }"
		done
	done
	echo 'target "iqn.2026-11.org.yoke:e2e" { portals = { "left", "right" }  allow = { "*" }'
	echo '  lun "0" { backing = "f512true" }   lun "1" { backing = "f512false" }'
	echo '  lun "2" { backing = "f4096true" }  lun "3" { backing = "f4096false" } }'
} >"$T/yoke.conf"
start_yoked "$T/yoke.conf"

# Places and lengths in units of 4 KiB; the pattern is the line's number.
places=(0+1 1+1 14+2 16+15 31+32 63+130 255+257 1000+1024 4000+4096 16383+1)
for lun in 0 1 2 3; do
	write=() read=() n=0
	for place in "${places[@]}"; do
		n=$((n + 1))
		at=$((${place%+*} * 4096)) len=$((${place#*+} * 4096))
		write+=(-c "write -P $n $at $len")
		read+=(-c "read -P $n $at $len")
	done
	url=iqn.2026-11.org.yoke:e2e/$lun
	qemu-io -f raw "${write[@]}" "iscsi://127.0.0.1:$left/$url" >"$T/out" 2>&1 ||
		fail "LUN $lun write: $(cat "$T/out")"
	qemu-io -r -f raw "${read[@]}" "iscsi://127.0.0.1:$right/$url" >"$T/out" 2>&1 ||
		fail "LUN $lun read: $(cat "$T/out")"
	! grep -i 'verification failed\|error' "$T/out" || fail "LUN $lun: wrong data"
	expect "LUN $lun reads" "${#places[@]}" "$(grep -c '^read ' "$T/out")"
done
# A pattern that is not there is found out: this test can fail.
qemu-io -r -f raw -c "read -P 99 0 4096" "iscsi://127.0.0.1:$left/$url" >"$T/out" 2>&1 || true
grep -q 'verification failed' "$T/out" || fail "qemu-io took a wrong pattern for right"
