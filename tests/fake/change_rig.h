/* SPDX-License-Identifier: MIT */
/* For tests of members that come and go: one leaves, another is added, entries of the label. */
#ifndef TESTS_FAKE_CHANGE_RIG_H
#define TESTS_FAKE_CHANGE_RIG_H

#include <check.h>
#include <string.h>

#include "tests/fake/raid_rig.h"

/* DISK fails as it misses a write at OFFSET. */
static inline void lose(unsigned disk, uint64_t offset)
{
	rig.disks[disk]->fail = HOST;
	ck_assert_int_eq(rig_write(offset, 4096, 1), 0);
	rig.disks[disk]->fail = 0;
	rig_forget();
}

static inline enum label_state entry(unsigned member)
{
	return rig.array->label.members[member].state;
}

struct answer {
	unsigned calls;
	int error;
	char text[256];
};

static inline void answered(void *arg, struct array *array, int error, const char *text)
{
	struct answer *answer = arg;

	ck_assert_ptr_eq(array, rig.array);
	answer->calls++;
	answer->error = error;
	strncpy(answer->text, text, sizeof(answer->text) - 1);
}

static inline void add(unsigned disk, struct answer *answer)
{
	struct array_disk offered = rig_offer(disk);

	*answer = (struct answer){ 0 };
	ck_assert_int_eq(array_add(rig.array, &offered, answered, answer), 0);
}

#endif
