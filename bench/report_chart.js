// SPDX-License-Identifier: MIT
// Drawing: elements, numbers, tables, and a chart as wide as its place.
//
// Invariants:
//  1. Text from outside becomes text, never markup.
//  2. Margins follow from the labels' measured widths, and a label that would touch the one before
//     it is left out: nothing overlaps, nothing is cut.
//  3. Null is a gap.
//
// Not here: what a measurement is (report.js), which charts it has (report_charts.js).
"use strict";

function put(place, name, attributes, ...content) {
	const node = name.startsWith("svg:") ?
		document.createElementNS("http://www.w3.org/2000/svg", name.slice(4)) :
		document.createElement(name);
	for (const [key, value] of Object.entries(attributes || {}))
		node.setAttribute(key, value);
	node.append(...content);
	if (place)
		place.append(node);
	return node;
}

const number = v => typeof v === "number" && Number.isFinite(v) ? v : null;

// About three digits and thousands between commas; as the tables on the terminal have it.
function digits(v) {
	const size = Math.abs(v);
	if (size >= 1e9)
		return v.toExponential(2).replace("+", "");
	if (size >= 99.95 || v === 0)
		return v.toLocaleString("en-US", { maximumFractionDigits: 0 });
	return size < 0.001 ? v.toExponential(1) :
		String(Number(v.toFixed(size < 0.0995 ? 3 : size < 9.995 ? 2 : 1)));
}
const known = (v, text) => number(v) === null ? "-" : text(v);
const show = {
	count: v => known(v, x => x >= 1e15 ? digits(x) :
		Math.round(x).toLocaleString("en-US")),
	digits: v => known(v, digits),
	percent: v => known(v, x => `${(100 * x).toFixed(1)} %`),
	us: v => known(v, x => x < 999.5 ? `${digits(x)} µs` :
		x < 999500 ? `${digits(x / 1e3)} ms` : `${digits(x / 1e6)} s`),
	bytes: v => known(v, x => {
		const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
		let unit = 0;
		for (; x >= 1023.95 && unit < units.length - 1; unit++)
			x /= 1024;
		return `${unit ? x.toFixed(1) : x} ${units[unit]}`;
	}),
};

// Columns: {name, text(row), left or wrap}. Rows that do not matter at first sight go under a heading.
function table(place, columns, rows, { under, each } = {}) {
	const outer = under ? put(place, "details", {}, put(null, "summary", {}, under)) : place;
	const grid = put(put(outer, "div", { class: "table" }), "table");
	const head = put(put(grid, "thead"), "tr");
	const body = put(grid, "tbody");
	const attributes = c => c.left ? { class: "left" } : c.wrap ? { class: "wrap" } : {};
	for (const c of columns)
		put(head, "th", attributes(c), c.name);
	rows.forEach((row, i) => {
		const line = put(body, "tr");
		for (const c of columns)
			put(line, "td", attributes(c), c.text(row, i));
		if (each)
			each(line, row, i);
	});
}

function legend(place, items) {
	const line = put(place, "div", { class: "legend" });
	for (const { name, color } of items) {
		const mark = put(null, "i", { style: `background:${color}` });
		put(line, "span", {}, mark, name);
	}
}

const pen = document.createElement("canvas").getContext("2d");
function widthOf(text) {
	pen.font = `12px ${getComputedStyle(document.body).fontFamily}`;
	return pen.measureText(text).width;
}

// TEXT, shortened in its middle to WIDTH.
function fitted(text, width) {
	let keep = text.length;
	let short = text;
	while (keep > 2 && widthOf(short) > width) {
		keep--;
		short = `${text.slice(0, Math.ceil(keep / 2))}…${text.slice(-Math.floor(keep / 2))}`;
	}
	return short;
}

// A scale maps values to 0..1 and has ticks; all of [low, high] lies between 0 and 1.
function linear(low, high, { text = show.digits, wanted = 5, tight = false } = {}) {
	if (!(high > low))
		high = low + (Math.abs(low) || 1);
	const raw = (high - low) / wanted;
	const power = 10 ** Math.floor(Math.log10(raw));
	const step = power * [1, 2, 5, 10].find(m => m * power >= raw * 0.999);
	if (!tight)
		high = Math.ceil(high / step - 1e-9) * step;
	const ticks = [];
	for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++)
		ticks.push({ at: i * step, text: text(Number((i * step).toPrecision(12))) });
	return { map: v => (v - low) / (high - low), unmap: f => low + f * (high - low), ticks };
}

