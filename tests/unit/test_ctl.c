/* SPDX-License-Identifier: MIT */
/* Calls, good and hostile, and the one answer that each of them gets. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/ctl.h"

static struct ctl *ctl;
static char *answers; /* the last one */
static unsigned answer_count;
static struct ctl_request *kept;

static void on_answer(void *arg, const char *text, size_t len_bytes)
{
	ck_assert_ptr_eq(arg, &answers);
	ck_assert_uint_eq(strlen(text), len_bytes);
	ck_assert_ptr_null(strchr(text, '\n'));
	free(answers);
	answers = strdup(text);
	answer_count++;
}

static const char *call(const char *line, size_t len)
{
	unsigned before = answer_count;

	ctl_dispatch(ctl, line, len, on_answer, &answers);
	ck_assert_uint_eq(answer_count, before + 1);
	return answers;
}

static void run_echo(void *arg, struct ctl_request *request)
{
	json_t *list = ctl_param(request, "list");

	ck_assert_ptr_eq(arg, &ctl);
	ctl_reply(request, json_pack("{s:s, s:I, s:b, s:i}", "s", ctl_string(request, "s"), "i",
				     ctl_integer(request, "i", -7), "b", ctl_bool(request, "b"),
				     "n", (int)json_array_size(list)));
}

static void run_fail(void *arg, struct ctl_request *request)
{
	(void)arg;
	ctl_fail(request, -EBUSY, "lun \"%s\": in use. Log out first", "0");
}

static void run_bytes(void *arg, struct ctl_request *request)
{
	(void)arg;
	ctl_fail(request, -ENOENT, "/srv/\xff\"\n: not there");
}

static void run_keep(void *arg, struct ctl_request *request)
{
	(void)arg;
	kept = request;
}

static void run_null(void *arg, struct ctl_request *request)
{
	(void)arg;
	ctl_reply(request, NULL);
}

static const struct ctl_param echo_params[] = {
	{ "s", CTL_STRING, true },      { "i", CTL_INTEGER, false }, { "b", CTL_BOOL, false },
	{ "list", CTL_STRINGS, false }, { NULL, CTL_STRING, false },
};

static const struct ctl_command commands[] = {
	{ "test.echo", "says it back", echo_params, run_echo },
	{ "test.fail", "fails", NULL, run_fail },
	{ "test.bytes", "fails with bytes that are not text", NULL, run_bytes },
	{ "test.keep", "answers later", NULL, run_keep },
	{ "test.null", "has nothing to answer", NULL, run_null },
	{ NULL, NULL, NULL, NULL },
};

static void setup(void)
{
	ctl = ctl_new();
	ctl_register(ctl, commands, &ctl);
}

static void teardown(void)
{
	ctl_free(ctl);
	free(answers);
	answers = NULL;
}

#define RPC "{\"jsonrpc\":\"2.0\","
#define ERR(id, code, text)                                                                        \
	RPC "\"id\":" id ",\"error\":{\"code\":" code ",\"message\":\"" text "\"}}"
#define ECHO(params) RPC "\"id\":1,\"method\":\"test.echo\",\"params\":" params "}"
#define BAD(text) ERR("1", "-32602", text)

