/* SPDX-License-Identifier: MIT */
/*
 * libconfuse over text that the scanner passed.
 *
 * Invariants:
 * 1. libconfuse never writes to standard error: what it says becomes the refusal.
 *
 * Not here: the scanner (conf_text.c), which settings there are (conf_schema.c).
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/conf_text.h"

/* libconfuse gives its error function no argument; callers come one at a time. */
static struct {
	const char *file;
	struct conf_error *error;
} capture;

static void capture_error(cfg_t *cfg, const char *fmt, va_list ap)
{
	char said[256];

	if (!capture.error || capture.error->text[0])
		return;
	vsnprintf(said, sizeof(said), fmt, ap);
	conf_refuse(capture.file, capture.error, cfg ? cfg->line : 0, "%s", said);
}

int conf_text_parse(const struct conf_text *text, cfg_opt_t *options, const char *file,
		    cfg_t **root, struct conf_error *error)
{
	int rc;

	*root = cfg_init(options, CFGF_NONE);
	if (!*root)
		return -ENOMEM;
	cfg_set_error_function(*root, capture_error);
	error->text[0] = '\0';
	capture.file = file;
	capture.error = error;
	rc = cfg_parse_buf(*root, text->text);
	capture.error = NULL;
	if (rc == CFG_SUCCESS)
		return 0;
	if (!error->text[0])
		conf_refuse(file, error, 0, "cannot be parsed");
	return -EINVAL;
}
