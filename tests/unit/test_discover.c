/* SPDX-License-Identifier: MIT */
/* Discovery against portals that do not answer as they should. */
#include <check.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/discover.h"

static struct bench_portal portal = { .target = "iqn.2026-01.org.example:disk" };
static struct bench_portal found[BENCH_PORTALS_MAX];
static struct bench_chap chap;
static struct bench_fault fault;
static unsigned count;

/* A socket of the loopback, listening or only bound, and its address. */
static int local_socket(bool listening)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(sin);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	ck_assert_int_eq(bind(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&sin, &length), 0);
	if (listening)
		ck_assert_int_eq(listen(fd, 1), 0);
	snprintf(portal.address, sizeof(portal.address), "127.0.0.1:%u", ntohs(sin.sin_port));
	return fd;
}

START_TEST(a_portal_that_nobody_serves_is_named)
{
	int fd = local_socket(false);
	char says[300];

	ck_assert_int_lt(discover_portals(&portal, "iqn.2026-01.org.example:host", &chap, found,
					  &count, &fault),
			 0);
	snprintf(says, sizeof(says), "%s: discovery failed", portal.address);
	ck_assert_msg(strstr(fault.text, says) == fault.text, "%s", fault.text);
	close(fd);
}
END_TEST

START_TEST(a_server_that_hangs_up_is_no_portal)
{
	int fd = local_socket(true);
	pid_t child = fork();

	if (child == 0) {
		close(accept(fd, NULL, NULL));
		_exit(0);
	}
	ck_assert_int_lt(discover_portals(&portal, "iqn.2026-01.org.example:host", &chap, found,
					  &count, &fault),
			 0);
	ck_assert_msg(strstr(fault.text, "discovery failed"), "%s", fault.text);
	close(fd);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("discover");
	TCase *tc = tcase_create("discover");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tc, 30);
	tcase_add_test(tc, a_portal_that_nobody_serves_is_named);
	tcase_add_test(tc, a_server_that_hangs_up_is_no_portal);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
