/* SPDX-License-Identifier: MIT */
/*
 * yoked: the daemon. Arguments, start, signals, stop.
 *
 *   starting --applied--> serving --SIGTERM, SIGINT--> stopping --drained--> exit 0
 *      |                     | SIGHUP: reload              | STOP_LIMIT, or a second signal
 *      +--refused--> exit 1                                +--> exit 1
 *
 * Invariants:
 * 1. A start that is refused says one line, `yoked: object: cause. remedy`,
 *    and exits with 1; wrong usage exits with 2.
 * 2. The control socket answers only while the targets are served.
 * 3. A clean stop frees everything: what is left over is a leak.
 *
 * Not here: what a configuration turns into (apply.c), control methods
 * (status.c, lists.c, faults.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/event.h"
#include "core/log.h"
#include "core/version.h"
#include "target/ctl.h"
#include "target/daemon.h"

#define STOP_LIMIT_S 20.0
#define COMMANDS_PER_SESSION 128
#define LOGIN_EXCHANGES_MAX 32
#define CONNECTIONS_BEYOND_SESSIONS 1024
#define FDS_BESIDE_SESSIONS 1024 /* backings, listeners, clients of the control socket */

struct daemon {
	struct yoked yoked;
	struct ctl_server *server;
	ev_signal sigterm, sigint, sighup;
	ev_timer stop_limit;
	unsigned exports_left;
	bool stopping;
	bool reload_again; /* SIGHUP while a reload is under way, which may have read the file before */
	int status;
};

/*
 * Where the system lets us have few descriptors, some stay free for the control socket and for
 * backings: who connects and says nothing must not lock the administrator out.
 */
static unsigned connections_max(const struct conf_node *node)
{
	unsigned wanted = node->sessions_max + CONNECTIONS_BEYOND_SESSIONS;
	struct rlimit limit;
	rlim_t most;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return wanted;
	most = limit.rlim_cur - (limit.rlim_cur < 2 * FDS_BESIDE_SESSIONS ? limit.rlim_cur / 2 :
									    FDS_BESIDE_SESSIONS);
	return wanted < most ? wanted : (unsigned)most;
}

void yoked_limits(const struct conf_node *node, struct iscsi_limits *limits)
{
	*limits = (struct iscsi_limits){
		.sessions_max = node->sessions_max,
		.connections_max = connections_max(node),
		.login_timeout_ns = node->login_timeout_ns,
		.login_exchanges_max = LOGIN_EXCHANGES_MAX,
		.commands_per_session = COMMANDS_PER_SESSION,
	};
}

/* sd_notify(3)'s datagram; nothing happens where nobody asked for it. */
static void notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	size_t len = path ? strlen(path) : 0;
	int fd;

	if (len < 2 || len >= sizeof(addr.sun_path))
		return;
	memcpy(addr.sun_path, path, len);
	if (path[0] == '@')
		addr.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&addr,
	       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
	close(fd);
}

/* ---- stop ---- */

static void stop_limit_over(struct ev_loop *ev, ev_timer *timer, int revents)
{
	(void)ev;
	(void)timer;
	(void)revents;
	log_line(LOG_L_ERROR, "yoked", "", "stop-forced", "cause=I/O did not end in %.0f s",
		 STOP_LIMIT_S);
	_exit(1);
}

static void close_stores(struct yoked *yoked, bool arrays)
{
	struct store *store, *next;

	TAILQ_FOREACH_SAFE(store, &yoked->stores, link, next) {
		if (store->array != arrays)
			continue;
		TAILQ_REMOVE(&yoked->stores, store, link);
		store_close(store);
	}
}

static void stop_drained(void *arg)
{
	loop_stop(arg);
}

static void stop_arrays_done(void *arg)
{
	struct daemon *daemon = arg;
	struct yoked *yoked = &daemon->yoked;

	disks_free(yoked->disks);
	arrays_free(yoked->arrays);
	yoked->disks = NULL;
	yoked->arrays = NULL;
	close_stores(yoked, false);
	/* Logical units may outlive their stores for an io of their own. */
	lu_files_drain(yoked->lu_files, stop_drained, yoked->loop);
}

/* Logical units let go of arrays, arrays of disks, disks of backings. */
static void stop_stores(struct daemon *daemon)
{
	close_stores(&daemon->yoked, true);
	arrays_stop(daemon->yoked.arrays, stop_arrays_done, daemon);
}

static void stop_export_done(void *arg)
{
	struct daemon *daemon = arg;

	if (!--daemon->exports_left)
		stop_stores(daemon);
}

static void stop_iscsi_done(void *arg)
{
	struct daemon *daemon = arg;
	struct export *export, *next;

	daemon->exports_left = 1;
	TAILQ_FOREACH_SAFE(export, &daemon->yoked.exports, link, next) {
		daemon->exports_left++;
		export_remove(&daemon->yoked, export, stop_export_done, daemon);
	}
	stop_export_done(daemon);
}

