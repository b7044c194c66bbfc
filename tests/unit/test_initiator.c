/* SPDX-License-Identifier: MIT */
/* A session against a target that answers as the address of a read says. */
#include <check.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/initiator.h"
#include "core/wire.h"

/* What the target does with a read of this block. */
enum lba {
	LBA_GOOD,
	LBA_BUSY,
	LBA_FULL,
	LBA_ATTENTION,
	LBA_MEDIUM,
	LBA_BECOMING_READY,
	LBA_RESERVED,
	LBA_SHORT,
	LBA_REJECT,
	LBA_SILENT,
	LBA_HANG_UP,
	LBA_COUNT
};

#define BLOCK 512
#define COMMANDS 8

static struct {
	int listener;
	pthread_t thread;
	unsigned attentions; /* that TEST UNIT READY meets */
	bool refuse, redirect, hang_up;
	unsigned logins, ready_tests;
	uint32_t statsn;
	_Atomic int connection;
} target;

static bool get(int fd, void *buf, size_t length)
{
	return length == 0 || recv(fd, buf, length, MSG_WAITALL) == (ssize_t)length;
}

static void put(int fd, const uint8_t header[48], const void *data, size_t length)
{
	static const uint8_t zeroes[4];

	send(fd, header, 48, MSG_NOSIGNAL);
	send(fd, data, length, MSG_NOSIGNAL);
	send(fd, zeroes, -length & 3, MSG_NOSIGNAL);
}

static void make_header(uint8_t answer[48], const uint8_t request[48], uint8_t opcode,
			uint8_t flags, size_t length)
{
	uint32_t cmdsn = get_be32(request + 24);

	memset(answer, 0, 48);
	answer[0] = opcode;
	answer[1] = flags;
	put_be24(answer + 5, (uint32_t)length);
	memcpy(answer + 16, request + 16, 4);
	put_be32(answer + 24, target.statsn++);
	put_be32(answer + 28, cmdsn + !(request[0] & 0x40)); /* immediate ones take none */
	put_be32(answer + 32, cmdsn + 64);
}

static void answer_login(int fd, const uint8_t request[48])
{
	static const char moved[] = "TargetAddress=";
	uint8_t answer[48];
	char text[64];
	int length = 0;
	struct sockaddr_in sin;
	socklen_t size = sizeof(sin);

	target.logins++;
	make_header(answer, request, 0x23, request[1], 0);
	memcpy(answer + 8, request + 8, 6);
	put_be16(answer + 14, 1);
	if (target.refuse)
		put_be16(answer + 36, 0x0203);
	if (target.redirect) {
		target.redirect = false;
		put_be16(answer + 36, 0x0101);
		getsockname(target.listener, (struct sockaddr *)&sin, &size);
		length =
			snprintf(text, sizeof(text), "%s127.0.0.1:%u", moved, ntohs(sin.sin_port)) +
			1;
		put_be24(answer + 5, (uint32_t)length);
	}
	put(fd, answer, text, (size_t)length);
}

static void answer_status(int fd, const uint8_t request[48], uint8_t status, uint8_t key,
			  uint16_t code)
{
	uint8_t answer[48], sense[20] = { 0, 18, 0x70, [9] = 10 };
	size_t length = status == 2 ? sizeof(sense) : 0;

	make_header(answer, request, 0x21, 0x80, length);
	answer[3] = status;
	sense[4] = key;
	put_be16(sense + 14, code);
	put(fd, answer, sense, length);
}

static void answer_data(int fd, const uint8_t request[48], uint32_t missing)
{
	uint8_t answer[48], data[BLOCK];

	memset(data, 0xa5, sizeof(data));
	make_header(answer, request, 0x25, missing ? 0x83 : 0x81, BLOCK - missing);
	put_be32(answer + 44, missing);
	put(fd, answer, data, BLOCK - missing);
}

static void reject(int fd, const uint8_t request[48])
{
	uint8_t answer[48];

	make_header(answer, request, 0x3f, 0x80, 48);
	answer[2] = 0x04;
	put_be32(answer + 16, UINT32_MAX);
	put(fd, answer, request, 48);
}