function logarithmic(low, high, { text = show.us } = {}) {
	low = Math.max(low, 1e-9);
	high = Math.max(high, low * 1.01);
	const decades = Math.log10(high / low);
	const steps = decades < 0.6 ? [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8] :
		decades < 2 ? [1, 2, 5] : [1];
	const below = v => {
		const power = 10 ** Math.floor(Math.log10(v) + 1e-9);
		return power * steps.findLast(s => s * power <= v * (1 + 1e-9));
	};
	low = below(low);
	const ticks = [];
	for (let at = low, i = 0; ; i++) {
		at = 10 ** (Math.floor(Math.log10(low) + 1e-9) + Math.floor(i / steps.length)) *
			steps[i % steps.length];
		if (at < low * 0.999)
			continue;
		ticks.push({ at, text: text(at) });
		if (at >= high * 0.999)
			break;
	}
	high = ticks[ticks.length - 1].at;
	const span = Math.log10(high / low) || 1;
	return { map: v => v > 0 ? Math.log10(v / low) / span : -1,
		 unmap: f => low * 10 ** (f * span), ticks };
}

// Pieces of a line between its gaps, as the d of a path; a lone point is a short stroke.
function path(points) {
	let d = "";
	let pen_down = false;
	points.forEach(([x, y], i) => {
		if (y === null) {
			pen_down = false;
			return;
		}
		const next = points[i + 1];
		d += `${pen_down ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
		if (!pen_down && (!next || next[1] === null))
			d += "h0.1";
		pen_down = true;
	});
	return d;
}

const layers = {
	// values: [[x, y or null, what a dot says]]
	line(svg, { values, color, dots, wide }, x, y) {
		const points = values.map(([a, b]) => [x(a), b === null ? null : y(b)]);
		put(svg, "svg:path", { class: wide ? "line wide" : "line", style: `stroke:${color}`,
				       d: path(points) });
		points.forEach(([a, b], i) => {
			if (dots && b !== null)
				put(svg, "svg:circle", { cx: a, cy: b, r: 3.5, style: `fill:${color}` },
				    put(null, "svg:title", {}, values[i][2] || ""));
		});
	},
	// values: [[x from, x to, low, high]]
	area(svg, { values, color }, x, y) {
		const d = values.map(([from, to, low, high]) => `M${x(from)} ${y(low)}V${y(high)}` +
			`H${x(to)}V${y(low)}Z`).join("");
		put(svg, "svg:path", { class: "area", d, style: `fill:${color}` });
	},
	// values: [[x from, x to, y]], ascending; neighbours are one hill
	bars(svg, { values, color }, x, y, box) {
		let d = "";
		values.forEach(([from, to, high], i) => {
			const next = values[i + 1];
			if (!i || values[i - 1][1] < from * 0.999)
				d += `M${x(from).toFixed(1)} ${box.bottom}`;
			d += `V${y(high).toFixed(1)}H${x(to).toFixed(1)}`;
			if (!next || to < next[0] * 0.999)
				d += `V${box.bottom}`;
		});
		put(svg, "svg:path", { class: "hill", d, style: `fill:${color};stroke:${color}` });
	},
	rule(svg, { at }, x, y, box) {
		put(svg, "svg:path", { class: "rule", d: `M${box.left} ${y(at)}H${box.right}` });
	},
	// rows: [{name, low, at, high, sure}], one below the other
	whiskers(svg, { rows, height, colorOf }, x, y, box) {
		put(svg, "svg:path", { class: "axis", d: `M${x(1)} ${box.top}V${box.bottom}` });
		rows.forEach((row, i) => {
			const middle = box.top + (i + 0.68) * height;
			const color = colorOf(row);
			const name = put(svg, "svg:text", { class: "name", x: box.left,
				y: box.top + (i + 0.36) * height },
				fitted(row.name, box.right - box.left));
			put(name, "svg:title", {}, row.name);
			if (row.low !== null)
				put(svg, "svg:path", { class: "line", style: `stroke:${color}` +
					(row.sure ? "" : ";stroke-dasharray:2 5"),
					d: `M${x(row.low)} ${middle}H${x(row.high)}` });
			put(svg, "svg:circle", { cx: x(row.at), cy: middle, r: 5,
						 style: `fill:${color}` });
		});
	},
};

function xAxis(svg, box, x, label) {
	let used = -Infinity;
	for (const { at, text } of x.ticks) {
		const px = box.x(at);
		const half = widthOf(text) / 2;
		put(svg, "svg:path", { class: "grid", d: `M${px.toFixed(1)} ${box.top}V${box.bottom}` });
		if (px - half < used + 8)
			continue;
		put(svg, "svg:text", { x: px, y: box.bottom + 19, "text-anchor": "middle" }, text);
		used = px + half;
	}
	put(svg, "svg:text", { x: (box.left + box.right) / 2, y: box.bottom + 37,
			       "text-anchor": "middle" }, label);
}

function yAxis(svg, box, y, label) {
	let used = Infinity;
	for (const { at, text } of y.ticks) {
		const py = box.y(at);
		put(svg, "svg:path", { class: "grid", d: `M${box.left} ${py.toFixed(1)}H${box.right}` });
		if (py > used - 15)
			continue;
		put(svg, "svg:text", { x: box.left - 7, y: py + 4, "text-anchor": "end" }, text);
		used = py;
	}
	put(svg, "svg:text", { x: 0, y: 11 }, label);
}

// What stands at the pointer: spec.tip(value) gives {x, head, lines: [[color, text]]} or null.
function probe(place, svg, box, spec) {
	const line = put(svg, "svg:path", { class: "probe" });
	const tip = put(place, "div", { class: "tip", hidden: "" });
	const hide = () => { tip.hidden = true; line.setAttribute("d", ""); };
	svg.addEventListener("pointerleave", hide);
	svg.addEventListener("pointermove", event => {
		const at = event.clientX - svg.getBoundingClientRect().left;
		const found = spec.tip(spec.x.unmap((at - box.left) / (box.right - box.left)));
		if (!found)
			return hide();
		const px = box.x(found.x);
		line.setAttribute("d", `M${px} ${box.top}V${box.bottom}`);
		tip.replaceChildren(put(null, "div", {}, found.head));
		for (const [color, text] of found.lines)
			put(tip, "div", {}, put(null, "i", { style: `background:${color}` }), text);
		tip.hidden = false;
		const room = place.clientWidth - tip.offsetWidth;
		tip.style.left = `${Math.max(0, Math.min(room,
			px > place.clientWidth / 2 ? px - tip.offsetWidth - 12 : px + 12))}px`;
	});
}

// spec: {title, x, y (scales; no y: rows), xLabel, yLabel, layers: [{type, ...}], height, tip}
function draw(place, spec) {
	const width = Math.max(place.clientWidth, 200);
	const height = spec.height || 250;
	const last = spec.x.ticks[spec.x.ticks.length - 1];
	const labels = spec.y ? spec.y.ticks.map(t => widthOf(t.text)) : [0];
	const box = { left: Math.max(...labels) + (spec.y ? 8 : 12), top: spec.y ? 24 : 4,
		      right: width - Math.max(12, last ? widthOf(last.text) / 2 + 1 : 0),
		      bottom: height - 42 };
	box.x = v => box.left + spec.x.map(v) * (box.right - box.left);
	box.y = v => box.bottom - (spec.y ? spec.y.map(v) : 0) * (box.bottom - box.top);
	const svg = put(null, "svg:svg", { width, height, viewBox: `0 0 ${width} ${height}`,
					   role: "img", "aria-label": spec.title });
	if (spec.y)
		yAxis(svg, box, spec.y, spec.yLabel);
	xAxis(svg, box, spec.x, spec.xLabel);
	for (const layer of spec.layers)
		layers[layer.type](svg, layer, box.x, box.y, box);
	put(svg, "svg:path", { class: "axis", d: `M${box.left} ${box.bottom}H${box.right}` });
	place.replaceChildren(svg);
	if (spec.tip)
		probe(place, svg, box, spec);
}

// Charts on the page, drawn anew when it gets another width.
const drawn = new Map();
function chart(place, spec) {
	const named = spec.layers.filter(l => l.name);
	if (named.length > 1 || spec.alwaysNamed)
		legend(place, named);
	const plot = put(place, "div", { class: "plot" });
	drawn.set(plot, spec);
	draw(plot, spec);
}
addEventListener("resize", () => {
	for (const [plot, spec] of drawn)
		if (plot.isConnected)
			draw(plot, spec);
		else
			drawn.delete(plot);
});
