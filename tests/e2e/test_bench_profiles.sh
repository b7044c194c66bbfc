#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# subtests: yes
# timeout: 900
# The profiles that come with yoke-bench, shortened, every point twice: what they do is what their
# files say, yoked counted every command as they did, and the noise that is told is the one there
# was. Two of them against yoked; in check-full all, and against Debian's tgt as well.
. "$(dirname "$0")/../functions.sh"

[ -x "$YOKE_BUILD/yoke-bench" ] || skip "no yoke-bench"
bad=0
full=${YOKE_FULL:-0}
export XDG_CONFIG_HOME=$T/none
profiles=("$YOKE_TOP"/conf/profiles/{iometer,max-iops}.conf)
[ "$full" = 0 ] || profiles=("$YOKE_TOP"/conf/profiles/*.conf)

# points PROFILE CHECKED: judges the measurements in $T/run*.json.
points() {
	python3 - "$1" "$2" "$T"/run*.json <<-'EOF'
	import json, math, re, sys

	text = re.sub(r"#.*", "", open(sys.argv[1]).read())
	checked = sys.argv[2] == "checked"
	runs = [json.load(open(name)) for name in sys.argv[3:]]

	def listed(key, otherwise):
	    found = re.search(rf"^\s*{key}\s*=\s*\{{(.*?)\}}", text, re.M)
	    return re.findall(r"[\w.]+", found[1]) if found else otherwise

	def number(key, otherwise):
	    found = re.search(rf"^\s*{key}\s*=\s*(\d+)", text, re.M)
	    return int(found[1]) if found else otherwise

	def size(word):
	    return int(word.rstrip("K")) * (1024 if word.endswith("K") else 1)

	# What the file says, as (block, pattern, read, shift, sessions, depth of all).
	said = set()
	for sessions in map(int, listed("sessions", ["1"])):
	    workers = number("workers", 0) * number("vms", 1) or sessions * 2
	    for depth in map(int, listed("depth", ["32"])):
	        said |= {(size(bs), pattern, int(read), size(shift), sessions * 2, workers * depth)
	                 for bs in listed("bs", ["4K"]) for pattern in listed("pattern", None)
	                 for read in listed("read", None) for shift in listed("shift", ["0"])}
	done, wrong = {}, []

	def want(what, holds):
	    if not holds:
	        wrong.append(f"{name}: {what}")

	for run in runs:
	    job, y = run["jobs"][0], run["yoke"]
	    stream, point = y["point"]["streams"][0], y["point"]
	    name = f"{point['name']}, {point['depth']} by {point['sessions']}"
	    pattern = {"random": "rand", "sequential": "seq", "zipf": "zipf"}[stream["pattern"]]
	    key = (stream["block_bytes"], pattern, stream["read_percent"], stream["shift_bytes"],
	           point["sessions"], point["depth"])
	    done.setdefault(key, []).append(y)
	    total, read = y["sides"]["total"], y["sides"]["read"]
	    ops = total["ops"]
	    want("nothing done", ops > 0)
	    want(f"{total['bytes']} bytes in {ops} commands", total["bytes"] == ops * key[0])
	    want("counted twice, or not", ops == sum(s["ops"] for s in y["sessions"])
	         == sum(p["ops"] for p in y["paths"])
	         == job["read"]["total_ios"] + job["write"]["total_ios"])
	    share = key[2] / 100
	    slack = 5 * math.sqrt(share * (1 - share) / max(ops, 1)) + 0.02 * (0 < share < 1)
	    want(f"{read['ops']} reads of {ops}", abs(read["ops"] / max(ops, 1) - share) <= slack)
	    want("more in flight than asked", y["in_flight"]["mean"] <= point["depth"] * 1.001)
	    # The deepest are more than a LUN takes at once: it says TASK SET FULL, and that is told.
	    away = sum(s["backoffs"] for s in y["sessions"])
	    want(f"errors {y['errors']}, {away} turned away", y["errors"] == [] and away == sum(
	        s["errors"] + s["retries"] + s["reconnects"] for s in y["sessions"]))
	    want("turned away", away == 0 or point["depth"] > 512)
	    codes = {w["code"] for w in y["warnings"]}
	    want(f"warned of {codes}", not codes & {"counts", "zero-data", "unmapped"}
	         and ("errors" in codes) == (away > 0))
	    if checked:
	        c = y["cross_check"]
	        want(f"yoked counted {c['text']}", c["done"] and ops == c["initiator_ops"]
	             == c["session_ops"] == c["lun_ops"] == c["backing_ops"])
	for key in said ^ set(done):
	    wrong.append(f"{key} is {'not measured' if key in said else 'not in the file'}")
	for key, repeats in done.items():
	    name = repeats[0]["point"]["name"]
	    want(f"{len(repeats)} repeats", len(repeats) == 2)
	    iops = [y["sides"]["total"]["iops"] for y in repeats]
	    told = repeats[-1]["spread_share"]
	    spread = (max(iops) - min(iops)) * len(iops) / sum(iops)
	    want(f"a noise of {told} was {spread}", told is not None and abs(told - spread) < 1e-6)
	    noisy = any(w["code"] == "noise" for w in repeats[-1]["warnings"])
	    want(f"noise is {'' if noisy else 'not '}told", noisy == (spread > 0.1))
	print("; ".join(wrong[:3]))
	EOF
}

# every TARGET CHECKED URL...: all profiles, with OPTIONS.
every() {
	local name=$1 checked=$2 file rc why
	shift 2
	for file in "${profiles[@]}"; do
		rm -f "$T"/run*.json
		rc=0
		timeout 300 "$YOKE_BUILD/yoke-bench" --profile "$file" --time 150ms --warmup 50ms \
			--repeat 2 --size 16M --cache 1M --json "$T/run.json" \
			"${options[@]}" "$@" >"$T/out" 2>"$T/err" </dev/null || rc=$?
		why=
		[ $rc = 0 ] || why="exit status $rc: $(tail -n 3 "$T/err")"
		[ -n "$why" ] || why=$(points "$file" "$checked" 2>&1)
		file=$(basename "$file" .conf)
		if [ -z "$why" ]; then
			echo "ok ${name}_$file"
		else
			bad=1
			echo "not ok ${name}_$file: $why"
		fi
	done
}

left=$(free_port)
right=$(free_port)
iqn=iqn.2026-11.org.yoke:profiles
cat >"$T/yoke.conf" <<EOF
node "e2e" {
  state_dir = "$T/state"
  control   = "$T/yoked.sock"
}
portal "left"  { listen = { "127.0.0.1:$left" }   group = 1 }
portal "right" { listen = { "127.0.0.1:$right" }  group = 2 }
backing "a" { driver = "ram"  size = "32M" }
target "$iqn" {
  portals = { "left", "right" }  allow = { "*" }
  lun "0" { backing = "a" }
}
EOF
start_yoked "$T/yoke.conf"
options=(--cross-check "$T/yoked.sock")
every yoked checked "iscsi://127.0.0.1:$left/$iqn/0" "iscsi://127.0.0.1:$right/$iqn/0"
stop_yoked
[ "$full" = 1 ] || exit $bad

truncate -s 32M "$T/disk.img"
start_tgt "$T/disk.img" "$iqn" || {
	echo "skip tgt: $WHY"
	exit $bad
}
# As many sessions as over yoked's portals.
tgtadm --op new --mode portal --param portal=127.0.0.2:"$TGT_PORT"
options=()
every tgt unchecked "iscsi://127.0.0.1:$TGT_PORT/$iqn/1" "iscsi://127.0.0.2:$TGT_PORT/$iqn/1"
exit $bad
