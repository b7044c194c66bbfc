/* SPDX-License-Identifier: MIT */
/*
 * The log: one line each, `module object event key=value ...`.
 *
 * To standard error, with a level prefix that journald understands when it is a
 * journal stream and a time stamp otherwise. Never a secret. Lines that the
 * other side can cause at will go through log_limited().
 */
#ifndef CORE_LOG_H
#define CORE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base.h"

#define LOG_LINE_MAX 2048 /* longer lines end in "..." */
#define LOG_BURST 5
#define LOG_WINDOW_NS (10 * NS_PER_S)

enum log_level { LOG_L_ERROR, LOG_L_WARN, LOG_L_INFO, LOG_L_DEBUG };

/* DEBUG is off by default; a module name or "all" turns it on (yoked -d MODULE). */
void log_debug_enable(const char *module);
bool log_debug_on(const char *module);

/* OBJECT "" if there is none. FMT yields `key=value` pairs; control characters are escaped. */
void log_line(enum log_level level, const char *module, const char *object, const char *event,
	      const char *fmt, ...) PRINTF_LIKE(5, 6);

/*
 * At most LOG_BURST lines each LOG_WINDOW_NS for this place; the first line after that
 * says how many were swallowed. Zeroed at start; several threads may share one.
 */
struct log_limit {
	uint64_t window_start_ns;
	unsigned in_window;
	unsigned swallowed;
};
void log_limited(struct log_limit *limit, enum log_level level, const char *module,
		 const char *object, const char *event, const char *fmt, ...) PRINTF_LIKE(6, 7);

/*
 * IN as printable UTF-8: control characters, the backslash and bytes that are not UTF-8
 * become \xNN. At most SIZE - 1 bytes and a NUL; cut between characters. Returns its length.
 */
size_t log_escape(char *out, size_t size, const char *in);

/* Bytes of the UTF-8 character at IN, 0 if there is none that may go to a terminal. */
size_t log_printable(const char *in);

/* Quiet for tests: lines go to FN instead. NULL restores. */
void log_redirect(void (*fn)(enum log_level level, const char *line));

#endif
