/* SPDX-License-Identifier: MIT */
/* Good configurations: every setting arrives, defaults are what the manual says, look-ups work. */
#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/conf.h"

static struct conf_error error;
static struct conf *conf;

static void parse(const char *text)
{
	int err = conf_parse("yoke.conf", text, strlen(text), &conf, &error);

	ck_assert_msg(err == 0, "%s", error.text);
}

START_TEST(every_setting_arrives)
{
	parse("node \"alpha\" { number = 2 state_dir = \"/s\" control = \"/c\" http = \"\"\n"
	      " threads = 0 disks = { \"/dev/a*\", \"/b\", } faults = true oui = \"00-A0-98\"\n"
	      " buffers = 64M login_timeout = 300ms sessions_max = 7 }\n"
	      "backing f { driver = file path = \"/img\" size = 1G block_size = 4096\n"
	      " physical_block = 8192 direct = false write_cache = true }\n"
	      "target \"iqn.2026-11.org.Yoke:T\" { portals = { left } allow = { \"iqn.A:*\" }\n"
	      " nop_interval = 1s nop_timeout = 2s data_out_timeout = 3s\n"
	      " lun 7 { backing = f }\n"
	      " lun 3 { backing = r read_only = true allow = { \"iqn.2026-11.org.x:Y\" } } }\n"
	      "portal left { listen = { \"192.0.2.1:3260\", \"[2001:db8::1]:3261\" } group = 65535 }\n"
	      "backing r { driver = ram size = 512 }\n");
	ck_assert_str_eq(conf->file, "yoke.conf");
	ck_assert_str_eq(conf->node.name, "alpha");
	ck_assert_uint_eq(conf->node.number, 2);
	ck_assert_str_eq(conf->node.state_dir, "/s");
	ck_assert_str_eq(conf->node.control, "/c");
	ck_assert_uint_eq(conf->node.threads, 0);
	ck_assert_uint_eq(conf->node.disks.count, 2);
	ck_assert_str_eq(conf->node.disks.items[1], "/b");
	ck_assert(conf->node.faults);
	ck_assert_uint_eq(conf->node.oui, 0x00a098);
	ck_assert_uint_eq(conf->node.buffers_bytes, 64 * MIB);
	ck_assert_uint_eq(conf->node.login_timeout_ns, 300 * NS_PER_MS);
	ck_assert_uint_eq(conf->node.sessions_max, 7);

	ck_assert_uint_eq(conf->backing_count, 2);
	ck_assert_int_eq(conf->backings[0].driver, CONF_DRIVER_FILE);
	ck_assert_str_eq(conf->backings[0].path, "/img");
	ck_assert_uint_eq(conf->backings[0].size_bytes, GIB);
	ck_assert_uint_eq(conf->backings[0].block_size, 4096);
	ck_assert_uint_eq(conf->backings[0].physical_block, 8192);
	ck_assert(!conf->backings[0].direct);
	ck_assert(conf->backings[0].write_cache);
	ck_assert_int_eq(conf->backings[0].line, 4);

	ck_assert_uint_eq(conf->target_count, 1);
	ck_assert_str_eq(conf->targets[0].name, "iqn.2026-11.org.yoke:t");
	ck_assert_str_eq(conf->targets[0].portals.items[0], "left");
	ck_assert_str_eq(conf->targets[0].allow.items[0], "iqn.a:*");
	ck_assert_uint_eq(conf->targets[0].nop_interval_ns, NS_PER_S);
	ck_assert_uint_eq(conf->targets[0].nop_timeout_ns, 2 * NS_PER_S);
	ck_assert_uint_eq(conf->targets[0].data_out_timeout_ns, 3 * NS_PER_S);
	ck_assert_uint_eq(conf->targets[0].lun_count, 2);
	ck_assert_uint_eq(conf->targets[0].luns[0].number, 3);
	ck_assert(conf->targets[0].luns[0].read_only);
	ck_assert_str_eq(conf->targets[0].luns[0].allow.items[0], "iqn.2026-11.org.x:y");
	ck_assert_int_eq(conf->targets[0].luns[0].line, 9);
	ck_assert_uint_eq(conf->targets[0].luns[1].number, 7);
	ck_assert_str_eq(conf->targets[0].luns[1].backing, "f");
	conf_free(conf);
}
END_TEST

