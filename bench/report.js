// SPDX-License-Identifier: MIT
// The page: headline, comparison, all points, and the one that was chosen.
//
// Invariants:
//  1. Verdicts are those in the data; nothing is judged here. A comparison is called real only if
//     no repeat of one side reaches into the other's.
//  2. A part that cannot be shown says so and leaves the others alone.
//
// Not here: drawing (report_chart.js), the charts of one measurement (report_charts.js).

const $ = id => document.getElementById(id);

// A measurement as the page sees it.
function measurement({ name, json }, i) {
	const y = at(json, "yoke");
	const p = at(y, "point");
	const streams = list(at(p, "streams"));
	const rates = streams.map(s => at(s, "rate_per_s")).filter(Boolean);
	return {
		doc: json, y, number: i + 1, file: name || "",
		name: String(at(p, "name") ?? "") + rates.map(r => ` at ${show.count(r)}/s`).join(""),
		profile: at(y, "profile") || "",
		sessions: number(at(p, "sessions")) || 0, depth: number(at(p, "depth")) || 0,
		// Alike but for sessions and depth; alike in everything.
		load: JSON.stringify([at(p, "name"), at(p, "data"), streams.map(s => (
			{ ...s, depth: 0, sessions: 0 }))]),
		all: JSON.stringify([at(p, "name"), at(p, "data"), streams, at(p, "sessions")]),
		each: streams.map(s => at(s, "depth")).join("+"),
		iops: number(at(y, "sides", "total", "iops")) || 0,
		p99: number(at(y, "sides", "total", "latency", "p99_us")),
		meaningful: at(y, "meaningful") === true,
	};
}

const median = values => {
	const v = [...values].sort((a, b) => a - b);
	return (v[Math.floor((v.length - 1) / 2)] + v[Math.ceil((v.length - 1) / 2)]) / 2;
};
const groups = (rows, key) => {
	const map = new Map();
	for (const row of rows)
		map.set(row[key], [...map.get(row[key]) || [], row]);
	return [...map.values()];
};
const runOf = m => at(m.y, "point", "repeats") > 1 ? `, run ${said(m.y, "point", "repeat")}` : "";
const allName = m => `${m.name}, ${plural(m.sessions, "session")}, depth ${show.count(m.depth)}`;
const longName = m => allName(m) + runOf(m);

// A part of the page that fails says so; data that came from outside may be anything.
function part(place, fill) {
	try {
		fill(place);
	} catch (error) {
		put(place, "p", { class: "bad-text" }, `This cannot be shown: ${error.message}`);
	}
}

function reasons(place, rows) {
	const names = rows.length && put(place, "dl", { class: "reasons" });
	for (const [code, text] of rows) {
		put(names, "dt", {}, code);
		put(names, "dd", {}, text);
	}
}

function verdict(place, m) {
	const warnings = list(at(m.y, "warnings"));
	const box = put(place, "div", { class: m.meaningful ? "verdict" : "verdict bad" });
	put(box, "b", {}, m.meaningful ? "MEANINGFUL" : "NOT MEANINGFUL");
	if (at(m.y, "interrupted"))
		put(box, "span", {}, " Interrupted: this is what was measured until then.");
	reasons(box, warnings.map(w => [said(w, "code"), said(w, "text")]));
}

// Of several: each reason once, with the points that have it; what they were held to.
function verdictOfAll(place, all, side) {
	const bad = all.filter(m => !m.meaningful);
	const box = put(place, "div", { class: bad.length ? "verdict bad" : "verdict" });
	put(box, "b", {}, side + (bad.length ? "NOT MEANINGFUL: " : "MEANINGFUL: ") +
		(bad.length ? `${bad.length} of ${plural(all.length, "measurement")}` :
			all.length === 1 ? "its one measurement" : `all ${all.length} measurements`));
	const codes = groups(bad.flatMap(m => list(at(m.y, "warnings")).map(w => (
		{ code: said(w, "code"), text: said(w, "text"), point: m.number }))), "code");
	reasons(box, codes.map(rows => [rows[0].code, rows.length === 1 ?
		`point ${rows[0].point}: ${rows[0].text}` :
		`${rows.length} points (${runs(rows.map(r => r.point))}); the first: ${rows[0].text}`]));
	const held = groups(all.flatMap(m => checks(m).map(([what, met, found]) => (
		{ what, met, found, point: m.number }))), "what");
	const failed = held.map(rows => rows.filter(r => r.met === false));
	if (held.length)
		table(place, [{ name: "checked", left: true, text: rows => rows[0].what },
			{ name: "", left: true, text: (_, i) => failed[i].length ?
				stateText(false, `NOT MET by ${failed[i].length} of ${all.length}`) :
				stateText(true, "met") },
			{ name: "found", left: true, text: (_, i) => failed[i].length ?
				`points ${runs(failed[i].map(r => r.point))}; the first: ` +
					failed[i][0].found : "" }], held);
}

