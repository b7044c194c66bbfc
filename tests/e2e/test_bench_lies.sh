#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# subtests: yes
# timeout: 1200
# yoke-bench --verify: each lie of a target has its name and exit status 1; an honest one is not
# doubted while its paths fail (10 minutes of it in check-full); what a killed run was promised is
# checked by the next.
. "$(dirname "$0")/../functions.sh"

bad=0
liar=
iqn=iqn.2026-11.org.yoke.test:liar
load=(--rw randrw:50 --bs 4k --qd 4 --sessions 2 --warmup 0 --no-fill)

result() { # NAME REASON-OR-EMPTY
	if [ -z "$2" ]; then
		echo "ok $1"
	else
		bad=1
		echo "not ok $1: $2"
	fi
}

bench() { timeout 900 "$YOKE_BUILD/yoke-bench" --verify "${load[@]}" "$@" </dev/null; }

start_liar() {
	rm -f "$T/liar.out"
	"$YOKE_TOP/tests/e2e/liar.py" "$@" >"$T/liar.out" 2>"$T/liar.err" &
	liar=$!
	wait_for 20 grep -q '^port ' "$T/liar.out" || fail "no liar: $(cat "$T/liar.err")"
	liar_url=iscsi://127.0.0.1:$(cut -d' ' -f2 "$T/liar.out")/$iqn/0
}
stop_liar() {
	kill "$liar"
	wait "$liar" 2>/dev/null || true
	[ ! -s "$T/liar.err" ] || fail "the liar: $(cat "$T/liar.err")"
}

# lie NAME PATTERN: the violation's first line matches, and what follows has a second history.
lie() {
	local rc=0 why=
	start_liar "$1"
	bench --time 60s "$liar_url" >"$T/out" 2>"$T/err" || rc=$?
	stop_liar
	[ $rc = 1 ] || why="exit status $rc"
	grep -qE "$2" "$T/out" || why="$why, not named"
	result "$1" "${why:+$why: $(tail -c 1500 "$T/out" "$T/err")}"
}

block='^LUN 0, block [0-9]+ \(bytes [0-9]+ to [0-9]+\): '
lie lose "${block}lost write: "
lie stale "${block}stale data: "
lie swap "${block}misplaced block: "
lie tear "${block}torn block: "
lie flip "${block}corrupt block: "
lie twice '^session [12] of portal 1 \(127\.0\.0\.1:[0-9]+\): answered twice: '
lie again '^session [12] of portal 1 \(127\.0\.0\.1:[0-9]+\): answered twice: '

start_liar honest
rc=0
bench --time 2s "$liar_url" >"$T/out" 2>"$T/err" || rc=$?
stop_liar
grep -q 'verify: no violation' "$T/out" || rc="$rc, no verdict"
result honest "$([ "$rc" = 0 ] || echo "exit status $rc: $(tail -c 1500 "$T/out" "$T/err")")"

# The look before the first write, filling and the load keep to what the target takes at once.
start_liar small
rc=0
bench --time 1s "$liar_url" >"$T/out" 2>"$T/err" || rc=$?
timeout 300 "$YOKE_BUILD/yoke-bench" --rw write --bs 4k --qd 2 --warmup 0 --time 1s --destroy \
	"$liar_url" >>"$T/out" 2>>"$T/err" </dev/null || rc="$rc, filled: $?"
stop_liar
result limit_of_a_command "$([ "$rc" = 0 ] || echo "exit status $rc: $(tail -c 1500 "$T/out" "$T/err")")"

# What was answered "becoming ready" may have been done: it is not sent again.
start_liar transit
rc=0
bench --time 2s "$liar_url" >"$T/out" 2>"$T/err" || rc=$?
stop_liar
why=
[ $rc = 0 ] || why="exit status $rc"
grep -qE 'verify: no violation .* [1-9][0-9,]* writes? of unknown fate' "$T/out" ||
	why="$why, no verdict, or it was sent again"
result becoming_ready "${why:+$why: $(tail -c 1500 "$T/out" "$T/err")}"

