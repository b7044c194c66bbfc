#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# libiscsi's tools, which hosts' scripts use, see what there is: targets, LUNs, sizes, identities.
. "$(dirname "$0")/../functions.sh"

port=$(free_port)
luns=(0 1 7 255 256 300 16383)
{
	printf 'node "e2e" {\n  state_dir = "%s"\n  control = "%s"\n}\n' "$T/state" "$T/yoked.sock"
	echo "portal \"p\" { listen = { \"127.0.0.1:$port\" }  group = 1 }"
	for lun in "${luns[@]}"; do
		echo "backing \"b$lun\" { driver = \"ram\"  size = \"$((lun % 100 + 1))M\" }"
	done
	echo 'target "iqn.2026-11.org.yoke:many" { portals = { "p" }  allow = { "*" }'
	for lun in "${luns[@]}"; do
		echo "  lun \"$lun\" { backing = \"b$lun\" }"
	done
	echo '}'
	echo 'target "iqn.2026-11.org.yoke:one" { portals = { "p" }  allow = { "*" }'
	echo '  lun "1" { backing = "b7" } }'
} >"$T/yoke.conf"
start_yoked "$T/yoke.conf"

# The tools take and show a LUN as the first two bytes of its address: from 256 on, with flat
# addressing's 4000h.
address() { echo $(($1 < 256 ? $1 : 0x4000 | $1)); }

# iscsi-ls: each target with its portal, each LUN with its size.
timeout 60 iscsi-ls -s "iscsi://127.0.0.1:$port" >"$T/ls" 2>&1 || fail "iscsi-ls: $(cat "$T/ls")"
expect "targets" "iqn.2026-11.org.yoke:many iqn.2026-11.org.yoke:one" \
	"$(sed -nE 's/^Target:([^ ]+) Portal:127\.0\.0\.1:'"$port"',1$/\1/p' "$T/ls" | sort | xargs)"
expect "LUNs" "0 1 1 7 255 $(address 256) $(address 300) $(address 16383)" \
	"$(sed -nE 's/^Lun:([0-9]+) +Type:DIRECT_ACCESS.*/\1/p' "$T/ls" | sort -n | xargs)"

# iscsi-inq: a disk of ours where there is one, its serial number the backing's uuid.
for lun in "${luns[@]}"; do
	url=iscsi://127.0.0.1:$port/iqn.2026-11.org.yoke:many/$(address "$lun")
	timeout 30 iscsi-inq "$url" >"$T/inq" 2>&1 || fail "iscsi-inq $lun: $(cat "$T/inq")"
	grep -q '^Peripheral Qualifier:CONNECTED' "$T/inq" || fail "LUN $lun: $(cat "$T/inq")"
	grep -q '^Peripheral Device Type:DIRECT_ACCESS' "$T/inq" || fail "LUN $lun: $(cat "$T/inq")"
	grep -q 'Vendor:YOKE' "$T/inq" || fail "LUN $lun: $(cat "$T/inq")"
	timeout 30 iscsi-inq -e 1 -c 128 "$url" >"$T/inq" 2>&1 || fail "iscsi-inq -c 128 $lun"
	grep -q "$(cat "$T/state/backing-b$lun.uuid")" "$T/inq" ||
		fail "LUN $lun has another serial number: $(cat "$T/inq")"
done
# Where none is, the tool hears so.
! timeout 30 iscsi-inq "iscsi://127.0.0.1:$port/iqn.2026-11.org.yoke:many/2" >"$T/inq" 2>&1 ||
	fail "a disk at LUN 2: $(cat "$T/inq")"
grep -q 'LOGICAL_UNIT_NOT_SUPPORTED' "$T/inq" || fail "LUN 2: $(cat "$T/inq")"
