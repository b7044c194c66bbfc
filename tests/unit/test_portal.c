/* SPDX-License-Identifier: MIT */
/* Portals: all addresses or none, and an error that names who has the port. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "target/iscsi/iscsi_int.h"

static struct loop *loop;
static struct shard *shard;
static struct buf_pool *pool;
static struct iscsi_server *server;

static void quiet(enum log_level level, const char *line)
{
	(void)level;
	(void)line;
}

static void setup(void)
{
	struct iscsi_limits limits = { .sessions_max = 1, .connections_max = 1 };

	log_redirect(quiet);
	loop = loop_new();
	shard = shard_new(loop, 0);
	shard_enter(shard);
	pool = buf_pool_new(MIB);
	server = iscsi_server_new(shard, pool, &limits);
}

static void teardown(void)
{
	iscsi_server_free(server);
	buf_pool_free(pool);
	shard_free(shard);
	loop_free(loop);
}

static struct iscsi_address at(uint32_t ip, uint16_t port, const char *text)
{
	struct iscsi_address address = { .text = text };
	struct sockaddr_in *in = (struct sockaddr_in *)&address.addr;

	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(ip);
	in->sin_port = htons(port);
	address.addr_len = sizeof(*in);
	return address;
}

START_TEST(a_port_in_use_is_refused_and_its_user_can_be_found)
{
	struct iscsi_address any = at(INADDR_LOOPBACK, 0, "127.0.0.1:0"), taken;
	char text[256], wanted[64];

	ck_assert_int_eq(iscsi_portal_add(server, "one", 1, &any, 1, text, sizeof(text)), 0);
	taken = at(INADDR_LOOPBACK, TAILQ_FIRST(&server->portals)->listeners[0].port, "here:1");
	ck_assert_uint_ne(iscsi_address_port(&taken.addr), 0);
	ck_assert_int_eq(iscsi_portal_add(server, "two", 2, &taken, 1, text, sizeof(text)),
			 -EADDRINUSE);
	ck_assert_msg(strstr(text, "portal \"two\": here:1 in use by") == text, "%s", text);
	snprintf(wanted, sizeof(wanted), "test_portal, pid %d", (int)getpid());
	ck_assert(iscsi_port_user(&taken.addr, text, sizeof(text)));
	ck_assert_str_eq(text, wanted);
	ck_assert_ptr_null(iscsi_portal_find(server, "two"));
}
END_TEST

START_TEST(all_addresses_or_none)
{
	struct iscsi_address both[2] = { at(INADDR_LOOPBACK, 0, "127.0.0.1:0"),
					 at(0xc0000263, 3260, "192.0.2.99:3260") };
	char text[256];

	ck_assert_int_eq(iscsi_portal_add(server, "p", 1, both, 2, text, sizeof(text)),
			 -EADDRNOTAVAIL);
	ck_assert_msg(strstr(text, "192.0.2.99:3260 is no address of this machine"), "%s", text);
	ck_assert(TAILQ_EMPTY(&server->portals));
	/* The first of them was closed again. */
	ck_assert_int_eq(iscsi_portal_add(server, "p", 1, both, 1, text, sizeof(text)), 0);
	ck_assert_int_eq(iscsi_portal_add(server, "p", 1, both, 1, text, sizeof(text)), -EEXIST);
	iscsi_portal_remove(server, "p");
	iscsi_portal_remove(server, "p");
	ck_assert(TAILQ_EMPTY(&server->portals));
}
END_TEST

START_TEST(a_wildcard_is_known_as_one)
{
	struct iscsi_address any[2] = { at(INADDR_ANY, 0, "0.0.0.0:0"),
					at(INADDR_LOOPBACK, 0, "127.0.0.1:0") };
	struct iscsi_portal *portal;
	char text[256];

	ck_assert_int_eq(iscsi_portal_add(server, "p", 7, any, 2, text, sizeof(text)), 0);
	portal = iscsi_portal_find(server, "p");
	ck_assert(portal->listeners[0].wildcard);
	ck_assert(!portal->listeners[1].wildcard);
	ck_assert_uint_eq(portal->group, 7);
	snprintf(text, sizeof(text), "127.0.0.1:%u", portal->listeners[1].port);
	ck_assert_str_eq(portal->listeners[1].text, text);
}
END_TEST

START_TEST(addresses_are_shown_as_discovery_shows_them)
{
	static const struct {
		uint8_t bytes[16];
		const char *text;
	} v6[] = {
		{ { [15] = 1 }, "[::1]:3260" },
		{ { 0x20, 1, 0xd, 0xb8, [15] = 9 }, "[2001:db8::9]:3260" },
		{ { [10] = 0xff, 0xff, 192, 0, 2, 7 }, "192.0.2.7:3260" },
	};
	char text[64];

	for (unsigned i = 0; i < ARRAY_LEN(v6); i++) {
		struct sockaddr_storage addr = { .ss_family = AF_INET6 };
		struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&addr;

		memcpy(&in6->sin6_addr, v6[i].bytes, 16);
		in6->sin6_port = htons(3260);
		iscsi_address_text(&addr, text, sizeof(text));
		ck_assert_str_eq(text, v6[i].text);
		ck_assert_uint_eq(iscsi_address_port(&addr), 3260);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("portal");
	TCase *tcase = tcase_create("portal");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, a_port_in_use_is_refused_and_its_user_can_be_found);
	tcase_add_test(tcase, all_addresses_or_none);
	tcase_add_test(tcase, a_wildcard_is_known_as_one);
	tcase_add_test(tcase, addresses_are_shown_as_discovery_shows_them);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
