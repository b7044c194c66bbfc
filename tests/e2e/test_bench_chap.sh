#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# subtests: yes
# CHAP one way and both, against Debian's tgt: the right secrets let yoke-bench in, wrong ones are
# told in a line that does not repeat them.
. "$(dirname "$0")/../functions.sh"

[ -x "$YOKE_BUILD/yoke-bench" ] || skip "no yoke-bench"
bad=0
iqn=iqn.2026-11.org.yoke:chap
truncate -s 16M "$T/disk.img"
start_tgt "$T/disk.img" "$iqn" || skip "$WHY"
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
	timeout 60 "$YOKE_BUILD/yoke-bench" "${options[@]}" "iscsi://127.0.0.1:$TGT_PORT/$iqn/1" \
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
