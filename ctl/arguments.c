/* SPDX-License-Identifier: MIT */
/*
 * Reads the command line by the table of commands.
 *
 * Options may stand anywhere; `--` ends them. Those of the command win over the
 * global ones, which every command takes.
 *
 * Invariants:
 * 1. Nothing is run that was not understood whole: an unknown word or option ends it.
 *
 * Not here: which commands there are (command.c).
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/conf.h"
#include "ctl/command.h"

enum value_need { VALUE_NONE, VALUE_MAYBE, VALUE_NEEDED };

struct global {
	const char *name;
	char letter;
	enum value_need need;
};

static const struct global globals[] = {
	{ "--socket", 's', VALUE_NEEDED }, { "--timeout", 0, VALUE_NEEDED },
	{ "--json", 0, VALUE_MAYBE },      { "--columns", 'o', VALUE_NEEDED },
	{ "--no-header", 0, VALUE_NONE },  { "--bytes", 0, VALUE_NONE },
	{ "--wide", 0, VALUE_NONE },       { "--color", 0, VALUE_MAYBE },
	{ "--help", 'h', VALUE_NONE },     { "--version", 'V', VALUE_NONE },
};

struct parser {
	int argc;
	char *const *argv;
	int at;
	struct invocation *invocation;
	enum color_option color;
	bool *help;
	bool *version;
	const char *noun;
	unsigned positions; /* arguments by position seen so far */
	bool no_more_options;
};

#define USAGE(p, ...) output_error((p)->invocation->output, EXIT_USAGE, __VA_ARGS__)

static int set_color(struct parser *p, const char *value)
{
	if (!value || strcmp(value, "always") == 0)
		p->color = COLOR_ALWAYS;
	else if (strcmp(value, "never") == 0)
		p->color = COLOR_NEVER;
	else if (strcmp(value, "auto") == 0)
		p->color = COLOR_AUTO;
	else
		return USAGE(p, "--color=%s: write always, never or auto", value);
	return EXIT_DONE;
}

static int set_global(struct parser *p, const struct global *global, const char *value)
{
	struct output *output = p->invocation->output;

	if (strcmp(global->name, "--socket") == 0)
		p->invocation->socket = value;
	else if (strcmp(global->name, "--columns") == 0)
		output->columns = value;
	else if (strcmp(global->name, "--no-header") == 0)
		output->no_header = true;
	else if (strcmp(global->name, "--bytes") == 0)
		output->bytes = true;
	else if (strcmp(global->name, "--wide") == 0)
		output->wide = true;
	else if (strcmp(global->name, "--help") == 0)
		*p->help = true;
	else if (strcmp(global->name, "--version") == 0)
		*p->version = true;
	else if (strcmp(global->name, "--color") == 0)
		return set_color(p, value);
	else if (strcmp(global->name, "--json") == 0 && value && strcmp(value, "1") != 0)
		return USAGE(p, "--json=%s: this yokectl writes version 1", value);
	else if (strcmp(global->name, "--json") == 0)
		output->json = true;
	else if (conf_duration(value, &p->invocation->timeout_ns) || !p->invocation->timeout_ns)
		return USAGE(p, "--timeout: \"%s\" is not a duration. Write like 30s", value);
	return EXIT_DONE;
}

/* "2.5%" or "0.025". */
static int per_million(const char *text, int64_t *value)
{
	char *end;
	double share = strtod(text, &end);

	if (end == text || isspace((unsigned char)*text))
		return -EINVAL;
	if (strcmp(end, "%") == 0)
		share /= 100.0;
	else if (*end)
		return -EINVAL;
	if (!(share > 0.0 && share <= 1.0))
		return -EINVAL;
	*value = (int64_t)(share * 1e6 + 0.5);
	return *value ? 0 : -EINVAL;
}

