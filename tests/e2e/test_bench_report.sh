#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# yoke-bench report: one page that needs nothing else and carries its data unharmed, whatever a
# target calls itself; what is no measurement is refused in one line. How it looks:
# test_bench_report_picture.sh.
. "$(dirname "$0")/../functions.sh"
here=$(cd "$(dirname "$0")" && pwd)
cd "$T" || fail "no directory to work in"
mkdir data pages
python3 "$here/report_points.py" data

# report PAGE WORDS...
report() {
	local page=$1
	shift
	timeout 60 "$YOKE_BUILD/yoke-bench" report "$@" --out "pages/$page.html" >said 2>&1 ||
		fail "$page: $(cat said)"
	expect "$page, said" "" "$(cat said)"
}
for name in one stall paths hostile nothing huge bare wrong interval; do
	report $name data/$name.json
done
report sweep data/sweep-*.json
report compared data/new-*.json --against data/old-*.json
[ "$(find pages -type f ! -name '*.html')" = "" ] || fail "something lies beside the pages"

python3 - <<'EOF' || fail "a page is not what it should be"
import glob
import html.parser
import json
import re

TITLES = [
    "Are operations steady?", "Is throughput steady?", "Does it stall?", "What hides in the tail?",
    "Is there more than one kind of answer?", "Do the paths carry their shares?",
    "Was this client the limit?", "Was as much in flight as asked?", "Where is the knee?",
    "What does each session add?", "Is the difference in IOPS real?",
    "Is the difference in p99 latency real?", "Which points are there?"]


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.titles, self.scripts, self.open = [], [], [], [], ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]
        self.open = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        self.open = ""

    def handle_data(self, data):
        if self.open == "h3":
            self.titles.append(data)
        if self.open == "script":
            self.scripts[-1] += data


def load(*names):
    return [{"name": name, "json": json.load(open(name))} for pattern in names
            for name in sorted(glob.glob(pattern))]


for path in glob.glob("pages/*.html"):
    name = path[len("pages/"):-len(".html")]
    text = open(path, encoding="utf-8").read()
    page = Page(text)
    assert sorted(page.titles) == sorted(TITLES), (name, page.titles)
    assert page.tags.count("script") == 2 and page.tags.count("html") == 1, (name, page.tags)
    assert not {"img", "link", "iframe", "object", "base"} & set(page.tags), (name, page.tags)
    assert not {"src", "href", "onerror", "onload"} & set(page.attributes), (name, page.attributes)
    assert not re.search(r"url\(|@import|fetch\(|innerHTML|XMLHttpRequest|import\(", text), name
    addresses = set(re.findall(r"https?://[^\"'\s]*", text))
    assert addresses <= {"http://www.w3.org/2000/svg"}, (name, addresses)
    assert "default-src 'none'" in text, name
    # Every byte of what was measured is there, as it was.
    data = json.loads(page.scripts[0])
    if name == "compared":
        wanted = {"runs": load("data/new-*.json"), "against": load("data/old-*.json")}
    else:
        wanted = {"runs": load("data/sweep-*.json" if name == "sweep" else f"data/{name}.json"),
                  "against": []}
    assert [r["name"] for r in data["runs"]] == [r["name"] for r in wanted["runs"]], name
    assert len(data["against"]) == len(wanted["against"]), name

    def same(a, b):
        if isinstance(a, float) or isinstance(b, float):
            return abs(a - b) <= 1e-9 * abs(b)
        if isinstance(a, dict):
            return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
        if isinstance(a, list):
            return len(a) == len(b) and all(map(same, a, b))
        return a == b
    assert same(data, wanted), name
    assert "<" not in page.scripts[0] and page.scripts[0].isascii(), name
EOF