# An honest target whose paths fail.
left=$(free_port)
right=$(free_port)
iqn=iqn.2026-11.org.yoke:verify
mkdir "$T/state"
truncate -s 64M "$T/disk.img"
cat >"$T/yoke.conf" <<CONF
node "e2e" {
  state_dir = "$T/state"
  control = "$T/yoked.sock"
}
portal "left"  { listen = { "127.0.0.1:$left" }   group = 1 }
portal "right" { listen = { "127.0.0.1:$right" }  group = 2 }
backing "ram"  { driver = "ram"   size = "64M" }
backing "disk" { driver = "file"  path = "$T/disk.img" }
target "$iqn" {
  portals = { "left", "right" }  allow = { "*" }
  lun "0" { backing = "ram" }
  lun "1" { backing = "disk" }
}
CONF
start_yoked "$T/yoke.conf"
urls() { echo "iscsi://127.0.0.1:$left/$iqn/$1" "iscsi://127.0.0.1:$right/$iqn/$1"; }
read -ra ram <<<"$(urls 0)"
read -ra disk <<<"$(urls 1)"

if [ "${YOKE_FULL:-0}" = 1 ]; then seconds=600; else seconds=6; fi
failures=()
for at in 1 2 3 4; do
	failures+=(--fail-path "$((1 + at % 2))@$((seconds * at / 5))s+1s")
done
rc=0
bench --size 1M --time ${seconds}s "${failures[@]}" "${ram[@]}" >"$T/out" 2>"$T/err" || rc=$?
why=
[ $rc = 0 ] || why="exit status $rc"
grep -qE 'verify: no violation .* [1-9][0-9,]* writes? of unknown fate' "$T/out" ||
	why="$why, no verdict, or no path was lost"
result paths_fail "${why:+$why: $(tail -c 1500 "$T/out" "$T/err")}"

# A run is killed; then the target, too. What they promised is there, until somebody takes it away.
written() { [ "$(stat -c %b "$T/disk.img")" -gt 1000 ]; }
"$YOKE_BUILD/yoke-bench" --verify "${load[@]}" --size 16M --time 60s --journal "$T/journal" \
	"${disk[@]}" >"$T/out" 2>"$T/err" </dev/null &
pid=$!
wait_for 30 written || fail "nothing is written: $(cat "$T/err")"
kill -KILL $pid
wait $pid 2>/dev/null || true
kill_yoked
start_yoked "$T/yoke.conf"
rc=0
bench --size 16M --time 1s --journal "$T/journal" --check-journal "${disk[@]}" >"$T/out" 2>"$T/err" || rc=$?
why=
[ $rc = 0 ] || why="exit status $rc"
grep -q 'verify: no violation' "$T/out" || why="$why, no verdict"
result journal_of_a_killed_run "${why:+$why: $(tail -c 1500 "$T/out" "$T/err")}"

# Everything the LUN holds goes back to zeroes under its journal.
stop_yoked
truncate -s 0 "$T/disk.img"
truncate -s 64M "$T/disk.img"
start_yoked "$T/yoke.conf"
rc=0
bench --size 16M --time 1s --journal "$T/journal" --check-journal "${disk[@]}" >"$T/out" 2>"$T/err" || rc=$?
why=
[ $rc = 1 ] || why="exit status $rc"
grep -qE '^LUN 1, block [0-9]+ .*: lost write: what an earlier run' "$T/out" || why="$why, not named"
result journal_of_what_is_gone "${why:+$why: $(tail -c 1500 "$T/out" "$T/err")}"

refused() { # NAME PATTERN ARGUMENTS...
	local name=$1 pattern=$2 rc=0 why=
	shift 2
	bench "$@" >"$T/out" 2>"$T/err" || rc=$?
	[ $rc = 2 ] || why="exit status $rc"
	grep -qE "$pattern" "$T/err" || why="$why, another line"
	result "$name" "${why:+$why: $(head -c 1000 "$T/err")}"
}
refused journal_of_another_size 'is for LUN 1 and 16 MiB, not LUN 1 and 8 MiB' \
	--size 8M --time 1s --journal "$T/journal" "${disk[@]}"
truncate -s 1000 "$T/journal"
refused journal_cut_off 'is cut off' --size 16M --time 1s --journal "$T/journal" "${disk[@]}"
echo hello >"$T/foreign"
refused journal_foreign 'is no journal of yoke-bench' \
	--size 16M --time 1s --journal "$T/foreign" "${disk[@]}"
refused journal_missing 'No such file' --size 16M --time 1s --journal "$T/none" --check-journal "${disk[@]}"
stop_yoked

# Half of what shows whether a LUN carries something is not enough to write to it.
start_liar short 1
refused half_a_look 'LUN 0: read at 0: GOOD, but [0-9]+ bytes of data too few' --time 1s "$liar_url"
stop_liar
exit $bad
