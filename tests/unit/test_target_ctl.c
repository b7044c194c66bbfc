/* SPDX-License-Identifier: MIT */
/* The control socket with real clients: how lines come, how answers go, and whose file it is. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "target/ctl.h"
#include "target/ctl_int.h"

#define PATIENCE_MS 20000

static char dir[64];
static char path[80];
static struct loop *loop;
static struct ctl *ctl;
static struct ctl_server *server;
static pthread_t thread;
static struct ctl_request *held[256];
static unsigned held_count;
static bool held_no_more;

/* ---- the commands; they run on the loop's thread ---- */

static void run_echo(void *arg, struct ctl_request *request)
{
	(void)arg;
	ctl_reply(request, json_string(ctl_string(request, "text")));
}

static void run_big(void *arg, struct ctl_request *request)
{
	size_t len = (size_t)ctl_integer(request, "bytes", 0);
	char *text = malloc(len + 1);

	(void)arg;
	memset(text, 'x', len);
	ctl_reply(request, json_stringn(text, len));
	free(text);
}

static void run_hold(void *arg, struct ctl_request *request)
{
	(void)arg;
	if (held_no_more)
		ctl_reply(request, json_string("held"));
	else
		held[held_count++] = request;
}

static void run_release(void *arg, struct ctl_request *request)
{
	(void)arg;
	held_no_more = true;
	while (held_count > 0)
		ctl_reply(held[--held_count], json_string("held"));
	ctl_reply(request, json_true());
}

static void run_status(void *arg, struct ctl_request *request)
{
	(void)arg;
	ctl_reply(request, json_pack("[i, i]", (int)ctl_server_clients(server), (int)held_count));
}

static void run_stop(void *arg, struct ctl_request *request)
{
	(void)arg;
	ctl_server_free(server);
	server = NULL;
	ctl_reply(request, json_true());
	while (held_count > 0)
		ctl_reply(held[--held_count], json_true());
	loop_stop(loop);
}

static const struct ctl_param echo_params[] = { { "text", CTL_STRING, true }, { 0 } };
static const struct ctl_param big_params[] = { { "bytes", CTL_INTEGER, true }, { 0 } };

static const struct ctl_command commands[] = {
	{ "t.echo", "", echo_params, run_echo },
	{ "t.big", "", big_params, run_big },
	{ "t.hold", "", NULL, run_hold },
	{ "t.release", "", NULL, run_release },
	{ "t.status", "", NULL, run_status },
	{ "t.stop", "", NULL, run_stop },
	{ 0 },
};

/* ---- the client's side ---- */

static int dial(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(addr.sun_path, path);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

static void put(int fd, const char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);

		ck_assert_int_gt(n, 0);
		bytes += n;
		len -= (size_t)n;
	}
}

static void put_call(int fd, int id, const char *method, const char *params)
{
	char line[512];
	int len = snprintf(line, sizeof(line),
			   "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"%s\"%s%s}\n", id, method,
			   *params ? ",\"params\":" : "", params);

	put(fd, line, (size_t)len);
}

/* What comes next, up to SIZE bytes: 0 at the end, -1 if the connection was reset. */
static ssize_t take(int fd, char *buf, size_t size)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	ck_assert_msg(poll(&p, 1, PATIENCE_MS) == 1, "no answer");
	return recv(fd, buf, size, 0);
}

/* The next line, without its newline. */
static const char *line(int fd)
{
	static char buf[4096];
	size_t len = 0;

	for (;;) {
		ck_assert_int_eq(take(fd, buf + len, 1), 1);
		if (buf[len] == '\n')
			break;
		len++;
		ck_assert_uint_lt(len, sizeof(buf));
	}
	buf[len] = '\0';
	return buf;
}

static void expect(int fd, const char *wanted)
{
	ck_assert_str_eq(line(fd), wanted);
}

static void expect_end(int fd)
{
	char byte;

	ck_assert_int_le(take(fd, &byte, 1), 0);
}

#define RESULT(id, value) "{\"jsonrpc\":\"2.0\",\"id\":" #id ",\"result\":" value "}"

/* Until t.status says so: conditions of the server that nothing announces. */
static void wait_status(int fd, int clients, int holding)
{
	char wanted[80];

	snprintf(wanted, sizeof(wanted), "{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":[%d,%d]}",
		 clients, holding);
	for (unsigned i = 0;; i++) {
		const char *said;

		put_call(fd, 99, "t.status", "");
		said = line(fd);
		if (strcmp(said, wanted) == 0)
			return;
		ck_assert_msg(i < PATIENCE_MS, "%s, not %s", said, wanted);
		poll(NULL, 0, 1);
	}
}

