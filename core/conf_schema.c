/* SPDX-License-Identifier: MIT */
/*
 * Which sections and settings a configuration has, as tables, and libconfuse
 * set up from them.
 *
 * Invariants:
 * 1. libconfuse is given only text whose every name is in these tables.
 *
 * Not here: values (libconfuse hands them on as strings; conf_value.c reads them).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/conf_int.h"

#define HOUR (3600 * NS_PER_S)

static const struct conf_field node_fields[] = {
	{ "number", CONF_UNSIGNED, offsetof(struct conf_node, number), 1, 2, NULL },
	{ "state_dir", CONF_PATH, offsetof(struct conf_node, state_dir), 0, 0, NULL },
	{ "control", CONF_PATH, offsetof(struct conf_node, control), 0, 0, NULL },
	{ "http", CONF_LATER_SET, 0, 0, 0, NULL },
	{ "threads", CONF_UNSIGNED, offsetof(struct conf_node, threads), 0, 1024, NULL },
	{ "disks", CONF_STRING_LIST, offsetof(struct conf_node, disks), 0, 1024, NULL },
	{ "faults", CONF_BOOLEAN, offsetof(struct conf_node, faults), 0, 0, NULL },
	{ "oui", CONF_OUI, offsetof(struct conf_node, oui), 0, 0, NULL },
	{ "buffers", CONF_SIZE, offsetof(struct conf_node, buffers_bytes), 16 * MIB, 1024 * GIB,
	  NULL },
	{ "login_timeout", CONF_DURATION, offsetof(struct conf_node, login_timeout_ns),
	  100 * NS_PER_MS, HOUR, NULL },
	{ "sessions_max", CONF_UNSIGNED, offsetof(struct conf_node, sessions_max), 1, 32000, NULL },
	{ "array_wait", CONF_DURATION, offsetof(struct conf_node, array_wait_ns), NS_PER_MS, HOUR,
	  NULL },
};

static const struct conf_field portal_fields[] = {
	{ "listen", CONF_ADDRESSES, offsetof(struct conf_portal, listen), 0, 16,
	  "no listen, nobody could reach it. Add listen = { \"ADDRESS:3260\" }" },
	{ "group", CONF_UNSIGNED16, offsetof(struct conf_portal, group), 1, 65535,
	  "no group. Add group = N, another number for each portal" },
};

static const struct conf_field backing_fields[] = {
	{ "driver", CONF_DRIVER, offsetof(struct conf_backing, driver), 0, 0,
	  "no driver. Add driver = \"ram\", \"null\" or \"file\"" },
	{ "path", CONF_PATH, offsetof(struct conf_backing, path), 0, 0, NULL },
	{ "size", CONF_SIZE, offsetof(struct conf_backing, size_bytes), 512, (uint64_t)1 << 60,
	  NULL },
	{ "block_size", CONF_UNSIGNED32, offsetof(struct conf_backing, block_size), 512, 4096,
	  NULL },
	{ "physical_block", CONF_UNSIGNED32, offsetof(struct conf_backing, physical_block), 512,
	  65536, NULL },
	{ "direct", CONF_BOOLEAN, offsetof(struct conf_backing, direct), 0, 0, NULL },
	{ "write_cache", CONF_BOOLEAN, offsetof(struct conf_backing, write_cache), 0, 0, NULL },
};

static const struct conf_field target_fields[] = {
	{ "portals", CONF_STRING_LIST, offsetof(struct conf_target, portals), 0, 256,
	  "no portals, nobody could reach it. Add portals = { \"NAME\" }" },
	{ "allow", CONF_STRING_LIST, offsetof(struct conf_target, allow), 0, 65536,
	  "no allow, nobody could log in. Add names, or \"*\"" },
	{ "auth", CONF_LATER, 0, 0, 0, NULL },
	{ "nop_interval", CONF_DURATION, offsetof(struct conf_target, nop_interval_ns),
	  10 * NS_PER_MS, 24 * HOUR, NULL },
	{ "nop_timeout", CONF_DURATION, offsetof(struct conf_target, nop_timeout_ns),
	  10 * NS_PER_MS, 24 * HOUR, NULL },
	{ "data_out_timeout", CONF_DURATION, offsetof(struct conf_target, data_out_timeout_ns),
	  10 * NS_PER_MS, 24 * HOUR, NULL },
};

static const struct conf_field lun_fields[] = {
	{ "backing", CONF_NAME, offsetof(struct conf_lun, backing), 0, 0, NULL },
	{ "volume", CONF_LATER, 0, 0, 0, NULL },
	{ "array", CONF_NAME, offsetof(struct conf_lun, array), 0, 0, NULL },
	{ "read_only", CONF_BOOLEAN, offsetof(struct conf_lun, read_only), 0, 0, NULL },
	{ "write_cache", CONF_BOOLEAN, offsetof(struct conf_lun, write_cache), 0, 0, NULL },
	{ "allow", CONF_STRING_LIST, offsetof(struct conf_lun, allow), 0, 65536, NULL },
};

#define FIELDS(f) (f), ARRAY_LEN(f)

static const struct conf_schema schemas[] = {
	{ "node", "root", true, false, FIELDS(node_fields) },
	{ "portal", "root", true, false, FIELDS(portal_fields) },
	{ "backing", "root", true, false, FIELDS(backing_fields) },
	{ "target", "root", true, false, FIELDS(target_fields) },
	{ "lun", "target", true, false, FIELDS(lun_fields) },
	{ "auth", "root", true, true, NULL, 0 },
	{ "discovery", "root", false, true, NULL, 0 },
	{ "pair", "root", false, true, NULL, 0 },
	{ "witness", "root", false, true, NULL, 0 },
};

const struct conf_schema *conf_schema(struct conf_span parent, struct conf_span name)
{
	for (unsigned i = 0; i < ARRAY_LEN(schemas); i++)
		if (conf_span_is(name, schemas[i].name) && conf_span_is(parent, schemas[i].parent))
			return &schemas[i];
	return NULL;
}

const struct conf_field *conf_schema_field(const struct conf_schema *schema, struct conf_span name)
{
	for (unsigned i = 0; i < schema->field_count; i++)
		if (conf_span_is(name, schema->fields[i].name))
			return &schema->fields[i];
	return NULL;
}

static const struct conf_schema *schema_of(const struct conf_text *text, unsigned section)
{
	const struct conf_section *s = &text->sections[section];

	return conf_schema(text->sections[s->parent].name, s->name);
}

static int shown(struct conf_span span)
{
	return span.len > 64 ? 64 : (int)span.len;
}

static int check_section(const struct conf_text *text, const struct conf_section *s,
			 const char *file, struct conf_error *error)
{
	struct conf_span in = text->sections[s->parent].name;
	const struct conf_schema *schema = conf_schema(in, s->name);

	if (!schema && s->parent)
		return conf_refuse(file, error, s->line,
				   "%.*s: no such section inside %.*s of line %d. Is a } missing "
				   "above?",
				   shown(s->name), s->name.at, shown(in), in.at,
				   text->sections[s->parent].line);
	if (!schema)
		return conf_refuse(file, error, s->line,
				   "%.*s: no such section. There are node, portal, backing, target",
				   shown(s->name), s->name.at);
	if (schema->later)
		return conf_refuse(file, error, s->line,
				   "%s: not built yet in this version; remove it", schema->name);
	if (schema->titled && !s->title.at)
		return conf_refuse(file, error, s->line, "%s: no name. Write %s \"%s\" { }",
				   schema->name, schema->name,
				   strcmp(schema->name, "lun") == 0 ? "0" : "NAME");
	return 0;
}

static int refuse_unknown(const struct conf_entry *entry, const struct conf_schema *schema,
			  const char *file, struct conf_error *error)
{
	char known[256] = "";
	size_t used = 0;

	if (!schema)
		return conf_refuse(file, error, entry->line,
				   "%.*s: outside of any section. Move it into one",
				   shown(entry->name), entry->name.at);
	for (unsigned i = 0; i < schema->field_count; i++) {
		if (schema->fields[i].kind == CONF_LATER ||
		    schema->fields[i].kind == CONF_LATER_SET)
			continue;
		used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s",
					 used ? ", " : "", schema->fields[i].name);
	}
	return conf_refuse(file, error, entry->line, "%s: no setting %.*s. There are %s",
			   schema->name, shown(entry->name), entry->name.at, known);
}

static bool is_list(const struct conf_field *field)
{
	return field->kind == CONF_STRING_LIST || field->kind == CONF_ADDRESSES;
}

static int check_entry(const struct conf_text *text, const struct conf_entry *entry,
		       const char *file, struct conf_error *error)
{
	const struct conf_schema *schema = entry->section ? schema_of(text, entry->section) : NULL;
	const struct conf_field *field = schema ? conf_schema_field(schema, entry->name) : NULL;

	if (!field)
		return refuse_unknown(entry, schema, file, error);
	if (field->kind == CONF_LATER)
		return conf_refuse(file, error, entry->line,
				   "%s: %s: not built yet in this version; remove it", schema->name,
				   field->name);
	if (entry->list && !is_list(field))
		return conf_refuse(file, error, entry->line,
				   "%s: %s: takes one value. Write it without braces", schema->name,
				   field->name);
	if (entry->value_count == 0 && field->kind != CONF_STRING_LIST)
		return conf_refuse(file, error, entry->line, "%s: %s: no value. Write one",
				   schema->name, field->name);
	return 0;
}

int conf_schema_check(const struct conf_text *text, const char *file, struct conf_error *error)
{
	unsigned entry = 0;
	int err = 0;

	/* In the order of the file, so that the first mistake is the one that is told. */
	for (unsigned i = 1; i < text->section_count && !err; i++) {
		for (; entry < text->entry_count && !err &&
		       text->entries[entry].name.at < text->sections[i].name.at;
		     entry++)
			err = check_entry(text, &text->entries[entry], file, error);
		err = err ? err : check_section(text, &text->sections[i], file, error);
	}
	for (; entry < text->entry_count && !err; entry++)
		err = check_entry(text, &text->entries[entry], file, error);
	return err;
}