/* False: the connection ends. */
static bool answer_command(int fd, const uint8_t request[48])
{
	if (request[32] == 0) {
		target.ready_tests++;
		answer_status(fd, request, target.attentions ? 2 : 0, 6, 0x2900);
		target.attentions -= target.attentions > 0;
		return true;
	}
	switch (get_be32(request + 34)) {
	case LBA_GOOD:
		answer_data(fd, request, 0);
		break;
	case LBA_BUSY:
		answer_status(fd, request, 0x08, 0, 0);
		break;
	case LBA_FULL:
		answer_status(fd, request, 0x28, 0, 0);
		break;
	case LBA_ATTENTION:
		answer_status(fd, request, 2, 6, 0x2900);
		break;
	case LBA_MEDIUM:
		answer_status(fd, request, 2, 3, 0x1100);
		break;
	case LBA_BECOMING_READY:
		answer_status(fd, request, 2, 2, 0x0401);
		break;
	case LBA_RESERVED:
		answer_status(fd, request, 0x18, 0, 0);
		break;
	case LBA_SHORT:
		answer_data(fd, request, 100);
		break;
	case LBA_REJECT:
		reject(fd, request);
		break;
	case LBA_HANG_UP:
		return false;
	}
	return true;
}

static void serve(int fd)
{
	uint8_t request[48], answer[48], data[8192];

	while (!target.hang_up && get(fd, request, 48) &&
	       get(fd, data, (get_be24(request + 5) + 3) & ~3u)) {
		switch (request[0] & 0x3f) {
		case 0x03:
			answer_login(fd, request);
			break;
		case 0x01:
			if (!answer_command(fd, request))
				return;
			break;
		case 0x06:
			make_header(answer, request, 0x26, 0x80, 0);
			put(fd, answer, "", 0);
			return;
		}
	}
}

static void *target_main(void *arg)
{
	int fd;

	(void)arg;
	while ((fd = accept(target.listener, NULL, NULL)) >= 0) {
		target.connection = fd;
		serve(fd);
		close(fd);
	}
	return NULL;
}

static struct ev_loop *ev;
static struct initiator_loop loop;
static struct initiator initiator;
static struct initiator_cmd cmds[COMMANDS];
static enum initiator_outcome outcomes[COMMANDS];
static unsigned answered, ups, downs;
static char reason[160], address[64];
static uint8_t buf[COMMANDS][BLOCK];

static void on_up(struct initiator *in)
{
	(void)in;
	ups++;
}

static void on_down(struct initiator *in, const char *why)
{
	(void)in;
	/* Its commands come after. */
	downs++;
	snprintf(reason, sizeof(reason), "%s", why);
}

static void on_done(struct initiator_cmd *cmd, enum initiator_outcome outcome)
{
	outcomes[cmd - cmds] = outcome;
	answered++;
	if (outcome == INITIATOR_LOST)
		ck_assert_uint_eq(downs, 1);
}

static void on_timeout(struct ev_loop *l, struct ev_timer *timer, int revents)
{
	(void)l, (void)timer, (void)revents;
	ck_abort_msg("nothing happened for 20 s; down %u times: %s", downs, reason);
}

/* Turns the loop until *COUNT is WANTED. */
static void until(const unsigned *count, unsigned wanted)
{
	struct ev_timer timer;

	ev_timer_init(&timer, on_timeout, 20, 0);
	ev_timer_start(ev, &timer);
	while (*count != wanted)
		ev_run(ev, EVRUN_ONCE);
	ev_timer_stop(ev, &timer);
}

static void setup(void)
{
	static const struct bench_chap no_chap;
	static const unsigned luns[] = { 0, 300 };
	static const struct initiator_ops ops = { .up = on_up, .down = on_down };
	struct sockaddr_in sin = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(sin);
	struct initiator_conf conf = { .portal = address,
				       .target = "iqn.2026-01.org.example:disk",
				       .name = "iqn.2026-01.org.example:host",
				       .chap = &no_chap,
				       .luns = luns,
				       .lun_count = 2,
				       .run = 0xabcdef,
				       .qualifier = 0x1234 };

	signal(SIGPIPE, SIG_IGN);
	target.listener = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(bind(target.listener, (struct sockaddr *)&sin, sizeof(sin)), 0);
	ck_assert_int_eq(listen(target.listener, 8), 0);
	getsockname(target.listener, (struct sockaddr *)&sin, &size);
	snprintf(address, sizeof(address), "127.0.0.1:%u", ntohs(sin.sin_port));
	ck_assert_int_eq(pthread_create(&target.thread, NULL, target_main, NULL), 0);
	ev = ev_loop_new(0);
	initiator_loop_init(&loop, ev);
	initiator_init(&initiator, &loop, &conf, &ops);
	for (unsigned i = 0; i < COMMANDS; i++)
		cmds[i].done = on_done;
}

