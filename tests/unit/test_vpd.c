/* SPDX-License-Identifier: MIT */
/* Vital product data over block sizes: identity, limits, and the list of pages. */
#include <check.h>

#include "tests/fake/scsi_rig.h"

static const struct {
	uint32_t block, physical, optimal;
} shapes[] = { { 512, 512, 0 },
	       { 512, 4096, 262144 },
	       { 4096, 4096, 1 * MIB },
	       { 512, 512, 32 * MIB } };

static unsigned features = BLK_FUA;
static struct scsi_nexus *nexus;
static struct fake_blk *fake;

static void start(unsigned shape, uint32_t oui, bool write_cache)
{
	struct scsi_lu_config config;

	rig_start(false);
	fake = fake_blk_new(rig_env, 8 * MIB, shapes[shape].block, features);
	fake->blk.physical_block = shapes[shape].physical;
	fake->blk.optimal_io = shapes[shape].optimal;
	config = rig_config(&fake->blk);
	config.oui = oui;
	config.write_cache = write_cache;
	rig_map_config(0, &config);
	nexus = rig_nexus(1);
}

static void stop(void)
{
	scsi_nexus_free(nexus);
	rig_stop();
}

static const uint8_t *page(uint8_t code, unsigned *length)
{
	struct rig_task *rig = rig_do(nexus, 0, CDB(0x12, 1, code, 0x04, 0));

	ck_assert_uint_eq(rig->task.status, SCSI_GOOD);
	ck_assert_uint_eq(rig->data[0], 0);
	ck_assert_uint_eq(rig->data[1], code);
	*length = get_be16(rig->data + 2);
	ck_assert_uint_eq(rig->task.data_in_length, *length + 4);
	return rig->data + 4;
}

START_TEST(page_00_lists_exactly_the_pages_there_are_in_order)
{
	static const uint8_t want[] = { 0x00, 0x80, 0x83, 0x86, 0xb0, 0xb1, 0xb2 };
	unsigned length, code;

	start(0, 0, false);
	ck_assert_mem_eq(page(0x00, &length), want, sizeof(want));
	ck_assert_uint_eq(length, sizeof(want));
	for (code = 0; code < 256; code++) {
		struct rig_task *rig = rig_do(nexus, 0, CDB(0x12, 1, (uint8_t)code, 0, 255));

		ck_assert_uint_eq(rig_sense(rig),
				  memchr(want, (int)code, sizeof(want)) ? 0 : 0x052400);
	}
	stop();
}
END_TEST

START_TEST(the_serial_number_is_the_uuid)
{
	unsigned length;

	start(0, 0, false);
	ck_assert_mem_eq(page(0x80, &length), "00112233-4455-6677-8899-aabbccddeeff", 36);
	ck_assert_uint_eq(length, 36);
	stop();
}
END_TEST

/* The designator with this association and type; asserts that the list adds up. */
static const uint8_t *find(const uint8_t *d, unsigned length, unsigned kind)
{
	const uint8_t *end = d + length, *found = NULL;

	for (; d < end; d += 4 + d[3]) {
		ck_assert_int_eq(d + 4 + d[3] <= end, 1);
		if ((d[1] & 0x3f) == kind) {
			ck_assert_ptr_null(found);
			found = d;
		}
	}
	ck_assert_ptr_eq(d, end);
	ck_assert_ptr_nonnull(found);
	return found;
}

START_TEST(identity_follows_from_the_uuid)
{
	static const uint8_t naa3[] = { 0x01, 0x03, 0,    8,    0x30, 0x11,
					0x22, 0x33, 0x44, 0x55, 0x66, 0x77 };
	static const uint8_t naa6[] = { 0x01, 0x03, 0,    16,   0x6a, 0xbc, 0xde, 0xf3, 0x44, 0x55,
					0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff };
	const uint8_t *d, *p;
	unsigned length;

	start(0, _i ? 0xabcdef : 0, false);
	d = page(0x83, &length);
	p = find(d, length, 0x03);
	ck_assert_mem_eq(p, _i ? naa6 : naa3, _i ? sizeof(naa6) : sizeof(naa3));
	p = find(d, length, 0x01);
	ck_assert_uint_eq(p[0], 0x02);
	ck_assert_uint_eq(p[3], 44);
	ck_assert_mem_eq(p + 4, "YOKE    00112233-4455-6677-8899-aabbccddeeff", 44);
	stop();
}
END_TEST

START_TEST(the_port_is_that_of_the_nexus_and_the_device_has_its_name)
{
	static const char port[] = RIG_NAME ",t,0x0001";
	const uint8_t *d, *p;
	unsigned length;

	start(0, 0, false);
	d = page(0x83, &length);
	p = find(d, length, 0x14);
	ck_assert_uint_eq(p[0], 0x51);
	ck_assert_uint_eq(p[1], 0x94);
	ck_assert_uint_eq(get_be32(p + 4), 1);
	p = find(d, length, 0x15);
	ck_assert_uint_eq(get_be32(p + 4), 1);
	p = find(d, length, 0x18);
	ck_assert_uint_eq(p[0], 0x53);
	ck_assert_str_eq((const char *)p + 4, port);
	ck_assert_uint_eq(p[3], align_up(sizeof(port), 4));
	p = find(d, length, 0x28);
	ck_assert_str_eq((const char *)p + 4, RIG_NAME);
	stop();
}
END_TEST