/* libconfuse's option tables, built from ours. */
struct options {
	cfg_opt_t root[ARRAY_LEN(schemas) + 1];
	cfg_opt_t sub[ARRAY_LEN(schemas)][16];
};

static unsigned add_fields(cfg_opt_t *opts, const struct conf_schema *schema)
{
	assert(schema->field_count < 14);
	for (unsigned i = 0; i < schema->field_count; i++) {
		const struct conf_field *field = &schema->fields[i];
		cfg_opt_t string = CFG_STR(field->name, NULL, CFGF_NODEFAULT);
		cfg_opt_t strings = CFG_STR_LIST(field->name, NULL, CFGF_NODEFAULT);

		opts[i] = is_list(field) ? strings : string;
	}
	return schema->field_count;
}

static void build_options(struct options *options)
{
	static const cfg_opt_t end = CFG_END();
	unsigned top = 0;

	for (unsigned i = 0; i < ARRAY_LEN(schemas); i++) {
		unsigned n = add_fields(options->sub[i], &schemas[i]);

		for (unsigned j = 0; j < ARRAY_LEN(schemas); j++) {
			if (strcmp(schemas[j].parent, schemas[i].name) == 0) {
				cfg_opt_t sec = CFG_SEC(schemas[j].name, options->sub[j],
							CFGF_MULTI | CFGF_TITLE);
				options->sub[i][n++] = sec;
			}
		}
		options->sub[i][n] = end;
		if (strcmp(schemas[i].parent, "root") == 0 && !schemas[i].later) {
			cfg_opt_t sec =
				CFG_SEC(schemas[i].name, options->sub[i], CFGF_MULTI | CFGF_TITLE);
			options->root[top++] = sec;
		}
	}
	options->root[top] = end;
}

/* Pairs libconfuse's sections with ours: both count those of a name in the order of the file. */
static void pair_sections(struct conf_text *text, cfg_t *root)
{
	struct {
		unsigned parent;
		unsigned next;
	} seen[ARRAY_LEN(schemas)] = { 0 };

	text->sections[0].cfg = root;
	for (unsigned i = 1; i < text->section_count; i++) {
		struct conf_section *s = &text->sections[i];
		const struct conf_schema *schema = schema_of(text, i);
		size_t kind = (size_t)(schema - schemas);

		if (seen[kind].parent != s->parent)
			seen[kind].next = 0;
		seen[kind].parent = s->parent;
		s->nth = seen[kind].next++;
		s->cfg = cfg_getnsec(text->sections[s->parent].cfg, schema->name, s->nth);
		assert(s->cfg);
	}
}

int conf_schema_parse(struct conf_text *text, const char *file, cfg_t **root,
		      struct conf_error *error)
{
	struct options options;
	int err;

	memset(&options, 0, sizeof(options));
	build_options(&options);
	err = conf_text_parse(text, options.root, file, root, error);
	if (err)
		return err;
	pair_sections(text, *root);
	return 0;
}
