/* SPDX-License-Identifier: MIT */
/* The range lock against hand-made cases and against a naive model that looks at every pair. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "backstore/rangelock.h"
#include "tests/fake/fake_env.h"

struct user {
	struct rangelock_hold hold;
	unsigned called; /* how often fn ran */
	bool in;         /* takes part */
	bool has;        /* was told that it is granted */
	uint64_t asked;  /* the model's order */
};

static struct env *env;
static struct rangelock *lock;

static void granted(struct rangelock_hold *hold)
{
	struct user *user = container_of(hold, struct user, hold);

	user->called++;
	user->has = true;
}

static bool take(struct user *user, uint64_t offset, uint64_t length, bool exclusive)
{
	memset(user, 0, sizeof(*user));
	user->hold.offset = offset;
	user->hold.length = length;
	user->hold.exclusive = exclusive;
	user->hold.fn = granted;
	user->has = rangelock_take(lock, &user->hold);
	return user->has;
}

static void setup(void)
{
	env = fake_env_new(1);
	lock = rangelock_new(env);
	ck_assert_ptr_nonnull(lock);
}

static void teardown(void)
{
	rangelock_free(lock);
	fake_env_run(env);
	fake_env_free(env);
}

START_TEST(shared_holders_overlap_each_other)
{
	struct user a, b;

	ck_assert(take(&a, 0, 4096, false));
	ck_assert(take(&b, 512, 512, false));
	ck_assert_uint_eq(rangelock_count(lock), 2);
	rangelock_release(lock, &a.hold);
	rangelock_release(lock, &b.hold);
	ck_assert_uint_eq(rangelock_count(lock), 0);
}
END_TEST

/* b is asked while [4096, 8192) is held; each row: what overlaps by even one byte waits. */
static const struct {
	uint64_t offset;
	uint64_t length;
	bool waits;
} edges[] = {
	{ 0, 4096, false }, { 0, 4097, true },    { 4096, 1, true },
	{ 8191, 1, true },  { 8192, 512, false }, { 0, UINT64_MAX, true },
	{ 5000, 10, true }, { 4096, 4096, true }, { UINT64_MAX - 1, 1, false },
};

START_TEST(touching_ranges_do_not_meet_and_one_shared_byte_does)
{
	struct user a, b;

	ck_assert(take(&a, 4096, 4096, true));
	ck_assert_int_eq(take(&b, edges[_i].offset, edges[_i].length, true), !edges[_i].waits);
	rangelock_release(lock, &a.hold);
	ck_assert_uint_eq(b.called, 0);
	fake_env_run(env);
	ck_assert_uint_eq(b.called, edges[_i].waits);
	rangelock_release(lock, &b.hold);
}
END_TEST

START_TEST(a_waiting_exclusive_is_not_overtaken_by_shared_ones)
{
	struct user reader, writer, late;

	ck_assert(take(&reader, 0, 4096, false));
	ck_assert(!take(&writer, 0, 8192, true));
	ck_assert(!take(&late, 1024, 512, false));
	rangelock_release(lock, &reader.hold);
	fake_env_run(env);
	ck_assert(writer.has && !late.has);
	rangelock_release(lock, &writer.hold);
	fake_env_run(env);
	ck_assert(late.has);
	rangelock_release(lock, &late.hold);
}
END_TEST

START_TEST(a_withdrawn_waiter_lets_those_behind_it_go)
{
	struct user reader, writer, late;

	ck_assert(take(&reader, 0, 4096, false));
	ck_assert(!take(&writer, 0, 4096, true));
	ck_assert(!take(&late, 0, 4096, false));
	rangelock_withdraw(lock, &writer.hold);
	fake_env_run(env);
	ck_assert(late.has);
	ck_assert_uint_eq(writer.called, 0);
	rangelock_release(lock, &reader.hold);
	rangelock_release(lock, &late.hold);
}
END_TEST

START_TEST(a_waiter_withdrawn_between_grant_and_call_is_never_called)
{
	struct user a, b, c;

	ck_assert(take(&a, 0, 4096, true));
	ck_assert(!take(&b, 0, 4096, true));
	ck_assert(!take(&c, 0, 4096, true));
	rangelock_release(lock, &a.hold);
	rangelock_withdraw(lock, &b.hold);
	fake_env_run(env);
	ck_assert_uint_eq(b.called, 0);
	ck_assert_uint_eq(c.called, 1);
	rangelock_release(lock, &c.hold);
}
END_TEST