static void stop(struct daemon *daemon, const char *reason)
{
	struct yoked *yoked = &daemon->yoked;

	if (daemon->stopping) {
		if (reason)
			_exit(1);
		return;
	}
	daemon->stopping = true;
	if (reason) {
		event_emit(EVENT_STOPPING, reason);
		notify("STOPPING=1");
	}
	ev_timer_start(loop_ev(yoked->loop), &daemon->stop_limit);
	ctl_server_free(daemon->server);
	daemon->server = NULL;
	/* A reload that is under way ends first, and then comes here by applied(). */
	if (!yoked->applying)
		iscsi_server_stop(yoked->iscsi, stop_iscsi_done, daemon);
}

/* ---- signals ---- */

/* The events tell how it went. */
static void reload_done(void *arg, int error, const char *text, json_t *changes)
{
	(void)arg;
	(void)error;
	(void)text;
	(void)changes;
}

static void reload(struct daemon *daemon)
{
	daemon->reload_again = daemon->yoked.applying != NULL;
	if (!daemon->reload_again)
		apply_start(&daemon->yoked, NULL, reload_done, daemon);
}

static void applied(struct yoked *yoked)
{
	struct daemon *daemon = container_of(yoked, struct daemon, yoked);

	if (daemon->stopping)
		iscsi_server_stop(yoked->iscsi, stop_iscsi_done, daemon);
	else if (daemon->reload_again)
		reload(daemon);
}

static void on_reload(struct ev_loop *ev, ev_signal *signal, int revents)
{
	struct daemon *daemon = signal->data;

	(void)ev;
	(void)revents;
	if (!daemon->stopping)
		reload(daemon);
}

static void on_stop(struct ev_loop *ev, ev_signal *sig, int revents)
{
	(void)ev;
	(void)revents;
	stop(sig->data, sig->signum == SIGINT ? "SIGINT" : "SIGTERM");
}

static void watch_signals(struct daemon *daemon)
{
	struct ev_loop *ev = loop_ev(daemon->yoked.loop);

	signal(SIGPIPE, SIG_IGN);
	ev_signal_init(&daemon->sigterm, on_stop, SIGTERM);
	ev_signal_init(&daemon->sigint, on_stop, SIGINT);
	ev_signal_init(&daemon->sighup, on_reload, SIGHUP);
	daemon->sigterm.data = daemon->sigint.data = daemon->sighup.data = daemon;
	ev_signal_start(ev, &daemon->sigterm);
	ev_signal_start(ev, &daemon->sigint);
	ev_signal_start(ev, &daemon->sighup);
	ev_timer_init(&daemon->stop_limit, stop_limit_over, STOP_LIMIT_S, 0.0);
}

/* ---- start ---- */

static void start_done(void *arg, int error, const char *text, json_t *changes)
{
	struct daemon *daemon = arg;
	struct yoked *yoked = &daemon->yoked;
	char cause[512] = "";

	(void)changes;
	if (!error && !daemon->stopping)
		daemon->server = ctl_server_new(yoked->loop, yoked->ctl, yoked->conf->node.control,
						cause, sizeof(cause));
	if (daemon->stopping)
		return; /* applied() goes on */
	if (error || !daemon->server) {
		fprintf(stderr, "yoked: %s\n", error ? text : cause);
		daemon->status = 1;
		daemon->stopping = true;
		return;
	}
	event_emit(EVENT_STARTED, yoke_version(), yoked->conf->node.name);
	notify("READY=1");
}

/*
 * Sessions are file descriptors: as many as the system lets us have. The kernel makes the
 * table longer by waiting for all processors (synchronize_rcu), 10 ms and more in the middle of
 * an accept, once a process has threads: so it gets its length now.
 */
static void prepare_fds(const struct conf_node *node)
{
	rlim_t wanted = node->sessions_max + CONNECTIONS_BEYOND_SESSIONS + FDS_BESIDE_SESSIONS;
	struct rlimit limit;
	int low, high;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		return;
	low = open("/dev/null", O_RDONLY | O_CLOEXEC);
	high = fcntl(low, F_DUPFD_CLOEXEC,
		     (int)(wanted < limit.rlim_cur ? wanted : limit.rlim_cur - 1));
	if (high >= 0)
		close(high);
	if (low >= 0)
		close(low);
}

/*
 * What a session takes is mapped for it and unmapped with it: memory goes down again after the
 * rush. By itself glibc raises the threshold once such a block was freed, and keeps the rest.
 */
static void prepare_memory(void)
{
	mallopt(M_MMAP_THRESHOLD, 64 * KIB);
	mallopt(M_TRIM_THRESHOLD, 1 * MIB);
	mallopt(M_ARENA_MAX, 2);
}

