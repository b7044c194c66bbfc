#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# subtests: yes
# timeout: 300
# yoke-bench over several sessions and portals: every command is counted once, by it and by yoked;
# lost paths cost retries and no errors; policies, discovery, digests, bounds do what they say.
. "$(dirname "$0")/../functions.sh"

[ -x "$YOKE_BUILD/yoke-bench" ] || skip "no yoke-bench"
bad=0
left=$(free_port)
right=$(free_port)
six=$(free_port)
iqn=iqn.2026-11.org.yoke:paths
cat >"$T/yoke.conf" <<EOF2
node "e2e" {
  state_dir = "$T/state"
  control   = "$T/yoked.sock"
  faults    = true
}
portal "left"  { listen = { "127.0.0.1:$left" }   group = 1 }
portal "right" { listen = { "127.0.0.1:$right" }  group = 2 }
portal "six"   { listen = { "[::1]:$six" }        group = 3 }
backing "a" { driver = "ram"  size = "32M" }
backing "b" { driver = "ram"  size = "16M" }
target "$iqn" {
  portals = { "left", "right", "six" }  allow = { "*" }
  lun "0" { backing = "a" }
  lun "1" { backing = "b" }
}
EOF2
start_yoked "$T/yoke.conf"
urls=("iscsi://127.0.0.1:$left/$iqn/0" "iscsi://127.0.0.1:$right/$iqn/0")

# bench OPTION...: measures, and leaves $T/run.json; begin: in the background, as $pid.
options=(--json "$T/run.json" --destroy --no-fill --warmup 0)
bench() {
	rm -f "$T/run.json"
	timeout 100 "$YOKE_BUILD/yoke-bench" "${options[@]}" "$@" >"$T/out" 2>"$T/err" </dev/null
}
begin() {
	rm -f "$T/run.json"
	"$YOKE_BUILD/yoke-bench" "${options[@]}" "$@" >"$T/out" 2>"$T/err" </dev/null &
	pid=$!
}

# of EXPRESSION: of the measurement; j is all of it, y the part that is ours.
of() {
	python3 - "$T/run.json" "$1" <<-'EOF3'
	import json, sys
	j = json.load(open(sys.argv[1]))
	job = j["jobs"][0]
	y = j.get("yoke") or job["yoke"]
	ios = job["read"]["total_ios"] + job["write"]["total_ios"]
	total = {k: sum(s[k] for s in y["sessions"])
	         for k in ("ops", "errors", "retries", "reconnects", "stalls")}
	print(eval(sys.argv[2]))
	EOF3
}

# holds NAME EXPRESSION...: each is true of the measurement.
holds() {
	local name=$1 why='' e
	shift
	for e in "$@"; do
		[ "$(of "$e" 2>&1)" = True ] ||
			why="$why; not $e ($(of "ios, total, y['planned_ops'], y['errors']" 2>&1 | tail -n 1))"
	done
	if [ -z "$why" ]; then
		echo "ok $name"
	else
		bad=1
		echo "not ok $name: ${why:2} $(tail -n 3 "$T/err")"
	fi
}

# Commands that moved data, of all LUNs.
served() {
	ctl --json lun list | python3 -c 'import json, sys
print(sum(l["read_ops"] + l["write_ops"] for l in json.load(sys.stdin)["luns"]))'
}

for n in 1 2 4 8 48; do
	before=$(served)
	bench --rw randrw:70 --qd 4 --sessions $n --threads 2 --time 500ms "${urls[@]}" || true
	holds "sessions_$n" "len(y['sessions']) == 2 * $n" "ios > 0 and total['ops'] == ios" \
		"ios == $(served) - $before" "total['errors'] == 0" \
		"abs(y['paths'][0]['share'] - 0.5) < 0.05" \
		"len({s['isid'] for s in y['sessions']}) == 2 * $n"
done

# peak TIME: KiB that 96 sessions take.
peak() {
	python3 - "$YOKE_BUILD/yoke-bench" "${options[@]}" --rw randrw:70 --qd 4 --sessions 48 \
		--threads 2 --time "$1" "${urls[@]}" <<-'EOF3'
	import resource, subprocess, sys
	subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
	               stderr=subprocess.DEVNULL, timeout=100, check=True)
	print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
	EOF3
}
# About 14 MiB, most of it histograms.
short=$(peak 300ms) long=$(peak 3s)
holds memory_is_bounded "0 < $short < 32 << 10" "$long < $short + (2 << 10)"

before=$(served)
bench --rw rw:50 --bs 8K --qd 4 --luns 0,1 --time 500ms "${urls[@]}" || true
holds several_luns "ios == $(served) - $before and ios > 0"

bench --rw randrw:50 --qd 8 --time 3s --fail-path 2@1s+500ms "${urls[@]}" || true
holds path_fails_and_comes_back "total['errors'] == 0" "total['reconnects'] == 1" \
	"y['paths'][1]['reconnects'] == 1" "total['ops'] == ios" \
	"y['paths'][0]['ops'] > y['paths'][1]['ops'] > 0"

bench --rw randread --qd 8 --time 3s --policy failover --fail-path 1@1s+500ms "${urls[@]}" || true
holds failover_takes_the_other_path_meanwhile "total['errors'] == 0" \
	"min(p['ops'] for p in y['paths']) > 0"
