#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# subtests: yes
# CHAP one way and both, against Debian's tgt: the right secrets let yoke-bench in, wrong ones are
# told in a line that does not repeat them.
. "$(dirname "$0")/../functions.sh"

[ -x "$YOKE_BUILD/yoke-bench" ] || skip "no yoke-bench"
PATH=$PATH:/usr/sbin
command -v tgtd >/dev/null || skip "no tgt (make compare installs it)"
[ "$(id -u)" = 0 ] || skip "tgt wants root"
bad=0
port=$(free_port)
control=$((RANDOM % 30000 + 1)) # it takes 15 bits
iqn=iqn.2026-11.org.yoke:chap
truncate -s 16M "$T/disk.img"
tgtd -f -C "$control" --iscsi portal=127.0.0.1:"$port" >"$T/tgtd.log" 2>&1 &
tgtd=$!
tgtadm() { command tgtadm -C "$control" --lld iscsi "$@"; }
end() {
	kill -KILL "$tgtd"
	wait "$tgtd" 2>/dev/null
	rm -f "/var/run/tgtd/socket.$control" "/var/run/tgtd/socket.$control.lock"
}
# The status survives: the last command's is what cleanup judges.
trap 'rc=$?; set +e; end; (exit $rc); cleanup' EXIT
wait_for 20 tgtadm --op show --mode system || skip "tgtd does not start: $(tail -n 1 "$T/tgtd.log")"
tgtadm --op new --mode target --tid 1 -T "$iqn"
tgtadm --op new --mode logicalunit --tid 1 --lun 1 --bstype rdwr -b "$T/disk.img"
tgtadm --op bind --mode target --tid 1 -I ALL
tgtadm --op new --mode account --user joe --password joes-secret-12
tgtadm --op bind --mode account --tid 1 --user joe
tgtadm --op new --mode account --user tgt --password tgts-secret-12
tgtadm --op bind --mode account --tid 1 --user tgt --outgoing

# try NAME STATUS PATTERN LINE...: with these lines as CHAP file; none: no file.
try() {
	local name=$1 status=$2 pattern=$3 rc=0 why=
	local options=(--rw randrw:50 --qd 4 --time 300ms --warmup 0 --no-fill --destroy)
	shift 3
	if [ $# -gt 0 ]; then
		(umask 077 && printf '%s\n' "$@" >"$T/chap")
		options+=(--chap-file "$T/chap")
	fi
	timeout 60 "$YOKE_BUILD/yoke-bench" "${options[@]}" "iscsi://127.0.0.1:$port/$iqn/1" \
		>"$T/out" 2>&1 </dev/null || rc=$?
	[ $rc = "$status" ] || why="status $rc"
	grep -qE "$pattern" "$T/out" || why="$why, no \"$pattern\""
	! grep -q 'secret-12' "$T/out" || why="$why, the secret is shown"
	if [ -z "$why" ]; then
		echo "ok $name"
	else
		bad=1
		echo "not ok $name: $why: $(tail -n 5 "$T/out")"
	fi
}

try one_way 0 '^total +[1-9]' "user joe" "secret joes-secret-12"
try both_ways 0 '^total +[1-9]' "user joe" "secret joes-secret-12" \
	"mutual_user tgt" "mutual_secret tgts-secret-12"
try wrong_secret 2 'login refused: Authentication' "user joe" "secret jims-secret-12"
try without 2 'login refused: Authentication'
try the_target_is_an_impostor 2 'login refused: .*CHAP' "user joe" "secret joes-secret-12" \
	"mutual_user tgt" "mutual_secret nots-secret-12"
exit $bad