START_TEST(addresses_are_ready_to_be_bound)
{
	const struct sockaddr_in *v4;
	const struct sockaddr_in6 *v6;

	parse("node a { }\nportal p { group = 9\n"
	      " listen = { \"192.0.2.1:3260\", \"[2001:db8::1]:3261\", \"127.0.0.1:0\", "
	      "\"127.0.0.1:0\", \"[::]:3260\" } }");
	ck_assert_uint_eq(conf->portals[0].group, 9);
	ck_assert_uint_eq(conf->portals[0].listen_count, 5);
	v4 = (const struct sockaddr_in *)&conf->portals[0].listen[0].addr;
	ck_assert_int_eq(v4->sin_family, AF_INET);
	ck_assert_uint_eq(ntohl(v4->sin_addr.s_addr), 0xc0000201);
	ck_assert_uint_eq(ntohs(v4->sin_port), 3260);
	ck_assert_uint_eq(conf->portals[0].listen[0].addr_len, sizeof(*v4));
	v6 = (const struct sockaddr_in6 *)&conf->portals[0].listen[1].addr;
	ck_assert_int_eq(v6->sin6_family, AF_INET6);
	ck_assert_uint_eq(v6->sin6_addr.s6_addr[0], 0x20);
	ck_assert_uint_eq(v6->sin6_addr.s6_addr[15], 1);
	ck_assert_uint_eq(ntohs(v6->sin6_port), 3261);
	ck_assert_uint_eq(conf->portals[0].listen[1].addr_len, sizeof(*v6));
	ck_assert_str_eq(conf->portals[0].listen[1].text, "[2001:db8::1]:3261");
	conf_free(conf);
}
END_TEST

START_TEST(what_is_not_written_has_its_default)
{
	parse("node a { }\nportal p { listen = \"127.0.0.1:1\" group = 1 }\n"
	      "backing f { driver = file path = \"/f\" }\n"
	      "backing n { driver = null size = 1T block_size = 4096 }\n"
	      "target \"eui.0123456789abcdef\" { portals = p allow = \"*\" lun 0 { backing = f } }\n"
	      "target \"naa.0123456789abcdef\" { portals = p allow = \"*\" lun 5 { backing = f } }\n");
	ck_assert_uint_eq(conf->node.number, 1);
	ck_assert_str_eq(conf->node.state_dir, "/var/lib/yoke");
	ck_assert_str_eq(conf->node.control, "/run/yoke/yoked.sock");
	ck_assert_uint_eq(conf->node.threads, 1);
	ck_assert_uint_eq(conf->node.disks.count, 0);
	ck_assert(!conf->node.faults);
	ck_assert_uint_eq(conf->node.oui, 0);
	ck_assert_uint_eq(conf->node.buffers_bytes, 256 * MIB);
	ck_assert_uint_eq(conf->node.login_timeout_ns, 15 * NS_PER_S);
	ck_assert_uint_eq(conf->node.sessions_max, 1024);
	ck_assert_uint_eq(conf->backings[0].size_bytes, 0);
	ck_assert_uint_eq(conf->backings[0].block_size, 512);
	ck_assert_uint_eq(conf->backings[0].physical_block, 512);
	ck_assert(conf->backings[0].direct);
	ck_assert(!conf->backings[0].write_cache);
	ck_assert_str_eq(conf->backings[1].path, "");
	ck_assert_uint_eq(conf->backings[1].physical_block, 4096);
	ck_assert(!conf->backings[1].direct);
	ck_assert_uint_eq(conf->targets[0].nop_interval_ns, 30 * NS_PER_S);
	ck_assert_uint_eq(conf->targets[0].nop_timeout_ns, 30 * NS_PER_S);
	ck_assert_uint_eq(conf->targets[0].data_out_timeout_ns, 60 * NS_PER_S);
	ck_assert_uint_eq(conf->targets[1].luns[0].allow.count, 0);
	ck_assert(!conf->targets[1].luns[0].read_only);
	conf_free(conf);
}
END_TEST

START_TEST(things_are_found_by_name)
{
	parse("node a { }\nportal p { listen = \"127.0.0.1:1\" group = 1 }\n"
	      "portal q { listen = \"127.0.0.1:2\" group = 2 }\n"
	      "backing b { driver = ram size = 1M }\n"
	      "target \"iqn.2026-11.org.yoke:t\" { portals = q allow = \"*\" }\n");
	ck_assert_ptr_eq(conf_portal(conf, "q"), &conf->portals[1]);
	ck_assert_ptr_null(conf_portal(conf, "Q"));
	ck_assert_ptr_eq(conf_backing(conf, "b"), &conf->backings[0]);
	ck_assert_ptr_null(conf_backing(conf, ""));
	ck_assert_ptr_eq(conf_target(conf, "IQN.2026-11.org.yoke:T"), &conf->targets[0]);
	ck_assert_ptr_null(conf_target(conf, "iqn.2026-11.org.yoke:"));
	conf_free(conf);
}
END_TEST