// 1, 2, 3, 7 as "1 to 3, 7"
function runs(numbers) {
	const parts = [];
	for (const n of numbers) {
		const end = parts[parts.length - 1];
		if (end && n === end[1] + 1)
			end[1] = n;
		else
			parts.push([n, n]);
	}
	return parts.map(([a, b]) => a === b ? `${a}` : `${a} to ${b}`).join(", ");
}

function streamText(s) {
	const pause = at(s, "think_us") > 0 ? `, think time ${show.us(s.think_us)}` : "";
	const rate = at(s, "rate_per_s") ? `, ${show.count(s.rate_per_s)} a second` : ", closed loop";
	return `${at(s, "workers") ? plural(s.workers, "worker") : "a worker a session"} with ` +
		`${show.count(at(s, "depth"))} outstanding${rate}${pause}`;
}

function about(m) {
	const p = at(m.y, "point");
	const range = at(p, "range_bytes") ? `${show.bytes(p.range_bytes)} of each LUN` : "all of each LUN";
	return [...list(at(p, "streams")).map(streamText),
		plural(m.sessions, "session"),
		`${show.digits(at(m.y, "measured_s"))} s after ${show.digits(at(p, "warmup_s"))} s of warm-up`,
		`${said(p, "data")} data, ${at(p, "fill") ? "filled first" : "not filled"}, ${range}`,
		String(at(m.y, "started_utc") ?? "").replace("T", " ").replace("Z", " UTC")].join(" · ");
}

function limitText(e) {
	for (const [unit, text] of [["iops", v => `${show.count(v)} IOPS`],
				    ["mib_s", v => `${show.digits(v)} MiB/s`], ["us", show.us]])
		if (`value_${unit}` in e)
			return number(e[`value_${unit}`]) === null ? "too few commands to know" :
				text(e[`value_${unit}`]);
	return "-";
}

const stateText = (good, text) => put(null, "span", { class: good ? "good" : "bad-text" }, text);

// What the user asked to be checked: [what, met, found].
function checks(m) {
	const rows = list(at(m.y, "expect")).map(e => [`expect ${e.condition}`, e.met, limitText(e)]);
	const check = at(m.y, "cross_check");
	const verified = at(m.y, "verify");
	if (check)
		rows.push(["counts", check.done && check.deviation_share <= 0.01, String(check.text)]);
	if (verified)
		rows.push(["verify", !verified.violation, verified.violation ||
			`no violation, ${show.count(verified.blocks_written)} blocks written, ` +
			`${show.count(verified.blocks_read)} read`]);
	return rows;
}

function judged(place, m) {
	const steady = steadyState(m.y);
	verdict(place, m);
	table(place, [{ name: "checked", left: true, text: r => r[0] },
		{ name: "", left: true, text: r => r[1] === null ? "not known" :
			stateText(r[1], r[1] ? "met" : "NOT MET") },
		{ name: "found", left: true, text: r => r[2] }],
		[["steady", steady.met, steady.text + (steady.met === null ? "" : "; IOPS and mean latency, " +
			"the worse; 20 % and 10 % are allowed")], ...checks(m)]);
	if (list(at(m.y, "errors")).length)
		table(place, [{ name: "errors", left: true, text: e => said(e, "text") },
			{ name: "so often", text: e => show.count(at(e, "count")) }], m.y.errors);
	for (const note of list(at(m.y, "notes")))
		put(place, "p", { class: "notes" }, `To be known: ${said(note, "text")}`);
}

function tiles(place, m) {
	const total = at(m.y, "sides", "total");
	const latency = at(total, "latency");
	for (const [name, text] of [["IOPS", show.count(at(total, "iops"))],
		["MiB/s", show.digits(at(total, "bytes_per_s") / MIB)],
		["mean", show.us(at(latency, "mean_us"))], ["p50", show.us(at(latency, "p50_us"))],
		["p99", show.us(at(latency, "p99_us"))], ["p99.9", show.us(at(latency, "p99_9_us"))],
		["p99.99", show.us(at(latency, "p99_99_us"))], ["max", show.us(at(latency, "max_us"))]])
		put(place, "div", { class: "tile" }, put(null, "span", {}, name), put(null, "b", {}, text));
}