/* TEXT as the integer of KIND: 0, or -EINVAL and in WANTED what to write. */
static int read_integer(enum argument_kind kind, const char *text, int64_t *value,
			const char **wanted)
{
	uint64_t number;
	char *end;

	switch (kind) {
	case ARGUMENT_SIZE:
		*wanted = "a size like 64K (K M G T P are powers of 1024)";
		if (conf_size(text, &number) || number > INT64_MAX)
			return -EINVAL;
		break;
	case ARGUMENT_MS:
		*wanted = "a time like 20ms or 1s";
		if (conf_duration(text, &number) || number % NS_PER_MS)
			return -EINVAL;
		number /= NS_PER_MS;
		break;
	case ARGUMENT_PER_MILLION:
		*wanted = "a share like 2.5% or 0.025";
		return per_million(text, value);
	default:
		*wanted = "a number";
		errno = 0;
		number = strtoull(text, &end, 10);
		if (!isdigit((unsigned char)*text) || *end || errno || number > INT64_MAX)
			return -EINVAL;
	}
	*value = (int64_t)number;
	return 0;
}

static bool is_choice(const char *values, const char *text)
{
	size_t len = strlen(text);

	for (const char *at = values; at && len; at = strchr(at, ' ')) {
		at += *at == ' ';
		if (strncmp(at, text, len) == 0 && (at[len] == ' ' || !at[len]))
			return true;
	}
	return false;
}

/* yoked has a working directory of its own. What is not there is asked for as it was written. */
static json_t *disk_value(const char *text)
{
	char *here = *text == '/' || access(text, F_OK) ? NULL : get_current_dir_name();
	json_t *value = here ? json_sprintf("%s/%s", strcmp(here, "/") ? here : "", text) :
			       json_string(text);

	free(here);
	return value;
}

static int set_argument(struct parser *p, const struct argument *argument, const char *text)
{
	const char *shown = argument->option ? argument->option : argument->meta;
	const char *wanted;
	json_t *value;
	int64_t number;

	value = json_object_get(p->invocation->params, argument->name);
	if (argument->kind == ARGUMENT_DISKS) {
		if (!value)
			json_object_set_new(p->invocation->params, argument->name,
					    value = json_array());
		if (json_array_append_new(value, disk_value(text)))
			return USAGE(p, "%s: not UTF-8", shown);
		return EXIT_DONE;
	}
	if (value)
		return USAGE(p, "%s is there twice", shown);
	if (argument->kind == ARGUMENT_FLAG) {
		value = json_true();
	} else if (argument->kind == ARGUMENT_TEXT || argument->kind == ARGUMENT_DISK) {
		if (argument->values && !is_choice(argument->values, text))
			return USAGE(p, "%s: \"%s\" is not one of: %s", shown, text,
				     argument->values);
		value = argument->kind == ARGUMENT_DISK ? disk_value(text) : json_string(text);
		if (!value)
			return USAGE(p, "%s: not UTF-8", shown);
	} else {
		if (read_integer(argument->kind, text, &number, &wanted))
			return USAGE(p, "%s: \"%s\" is not %s", shown, text, wanted);
		value = json_integer(number);
	}
	json_object_set_new(p->invocation->params, argument->name, value);
	return EXIT_DONE;
}

static const struct argument *find_option(const struct parser *p, const char *name, size_t len)
{
	const struct command *command = p->invocation->command;
	const struct argument *a = command ? command->arguments : NULL;

	for (; a && a->name; a++)
		if (a->option && strlen(a->option) == len && strncmp(a->option, name, len) == 0)
			return a;
	return NULL;
}

static const struct global *find_global(const char *word, size_t len)
{
	for (unsigned i = 0; i < ARRAY_LEN(globals); i++) {
		if (word[1] != '-' && globals[i].letter && globals[i].letter == word[1])
			return &globals[i];
		if (strlen(globals[i].name) == len && strncmp(globals[i].name, word, len) == 0)
			return &globals[i];
	}
	return NULL;
}