static const struct {
	const char *line, *answer;
} calls[] = {
	{ ECHO("{\"s\":\"x\"}"),
	  RPC "\"id\":1,\"result\":{\"s\":\"x\",\"i\":-7,\"b\":false,\"n\":0}}" },
	{ ECHO("{\"s\":\"\",\"i\":9223372036854775807,\"b\":true,\"list\":[\"a\",\"b\"]}"),
	  RPC "\"id\":1,\"result\":{\"s\":\"\",\"i\":9223372036854775807,\"b\":true,\"n\":2}}" },
	{ " " RPC "\"id\":\"abc\",\"method\":\"test.fail\"} \r", RPC
	  "\"id\":\"abc\",\"error\":{\"code\":-32000,\"message\":\"lun \\\"0\\\": in use. Log out "
	  "first\",\"data\":{\"errno\":\"EBUSY\"}}}" },
	{ RPC "\"id\":-1,\"method\":\"test.bytes\"}", RPC
	  "\"id\":-1,\"error\":{\"code\":-32000,\"message\":\"/srv/?\\\"\\n: not there\",\"data\":"
	  "{\"errno\":\"ENOENT\"}}}" },
	{ RPC "\"id\":1,\"method\":\"test.null\"}",
	  ERR("1", "-32603", "the answer could not be made") },
	{ ECHO("{}"), BAD("test.echo: \\\"s\\\" is missing") },
	{ RPC "\"id\":1,\"method\":\"test.echo\"}", BAD("test.echo: \\\"s\\\" is missing") },
	{ ECHO("[\"x\"]"), BAD("\\\"params\\\" has to be an object") },
	{ ECHO("null"), BAD("\\\"params\\\" has to be an object") },
	{ ECHO("{\"s\":1}"), BAD("test.echo: \\\"s\\\" has to be a string") },
	{ ECHO("{\"s\":null}"), BAD("test.echo: \\\"s\\\" has to be a string") },
	{ ECHO("{\"s\":\"x\",\"i\":1.0}"), BAD("test.echo: \\\"i\\\" has to be an integer") },
	{ ECHO("{\"s\":\"x\",\"i\":\"1\"}"), BAD("test.echo: \\\"i\\\" has to be an integer") },
	{ ECHO("{\"s\":\"x\",\"b\":1}"), BAD("test.echo: \\\"b\\\" has to be true or false") },
	{ ECHO("{\"s\":\"x\",\"list\":\"a\"}"),
	  BAD("test.echo: \\\"list\\\" has to be a list of strings") },
	{ ECHO("{\"s\":\"x\",\"list\":[\"a\",1]}"),
	  BAD("test.echo: \\\"list\\\" has to be a list of strings") },
	{ ECHO("{\"s\":\"x\",\"t\":1}"), BAD("test.echo: no parameter \\\"t\\\"") },
	{ RPC "\"id\":1,\"method\":\"test.fail\",\"params\":{\"x\":1}}",
	  BAD("test.fail: no parameter \\\"x\\\"") },
	{ RPC "\"id\":1,\"method\":\"test.none\"}",
	  ERR("1", "-32601", "no method \\\"test.none\\\" in this version of yoked") },
	{ RPC "\"id\":1,\"method\":5}", ERR("1", "-32600", "\\\"method\\\" has to be a string") },
	{ RPC "\"id\":1}", ERR("1", "-32600", "\\\"method\\\" has to be a string") },
	{ "{\"id\":1,\"method\":\"test.fail\"}",
	  ERR("1", "-32600", "\\\"jsonrpc\\\" has to be \\\"2.0\\\"") },
	{ "{\"jsonrpc\":2.0,\"id\":1,\"method\":\"test.fail\"}",
	  ERR("1", "-32600", "\\\"jsonrpc\\\" has to be \\\"2.0\\\"") },
	{ RPC "\"method\":\"test.fail\"}",
	  ERR("null", "-32600", "\\\"id\\\" has to be a string or an integer") },
	{ RPC "\"id\":null,\"method\":\"test.fail\"}",
	  ERR("null", "-32600", "\\\"id\\\" has to be a string or an integer") },
	{ RPC "\"id\":1.5,\"method\":\"test.fail\"}",
	  ERR("null", "-32600", "\\\"id\\\" has to be a string or an integer") },
	{ RPC "\"id\":[1],\"method\":\"test.fail\"}",
	  ERR("null", "-32600", "\\\"id\\\" has to be a string or an integer") },
	{ "[" RPC "\"id\":1,\"method\":\"test.fail\"}]",
	  ERR("null", "-32600", "batches are not taken. Send one request a line") },
	{ "[]", ERR("null", "-32600", "batches are not taken. Send one request a line") },
};

START_TEST(each_call_gets_exactly_this_answer)
{
	ck_assert_str_eq(call(calls[_i].line, strlen(calls[_i].line)), calls[_i].answer);
}
END_TEST

START_TEST(what_is_not_json_is_a_parse_error)
{
	static const struct {
		const char *bytes;
		size_t len;
	} bad[] = {
		{ "", 0 },
		{ "{", 1 },
		{ "}", 1 },
		{ "nonsense", 8 },
		{ "{}{}", 4 },
		{ "\0", 1 },
		{ "{\"a\":1}\0", 8 },
		{ "\"\xff\"", 3 },
		{ "{\"a\":\"\\u0000\"}", 14 },
		{ "{\"a\":1,\"a\":2}", 13 },
		{ "\"x\"", 3 },
		{ "1", 1 },
		{ "{\"id\":99999999999999999999}", 27 },
	};

	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		const char *text = call(bad[i].bytes, bad[i].len);

		ck_assert_msg(strstr(text,
				     "\"id\":null,\"error\":{\"code\":-32700,\"message\":\"not "
				     "JSON: ") != NULL,
			      "%u: %s", i, text);
	}
}
END_TEST

START_TEST(nesting_does_not_eat_the_stack)
{
	size_t len = 1000000;
	char *deep = malloc(len);

	memset(deep, '[', len);
	ck_assert_ptr_nonnull(strstr(call(deep, len), "-32700"));
	for (size_t i = 0; i + 5 < len; i += 5)
		memcpy(deep + i, "{\"a\":", 5);
	ck_assert_ptr_nonnull(strstr(call(deep, len), "-32700"));
	free(deep);
}
END_TEST

START_TEST(an_answer_may_come_later_and_out_of_order)
{
	static const char first[] = RPC "\"id\":1,\"method\":\"test.keep\"}";
	static const char second[] = RPC "\"id\":2,\"method\":\"test.fail\"}";
	struct ctl_request *request;

	ctl_dispatch(ctl, first, strlen(first), on_answer, &answers);
	ck_assert_ptr_null(answers);
	request = kept;
	ck_assert_ptr_nonnull(strstr(call(second, strlen(second)), "\"id\":2"));
	ctl_reply(request, json_true());
	ck_assert_str_eq(answers, RPC "\"id\":1,\"result\":true}");
}
END_TEST

START_TEST(registering_a_name_twice_is_our_mistake)
{
	ctl_register(ctl, commands, NULL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ctl");
	TCase *tcase = tcase_create("calls");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, each_call_gets_exactly_this_answer, 0, ARRAY_LEN(calls));
	tcase_add_test(tcase, what_is_not_json_is_a_parse_error);
	tcase_add_test(tcase, nesting_does_not_eat_the_stack);
	tcase_add_test(tcase, an_answer_may_come_later_and_out_of_order);
	tcase_add_test_raise_signal(tcase, registering_a_name_twice_is_our_mistake, 6);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
