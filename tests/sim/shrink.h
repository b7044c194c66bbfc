/* SPDX-License-Identifier: MIT */
/* A story that breaks a promise is made short: steps are left out while it still does. */
#ifndef TESTS_SIM_SHRINK_H
#define TESTS_SIM_SHRINK_H

#include "tests/sim/runner.h"

struct shrunk {
	struct scenario_how how; /* the short story; its `without` is to be freed */
	unsigned steps, left;    /* of the long one and of the short one */
};

/* Whether two violations are of one kind: alike but for numbers. */
bool shrink_alike(const char *a, const char *b);

/* HOW: the long story, which had RESULT. Takes at most SECONDS. */
struct shrunk shrink(struct runner *runner, const struct scenario_how *how,
		     const struct scenario_result *result, unsigned seconds);

#endif
