// SPDX-License-Identifier: MIT
// The charts of one measurement, each with the figures that answer its question and a table.
//
// Invariants:
//  1. Percentiles are never averaged: over the whole time they are those of the merged histogram.
//  2. What is missing is said to be missing; the other charts do not care.
//
// Not here: drawing (report_chart.js), several measurements and the words around (report.js).

const at = (object, ...keys) =>
	keys.reduce((o, key) => o === null || o === undefined ? undefined : o[key], object);
const list = value => Array.isArray(value) ? value : [];
// What was said at a place, as text.
const said = (...where) => String(at(...where) ?? "-");
const MIB = 2 ** 20;
const plural = (n, word) => `${show.count(n)} ${word}${n === 1 ? "" : "s"}`;

const sides = [["read", "var(--read)"], ["write", "var(--write)"]];
const ordered = (i, n) =>
	`oklch(var(--hue-l) var(--hue-c) ${Math.round(235 + 185 * i / Math.max(1, n - 1)) % 360})`;

function column(y, name) {
	return list(at(y, "series", name)).map(number);
}

const answer = (place, text) => put(place, "p", { class: "answer" }, text);

// lines: [{name, color, values, whole}]: values an interval, whole of all the time.
function overTime(place, y, { lines, yLabel, text, log, rule, summary }) {
	const from = column(y, "from_s");
	const to = column(y, "to_s");
	const middle = from.map((a, i) => (a + to[i]) / 2);
	const all = lines.flatMap(l => l.values).filter(v => v !== null && (!log || v > 0));

	answer(place, summary);
	if (!middle.length || !all.length)
		return answer(place, "Nothing was measured over time.");
	if (rule)
		all.push(rule);
	const top = all.reduce((a, b) => Math.max(a, b), 0);
	const least = all.reduce((a, b) => Math.min(a, b), top);
	chart(place, {
		title: place.querySelector("h3").textContent, xLabel: "time in seconds", yLabel,
		x: linear(0, to[to.length - 1] || 1, { tight: true, wanted: 6 }),
		y: log ? logarithmic(least, top, { text }) : linear(0, top, { text }),
		layers: [...rule ? [{ type: "rule", at: rule }] : [], ...lines.map(l => ({
			type: "line", name: l.name, color: l.color, dots: middle.length === 1,
			values: middle.map((t, i) => [t, log && !(l.values[i] > 0) ? null :
							      l.values[i] ?? null]) }))],
		tip: t => {
			const i = Math.max(0, to.findIndex(end => t < end));
			return t < 0 ? null : { x: middle[i], head: `${digits(from[i])} to ${digits(to[i])} s`,
				lines: lines.map(l => [l.color, `${l.name} ${text(l.values[i])}`]) };
		},
	});
	const when = (l, pick) => {
		const values = l.values.filter(v => v !== null && (!log || v > 0));
		const best = values.reduce((a, b) => pick(a, b), values[0]);
		return values.length ? `${text(best)} at ${digits(from[l.values.indexOf(best)])} s` : "-";
	};
	table(place, [
		{ name: log ? "latency" : yLabel, left: true, text: l => l.name },
		{ name: "whole time", text: l => text(l.whole) },
		{ name: "lowest", text: l => when(l, Math.min) },
		{ name: "highest", text: l => when(l, Math.max) },
	], lines);
	table(place, [
		{ name: "from s", left: true, text: (_, i) => digits(from[i]) },
		...lines.map(l => ({ name: l.name, text: (_, i) =>
			log && !(l.values[i] > 0) ? "-" : text(l.values[i]) })),
	], from, { under: plural(from.length, "interval") });
}

// What a side did, and the sum if both did something.
function bySide(y, what, ofSeries, scale) {
	const lines = sides.map(([name, color]) => ({
		name, color, whole: at(y, "sides", name, what) / scale,
		values: column(y, ofSeries(name)).map(v => v === null ? null : v / scale) }))
		.filter(l => l.whole > 0 || l.values.some(v => v > 0));
	if (lines.length === 2)
		lines.push({ name: "total", color: "var(--total)",
			     whole: at(y, "sides", "total", what) / scale,
			     values: lines[0].values.map((v, i) => v === null ? null :
				     v + lines[1].values[i]) });
	return lines;
}

