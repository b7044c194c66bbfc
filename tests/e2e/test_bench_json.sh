#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# fio's own script and what fio-plot looks up both read yoke-bench's JSON.
. "$(dirname "$0")/../functions.sh"

command -v fio_jsonplus_clat2csv >/dev/null || skip "no fio_jsonplus_clat2csv: apt-get install fio"

golden=$(cd "$(dirname "$0")/../golden" && pwd)
cd "$T" || fail "no directory to work in"

for name in good bad; do
	timeout 30 fio_jsonplus_clat2csv "$golden/bench-$name.json" $name.csv >script.log 2>&1 ||
		fail "fio_jsonplus_clat2csv cannot read bench-$name.json: $(cat script.log)"
	timeout 30 fio_jsonplus_clat2csv "$golden/bench-$name.json" $name.csv --validate \
		>script.log 2>&1 || fail "it is not what it made of it: $(cat script.log)"
	expect "its own check" "${name}_job0.csv validated" "$(cat script.log)"
done

# The last of a side's cumulative counts is the number of its commands: all bins are there.
python3 - "$golden" <<'EOF' || fail "the table of fio_jsonplus_clat2csv is not what was measured"
import csv
import json
import sys

for name in ("good", "bad"):
    job = json.load(open(f"{sys.argv[1]}/bench-{name}.json"))["jobs"][0]
    with open(f"{name}_job0.csv") as table:
        rows = list(csv.DictReader(table, skipinitialspace=True))
    for side in ("read", "write"):
        for kind in ("clat", "lat"):
            column = f"{side}_{kind}_ns_cumulative"
            last = [row[column] for row in rows if row[column].strip()][-1]
            assert int(last) == job[side]["total_ios"] == job[side][kind + "_ns"]["N"], column
        median = next(int(row["nsec"]) for row in rows
                      if row[f"{side}_clat_ns_percentile"].strip()
                      and float(row[f"{side}_clat_ns_percentile"]) >= 0.5)
        told = job[side]["clat_ns"]["percentile"]["50.000000"]
        assert abs(median - told) <= told / 64, f"{side}: median {median}, {told} was told"
EOF

# What fio-plot's parser takes from a job; it fails on any that is missing.
python3 - "$golden" <<'EOF' || fail "fio-plot would not read it"
import json
import sys

for name in ("good", "bad"):
    record = json.load(open(f"{sys.argv[1]}/bench-{name}.json"))
    assert record["fio version"] and record["global options"] == {}
    job, = record["jobs"]
    assert job["jobname"] != "All clients"
    options = job["job options"]
    assert "steadystate" not in options and "hostname" not in job
    assert int(options["iodepth"]) > 0 and int(options["numjobs"]) > 0 and options["bs"] == "4k"
    assert options["rw"] in ("randrw", "read", "write", "rw", "readwrite", "randread", "randwrite")
    for mode in ("read", "write"):
        side = job[mode]
        for value in (side["bw"], side["iops"], side["iops_stddev"], side["lat_ns"]["mean"],
                      side["lat_ns"]["stddev"], job["usr_cpu"], job["sys_cpu"]):
            assert value > 0
    shares = [job[f"latency_{unit}"] for unit in ("ns", "us", "ms")]
    assert abs(sum(sum(share.values()) for share in shares) - 100) < 0.01
EOF
