/* SPDX-License-Identifier: MIT */
/* The registry of I_T nexuses: ids, slots, retirement. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base.h"
#include "mpio/nexus.h"

static struct nexus_registry registry;
static struct nexus a, b;

static void set_id(struct nexus *nexus, const char *name, uint8_t isid, uint16_t group)
{
	memset(nexus, 0, sizeof(*nexus));
	strcpy(nexus->id.initiator, name);
	nexus->id.isid[5] = isid;
	nexus->id.portal_group = group;
}

static void setup(void)
{
	nexus_registry_init(&registry);
	set_id(&a, "iqn.a", 1, 1);
	ck_assert_int_eq(nexus_register(&registry, &a), 0);
}

static void teardown(void)
{
	nexus_retire(&registry, &a);
	ck_assert_uint_eq(registry.count, 0);
}

static const struct {
	const char *name;
	uint8_t isid;
	uint16_t group;
	int err;
} ids[] = {
	{ "iqn.a", 1, 1, -EEXIST }, { "IQN.A", 1, 1, -EEXIST }, { "iqn.b", 1, 1, 0 },
	{ "iqn.a", 2, 1, 0 },       { "iqn.a", 1, 2, 0 },
};

START_TEST(name_isid_and_portal_group_make_the_id)
{
	set_id(&b, ids[_i].name, ids[_i].isid, ids[_i].group);
	ck_assert_int_eq(nexus_register(&registry, &b), ids[_i].err);
	ck_assert_uint_eq(registry.count, ids[_i].err ? 1 : 2);
	ck_assert_ptr_eq(nexus_find(&registry, &b.id), ids[_i].err ? &a : &b);
	nexus_retire(&registry, &b);
}
END_TEST

START_TEST(a_retired_id_is_free_at_once)
{
	nexus_retire(&registry, &a);
	nexus_retire(&registry, &a);
	set_id(&b, "iqn.a", 1, 1);
	ck_assert_int_eq(nexus_register(&registry, &b), 0);
	ck_assert_ptr_eq(nexus_find(&registry, &a.id), &b);
	nexus_retire(&registry, &b);
}
END_TEST

START_TEST(each_nexus_meets_each_slot_with_power_on_whichever_came_first)
{
	ck_assert_int_eq(nexus_reserve_slots(&registry, 2), 0);
	nexus_slot_fresh(&registry, 1);
	set_id(&b, "iqn.b", 1, 1);
	ck_assert_int_eq(nexus_register(&registry, &b), 0);
	ck_assert_uint_eq(ua_take(nexus_ua(&registry, &a, 1)), UA_POWER_ON);
	ck_assert_uint_eq(ua_take(nexus_ua(&registry, &b, 1)), UA_POWER_ON);
	ck_assert_uint_eq(ua_take(nexus_ua(&registry, &a, 0)), UA_NONE);
	nexus_retire(&registry, &b);
}
END_TEST

START_TEST(raising_reaches_all_but_one_and_only_that_slot)
{
	ck_assert_int_eq(nexus_reserve_slots(&registry, 2), 0);
	set_id(&b, "iqn.b", 1, 1);
	ck_assert_int_eq(nexus_register(&registry, &b), 0);
	ua_take(nexus_ua(&registry, &b, 0));
	ua_take(nexus_ua(&registry, &b, 1));
	nexus_raise(&registry, 1, UA_MODE_CHANGED, &a);
	ck_assert(!ua_pending(nexus_ua(&registry, &a, 1)));
	ck_assert(!ua_pending(nexus_ua(&registry, &b, 0)));
	ck_assert_uint_eq(ua_take(nexus_ua(&registry, &b, 1)), UA_MODE_CHANGED);
	nexus_retire(&registry, &b);
	ck_assert_ptr_null(nexus_ua(&registry, &b, 1));
}
END_TEST

START_TEST(more_slots_keep_what_is_pending)
{
	ck_assert_int_eq(nexus_reserve_slots(&registry, 1), 0);
	nexus_raise(&registry, 0, UA_CAPACITY_CHANGED, NULL);
	ck_assert_int_eq(nexus_reserve_slots(&registry, 1000), 0);
	ck_assert_int_eq(nexus_reserve_slots(&registry, 5), 0);
	ck_assert_uint_eq(registry.slots, 1000);
	ck_assert_uint_eq(ua_take(nexus_ua(&registry, &a, 0)), UA_CAPACITY_CHANGED);
	ck_assert(!ua_pending(nexus_ua(&registry, &a, 999)));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("nexus");
	TCase *tc = tcase_create("nexus");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_loop_test(tc, name_isid_and_portal_group_make_the_id, 0, ARRAY_LEN(ids));
	tcase_add_test(tc, a_retired_id_is_free_at_once);
	tcase_add_test(tc, each_nexus_meets_each_slot_with_power_on_whichever_came_first);
	tcase_add_test(tc, raising_reaches_all_but_one_and_only_that_slot);
	tcase_add_test(tc, more_slots_keep_what_is_pending);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