bench --rw randread --qd 8 --time 300ms --policy failover "${urls[@]}" || true
holds failover_prefers_the_first_path "y['paths'][0]['ops'] == ios and ios > 0"

bench --rw randread --qd 8 --time 3s --fail-path 1@500ms+500ms "${urls[0]}" || true
holds without_another_path_commands_wait "total['errors'] == 0" "total['reconnects'] == 1" \
	"job['read']['lat_ns']['max'] >= 500e6"

ctl fault add a stuck --op read --count 1 >"$T/fault"
bench --rw randread --qd 8 --time 4s --timeout 1s "${urls[@]}" || true
holds an_unanswered_command_costs_its_path "total['errors'] == 0" "total['reconnects'] == 1" \
	"total['retries'] >= 1" "job['read']['lat_ns']['max'] >= 1e9"
ctl fault remove 1 >/dev/null

number_of() { ctl --json fault list | python3 -c 'import json, sys; print(json.load(sys.stdin)["faults"][-1]["id"])'; }
# There is nowhere else to go: all that was under way is sent again when the path is back.
ctl fault add a stuck --op read --count 1 >/dev/null
bench --rw randread --qd 8 --time 4s --timeout 2s "${urls[0]}" || true
holds an_unanswered_command_waits_for_its_only_path "total['errors'] == 0" \
	"total['reconnects'] == 1" "total['retries'] >= 1" "job['read']['lat_ns']['max'] >= 2e9"
ctl fault remove "$(number_of)" >/dev/null

# Its sessions come back each time, and lose the same commands again.
ctl fault add a stuck --op read >/dev/null
bench --rw randread --qd 4 --time 1s --timeout 300ms "${urls[@]}" || true
holds a_target_that_never_answers_does_not_keep_it "total['errors'] > 0 and ios == 0" \
	"any('lost with its path' in e['text'] for e in y['errors'])"
ctl fault remove "$(number_of)" >/dev/null
ctl fault add a stuck --op write >/dev/null
rc=0
timeout 100 "$YOKE_BUILD/yoke-bench" --rw randread --size 8M --destroy --timeout 300ms "${urls[0]}" \
	>"$T/out" 2>"$T/err" </dev/null || rc=$?
if [ $rc = 2 ] && grep -q 'filling: path lost' "$T/err"; then
	echo "ok filling_in_vain_ends"
else
	bad=1
	echo "not ok filling_in_vain_ends: status $rc $(tail -n 3 "$T/err")"
fi
ctl fault remove "$(number_of)" >/dev/null

ctl fault add a error --op read --error EIO --count 3 >/dev/null
bench --rw randread --qd 8 --time 500ms "${urls[@]}" || true
holds errors_are_counted_and_named "total['errors'] == 3" "'medium error' in y['errors'][0]['text']" \
	"y['errors'][0]['count'] == 3"

bench --rw randread --qd 300 --time 500ms "${urls[0]}" || true
holds commands_wait_for_the_window "total['stalls'] > 0" "total['errors'] == 0"

bench --rw randread --rate 500 --qd 32 --time 2s "${urls[@]}" || true
holds an_open_loop_does_what_is_planned "y['planned_ops'] == 1000" "0 < ios <= 1000"

bench --rw write --bs 64K --qd 4 --time 60s --io-size 8M "${urls[@]}" || true
holds so_many_bytes_and_no_more "ios == 128" "job['write']['io_bytes'] == 8 << 20"

bench --rw randread --qd 2 --time 300ms --discover "iscsi://127.0.0.1:$left/$iqn/0" || true
holds discovery_finds_all_portals "len(y['paths']) == 3" "min(p['ops'] for p in y['paths']) > 0"

# While it runs: what was negotiated, over IPv6.
digest() {
	ctl --json session list | python3 -c 'import json, sys
sessions = json.load(sys.stdin)["sessions"]
sys.exit(not any(s["keys"]["HeaderDigest"] == "CRC32C" and s["read_ops"] for s in sessions))'
}
begin --rw randread --qd 4 --time 60s --header-digest "iscsi://[::1]:$six/$iqn/0"
wait_for 30 digest && digests=True || digests=False
kill -INT $pid
wait $pid || true
holds header_digests_over_ipv6 "$digests" "ios > 0 and total['errors'] == 0"

# The whole daemon goes and comes back, and counts from nothing.
before=$(served)
begin --rw randrw:50 --qd 8 --time 100s "${urls[@]}"
busy() { [ "$(served)" -gt $((before + 1000)) ]; }
wait_for 30 busy || fail "yoke-bench does nothing"
kill_yoked
start_yoked "$T/yoke.conf"
before=0
wait_for 30 busy || fail "yoke-bench did not come back"
both_read() {
	ctl --json session list | python3 -c 'import json, sys
sys.exit(sum(s["read_ops"] > 0 for s in json.load(sys.stdin)["sessions"]) != 2)'
}
wait_for 30 both_read || fail "a session did not come back"
kill -INT $pid
wait $pid || true
holds the_target_restarts "total['errors'] == 0 and total['ops'] == ios" "total['reconnects'] == 2"
exit $bad