// What the steady-state test found, and how.
function steadyState(y) {
	const s = at(y, "steady");
	if (typeof at(s, "met") !== "boolean")
		return { met: null, word: "Not known", text: "it was too short for five rounds" };
	return { met: s.met, word: s.met ? "Steady" : "Not steady",
		 text: `the last five rounds of ${show.digits(at(s, "round_s"))} s differ by ` +
			`${show.percent(at(s, "range_share"))} and drift by ` +
			show.percent(at(s, "drift_share")) };
}

function rateChart(place, y) {
	const { word, text } = steadyState(y);
	overTime(place, y, { lines: bySide(y, "iops", n => `${n}_iops`, 1), yLabel: "IOPS",
			     text: show.count, summary: `${word}: ${text}.` });
}

function bytesChart(place, y) {
	const total = at(y, "sides", "total");
	overTime(place, y, { lines: bySide(y, "bytes_per_s", n => `${n}_bytes_per_s`, MIB),
			     yLabel: "MiB/s", text: show.digits,
			     summary: `${show.bytes(at(total, "bytes"))} in ` +
				     `${show.digits(at(y, "measured_s"))} s.` });
}

function stallChart(place, y) {
	const latency = at(y, "sides", "total", "latency");
	const line = (name, key, color) =>
		({ name, color: `var(--${color})`, values: column(y, key), whole: at(latency, key) });
	const highest = column(y, "max_us");
	const worst = highest.reduce((a, b) => Math.max(a, b), 0);
	overTime(place, y, { log: true, yLabel: "latency from intended start", text: show.us, lines: [
		line("p50", "p50_us", "p50"), line("p99", "p99_us", "p99"),
		line("p99.9", "p99_9_us", "p999"), line("max", "max_us", "max")],
		summary: worst ? `The slowest answer took ${show.us(worst)}, ` +
			`${digits(column(y, "from_s")[highest.indexOf(worst)])} s after the start; ` +
			`the median is ${show.us(at(latency, "p50_us"))}.` : "No command was answered." });
}

// Of fio's histograms: [[us, commands]], ascending.
function bins(doc, kind, names) {
	const sum = new Map();
	for (const name of names)
		for (const [ns, n] of Object.entries(at(doc, "jobs", 0, name, kind, "bins") || {}))
			if (ns >= 0 && n > 0)
				sum.set(Number(ns), (sum.get(Number(ns)) || 0) + n);
	return [...sum].sort((a, b) => a[0] - b[0]).map(([ns, n]) => [ns / 1e3, n]);
}
const countOf = histogram => histogram.reduce((sum, [, n]) => sum + n, 0);
// 0.01 us: log axes have no zero.
const positive = us => Math.max(us, 0.01);

const nines = [[0.5, "50 %"], [0.9, "90 %"], [0.99, "99 %"], [0.999, "99.9 %"], [0.9999, "99.99 %"],
	       [0.99999, "99.999 %"], [0.999999, "99.9999 %"], [0.9999999, "99.99999 %"]];

// As far as ten commands lie beyond: further out it is chance.
function curve(histogram) {
	const total = countOf(histogram);
	const points = [];
	let below = 0;
	for (const [us, n] of histogram) {
		if (total - below < 10)
			break;
		points.push([Math.log10(total / (total - below)), positive(us)]);
		below += n;
		if (total - below >= 10)
			points.push([Math.log10(total / (total - below)), positive(us)]);
	}
	return points;
}

