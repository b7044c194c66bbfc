/* SPDX-License-Identifier: MIT */
/* The simulated machine: what its disks keep, lose, tear and refuse; the same seed, the same life. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/world.h"

#define SIZE (64 * KIB)

struct request {
	struct env_disk_op op;
	struct iovec iov;
	uint8_t bytes[4096];
	bool done;
};

static struct world *world;
static unsigned disk;
static int fd;

static void request_done(struct env_disk_op *op)
{
	container_of(op, struct request, op)->done = true;
}

static struct request *ask(enum env_disk_kind kind, uint64_t offset, uint8_t fill, bool fua)
{
	struct request *request = calloc(1, sizeof(*request));

	ck_assert_ptr_nonnull(request);
	memset(request->bytes, fill, sizeof(request->bytes));
	request->iov = (struct iovec){ request->bytes, sizeof(request->bytes) };
	request->op = (struct env_disk_op){
		.kind = kind,
		.fua = fua,
		.fd = fd,
		.offset = offset,
		.length = kind == ENV_DISK_FLUSH ? 0 : sizeof(request->bytes),
		.iov = &request->iov,
		.iov_count = kind == ENV_DISK_READ || kind == ENV_DISK_WRITE,
		.done = request_done,
	};
	env_disk_submit(world_env(world), &request->op);
	return request;
}

static int answer(struct request *request)
{
	int result;

	ck_assert(world_run_until(world, &request->done, UINT64_MAX));
	result = request->op.result;
	free(request);
	return result;
}

static int do_op(enum env_disk_kind kind, uint64_t offset, uint8_t fill, bool fua)
{
	return answer(ask(kind, offset, fill, fua));
}

/* How many of the eight sectors at OFFSET have FILL. */
static unsigned sectors(uint64_t offset, uint8_t fill)
{
	const uint8_t *at = world_disk_bytes(world, disk) + offset;
	unsigned count = 0;

	for (unsigned i = 0; i < 8; i++) {
		bool whole = true;

		for (unsigned k = 0; k < SIM_SECTOR; k++)
			whole &= at[i * SIM_SECTOR + k] == fill;
		count += whole;
	}
	return count;
}

static void restart(enum world_cut cut)
{
	bool never = false;

	world_power_cut(world, cut);
	world_run_until(world, &never, UINT64_MAX);
	world_power_on(world);
	fd = world_disk_open(world, disk);
}

static void setup_seed(uint64_t seed)
{
	world = world_new(seed);
	disk = world_disk_add(world, SIZE);
	fd = world_disk_open(world, disk);
}

static void setup(void)
{
	setup_seed(1);
}

static void teardown(void)
{
	world_free(world);
}

START_TEST(what_was_written_is_read_but_not_durable)
{
	struct request *read;

	ck_assert_int_eq(do_op(ENV_DISK_WRITE, 4096, 7, false), 0);
	read = ask(ENV_DISK_READ, 4096, 0, false);
	ck_assert(world_run_until(world, &read->done, UINT64_MAX));
	ck_assert_int_eq(read->bytes[0] + read->bytes[4095], 14);
	free(read);
	restart(WORLD_CUT_DROP);
	ck_assert_uint_eq(sectors(4096, 0), 8);
}
END_TEST

START_TEST(fua_and_flush_outlive_a_power_cut)
{
	ck_assert_int_eq(do_op(ENV_DISK_WRITE, 0, 1, true), 0);
	ck_assert_int_eq(do_op(ENV_DISK_WRITE, 4096, 2, false), 0);
	ck_assert_int_eq(do_op(ENV_DISK_FLUSH, 0, 0, false), 0);
	ck_assert_int_eq(do_op(ENV_DISK_WRITE, 8192, 3, false), 0);
	restart(WORLD_CUT_DROP);
	ck_assert_uint_eq(sectors(0, 1), 8);
	ck_assert_uint_eq(sectors(4096, 2), 8);
	ck_assert_uint_eq(sectors(8192, 0), 8);
}
END_TEST

START_TEST(a_flush_does_not_cover_what_was_in_flight_when_it_began)
{
	struct request *write = ask(ENV_DISK_WRITE, 0, 9, false);
	struct request *flush = ask(ENV_DISK_FLUSH, 0, 0, false);

	ck_assert_int_eq(answer(write), 0);
	ck_assert_int_eq(answer(flush), 0);
	restart(WORLD_CUT_DROP);
	ck_assert_uint_eq(sectors(0, 0), 8);
}
END_TEST

