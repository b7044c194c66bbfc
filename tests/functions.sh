# shellcheck shell=bash
# SPDX-License-Identifier: MIT
# Helpers for end-to-end tests: `. "$(dirname "$0")/../functions.sh"` gives a temporary directory
# ($T), daemons that never outlive the test, and waiting with a deadline instead of sleeping.
#
# A test fails if a daemon it started died by itself or does not stop cleanly with status 0.
set -euo pipefail

YOKE_TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
YOKE_BUILD=${YOKE_BUILD:-$YOKE_TOP/build/release}
YOKE_ASAN=${YOKE_ASAN:-$YOKE_TOP/build/asan}
YOKE_PORTS=${YOKE_PORTS:-/tmp/yoke-ports.$UID}
T=$(mktemp -d "${TMPDIR:-/tmp}/t.XXXX")
STOP_SECONDS=${STOP_SECONDS:-20}
export YOKE_TOP YOKE_BUILD YOKE_ASAN T

YOKED_ARGS=()
declare -A YOKED_LOGS=()  # pid -> log, of the daemons that should be running now
PORTS_TAKEN=$T/ports      # free_port runs in subshells, so its list is a file

fail() { echo "FAIL: $*" >&2; exit 1; }
skip() { echo "$*"; exit 77; }

# wait_for SECONDS COMMAND...: until the command succeeds; returns 1 at the deadline.
wait_for() {
	local deadline=$((${EPOCHREALTIME/./} + $1 * 1000000))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "${EPOCHREALTIME/./}" -lt $deadline ] || return 1
		sleep 0.05
	done
}

# expect WHAT WANTED GOT
expect() { [ "$2" = "$3" ] || fail "$1: expected '$2', got '$3'"; }

# free_port: prints a TCP port nobody listens on. It lies below the kernel's ephemeral range (so no
# outgoing connection takes it meanwhile) and is reserved by a directory until this test ends.
free_port() {
	mkdir -p "$YOKE_PORTS"
	python3 - "$YOKE_PORTS" "$PORTS_TAKEN" <<-'EOF'
	import os, random, socket, sys
	for port in random.sample(range(20000, 32000), 2000):
	    mine = os.path.join(sys.argv[1], str(port))
	    try:
	        os.mkdir(mine)
	    except FileExistsError:
	        continue
	    with open(sys.argv[2], "a") as taken:
	        print(mine, file=taken)
	    try:
	        with socket.socket(socket.AF_INET6) as s:
	            s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
	            s.bind(("::", port))
	    except OSError:
	        try:
	            with socket.socket() as s:
	                s.bind(("0.0.0.0", port))
	        except OSError:
	            continue
	    print(port)
	    sys.exit(0)
	sys.exit("no free port between 20000 and 32000")
	EOF
}

# start_yoked CONF [BUILD]: starts a daemon (with YOKED_ARGS) and waits until it answers. Sets
# YOKED_PID, YOKED_LOG and SOCK (the configuration's control socket). Call it from the test's own
# shell, not in $(...).
start_yoked() {
	local conf=$1 build=${2:-$YOKE_BUILD}
	SOCK=$(sed -nE 's/^[^#"]*\<control *= *"([^"]+)".*/\1/p' "$conf" | head -n 1)
	[ -n "$SOCK" ] || fail "$conf has no control socket"
	YOKED_LOG=$(mktemp "$T/yoked.XXXX.log")
	"$build/yoked" -c "$conf" "${YOKED_ARGS[@]}" >"$YOKED_LOG" 2>&1 </dev/null &
	YOKED_PID=$!
	YOKED_LOGS[$YOKED_PID]=$YOKED_LOG
	wait_for "${START_SECONDS:-30}" yoked_settled || fail "yoked $YOKED_PID never answered on $SOCK"
	alive "$YOKED_PID" || fail "yoked died at start"
}
yoked_settled() { ! alive "$YOKED_PID" || ctl status; }
alive() { kill -0 "$1" 2>/dev/null; }
gone() { ! alive "$1"; }

