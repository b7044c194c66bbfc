/* SPDX-License-Identifier: MIT */
/*
 * Between the stages of reading a configuration:
 *
 *   bytes -> conf_text.c (scan) -> libconfuse -> conf_parse.c (values) -> conf_check.c (relations)
 *
 * The scanner runs first and knows where everything stands, so that every later
 * refusal finds its line; libconfuse sees only text that the scanner understood.
 */
#ifndef CORE_CONF_INT_H
#define CORE_CONF_INT_H

#include "core/conf.h"
#include "core/conf_text.h"

/* What all later stages share. */
struct conf_parse {
	const char *file;
	struct conf_error *error;
	struct conf_text text;
	struct conf *conf;
};

/* ---- conf_schema.c: which settings there are ---- */

enum conf_kind {
	CONF_STRING,
	CONF_NAME,     /* letters, digits, . _ - */
	CONF_PATH,     /* absolute */
	CONF_UNSIGNED, /* unsigned, within min and max */
	CONF_UNSIGNED16,
	CONF_UNSIGNED32,
	CONF_BOOLEAN,
	CONF_SIZE,
	CONF_DURATION,
	CONF_OUI,
	CONF_DRIVER,
	CONF_STRING_LIST,
	CONF_ADDRESSES,
	CONF_LATER,     /* known, and refused until it is built */
	CONF_LATER_SET, /* the same, but the empty string says nothing and is taken */
};

struct conf_field {
	const char *name;
	enum conf_kind kind;
	size_t offset;
	uint64_t min;
	uint64_t max;
	const char *missing; /* what to say if it is not there; NULL: it may be missing */
};

struct conf_schema {
	const char *name;
	const char *parent;
	bool titled;
	bool later; /* known, and refused until it is built */
	const struct conf_field *fields;
	unsigned field_count;
};

/* NULL if no such section may stand in PARENT ("root" at the top). */
const struct conf_schema *conf_schema(struct conf_span parent, struct conf_span name);
const struct conf_field *conf_schema_field(const struct conf_schema *schema, struct conf_span name);
/* Refuses sections and settings that the schema does not have or not yet. */
int conf_schema_check(const struct conf_text *text, const char *file, struct conf_error *error);
/* Parses the scanned text with libconfuse and sets each section's cfg. *ROOT is the caller's. */
int conf_schema_parse(struct conf_text *text, const char *file, cfg_t **root,
		      struct conf_error *error);

/* ---- conf_parse.c: from libconfuse's tree to struct conf ---- */

int conf_parse_objects(struct conf_parse *parse);
/* Refuses SECTION at its setting KEY's VALUEth value, or at its own line if KEY is NULL. */
int conf_parse_refuse(struct conf_parse *parse, unsigned section, const char *key, unsigned value,
		      const char *fmt, ...) PRINTF_LIKE(5, 6);
bool conf_parse_written(const struct conf_parse *parse, unsigned section, const char *key);

/* ---- conf_value.c: one value of each kind ---- */

/* 0, or -EINVAL and in CAUSE what is wrong with it and what to write instead. */
int conf_value_parse(const struct conf_field *field, const char *text, void *object, char *cause,
		     size_t cause_size);
int conf_value_address(const char *text, struct conf_address *address, char *cause,
		       size_t cause_size);
bool conf_value_is_name(const char *text);
/* A whole iSCSI name in lower case: 0, or -EINVAL and CAUSE. */
int conf_value_iscsi_name(const char *text, char *cause, size_t cause_size);

/* ---- conf_check.c: what must hold between objects ---- */

int conf_check(struct conf_parse *parse);

#endif
