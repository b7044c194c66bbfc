/* SPDX-License-Identifier: MIT */
/* The pieces of the page, as report_page.c builds them in; each ends with a zero byte. */
#ifndef BENCH_REPORT_INT_H
#define BENCH_REPORT_INT_H

extern const char report_html[];
extern const char report_css[];
extern const char report_js[];
extern const char report_chart_js[];
extern const char report_charts_js[];

#endif
