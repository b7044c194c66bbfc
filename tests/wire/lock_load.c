/* SPDX-License-Identifier: MIT */
/*
 * How long a lock takes beside bulk I/O: one COMPARE AND WRITE at a time over a session of its
 * own, while others keep DEPTH reads and writes of 128 KiB each outstanding.
 *
 *   lock_load URL SECONDS SESSIONS DEPTH
 *
 * Invariants:
 * 1. Locks and bulk I/O each have a thread of their own: neither waits for the other in here.
 * 2. Every lock counts in the block that it compares: none is lost or done twice.
 * 3. Times are counted once all sessions have done twice their depth.
 *
 * Not here: whether a time is good (test_locks.py).
 *
 * Spec: SBC-3 5.2 (COMPARE AND WRITE).
 */
#include <pthread.h>
#include <stdatomic.h>

#include "tests/wire/peer.h"

#define BULK (128 * 1024)
#define BULK_FROM 2048 /* blocks before it are for locks */
#define DEPTH_MAX 128
#define TIMES_MAX (1 << 20)

struct times {
	uint32_t us[TIMES_MAX];
	unsigned count;
};

struct bulk_task {
	struct bulk *bulk;
	struct scsi_iovec iov;
	uint64_t start_us;
	bool writes;
};

struct bulk {
	struct peer peer;
	struct bulk_task tasks[DEPTH_MAX];
	unsigned open;
};

static struct bulk bulks[PEERS_MAX];
static unsigned sessions, depth;
static uint64_t bulk_places, bulk_seed = 88172645463325252u;
static struct times bulk_times, lock_times;
static atomic_bool load_ending;
static atomic_uint load_done;

