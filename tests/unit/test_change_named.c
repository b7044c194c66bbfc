/* SPDX-License-Identifier: MIT */
/* Who comes is named by a label before one lists it, and by none before its doubt is durable. */
#include <check.h>
#include <errno.h>
#include <string.h>

#include "backstore/regions_int.h"
#include "tests/fake/change_rig.h"

#define SIZE (8 * MIB)

static void setup(void)
{
	rig_setup_clean(1, 2, SIZE);
}

/* Another label may be due before what it lacks is durably doubtful. */
START_TEST(a_label_for_another_member_does_not_name_who_comes)
{
	struct answer answer;
	struct label label;

	rig_teardown();
	rig_setup_clean(1, 3, SIZE);
	lose(1, 0);
	rig.disks[0]->hold = MAPS;
	add(3, &answer);
	fake_env_run(rig.env);
	ck_assert_int_eq(rig_remove(2), 0);
	ck_assert_uint_eq(answer.calls, 0);
	ck_assert_int_eq(rig_label(0, &label), 0);
	ck_assert_int_eq(label.members[2].state, LABEL_REMOVED);
	ck_assert_int_eq(label.members[3].state, LABEL_NONE);
	ck_assert_int_eq(rig_label(3, &label), -ENOENT);
	rig_release(0);
	rig_settle();
	ck_assert_uint_eq(answer.calls, 1);
	ck_assert_int_eq(answer.error, 0);
	ck_assert_int_eq(entry(3), LABEL_IN_SYNC);
	ck_assert_mem_eq(rig_data(0), rig_data(3), rig.array->label.data.length);
}
END_TEST

/* Its data may be there before: still no label lists it first that its disk does not carry. */
START_TEST(who_is_copied_before_a_label_names_it_waits_for_that)
{
	struct rig_disk *disk = rig.disks[0];
	struct answer answer;
	const struct label_area *data = &rig.array->label.data;
	struct io *io;

	lose(1, 0);
	disk->hold = MAPS;
	add(2, &answer);
	fake_env_run(rig.env);
	ck_assert_uint_eq(rig_count(0, IO_WRITE, IO_MAP), 1);
	for (unsigned round = 0; round < 20; round++) {
		io = STAILQ_FIRST(&disk->held);
		if (io->op == IO_FLUSH) {
			rig_end(0, 0);
			continue;
		}
		STAILQ_REMOVE_HEAD(&disk->held, link);
		STAILQ_INSERT_TAIL(&disk->held, io, link);
	}
	ck_assert_mem_eq(rig_data(0), rig.bytes[2] + data->offset, data->length);
	ck_assert_uint_eq(rig_count(0, IO_WRITE, IO_LABEL), 0);
	rig_release(0);
	ck_assert_int_eq(answer.error, 0);
	rig_settle();
	ck_assert_int_eq(entry(2), LABEL_IN_SYNC);
}
END_TEST

START_TEST(nobody_comes_whose_doubt_cannot_be_stored)
{
	struct answer answer;
	struct label label;

	lose(1, 2 * MIB);
	rig_disk(2);
	rig.disks[0]->fail = MAPS;
	for (unsigned i = 0; i < LABEL_MEMBERS_MAX + 1; i++) {
		add(2, &answer);
		fake_env_run(rig.env);
		ck_assert_uint_eq(answer.calls, 1);
		ck_assert_int_eq(answer.error, -EIO);
		ck_assert_str_eq(answer.text,
				 "array a: the map of what d2 lacks cannot be written");
		rig.disks[0]->fail = 0;
		ck_assert_ptr_null(rig.array->roles[1]);
	}
	rig_settle();
	ck_assert_int_eq(rig_label(0, &label), 0);
	ck_assert_int_eq(label.members[2].state, LABEL_NONE);
	ck_assert_int_eq(rig_label(2, &label), -ENOENT);
	/* Maps can be written again once it is started anew. */
	ck_assert_int_eq(rig_stop(), 0);
	ck_assert_int_eq(rig_start(1, false), 0);
	ck_assert_int_eq(rig_add(2), 0);
	rig_settle();
	ck_assert_int_eq(rig_info().state, ARRAY_HEALTHY);
}
END_TEST

/* Its own: it may be the only one that is there at the next start. */
START_TEST(who_comes_has_the_bits_of_what_is_dirty_when_a_label_names_it)
{
	const struct label *label = &rig.array->label;
	const uint8_t *page;
	uint64_t sequence;

	rig_disk(1)->fail = 1u << IO_MAP; /* it fails as the bit is stored */
	ck_assert_int_eq(rig_write(3 * MIB, 4096, 1), 0);
	rig_disk(1)->fail = 0;
	rig_disk(1)->hold = 1u << IO_RESYNC;
	ck_assert_int_eq(rig_add(1), 0);
	ck_assert_int_eq(entry(1), LABEL_REBUILDING);
	page = regions_page_newest(array_tag(label), 0, rig.bytes[1] + label->maps[0].offset,
				   rig.bytes[1] + label->maps[1].offset, &sequence);
	ck_assert_ptr_nonnull(page);
	for (unsigned i = 0; i < 5; i++)
		ck_assert_int_eq(regions_page_has(page, i), i == 3);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("change_named");
	TCase *tcase = tcase_create("change_named");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, setup, rig_teardown);
	tcase_add_test(tcase, a_label_for_another_member_does_not_name_who_comes);
	tcase_add_test(tcase, who_is_copied_before_a_label_names_it_waits_for_that);
	tcase_add_test(tcase, nobody_comes_whose_doubt_cannot_be_stored);
	tcase_add_test(tcase, who_comes_has_the_bits_of_what_is_dirty_when_a_label_names_it);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
