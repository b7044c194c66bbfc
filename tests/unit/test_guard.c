/* SPDX-License-Identifier: MIT */
/* What a LUN carries is found, wherever its signature lies, and reading it is cheap. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/guard.h"

static struct bench_lun lun;
static struct bench_fault fault;
static char carries[96];
static int disk;
static uint64_t read_bytes;
static bool failing;

static int read_disk(void *arg, unsigned index, uint64_t offset, void *buf, size_t length,
		     struct bench_fault *why)
{
	ck_assert_ptr_eq(arg, &disk);
	ck_assert_uint_eq(index, 0);
	ck_assert_uint_eq(offset % lun.block_bytes, 0);
	ck_assert_uint_eq(length % lun.block_bytes, 0);
	ck_assert_uint_le(offset + length, lun.size_bytes);
	read_bytes += length;
	if (failing) {
		snprintf(why->text, sizeof(why->text), "LUN 0: medium error");
		return -EIO;
	}
	ck_assert_int_eq(pread(disk, buf, length, (off_t)offset), length);
	return 0;
}

static const struct guard guard = { &lun, 1, read_disk, &disk };

static void setup(void)
{
	disk = memfd_create("disk", 0);
	lun = (struct bench_lun){ .size_bytes = 64 * MIB, .block_bytes = 512 };
	read_bytes = 0;
	failing = false;
	ck_assert_int_eq(ftruncate(disk, (off_t)lun.size_bytes), 0);
}

static void teardown(void)
{
	close(disk);
}

static void put(uint64_t offset, const void *bytes, size_t length)
{
	ck_assert_int_eq(pwrite(disk, bytes, length, (off_t)offset), length);
}

static const char *look(void)
{
	ck_assert_msg(guard_look(&guard, 0, carries, sizeof(carries), &fault) == 0, "%s",
		      fault.text);
	return carries;
}

static void run(const char *program)
{
	char command[128];

	snprintf(command, sizeof(command),
		 "PATH=$PATH:/usr/sbin:/sbin %s /proc/%d/fd/%d >/dev/null 2>&1", program, getpid(),
		 disk);
	ck_assert_msg(system(command) == 0, "%s", command);
}

START_TEST(zeroes_carry_nothing)
{
	ck_assert_str_eq(look(), "");
}
END_TEST

START_TEST(data_of_the_generator_itself_carry_nothing)
{
	uint64_t state = 88172645463325252, words[512];

	for (uint64_t at = 0; at < lun.size_bytes; at += sizeof(words)) {
		for (unsigned i = 0; i < ARRAY_LEN(words); i++) {
			state ^= state << 13;
			state ^= state >> 7;
			state ^= state << 17;
			words[i] = state;
		}
		put(at, words, sizeof(words));
	}
	ck_assert_str_eq(look(), "");
}
END_TEST

START_TEST(a_filesystem_is_named)
{
	run("mkfs.ext4 -qF");
	ck_assert_str_eq(look(), "ext4 filesystem");
}
END_TEST

START_TEST(swap_space_is_named)
{
	run("mkswap");
	ck_assert_str_eq(look(), "swap");
}
END_TEST

/* One partition from sector 2048 on. */
static void put_partition_table(unsigned char type)
{
	unsigned char entry[16] = { 0,           0,    0, 0, type, 0,    0, 0,
				    /* LBA */ 0, 0x08, 0, 0, 0,    0x10, 0, 0 };

	put(446, entry, sizeof(entry));
	put(510, "\x55\xaa", 2);
}

START_TEST(a_partition_table_is_named)
{
	put_partition_table(0x83);
	ck_assert_str_eq(look(), "dos partition table");
}
END_TEST

START_TEST(volumes_of_esxi_lie_behind_the_first_mebibyte)
{
	put(MIB, "\x0d\xd0\x01\xc0", 4);
	ck_assert_str_eq(look(), "VMFS_volume_member member");
}
END_TEST

