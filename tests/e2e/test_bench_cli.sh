#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# subtests: yes
# What yoke-bench refuses before it measures: one line of object, cause and remedy, exit status 2,
# and nothing is written. And what it does with what it takes.
. "$(dirname "$0")/../functions.sh"

bad=0
port=$(free_port)
right=$(free_port)
iqn=iqn.2026-11.org.yoke:bench
url=iscsi://127.0.0.1:$port/$iqn

for disk in plain ext4 mbr swap; do truncate -s 16M "$T/$disk.img"; done
PATH=$PATH:/usr/sbin:/sbin
mkfs.ext4 -qF "$T/ext4.img"
mkswap "$T/swap.img" >/dev/null 2>&1
# One partition of Linux from sector 2048 on.
printf '\x00\x00\x00\x00\x83\x00\x00\x00\x00\x08\x00\x00\x00\x10\x00\x00' |
	dd of="$T/mbr.img" bs=1 seek=446 conv=notrunc status=none
printf '\x55\xaa' | dd of="$T/mbr.img" bs=1 seek=510 conv=notrunc status=none
cat >"$T/yoke.conf" <<CONF
node "e2e" {
  state_dir = "$T/state"
  control = "$T/yoked.sock"
  faults = true
}
portal "left"  { listen = { "127.0.0.1:$port" }   group = 1 }
portal "right" { listen = { "127.0.0.1:$right" }  group = 2 }
backing "plain" { driver = "file"  path = "$T/plain.img" }
backing "ext4"  { driver = "file"  path = "$T/ext4.img" }
backing "mbr"   { driver = "file"  path = "$T/mbr.img" }
backing "swap"  { driver = "file"  path = "$T/swap.img" }
backing "large" { driver = "ram"  size = "64M"  block_size = 4096 }
target "$iqn" {
  portals = { "left", "right" }  allow = { "*" }
  lun "0" { backing = "plain" }
  lun "1" { backing = "ext4" }
  lun "2" { backing = "mbr" }
  lun "3" { backing = "swap" }
  lun "4" { backing = "large" }
}
CONF
mkdir "$T/state"
start_yoked "$T/yoke.conf"

bench() { timeout 60 "$YOKE_BUILD/yoke-bench" "$@" </dev/null; }
result() { # NAME REASON-OR-EMPTY
	if [ -z "$2" ]; then
		echo "ok $1"
	else
		bad=1
		echo "not ok $1: $2"
	fi
}

# refused NAME PATTERN ARGUMENTS...: exit status 2, one line on stderr that matches, none on stdout.
refused() {
	local name=$1 pattern=$2 rc=0 why=
	shift 2
	bench "$@" >"$T/out" 2>"$T/err" || rc=$?
	[ $rc = 2 ] || why="exit status $rc"
	[ "$(wc -l <"$T/err")" = 1 ] || why="$why, not one line"
	grep -qE "^yoke-bench: $pattern" "$T/err" || why="$why, another line"
	[ ! -s "$T/out" ] || why="$why, something on stdout"
	result "$name" "${why:+$why: $(head -c 1000 "$T/err")}"
}