function nineChart(place, y, doc) {
	const lines = [["from intended start", "var(--max)", "latency", "lat_ns"],
		       ["service, from sending", "var(--read)", "service", "clat_ns"]]
		.map(([name, color, key, kind]) => ({ name, color, type: "line", wide: kind === "lat_ns",
			of: at(y, "sides", "total", key), values: curve(bins(doc, kind, ["read", "write"])) }));
	const points = lines.flatMap(l => l.values);
	const [start, service] = lines.map(l => at(l.of, "p99_us"));
	answer(place, number(start) !== null && number(service) !== null ?
		`99 of 100 commands were answered within ${show.us(start)} of their intended start, ` +
		`within ${show.us(service)} of their sending. Where the curves part, they queued ` +
		"on this side." :
		"Too few commands for a p99.");
	if (points.length) {
		const end = points.reduce((a, [x]) => Math.max(a, x), 0.5);
		const values = points.map(p => p[1]);
		const ticks = nines.map(([share, text]) => ({ at: -Math.log10(1 - share), text }))
			.filter(t => t.at <= end);
		chart(place, {
			title: "Latency by percentile", xLabel: "percent of commands at most so slow",
			yLabel: "latency", layers: lines,
			x: { map: v => v / end, unmap: f => f * end, ticks },
			y: logarithmic(Math.min(...values), Math.max(...values)),
			tip: x => x < 0 || x > end ? null : {
				x, head: `${(100 * (1 - 10 ** -x)).toPrecision(Math.ceil(x) + 3)} %`,
				lines: lines.map(l => [l.color, `${l.name} ` +
					show.us(at(l.values.findLast(p => p[0] <= x), 1))]) },
		});
	}
	table(place, [{ name: "latency", left: true, text: r => r[0] },
		...lines.map(l => ({ name: l.name, text: r => show.us(at(l.of, `${r[1]}_us`)) }))],
		[["mean", "mean"], ["p50", "p50"], ["p90", "p90"], ["p99", "p99"], ["p99.9", "p99_9"],
		 ["p99.99", "p99_99"], ["max", "max"]]);
}

// HISTOGRAM in PARTS equal parts of a decade: [[from, to, commands]].
function parted(histogram, parts) {
	const sum = new Map();
	for (const [us, n] of histogram) {
		const i = Math.floor(Math.log10(positive(us)) * parts + 1e-9);
		sum.set(i, (sum.get(i) || 0) + n);
	}
	return [...sum].map(([i, n]) => [10 ** (i / parts), 10 ** ((i + 1) / parts), n]);
}

function modeChart(place, y, doc) {
	const both = bins(doc, "lat_ns", ["read", "write"]);
	const total = countOf(both);
	const quantile = share => {
		let below = 0;
		return at(both.find(([, n]) => (below += n) >= share * total), 0);
	};
	if (!both.length)
		return answer(place, "No command was answered.");
	answer(place, `Half of all commands took ${show.us(quantile(0.25))} to ` +
		`${show.us(quantile(0.75))}. Hills apart are answers of different kinds: cache and ` +
		"disk, one path and another.");
	const first = positive(both[0][0]);
	const last = positive(both[both.length - 1][0]);
	const parts = Math.min(30, Math.max(6, Math.floor(60 / Math.max(1, Math.log10(last / first)))));
	const layers = sides.map(([name, color]) => ({ type: "bars", name, color,
		values: parted(bins(doc, "lat_ns", [name]), parts) })).filter(l => l.values.length);
	const edges = layers.flatMap(l => l.values);
	chart(place, { title: "Latency histogram", xLabel: "latency from intended start",
		yLabel: "commands", layers, alwaysNamed: true,
		x: logarithmic(Math.min(...edges.map(e => e[0])), Math.max(...edges.map(e => e[1]))),
		y: logarithmic(1, Math.max(10, ...edges.map(e => e[2])), { text: show.count }),
		tip: us => ({ x: us, head: show.us(us), lines: layers.map(l => [l.color, `${l.name} ` +
			show.count(at(l.values.find(([a, b]) => us >= a && us < b), 2) || 0)]) }) });
	const decade = names => new Map(parted(bins(doc, "lat_ns", names), 1).map(r => [r[0], r[2]]));
	const columns = [...layers.map(l => [l.name, [l.name]]), ["all", ["read", "write"]]]
		.map(([name, names]) => [name, decade(names)]);
	table(place, [{ name: "latency", left: true, text: r => `${show.us(r[0])} to ${show.us(r[1])}` },
		...columns.map(([name, n]) => ({ name, text: r => show.count(n.get(r[0]) || 0) })),
		{ name: "share", text: r => show.percent(r[2] / total) }],
		parted(both, 1).sort((a, b) => a[0] - b[0]));
}

