/* SPDX-License-Identifier: MIT */
/*
 * Profiles: from a file to a matrix.
 *
 * Invariants:
 * 1. libconfuse is given only text that the scanner passed and whose every name is known.
 * 2. A refusal has the line of the value that it is about.
 * 3. A name never leaves the folders of profiles: it has no slash.
 *
 * Not here: what a value may be and how lists multiply (matrix.c).
 */
#include "bench/profile.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/conf_text.h"

#define FOLDERS 4
#define PATH_SIZE 512
#define PROFILES_MAX 256

/* What is said of a profile besides what it measures. */
static const char *const words[] = { "from", "tells" };

static int shown(struct conf_span span)
{
	return span.len > 64 ? 64 : (int)span.len;
}

static const struct matrix_field *field_of(struct conf_span name)
{
	for (unsigned i = 0; i < MATRIX_KEYS; i++)
		if ((matrix_fields[i].places & MATRIX_IN_PROFILE) &&
		    conf_span_is(name, matrix_fields[i].name))
			return &matrix_fields[i];
	return NULL;
}

static bool is_word(struct conf_span name)
{
	return conf_span_is(name, words[0]) || conf_span_is(name, words[1]);
}

static int refuse_unknown(const struct conf_entry *entry, const char *file,
			  struct conf_error *error)
{
	char known[256] = "from, tells";
	size_t used = strlen(known);

	for (unsigned i = 0; i < MATRIX_KEYS; i++)
		if (matrix_fields[i].places & MATRIX_IN_PROFILE)
			used += (size_t)snprintf(known + used, sizeof(known) - used, ", %s",
						 matrix_fields[i].name);
	return conf_refuse(file, error, entry->line, "profile: no setting %.*s. There are %s",
			   shown(entry->name), entry->name.at, known);
}

static int check_names(const struct conf_text *text, const char *file, struct conf_error *error)
{
	for (unsigned i = 1; i < text->section_count; i++) {
		const struct conf_section *s = &text->sections[i];

		if (s->parent || !conf_span_is(s->name, "profile"))
			return conf_refuse(file, error, s->line,
					   "%.*s: no such section. Write profile \"NAME\" { }",
					   shown(s->name), s->name.at);
		if (i > 1)
			return conf_refuse(file, error, s->line,
					   "a second profile. Write it to a file of its own");
		if (!s->title.len || s->title.len >= BENCH_NAME_MAX)
			return conf_refuse(file, error, s->line,
					   "profile: no name of up to %d bytes. Write profile "
					   "\"NAME\" { }",
					   BENCH_NAME_MAX - 1);
	}
	if (text->section_count < 2)
		return conf_refuse(file, error, 0, "no profile. Write profile \"NAME\" { }");
	for (unsigned i = 0; i < text->entry_count; i++) {
		const struct conf_entry *entry = &text->entries[i];
		const struct matrix_field *field = field_of(entry->name);

		if (!entry->section)
			return conf_refuse(file, error, entry->line,
					   "%.*s: outside of the profile. Move it into its braces",
					   shown(entry->name), entry->name.at);
		if (!field && !is_word(entry->name))
			return refuse_unknown(entry, file, error);
		if (entry->list && !(field && field->list))
			return conf_refuse(file, error, entry->line,
					   "%.*s: takes one value. Write it without braces",
					   shown(entry->name), entry->name.at);
		if (!entry->value_count)
			return conf_refuse(file, error, entry->line, "%.*s: no value. Write one",
					   shown(entry->name), entry->name.at);
	}
	return 0;
}

static int take_word(const struct conf_text *text, cfg_t *cfg, const char *file, unsigned word,
		     char *to, size_t size, struct conf_error *error)
{
	const char *said = cfg_size(cfg, words[word]) ? cfg_getstr(cfg, words[word]) : "";

	if (!*said)
		return conf_refuse(file, error, text->sections[1].line,
				   "profile \"%.64s\": does not say where it is from and what it "
				   "tells. Add from = \"...\" tells = \"...\"",
				   cfg_title(cfg));
	if (strlen(said) >= size)
		return conf_refuse(file, error, conf_text_line(text, 1, words[word], 0),
				   "%s: longer than %zu bytes. Shorten it", words[word], size - 1);
	memcpy(to, said, strlen(said) + 1);
	return 0;
}