# stop_yoked [PID]: asks it to stop; fails unless it exits with status 0 in time.
stop_yoked() {
	local pid=${1:-$YOKED_PID} rc=0
	kill -TERM "$pid" 2>/dev/null || fail "yoked $pid was already dead"
	wait_for "$STOP_SECONDS" gone "$pid" || fail "yoked $pid did not stop in $STOP_SECONDS s"
	wait "$pid" || rc=$?
	[ $rc = 0 ] || fail "yoked $pid stopped with status $rc"
	unset "YOKED_LOGS[$pid]"
}

# kill_yoked [PID]: the power fails.
kill_yoked() {
	local pid=${1:-$YOKED_PID}
	kill -KILL "$pid" 2>/dev/null || fail "yoked $pid was already dead"
	wait "$pid" 2>/dev/null || true
	unset "YOKED_LOGS[$pid]"
}

# ctl NOUN VERB...: yokectl at the daemon started last, or at SOCK=... of another.
ctl() { timeout "${CTL_SECONDS:-30}" "$YOKE_BUILD/yokectl" -s "$SOCK" "$@"; }

# start_tgt IMAGE IQN: Debian's tgt with target 1, whose LUN 1 is IMAGE; sets TGT_PORT, and tgtadm
# is its own. It ends with the test. Where it cannot run, it fails, with the reason in WHY.
# shellcheck disable=SC2034 # WHY is the caller's
start_tgt() {
	PATH=$PATH:/usr/sbin
	command -v tgtd >/dev/null || { WHY="no tgt (make compare installs it)"; return 1; }
	[ "$(id -u)" = 0 ] || { WHY="tgt wants root"; return 1; }
	TGT_PORT=$(free_port)
	TGT_CONTROL=$((RANDOM % 30000 + 1)) # it takes 15 bits
	tgtd -f -C "$TGT_CONTROL" --iscsi portal=127.0.0.1:"$TGT_PORT" >"$T/tgtd.log" 2>&1 &
	TGT_PID=$!
	# The status survives: the last command's is what cleanup judges.
	trap 'rc=$?; set +e; end_tgt; (exit $rc); cleanup' EXIT
	wait_for 20 tgtadm --op show --mode system || {
		WHY="tgtd does not start: $(tail -n 1 "$T/tgtd.log")"
		return 1
	}
	tgtadm --op new --mode target --tid 1 -T "$2"
	tgtadm --op new --mode logicalunit --tid 1 --lun 1 --bstype rdwr -b "$1"
	tgtadm --op bind --mode target --tid 1 -I ALL
}
tgtadm() { command tgtadm -C "$TGT_CONTROL" --lld iscsi "$@"; }
end_tgt() {
	kill -KILL "$TGT_PID"
	wait "$TGT_PID" 2>/dev/null
	rm -f "/var/run/tgtd/socket.$TGT_CONTROL" "/var/run/tgtd/socket.$TGT_CONTROL.lock"
}

# Every daemon still here is stopped, and judged: a crash that the test overlooked is a failure.
cleanup() {
	local rc=$? pid bad
	trap - EXIT
	trap '' INT TERM HUP
	set +e
	for pid in "${!YOKED_LOGS[@]}"; do
		bad=
		if kill -TERM "$pid" 2>/dev/null; then
			wait_for "$STOP_SECONDS" gone "$pid" || {
				bad="did not stop in $STOP_SECONDS s"
				kill -KILL "$pid"
			}
		else
			bad="died during the test"
		fi
		wait "$pid"
		case $?,$bad in
		0,) ;;
		*,) bad="stopped with an error" ;;
		esac
		if [ -n "$bad" ]; then
			echo "yoked $pid $bad" >&2
			[ $rc = 0 ] && rc=1
		fi
		if [ $rc != 0 ] && [ $rc != 77 ]; then
			echo "--- log of yoked $pid" >&2
			tail -n 200 "${YOKED_LOGS[$pid]}" >&2
		fi
	done
	[ ! -f "$PORTS_TAKEN" ] || xargs -r rmdir <"$PORTS_TAKEN"
	[ -n "${KEEP:-}" ] || rm -rf "$T"
	exit $rc
}
trap cleanup EXIT
trap 'exit 143' INT TERM HUP