quick=(--rw randread --time 200ms --warmup 0)
refused no_url 'no URL of a LUN\. Write ' --rw read
refused nothing_to_do 'nothing to do\. Write ' "$url/0"
refused unknown_option 'no option --block-size\.' "$url/0" --block-size 4k
refused unknown_profile 'profile "nonsense": there is none\. .*--list-profiles' --profile nonsense "$url/0"
refused missing_profile_file './none.conf: no such file\. ' --profile ./none.conf "$url/0"
printf 'profile "p" {\n  from = "x"\n  tells = "y"\n  pattern = { "rand" }\n  read = { 101 }\n}\n' >"$T/p.conf"
refused wrong_profile "$T/p.conf:5: read: 101 is out of range\. Write 0 to 100" --profile "$T/p.conf" "$url/0"
refused unit_of_size '--bs: "4KB" is not a size\. Write it like 4K' "${quick[@]}" --bs 4KB "$url/0"
refused control_characters '--bs: "\?\[31m" is not a size' "${quick[@]}" --bs=$'\033[31m' "$url/0"
refused unit_of_time '--time: "10x" is not a time\. Write it like 30s' --rw read --time 10x "$url/0"
refused unit_of_expectation '--expect "p99<=2": ' "${quick[@]}" --expect 'p99<=2' "$url/0"
refused secret_in_url 'URL of user me: a secret there' "${quick[@]}" "iscsi://me%hush@127.0.0.1:$port/$iqn/0"
refused secret_in_query 'URL: nothing may follow a \? [^=]*$' "${quick[@]}" "$url/0?target_user=me&target_password=hush"
refused unreachable_portal ".*127\.0\.0\.1:$(free_port)" "${quick[@]}" "iscsi://127.0.0.1:$(tail -n 1 "$PORTS_TAKEN" | xargs basename)/$iqn/0"
refused unreachable_for_discovery ".*127\.0\.0\.1:" "${quick[@]}" --discover "iscsi://127.0.0.1:$(tail -n 1 "$PORTS_TAKEN" | xargs basename)"
refused no_such_target '.*none' "${quick[@]}" "iscsi://127.0.0.1:$port/iqn.2026-11.org.yoke:none/0"
refused no_such_lun 'LUN 9' "${quick[@]}" "$url/9"
refused filesystem 'LUN 1 of .* carries: ext4 filesystem\. .*--destroy' "${quick[@]}" "$url/1"
refused filesystem_written 'LUN 1 of .* carries: ext4 filesystem' --rw randwrite --no-fill "$url/1"
refused partition_table 'LUN 2 of .* carries: dos partition table' "${quick[@]}" "$url/2"
refused swap_space 'LUN 3 of .* carries: swap' "${quick[@]}" "$url/3"
refused one_of_several 'LUN 2 of .* carries: dos partition table' "${quick[@]}" "$url/0" "$url/2"
refused block_too_small 'LUN 4: has blocks of 4096 bytes, 512 random read ' "${quick[@]}" --bs 512 "$url/4"
refused range_too_large '--size: LUN 0 has 16.0 MiB only' "${quick[@]}" --size 1G "$url/0"
refused no_yoked_to_check ".*$T/none.sock" "${quick[@]}" --cross-check "$T/none.sock" "$url/0"

# Refused means untouched.
why=
blkid -p "$T/ext4.img" | grep -q 'TYPE="ext4"' || why="the filesystem is gone"
e2fsck -fn "$T/ext4.img" >/dev/null 2>&1 || why="the filesystem is damaged"
cmp -s -n 16777216 "$T/plain.img" /dev/zero || why="LUN 0 was written"
result refused_is_untouched "$why"

# ran NAME STATUS PATTERN ARGUMENTS...: that exit status, and the pattern in the output.
ran() {
	local name=$1 status=$2 pattern=$3 rc=0 why=
	shift 3
	bench "$@" >"$T/out" 2>"$T/err" || rc=$?
	[ $rc = "$status" ] || why="exit status $rc"
	grep -qE "$pattern" "$T/out" || why="$why, another output"
	result "$name" "${why:+$why: $(tail -c 2000 "$T/out" "$T/err")}"
}

ran help 0 '^  --rw WORKLOAD' --help
ran version 0 '^yoke-bench [0-9]' --version
ran profiles 0 '^sweep +what each further session brings' --list-profiles
ran reads_what_carries_something 0 'total|read' "${quick[@]}" --no-fill "$url/1"
blkid -p "$T/ext4.img" | grep -q 'TYPE="ext4"' && why= || why="the filesystem is gone"
result reading_leaves_it "$why"
ran destroys_when_told 0 'read' "${quick[@]}" --destroy "$url/1"
blkid -p "$T/ext4.img" | grep -q 'TYPE="ext4"' && why="still there" || why=
result destroyed "$why"
ran unmet_expectation 1 'read' "${quick[@]}" --expect 'iops>=100000k' "$url/0"
ran several_points 0 '64K' "${quick[@]}" --bs 4K,64K --json "$T/run.json" --csv "$T/run.csv" "$url/0"
why=
for n in 1 2; do
	python3 -c 'import json, sys; j = json.load(open(sys.argv[1])); assert j["jobs"][0]["read"]["total_ios"] > 0' \
		"$T/run-$n.json" || why="run-$n.json"
done
[ "$(wc -l <"$T/run.csv")" -ge 3 ] && [ -s "$T/run-series.csv" ] || why="$why run.csv"
result files_of_several_points "$why"

