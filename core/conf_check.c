/* SPDX-License-Identifier: MIT */
/*
 * What must hold between the settings of a section and between sections.
 *
 * A backing may be a LUN of several targets: it is one logical unit with several
 * ways to it. Twice in one target it would be one disk with two numbers.
 *
 * Invariants:
 * 1. Sections are checked in the order of the file; each against those before it.
 * 2. A reference that leads nowhere is refused with the names that do exist.
 *
 * Not here: whether files, devices and addresses exist; the daemon finds that out.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

#include "core/conf_int.h"

struct names {
	char text[160];
	size_t used;
	unsigned left_out;
};

static void names_add(struct names *names, const char *name)
{
	size_t need = strlen(name) + 2;

	if (names->used + need >= sizeof(names->text)) {
		names->left_out++;
		return;
	}
	names->used += (size_t)snprintf(names->text + names->used,
					sizeof(names->text) - names->used, "%s%s",
					names->used ? ", " : "", name);
}

/* "left, right exist", "none exists". */
static const char *names_end(struct names *names, unsigned count, char *buf, size_t size)
{
	if (count == 0)
		return "none exists";
	if (names->left_out)
		snprintf(buf, size, "%s and %u more exist", names->text, names->left_out);
	else
		snprintf(buf, size, "%s %s", names->text, count == 1 ? "exists" : "exist");
	return buf;
}

static int check_node(struct conf_parse *parse, unsigned section, unsigned object)
{
	const struct conf_node *node = &parse->conf->node;
	const struct sockaddr_un *un = NULL;

	(void)object;
	if (node->threads > 1)
		return conf_parse_refuse(parse, section, "threads", 0,
					 "threads: %u: not built yet in this version; write 1",
					 node->threads);
	if (strlen(node->control) >= sizeof(un->sun_path))
		return conf_parse_refuse(parse, section, "control", 0,
					 "control: longer than the %zu bytes that a socket's path "
					 "may have. Use a shorter one",
					 sizeof(un->sun_path) - 1);
	for (unsigned i = 0; i < node->disks.count; i++) {
		const char *disk = node->disks.items[i];

		if (*disk != '/' || strstr(disk, "/../"))
			return conf_parse_refuse(parse, section, "disks", i,
						 "disks: \"%.128s\" is not a whole path. Begin it "
						 "with /, without ..",
						 disk);
	}
	return 0;
}

static uint16_t address_port(const struct conf_address *a)
{
	if (a->addr.ss_family == AF_INET6)
		return ((const struct sockaddr_in6 *)&a->addr)->sin6_port;
	return ((const struct sockaddr_in *)&a->addr)->sin_port;
}

static bool address_is_any(const struct conf_address *a)
{
	if (a->addr.ss_family == AF_INET6)
		return IN6_IS_ADDR_UNSPECIFIED(&((const struct sockaddr_in6 *)&a->addr)->sin6_addr);
	return ((const struct sockaddr_in *)&a->addr)->sin_addr.s_addr == INADDR_ANY;
}

/* Whether both cannot be bound at once; port 0 is any free one and never clashes. */
static bool address_clash(const struct conf_address *a, const struct conf_address *b)
{
	if (a->addr.ss_family != b->addr.ss_family || address_port(a) != address_port(b) ||
	    address_port(a) == 0)
		return false;
	if (address_is_any(a) || address_is_any(b))
		return true;
	if (a->addr.ss_family == AF_INET6)
		return IN6_ARE_ADDR_EQUAL(&((const struct sockaddr_in6 *)&a->addr)->sin6_addr,
					  &((const struct sockaddr_in6 *)&b->addr)->sin6_addr);
	return ((const struct sockaddr_in *)&a->addr)->sin_addr.s_addr ==
	       ((const struct sockaddr_in *)&b->addr)->sin_addr.s_addr;
}

static int check_address(struct conf_parse *parse, unsigned section, unsigned object, unsigned n)
{
	const struct conf *conf = parse->conf;
	const struct conf_address *mine = &conf->portals[object].listen[n];

	for (unsigned i = 0; i <= object; i++) {
		const struct conf_portal *portal = &conf->portals[i];
		unsigned end = i == object ? n : portal->listen_count;

		for (unsigned j = 0; j < end; j++) {
			const struct conf_address *other = &portal->listen[j];
			bool same = address_is_any(mine) == address_is_any(other);

			if (!address_clash(mine, other))
				continue;
			if (i == object)
				return conf_parse_refuse(parse, section, "listen", n,
							 "%s and %s are the same port. Remove one",
							 other->text, mine->text);
			return conf_parse_refuse(parse, section, "listen", n,
						 "%s is also in \"%s\", line %d%s%s. Change one",
						 mine->text, portal->name, portal->line,
						 same ? "" : ", as ", same ? "" : other->text);
		}
	}
	return 0;
}

