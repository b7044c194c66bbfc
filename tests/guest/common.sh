# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Sourced by the tests beside it: a yoked with one LUN (in memory, if nothing else is said) behind
# two portals, and the guest that is its initiator. Output of the guest's script is in $T/out, its kernel's in $T/kernel.
# shellcheck source=tests/functions.sh
. "$(dirname "${BASH_SOURCE[0]}")/../functions.sh"

GUEST=${GUEST:-$YOKE_TOP/build/guest}
GUEST_TARGET=iqn.2026-11.org.yoke:guest
HERE=$YOKE_TOP/tests/guest

# backing NAME SIZE: one more in memory, for a LUN among start_target's settings.
BACKINGS=
backing() { BACKINGS+="backing \"$1\" { driver = \"ram\"  size = \"$2\" }"$'\n'; }

# start_target SIZE [NAME = VALUE...]: also sets PORT1 and PORT2. What follows goes into the target.
# DISK_FILE=PATH: LUN 0 is that file.
start_target() {
	local size=$1
	shift
	PORT1=$(free_port) PORT2=$(free_port)
	local driver='driver = "ram"'
	[ -z "${DISK_FILE:-}" ] || driver="driver = \"file\"  path = \"$DISK_FILE\""
	mkdir -p "$T/state"
	cat >"$T/yoke.conf" <<-END
	node "guest" {
	  number = 1
	  state_dir = "$T/state"
	  control = "$T/yoked.sock"
	  faults = true
	}
	portal "left"  { listen = { "127.0.0.1:$PORT1" }  group = 1 }
	portal "right" { listen = { "127.0.0.1:$PORT2" }  group = 2 }
	backing "disk" { $driver  size = "$size" }
	$BACKINGS
	target "$GUEST_TARGET" {
	  portals = { "left", "right" }
	  allow = { "iqn.2000-01.test.guest:*" }
	  lun "0" { backing = "disk" }
	  $*
	}
	END
	start_yoked "$T/yoke.conf"
}

# run_guest SCRIPT [OPTION...]: runs it, shows what it printed, fails as it does.
run_guest() {
	local script=$1 rc=0
	shift
	"$HERE/build-guest" "$GUEST" >"$T/build" 2>&1 || {
		tail -n 20 "$T/build" >&2
		fail "the guest cannot be built"
	}
	"$HERE/run-guest" -o "$GUEST" -l "$T/kernel" -e TARGET="$GUEST_TARGET" "$@" \
		"$HERE/scripts/$script" "$PORT1" "$PORT2" >"$T/out" 2>&1 || rc=$?
	cat "$T/out"
	[ $rc = 0 ] || { tail -n 40 "$T/kernel" >&2; fail "$script ended with $rc"; }
}

printed() { grep -qE -e "$1" "$T/out" || fail "the guest did not print: $1"; }

# The guest's kernel had nothing to complain of: no error of a connection, a command or a disk.
kernel_is_quiet() {
	local complaints='I/O error|conn error|ping timeout|iscsi.*(failed|error)|Sense Key|EXT4-fs error'
	! grep -aE "$complaints" "$T/kernel" >&2 || fail "the guest's kernel complains"
}

no_session_is_left() {
	wait_for 20 sessions_are 0 || fail "sessions are left: $(ctl session list)"
}
sessions_are() {
	[ "$(ctl session list --json | python3 -c 'import json, sys
print(len(json.load(sys.stdin)["sessions"]))')" = "$1" ]
}
