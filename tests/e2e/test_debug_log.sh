#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `-d iscsi` shows what logins say, for which nobody else may ask; a module that is none is refused.
. "$(dirname "$0")/../functions.sh"

port=$(free_port)
cat >"$T/yoke.conf" <<EOF
node "e2e" {
  state_dir = "$T/state"
  control   = "$T/yoked.sock"
}
portal "left" { listen = { "127.0.0.1:$port" }  group = 1 }
backing "disk" { driver = "ram"  size = "1M" }
target "iqn.2026-11.org.yoke:e2e" { portals = { "left" }  allow = { "*" }  lun "0" { backing = "disk" } }
EOF

start_yoked "$T/yoke.conf"
iscsi-inq "iscsi://127.0.0.1:$port/iqn.2026-11.org.yoke:e2e/0" >"$T/out"
stop_yoked
! grep 'DEBUG' "$YOKED_LOG" || fail "debugging lines that nobody asked for"

for module in iscsi all; do
	YOKED_ARGS=(-d "$module")
	start_yoked "$T/yoke.conf"
	iscsi-inq "iscsi://127.0.0.1:$port/iqn.2026-11.org.yoke:e2e/0" >"$T/out"
	stop_yoked
	grep -qE 'DEBUG iscsi 127[0-9.:]+ login-request portal=left stage=[01] .*TargetName=' \
		"$YOKED_LOG" || fail "-d $module: no request: $(<"$YOKED_LOG")"
	grep -qE 'DEBUG iscsi 127[0-9.:]+ login-response portal=left stage=1 next=3 more=0 .*MaxBurst' \
		"$YOKED_LOG" || fail "-d $module: no response: $(<"$YOKED_LOG")"
done

rc=0
said=$("$YOKE_BUILD/yoked" -c "$T/yoke.conf" -d nosuch 2>&1) || rc=$?
expect "status of -d nosuch" 2 $rc
expect "what it says" "yoked: -d nosuch: no such module. There are all, iscsi" "$said"
