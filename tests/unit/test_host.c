/* SPDX-License-Identifier: MIT */
/* What is known of this machine. */
#include <check.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/host.h"

START_TEST(there_are_no_more_processors_than_the_machine_has)
{
	double cpus = host_cpus();

	ck_assert_double_gt(cpus, 0);
	ck_assert_double_le(cpus, (double)sysconf(_SC_NPROCESSORS_ONLN));
}
END_TEST

static double cpu_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Two that share a processor wait for each other; one's own work is no waiting. */
START_TEST(a_thread_waits_while_another_has_its_processor)
{
	double before = host_wait_s(gettid()), begin = cpu_s(), waited;
	cpu_set_t set;
	pid_t other;

	if (before < 0)
		return; /* a kernel without the figures */
	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(set), &set), 0);
	other = fork();
	if (other == 0)
		for (;;)
			;
	while (cpu_s() < begin + 0.05)
		;
	waited = host_wait_s(gettid()) - before;
	kill(other, SIGKILL);
	waitpid(other, NULL, 0);
	ck_assert_double_gt(waited, 0.01);
}
END_TEST

START_TEST(of_a_thread_that_is_not_ours_nothing_is_known)
{
	ck_assert_double_eq(host_wait_s(1 << 30), -1);
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
	tcase_add_test(tc, a_thread_waits_while_another_has_its_processor);
	tcase_add_test(tc, of_a_thread_that_is_not_ours_nothing_is_known);
	tcase_add_test(tc, nothing_is_known_of_what_is_not_connected);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
