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
#include "core/wire.h"

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

static bool get(int fd, void *buf, size_t length)
{
	return length == 0 || recv(fd, buf, length, MSG_WAITALL) == (ssize_t)length;
}

/* Takes every login, and answers SendTargets with TEXT. */
static void serve(int listener, const char *targets, size_t targets_length)
{
	static const char keys[] = "HeaderDigest=None";
	uint8_t request[48], answer[48], data[8192];
	int fd = accept(listener, NULL, NULL);
	uint32_t statsn = 1;

	while (get(fd, request, 48) && get(fd, data, (get_be24(request + 5) + 3u) & ~3u)) {
		bool login = (request[0] & 0x3f) == 0x03;
		const char *text = login ? keys : targets;
		size_t length = login ? sizeof(keys) : targets_length;
		uint32_t cmdsn = get_be32(request + 24);

		memset(answer, 0, sizeof(answer));
		answer[0] = login ? 0x23 : 0x24;
		answer[1] = login ? request[1] : 0x80;
		put_be24(answer + 5, (uint32_t)length);
		memcpy(answer + 16, request + 16, 4);
		if (login)
			memcpy(answer + 8, request + 8, 6);
		else
			put_be32(answer + 20, UINT32_MAX);
		put_be32(answer + 24, statsn++);
		put_be32(answer + 28, cmdsn + !(request[0] & 0x40));
		put_be32(answer + 32, cmdsn + 16);
		memset(data, 0, sizeof(data));
		memcpy(data, text, length);
		send(fd, answer, 48, MSG_NOSIGNAL);
		send(fd, data, (length + 3) & ~(size_t)3, MSG_NOSIGNAL);
	}
}

START_TEST(names_that_would_play_with_a_terminal_are_left_out)
{
	static const char text[] = "TargetName=iqn.2026-01.org.example:\033[2Ja\0"
				   "TargetAddress=192.0.2.1:3260,1\0"
				   "TargetName=iqn.2026-01.org.example:b\0"
				   "TargetAddress=192.0.2.2:3260,1\0"
				   "TargetAddress=192.0.\a.3:3260,1\0"
				   "TargetName=iqn.2026-01.org.example:\377c\0"
				   "TargetAddress=192.0.2.4:3260,1";
	int fd = local_socket(true);
	int rc;

	portal.target[0] = '\0';
	if (fork() == 0) {
		serve(fd, text, sizeof(text));
		_exit(0);
	}
	rc = discover_portals(&portal, "iqn.2026-01.org.example:host", &chap, found, &count,
			      &fault);
	ck_assert_msg(rc == 0, "%s", fault.text);
	ck_assert_uint_eq(count, 2);
	ck_assert_str_eq(found[0].address, portal.address);
	ck_assert_str_eq(found[1].address, "192.0.2.2:3260");
	ck_assert_str_eq(found[1].target, "iqn.2026-01.org.example:b");
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
	tcase_add_test(tc, names_that_would_play_with_a_terminal_are_left_out);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
