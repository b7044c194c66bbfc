#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# full: yes
# timeout: 400
# subtests: yes
# The report as a browser lays it out, wide and narrow, light and dark: nothing overlaps, nothing is
# cut, nothing scrolls sideways, nothing is fetched. KEEP=1 keeps the pages.
. "$(dirname "$0")/../functions.sh"
here=$(cd "$(dirname "$0")" && pwd)
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
	skip "no chromium: apt-get install chromium"
cd "$T" || fail "no directory to work in"
mkdir data
python3 "$here/report_points.py" data

# report NAME FILE...: its page, with the probe in it.
report() {
	local name=$1
	shift
	"$YOKE_BUILD/yoke-bench" report "$@" --out "$name.html" || fail "$name: no report"
	probe "$name"
}
probe() {
	python3 - "$1" "$here/report_probe.js" <<-'EOF'
	import sys
	name, probe = sys.argv[1:]
	page = open(name + ".html").read()
	end = f"<script>document.documentElement.dataset.name = '{name}';{open(probe).read()}</script>"
	open(name + ".html", "w").write(page.replace("</body>", end + "</body>"))
	EOF
}
pages=(one stall paths hostile nothing huge bare wrong interval sweep compared once)
for name in "${pages[@]:0:9}"; do
	report "$name" "data/$name.json"
done
report sweep data/sweep-*.json
report compared data/new-*.json --against data/old-*.json
report once data/single-new-*.json --against data/single-old-*.json
# What must be found, or the probe is blind.
sed 's|</style>|.plot text { font-size: 40px !important; } .tile { width: 3000px; }</style>|' one.html |
	sed "s/dataset.name = 'one'/dataset.name = 'canary'/" >canary.html

{
	echo '<!doctype html><body><script>'
	echo 'addEventListener("message", e => { const line = document.createElement("pre");'
	echo 'line.textContent = "result " + JSON.stringify(e.data); document.body.append(line); });'
	echo '</script>'
	for name in "${pages[@]}" canary; do
		for width in 1280 400; do
			echo "<iframe src=\"$name.html\" width=\"$width\" height=\"900\" style=\"border:0\"></iframe>"
		done
	done
} >all.html

# look SCHEME OPTIONS...: the results, a line of JSON a page.
look() {
	local scheme=$1
	shift
	[ "$(id -u)" != 0 ] || set -- --no-sandbox "$@"
	timeout 150 "$browser" --headless --disable-gpu --disable-dev-shm-usage --no-first-run \
		--user-data-dir="$T/browser-$scheme" --window-size=1400,900 \
		--host-resolver-rules='MAP * ~NOTFOUND' --enable-logging=stderr \
		--virtual-time-budget=20000 "$@" --dump-dom "file://$T/all.html" \
		>"$scheme.dom" 2>"$scheme.log" || fail "the browser: $(tail -n 5 "$scheme.log")"
}
look light
look dark --blink-settings=preferredColorScheme=0

rc=0
python3 - "${pages[@]}" <<'EOF' || rc=1
import html
import json
import re
import sys

bad = False


def result(good, name, why=""):
    global bad
    bad = bad or not good
    print(("ok " if good else "not ok ") + name)
    if not good:
        print(f"  {why}")


# At least so many charts; `tip` is what the pointer near the right edge reads.
CHARTS = {"one": 8, "stall": 8, "paths": 8, "hostile": 8, "huge": 8, "interval": 8, "sweep": 16,
          "compared": 10, "once": 12, "nothing": 2, "bare": 0, "wrong": 0}
for scheme in ("light", "dark"):
    dom = open(scheme + ".dom", encoding="utf-8").read()
    seen = {}
    for line in re.findall(r"<pre>result (.*?)</pre>", dom, re.S):
        found = json.loads(html.unescape(line))
        seen[found["name"], found["width"]] = found
    for name in sys.argv[1:]:
        for width in (1280, 400):
            found = seen.get((name, width), {"faults": ["it never told"], "charts": -1, "tip": "",
                                             "dark": None, "title": ""})
            faults = found["faults"]
            if name == "wrong":  # what is no measurement may say so
                faults = [f for f in faults if "cannot be shown" not in f]
            if found["charts"] < CHARTS[name]:
                faults.append(f"{found['charts']} charts, not {CHARTS[name]}")
            if found["dark"] != (scheme == "dark"):
                faults.append(f"it is not {scheme}")
            if name == "hostile" and not found["title"].startswith("</script>"):
                faults.append("its title is " + found["title"])
            if name == "one" and not re.search(r"2[89] to \d+ s.*read [\d,]+.*total [\d,]+", found["tip"]):
                faults.append("the pointer reads " + found["tip"])
            result(not faults, f"{name} {width} {scheme}", "\n  ".join(faults[:20]))
    said = [line for line in open(scheme + ".log", errors="replace") if "CONSOLE" in line]
    result(not said, f"console {scheme}", "".join(said[:5]))
    for width in (1280, 400):
        faults = " ".join(seen["canary", width]["faults"])
        result(all(word in faults for word in ("cut", "lies on", "scrolls sideways")),
               f"canary {width} {scheme}", faults)
sys.exit(bad)
EOF
exit $rc