START_TEST(allowing_is_by_whole_name_prefix_or_star)
{
	char *items[] = { (char *)"iqn.1998-01.com.vmware:*", (char *)"iqn.2026-11.org.x:host" };
	char *star[] = { (char *)"*" };
	/* A star elsewhere than at the end is no pattern. */
	char *odd[] = { (char *)"", (char *)"*x", (char *)"iqn.*:host" };
	struct conf_strings list = { items, 2 }, all = { star, 1 }, none = { NULL, 0 };
	struct conf_strings others = { odd, 3 };

	ck_assert(conf_allows(&list, "iqn.1998-01.com.vmware:esx1"));
	ck_assert(conf_allows(&list, "iqn.1998-01.com.vmware:"));
	ck_assert(conf_allows(&list, "IQN.1998-01.COM.VMWARE:ESX1"));
	ck_assert(!conf_allows(&list, "iqn.1998-01.com.vmware"));
	ck_assert(conf_allows(&list, "iqn.2026-11.org.x:HOST"));
	ck_assert(!conf_allows(&list, "iqn.2026-11.org.x:host1"));
	ck_assert(!conf_allows(&list, "iqn.2026-11.org.x:hos"));
	ck_assert(!conf_allows(&list, ""));
	ck_assert(conf_allows(&all, "anything"));
	ck_assert(!conf_allows(&none, "anything"));
	ck_assert(!conf_allows(&others, "iqn.2026-11.org.x:host"));
}
END_TEST

START_TEST(the_example_is_good)
{
	ck_assert_msg(conf_load("conf/yoke.conf.example", &conf, &error) == 0, "%s", error.text);
	ck_assert_str_eq(conf->node.name, "alpha");
	ck_assert_uint_eq(conf->portal_count, 2);
	ck_assert_uint_eq(conf->targets[0].lun_count, 2);
	conf_free(conf);
}
END_TEST

START_TEST(what_cannot_be_read_is_refused_by_name)
{
	char dir[] = "/tmp/yoke-conf-XXXXXX";
	char path[64], wanted[128];

	ck_assert_ptr_nonnull(mkdtemp(dir));
	ck_assert_int_eq(conf_load(dir, &conf, &error), -EINVAL);
	snprintf(wanted, sizeof(wanted), "%s: not a regular file", dir);
	ck_assert_str_eq(error.text, wanted);

	snprintf(path, sizeof(path), "%s/f", dir);
	ck_assert_int_eq(conf_load(path, &conf, &error), -ENOENT);
	snprintf(wanted, sizeof(wanted), "%s: no such file. Write it, see yoke.conf(5)", path);
	ck_assert_str_eq(error.text, wanted);

	/* Nobody writes to it: opening it must not wait for that. */
	ck_assert_int_eq(mkfifo(path, 0600), 0);
	ck_assert_int_eq(conf_load(path, &conf, &error), -EINVAL);
	unlink(path);
	rmdir(dir);
}
END_TEST

START_TEST(a_summary_counts_in_words)
{
	static const struct {
		const char *text, *summary;
	} rows[] = {
		{ "node \"a\" {}", "node \"a\", 0 portals, 0 backings, 0 targets, 0 LUNs" },
		{ "node \"b\" {}\n"
		  "portal \"p\" { listen = {\"127.0.0.1:3260\"} group = 1 }\n"
		  "backing \"r\" { driver = \"ram\" size = \"1M\" }\n"
		  "backing \"s\" { driver = \"ram\" size = \"1M\" }\n"
		  "target \"iqn.2026-11.org.yoke:x\" { portals = {\"p\"} allow = {\"*\"}\n"
		  "lun \"0\" { backing = \"r\" } }\n"
		  "target \"iqn.2026-11.org.yoke:y\" { portals = {\"p\"} allow = {\"*\"}\n"
		  "lun \"0\" { backing = \"r\" } lun \"7\" { backing = \"s\" } }\n",
		  "node \"b\", 1 portal, 2 backings, 2 targets, 3 LUNs" },
	};
	char text[256];

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		ck_assert_msg(conf_parse("x", rows[i].text, strlen(rows[i].text), &conf, &error) ==
				      0,
			      "%s", error.text);
		conf_summary(conf, text, sizeof(text));
		ck_assert_str_eq(text, rows[i].summary);
		conf_free(conf);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("conf");
	TCase *tcase = tcase_create("conf");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_test(tcase, every_setting_arrives);
	tcase_add_test(tcase, addresses_are_ready_to_be_bound);
	tcase_add_test(tcase, what_is_not_written_has_its_default);
	tcase_add_test(tcase, things_are_found_by_name);
	tcase_add_test(tcase, allowing_is_by_whole_name_prefix_or_star);
	tcase_add_test(tcase, the_example_is_good);
	tcase_add_test(tcase, what_cannot_be_read_is_refused_by_name);
	tcase_add_test(tcase, a_summary_counts_in_words);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