static void *run_loop(void *arg)
{
	(void)arg;
	loop_run(loop);
	return NULL;
}

static void setup_path(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(dir, sizeof(dir), "%.40s/yoke-ctl-XXXXXX",
		 tmp && strlen(tmp) <= 40 ? tmp : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/d/sock", dir);
	loop = loop_new();
	ck_assert_ptr_nonnull(loop);
	ctl = ctl_new();
	ctl_register(ctl, commands, NULL);
}

static void setup(void)
{
	char cause[256];

	setup_path();
	server = ctl_server_new(loop, ctl, path, cause, sizeof(cause));
	ck_assert_msg(server != NULL, "%s", cause);
	ck_assert_int_eq(pthread_create(&thread, NULL, run_loop, NULL), 0);
}

static void teardown_path(void)
{
	char sub[80];

	ctl_free(ctl);
	loop_free(loop);
	unlink(path);
	snprintf(sub, sizeof(sub), "%s/d", dir);
	rmdir(sub);
	ck_assert_int_eq(rmdir(dir), 0);
}

static void teardown(void)
{
	int fd = dial();

	put_call(fd, 1, "t.stop", "");
	expect_end(fd);
	close(fd);
	pthread_join(thread, NULL);
	ck_assert_int_eq(access(path, F_OK), -1);
	teardown_path();
}

/* ---- lines and answers ---- */

START_TEST(a_request_may_come_byte_by_byte)
{
	static const char text[] = "\r\n{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"t.echo\","
				   "\"params\":{\"text\":\"\xc3\xa4\"}}\r\n";
	int fd = dial();

	for (size_t i = 0; i < sizeof(text) - 1; i++)
		put(fd, text + i, 1);
	expect(fd, "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":\"\xc3\xa4\"}");
	close(fd);
}
END_TEST

START_TEST(many_requests_in_one_write_are_all_answered_in_order)
{
	char *text = malloc(1000 * 100), *at = text, wanted[80];
	int fd = dial();

	for (int i = 0; i < 1000; i++)
		at += sprintf(at,
			      "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"t.echo\",\"params\":"
			      "{\"text\":\"%d\"}}\n",
			      i, i * 7);
	put(fd, text, (size_t)(at - text));
	for (int i = 0; i < 1000; i++) {
		snprintf(wanted, sizeof(wanted),
			 "{\"jsonrpc\":\"2.0\",\"id\":%d,\"result\":\"%d\"}", i, i * 7);
		expect(fd, wanted);
	}
	free(text);
	close(fd);
}
END_TEST

START_TEST(a_quick_answer_overtakes_a_slow_one)
{
	int fd = dial();

	put_call(fd, 1, "t.hold", "");
	put_call(fd, 2, "t.echo", "{\"text\":\"x\"}");
	expect(fd, RESULT(2, "\"x\""));
	put_call(fd, 3, "t.release", "");
	expect(fd, RESULT(1, "\"held\""));
	expect(fd, RESULT(3, "true"));
	close(fd);
}
END_TEST

START_TEST(one_client_has_at_most_64_requests_under_way)
{
	int fd = dial(), other = dial();

	for (int i = 0; i < 100; i++)
		put_call(fd, i, "t.hold", "");
	wait_status(other, 2, CTL_IN_FLIGHT_MAX);
	put_call(other, 1, "t.release", "");
	expect(other, RESULT(1, "true"));
	/* Each answer let one in that had waited in the socket, at once or later. */
	for (int i = 0; i < 100; i++)
		ck_assert_ptr_nonnull(strstr(line(fd), "held"));
	close(fd);
	close(other);
}
END_TEST

START_TEST(rubbish_is_answered_and_the_connection_lives)
{
	int fd = dial();

	put(fd, "nonsense\n\n  \n\0\n", 15);
	ck_assert_ptr_nonnull(strstr(line(fd), "-32700"));
	ck_assert_ptr_nonnull(strstr(line(fd), "-32700"));
	put_call(fd, 1, "t.echo", "{\"text\":\"x\"}");
	expect(fd, RESULT(1, "\"x\""));
	close(fd);
}
END_TEST

START_TEST(a_line_of_1_mib_is_taken_and_a_longer_one_ends_the_connection)
{
	char *text = malloc(CTL_LINE_MAX + 1);
	int fd = dial();

	memset(text, ' ', CTL_LINE_MAX + 1);
	memcpy(text, "\"x\"", 3);
	text[CTL_LINE_MAX] = '\n';
	put(fd, text, CTL_LINE_MAX + 1);
	ck_assert_ptr_nonnull(strstr(line(fd), "-32"));
	text[CTL_LINE_MAX] = ' ';
	put(fd, text, CTL_LINE_MAX);
	put(fd, text + 3, 1);
	expect(fd,
	       "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32600,\"message\":\"a line "
	       "longer than 1 MiB\"}}");
	expect_end(fd);
	free(text);
	close(fd);
}
END_TEST

START_TEST(after_a_half_close_every_answer_still_comes_the_unfinished_line_too)
{
	int fd = dial(), other = dial();
	static const char last[] = "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"t.echo\",\"params\":"
				   "{\"text\":\"x\"}}";

	put_call(fd, 1, "t.hold", "");
	put(fd, last, sizeof(last) - 1);
	shutdown(fd, SHUT_WR);
	expect(fd, RESULT(2, "\"x\""));
	put_call(other, 3, "t.release", "");
	expect(fd, RESULT(1, "\"held\""));
	expect_end(fd);
	close(fd);
	close(other);
}
END_TEST

START_TEST(an_answer_to_a_client_that_has_gone_goes_nowhere)
{
	int fd = dial(), other = dial();

	put_call(fd, 1, "t.hold", "");
	wait_status(other, 2, 1);
	close(fd);
	put_call(other, 3, "t.release", "");
	expect(other, RESULT(3, "true"));
	wait_status(other, 1, 0);
	close(other);
}
END_TEST

START_TEST(a_client_that_does_not_read_delays_nobody_and_loses_nothing)
{
	int slow = dial(), other = dial();
	size_t want = 0, len;
	char *buf = malloc(1 << 20);
	ssize_t n;

	for (int i = 0; i < 40; i++)
		put_call(slow, i, "t.big", "{\"bytes\":500000}");
	shutdown(slow, SHUT_WR);
	put_call(other, 1, "t.echo", "{\"text\":\"x\"}");
	expect(other, RESULT(1, "\"x\""));
	for (int i = 0; i < 40; i++)
		want += 500000 + strlen(RESULT(1, "\"\"")) + 1 + (i > 9);
	for (len = 0; (n = take(slow, buf, 1 << 20)) > 0; len += (size_t)n)
		;
	ck_assert_uint_eq(len, want);
	free(buf);
	close(slow);
	close(other);
}
END_TEST

START_TEST(a_client_that_takes_nothing_for_too_long_is_dropped)
{
	int other = dial(), slow;

	ctl_server_set_stall(server, 0.05);
	slow = dial();
	put_call(slow, 1, "t.big", "{\"bytes\":5000000}");
	put_call(slow, 2, "t.echo", "{\"text\":\"x\"}");
	wait_status(other, 1, 0);
	close(slow);
	close(other);
}
END_TEST

START_TEST(the_65th_client_is_told_and_a_place_becomes_free_again)
{
	int fds[CTL_CLIENTS_MAX], extra;

	for (unsigned i = 0; i < CTL_CLIENTS_MAX; i++)
		fds[i] = dial();
	wait_status(fds[0], CTL_CLIENTS_MAX, 0);
	extra = dial();
	expect(extra, "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32000,\"message\":"
		      "\"control: 64 clients are connected already. End one\",\"data\":"
		      "{\"errno\":\"EUSERS\"}}}");
	expect_end(extra);
	close(extra);
	close(fds[5]);
	wait_status(fds[0], CTL_CLIENTS_MAX - 1, 0);
	fds[5] = dial();
	put_call(fds[5], 1, "t.echo", "{\"text\":\"x\"}");
	expect(fds[5], RESULT(1, "\"x\""));
	for (unsigned i = 0; i < CTL_CLIENTS_MAX; i++)
		close(fds[i]);
}
END_TEST

START_TEST(the_server_may_end_while_requests_are_under_way)
{
	int fd = dial(), other = dial();

	put_call(fd, 1, "t.hold", "");
	wait_status(other, 2, 1);
	close(other);
	/* teardown() stops it; the held request is answered after that. */
	close(fd);
}
END_TEST

/* ---- the file ---- */

static void refused(const char *end)
{
	char cause[256], wanted[400];

	ck_assert_ptr_null(ctl_server_new(loop, ctl, path, cause, sizeof(cause)));
	snprintf(wanted, sizeof(wanted), "control \"%s\": %s", path, end);
	ck_assert_str_eq(cause, wanted);
}

static struct ctl_server *opened(void)
{
	char cause[256];
	struct ctl_server *s = ctl_server_new(loop, ctl, path, cause, sizeof(cause));

	ck_assert_msg(s != NULL, "%s", cause);
	return s;
}

START_TEST(the_socket_is_for_its_owner_only_whatever_the_umask)
{
	mode_t old = umask(0);
	struct ctl_server *s = opened();
	struct stat st;

	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_mode, S_IFSOCK | 0600);
	*strrchr(path, '/') = '\0';
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_uint_eq(st.st_mode, S_IFDIR | 0700);
	strcat(path, "/sock");
	umask(old);
	ctl_server_free(s);
	ck_assert_int_eq(access(path, F_OK), -1);
}
END_TEST

