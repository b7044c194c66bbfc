/* SPDX-License-Identifier: MIT */
/*
 * From libconfuse's tree to struct conf: defaults, values, names.
 *
 * Invariants:
 * 1. Sections are read in the order of the file, so that its first mistake is told.
 * 2. Whatever is half-built hangs in parse->conf, which conf_free() frees.
 *
 * Not here: relations between objects (conf_check.c).
 */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/conf_int.h"

#define PORTALS_MAX 256
#define BACKINGS_MAX 4096
#define TARGETS_MAX 4096
#define LUNS_MAX 1024

int conf_parse_refuse(struct conf_parse *parse, unsigned section, const char *key, unsigned value,
		      const char *fmt, ...)
{
	const struct conf_section *s = &parse->text.sections[section];
	int line = key ? conf_text_line(&parse->text, section, key, value) : s->line;
	char said[384];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(said, sizeof(said), fmt, ap);
	va_end(ap);
	return conf_refuse(parse->file, parse->error, line, "%.*s \"%.*s\": %s", (int)s->name.len,
			   s->name.at, s->title.len > 96 ? 96 : (int)s->title.len, s->title.at,
			   said);
}

bool conf_parse_written(const struct conf_parse *parse, unsigned section, const char *key)
{
	return cfg_size(parse->text.sections[section].cfg, key) > 0;
}

static int parse_field(struct conf_parse *parse, unsigned section, const struct conf_field *field,
		       void *object)
{
	cfg_t *cfg = parse->text.sections[section].cfg;
	unsigned count = cfg_size(cfg, field->name);
	char cause[256] = "";
	int err;

	if (count == 0 && field->missing)
		return conf_parse_refuse(parse, section, NULL, 0, "%s", field->missing);
	for (unsigned i = 0; i < count; i++) {
		const char *text = cfg_getnstr(cfg, field->name, i);

		if (field->kind == CONF_LATER_SET && *text)
			return conf_parse_refuse(parse, section, field->name, i,
						 "%s: not built yet in this version; remove it",
						 field->name);
		err = conf_value_parse(field, text, object, cause, sizeof(cause));
		if (err == -EINVAL)
			return conf_parse_refuse(parse, section, field->name, i, "%s: %s",
						 field->name, cause);
		if (err)
			return err;
	}
	return 0;
}

static int parse_fields(struct conf_parse *parse, unsigned section, void *object)
{
	const struct conf_section *s = &parse->text.sections[section];
	const struct conf_schema *schema =
		conf_schema(parse->text.sections[s->parent].name, s->name);

	for (unsigned i = 0; i < schema->field_count; i++) {
		int err = parse_field(parse, section, &schema->fields[i], object);

		if (err)
			return err;
	}
	return 0;
}

/* The section's title, which has to be a name unless it is a target's. */
static int parse_title(struct conf_parse *parse, unsigned section, char **name)
{
	const char *title = cfg_title(parse->text.sections[section].cfg);

	if (!conf_span_is(parse->text.sections[section].name, "target") &&
	    !conf_value_is_name(title))
		return conf_parse_refuse(parse, section, NULL, 0,
					 "not a name. Use 1 to %d letters, digits, . _ -",
					 CONF_NAME_MAX - 1);
	*name = strdup(title);
	return *name ? 0 : -ENOMEM;
}

static int set_default(char **string, const char *value)
{
	if (!*string)
		*string = strdup(value);
	return *string ? 0 : -ENOMEM;
}

static int parse_node(struct conf_parse *parse, unsigned section)
{
	struct conf_node *node = &parse->conf->node;
	int err;

	if (node->name)
		return conf_parse_refuse(parse, section, NULL, 0,
					 "a second node, the first is in line %d. Remove one",
					 node->line);
	node->line = parse->text.sections[section].line;
	node->number = 1;
	node->threads = 1;
	node->buffers_bytes = 256 * MIB;
	node->login_timeout_ns = 15 * NS_PER_S;
	node->sessions_max = 1024;
	node->array_wait_ns = 10 * NS_PER_S;
	err = parse_title(parse, section, &node->name);
	err = err ? err : parse_fields(parse, section, node);
	err = err ? err : set_default(&node->state_dir, "/var/lib/yoke");
	return err ? err : set_default(&node->control, "/run/yoke/yoked.sock");
}

static int parse_portal(struct conf_parse *parse, unsigned section)
{
	struct conf_portal *portal = &parse->conf->portals[parse->conf->portal_count];
	int err;

	parse->text.sections[section].object = parse->conf->portal_count++;
	portal->line = parse->text.sections[section].line;
	err = parse_title(parse, section, &portal->name);
	return err ? err : parse_fields(parse, section, portal);
}

