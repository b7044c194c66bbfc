/* SPDX-License-Identifier: MIT */
/* What is known of this machine. */
#include <check.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/host.h"

START_TEST(there_are_no_more_processors_than_the_machine_has)
{
	double cpus = host_cpus();

	ck_assert_double_gt(cpus, 0);
	ck_assert_double_le(cpus, (double)sysconf(_SC_NPROCESSORS_ONLN));
}
END_TEST

START_TEST(a_connection_within_the_loopback_is_local_and_has_no_speed)
{
	/* The second address of the loopback is nobody's, and local all the same. */
	static const uint32_t addresses[] = { INADDR_LOOPBACK, INADDR_LOOPBACK + 1 };
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(addresses[_i]) };
	socklen_t size = sizeof(sin);
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
	struct host_link link;

	ck_assert_int_eq(bind(listener, (struct sockaddr *)&sin, sizeof(sin)), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	getsockname(listener, (struct sockaddr *)&sin, &size);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	host_link(fd, &link);
	ck_assert(link.local);
	ck_assert_uint_eq(link.bytes_s, 0);
	close(fd);
	close(listener);
}
END_TEST

START_TEST(nothing_is_known_of_what_is_not_connected)
{
	struct host_link link = { .local = true };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	host_link(fd, &link);
	ck_assert(!link.local);
	ck_assert_str_eq(link.interface, "");
	close(fd);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("host");
	TCase *tc = tcase_create("host");
	SRunner *runner;
	int failed;

	tcase_add_test(tc, there_are_no_more_processors_than_the_machine_has);
	tcase_add_loop_test(tc, a_connection_within_the_loopback_is_local_and_has_no_speed, 0, 2);
	tcase_add_test(tc, nothing_is_known_of_what_is_not_connected);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