# At the end of a run: the data are those of its JSON files.
port=$(free_port)
cat >yoke.conf <<CONF
node "e2e" {
  state_dir = "$T"
  control = "$T/yoked.sock"
}
portal "only" { listen = { "127.0.0.1:$port" }  group = 1 }
backing "ram" { driver = "ram"  size = "16M" }
target "iqn.2026-11.org.yoke:e2e" {
  portals = { "only" }  allow = { "*" }
  lun "0" { backing = "ram" }
}
CONF
start_yoked yoke.conf
timeout 100 "$YOKE_BUILD/yoke-bench" "iscsi://127.0.0.1:$port/iqn.2026-11.org.yoke:e2e/0" \
	--rw randrw:50 --qd 1,4 --repeat 2 --time 1 --warmup 0 --json run.json --report run.html \
	>said 2>&1 || fail "a run with --report: $(cat said)"
stop_yoked
python3 - <<'EOF' || fail "the report of a run is not what it measured"
import json
import re

text = open("run.html", encoding="utf-8").read()
runs = json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])["runs"]
for i, run in enumerate(runs):
    told, kept = run["json"]["yoke"], json.load(open(f"run-{i + 1}.json"))["yoke"]
    assert told["sides"]["total"]["ops"] == kept["sides"]["total"]["ops"] > 0, i
    assert told["point"] == kept["point"] and told["point"]["repeat"] == i // 2 + 1, i
assert len(runs) == 4
EOF

# refused STATUS PATTERN WORDS...: one line that matches, and the page that was there stays.
refused() {
	local status=$1 pattern=$2 rc=0
	shift 2
	echo before >kept.html
	timeout 60 "$YOKE_BUILD/yoke-bench" report "$@" >said 2>&1 || rc=$?
	expect "status of report $*" "$status" "$rc"
	expect "lines of report $*" 1 "$(wc -l <said)"
	grep -qE "^yoke-bench: $pattern" said || fail "report $*: $(cat said)"
	expect "the page of report $*" before "$(cat kept.html)"
}
to=(--out kept.html)
echo '{"yoke": {"schema": "yoke.bench/1", "meaningful": true}}' >part.json
echo '{"jobs": []}' >fio.json
echo '[1, 2' >cut.json
head -c 2000 /dev/urandom >noise.json
: >empty.json
sed 's|yoke.bench/1|yoke.bench/2|' data/one.json >later.json
sed 's|"streams": \[[^]]*\]|"streams": 7|' data/one.json >streams.json
printf '{"a":%.0s' {1..5000} >deep.json
printf '\033[31m{' >escape.json
sed 's|yoke.bench/1|\\u001b[31m|' data/one.json >colour.json
for file in part fio cut noise empty streams deep; do
	refused 2 "$file\.json:.*Name a file that yoke-bench --json wrote" $file.json "${to[@]}"
done
refused 2 "cut\.json:2: .*Name" data/one.json cut.json "${to[@]}"
refused 2 "cut\.json:2: .*Name" data/one.json --against cut.json "${to[@]}"
refused 2 '[[:print:]]*Name[[:print:]]*$' escape.json "${to[@]}"
refused 2 '[[:print:]]*its schema is "\?\[31m"[[:print:]]*$' colour.json "${to[@]}"
refused 2 'later\.json: its schema is "yoke\.bench/2"' later.json "${to[@]}"
refused 2 '.*gone\.json.*No such file' gone.json "${to[@]}"
refused 2 '.*data.*Name a file' data "${to[@]}"
refused 2 'report: no file to show' "${to[@]}"
refused 2 'report: no file to show' --against data/one.json "${to[@]}"
refused 2 'report: --against: no file' data/one.json --against "${to[@]}"
refused 2 'report: no --out' data/one.json
refused 2 'report: --out is unknown, given twice or without a value' data/one.json --out
refused 2 'report: --sideways is unknown' data/one.json --sideways "${to[@]}"
refused 3 'gone/x\.html: No such file' data/one.json --out gone/x.html
refused 3 'data: Is a directory' data/one.json --out data
[ -z "$(find . -name "*.part")" ] || fail "a part of a page was left"
timeout 10 "$YOKE_BUILD/yoke-bench" report --help | grep -q -- '--against' || fail "no help"