function balanceChart(place, y) {
	const paths = list(at(y, "paths"));
	const rates = list(at(y, "series", "path_iops")).map(p => list(p).map(v => number(v) || 0));
	const from = column(y, "from_s");
	const to = column(y, "to_s");
	const sums = from.map((_, i) => rates.reduce((sum, p) => sum + (p[i] || 0), 0));
	const shares = paths.map(p => number(at(p, "share")) || 0);
	answer(place, paths.length < 2 ? "There is one path." :
		`Shares from ${show.percent(Math.min(...shares))} to ${show.percent(Math.max(...shares))} ` +
		`of all operations; equal would be ${show.percent(1 / paths.length)} each.`);
	if (paths.length > 1 && rates.length === paths.length && sums.some(sum => sum > 0)) {
		const base = from.map(() => 0);
		const layers = rates.map((path_, p) => ({ type: "area", color: ordered(p, rates.length),
			name: said(paths[p], "address"),
			values: from.map((t, i) => [t, to[i], base[i],
				base[i] += sums[i] ? (path_[i] || 0) / sums[i] : 0]) }));
		chart(place, { title: "Share of each path", xLabel: "time in seconds",
			yLabel: "share of operations",
			x: linear(0, to[to.length - 1], { tight: true, wanted: 6 }),
			y: linear(0, 1, { tight: true, text: v => `${Math.round(100 * v)} %` }),
			layers: [...layers, ...(paths.length > 6 ? [] : paths.slice(1)).map((_, i) => (
				{ type: "rule", at: (i + 1) / paths.length }))] });
	}
	table(place, [{ name: "path", left: true, text: p => said(p, "address") },
		{ name: "share", text: p => show.percent(at(p, "share")) },
		{ name: "operations", text: p => show.count(at(p, "ops")) },
		{ name: "p99", text: p => show.us(at(p, "latency", "p99_us")) },
		{ name: "trouble", wrap: true, text: p => [["errors", "error"], ["retries", "retry"],
			["reconnects", "reconnect"]].filter(([key]) => at(p, key)).map(([key, word]) =>
			`${show.count(p[key])} ${p[key] === 1 ? word : key}`).join(", ") || "-" }], paths);
}

function cpuChart(place, y) {
	const threads = list(at(y, "host", "threads"));
	const limit = Math.min(number(at(y, "host", "cpus")) || Infinity, threads.length || Infinity);
	const busiest = threads.reduce((a, t) => Math.max(a, number(at(t, "cpu")) || 0), 0);
	overTime(place, y, { lines: [{ name: "used by this program", color: "var(--read)",
		values: column(y, "cpu"), whole: at(y, "host", "cpu") }],
		yLabel: "processors", text: show.digits, rule: limit < Infinity ? limit : null,
		summary: `Of ${plural(threads.length, "thread")} the busiest used ` +
			`${show.percent(busiest)} of a processor. The dashed line is all that they can ` +
			`use of the ${plural(at(y, "host", "cpus"), "processor")} allowed.` });
	table(place, [{ name: "thread", left: true, text: (_, i) => String(i) },
		{ name: "processor used", text: t => show.percent(at(t, "cpu")) },
		{ name: "waited for one", text: t => show.percent(at(t, "wait_share")) },
		{ name: "late, p99", text: t => show.us(at(t, "lag_p99_us")) },
		{ name: "late, max", text: t => show.us(at(t, "lag_max_us")) }],
		threads, { under: plural(threads.length, "thread") });
}

function flightChart(place, y) {
	const flight = at(y, "in_flight");
	overTime(place, y, { lines: [{ name: "in flight", color: "var(--read)",
		values: column(y, "in_flight"), whole: at(flight, "mean") }],
		yLabel: "commands in flight", text: show.digits, rule: number(at(flight, "asked")),
		summary: `${show.digits(at(flight, "mean"))} of ${show.count(at(flight, "asked"))} asked ` +
			`(dashed). IOPS × mean service time is ${show.digits(at(flight, "iops_x_service"))}; ` +
			"the two have to agree." });
}

const chartsOfOne = { rate: rateChart, bytes: bytesChart, stalls: stallChart, nines: nineChart,
		      modes: modeChart, balance: balanceChart, cpu: cpuChart, flight: flightChart };