START_TEST(a_physical_volume_of_lvm_is_named_even_if_its_checksum_is_wrong)
{
	put(512, "LABELONE\x01\0\0\0\0\0\0\0\0\0\0\0\x20\0\0\0LVM2 001", 32);
	ck_assert_str_eq(look(), "LVM2_member member");
}
END_TEST

START_TEST(a_member_of_an_array_is_found_at_the_end)
{
	/* md 0.90: in the last whole 64 KiB but one; magic, then version 0.90.0. */
	unsigned char superblock[4096] = { 0xfc, 0x4e, 0x2b, 0xa9, 0, 0, 0, 0, 90 };

	put(lun.size_bytes - 64 * KIB, superblock, sizeof(superblock));
	ck_assert_str_eq(look(), "linux_raid_member member");
}
END_TEST

START_TEST(signatures_of_two_kinds_are_both_named)
{
	run("mkfs.ext4 -qF");
	put_partition_table(0x83);
	ck_assert_str_eq(look(), "ext4 filesystem, dos partition table");
}
END_TEST

START_TEST(a_huge_lun_costs_a_few_mebibytes)
{
	lun.size_bytes = 100 * 1024 * GIB;
	lun.block_bytes = 4096;
	ck_assert_int_eq(ftruncate(disk, (off_t)lun.size_bytes), 0);
	put(lun.size_bytes - 64 * KIB, "\xfc\x4e\x2b\xa9\0\0\0\0\x5a", 9);
	ck_assert_str_eq(look(), "linux_raid_member member");
	ck_assert_uint_le(read_bytes, 8 * MIB);
}
END_TEST

START_TEST(a_tiny_lun_is_read_once)
{
	lun.size_bytes = 64 * KIB;
	put_partition_table(0x07);
	ck_assert_str_eq(look(), "dos partition table");
	ck_assert_uint_eq(read_bytes, 64 * KIB);
}
END_TEST

START_TEST(what_cannot_be_read_is_not_taken_for_empty)
{
	failing = true;
	ck_assert_int_eq(guard_look(&guard, 0, carries, sizeof(carries), &fault), -EIO);
	ck_assert_str_eq(fault.text, "LUN 0: medium error");
}
END_TEST

START_TEST(a_lun_that_carries_something_is_refused_by_name)
{
	lun.lun = 7;
	ck_assert_int_eq(guard_check(&guard, "iqn.t", &fault), 0);
	put_partition_table(0x83);
	ck_assert_int_eq(guard_check(&guard, "iqn.t", &fault), -EEXIST);
	ck_assert_str_eq(fault.text,
			 "LUN 7 of iqn.t carries: dos partition table. --no-fill with a "
			 "load that only reads leaves it as it is; --destroy overwrites "
			 "it");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("guard");
	TCase *tcase = tcase_create("guard");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, zeroes_carry_nothing);
	tcase_add_test(tcase, data_of_the_generator_itself_carry_nothing);
	tcase_add_test(tcase, a_filesystem_is_named);
	tcase_add_test(tcase, swap_space_is_named);
	tcase_add_test(tcase, a_partition_table_is_named);
	tcase_add_test(tcase, volumes_of_esxi_lie_behind_the_first_mebibyte);
	tcase_add_test(tcase, a_physical_volume_of_lvm_is_named_even_if_its_checksum_is_wrong);
	tcase_add_test(tcase, a_member_of_an_array_is_found_at_the_end);
	tcase_add_test(tcase, signatures_of_two_kinds_are_both_named);
	tcase_add_test(tcase, a_huge_lun_costs_a_few_mebibytes);
	tcase_add_test(tcase, a_tiny_lun_is_read_once);
	tcase_add_test(tcase, what_cannot_be_read_is_not_taken_for_empty);
	tcase_add_test(tcase, a_lun_that_carries_something_is_refused_by_name);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
