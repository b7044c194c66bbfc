/* SPDX-License-Identifier: MIT */
/*
 * iSCSI names: which are names, their normal form, and allow lists.
 *
 * Invariants: none.
 *
 * Not here: names within a login (test_login.c).
 */
#include "target/iscsi/name.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define Q "iqn.2026-11.org.yoke:"

static const struct {
	const char *text, *normal; /* NULL: no name */
} names[] = {
	{ Q "demo", Q "demo" },
	{ "IQN.2026-11.ORG.Yoke:DeMo", Q "demo" },
	{ "iqn.1991-05.com.microsoft:win-1", "iqn.1991-05.com.microsoft:win-1" },
	{ "iqn.1993-08.org.debian:01:a_b", "iqn.1993-08.org.debian:01:a_b" },
	{ "iqn.2001-04.com.example", "iqn.2001-04.com.example" },
	{ Q "caf\xc3\xa9", Q "caf\xc3\xa9" },
	{ Q "\xf0\x9f\x90\x82", Q "\xf0\x9f\x90\x82" },
	{ "eui.02004567A425678D", "eui.02004567a425678d" },
	{ "naa.52004567BA64678D", "naa.52004567ba64678d" },
	{ "naa.62004567BA64678D0123456789ABCDEF", "naa.62004567ba64678d0123456789abcdef" },
	{ "", NULL },
	{ "iqn.", NULL },
	{ "iqn", NULL },
	{ "demo", NULL },
	{ "iqn.2026-11", NULL },
	{ "iqn.2026-11.", NULL },
	{ "iqn.2026-1.org.yoke", NULL },
	{ "iqn.26-11.org.yoke", NULL },
	{ "iqn.2026-11.:x", NULL },
	{ "iqn.2026-11..x", NULL },
	{ "iqn 2026-11.org", NULL },
	{ Q "a b", NULL },
	{ Q "a,b", NULL },
	{ Q "a\tb", NULL },
	{ Q "a\x1b[2J", NULL },
	{ Q "a\x7f", NULL },
	{ Q "a\"b", NULL },
	{ Q "a/b", NULL },
	{ Q "a*", NULL },
	{ Q "\xc2\x85", NULL },         /* NEL, a C1 control */
	{ Q "\xe2\x80\xae", NULL },     /* right-to-left override */
	{ Q "\xe3\x80\x80", NULL },     /* ideographic space */
	{ Q "\xc1\xa1", NULL },         /* overlong 'a' */
	{ Q "\xed\xa0\x80", NULL },     /* surrogate */
	{ Q "\xf4\x90\x80\x80", NULL }, /* above U+10FFFF */
	{ Q "\xc3", NULL },
	{ Q "\xff", NULL },
	{ "eui.02004567A425678", NULL },
	{ "eui.02004567A425678DD", NULL },
	{ "eui.02004567A425678G", NULL },
	{ "naa.52004567BA64678D0", NULL },
	{ "naa.", NULL },
};

START_TEST(a_name_has_one_normal_form_or_none)
{
	char name[ISCSI_NAME_MAX + 1] = "before";
	bool is = iscsi_name_normalise(names[_i].text, name);

	ck_assert_msg(is == !!names[_i].normal, "\"%s\"", names[_i].text);
	ck_assert_str_eq(name, names[_i].normal ? names[_i].normal : "");
}
END_TEST

START_TEST(a_name_ends_at_223_bytes)
{
	char text[ISCSI_NAME_MAX + 2], name[ISCSI_NAME_MAX + 1];

	memset(text, 'x', sizeof(text));
	memcpy(text, Q, strlen(Q));
	text[ISCSI_NAME_MAX + 1] = '\0';
	ck_assert(!iscsi_name_normalise(text, name));
	ck_assert_str_eq(name, "");
	text[ISCSI_NAME_MAX] = '\0';
	ck_assert(iscsi_name_normalise(text, name));
	ck_assert_str_eq(name, text);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("name");
	TCase *tc = tcase_create("name");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_loop_test(tc, a_name_has_one_normal_form_or_none, 0, ARRAY_LEN(names));
	tcase_add_test(tc, a_name_ends_at_223_bytes);
	suite_add_tcase(suite, tc);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
