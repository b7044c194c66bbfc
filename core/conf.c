/* SPDX-License-Identifier: MIT */
/*
 * Loads, looks up and frees configurations.
 *
 * Invariants:
 * 1. A caller gets a configuration that passed every check, or none and one line why.
 * 2. Any thread may read one; libconfuse, whose lexer has one state, by one at a time.
 *
 * Not here: the stages of reading (conf_int.h has their order).
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/conf_int.h"

/* Held from libconfuse's cfg_init() to its cfg_free(), which resets the lexer. */
static pthread_mutex_t parsing = PTHREAD_MUTEX_INITIALIZER;

static int lun_compare(const void *a, const void *b)
{
	const struct conf_lun *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

static int parse_scanned(struct conf_parse *parse, cfg_t **root)
{
	int err;

	err = conf_schema_check(&parse->text, parse->file, parse->error);
	err = err ? err : conf_schema_parse(&parse->text, parse->file, root, parse->error);
	err = err ? err : conf_parse_objects(parse);
	err = err ? err : conf_check(parse);
	if (err)
		return err;
	for (unsigned i = 0; i < parse->conf->target_count; i++) {
		struct conf_target *target = &parse->conf->targets[i];

		qsort(target->luns, target->lun_count, sizeof(*target->luns), lun_compare);
	}
	return 0;
}

int conf_parse(const char *name, const char *text, size_t len_bytes, struct conf **conf,
	       struct conf_error *error)
{
	struct conf_parse parse = { .file = name, .error = error };
	cfg_t *root = NULL;
	int err = -ENOMEM;

	error->text[0] = '\0';
	parse.conf = calloc(1, sizeof(*parse.conf));
	if (parse.conf)
		parse.conf->file = strdup(name);
	if (parse.conf && parse.conf->file) {
		err = conf_text_scan(&parse.text, name, text, len_bytes, error);
		pthread_mutex_lock(&parsing);
		err = err ? err : parse_scanned(&parse, &root);
		if (root)
			cfg_free(root);
		pthread_mutex_unlock(&parsing);
		conf_text_free(&parse.text);
	}
	if (err == -ENOMEM)
		conf_refuse(name, error, 0, "out of memory");
	if (err) {
		conf_free(parse.conf);
		return err;
	}
	*conf = parse.conf;
	return 0;
}

/* The whole of FD: 0 and TEXT (the caller's), or -errno. One byte more than allowed is read. */
static int read_all(int fd, char **text, size_t *len_bytes)
{
	size_t size = CONF_FILE_MAX + 1;
	char *buf = malloc(size);
	size_t used = 0;

	if (!buf)
		return -ENOMEM;
	while (used < size) {
		ssize_t n = read(fd, buf + used, size - used);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			int err = -errno;

			free(buf);
			return err;
		}
		if (n == 0)
			break;
		used += (size_t)n;
	}
	*text = buf;
	*len_bytes = used;
	return 0;
}

static int open_regular(const char *path, const char *missing, int *fd, struct conf_error *error)
{
	struct stat st;
	int err;

	/* Not to hang on a FIFO. */
	*fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (*fd < 0) {
		err = -errno;
		if (err == -ENOENT)
			conf_refuse(path, error, 0, "no such file. %s", missing);
		else
			conf_refuse(path, error, 0, "cannot be opened: %s", strerror(-err));
		return err;
	}
	if (fstat(*fd, &st) || !S_ISREG(st.st_mode)) {
		close(*fd);
		conf_refuse(path, error, 0, "not a regular file");
		return -EINVAL;
	}
	return 0;
}

int conf_read(const char *path, const char *missing, char **text, size_t *len_bytes,
	      struct conf_error *error)
{
	int fd, err;

	err = open_regular(path, missing, &fd, error);
	if (err)
		return err;
	err = read_all(fd, text, len_bytes);
	close(fd);
	if (err)
		conf_refuse(path, error, 0, "cannot be read: %s", strerror(-err));
	return err;
}

int conf_load(const char *path, struct conf **conf, struct conf_error *error)
{
	size_t len_bytes = 0;
	char *text = NULL;
	int err;

	err = conf_read(path, "Write it, see yoke.conf(5)", &text, &len_bytes, error);
	if (err)
		return err;
	err = conf_parse(path, text, len_bytes, conf, error);
	free(text);
	return err;
}

static void free_strings(struct conf_strings *list)
{
	for (unsigned i = 0; i < list->count; i++)
		free(list->items[i]);
	free(list->items);
}

static void free_target(struct conf_target *target)
{
	for (unsigned i = 0; i < target->lun_count; i++) {
		free(target->luns[i].backing);
		free(target->luns[i].array);
		free_strings(&target->luns[i].allow);
	}
	free(target->luns);
	free(target->name);
	free_strings(&target->portals);
	free_strings(&target->allow);
}

void conf_free(struct conf *conf)
{
	if (!conf)
		return;
	for (unsigned i = 0; i < conf->portal_count; i++) {
		for (unsigned j = 0; j < conf->portals[i].listen_count; j++)
			free(conf->portals[i].listen[j].text);
		free(conf->portals[i].listen);
		free(conf->portals[i].name);
	}
	for (unsigned i = 0; i < conf->backing_count; i++) {
		free(conf->backings[i].name);
		free(conf->backings[i].path);
	}
	for (unsigned i = 0; i < conf->target_count; i++)
		free_target(&conf->targets[i]);
	free(conf->portals);
	free(conf->backings);
	free(conf->targets);
	free_strings(&conf->node.disks);
	free(conf->node.name);
	free(conf->node.state_dir);
	free(conf->node.control);
	free(conf->file);
	free(conf);
}

const struct conf_portal *conf_portal(const struct conf *conf, const char *name)
{
	for (unsigned i = 0; i < conf->portal_count; i++)
		if (strcmp(conf->portals[i].name, name) == 0)
			return &conf->portals[i];
	return NULL;
}

const struct conf_backing *conf_backing(const struct conf *conf, const char *name)
{
	for (unsigned i = 0; i < conf->backing_count; i++)
		if (strcmp(conf->backings[i].name, name) == 0)
			return &conf->backings[i];
	return NULL;
}

const struct conf_target *conf_target(const struct conf *conf, const char *name)
{
	for (unsigned i = 0; i < conf->target_count; i++)
		if (strcasecmp(conf->targets[i].name, name) == 0)
			return &conf->targets[i];
	return NULL;
}

unsigned conf_lun_count(const struct conf *conf)
{
	unsigned count = 0;

	for (unsigned i = 0; i < conf->target_count; i++)
		count += conf->targets[i].lun_count;
	return count;
}

static const char *plural(unsigned count)
{
	return count == 1 ? "" : "s";
}

void conf_summary(const struct conf *conf, char *text, size_t size_bytes)
{
	unsigned luns = conf_lun_count(conf);

	snprintf(text, size_bytes, "node \"%s\", %u portal%s, %u backing%s, %u target%s, %u LUN%s",
		 conf->node.name, conf->portal_count, plural(conf->portal_count),
		 conf->backing_count, plural(conf->backing_count), conf->target_count,
		 plural(conf->target_count), luns, plural(luns));
}

bool conf_allows(const struct conf_strings *list, const char *name)
{
	for (unsigned i = 0; i < list->count; i++) {
		const char *entry = list->items[i];
		size_t len = strlen(entry);

		if (len && entry[len - 1] == '*' ? strncasecmp(entry, name, len - 1) == 0 :
						   strcasecmp(entry, name) == 0)
			return true;
	}
	return false;
}