static void teardown(void)
{
	initiator_fini(&initiator);
	initiator_loop_fini(&loop);
	ev_loop_destroy(ev);
	shutdown(target.listener, SHUT_RDWR);
	pthread_join(target.thread, NULL);
	close(target.listener);
}

static void read_block(unsigned i, enum lba lba)
{
	ck_assert(initiator_rw(&initiator, &cmds[i], 0, false, lba, BLOCK, buf[i], BLOCK));
}

START_TEST(unit_attentions_of_each_lun_are_used_up_before_it_is_up)
{
	target.attentions = 5;
	initiator_open(&initiator);
	until(&ups, 1);
	ck_assert_uint_eq(target.ready_tests, 5 + 2);
	ck_assert_int_eq(initiator.state, INITIATOR_UP);
}
END_TEST

START_TEST(a_lun_that_never_stops_attending_is_given_up)
{
	target.attentions = 1000000;
	initiator_open(&initiator);
	until(&downs, 1);
	ck_assert_uint_eq(ups, 0);
	ck_assert_msg(strstr(reason, "unit attention 29/00"), "%s", reason);
}
END_TEST

static const struct {
	enum lba lba;
	enum initiator_outcome outcome;
	const char *text;
} answers[] = {
	{ LBA_GOOD, INITIATOR_GOOD, "" },
	{ LBA_BUSY, INITIATOR_BUSY, "BUSY" },
	{ LBA_FULL, INITIATOR_BUSY, "TASK SET FULL" },
	{ LBA_ATTENTION, INITIATOR_ATTENTION, "unit attention 29/00" },
	{ LBA_MEDIUM, INITIATOR_FAILED, "medium error 11/00" },
	{ LBA_BECOMING_READY, INITIATOR_TRANSIT, "not ready 04/01" },
	{ LBA_RESERVED, INITIATOR_FAILED, "RESERVATION CONFLICT" },
	{ LBA_SHORT, INITIATOR_FAILED, "GOOD, but 100 bytes of data too few" },
	{ LBA_REJECT, INITIATOR_FAILED, "rejected" },
};

START_TEST(answers_are_told_apart_and_the_session_goes_on)
{
	initiator_open(&initiator);
	until(&ups, 1);
	read_block(0, answers[_i].lba);
	until(&answered, 1);
	ck_assert_int_eq(outcomes[0], answers[_i].outcome);
	if (answers[_i].outcome != INITIATOR_GOOD)
		ck_assert_msg(strstr(initiator_error(&initiator), answers[_i].text), "%s",
			      initiator_error(&initiator));
	/* The same memory once more. */
	memset(buf[0], 0, BLOCK);
	read_block(0, LBA_GOOD);
	until(&answered, 2);
	ck_assert_int_eq(outcomes[0], INITIATOR_GOOD);
	for (unsigned i = 0; i < BLOCK; i++)
		ck_assert_uint_eq(buf[0][i], 0xa5);
	ck_assert_uint_eq(downs, 0);
}
END_TEST