# What is on LUN 0 after it was written once, with a seed and repeats: its checksum.
written() { # SEED REPEATS
	bench --rw write --bs 4K --qd 1 --size 256K --io-size 256K --time 30 --warmup 0 --no-fill --destroy \
		--seed "$1" --repeat "$2" "$url/0" >"$T/out" 2>"$T/err" || { cat "$T/err"; return; }
	head -c 256K "$T/plain.img" | sha256sum
}
once=$(written 7 1)
[ "$(written 7 1)" = "$once" ] && why= || why="other data with the same seed"
result a_seed_gives_the_same_data_again "$why"
[ "$(written 7 2)" != "$once" ] && why= || why="the second time writes what is there"
result repeats_write_other_data "$why"
[ "$(written 8 1)" != "$once" ] && why= || why="the same data with another seed"
result another_seed_gives_other_data "$why"

# The examples of the manual page, shorter. The page has three.
examples=0
while IFS= read -r line; do
	examples=$((examples + 1))
	line=$(sed "s/127.0.0.1:3260/127.0.0.1:$port/g; s/127.0.0.1:3261/127.0.0.1:$right/g
		s/iqn.2026-11.org.yoke:demo/$iqn/g; s/--time 30/--time 300ms/; s/--time 10/--time 4/; s/--size 64M/--size 4M/
		s/rate=500'/& --time 300ms/; s/$/ --warmup 100ms/" <<<"$line")
	rc=0
	(cd "$T" && PATH=$YOKE_BUILD:$PATH timeout 100 bash -c "$line") >"$T/out" 2>"$T/err" </dev/null || rc=$?
	why=
	[ $rc = 0 ] || why="exit status $rc: $(tail -c 1000 "$T/out" "$T/err")"
	result "example_$examples" "$why"
done < <(sed -n 's/^\t\(yoke-bench .*\)/\1/p' "$YOKE_TOP/man/yoke-bench.1.scd")
[ $examples = 3 ] || result examples "$examples in the manual page"
[ -s "$T/run.json" ] || result example_file "no run.json"

# A signal ends it early, with a whole result.
"$YOKE_BUILD/yoke-bench" --rw randread --time 60s --warmup 0 --no-fill --json "$T/early.json" "$url/0" \
	>"$T/out" 2>"$T/err" </dev/null &
pid=$!
busy() { [ "$(ctl session list --no-header -o reads | tr -d , | sort -n | tail -n 1)" -gt 1000 ]; }
wait_for 30 busy || fail "yoke-bench never read"
kill -INT $pid
rc=0
wait $pid || rc=$?
why=
[ $rc = 0 ] || why="exit status $rc"
python3 -c 'import json, sys; j = json.load(open(sys.argv[1])); r = j["jobs"][0]["read"]; assert r["runtime"] < 50000 and r["total_ios"] > 0' \
	"$T/early.json" || why="$why, no whole file"
result interrupted "${why:+$why: $(tail -c 1000 "$T/out" "$T/err")}"

# In the middle of the filling, nothing has been measured: that is no success.
held() { ctl --json fault list | python3 -c 'import json, sys
sys.exit(not sum(f["held"] for f in json.load(sys.stdin)["faults"]))'; }
ctl fault add large delay --op write --delay 300ms >/dev/null
"$YOKE_BUILD/yoke-bench" "${quick[@]}" --expect 'iops>=1' "$url/4" >"$T/out" 2>"$T/err" </dev/null &
pid=$!
wait_for 30 held || fail "yoke-bench never filled"
kill -INT $pid
rc=0
wait $pid || rc=$?
why=
[ $rc = 2 ] || why="exit status $rc"
grep -q '^yoke-bench: interrupted while filling' "$T/err" || why="$why, another line"
result interrupted_while_filling "${why:+$why: $(tail -c 1000 "$T/out" "$T/err")}"

# A target that goes for good in the middle: what was measured is shown, and it is no success.
"$YOKE_BUILD/yoke-bench" --rw randread --time 5s --warmup 0 --no-fill --json "$T/lost.json" "$url/0" \
	>"$T/out" 2>"$T/err" </dev/null &
pid=$!
wait_for 30 busy || fail "yoke-bench never read"
kill_yoked
rc=0
wait $pid || rc=$?
why=
[ $rc = 3 ] || why="exit status $rc"
grep -q '^yoke-bench: the target was lost: 127.0.0.1:' "$T/err" || why="$why, another line"
grep -q '^read ' "$T/out" || why="$why, no table"
python3 -c 'import json, sys; assert json.load(open(sys.argv[1]))["jobs"][0]["read"]["total_ios"] > 0' \
	"$T/lost.json" || why="$why, no whole file"
result target_lost "${why:+$why: $(tail -c 1000 "$T/out" "$T/err")}"
exit $bad