function facts(place, m) {
	const t = at(m.y, "target");
	const h = at(m.y, "host");
	const box = (title, rows) => {
		const names = put(put(place, "figure", {}, put(null, "h3", {}, title)), "dl");
		for (const [name, text] of rows.filter(r => r[1])) {
			put(names, "dt", {}, name);
			put(names, "dd", {}, text);
		}
	};
	const lun = l => `${said(l, "lun")}: ${show.bytes(at(l, "size_bytes"))}, blocks of ` +
		`${show.bytes(at(l, "block_bytes"))}, ${at(l, "write_cache") ? "" : "no "}write cache` +
		(number(at(l, "mapped_share")) === null ? "" : `, ${show.percent(l.mapped_share)} mapped`);
	box("Target", [
		["targets", [...new Set(list(at(t, "portals")).map(p => at(p, "target")))].join(", ")],
		["portals", list(at(t, "portals")).map(p => at(p, "address")).join(", ")],
		...list(at(t, "luns")).map(l => ["LUN", lun(l)]),
		["path policy", at(t, "policy")], ["header digest", at(t, "header_digest") ? "yes" : "no"],
		["cache taken to be", show.bytes(at(m.y, "point", "cache_bytes"))]]);
	box("Client", [
		["host", `${said(h, "name")}, ${said(h, "machine")}, Linux ${said(h, "kernel")}`],
		["place", at(t, "local") ? "the target's own machine" : "not the target's machine"],
		["initiator", at(t, "initiator")],
		["processors", `${show.digits(at(h, "cpus"))} allowed, ${show.digits(at(h, "cpu"))} used, ` +
			plural(list(at(h, "threads")).length, "thread")],
		["links", number(at(h, "link_bytes_per_s")) === null ? "speed not known" :
			`${show.bytes(h.link_bytes_per_s)}/s`],
		["sessions", show.count(m.sessions)], ["seed", at(m.y, "point", "seed")],
		["file", m.file]]);
}

function showPoint(m) {
	$("asked").textContent = about(m);
	for (const [id, fill] of Object.entries({ judged, tiles, facts })) {
		$(id).replaceChildren();
		part($(id), place => fill(place, m));
	}
	for (const [id, fill] of Object.entries(chartsOfOne)) {
		$(id).replaceChildren($(id).querySelector("h3"));
		part($(id), place => fill(place, m.y, m.doc));
	}
	for (const row of document.querySelectorAll("tr[data-point]"))
		row.classList.toggle("chosen", Number(row.dataset.point) === m.number);
}

// Repeats of a point as one: medians.
const merged = rows => groups(rows, "all").map(same => {
	const tails = same.map(m => m.p99).filter(v => v !== null);
	return { ...same[0], iops: median(same.map(m => m.iops)), p99: tails.length ? median(tails) : null };
});

const byNumber = (a, b) => a - b;
const distinct = values => [...new Set(values)].sort(byNumber);

function kneeChart(place, all) {
	const loads = groups(all.filter(m => m.p99 !== null && m.iops > 0), "load")
		.filter(rows => rows.length > 1);
	place.hidden = !loads.length;
	answer(place, "p99 latency over IOPS; along a curve the depth grows. Where it turns up, more in " +
		"flight brings waiting and no more work. Up and to the left is worse.");
	for (const rows of loads) {
		const sessions = distinct(rows.map(m => m.sessions));
		const tails = rows.map(m => m.p99);
		put(place, "p", { class: "panel" }, rows[0].name);
		chart(place, { title: `p99 over IOPS, ${rows[0].name}`, xLabel: "IOPS", yLabel: "p99",
			alwaysNamed: true,
			x: linear(0, Math.max(...rows.map(m => m.iops)), { text: show.count, wanted: 6 }),
			y: logarithmic(Math.min(...tails), Math.max(...tails)),
			layers: sessions.map((n, i) => ({ type: "line", dots: true,
				name: plural(n, "session"), color: ordered(i, sessions.length),
				values: rows.filter(m => m.sessions === n).sort((a, b) => a.depth - b.depth)
					.map(m => [m.iops, m.p99, `${allName(m)}: ${show.count(m.iops)} ` +
						`IOPS, p99 ${show.us(m.p99)}`]) })) });
	}
	table(place, [{ name: "load", left: true, text: m => m.name },
		{ name: "sessions", text: m => show.count(m.sessions) },
		{ name: "depth", text: m => show.count(m.depth) },
		{ name: "IOPS", text: m => show.count(m.iops) }, { name: "p99", text: m => show.us(m.p99) }],
		loads.flat(), { under: plural(loads.flat().length, "dot") });
}

