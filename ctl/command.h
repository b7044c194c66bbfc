/* SPDX-License-Identifier: MIT */
/*
 * The table of subcommands: everything that yokectl can be asked, in one place.
 * Parsing, help and completion follow from it.
 */
#ifndef CTL_COMMAND_H
#define CTL_COMMAND_H

#include "core/rpc.h"
#include "ctl/output.h"
#include "ctl/table.h"

#define COMMAND_SOCKET "/run/yoke/yoked.sock"

enum argument_kind {
	ARGUMENT_TEXT,
	ARGUMENT_DISK,  /* a path, from here, or backing:NAME; a path from / in the call */
	ARGUMENT_DISKS, /* by position, the last one: all the words that follow */
	ARGUMENT_INTEGER,
	ARGUMENT_SIZE,        /* 64K; bytes in the call */
	ARGUMENT_MS,          /* 20ms, 1s; milliseconds in the call */
	ARGUMENT_PER_MILLION, /* 2.5% or 0.025 */
	ARGUMENT_FLAG,        /* takes no value */
};

/* The table of them ends with a NULL name. */
struct argument {
	const char *name;   /* in the call's parameters */
	const char *option; /* "--op"; NULL: by position */
	const char *meta;   /* "BACKING" */
	enum argument_kind kind;
	bool required;
	const char *values; /* the choices, with spaces; NULL: anything */
};

struct invocation;

struct command {
	const char *noun;
	const char *verb; /* NULL: the noun is the whole command */
	const char *summary;
	const char *method; /* NULL: run does without yoked, or calls by itself */
	const struct argument *arguments;
	const struct table *table;                                /* how to show the result, or */
	int (*show)(const json_t *result, const struct output *); /* by hand, or */
	int (*run)(struct invocation *invocation);                /* all of it */
};

struct invocation {
	const char *noun; /* as written */
	const struct command *command;
	json_t *params;
	const char *socket;
	uint64_t timeout_ns;
	struct output *output;
};

/* Ends with a NULL noun. */
extern const struct command commands[];
const struct command *command_find(const char *noun, const char *verb);

/* Calls METHOD once. EXIT_DONE and *RESULT (the caller's), or an exit code after telling why. */
int command_call(struct invocation *invocation, const char *method, json_t *params,
		 json_t **result);

/* All of yokectl but the process: OUTPUT has streams, tty and width. An exit code. */
int yokectl(int argc, char *const *argv, struct output *output);

/* ---- arguments.c ---- */

/* Reads ARGV into INVOCATION and its output. EXIT_DONE, or EXIT_USAGE after telling why. */
int arguments_parse(int argc, char *const *argv, struct invocation *invocation, bool *help,
		    bool *version);

/* ---- cmd_*.c ---- */

int status_run(struct invocation *invocation);
int events_run(struct invocation *invocation);
int reload_run(struct invocation *invocation);
int explain_run(struct invocation *invocation);
int check_run(struct invocation *invocation);
int help_run(struct invocation *invocation);
/* The usage of COMMAND, or the list of all if NULL. */
void help_print(const struct command *command, FILE *out);
/* The usage of all commands of NOUN, or of the one with VERB; false if there is none. */
bool help_print_noun(const char *noun, const char *verb, FILE *out);

int session_show(const json_t *result, const struct output *output);
int session_show_run(struct invocation *invocation);
int session_kill_show(const json_t *result, const struct output *output);
int fault_add_show(const json_t *result, const struct output *output);
int fault_remove_show(const json_t *result, const struct output *output);
int array_show(const json_t *result, const struct output *output);
int array_change_run(struct invocation *invocation);
int disk_label_show(const json_t *result, const struct output *output);
int disk_test_run(struct invocation *invocation);

extern const struct table target_table;
extern const struct table session_table;
extern const struct table lun_table;
extern const struct table backing_table;
extern const struct table fault_table;
extern const struct table array_table;
extern const struct table disk_table;

#endif
