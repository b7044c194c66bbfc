/* SPDX-License-Identifier: MIT */
/* The relay between libiscsi's descriptor and the target: nothing is lost, changed or overtaken. */
#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/tap.h"
#include "core/wire.h"

static struct ev_loop *ev;
static struct tap *tap;
static int fd, target;
static unsigned told;
static char said[200];

static void wrong(void *arg, const char *text)
{
	ck_assert_ptr_eq(arg, &fd);
	told++;
	strcpy(said, text);
}

static void setup(void)
{
	int pair[2];

	ev = ev_loop_new(EVFLAG_AUTO);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	fd = pair[0];
	target = pair[1];
	tap = tap_open(ev, fd, false, wrong, &fd);
	ck_assert_ptr_nonnull(tap);
	told = 0;
}

static void teardown(void)
{
	tap_close(tap);
	close(fd);
	if (target >= 0)
		close(target);
	ev_loop_destroy(ev);
}

/* A SCSI command or its answer, with 64 KiB of data of BYTE. */
static size_t make(uint8_t *pdu, uint8_t opcode, uint32_t itt, uint8_t byte)
{
	memset(pdu, 0, 48);
	pdu[0] = opcode;
	pdu[1] = 0x80;
	put_be32(pdu + 4, 65536);
	put_be32(pdu + 16, itt);
	put_be32(pdu + 24, itt);
	memset(pdu + 48, byte, 65536);
	return 48 + 65536;
}

/* Pushes 40 PDUs from one end to the other, far more than the sockets hold. */
static void push(int from, int to, uint8_t opcode)
{
	enum { PDUS = 40, SIZE = 48 + 65536 };
	uint8_t *sent = malloc((size_t)PDUS * SIZE), *got = malloc((size_t)PDUS * SIZE);
	size_t out = 0, in = 0;

	for (unsigned i = 0; i < PDUS; i++)
		make(sent + (size_t)i * SIZE, opcode, i, (uint8_t)i);
	while (in < (size_t)PDUS * SIZE) {
		ssize_t n = send(from, sent + out, (size_t)PDUS * SIZE - out, MSG_NOSIGNAL);

		out += n > 0 ? (size_t)n : 0;
		ev_run(ev, EVRUN_NOWAIT);
		n = recv(to, got + in, (size_t)PDUS * SIZE - in, 0);
		in += n > 0 ? (size_t)n : 0;
	}
	ck_assert_int_eq(memcmp(sent, got, in), 0);
	free(sent);
	free(got);
}

START_TEST(both_ways_everything_arrives_as_it_was)
{
	push(fd, target, 0x01);
	push(target, fd, 0x21);
	ck_assert_uint_eq(told, 0);
	push(target, fd, 0x21);
	ck_assert_uint_eq(told, 1);
	ck_assert_msg(strncmp(said, "answered twice", 14) == 0, "%s", said);
}
END_TEST

START_TEST(what_was_sent_before_the_end_arrives_before_it)
{
	char got[8];

	ck_assert_int_eq(send(target, "goodbye", 7, 0), 7);
	close(target);
	target = -1;
	for (unsigned i = 0; i < 10; i++)
		ev_run(ev, EVRUN_NOWAIT);
	ck_assert_int_eq(recv(fd, got, 8, 0), 7);
	ck_assert_int_eq(memcmp(got, "goodbye", 7), 0);
	ck_assert_int_eq(recv(fd, got, 8, 0), 0);
}
END_TEST

START_TEST(closing_it_closes_the_connection)
{
	char got[8];

	tap_close(tap);
	tap = NULL;
	ck_assert_int_eq(recv(target, got, 8, 0), 0);
	ck_assert_int_eq(recv(fd, got, 8, 0), 0);
	ck_assert_int_ge(fcntl(fd, F_GETFD), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("tap");
	TCase *tcase = tcase_create("tap");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, both_ways_everything_arrives_as_it_was);
	tcase_add_test(tcase, what_was_sent_before_the_end_arrives_before_it);
	tcase_add_test(tcase, closing_it_closes_the_connection);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