START_TEST(block_limits_are_those_of_the_device)
{
	uint32_t block = shapes[_i].block, optimal = shapes[_i].optimal;
	const uint8_t *d;
	unsigned length, i, thin, grain;

	for (thin = 0; thin < 2; thin++) {
		features = BLK_FUA | (thin ? BLK_UNMAP | BLK_UNMAP_ZEROES | BLK_ATOMIC : 0);
		grain = thin && shapes[_i].physical > block ? shapes[_i].physical / block : 0;
		start((unsigned)_i, 0, false);
		d = page(0xb0, &length);
		ck_assert_uint_eq(length, 0x3c);
		ck_assert_uint_eq(d[0], 0); /* WSNZ */
		ck_assert_uint_eq(d[1], 64 * KIB / block);
		ck_assert_uint_eq(get_be16(d + 2), shapes[_i].physical / block);
		ck_assert_uint_eq(get_be32(d + 4), SCSI_TRANSFER_MAX / block);
		ck_assert_uint_eq(get_be32(d + 8),
				  optimal > SCSI_TRANSFER_MAX ? 0 : optimal / block);
		ck_assert_uint_eq(get_be32(d + 12), 0); /* prefetch: no limit */
		ck_assert_uint_eq(get_be32(d + 16), thin ? 512 * MIB / block : 0);
		ck_assert_uint_eq(get_be32(d + 20), thin ? 256 : 0);
		ck_assert_uint_eq(get_be32(d + 24), grain);
		ck_assert_uint_eq(get_be32(d + 28), grain ? 0x80000000 : 0);
		ck_assert_uint_eq(get_be64(d + 32), 16 * MIB / block);
		ck_assert_uint_eq(get_be32(d + 40), thin ? 1 * MIB / block : 0);
		for (i = 44; i < 0x3c; i++)
			ck_assert_uint_eq(d[i], 0);
		stop();
	}
}
END_TEST

START_TEST(capacity_says_the_same_in_ten_and_sixteen_bytes)
{
	uint32_t block = shapes[_i].block;
	struct rig_task *rig;

	start((unsigned)_i, 0, false);
	rig_clear_ua(nexus, 0);
	rig = rig_do(nexus, 0, CDB(0x25));
	ck_assert_uint_eq(rig->task.data_in_length, 8);
	ck_assert_uint_eq(get_be32(rig->data), 8 * MIB / block - 1);
	ck_assert_uint_eq(get_be32(rig->data + 4), block);
	rig = rig_do(nexus, 0, CDB(0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0));
	ck_assert_uint_eq(rig->task.data_in_length, 32);
	ck_assert_uint_eq(get_be64(rig->data), 8 * MIB / block - 1);
	ck_assert_uint_eq(get_be32(rig->data + 8), block);
	ck_assert_uint_eq(rig->data[12], 0);
	ck_assert_uint_eq(1u << rig->data[13], shapes[_i].physical / block);
	ck_assert_uint_eq(get_be16(rig->data + 14), 0);
	stop();
}
END_TEST

START_TEST(a_capacity_beyond_32_bits_sends_hosts_to_sixteen)
{
	static const uint64_t blocks[] = { 0xffffffff, 0x100000000, 0x100000001 };
	struct rig_task *rig;

	start(0, 0, false);
	rig_clear_ua(nexus, 0);
	fake->blk.size_bytes = blocks[_i] * 512;
	rig = rig_do(nexus, 0, CDB(0x25));
	ck_assert_uint_eq(get_be32(rig->data), _i ? 0xffffffff : 0xfffffffe);
	stop();
}
END_TEST

START_TEST(the_rest_is_true_too)
{
	const uint8_t *d;
	unsigned length;

	start(0, 0, _i);
	d = page(0x86, &length);
	ck_assert_uint_eq(length, 0x3c);
	ck_assert_uint_eq(d[1], 0x07);
	ck_assert_uint_eq(d[2], (unsigned)_i);
	d = page(0xb1, &length);
	ck_assert_uint_eq(length, 0x3c);
	ck_assert_uint_eq(get_be16(d), 1);
	d = page(0xb2, &length);
	ck_assert_uint_eq(length, 4);
	ck_assert_uint_eq(get_be32(d), 0);
	stop();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("vpd");
	TCase *tc = tcase_create("vpd");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tc, page_00_lists_exactly_the_pages_there_are_in_order);
	tcase_add_test(tc, the_serial_number_is_the_uuid);
	tcase_add_loop_test(tc, identity_follows_from_the_uuid, 0, 2);
	tcase_add_test(tc, the_port_is_that_of_the_nexus_and_the_device_has_its_name);
	tcase_add_loop_test(tc, block_limits_are_those_of_the_device, 0, 4);
	tcase_add_loop_test(tc, capacity_says_the_same_in_ten_and_sixteen_bytes, 0, 4);
	tcase_add_loop_test(tc, a_capacity_beyond_32_bits_sends_hosts_to_sixteen, 0, 3);
	tcase_add_loop_test(tc, the_rest_is_true_too, 0, 2);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
