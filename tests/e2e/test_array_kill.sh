#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# timeout: 1500
# yoked is killed again and again under load on arrays of files, one LUN a level: nothing that was
# acknowledged is lost, and of what has redundancy nothing is lost with a member either. 10 rounds;
# 50 in make check-full, or ROUNDS=n.
. "$(dirname "$0")/../functions.sh"

rounds=${ROUNDS:-$([ "${YOKE_FULL:-0}" = 1 ] && echo 50 || echo 10)}
port=$(free_port)
size=8M journal=$T/journal
# LUN: level, members
declare -A levels=([1]="0 3" [2]="1 2" [3]="10 4" [4]="10 6" [5]="5 3" [6]="5 4" [7]="5 5")

luns=
for lun in "${!levels[@]}"; do
	luns+="  lun \"$lun\" { array = \"a$lun\" }
"
	read -r _ members <<<"${levels[$lun]}"
	for ((i = 0; i < members; i++)); do truncate -s 16M "$T/d$lun-$i.img"; done
done
cat >"$T/yoke.conf" <<EOF
node "e2e" {
  state_dir = "$T/state"
  control   = "$T/yoked.sock"
  disks     = { "$T/d*.img" }
  faults    = true
}
portal "left" { listen = { "127.0.0.1:$port" } group = 1 }
target "iqn.2026-11.org.yoke:e2e" {
  portals = { "left" }
  allow   = { "*" }
$luns}
EOF
start_yoked "$T/yoke.conf"
for lun in "${!levels[@]}"; do
	read -r level members <<<"${levels[$lun]}"
	ctl array create "a$lun" --level "$level" "$T/d$lun"-*.img >/dev/null
done

all_online() { [ "$(ctl lun list --no-header -o state | sort | uniq -c | tr -s ' ')" = " ${#levels[@]} online" ]; }
bench() {
	exec "$YOKE_BUILD/yoke-bench" --verify --rw randrw:30 --bs 4K,16K --qd 8 --size $size \
		--warmup 0s --destroy --journal "$journal" --luns 2-7 "$@" \
		"iscsi://127.0.0.1:$port/iqn.2026-11.org.yoke:e2e/1"
}
# Every LUN has taken some writes of this round.
loaded() {
	local writes
	! alive "$bench_pid" && return 0
	for writes in $(ctl lun list --no-header --bytes -o writes); do
		[ "${writes//,/}" -ge $((filled + 200)) ] || return 1
	done
}

# As the kill left them, but for a member of each array that can do without it: what is left alone
# has everything, too.
without_one() {
	local round=$1 lun level members i rc=0
	mkdir "$T/copy"
	for lun in "${!levels[@]}"; do
		read -r level members <<<"${levels[$lun]}"
		for ((i = 0; i < members; i++)); do
			[ "$level" != 0 ] && [ $((round % members)) = $i ] ||
				cp --sparse=always "$T/d$lun-$i.img" "$T/copy/"
		done
	done
	cp "$journal" "$T/copy/journal"
	sed "s|$T/d\*|$T/copy/d*|; s|$T/state|$T/copy/state|; s|^  disks|  array_wait = \"1ms\"\n&|" \
		"$T/yoke.conf" >"$T/copy/yoke.conf"
	start_yoked "$T/copy/yoke.conf"
	for lun in "${!levels[@]}"; do
		read -r level _ <<<"${levels[$lun]}"
		# The other could have gone on alone: somebody has to say that it did not.
		[ "$level" != 1 ] || ctl array start "a$lun" --force --confirm "a$lun" >/dev/null
	done
	wait_for 30 all_online || fail "without a member: $(ctl lun list; ctl status)"
	(journal=$T/copy/journal bench --time 1s --check-journal --no-fill) >"$T/out" 2>"$T/err" \
		</dev/null || rc=$?
	grep -q 'verify: no violation' "$T/out" || rc="$rc, no verdict"
	[ "$rc" = 0 ] ||
		fail "round $round, without a member: $rc: $(tail -c 2000 "$T/out" "$T/err")"
	kill_yoked
	rm -r "$T/copy"
}

# One member of each array, another than without_one() leaves out, is slow: when the kill comes
# there is much that the others have and it has not.
slow_one() {
	local round=$1 lun members
	for lun in "${!levels[@]}"; do
		read -r _ members <<<"${levels[$lun]}"
		ctl fault add "$T/d$lun-$(((round + 1) % members)).img" delay --delay 30ms \
			--op write >/dev/null
	done
}

for ((round = 1; round <= rounds; round++)); do
	wait_for 30 all_online || fail "round $round: $(ctl lun list; ctl status)"
	check=(--check-journal --no-fill)
	filled=0
	[ $round = 1 ] && check=() filled=$((8 * 1024 / 256))
	(bench --time 300s "${check[@]}") >"$T/out" 2>"$T/err" </dev/null &
	bench_pid=$!
	[ $((round % 3)) != 2 ] || slow_one $round
	wait_for 60 loaded || fail "round $round: no load: $(cat "$T/err")"
	alive $bench_pid || fail "round $round: $(tail -c 2000 "$T/out" "$T/err")"
	kill_yoked
	kill -KILL $bench_pid
	wait $bench_pid 2>/dev/null || true
	[ $((round % 3)) != 2 ] || without_one $round
	start_yoked "$T/yoke.conf"
done

wait_for 30 all_online || fail "at the end: $(ctl lun list; ctl status)"
rc=0
(bench --time 1s --check-journal --no-fill) >"$T/out" 2>"$T/err" </dev/null || rc=$?
grep -q 'verify: no violation' "$T/out" || rc="$rc, no verdict"
[ "$rc" = 0 ] || fail "at the end: $rc: $(tail -c 2000 "$T/out" "$T/err")"
expect "members that are not in-sync" "" \
	"$(ctl array list --no-header -o members | grep -v '^ *\[U*\]$' || true)"
stop_yoked
echo "$rounds rounds, ${#levels[@]} arrays: nothing lost"