START_TEST(a_lock_may_be_freed_with_its_call_still_deferred)
{
	struct rangelock *mine = lock;
	struct user a, b;

	ck_assert(take(&a, 0, 512, true));
	ck_assert(!take(&b, 0, 512, true));
	rangelock_release(mine, &a.hold);
	rangelock_withdraw(mine, &b.hold);
	rangelock_free(mine);
	fake_env_run(env);
	lock = rangelock_new(env);
}
END_TEST

/* --- against the model --- */

#define USERS 96

static struct user users[USERS];
static uint64_t asked;
static uint64_t state;

static uint64_t pick(uint64_t below)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (state >> 33) % below;
}

static bool model_conflict(const struct user *a, const struct user *b)
{
	return a->hold.offset < b->hold.offset + b->hold.length &&
	       b->hold.offset < a->hold.offset + a->hold.length &&
	       (a->hold.exclusive || b->hold.exclusive);
}

/* Granted is exactly who has no earlier conflicting one beside it. */
static bool model_grants(const struct user *user)
{
	for (unsigned i = 0; i < USERS; i++)
		if (users[i].in && &users[i] != user && users[i].asked < user->asked &&
		    model_conflict(&users[i], user))
			return false;
	return true;
}

/* One assertion for all: Check writes to its pipe at each. */
static void compare_with_model(void)
{
	unsigned differ = 0;

	for (unsigned i = 0; i < USERS; i++)
		if (users[i].in && users[i].has != model_grants(&users[i]))
			differ++;
	ck_assert_uint_eq(differ, 0);
}

static void random_step(uint64_t space)
{
	struct user *user = &users[pick(USERS)];

	if (!user->in) {
		take(user, pick(space), 1 + pick(space / 4), pick(3) == 0);
		user->in = true;
		user->asked = ++asked;
	} else if (user->has) {
		rangelock_release(lock, &user->hold);
		user->in = false;
	} else if (pick(8) == 0) {
		rangelock_withdraw(lock, &user->hold);
		user->in = false;
	}
}

static const uint64_t spaces[] = { 8, 64, 1000, 100000 };

START_TEST(grants_equal_those_of_a_model_that_looks_at_every_pair)
{
	uint64_t space = spaces[_i % ARRAY_LEN(spaces)];
	unsigned rounds = 0;

	state = (uint64_t)_i * 7919 + 1;
	memset(users, 0, sizeof(users));
	for (unsigned step = 0; step < 4000; step++) {
		random_step(space);
		if (pick(3) == 0) {
			fake_env_run(env);
			compare_with_model();
		}
	}
	/* Nobody starves: releasing whoever has it empties the lock in at most USERS rounds. */
	while (rangelock_count(lock) > 0) {
		fake_env_run(env);
		ck_assert_uint_le(++rounds, USERS);
		for (unsigned i = 0; i < USERS; i++)
			if (users[i].in && users[i].has) {
				rangelock_release(lock, &users[i].hold);
				users[i].in = false;
			}
	}
}
END_TEST

START_TEST(ten_thousand_disjoint_holds_are_all_granted_at_once)
{
	struct user *many = calloc(10000, sizeof(*many));
	struct user all;
	unsigned at_once = 0;

	ck_assert_ptr_nonnull(many);
	for (unsigned i = 0; i < 10000; i++)
		at_once += take(&many[i * 7919 % 10000], i * 7919 % 10000 * 512, 512, true);
	ck_assert_uint_eq(at_once, 10000);
	ck_assert(!take(&all, 0, 10000 * 512, false));
	ck_assert_uint_eq(all.hold.blockers, 10000);
	for (unsigned i = 0; i < 10000; i++)
		rangelock_release(lock, &many[i].hold);
	fake_env_run(env);
	ck_assert(all.has);
	rangelock_release(lock, &all.hold);
	free(many);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("rangelock");
	TCase *tc = tcase_create("rangelock");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tc, 120);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, shared_holders_overlap_each_other);
	tcase_add_loop_test(tc, touching_ranges_do_not_meet_and_one_shared_byte_does, 0,
			    ARRAY_LEN(edges));
	tcase_add_test(tc, a_waiting_exclusive_is_not_overtaken_by_shared_ones);
	tcase_add_test(tc, a_withdrawn_waiter_lets_those_behind_it_go);
	tcase_add_test(tc, a_waiter_withdrawn_between_grant_and_call_is_never_called);
	tcase_add_test(tc, a_lock_may_be_freed_with_its_call_still_deferred);
	tcase_add_loop_test(tc, grants_equal_those_of_a_model_that_looks_at_every_pair, 0, 40);
	tcase_add_test(tc, ten_thousand_disjoint_holds_are_all_granted_at_once);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