static int check_portal(struct conf_parse *parse, unsigned section, unsigned object)
{
	const struct conf *conf = parse->conf;
	int err = 0;

	for (unsigned i = 0; i < object; i++) {
		if (conf->portals[i].group == conf->portals[object].group)
			return conf_parse_refuse(parse, section, "group", 0,
						 "group %u is also that of \"%s\", line %d. Change "
						 "one",
						 conf->portals[i].group, conf->portals[i].name,
						 conf->portals[i].line);
	}
	for (unsigned i = 0; i < conf->portals[object].listen_count && !err; i++)
		err = check_address(parse, section, object, i);
	return err;
}

static int check_backing_size(struct conf_parse *parse, unsigned section,
			      const struct conf_backing *b)
{
	if (b->block_size != 512 && b->block_size != 4096)
		return conf_parse_refuse(parse, section, "block_size", 0,
					 "block_size: %u. Write 512 or 4096", b->block_size);
	if (b->physical_block < b->block_size || (b->physical_block & (b->physical_block - 1)))
		return conf_parse_refuse(parse, section, "physical_block", 0,
					 "physical_block: %u is not block_size (%u) times a power "
					 "of 2",
					 b->physical_block, b->block_size);
	if (b->size_bytes % b->block_size)
		return conf_parse_refuse(parse, section, "size", 0,
					 "size: %llu is not a multiple of block_size (%u)",
					 (unsigned long long)b->size_bytes, b->block_size);
	return 0;
}

static int check_backing(struct conf_parse *parse, unsigned section, unsigned object)
{
	const struct conf_backing *b = &parse->conf->backings[object];
	bool file = b->driver == CONF_DRIVER_FILE;

	if (file && !*b->path)
		return conf_parse_refuse(parse, section, "driver", 0,
					 "no path. Add path = \"/FILE\", or use driver \"ram\"");
	if (!file && *b->path)
		return conf_parse_refuse(parse, section, "path", 0,
					 "path is for driver \"file\" only. Remove it");
	if (!file && conf_parse_written(parse, section, "direct"))
		return conf_parse_refuse(parse, section, "direct", 0,
					 "direct is for driver \"file\" only. Remove it");
	if (!file && !b->size_bytes)
		return conf_parse_refuse(parse, section, NULL, 0,
					 "no size. Add one like size = \"256M\"");
	for (unsigned i = 0; file && i < object; i++) {
		const struct conf_backing *other = &parse->conf->backings[i];

		if (strcmp(other->path, b->path) == 0)
			return conf_parse_refuse(parse, section, "path", 0,
						 "%.160s is also in \"%s\", line %d. Use that one, "
						 "or another file",
						 b->path, other->name, other->line);
	}
	return check_backing_size(parse, section, b);
}

/* "*", the beginning of a name and "*", or a name. */
static int check_allow(struct conf_parse *parse, unsigned section, const struct conf_strings *allow)
{
	char cause[160];

	for (unsigned i = 0; i < allow->count; i++) {
		const char *name = allow->items[i];
		const char *star = strchr(name, '*');

		if (star && star[1])
			return conf_parse_refuse(parse, section, "allow", i,
						 "allow: \"%.64s\": only the end may be *", name);
		if (star &&
		    (star == name || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-.:") ==
					     (size_t)(star - name)))
			continue;
		if (star)
			return conf_parse_refuse(parse, section, "allow", i,
						 "allow: \"%.64s\": has a character that iSCSI "
						 "names do not. Use a-z 0-9 - . :",
						 name);
		if (conf_value_iscsi_name(name, cause, sizeof(cause)))
			return conf_parse_refuse(parse, section, "allow", i, "allow: \"%.64s\": %s",
						 name, cause);
	}
	return 0;
}

static int check_target_portals(struct conf_parse *parse, unsigned section,
				const struct conf_target *target)
{
	const struct conf *conf = parse->conf;
	struct names names = { .used = 0 };
	char exist[200];

	for (unsigned i = 0; i < target->portals.count; i++) {
		const char *name = target->portals.items[i];

		for (unsigned j = 0; j < i; j++)
			if (strcmp(name, target->portals.items[j]) == 0)
				return conf_parse_refuse(parse, section, "portals", i,
							 "portals: \"%.64s\" twice. Remove one",
							 name);
		if (conf_portal(conf, name))
			continue;
		for (unsigned j = 0; j < conf->portal_count; j++)
			names_add(&names, conf->portals[j].name);
		return conf_parse_refuse(parse, section, "portals", i,
					 "no portal \"%.64s\" (%s). Add it, or name another", name,
					 names_end(&names, conf->portal_count, exist,
						   sizeof(exist)));
	}
	return 0;
}