static void times_add(struct times *times, uint64_t start_us)
{
	if (times->count < TIMES_MAX)
		times->us[times->count++] = (uint32_t)(now_us() - start_us);
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void times_print(const char *name, struct times *times)
{
	if (!times->count)
		errx(1, "%s: nothing was done", name);
	qsort(times->us, times->count, sizeof(times->us[0]), by_value);
	printf(" %s=%u %s_median_us=%u %s_p99_us=%u %s_max_us=%u", name, times->count, name,
	       times->us[times->count / 2], name, times->us[times->count * 99ull / 100], name,
	       times->us[times->count - 1]);
}

static void bulk_start(struct bulk_task *task);

static void bulk_ended(struct iscsi_context *iscsi, int status, void *data, void *arg)
{
	struct bulk_task *task = arg;

	if (status != SCSI_STATUS_GOOD)
		errx(1, "bulk %s: %s", task->writes ? "write" : "read", iscsi_get_error(iscsi));
	scsi_free_scsi_task(data);
	times_add(&bulk_times, task->start_us);
	atomic_fetch_add(&load_done, 1);
	task->bulk->open--;
	if (!atomic_load(&load_ending))
		bulk_start(task);
}

static void bulk_start(struct bulk_task *task)
{
	struct peer *peer = &task->bulk->peer;
	uint64_t lba = BULK_FROM + chance(&bulk_seed) % bulk_places * (BULK / BLOCK);
	struct scsi_task *started;

	task->start_us = now_us();
	task->bulk->open++;
	if (task->writes)
		started = iscsi_write16_iov_task(peer->iscsi, peer->lun, lba, NULL, BULK, BLOCK, 0,
						 0, 0, 0, 0, bulk_ended, task, &task->iov, 1);
	else
		started = iscsi_read16_iov_task(peer->iscsi, peer->lun, lba, BULK, BLOCK, 0, 0, 0,
						0, 0, bulk_ended, task, &task->iov, 1);
	if (!started)
		give_up("bulk", iscsi_get_error(peer->iscsi));
}

static void *bulk_run(void *arg)
{
	struct peer *peers[PEERS_MAX];
	unsigned s, d, open = 1;

	(void)arg;
	for (s = 0; s < sessions; s++) {
		peers[s] = &bulks[s].peer;
		for (d = 0; d < depth; d++) {
			struct bulk_task *task = &bulks[s].tasks[d];

			task->bulk = &bulks[s];
			task->writes = d % 2;
			task->iov.iov_len = BULK;
			task->iov.iov_base = malloc(BULK);
			if (!task->iov.iov_base)
				give_up("start", "no memory");
			memset(task->iov.iov_base, (int)d, BULK);
			bulk_start(task);
		}
	}
	while (open) {
		peers_serve(peers, sessions, 1000);
		for (s = open = 0; s < sessions; s++)
			open += bulks[s].open;
	}
	return NULL;
}

static void lock_once(struct peer *peer, uint32_t number)
{
	uint8_t data[2 * BLOCK];
	uint64_t start = now_us();
	struct scsi_task *task;

	stamp(data, number, 0);
	stamp(data + BLOCK, number + 1, 0);
	task = iscsi_compareandwrite_sync(peer->iscsi, peer->lun, 0, data, sizeof(data), BLOCK, 0,
					  0, 0, 0, 0);
	if (!task || task->status != SCSI_STATUS_GOOD)
		errx(1, "lock %u: %s", number, iscsi_get_error(peer->iscsi));
	scsi_free_scsi_task(task);
	times_add(&lock_times, start);
}

static uint64_t peer_blocks(struct peer *peer)
{
	struct scsi_task *task = iscsi_readcapacity16_sync(peer->iscsi, peer->lun);
	struct scsi_readcapacity16 *capacity;
	uint64_t blocks;

	if (!task || task->status != SCSI_STATUS_GOOD)
		give_up("READ CAPACITY", iscsi_get_error(peer->iscsi));
	capacity = scsi_datain_unmarshall(task);
	if (!capacity)
		give_up("READ CAPACITY", "short");
	blocks = capacity->returned_lba + 1;
	scsi_free_scsi_task(task);
	if (blocks < BULK_FROM + BULK / BLOCK)
		errx(1, "%" PRIu64 " blocks", blocks);
	return blocks;
}

static int run_load(const char *url, unsigned seconds)
{
	uint64_t start, took;
	struct peer locker;
	uint8_t block[BLOCK];
	pthread_t thread;
	unsigned s, number = 0;

	if (sessions > PEERS_MAX || depth > DEPTH_MAX || !sessions || !depth)
		errx(2, "1 to %d sessions, depth 1 to %d", PEERS_MAX, DEPTH_MAX);
	for (s = 0; s < sessions; s++)
		peer_open(&bulks[s].peer, url, "bulk");
	peer_open(&locker, url, "locker");
	bulk_places = (peer_blocks(&locker) - BULK_FROM) / (BULK / BLOCK);
	stamp(block, 0, 0);
	peer_write(&locker, block);
	if (pthread_create(&thread, NULL, bulk_run, NULL))
		errx(1, "no thread");
	while (atomic_load(&load_done) < 2 * sessions * depth)
		poll(NULL, 0, 1);
	start = now_us();
	while (now_us() - start < seconds * UINT64_C(1000000))
		lock_once(&locker, number++);
	took = now_us() - start;
	atomic_store(&load_ending, true);
	pthread_join(thread, NULL);
	lock_once(&locker, number); /* none was lost, none came twice */
	for (s = 0; s < sessions; s++)
		peer_close(&bulks[s].peer);
	peer_close(&locker);
	printf("load: ms=%" PRIu64, took / 1000);
	times_print("bulk", &bulk_times);
	times_print("lock", &lock_times);
	printf("\n");
	return 0;
}

int main(int argc, char **argv)
{
	if (argc != 5)
		errx(2, "usage: lock_load URL SECONDS SESSIONS DEPTH");
	sessions = (unsigned)strtoul(argv[3], NULL, 10);
	depth = (unsigned)strtoul(argv[4], NULL, 10);
	return run_load(argv[1], (unsigned)strtoul(argv[2], NULL, 10));
}
