// SPDX-License-Identifier: MIT
// Put into a page of the report by a test: looks at the page as it is laid out, and tells its parent
// what is wrong with it.
addEventListener("load", () => setTimeout(() => {
	const faults = [];
	const fault = (what, node) => faults.push(`${what}: ${(node ? node.textContent : "").slice(0, 80)}`);
	const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 &&
		a.top < b.bottom - 1 && b.top < a.bottom - 1;
	const inside = (a, b) => a.left >= b.left - 1 && a.right <= b.right + 1 &&
		a.top >= b.top - 1 && a.bottom <= b.bottom + 1;
	const shown = node => node.checkVisibility();
	const light = color => {
		const [r, g, b] = color.match(/[\d.]+/g).map(v => Number(v) / 255)
			.map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const contrast = (a, b) => {
		const [low, high] = [light(a), light(b)].sort((x, y) => x - y);
		return (high + 0.05) / (low + 0.05);
	};

	if (document.documentElement.scrollWidth > innerWidth)
		fault(`scrolls sideways, ${document.documentElement.scrollWidth} > ${innerWidth}`);
	const charts = [...document.querySelectorAll("svg")].filter(shown);
	for (const svg of charts) {
		const texts = [...svg.querySelectorAll("text")];
		const boxes = texts.map(t => t.getBoundingClientRect());
		texts.forEach((text, i) => {
			if (!inside(boxes[i], svg.getBoundingClientRect()))
				fault("cut", text);
			for (let j = 0; j < i; j++)
				if (meet(boxes[i], boxes[j]))
					fault(`lies on "${texts[j].textContent}"`, text);
			if (contrast(getComputedStyle(text).fill,
				     getComputedStyle(svg.closest("figure")).backgroundColor) < 4.5)
				fault("too faint", text);
		});
		for (const mark of svg.querySelectorAll("path, circle"))
			if (/NaN|Infinity|undefined/.test(mark.outerHTML))
				fault("is drawn nowhere", svg);
	}
	for (const value of document.querySelectorAll(".tile b"))
		if (value.textContent.length < 10 && value.getClientRects().length > 1)
			fault("is broken in two", value);
	for (const part of document.querySelectorAll(".tile, figure, .verdict")) {
		for (const node of shown(part) ? part.querySelectorAll("*:not(.table *)") : [])
			if (shown(node) && !inside(node.getBoundingClientRect(), part.getBoundingClientRect()))
				fault("hangs out", node);
		if (shown(part) && part.matches("figure") && part.childElementCount < 2)
			fault("is empty", part);
	}
	const said = document.body.innerText;
	for (const [word] of said.matchAll(/\bNaN\b|\bInfinity\b|\bundefined\b|\[object|cannot be shown.*/g))
		fault(`says ${word} near "${said.slice(said.indexOf(word) - 40, said.indexOf(word))}"`);
	for (const entry of performance.getEntriesByType("resource"))
		fault(`fetches ${entry.name}`);

	const timed = document.querySelector("#rate svg");
	let tip = "";
	if (timed) {
		const box = timed.getBoundingClientRect();
		timed.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + box.width * 0.95,
								      clientY: box.top + 50 }));
		const node = document.querySelector("#rate .tip");
		tip = node ? node.textContent : "";
		if (!node || !shown(node) || !inside(node.getBoundingClientRect(), timed.parentNode.getBoundingClientRect()))
			fault("the pointer's reading is not beside it", node);
	}
	parent.postMessage({ name: document.documentElement.dataset.name, width: innerWidth, faults, tip,
			     charts: charts.length, title: document.title,
			     dark: light(getComputedStyle(document.body).backgroundColor) < 0.2 }, "*");
}));