/* WORD begins with `-`. */
static int parse_option(struct parser *p, const char *word)
{
	size_t len = strcspn(word, "=");
	const char *value = word[len] ? word + len + 1 : NULL;
	const struct argument *argument = find_option(p, word, len);
	const struct global *global = argument ? NULL : find_global(word, len);
	enum value_need need = VALUE_NEEDED;

	if (!argument && !global)
		return USAGE(p, "no option %.*s%s%s. See yokectl help", (int)len, word,
			     p->noun ? " for " : "", p->noun ? p->noun : "");
	if (argument)
		need = argument->kind == ARGUMENT_FLAG ? VALUE_NONE : VALUE_NEEDED;
	else
		need = global->need;
	/* "-sPATH" */
	if (global && word[1] != '-')
		value = word[2] ? word + 2 : NULL;
	if (need == VALUE_NONE && value)
		return USAGE(p, "%.*s takes no value", (int)len, word);
	if (need == VALUE_NEEDED && !value) {
		if (p->at == p->argc)
			return USAGE(p, "%.*s needs a value", (int)len, word);
		value = p->argv[p->at++];
	}
	return argument ? set_argument(p, argument, value) : set_global(p, global, value);
}

static int unknown_command(struct parser *p, const char *verb)
{
	char verbs[128] = "";

	for (const struct command *c = commands; c->noun; c++)
		if (strcmp(c->noun, p->noun) == 0)
			snprintf(verbs + strlen(verbs), sizeof(verbs) - strlen(verbs), "%s%s",
				 *verbs ? ", " : "", c->verb);
	if (!*verbs)
		return USAGE(p, "no command \"%s\". See yokectl help", p->noun);
	if (verb)
		return USAGE(p, "no command \"%s %s\". %s has %s", p->noun, verb, p->noun, verbs);
	return USAGE(p, "%s what? It has %s", p->noun, verbs);
}

static int parse_word(struct parser *p, const char *word)
{
	const struct argument *a;
	unsigned position = 0;

	if (!p->invocation->command) {
		bool first = !p->noun;

		p->noun = first ? word : p->noun;
		p->invocation->command = command_find(p->noun, first ? NULL : word);
		if (p->invocation->command)
			return EXIT_DONE;
		for (const struct command *c = commands; first && c->noun; c++)
			if (strcmp(c->noun, word) == 0)
				return EXIT_DONE; /* the verb comes next */
		return unknown_command(p, first ? NULL : word);
	}
	for (a = p->invocation->command->arguments; a && a->name; a++)
		if (!a->option && position++ == p->positions)
			break;
	if (!a || !a->name)
		return USAGE(p, "\"%s\" is too much for %s. See yokectl help %s", word, p->noun,
			     p->noun);
	if (a->kind != ARGUMENT_DISKS)
		p->positions++;
	return set_argument(p, a, word);
}

static int check_complete(struct parser *p)
{
	const struct command *command = p->invocation->command;

	if (*p->help || *p->version)
		return EXIT_DONE;
	if (!command)
		return p->noun ? unknown_command(p, NULL) :
				 USAGE(p, "what is to be done? See yokectl help");
	for (const struct argument *a = command->arguments; a && a->name; a++)
		if (a->required && !json_object_get(p->invocation->params, a->name))
			return USAGE(p, "%s is missing. See yokectl help %s",
				     a->option ? a->option : a->meta, command->noun);
	return EXIT_DONE;
}

int arguments_parse(int argc, char *const *argv, struct invocation *invocation, bool *help,
		    bool *version)
{
	struct parser p = { .argc = argc,
			    .argv = argv,
			    .at = 1,
			    .invocation = invocation,
			    .help = help,
			    .version = version };
	int code = EXIT_DONE;

	while (p.at < argc && code == EXIT_DONE) {
		const char *word = argv[p.at++];

		if (!p.no_more_options && strcmp(word, "--") == 0)
			p.no_more_options = true;
		else if (!p.no_more_options && word[0] == '-' && word[1])
			code = parse_option(&p, word);
		else
			code = parse_word(&p, word);
	}
	invocation->noun = p.noun;
	invocation->output->color = color_wanted(p.color, invocation->output->tty);
	return code ? code : check_complete(&p);
}