static int parse_backing(struct conf_parse *parse, unsigned section)
{
	struct conf_backing *backing = &parse->conf->backings[parse->conf->backing_count];
	int err;

	parse->text.sections[section].object = parse->conf->backing_count++;
	backing->line = parse->text.sections[section].line;
	backing->block_size = 512;
	err = parse_title(parse, section, &backing->name);
	err = err ? err : parse_fields(parse, section, backing);
	if (err)
		return err;
	if (!backing->physical_block)
		backing->physical_block = backing->block_size;
	if (!conf_parse_written(parse, section, "direct"))
		backing->direct = backing->driver == CONF_DRIVER_FILE;
	return set_default(&backing->path, "");
}

static void lower(char *text)
{
	for (; *text; text++)
		*text = (char)tolower((unsigned char)*text);
}

static int parse_target(struct conf_parse *parse, unsigned section)
{
	struct conf_target *target = &parse->conf->targets[parse->conf->target_count];
	unsigned luns = cfg_size(parse->text.sections[section].cfg, "lun");
	int err;

	parse->text.sections[section].object = parse->conf->target_count++;
	target->line = parse->text.sections[section].line;
	target->nop_interval_ns = 30 * NS_PER_S;
	target->nop_timeout_ns = 30 * NS_PER_S;
	target->data_out_timeout_ns = 60 * NS_PER_S;
	if (luns > LUNS_MAX)
		return conf_parse_refuse(parse, section, NULL, 0,
					 "more than %d LUNs. Make another target", LUNS_MAX);
	target->luns = calloc(luns ? luns : 1, sizeof(*target->luns));
	if (!target->luns)
		return -ENOMEM;
	err = parse_title(parse, section, &target->name);
	err = err ? err : parse_fields(parse, section, target);
	if (err)
		return err;
	lower(target->name);
	for (unsigned i = 0; i < target->allow.count; i++)
		lower(target->allow.items[i]);
	return 0;
}

static int parse_lun(struct conf_parse *parse, unsigned section)
{
	struct conf_section *s = &parse->text.sections[section];
	struct conf_target *target = &parse->conf->targets[parse->text.sections[s->parent].object];
	struct conf_lun *lun = &target->luns[target->lun_count];
	const char *title = cfg_title(s->cfg);
	char *end;
	unsigned long number;
	int err;

	number = strtoul(title, &end, 10);
	if (!isdigit((unsigned char)*title) || *end || number > 16383 ||
	    (*title == '0' && title[1]))
		return conf_parse_refuse(parse, section, NULL, 0,
					 "not a LUN. Use a number from 0 to 16383");
	s->object = target->lun_count++;
	lun->line = s->line;
	lun->number = (uint16_t)number;
	err = parse_fields(parse, section, lun);
	for (unsigned i = 0; !err && i < lun->allow.count; i++)
		lower(lun->allow.items[i]);
	err = err ? err : set_default(&lun->backing, "");
	return err ? err : set_default(&lun->array, "");
}

static const struct {
	const char *name;
	int (*parse)(struct conf_parse *parse, unsigned section);
} readers[] = {
	{ "node", parse_node },     { "portal", parse_portal }, { "backing", parse_backing },
	{ "target", parse_target }, { "lun", parse_lun },
};

static int parse_section(struct conf_parse *parse, unsigned section)
{
	for (unsigned i = 0; i < ARRAY_LEN(readers); i++)
		if (conf_span_is(parse->text.sections[section].name, readers[i].name))
			return readers[i].parse(parse, section);
	assert(!"a section of the schema has no reader");
	return -EINVAL;
}

/* An array for all sections of a kind; what calloc gives is what conf_free() can free. */
static int allocate(struct conf_parse *parse, const char *name, unsigned max, size_t size,
		    void *array)
{
	unsigned count = cfg_size(parse->text.sections[0].cfg, name);

	if (count > max)
		return conf_refuse(parse->file, parse->error, 0, "more than %u sections %s", max,
				   name);
	*(void **)array = calloc(count ? count : 1, size);
	return *(void **)array ? 0 : -ENOMEM;
}

int conf_parse_objects(struct conf_parse *parse)
{
	struct conf *conf = parse->conf;
	int err;

	err = allocate(parse, "portal", PORTALS_MAX, sizeof(*conf->portals), &conf->portals);
	err = err ? err :
		    allocate(parse, "backing", BACKINGS_MAX, sizeof(*conf->backings),
			     &conf->backings);
	err = err ? err :
		    allocate(parse, "target", TARGETS_MAX, sizeof(*conf->targets), &conf->targets);
	for (unsigned i = 1; i < parse->text.section_count && !err; i++)
		err = parse_section(parse, i);
	if (err)
		return err;
	if (!conf->node.name)
		return conf_refuse(parse->file, parse->error, 0,
				   "no node section. Add node \"NAME\" { }");
	return 0;
}