static int take_values(const struct conf_text *text, cfg_t *cfg, const char *file,
		       struct matrix *matrix, struct conf_error *error)
{
	for (unsigned key = 0; key < MATRIX_KEYS; key++) {
		const struct matrix_field *field = &matrix_fields[key];
		unsigned count = field->places & MATRIX_IN_PROFILE ? cfg_size(cfg, field->name) : 0;

		for (unsigned i = 0; i < count; i++) {
			char cause[256];
			int err = matrix_add(matrix, (enum matrix_key)key,
					     cfg_getnstr(cfg, field->name, i), cause,
					     sizeof(cause));

			if (err)
				return conf_refuse(file, error,
						   conf_text_line(text, 1, field->name, i),
						   "%s: %s", field->name, cause);
		}
	}
	if (!matrix->of[MATRIX_PATTERN].count || !matrix->of[MATRIX_READ].count)
		return conf_refuse(file, error, text->sections[1].line,
				   "profile \"%.64s\": no pattern or no read. Add pattern = "
				   "{ \"rand\" } read = { 100 }",
				   cfg_title(cfg));
	return 0;
}

static int parse_scanned(const struct conf_text *text, const char *file, struct profile *profile,
			 struct conf_error *error)
{
	cfg_opt_t options[MATRIX_KEYS + ARRAY_LEN(words) + 1];
	cfg_opt_t section = CFG_SEC("profile", options, CFGF_MULTI | CFGF_TITLE);
	cfg_opt_t end = CFG_END();
	cfg_opt_t root_options[] = { section, end };
	unsigned count = 0;
	cfg_t *root = NULL, *cfg;
	int err;

	for (unsigned i = 0; i < ARRAY_LEN(words); i++) {
		cfg_opt_t word = CFG_STR(words[i], NULL, CFGF_NODEFAULT);

		options[count++] = word;
	}
	for (unsigned i = 0; i < MATRIX_KEYS; i++) {
		cfg_opt_t one = CFG_STR(matrix_fields[i].name, NULL, CFGF_NODEFAULT);
		cfg_opt_t list = CFG_STR_LIST(matrix_fields[i].name, NULL, CFGF_NODEFAULT);

		if (matrix_fields[i].places & MATRIX_IN_PROFILE)
			options[count++] = matrix_fields[i].list ? list : one;
	}
	options[count] = end;
	err = conf_text_parse(text, root_options, file, &root, error);
	if (!err) {
		cfg = cfg_getnsec(root, "profile", 0);
		snprintf(profile->name, sizeof(profile->name), "%s", cfg_title(cfg));
		err = take_word(text, cfg, file, 0, profile->from, sizeof(profile->from), error);
		err = err ? err :
			    take_word(text, cfg, file, 1, profile->tells, sizeof(profile->tells),
				      error);
		err = err ? err : take_values(text, cfg, file, &profile->matrix, error);
	}
	if (root)
		cfg_free(root);
	return err;
}

int profile_parse(const char *file, const char *text, size_t len_bytes, struct profile *profile,
		  struct conf_error *error)
{
	struct conf_text scanned = { 0 };
	int err;

	memset(profile, 0, sizeof(*profile));
	error->text[0] = '\0';
	err = conf_text_scan(&scanned, file, text, len_bytes, error);
	err = err ? err : check_names(&scanned, file, error);
	err = err ? err : parse_scanned(&scanned, file, profile, error);
	conf_text_free(&scanned);
	if (err == -ENOMEM)
		conf_refuse(file, error, 0, "out of memory");
	return err;
}