START_TEST(what_is_not_answered_when_the_target_hangs_up_is_lost)
{
	initiator_open(&initiator);
	until(&ups, 1);
	for (unsigned i = 0; i < 3; i++)
		read_block(i, LBA_GOOD);
	read_block(3, LBA_SILENT);
	read_block(4, LBA_SILENT);
	read_block(5, LBA_HANG_UP);
	until(&answered, 6);
	for (unsigned i = 0; i < 6; i++)
		ck_assert_int_eq(outcomes[i], i < 3 ? INITIATOR_GOOD : INITIATOR_LOST);
	ck_assert_uint_eq(downs, 1);
	ck_assert_int_eq(initiator.state, INITIATOR_DOWN);
	ck_assert(!initiator_rw(&initiator, &cmds[0], 0, false, 0, BLOCK, buf[0], BLOCK));
	/* And it can be opened again. */
	initiator_open(&initiator);
	until(&ups, 2);
	downs = 0;
	read_block(0, LBA_GOOD);
	until(&answered, 7);
	ck_assert_int_eq(outcomes[0], INITIATOR_GOOD);
}
END_TEST

START_TEST(an_idle_session_notices_that_the_target_hung_up)
{
	initiator_open(&initiator);
	until(&ups, 1);
	shutdown(target.connection, SHUT_RDWR);
	until(&downs, 1);
	ck_assert_str_eq(reason, "closed by the target");
}
END_TEST

START_TEST(closing_gives_every_command_back_once)
{
	initiator_open(&initiator);
	until(&ups, 1);
	for (unsigned i = 0; i < COMMANDS; i++)
		read_block(i, LBA_SILENT);
	/* Half of the turn: nothing of it was sent yet. */
	initiator_close(&initiator, "enough");
	ck_assert_uint_eq(answered, COMMANDS);
	ck_assert_str_eq(reason, "enough");
	initiator_close(&initiator, "again");
	ck_assert_uint_eq(downs, 1);
}
END_TEST

START_TEST(commands_are_sent_when_the_turn_ends_and_not_before)
{
	initiator_open(&initiator);
	until(&ups, 1);
	read_block(0, LBA_GOOD);
	ck_assert_uint_eq(cmds[0].sent_ns, 0);
	until(&answered, 1);
	ck_assert_uint_gt(cmds[0].sent_ns, 0);
	ck_assert_uint_le(cmds[0].sent_ns, initiator_now());
}
END_TEST

START_TEST(a_refused_login_says_why)
{
	target.refuse = true;
	initiator_open(&initiator);
	until(&downs, 1);
	ck_assert_uint_eq(ups, 0);
	ck_assert_msg(strncmp(reason, "login refused: ", 15) == 0, "%s", reason);
}
END_TEST

START_TEST(a_target_that_moved_is_followed)
{
	target.redirect = true;
	initiator_open(&initiator);
	until(&ups, 1);
	ck_assert_uint_eq(downs, 0);
	ck_assert_uint_ge(target.logins, 2);
}
END_TEST

START_TEST(a_server_that_hangs_up_during_login_is_down)
{
	target.hang_up = true;
	initiator_open(&initiator);
	until(&downs, 1);
	ck_assert_uint_eq(ups, 0);
}
END_TEST

START_TEST(leaving_is_a_logout_and_isids_are_ours)
{
	char isid[16];

	initiator_isid(&initiator, isid);
	ck_assert_str_eq(isid, "80abcdef1234");
	initiator_open(&initiator);
	until(&ups, 1);
	initiator_leave(&initiator);
	until(&downs, 1);
	ck_assert_str_eq(reason, "logged out");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("initiator");
	TCase *tc = tcase_create("initiator");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, unit_attentions_of_each_lun_are_used_up_before_it_is_up);
	tcase_add_test(tc, a_lun_that_never_stops_attending_is_given_up);
	tcase_add_loop_test(tc, answers_are_told_apart_and_the_session_goes_on, 0,
			    (int)ARRAY_LEN(answers));
	tcase_add_test(tc, what_is_not_answered_when_the_target_hangs_up_is_lost);
	tcase_add_test(tc, an_idle_session_notices_that_the_target_hung_up);
	tcase_add_test(tc, closing_gives_every_command_back_once);
	tcase_add_test(tc, commands_are_sent_when_the_turn_ends_and_not_before);
	tcase_add_test(tc, a_refused_login_says_why);
	tcase_add_test(tc, a_target_that_moved_is_followed);
	tcase_add_test(tc, a_server_that_hangs_up_during_login_is_down);
	tcase_add_test(tc, leaving_is_a_logout_and_isids_are_ours);
	suite_add_tcase(suite, tc);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