START_TEST(a_socket_that_nobody_answers_on_is_replaced)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	ctl_server_free(opened()); /* makes the directory */
	strcpy(addr.sun_path, path);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	close(fd);
	ck_assert_int_eq(access(path, F_OK), 0);
	ctl_server_free(opened());
}
END_TEST

START_TEST(a_socket_that_somebody_answers_on_is_left_alone)
{
	struct ctl_server *s = opened();

	refused("another yoked answers there. Stop it, or give this node another control");
	ck_assert_int_eq(access(path, F_OK), 0);
	ctl_server_free(s);
}
END_TEST

START_TEST(what_is_not_a_socket_is_left_alone)
{
	ctl_server_free(opened());
	close(open(path, O_CREAT | O_WRONLY, 0600));
	refused("something that is not a socket is there. Move it away");
	ck_assert_int_eq(access(path, F_OK), 0);
}
END_TEST

START_TEST(a_file_that_is_no_longer_ours_is_not_removed)
{
	struct ctl_server *s = opened();

	unlink(path);
	close(open(path, O_CREAT | O_WRONLY, 0600));
	ctl_server_free(s);
	ck_assert_int_eq(access(path, F_OK), 0);
}
END_TEST

START_TEST(a_directory_where_anybody_may_replace_it_is_refused)
{
	char wanted[200], sub[80];

	ctl_server_free(opened());
	snprintf(sub, sizeof(sub), "%s/d", dir);
	chmod(sub, 0777);
	snprintf(wanted, sizeof(wanted), "anybody may replace files in %s. chmod o-w it", sub);
	refused(wanted);
	chmod(sub, 01777);
	ctl_server_free(opened());
}
END_TEST