/* Where profiles are looked for: the user's, the machine's, the installed ones, the tree's. */
static unsigned find_folders(char folders[FOLDERS][PATH_SIZE])
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	char program[PATH_SIZE - 32];
	ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 1);
	unsigned count = 0;
	char *slash;

	if (config && *config == '/')
		snprintf(folders[count++], PATH_SIZE, "%s/yoke/profiles", config);
	else if (home && *home == '/')
		snprintf(folders[count++], PATH_SIZE, "%s/.config/yoke/profiles", home);
	snprintf(folders[count++], PATH_SIZE, "/etc/yoke/profiles");
	program[len > 0 ? len : 0] = '\0';
	slash = strrchr(program, '/');
	if (!slash)
		return count;
	*slash = '\0';
	/* Installed: PREFIX/bin and PREFIX/share. Built: build/release and conf. */
	snprintf(folders[count++], PATH_SIZE, "%s/../share/yoke/profiles", program);
	snprintf(folders[count++], PATH_SIZE, "%s/../../conf/profiles", program);
	return count;
}

static int load_file(const char *path, struct profile *profile, struct conf_error *error)
{
	size_t len_bytes;
	char *text;
	int err = conf_read(path, "yoke-bench --list-profiles shows those that have a name", &text,
			    &len_bytes, error);

	if (err)
		return err;
	err = profile_parse(path, text, len_bytes, profile, error);
	free(text);
	return err;
}

int profile_load(const char *name, struct profile *profile, struct conf_error *error)
{
	const char *dot = strrchr(name, '.');
	char folders[FOLDERS][PATH_SIZE], *path;
	unsigned count;
	int err;

	if (strchr(name, '/') || (dot && strcmp(dot, ".conf") == 0))
		return load_file(name, profile, error);
	count = find_folders(folders);
	for (unsigned i = 0; i < count && strlen(name) < BENCH_NAME_MAX; i++) {
		if (asprintf(&path, "%s/%s.conf", folders[i], name) < 0) {
			conf_refuse(name, error, 0, "out of memory");
			return -ENOMEM;
		}
		err = access(path, F_OK) == 0 ? load_file(path, profile, error) : 1;
		free(path);
		if (err <= 0)
			return err;
	}
	snprintf(error->text, sizeof(error->text),
		 "profile \"%.64s\": there is none. yoke-bench --list-profiles shows which there "
		 "are; a file of your own is named with its path, ./%.64s.conf",
		 name, name);
	return -ENOENT;
}

struct found {
	char name[BENCH_NAME_MAX];
	char *path;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct found *)a)->name, ((const struct found *)b)->name);
}

static bool already(const struct found *found, unsigned count, const char *name, size_t len)
{
	for (unsigned i = 0; i < count; i++)
		if (strlen(found[i].name) == len && strncmp(found[i].name, name, len) == 0)
			return true;
	return false;
}

/* Adds FOLDER's profiles that no folder before it had; how many there are then. */
static unsigned find_files(const char *folder, struct found *found, unsigned count)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;

	while (dir && count < PROFILES_MAX && (entry = readdir(dir))) {
		const char *dot = strrchr(entry->d_name, '.');
		size_t len = dot ? (size_t)(dot - entry->d_name) : 0;

		if (!len || len >= BENCH_NAME_MAX || strcmp(dot, ".conf") != 0 ||
		    already(found, count, entry->d_name, len))
			continue;
		memcpy(found[count].name, entry->d_name, len);
		found[count].name[len] = '\0';
		if (asprintf(&found[count].path, "%s/%s", folder, entry->d_name) >= 0)
			count++;
	}
	if (dir)
		closedir(dir);
	return count;
}

void profile_list(FILE *out)
{
	struct found *found = calloc(PROFILES_MAX, sizeof(*found));
	char folders[FOLDERS][PATH_SIZE];
	unsigned folder_count = find_folders(folders), count = 0;

	for (unsigned i = 0; found && i < folder_count; i++)
		count = find_files(folders[i], found, count);
	if (count)
		qsort(found, count, sizeof(*found), by_name);
	for (unsigned i = 0; i < count; i++) {
		struct conf_error error;
		struct profile profile;

		if (load_file(found[i].path, &profile, &error))
			fprintf(out, "%-16s not usable: %s\n", found[i].name, error.text);
		else
			fprintf(out, "%-16s %s (%s)\n", found[i].name, profile.tells, profile.from);
		free(found[i].path);
	}
	free(found);
}