static int daemon_run(const char *conf_path, struct conf *conf)
{
	struct daemon daemon = { .yoked = { .conf_path = conf_path,
					    .oui = (uint32_t)conf->node.oui,
					    .faults = conf->node.faults } };
	struct yoked *yoked = &daemon.yoked;
	struct iscsi_limits limits;
	char text[512];

	prepare_memory();
	prepare_fds(&conf->node);
	TAILQ_INIT(&yoked->stores);
	TAILQ_INIT(&yoked->exports);
	yoked->applied = applied;
	yoked->state_dir_fd = identity_open(conf->node.state_dir, text, sizeof(text));
	if (yoked->state_dir_fd < 0) {
		fprintf(stderr, "yoked: %s:%d: %s\n", conf->file, conf->node.line, text);
		conf_free(conf);
		return 1;
	}
	yoked_limits(&conf->node, &limits);
	yoked->loop = loop_new();
	yoked->shard = yoked->loop ? shard_new(yoked->loop, 0) : NULL;
	yoked->buffers = buf_pool_new(conf->node.buffers_bytes);
	yoked->ctl = ctl_new();
	if (!yoked->shard || !yoked->buffers || !yoked->ctl) {
		fprintf(stderr, "yoked: cannot start: %s\n", strerror(errno));
		return 1;
	}
	shard_enter(yoked->shard);
	yoked->env = loop_env(yoked->loop);
	yoked->started_ns = env_now_ns(yoked->env);
	yoked->lu_files = lu_files_new(yoked->env, yoked->state_dir_fd);
	yoked->iscsi = iscsi_server_new(yoked->shard, yoked->buffers, &limits);
	yoked->disks = disks_new(yoked);
	yoked->arrays = arrays_new(yoked);
	if (!yoked->lu_files || !yoked->iscsi || !yoked->disks || !yoked->arrays ||
	    path_watch_start(yoked)) {
		fprintf(stderr, "yoked: cannot start: %s\n", strerror(errno));
		return 1;
	}
	status_register(yoked);
	lists_register(yoked);
	traffic_register(yoked);
	faults_register(yoked);
	disk_ctl_register(yoked);
	array_ctl_register(yoked);
	watch_signals(&daemon);
	apply_start(yoked, conf, start_done, &daemon);
	loop_run(yoked->loop);

	path_watch_stop(yoked);
	iscsi_server_free(yoked->iscsi);
	lu_files_free(yoked->lu_files);
	ctl_free(yoked->ctl);
	buf_pool_free(yoked->buffers);
	conf_free(yoked->conf);
	shard_free(yoked->shard);
	loop_free(yoked->loop);
	return daemon.status;
}

/* The modules that have more to tell than they do unasked. */
static bool debug(const char *module)
{
	static const char *const modules[] = { "all", "iscsi" };

	for (unsigned i = 0; i < ARRAY_LEN(modules); i++) {
		if (strcmp(module, modules[i]) == 0) {
			log_debug_enable(module);
			return true;
		}
	}
	fprintf(stderr, "yoked: -d %s: no such module. There are all, iscsi\n", module);
	return false;
}

static void usage(FILE *out)
{
	fputs("usage: yoked -c FILE [--check] [-d MODULE]...\n"
	      "  -c, --config FILE   the configuration, see yoke.conf(5)\n"
	      "      --check         check the configuration and exit: 0 good, 1 not\n"
	      "  -d, --debug MODULE  log more: iscsi (what logins say) or all\n"
	      "  -V, --version       print the version\n"
	      "  -h, --help          print this\n",
	      out);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "config", required_argument, NULL, 'c' }, { "check", no_argument, NULL, 'C' },
		{ "debug", required_argument, NULL, 'd' },  { "version", no_argument, NULL, 'V' },
		{ "help", no_argument, NULL, 'h' },         { NULL, 0, NULL, 0 },
	};
	const char *path = NULL;
	struct conf_error error;
	struct conf *conf;
	char summary[256];
	bool check = false;
	int option;

	while ((option = getopt_long(argc, argv, "c:d:Vh", options, NULL)) != -1) {
		switch (option) {
		case 'c':
			path = optarg;
			break;
		case 'C':
			check = true;
			break;
		case 'd':
			if (!debug(optarg))
				return 2;
			break;
		case 'V':
			printf("yoked %s\n", yoke_version());
			return 0;
		case 'h':
			usage(stdout);
			return 0;
		default:
			usage(stderr);
			return 2;
		}
	}
	if (!path || optind != argc) {
		usage(stderr);
		return 2;
	}
	if (conf_load(path, &conf, &error)) {
		fprintf(stderr, "yoked: %s\n", error.text);
		return 1;
	}
	if (check) {
		conf_summary(conf, summary, sizeof(summary));
		printf("%s: good: %s\n", path, summary);
		conf_free(conf);
		return 0;
	}
	return daemon_run(path, conf);
}