START_TEST(a_late_flush_never_brings_back_what_fua_replaced)
{
	ck_assert_int_eq(do_op(ENV_DISK_WRITE, 0, 1, false), 0);
	ck_assert_int_eq(do_op(ENV_DISK_WRITE, 0, 2, true), 0);
	ck_assert_int_eq(do_op(ENV_DISK_FLUSH, 0, 0, false), 0);
	restart(WORLD_CUT_ANY);
	ck_assert_uint_eq(sectors(0, 2), 8);
}
END_TEST

START_TEST(a_cut_tears_what_is_in_flight_at_sectors)
{
	unsigned torn = 0, old = 0, fresh = 0;

	for (unsigned round = 0; round < 400; round++) {
		struct request *write;
		unsigned kept;

		ck_assert_int_eq(do_op(ENV_DISK_WRITE, 0, 1, true), 0);
		write = ask(ENV_DISK_WRITE, 0, 2, true);
		restart(WORLD_CUT_ANY);
		ck_assert(write->done);
		ck_assert_int_eq(write->op.result, -EIO);
		free(write);
		kept = sectors(0, 2);
		ck_assert_uint_eq(kept + sectors(0, 1), 8);
		torn += kept > 0 && kept < 8;
		old += kept == 0;
		fresh += kept == 8;
	}
	ck_assert_uint_gt(torn, 300);
	ck_assert_uint_gt(old + fresh, 0);
}
END_TEST

START_TEST(any_of_several_unflushed_values_may_be_left)
{
	unsigned seen[4] = { 0 };

	for (unsigned round = 0; round < 200; round++) {
		ck_assert_int_eq(do_op(ENV_DISK_WRITE, 0, 1, true), 0);
		ck_assert_int_eq(do_op(ENV_DISK_WRITE, 0, 2, false), 0);
		ck_assert_int_eq(do_op(ENV_DISK_WRITE, 0, 3, false), 0);
		restart(WORLD_CUT_ANY);
		for (unsigned i = 1; i < 4; i++)
			seen[i] += sectors(0, (uint8_t)i);
		ck_assert_uint_eq(sectors(0, 0), 0);
	}
	for (unsigned i = 1; i < 4; i++)
		ck_assert_uint_gt(seen[i], 100);
}
END_TEST

START_TEST(what_an_old_life_asks_has_no_effect)
{
	int old_fd = fd;

	restart(WORLD_CUT_KEEP);
	ck_assert_int_ne(fd, old_fd);
	fd = old_fd;
	ck_assert_int_eq(do_op(ENV_DISK_WRITE, 0, 5, true), -EIO);
	ck_assert_uint_eq(sectors(0, 0), 8);
}
END_TEST

START_TEST(a_failed_flush_may_have_lost_what_it_covered)
{
	unsigned lost = 0, kept = 0;

	for (unsigned round = 0; round < 100; round++) {
		ck_assert_int_eq(do_op(ENV_DISK_WRITE, 0, 1, true), 0);
		ck_assert_int_eq(do_op(ENV_DISK_WRITE, 0, 2, false), 0);
		world_disk_fault(world, disk, WORLD_FAULT_FLUSH);
		ck_assert_int_eq(do_op(ENV_DISK_FLUSH, 0, 0, false), -EIO);
		ck_assert_int_eq(do_op(ENV_DISK_FLUSH, 0, 0, false), 0);
		ck_assert_uint_eq(sectors(0, 2), 8);
		restart(WORLD_CUT_KEEP);
		lost += sectors(0, 1) == 8;
		kept += sectors(0, 2) == 8;
	}
	ck_assert_uint_eq(lost + kept, 100);
	ck_assert_uint_gt(lost, 20);
	ck_assert_uint_gt(kept, 20);
}
END_TEST

static const struct {
	enum world_fault fault;
	int read, write, flush;
} faults[] = {
	{ WORLD_FAULT_NONE, 0, 0, 0 },
	{ WORLD_FAULT_GONE, -EIO, -EIO, -EIO },
	{ WORLD_FAULT_WRITES, 0, -EIO, -EIO },
	{ WORLD_FAULT_SLOW, 0, 0, 0 },
};

START_TEST(faults_do_what_they_say_until_taken_back)
{
	world_disk_fault(world, disk, faults[_i].fault);
	ck_assert_int_eq(do_op(ENV_DISK_READ, 0, 0, false), faults[_i].read);
	ck_assert_int_eq(do_op(ENV_DISK_WRITE, 0, 1, false), faults[_i].write);
	ck_assert_int_eq(do_op(ENV_DISK_FLUSH, 0, 0, false), faults[_i].flush);
	world_disk_fault(world, disk, WORLD_FAULT_NONE);
	ck_assert_int_eq(do_op(ENV_DISK_WRITE, 0, 1, false), 0);
}
END_TEST

