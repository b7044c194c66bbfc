/* SPDX-License-Identifier: MIT */
/*
 * The page's files, taken in by the assembler as they are. Paths start at the root of the tree,
 * where make runs; the Makefile knows that this object depends on them.
 *
 * Not here: putting them together (report.c).
 */
#include "bench/report_int.h"

#define TAKE_IN(name, file)                                                                        \
	__asm__(".pushsection .rodata\n"                                                           \
		".global " #name "\n"                                                              \
		".type " #name ", %object\n" #name ":\n"                                           \
		".incbin \"" file "\"\n"                                                           \
		".byte 0\n"                                                                        \
		".size " #name ", . - " #name "\n"                                                 \
		".popsection\n")

TAKE_IN(report_html, "bench/report.html");
TAKE_IN(report_css, "bench/report.css");
TAKE_IN(report_js, "bench/report.js");
TAKE_IN(report_chart_js, "bench/report_chart.js");
TAKE_IN(report_charts_js, "bench/report_charts.js");