START_TEST(a_directory_that_another_holds_locked_is_refused_in_the_end)
{
	char wanted[200], sub[80];
	int fd;

	ctl_server_free(opened());
	snprintf(sub, sizeof(sub), "%s/d", dir);
	fd = open(sub, O_RDONLY | O_DIRECTORY);
	ck_assert_int_eq(flock(fd, LOCK_EX), 0);
	snprintf(wanted, sizeof(wanted), "%s is locked by another process. End it", sub);
	refused(wanted);
	close(fd);
	ctl_server_free(opened());
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("target/ctl");
	TCase *lines = tcase_create("lines"), *files = tcase_create("files");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(lines, setup, teardown);
	tcase_set_timeout(lines, 60);
	tcase_add_test(lines, a_request_may_come_byte_by_byte);
	tcase_add_test(lines, many_requests_in_one_write_are_all_answered_in_order);
	tcase_add_test(lines, a_quick_answer_overtakes_a_slow_one);
	tcase_add_test(lines, one_client_has_at_most_64_requests_under_way);
	tcase_add_test(lines, rubbish_is_answered_and_the_connection_lives);
	tcase_add_test(lines, a_line_of_1_mib_is_taken_and_a_longer_one_ends_the_connection);
	tcase_add_test(lines, after_a_half_close_every_answer_still_comes_the_unfinished_line_too);
	tcase_add_test(lines, an_answer_to_a_client_that_has_gone_goes_nowhere);
	tcase_add_test(lines, a_client_that_does_not_read_delays_nobody_and_loses_nothing);
	tcase_add_test(lines, a_client_that_takes_nothing_for_too_long_is_dropped);
	tcase_add_test(lines, the_65th_client_is_told_and_a_place_becomes_free_again);
	tcase_add_test(lines, the_server_may_end_while_requests_are_under_way);
	suite_add_tcase(suite, lines);
	tcase_add_checked_fixture(files, setup_path, teardown_path);
	tcase_set_timeout(files, 60);
	tcase_add_test(files, the_socket_is_for_its_owner_only_whatever_the_umask);
	tcase_add_test(files, a_socket_that_nobody_answers_on_is_replaced);
	tcase_add_test(files, a_socket_that_somebody_answers_on_is_left_alone);
	tcase_add_test(files, what_is_not_a_socket_is_left_alone);
	tcase_add_test(files, a_file_that_is_no_longer_ours_is_not_removed);
	tcase_add_test(files, a_directory_where_anybody_may_replace_it_is_refused);
	tcase_add_test(files, a_directory_that_another_holds_locked_is_refused_in_the_end);
	suite_add_tcase(suite, files);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