START_TEST(a_stuck_disk_answers_when_it_is_let_go)
{
	struct request *write;

	world_disk_fault(world, disk, WORLD_FAULT_STUCK);
	write = ask(ENV_DISK_WRITE, 0, 1, true);
	world_run_for(world, 3600 * NS_PER_S);
	ck_assert(!write->done);
	world_disk_fault(world, disk, WORLD_FAULT_NONE);
	ck_assert_int_eq(answer(write), 0);
	ck_assert_uint_eq(sectors(0, 1), 8);
}
END_TEST

START_TEST(a_bad_sector_reads_again_once_written)
{
	world_disk_bad(world, disk, 4096 + 512, 512);
	ck_assert_int_eq(do_op(ENV_DISK_READ, 0, 0, false), 0);
	ck_assert_int_eq(do_op(ENV_DISK_READ, 4096, 0, false), -EIO);
	ck_assert_int_eq(do_op(ENV_DISK_WRITE, 4096, 1, false), 0);
	ck_assert_int_eq(do_op(ENV_DISK_READ, 4096, 0, false), 0);
}
END_TEST

START_TEST(a_disk_comes_back_with_what_it_had)
{
	ck_assert_int_eq(do_op(ENV_DISK_WRITE, 0, 1, true), 0);
	world_disk_remember(world, disk);
	ck_assert_int_eq(do_op(ENV_DISK_WRITE, 0, 2, true), 0);
	world_disk_recall(world, disk);
	ck_assert_uint_eq(sectors(0, 1), 8);
}
END_TEST

START_TEST(beyond_its_end_there_is_nothing)
{
	ck_assert_int_eq(do_op(ENV_DISK_READ, SIZE - 512, 0, false), -ENODATA);
	ck_assert_int_eq(do_op(ENV_DISK_WRITE, SIZE, 0, false), -ENOSPC);
}
END_TEST

static uint64_t a_life(uint64_t seed)
{
	uint64_t sum = 0;

	setup_seed(seed);
	for (unsigned i = 0; i < 50; i++) {
		struct request *one = ask(ENV_DISK_WRITE, world_below(world, 15) * 4096,
					  (uint8_t)world_random(world), world_chance(world, 50));
		struct request *two = ask(ENV_DISK_WRITE, world_below(world, 15) * 4096,
					  (uint8_t)world_random(world), false);

		answer(one);
		answer(two);
		if (world_chance(world, 10))
			restart(WORLD_CUT_ANY);
		sum = sum * 31 + env_now_ns(world_env(world));
	}
	for (unsigned i = 0; i < SIZE; i++)
		sum = sum * 31 + world_disk_bytes(world, disk)[i];
	world_free(world);
	return sum;
}

START_TEST(the_same_seed_gives_the_same_life)
{
	teardown();
	ck_assert(a_life(5) == a_life(5));
	ck_assert(a_life(5) != a_life(6));
	setup();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("sim_world");
	TCase *tcase = tcase_create("sim_world");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 300); /* simulations are slow on a busy machine */
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, what_was_written_is_read_but_not_durable);
	tcase_add_test(tcase, fua_and_flush_outlive_a_power_cut);
	tcase_add_test(tcase, a_flush_does_not_cover_what_was_in_flight_when_it_began);
	tcase_add_test(tcase, a_late_flush_never_brings_back_what_fua_replaced);
	tcase_add_test(tcase, a_cut_tears_what_is_in_flight_at_sectors);
	tcase_add_test(tcase, any_of_several_unflushed_values_may_be_left);
	tcase_add_test(tcase, what_an_old_life_asks_has_no_effect);
	tcase_add_test(tcase, a_failed_flush_may_have_lost_what_it_covered);
	tcase_add_loop_test(tcase, faults_do_what_they_say_until_taken_back, 0,
			    (int)ARRAY_LEN(faults));
	tcase_add_test(tcase, a_stuck_disk_answers_when_it_is_let_go);
	tcase_add_test(tcase, a_bad_sector_reads_again_once_written);
	tcase_add_test(tcase, a_disk_comes_back_with_what_it_had);
	tcase_add_test(tcase, beyond_its_end_there_is_nothing);
	tcase_add_test(tcase, the_same_seed_gives_the_same_life);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