function gainChart(place, all) {
	const loads = groups(all, "load").filter(rows => distinct(rows.map(m => m.sessions)).length > 1);
	const steps = distinct(loads.flat().map(m => m.sessions));
	const lines = [];
	place.hidden = !loads.length;
	answer(place, "IOPS over sessions, a line a depth. A flat line: the session was not the limit. A " +
		"line that rises in proportion: it was.");
	for (const rows of loads) {
		const depths = groups(rows, "each");
		const names = distinct(rows.map(m => m.sessions));
		put(place, "p", { class: "panel" }, rows[0].name);
		const layers = depths.map((same, i) => ({ type: "line", dots: true, of: same,
			name: `depth ${same[0].each}`, color: ordered(i, depths.length),
			values: [...same].sort((a, b) => a.sessions - b.sessions)
				.map(m => [m.sessions, m.iops, `${allName(m)}: ${show.count(m.iops)} IOPS`]) }));
		lines.push(...layers.map(l => ({ ...l, load: rows[0].name })));
		chart(place, { title: `IOPS over sessions, ${rows[0].name}`, xLabel: "sessions",
			yLabel: "IOPS", layers, alwaysNamed: true,
			x: { map: v => (names.indexOf(v) + 0.5) / names.length,
			     ticks: names.map(n => ({ at: n, text: show.count(n) })) },
			y: linear(0, Math.max(...rows.map(m => m.iops)), { text: show.count }) });
	}
	const cell = (line, n) => {
		const found = line.of.find(m => m.sessions === n);
		return !found ? "-" : found === line.of[0] || !line.of[0].iops ? show.count(found.iops) :
			`${show.count(found.iops)} (× ${(found.iops / line.of[0].iops).toFixed(2)})`;
	};
	table(place, [{ name: "load", left: true, text: l => l.load }, { name: "", text: l => l.name },
		...steps.map(n => ({ name: plural(n, "session"), text: l => cell(l, n) }))],
		lines, { under: plural(lines.length, "line") });
}

function listPoints(place, all, choose) {
	table(place, [{ name: "point", left: true, text: m => String(m.number) },
		{ name: "load", left: true, text: m => m.name + runOf(m) },
		{ name: "sessions", text: m => show.count(m.sessions) },
		{ name: "depth", text: m => show.count(m.depth) }, { name: "IOPS", text: m => show.count(m.iops) },
		{ name: "MiB/s", text: m => show.digits(at(m.y, "sides", "total", "bytes_per_s") / MIB) },
		{ name: "mean", text: m => show.us(at(m.y, "sides", "total", "latency", "mean_us")) },
		{ name: "p99", text: m => show.us(m.p99) },
		{ name: "verdict", left: true, text: m => put(null, "span",
			{ class: m.meaningful ? "good" : "bad-text" }, m.meaningful ? "MEANINGFUL" :
				`NOT: ${list(at(m.y, "warnings")).map(w => said(w, "code")).join(", ")}`) }],
		all, { each: (row, m) => {
			row.dataset.point = m.number;
			row.addEventListener("click", () => { choose(m); $("chosen").scrollIntoView(); });
		} });
}

// A point of both sides as a ratio of medians, with how far it could be off.
function ratio(ours, theirs, figure, within) {
	const [a, b] = [ours, theirs].map(rows => rows.map(figure).filter(v => v > 0));
	if (!a.length || !b.length)
		return null;
	const middle = median(a) / median(b);
	const sure = a.length > 1 && b.length > 1;
	const inside = [ours[0], theirs[0]].map(m => within ? number(within(m)) : null);
	const known_ = inside.every(v => v !== null && v < 2);
	const low = sure ? Math.min(...a) / Math.max(...b) :
		known_ ? middle * (1 - inside[0] / 2) / (1 + inside[1] / 2) : null;
	const high = sure ? Math.max(...a) / Math.min(...b) :
		known_ ? middle * (1 + inside[0] / 2) / (1 - inside[1] / 2) : null;
	return { name: allName(ours[0]), at: middle, low, high, sure,
		 a: median(a), b: median(b) };
}

