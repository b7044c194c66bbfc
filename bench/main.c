/* SPDX-License-Identifier: MIT */
/*
 * The program yoke-bench: subcommands, and what it writes to.
 *
 * Not here: options (options.c), running them (run.c).
 */
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "bench/discover.h"
#include "bench/profile.h"
#include "bench/report.h"
#include "bench/run.h"
#include "core/version.h"

/* What comes first, instead of a measurement. */
static const struct {
	const char *name;
	int (*run)(int argc, char *const *argv);
} subcommands[] = {
	{ "report", report_main },
};

static unsigned width_of(int fd)
{
	struct winsize size;

	return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/* From the URL's portal to all of its target. */
static int discover(struct options *options, struct bench_fault *fault)
{
	struct bench_setup *setup = &options->plan.setup;
	struct bench_portal asked = setup->portals[0];

	return discover_portals(&asked, setup->initiator, &setup->chap, setup->portals,
				&setup->portal_count, fault);
}

/* Everything between the command line and the first login of a measurement. */
static int make_plan(struct options *options, struct bench_fault *fault)
{
	int err = options_check(options, fault);

	if (!err && options->discover)
		err = discover(options, fault);
	return err ? err : options_plan(options, fault);
}

static int measure(int argc, char **argv)
{
	static struct options options;
	struct run_streams streams = { .out = stdout,
				       .err = stderr,
				       .out_tty = isatty(STDOUT_FILENO),
				       .err_tty = isatty(STDERR_FILENO) };
	struct bench_fault fault;
	int code = BENCH_REFUSED;

	streams.out_width = streams.out_tty ? width_of(STDOUT_FILENO) : 0;
	streams.err_width = streams.err_tty ? width_of(STDERR_FILENO) : 0;
	if (options_parse(argc, argv, &options, &fault)) {
		run_say(stderr, "%s", fault.text);
	} else if (options.help || options.version || options.list_profiles) {
		if (options.help)
			options_help(stdout);
		else if (options.version)
			printf("yoke-bench %s\n", yoke_version());
		else
			profile_list(stdout);
		code = BENCH_DONE;
	} else if (make_plan(&options, &fault)) {
		run_say(stderr, "%s", fault.text);
	} else {
		code = run_plan(&options, &streams);
	}
	options_free(&options);
	return code;
}

int main(int argc, char **argv)
{
	/* A lost connection, and `yoke-bench ... | head`, are errors and no reason to die. */
	signal(SIGPIPE, SIG_IGN);
	for (unsigned i = 0; i < ARRAY_LEN(subcommands); i++)
		if (argc > 1 && strcmp(argv[1], subcommands[i].name) == 0)
			return subcommands[i].run(argc - 1, argv + 1);
	return measure(argc, argv);
}
