/* SPDX-License-Identifier: MIT */
/* Fuzzes the control socket's requests: any line gets exactly one answer, and that is JSON. */
#include <stdlib.h>

#include "core/ctl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void run(void *arg, struct ctl_request *request)
{
	(void)arg;
	if (ctl_integer(request, "count", 0) < 0)
		ctl_fail(request, -22, "%s", ctl_string(request, "name"));
	else
		ctl_reply(request,
			  json_pack("{s:s, s:b, s:O}", "name", ctl_string(request, "name"), "all",
				    ctl_bool(request, "all"), "list",
				    ctl_param(request, "list") ? ctl_param(request, "list") :
								 json_null()));
}

static const struct ctl_param params[] = {
	{ "name", CTL_STRING, true },   { "count", CTL_INTEGER, false }, { "all", CTL_BOOL, false },
	{ "list", CTL_STRINGS, false }, { NULL, CTL_STRING, false },
};

static const struct ctl_command commands[] = {
	{ "a.b", "a command", params, run },
	{ NULL, NULL, NULL, NULL },
};

static void on_answer(void *arg, const char *text, size_t len_bytes)
{
	json_t *answer = json_loadb(text, len_bytes, JSON_REJECT_DUPLICATES, NULL);

	if (!answer || !json_object_get(answer, "id") ||
	    !json_object_get(answer, "result") == !json_object_get(answer, "error"))
		abort();
	json_decref(answer);
	++*(unsigned *)arg;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ctl *ctl = ctl_new();
	unsigned answers = 0;

	ctl_register(ctl, commands, NULL);
	ctl_dispatch(ctl, (const char *)data, size, on_answer, &answers);
	if (answers != 1)
		abort();
	ctl_free(ctl);
	return 0;
}