static int check_target(struct conf_parse *parse, unsigned section, unsigned object)
{
	const struct conf *conf = parse->conf;
	const struct conf_target *target = &conf->targets[object];
	char cause[160];
	int err;

	if (conf_value_iscsi_name(target->name, cause, sizeof(cause)))
		return conf_parse_refuse(parse, section, NULL, 0, "%s", cause);
	for (unsigned i = 0; i < object; i++)
		if (strcmp(conf->targets[i].name, target->name) == 0)
			return conf_parse_refuse(parse, section, NULL, 0,
						 "also in line %d, case aside. Remove one",
						 conf->targets[i].line);
	err = check_target_portals(parse, section, target);
	return err ? err : check_allow(parse, section, &target->allow);
}

/* What a LUN stands on: a backing of this file, or an array, which only its disks tell of. */
static int check_lun_backing(struct conf_parse *parse, unsigned section, const struct conf_lun *lun)
{
	const struct conf *conf = parse->conf;
	struct names names = { .used = 0 };
	char exist[200];

	if (conf_parse_written(parse, section, "write_cache"))
		return conf_parse_refuse(
			parse, section, "write_cache", 0,
			"write_cache is for an array. Write it into backing \"%s\"", lun->backing);
	if (conf_backing(conf, lun->backing))
		return 0;
	for (unsigned i = 0; i < conf->backing_count; i++)
		names_add(&names, conf->backings[i].name);
	return conf_parse_refuse(parse, section, "backing", 0,
				 "no backing \"%s\" (%s). Add it, or name another", lun->backing,
				 names_end(&names, conf->backing_count, exist, sizeof(exist)));
}

/* One array is one logical unit, whatever LUNs it has. */
static int check_lun_cache(struct conf_parse *parse, unsigned section,
			   const struct conf_target *end, const struct conf_lun *lun)
{
	for (const struct conf_target *target = parse->conf->targets; target <= end; target++) {
		for (unsigned i = 0; i < target->lun_count; i++) {
			const struct conf_lun *other = &target->luns[i];

			if (other == lun)
				return 0;
			if (strcmp(other->array, lun->array) ||
			    other->write_cache == lun->write_cache)
				continue;
			return conf_parse_refuse(parse, section, "array", 0,
						 "write_cache of array \"%s\" is another in line "
						 "%d. Write the same",
						 lun->array, other->line);
		}
	}
	return 0;
}

static int check_lun(struct conf_parse *parse, unsigned section, unsigned object)
{
	unsigned parent = parse->text.sections[section].parent;
	const struct conf_target *target =
		&parse->conf->targets[parse->text.sections[parent].object];
	const struct conf_lun *lun = &target->luns[object];
	int err;

	if (!*lun->backing && !*lun->array)
		return conf_parse_refuse(parse, section, NULL, 0,
					 "neither backing nor array. Add backing = \"NAME\" or "
					 "array = \"NAME\"");
	if (*lun->backing && *lun->array)
		return conf_parse_refuse(parse, section, "array", 0,
					 "both backing \"%s\" and array \"%s\". Remove one",
					 lun->backing, lun->array);
	for (unsigned i = 0; i < object; i++) {
		const struct conf_lun *other = &target->luns[i];

		if (strcmp(other->backing, lun->backing) == 0 &&
		    strcmp(other->array, lun->array) == 0)
			return conf_parse_refuse(parse, section, *lun->array ? "array" : "backing",
						 0,
						 "%s \"%s\" is also lun \"%u\" of this target, "
						 "line %d. Remove one",
						 *lun->array ? "array" : "backing",
						 *lun->array ? lun->array : lun->backing,
						 other->number, other->line);
	}
	err = *lun->array ? check_lun_cache(parse, section, target, lun) :
			    check_lun_backing(parse, section, lun);
	return err ? err : check_allow(parse, section, &lun->allow);
}

static const struct {
	const char *name;
	int (*check)(struct conf_parse *parse, unsigned section, unsigned object);
} checks[] = {
	{ "node", check_node },     { "portal", check_portal }, { "backing", check_backing },
	{ "target", check_target }, { "lun", check_lun },
};

int conf_check(struct conf_parse *parse)
{
	const struct conf_text *text = &parse->text;

	for (unsigned i = 1; i < text->section_count; i++) {
		for (unsigned j = 0; j < ARRAY_LEN(checks); j++) {
			int err;

			if (!conf_span_is(text->sections[i].name, checks[j].name))
				continue;
			err = checks[j].check(parse, i, text->sections[i].object);
			if (err)
				return err;
		}
	}
	return 0;
}
