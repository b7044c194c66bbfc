/* SPDX-License-Identifier: MIT */
/* The program yokectl: finds out what it writes to. Not here: everything else (command.c). */
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "ctl/command.h"

int main(int argc, char **argv)
{
	struct output output = { .out = stdout, .err = stderr, .tty = isatty(STDOUT_FILENO) };
	struct winsize size;

	/* `yokectl ... | head` is no reason to die without a word. */
	signal(SIGPIPE, SIG_IGN);
	if (output.tty && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
		output.width = size.ws_col;
	return yokectl(argc, argv, &output);
}