function ratioChart(place, rows, { what, format, moreIsBetter }) {
	const real = r => r.sure && (r.low > 1 || r.high < 1);
	const better = r => r.at > 1 === moreIsBetter;
	const word = r => !r.sure ? "one run" : !real(r) ? "noise" :
		better(r) ? "better" : "WORSE";
	answer(place, `${what}, A / B, medians of the repeats; a bar from the worst pairing of repeats to ` +
		"the best. Real if it does not reach 1; else it is noise. A dotted bar, of one run a " +
		"side, is the spread of its rounds, and says nothing about another run.");
	if (rows.length) {
		const values = rows.flatMap(r => [r.at, r.low ?? r.at, r.high ?? r.at]).filter(v => v > 0);
		const reach = Math.max(1.02, ...values.map(v => Math.max(v, 1 / v)));
		const text = v => `× ${digits(v)}`;
		const x = reach > 1.8 ? logarithmic(1 / reach, reach, { text }) :
			linear(2 - reach * 1.02, reach * 1.02, { text, tight: true });
		chart(place, { title: `${what}, A / B`, xLabel: "A / B", height: 48 + 40 * rows.length,
			x, layers: [{ type: "whiskers", rows, height: 40, colorOf: r => !real(r) ?
				"var(--dim)" : better(r) ? "var(--good)" : "var(--bad)" }] });
	}
	table(place, [{ name: "point", left: true, text: r => r.name },
		{ name: "A", text: r => format(r.a) }, { name: "B", text: r => format(r.b) },
		{ name: "A / B", wrap: true, text: r => r.at.toFixed(3) + (r.low === null ? "" :
			` (${r.low.toFixed(3)}\u00a0to\u00a0${r.high.toFixed(3)})`) },
		{ name: "", left: true, text: word }], rows);
}

function compare(ours, theirs) {
	const pairs = groups(ours, "all").map(rows => [rows, theirs.filter(m => m.all === rows[0].all)]);
	const matched = pairs.filter(([, b]) => b.length);
	const alone = pairs.length - matched.length;
	const missing = groups(theirs, "all").filter(rows => !ours.some(m => m.all === rows[0].all)).length;
	const names = rows => rows.length > 2 ? `${rows[0].file} … ${rows[rows.length - 1].file}` :
		rows.map(m => m.file).join(", ");
	$("compare").hidden = false;
	$("compared").textContent = `A: ${names(ours)}. B: ${names(theirs)}. ` +
		`${plural(matched.length, "point")} in both` +
		(alone || missing ? `, ${alone} only in A, ${missing} only in B.` : ".");
	part($("ratio-iops"), place => ratioChart(place, matched.map(([a, b]) =>
		ratio(a, b, m => m.iops, m => at(m.y, "steady", "iops", "range_share"))).filter(Boolean),
		{ what: "IOPS", format: show.count, moreIsBetter: true }));
	part($("ratio-p99"), place => ratioChart(place, matched.map(([a, b]) =>
		ratio(a, b, m => m.p99)).filter(Boolean),
		{ what: "p99 latency", format: show.us, moreIsBetter: false }));
}

function severalPoints(all) {
	const choice = $("choose");
	const choose = m => { choice.value = String(m.number); showPoint(m); };
	$("points").hidden = false;
	for (const node of document.querySelectorAll(".several"))
		node.hidden = false;
	for (const m of all)
		put(choice, "option", { value: m.number }, `${m.number}: ${longName(m)}`);
	choice.addEventListener("change", () => showPoint(all[choice.value - 1]));
	part($("knee"), place => kneeChart(place, merged(all)));
	part($("gain"), place => gainChart(place, merged(all)));
	part($("list"), place => listPoints(place, all, choose));
}

function page() {
	const data = JSON.parse($("data").textContent);
	const all = data.runs.map(measurement);
	const first = all[0];
	const several = all.length > 1;
	const name = `${first.profile} ${several && first.profile ? "" : first.name}`.trim();
	document.title = `${name} - yoke-bench`;
	$("name").textContent = name;
	$("about").textContent = [at(first.y, "tells"), several ? plural(all.length, "point") : null,
		`yoke-bench ${said(first.y, "version")} on ${said(first.y, "host", "name")}`]
		.filter(Boolean).join(" · ");
	const theirs = data.against.map(measurement);
	if (several || theirs.length)
		part($("verdict"), place => verdictOfAll(place, all, theirs.length ? "A: " : ""));
	else
		$("one").append($("chosen"));
	if (theirs.length) {
		part($("verdict"), place => verdictOfAll(place, theirs, "B: "));
		compare(all, theirs);
	}
	if (several)
		severalPoints(all);
	showPoint(first);
	$("made").textContent = "Latencies count from the intended start of a command unless it says " +
		"service. Percentiles are of merged histograms, right to 1 %. KiB, MiB, GiB are powers " +
		"of 1024. yoke-bench(1) says how to read the numbers.";
}
page();
