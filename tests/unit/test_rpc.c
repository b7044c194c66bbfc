/* SPDX-License-Identifier: MIT */
/* The control socket's client against servers of every mood. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/rpc.h"
#include "tests/fake/fake_rpc.h"

#define LONG_NS (20 * NS_PER_S)

static char dir[64], path[80];
static struct rpc_error error;

static void setup(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(dir, sizeof(dir), "%.40s/rpc-XXXXXX", tmp && strlen(tmp) <= 40 ? tmp : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/sock", dir);
}

static void teardown(void)
{
	ck_assert_int_eq(rmdir(dir), 0);
}

static const struct {
	enum fake_rpc_mood mood;
	const char *answer;
	uint64_t timeout_ns;
	int err;
	const char *text; /* of the error; of 0, the result */
} cases[] = {
	{ FAKE_RPC_RESULTS, "{\"a\":7}", LONG_NS, 0, "{\"a\":7}" },
	/* A stray answer first, then byte by byte. */
	{ FAKE_RPC_DRIBBLE, "{\"a\":8}", LONG_NS, 0, "{\"a\":8}" },
	{ FAKE_RPC_ERROR, "lun 0: in use", LONG_NS, -EREMOTEIO, "lun 0: in use" },
	{ FAKE_RPC_CLOSE, "", LONG_NS, -EPIPE, "yoked closed the connection. Is it stopping?" },
	{ FAKE_RPC_SILENT, "", 100 * NS_PER_MS, -ETIMEDOUT, "no answer within 0.1 s" },
	{ FAKE_RPC_RAW, "HTTP/1.1 400 Bad Request\n", LONG_NS, -EPROTO,
	  "what answers there is not yoked" },
	{ FAKE_RPC_RAW, "{\"id\":1}\n", LONG_NS, -EREMOTEIO, "yoked failed without saying why" },
	{ FAKE_RPC_RAW, "{\"id\":null,\"error\":{\"message\":\"busy\"}}\n", LONG_NS, -EREMOTEIO,
	  "busy" },
	{ FAKE_RPC_RAW, "{\"id\":1,\"result\":", LONG_NS, -EPIPE, "closed the connection" },
};

START_TEST(each_mood_has_its_error)
{
	const char *const answers[] = { cases[_i].answer, NULL };
	struct fake_rpc *fake = fake_rpc_start(path, cases[_i].mood, answers);
	struct rpc *rpc = rpc_open(path, &error);
	json_t *result = NULL;
	char *text;

	ck_assert_ptr_nonnull(rpc);
	ck_assert_int_eq(rpc_call(rpc, "test.run", NULL, cases[_i].timeout_ns, &result, &error),
			 cases[_i].err);
	if (cases[_i].err == 0) {
		text = json_dumps(result, JSON_COMPACT);
		ck_assert_str_eq(text, cases[_i].text);
		free(text);
		json_decref(result);
	} else {
		ck_assert_msg(strstr(error.text, cases[_i].text) != NULL, "%s", error.text);
	}
	rpc_close(rpc);
	free(fake_rpc_stop(fake));
}
END_TEST

START_TEST(calls_have_numbers_and_carry_their_parameters)
{
	static const char *const answers[] = { "1", "2", NULL };
	struct fake_rpc *fake = fake_rpc_start(path, FAKE_RPC_RESULTS, answers);
	struct rpc *rpc = rpc_open(path, &error);
	json_t *params = json_pack("{s:s}", "x", "y"), *result;
	char *requests;

	for (json_int_t i = 1; i <= 2; i++) {
		ck_assert_int_eq(rpc_call(rpc, "test.run", i == 1 ? params : NULL, LONG_NS, &result,
					  &error),
				 0);
		ck_assert_int_eq(json_integer_value(result), i);
		json_decref(result);
	}
	ck_assert_uint_eq(params->refcount, 1);
	json_decref(params);
	rpc_close(rpc);
	requests = fake_rpc_stop(fake);
	ck_assert_str_eq(
		requests,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"test.run\",\"params\":"
		"{\"x\":\"y\"}}\n{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"test.run\"}\n");
	free(requests);
}
END_TEST

START_TEST(nobody_there_is_said_with_what_to_do)
{
	char far[200];

	ck_assert_ptr_null(rpc_open(path, &error));
	ck_assert_ptr_nonnull(strstr(error.text, "no yoked answers on "));
	ck_assert_ptr_nonnull(strstr(error.text, ": No such file or directory. Start it"));
	memset(far, 'x', sizeof(far) - 1);
	far[sizeof(far) - 1] = '\0';
	ck_assert_ptr_null(rpc_open(far, &error));
	ck_assert_ptr_nonnull(strstr(error.text, "File name too long"));
	rpc_close(NULL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("rpc");
	TCase *tcase = tcase_create("rpc");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, each_mood_has_its_error, 0, ARRAY_LEN(cases));
	tcase_add_test(tcase, calls_have_numbers_and_carry_their_parameters);
	tcase_add_test(tcase, nobody_there_is_said_with_what_to_do);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
