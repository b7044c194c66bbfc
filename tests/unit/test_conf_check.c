/* SPDX-License-Identifier: MIT */
/*
 * Every way a configuration can be wrong that its own text can show, each with
 * the exact line that a user gets to read.
 *
 * Not here: the text itself (test_conf_text.c), good configurations (test_conf.c).
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/conf.h"

#define NODE "node \"a\" { }\n"
#define PORTAL "portal \"p\" { listen = { \"127.0.0.1:3260\" } group = 1 }\n"
#define BASE NODE PORTAL "backing \"b\" { driver = \"ram\" size = \"1M\" }\n"
#define TARGET "target \"iqn.2026-11.org.yoke:t\" {\n"
#define OPEN "portals = { \"p\" } allow = { \"*\" }"
#define X64 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define X120 X64 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define X210 X64 X64 X64 "xxxxxxxxxxxxxxxxxx"

static const struct {
	const char *text;
	const char *refusal;
} bad[] = {
	{ "number = 1\n", "yoke.conf:1: number: outside of any section. Move it into one" },
	{ "node { }\n", "yoke.conf:1: node: no name. Write node \"NAME\" { }" },
	{ NODE "portl \"x\" { }\n",
	  "yoke.conf:2: portl: no such section. There are node, portal, backing, target" },
	{ "node \"a\" {\nportal \"x\" { }\n}\n",
	  "yoke.conf:2: portal: no such section inside node of line 1. Is a } missing above?" },
	{ "node \"a\" {\ncolour = \"red\"\n}\n",
	  "yoke.conf:2: node: no setting colour. There are number, state_dir, control, threads, disks, faults, oui, buffers, login_timeout, sessions_max, array_wait" },
	{ NODE "\npair { peer = \"b\" }\n",
	  "yoke.conf:3: pair: not built yet in this version; remove it" },
	{ NODE "auth \"esx\" { user = \"x\" }\n",
	  "yoke.conf:2: auth: not built yet in this version; remove it" },
	{ NODE "discovery { }\n",
	  "yoke.conf:2: discovery: not built yet in this version; remove it" },
	{ NODE "witness { driver = \"etcd\" }\n",
	  "yoke.conf:2: witness: not built yet in this version; remove it" },
	{ BASE TARGET OPEN "\nauth = \"esx\"\n}\n",
	  "yoke.conf:6: target: auth: not built yet in this version; remove it" },
	{ BASE TARGET OPEN "\nlun \"1\" { volume = \"vg00/ds1\" }\n}\n",
	  "yoke.conf:6: lun: volume: not built yet in this version; remove it" },
	{ NODE "portal { }\n", "yoke.conf:2: portal: no name. Write portal \"NAME\" { }" },
	{ BASE TARGET OPEN " lun { backing = \"b\" }\n}\n",
	  "yoke.conf:5: lun: no name. Write lun \"0\" { }" },
	{ "node \"a\" {\nnumber = 3\n}\n",
	  "yoke.conf:2: node \"a\": number: \"3\" is not a number from 1 to 2" },
	{ "node \"a\" {\nnumber = -1\n}\n",
	  "yoke.conf:2: node \"a\": number: \"-1\" is not a number from 1 to 2" },
	{ "node \"a\" {\nnumber = \"1 \"\n}\n",
	  "yoke.conf:2: node \"a\": number: \"1 \" is not a number from 1 to 2" },
	{ "node \"a\" {\nhttp = \"127.0.0.1:80\"\n}\n",
	  "yoke.conf:2: node \"a\": http: not built yet in this version; remove it" },
	{ "node \"a\" {\nthreads = 2\n}\n",
	  "yoke.conf:2: node \"a\": threads: 2: not built yet in this version; write 1" },
	{ "node \"a\" {\nthreads = 0x1\n}\n",
	  "yoke.conf:2: node \"a\": threads: \"0x1\" is not a number from 0 to 1024" },
	{ "node \"a\" {\nstate_dir = \"var\"\n}\n",
	  "yoke.conf:2: node \"a\": state_dir: \"var\" is not a whole path. Begin it with /" },
	{ "node \"a\" {\ncontrol = \"/" X120 "\"\n}\n",
	  "yoke.conf:2: node \"a\": control: longer than the 107 bytes that a socket's path may have. Use a shorter one" },
	{ "node \"a\" {\nfaults = yes\n}\n",
	  "yoke.conf:2: node \"a\": faults: \"yes\" is neither true nor false" },
	{ "node \"a\" {\noui = \"00:a0\"\n}\n",
	  "yoke.conf:2: node \"a\": oui: \"00:a0\" is not an OUI. Write three bytes like 00:a0:98" },
	{ "node \"a\" {\noui = \"000000\"\n}\n",
	  "yoke.conf:2: node \"a\": oui: \"000000\" is not an OUI. Write three bytes like 00:a0:98" },
	{ "node \"a\" {\nbuffers = \"256MB\"\n}\n",
	  "yoke.conf:2: node \"a\": buffers: \"256MB\" is not a size. Write 256M (K M G T P are powers of 1024)" },
	{ "node \"a\" {\nbuffers = \"1M\"\n}\n",
	  "yoke.conf:2: node \"a\": buffers: 1M is out of range. Write 16M to 1T" },
	{ "node \"a\" {\nbuffers = \"lots\"\n}\n",
	  "yoke.conf:2: node \"a\": buffers: \"lots\" is not a size. Write bytes, or like 256M (K M G T P are powers of 1024)" },
	{ "node \"a\" {\nlogin_timeout = \"15\"\n}\n",
	  "yoke.conf:2: node \"a\": login_timeout: \"15\" has no unit. Write 15s or 15ms" },
	{ "node \"a\" {\nlogin_timeout = \"2h\"\n}\n",
	  "yoke.conf:2: node \"a\": login_timeout: 2h is out of range. Write 100ms to 1h" },
	{ "node \"a\" {\nlogin_timeout = \"1d\"\n}\n",
	  "yoke.conf:2: node \"a\": login_timeout: \"1d\" is not a duration. Write like 300ms or 30s (ns us ms s m h)" },
	{ "node \"a\" {\nsessions_max = 0\n}\n",
	  "yoke.conf:2: node \"a\": sessions_max: \"0\" is not a number from 1 to 32000" },
	{ "node \"a\" {\nsessions_max = 32001\n}\n",
	  "yoke.conf:2: node \"a\": sessions_max: \"32001\" is not a number from 1 to 32000" },
	{ "node \"a\" {\ndisks = { \"/dev/a\",\n\"sda\" }\n}\n",
	  "yoke.conf:3: node \"a\": disks: \"sda\" is not a whole path. Begin it with /, without .." },
	{ "node \"a\" {\ndisks = { \"/srv/../etc/x\" }\n}\n",
	  "yoke.conf:2: node \"a\": disks: \"/srv/../etc/x\" is not a whole path. Begin it with /, without .." },
	{ "node \"a b\" { }\n",
	  "yoke.conf:1: node \"a b\": not a name. Use 1 to 63 letters, digits, . _ -" },
	{ "node \"\" { }\n",
	  "yoke.conf:1: node \"\": not a name. Use 1 to 63 letters, digits, . _ -" },
	{ "node \"" X64 "\" { }\n",
	  "yoke.conf:1: node \"" X64 "\": not a name. Use 1 to 63 letters, digits, . _ -" },
	{ "node \"a\" {\nnumber = {1, 2}\n}\n",
	  "yoke.conf:2: node: number: takes one value. Write it without braces" },
	{ "node \"a\" {\nbuffers = \"99999999999999999999999\"\n}\n",
	  "yoke.conf:2: node \"a\": buffers: 99999999999999999999999 is too large" },
	{ "node \"a\" {\nbuffers = \"\"\n}\n",
	  "yoke.conf:2: node \"a\": buffers: \"\" is not a size. Write bytes, or like 256M (K M G T P are powers of 1024)" },
	{ NODE "portal \"q\" {\ngroup = 1\n}\n",
	  "yoke.conf:2: portal \"q\": no listen, nobody could reach it. Add listen = { \"ADDRESS:3260\" }" },
	{ NODE "portal \"q\" {\nlisten = { } group = 1\n}\n",
	  "yoke.conf:3: portal: listen: no value. Write one" },
	{ NODE "portal \"q\" {\nlisten = { \"127.0.0.1:1\" }\n}\n",
	  "yoke.conf:2: portal \"q\": no group. Add group = N, another number for each portal" },
	{ NODE "portal \"q\" {\nlisten = { \"127.0.0.1\" } group = 1\n}\n",
	  "yoke.conf:3: portal \"q\": listen: \"127.0.0.1\" is not an address and port. Write like 192.0.2.1:3260 or [2001:db8::1]:3260" },
	{ NODE "portal \"q\" {\nlisten = { \"localhost:3260\" } group = 1\n}\n",
	  "yoke.conf:3: portal \"q\": listen: \"localhost:3260\" is not an address and port. Write like 192.0.2.1:3260 or [2001:db8::1]:3260" },
	{ NODE "portal \"q\" {\nlisten = { \"::1:3260\" } group = 1\n}\n",
	  "yoke.conf:3: portal \"q\": listen: \"::1:3260\" is not an address and port. Write like 192.0.2.1:3260 or [2001:db8::1]:3260" },
	{ NODE "portal \"q\" {\nlisten = { \"[::1]\" } group = 1\n}\n",
	  "yoke.conf:3: portal \"q\": listen: \"[::1]\" is not an address and port. Write like 192.0.2.1:3260 or [2001:db8::1]:3260" },
	{ NODE "portal \"q\" {\nlisten = { \"127.0.0.1:65536\" } group = 1\n}\n",
	  "yoke.conf:3: portal \"q\": listen: \"127.0.0.1:65536\" is not an address and port. Write like 192.0.2.1:3260 or [2001:db8::1]:3260" },
	{ NODE
	  "portal \"q\" {\nlisten = { \"127.0.0.1:3260\",\n\"127.0.0.1:3260\" } group = 1\n}\n",
	  "yoke.conf:4: portal \"q\": 127.0.0.1:3260 and 127.0.0.1:3260 are the same port. Remove one" },
	{ NODE PORTAL
	  "portal \"q\" {\n listen = { \"[::1]:3260\",\n \"127.0.0.1:3260\" }\n group = 2 }\n",
	  "yoke.conf:5: portal \"q\": 127.0.0.1:3260 is also in \"p\", line 2. Change one" },
	{ NODE PORTAL "portal \"q\" { listen = { \"0.0.0.0:3260\" } group = 2 }\n",
	  "yoke.conf:3: portal \"q\": 0.0.0.0:3260 is also in \"p\", line 2, as 127.0.0.1:3260. Change one" },
	{ NODE PORTAL "portal \"q\" { listen = { \"127.0.0.1:3261\" }\n group = 1 }\n",
	  "yoke.conf:4: portal \"q\": group 1 is also that of \"p\", line 2. Change one" },
	{ NODE "portal \"q\" {\nlisten = { \"127.0.0.1:1\" } group = 0\n}\n",
	  "yoke.conf:3: portal \"q\": group: \"0\" is not a number from 1 to 65535" },
	{ NODE "portal \"q\" {\nlisten = { \"127.0.0.1:1\" } group = 65536\n}\n",
	  "yoke.conf:3: portal \"q\": group: \"65536\" is not a number from 1 to 65535" },
	{ NODE "backing \"c\" {\nsize = \"1M\"\n}\n",
	  "yoke.conf:2: backing \"c\": no driver. Add driver = \"ram\", \"null\" or \"file\"" },
	{ NODE "backing \"c\" {\ndriver = \"rbd\"\n}\n",
	  "yoke.conf:3: backing \"c\": driver: no \"rbd\" in this version. Use ram, null or file" },
	{ NODE "backing \"c\" {\ndriver = \"ram\"\n}\n",
	  "yoke.conf:2: backing \"c\": no size. Add one like size = \"256M\"" },
	{ NODE "backing \"c\" {\ndriver = \"null\"\n}\n",
	  "yoke.conf:2: backing \"c\": no size. Add one like size = \"256M\"" },
	{ NODE "backing \"c\" {\ndriver = \"file\"\n}\n",
	  "yoke.conf:3: backing \"c\": no path. Add path = \"/FILE\", or use driver \"ram\"" },
	{ NODE "backing \"c\" {\ndriver = \"file\" path = \"x.img\"\n}\n",
	  "yoke.conf:3: backing \"c\": path: \"x.img\" is not a whole path. Begin it with /" },
	{ NODE "backing \"c\" {\ndriver = \"ram\" size = \"1M\"\npath = \"/x\"\n}\n",
	  "yoke.conf:4: backing \"c\": path is for driver \"file\" only. Remove it" },
	{ NODE "backing \"c\" {\ndriver = \"ram\" size = \"1M\"\ndirect = true\n}\n",
	  "yoke.conf:4: backing \"c\": direct is for driver \"file\" only. Remove it" },
	{ NODE "backing \"c\" {\ndriver = \"ram\" size = \"1000\"\n}\n",
	  "yoke.conf:3: backing \"c\": size: 1000 is not a multiple of block_size (512)" },
	{ NODE "backing \"c\" {\ndriver = \"ram\" size = \"1M\" block_size = 1024\n}\n",
	  "yoke.conf:3: backing \"c\": block_size: 1024. Write 512 or 4096" },
	{ NODE "backing \"c\" {\ndriver = \"ram\" size = \"6K\" block_size = 4096\n}\n",
	  "yoke.conf:3: backing \"c\": size: 6144 is not a multiple of block_size (4096)" },
	{ NODE "backing \"c\" {\ndriver = \"ram\" size = \"1M\" physical_block = 1536\n}\n",
	  "yoke.conf:3: backing \"c\": physical_block: 1536 is not block_size (512) times a power of 2" },
	{ NODE
	  "backing \"c\" {\ndriver = \"ram\" size = \"1M\" block_size = 4096\nphysical_block = 512\n}\n",
	  "yoke.conf:4: backing \"c\": physical_block: 512 is not block_size (4096) times a power of 2" },
	{ NODE "backing \"c\" {\ndriver = \"ram\" size = \"100GiB\"\n}\n",
	  "yoke.conf:3: backing \"c\": size: \"100GiB\" is not a size. Write 100G (K M G T P are powers of 1024)" },
	{ NODE "backing \"c\" {\ndriver = \"ram\" size = \"1m\"\n}\n",
	  "yoke.conf:3: backing \"c\": size: \"1m\" is not a size. Write 1M (K M G T P are powers of 1024)" },
	{ NODE "backing \"c\" {\ndriver = \"ram\" size = \"2048P\"\n}\n",
	  "yoke.conf:3: backing \"c\": size: 2048P is out of range. Write 512 to 1024P" },
	{ NODE "backing \"c\" {\ndriver = \"ram\" size = \"99999999999P\"\n}\n",
	  "yoke.conf:3: backing \"c\": size: 99999999999P is too large" },
	{ NODE "backing \"c\" {\ndriver = \"ram\" size = \"1M\" write_cache = 1\n}\n",
	  "yoke.conf:3: backing \"c\": write_cache: \"1\" is neither true nor false" },
	{ NODE
	  "backing \"c\" { driver = \"file\" path = \"/x\" }\nbacking \"d\" { driver = \"file\"\npath = \"/x\" }\n",
	  "yoke.conf:4: backing \"d\": /x is also in \"c\", line 2. Use that one, or another file" },
	{ BASE TARGET "allow = { \"*\" }\n}\n",
	  "yoke.conf:4: target \"iqn.2026-11.org.yoke:t\": no portals, nobody could reach it. Add portals = { \"NAME\" }" },
	{ BASE TARGET "portals = { \"p\" }\n}\n",
	  "yoke.conf:4: target \"iqn.2026-11.org.yoke:t\": no allow, nobody could log in. Add names, or \"*\"" },
	{ BASE TARGET "portals = { \"p\" } allow = { }\n}\n",
	  "yoke.conf:4: target \"iqn.2026-11.org.yoke:t\": no allow, nobody could log in. Add names, or \"*\"" },
	{ BASE TARGET "portals = { \"p\",\n\"q\" } allow = { \"*\" }\n}\n",
	  "yoke.conf:6: target \"iqn.2026-11.org.yoke:t\": no portal \"q\" (p exists). Add it, or name another" },
	{ NODE "target \"iqn.2026-11.org.yoke:t\" { portals = { \"q\" } allow = { \"*\" } }\n",
	  "yoke.conf:2: target \"iqn.2026-11.org.yoke:t\": no portal \"q\" (none exists). Add it, or name another" },
	{ BASE TARGET "portals = { \"p\", \"p\" } allow = { \"*\" }\n}\n",
	  "yoke.conf:5: target \"iqn.2026-11.org.yoke:t\": portals: \"p\" twice. Remove one" },
	{ BASE TARGET "portals = { \"p\" } allow = { \"*x\" }\n}\n",
	  "yoke.conf:5: target \"iqn.2026-11.org.yoke:t\": allow: \"*x\": only the end may be *" },
	{ BASE TARGET "portals = { \"p\" } allow = { \"esx1\" }\n}\n",
	  "yoke.conf:5: target \"iqn.2026-11.org.yoke:t\": allow: \"esx1\": not an iSCSI name. Write like iqn.2026-11.org.example:name" },
	{ BASE TARGET "portals = { \"p\" } allow = { \"iqn.2026-11.Org_*\" }\n}\n",
	  "yoke.conf:5: target \"iqn.2026-11.org.yoke:t\": allow: \"iqn.2026-11.org_*\": has a character that iSCSI names do not. Use a-z 0-9 - . :" },
	{ BASE TARGET "portals = { \"p\" } allow = { \"iqn.2026-13.org.x\" }\n}\n",
	  "yoke.conf:5: target \"iqn.2026-11.org.yoke:t\": allow: \"iqn.2026-13.org.x\": not a whole iqn. Write like iqn.2026-11.org.example:name" },
	{ NODE PORTAL "target \"demo\" { portals = { \"p\" } allow = { \"*\" } }\n",
	  "yoke.conf:3: target \"demo\": not an iSCSI name. Write like iqn.2026-11.org.example:name" },
	{ NODE PORTAL
	  "target \"iqn.2026-11.org.yoke:a_b\" { portals = { \"p\" } allow = { \"*\" } }\n",
	  "yoke.conf:3: target \"iqn.2026-11.org.yoke:a_b\": has a character that iSCSI names do not. Use a-z 0-9 - . :" },
	{ NODE PORTAL "target \"iqn.26-11.org\" { portals = { \"p\" } allow = { \"*\" } }\n",
	  "yoke.conf:3: target \"iqn.26-11.org\": not a whole iqn. Write like iqn.2026-11.org.example:name" },
	{ NODE PORTAL "target \"eui.0123\" { portals = { \"p\" } allow = { \"*\" } }\n",
	  "yoke.conf:3: target \"eui.0123\": eui. needs 16 hexadecimal digits" },
	{ NODE PORTAL "target \"naa.xyz\" { portals = { \"p\" } allow = { \"*\" } }\n",
	  "yoke.conf:3: target \"naa.xyz\": naa. needs 16 or 32 hexadecimal digits" },
	{ NODE PORTAL "target \"iqn.2026-11.org:" X210
		      "\" { portals = { \"p\" } allow = { \"*\" } }\n",
	  "yoke.conf:3: target \"iqn.2026-11.org:" X64
	  "xxxxxxxxxxxxxxxx\": longer than the 223 bytes that iSCSI allows" },
	{ BASE
	  "target \"iqn.2026-11.org.yoke:t\" { portals = { \"p\" } allow = { \"*\" } lun \"0\" { backing = \"b\" } }\ntarget \"IQN.2026-11.org.Yoke:T\" { portals = { \"p\" } allow = { \"*\" } }\n",
	  "yoke.conf:5: target \"IQN.2026-11.org.Yoke:T\": also in line 4, case aside. Remove one" },
	{ BASE TARGET OPEN " nop_interval = \"1us\"\n}\n",
	  "yoke.conf:5: target \"iqn.2026-11.org.yoke:t\": nop_interval: 1us is out of range. Write 10ms to 24h" },
	{ BASE TARGET OPEN " data_out_timeout = \"30\"\n}\n",
	  "yoke.conf:5: target \"iqn.2026-11.org.yoke:t\": data_out_timeout: \"30\" has no unit. Write 30s or 30ms" },
	{ BASE TARGET OPEN " lun \"16384\" { backing = \"b\" }\n}\n",
	  "yoke.conf:5: lun \"16384\": not a LUN. Use a number from 0 to 16383" },
	{ BASE TARGET OPEN " lun \"01\" { backing = \"b\" }\n}\n",
	  "yoke.conf:5: lun \"01\": not a LUN. Use a number from 0 to 16383" },
	{ BASE TARGET OPEN " lun \"-1\" { backing = \"b\" }\n}\n",
	  "yoke.conf:5: lun \"-1\": not a LUN. Use a number from 0 to 16383" },
	{ BASE TARGET OPEN " lun \"x\" { backing = \"b\" }\n}\n",
	  "yoke.conf:5: lun \"x\": not a LUN. Use a number from 0 to 16383" },
	{ BASE TARGET OPEN " lun \"1\" { }\n}\n",
	  "yoke.conf:5: lun \"1\": neither backing nor array. Add backing = \"NAME\" or array = \"NAME\"" },
	{ BASE TARGET OPEN " lun \"1\" { backing = \"b\"\narray = \"r5\" }\n}\n",
	  "yoke.conf:6: lun \"1\": both backing \"b\" and array \"r5\". Remove one" },
	{ BASE TARGET OPEN " lun \"1\" { array = \"r/5\" }\n}\n",
	  "yoke.conf:5: lun \"1\": array: \"r/5\" is not a name. Use 1 to 63 letters, digits, . _ -" },
	{ BASE TARGET OPEN " lun \"1\" { array = \"r5\" }\nlun \"2\" { array = \"r5\" }\n}\n",
	  "yoke.conf:6: lun \"2\": array \"r5\" is also lun \"1\" of this target, line 5. Remove one" },
	{ BASE TARGET OPEN " lun \"1\" { backing = \"b\"\nwrite_cache = true }\n}\n",
	  "yoke.conf:6: lun \"1\": write_cache is for an array. Write it into backing \"b\"" },
	{ BASE TARGET OPEN
	  " lun \"1\" { array = \"r5\" }\n}\n"
	  "target \"iqn.2026-11.org.yoke:u\" { portals = { \"p\" } allow = { \"*\" }\n"
	  "lun \"1\" { write_cache = true\narray = \"r5\" } }\n",
	  "yoke.conf:9: lun \"1\": write_cache of array \"r5\" is another in line 5. Write the same" },
	{ BASE TARGET OPEN " lun \"1\" { backing = \"bb\" }\n}\n",
	  "yoke.conf:5: lun \"1\": no backing \"bb\" (b exists). Add it, or name another" },
	{ BASE TARGET OPEN " lun \"1\" { backing = \"b\" }\nlun \"1\" { backing = \"b\" }\n}\n",
	  "yoke.conf:6: lun \"1\": also in line 5. Remove one" },
	{ BASE TARGET OPEN " lun \"1\" { backing = \"b\" }\nlun \"2\" { backing = \"b\" }\n}\n",
	  "yoke.conf:6: lun \"2\": backing \"b\" is also lun \"1\" of this target, line 5. Remove one" },
	{ BASE TARGET OPEN " lun \"1\" { backing = \"b\" allow = { \"x\" } }\n}\n",
	  "yoke.conf:5: lun \"1\": allow: \"x\": not an iSCSI name. Write like iqn.2026-11.org.example:name" },
	{ BASE TARGET OPEN " lun \"1\" { backing = \"b\" read_only = \"no\" }\n}\n",
	  "yoke.conf:5: lun \"1\": read_only: \"no\" is neither true nor false" },
};

START_TEST(a_wrong_configuration_is_refused_with_its_line_cause_and_remedy)
{
	struct conf *conf = (struct conf *)1;
	struct conf_error error;

	ck_assert_int_eq(conf_parse("yoke.conf", bad[_i].text, strlen(bad[_i].text), &conf, &error),
			 -22);
	ck_assert_str_eq(error.text, bad[_i].refusal);
	ck_assert_ptr_eq(conf, (struct conf *)1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("conf_check");
	TCase *tcase = tcase_create("refusals");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_loop_test(tcase, a_wrong_configuration_is_refused_with_its_line_cause_and_remedy,
			    0, ARRAY_LEN(bad));
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
