/* SPDX-License-Identifier: MIT */
/*
 * What the files of target/scsi share: task sets, logical units, the device.
 *
 * Two halves, on two shards. The front half (struct scsi_device, scsi_nexus,
 * task_set, tmf) knows every task from enter to done, orders them and decides
 * who is aborted. The home half (struct lu_task, lu.c and the commands) has the
 * tasks that may run. A task is one half's at a time and crosses by its message;
 * task->aborting alone is looked at by both.
 */
#ifndef TARGET_SCSI_LU_INT_H
#define TARGET_SCSI_LU_INT_H

#include <bsd/sys/queue.h>
#include <uuid/uuid.h>

#include "backstore/blk.h"
#include "backstore/rangelock.h"
#include "mpio/nexus.h"
#include "target/scsi/device.h"
#include "target/scsi/lu_store.h"
#include "target/scsi/optable.h"

TAILQ_HEAD(scsi_task_list, scsi_task);
TAILQ_HEAD(scsi_tmf_list, scsi_tmf);

/* The longest parameter data that a command without a length of its own yields. */
#define SCSI_CONTROL_MAX (4 * KIB)
/* Elements of an io: a command longer than LU_IOV units goes down in pieces. */
#define LU_IOV 65

/* Limits that VPD B0h tells and the commands keep. */
#define SCSI_CAW_MAX BUF_UNIT      /* bytes compared by COMPARE AND WRITE */
#define SCSI_UNMAP_MAX (512 * MIB) /* bytes of an UNMAP, all its ranges together */
#define SCSI_UNMAP_RANGES 256
#define SCSI_WRITE_SAME_MAX (16 * MIB) /* bytes */
#define SCSI_ATOMIC_MAX (1 * MIB)      /* bytes */

/* Tasks of one logical unit, in the order in which they were entered. Front's shard. */
struct task_set {
	struct scsi_task_list tasks;
	unsigned count;
	unsigned barriers; /* ORDERED and HEAD OF QUEUE ones: none, and nothing has to be asked */
	unsigned waiting;  /* for their turn */
	bool waking, wake_again;
};

/* What MODE SELECT changes. */
struct lu_mode {
	bool d_sense;
	bool swp;
	bool tas;
	bool wce;
};

struct scsi_lu {
	/* Fixed. */
	struct shard *home;
	struct blk *blk;
	struct blk_watch watch;
	uuid_t uuid;
	char uuid_text[UUID_STR_LEN];
	uint32_t oui;
	bool write_cache; /* may be on; the default of WCE */
	bool read_only;
	char product[17];
	uint32_t block_size;

	/* The front's shard. */
	unsigned refs;
	_Atomic(struct shard *) front; /* of the devices that map it; NULL: none does */
	struct task_set set;
	LIST_HEAD(, scsi_mapping) mappings;
	const struct scsi_nexus *reserved_by; /* RESERVE; NULL: nobody */

	/* Mode parameters; changed by MODE SELECT at the home, read by both halves. */
	atomic_bool d_sense;
	atomic_bool tas;
	atomic_bool swp;
	bool wce; /* the home's */

	/* Saved ones, the home's. */
	struct lu_store *store; /* NULL: none */
	struct lu_mode saved;   /* what a reset brings back */
	struct lu_mode saving;
	struct lu_save mode_save;
	uint8_t mode_blob[128];
	STAILQ_HEAD(, lu_task) savers; /* the first one saves, the others wait for it */

	/* A reset that turns the cache off, the home's. */
	bool cache_goes_off; /* once all that was answered before is durable */
	bool cache_flushes;
	struct rangelock_hold cache_hold;
	struct io cache_io;

	/* The sanitize operation; changed at the home, read by both halves. */
	atomic_uint sanitize_state;              /* enum lu_sanitize */
	atomic_uint sanitize_progress;           /* of 65536 */
	atomic_uint_fast64_t sanitize_failed_ns; /* when; of env_now_ns() */
	bool sanitize_restricted;                /* the failed one's; the home's */
	struct sanitize *sanitize;               /* the home's; NULL: none runs */
	struct lu_save sanitize_save;
	uint8_t sanitize_blob[2];
	struct lu_task *sanitize_exit; /* EXIT FAILURE MODE that is being saved */
	struct log_limit sanitize_limit;

	/* The home. */
	struct rangelock *lock;
	struct lu_task *pool;
	SLIST_HEAD(, lu_task) free;
	unsigned free_count;
	TAILQ_HEAD(, lu_task) active;
	uint64_t size_bytes; /* as the hosts know it */
	struct shard_msg resized;
	struct shard_msg bye;
	bool resize_travels, resize_again, dying;

	struct scsi_lu_stats stats;
};

/* A logical unit at a LUN of a device. */
struct scsi_mapping {
	LIST_ENTRY(scsi_mapping) lu_link;
	struct scsi_device *device;
	struct scsi_lu *lu;
	uint16_t lun;
	uint64_t key;  /* its place: by LUN, the newest first */
	unsigned slot; /* of its unit attentions */
	bool read_only;
	bool leaving;   /* not there for new tasks */
	unsigned tasks; /* and functions on their way: it stays while there are any */
	void (*done)(void *arg);
	void *done_arg;
};

struct scsi_device {
	char name[NEXUS_NAME_MAX];
	struct shard *front;
	struct nexus_registry registry;
	unsigned nexuses;           /* retired ones too */
	struct scsi_mapping **maps; /* in order of LUN */
	unsigned map_count, map_room;
	uint64_t mappings_made;
	struct task_set absent; /* tasks for LUNs that are not there */
	struct scsi_tmf_list tmfs;
	scsi_mask_fn *mask;
	void *mask_arg;
	uint16_t ports[SCSI_PORTS_MAX];
	unsigned port_count;
};

struct scsi_nexus {
	struct nexus mpio;
	struct scsi_nexus_id id;
	struct scsi_device *device;
	unsigned tasks;
};

struct lu_task;
typedef void lu_step_fn(struct lu_task *lt);

/* What a task has at the home. */
struct lu_task {
	SLIST_ENTRY(lu_task) free_link;
	TAILQ_ENTRY(lu_task) active_link;
	STAILQ_ENTRY(lu_task) save_link;
	struct scsi_task *task;
	struct scsi_lu *lu;
	bool waits, locked;
	bool write;
	unsigned flags;          /* of its ios */
	uint64_t offset, length; /* on the medium, of the whole command */
	uint64_t done;           /* bytes of it that were moved */
	unsigned item;           /* of several ranges, the one that is being worked on */
	uint8_t provisioning;    /* status of the run at hand */
	lu_step_fn *next;        /* after the hold or io under way */
	lu_step_fn *then;        /* after what is made up of several */
	struct rangelock_hold hold;
	struct io io;
	struct iovec iov[LU_IOV];
};

/* ---- task_set.c: front */
void task_set_init(struct task_set *set);
void task_set_enter(struct task_set *set, struct scsi_task *task);
/* Run it, or let it wait for its turn. */
void task_set_submit(struct scsi_task *task);
/* TASK's fate is final: out of the set, `done`, and what waited for it goes on. */
void task_set_end(struct scsi_task *task);
struct task_set *task_set_of(struct scsi_task *task);
void task_set_back(struct shard_msg *msg);

/* ---- task_management.c: front */
/* A task that was being aborted has ended: true if a function waited for it alone and ended too. */
bool tmf_task_ended(struct scsi_device *device);

/* ---- device.c: front */
/* The mapping of LUN as INITIATOR sees it, or NULL. */
struct scsi_mapping *device_lookup(struct scsi_device *device, uint64_t lun, const char *initiator);
/* Where the mappings of LUN begin: the one that is there, then those that leave. */
static inline uint64_t mapping_key(unsigned lun)
{
	return (uint64_t)lun << 48;
}
/* The first mapping at or above KEY, leaving ones too, or NULL. */
struct scsi_mapping *device_next(struct scsi_device *device, uint64_t key);
/* The mask alone: a mapping that leaves is seen no more, but was by those who are admitted. */
bool device_admits(const struct scsi_mapping *mapping, const char *initiator);
bool device_visible(const struct scsi_mapping *mapping, const char *initiator);
/* CONDITION for every nexus but EXCEPT (may be NULL) through which LU may be reached. */
void device_raise(struct scsi_lu *lu, enum ua_condition condition, const struct scsi_nexus *except);
/* One that kept MAPPING has ended. */
void device_mapping_put(struct scsi_mapping *mapping);
/* The number in the 8 bytes of a LUN, or -1: an addressing method or level that nobody has here. */
int device_lun_number(uint64_t lun);
/* Mapped as NUMBER, whoever may see it; else the last that leaves; or NULL. */
struct scsi_mapping *device_find(struct scsi_device *device, int number);
/* Unit attentions of TASK's nexus at its LU; NULL: it has none. */
struct ua_set *device_ua(const struct scsi_task *task);
/* Executes what needs no home and what is refused at the door; false: it has to go home. */
bool device_run(struct scsi_task *task);

/* ---- lu.c: home */
/* The task's message arrives; scsi_complete() sends it back. */
void lu_run(struct shard_msg *msg);
/* Task management: withdraw what still waits among the tasks that are being aborted. */
void lu_sweep(struct scsi_lu *lu);
/* Logical unit reset: mode parameters as they were saved. */
void lu_reset(struct scsi_lu *lu);
/* If it is dying and nothing of its own is under way any more, it goes now. */
void lu_settle(struct scsi_lu *lu);

/* ---- mode_save.c: home */
struct lu_mode lu_mode_default(const struct scsi_lu *lu);
struct lu_mode lu_mode_now(const struct scsi_lu *lu);
void lu_mode_set(struct scsi_lu *lu, const struct lu_mode *mode);
/* lu->saved, from the store or else the defaults. */
void lu_mode_load(struct scsi_lu *lu);

/* ---- for commands, on the shard that runs them */
void scsi_complete(struct scsi_task *task);
/* GOOD, with LENGTH bytes of parameter data, cut to what was asked for. */
void scsi_reply(struct scsi_task *task, const void *data, uint64_t length);
static inline bool lu_d_sense(const struct scsi_lu *lu)
{
	return atomic_load_explicit(&lu->d_sense, memory_order_relaxed);
}
static inline uint64_t lu_blocks(const struct scsi_lu *lu)
{
	return lu->blk->size_bytes / lu->block_size;
}
/* Blocks can be unmapped, and read as zeroes then: the LU says that it is thin. */
bool lu_thin(const struct scsi_lu *lu);
/* What OP needs of the device is there. */
bool lu_has(const struct scsi_lu *lu, const struct scsi_op *op);
bool lu_write_protected(const struct scsi_task *task);
/* True if [LBA, LBA + BLOCKS) is on the medium; else the task has failed. */
bool lu_check_range(struct scsi_task *task, uint64_t lba, uint64_t blocks);

/* ---- lu_io.c: at the medium. NEXT and THEN run only if all went well and nobody aborted it
 * meanwhile, perhaps before the call returns; otherwise the task has completed. */
/* Exclusive holds are for changing the medium: the ios that follow carry FUA as WCE wants. */
void lu_hold(struct lu_task *lt, bool exclusive, uint64_t offset, uint64_t length,
	     lu_step_fn *next);
/* Give back what is held, if anything. */
void lu_release(struct lu_task *lt);
/* One io over the first IOV_COUNT elements of lt->iov. */
void lu_io(struct lu_task *lt, enum io_op op, uint64_t offset, uint64_t length, unsigned iov_count,
	   lu_step_fn *next);
/* As much of LENGTH as the device takes in one io. */
uint64_t lu_most(const struct scsi_lu *lu, uint64_t length);
/* BUF_UNIT of memory, with OP_SCRATCH. */
uint8_t *lu_scratch(const struct lu_task *lt);
/* lt->iov: the scratch memory, over and over, for as much of LENGTH as one io takes. */
uint64_t lu_scratch_iov(struct lu_task *lt, uint64_t length, unsigned *count);
/* The first byte in which scratch memory and the task's data from AT on differ; LENGTH: none. */
uint64_t lu_difference(const struct lu_task *lt, uint64_t at, uint64_t length);
void lu_end(struct lu_task *lt); /* completes */
/* Hold [offset, +length) and move it between the medium and task->data; none: completes. */
void lu_transfer(struct scsi_task *task, bool write, unsigned flags, uint64_t offset,
		 uint64_t length, lu_step_fn *then);
void lu_flush(struct scsi_task *task);
/* The same once every command that runs has ended, none starting meanwhile. */
void lu_drain_and_flush(struct scsi_task *task, lu_step_fn *then);

/* ---- reserve.c: front */
/* Another nexus has reserved the logical unit, and TASK may not go past that. */
bool reserve_conflicts(const struct scsi_task *task);
void reserve_release(struct scsi_lu *lu);
void reserve_nexus_lost(const struct scsi_nexus *nexus);

/* ---- rw.c: for commands that are laid out as READ and WRITE are */
struct scsi_range {
	uint64_t lba;
	uint64_t blocks;
	unsigned length_byte; /* where the CDB has it */
	uint8_t flags;        /* byte 1, if it has flags */
};
#define SCSI_BYTE1_FUA 0x08
#define SCSI_BYTE1_DPO 0x10
#define SCSI_BYTE1_PROTECT 0xe0
struct scsi_range scsi_range(const uint8_t *cdb);
/* Protection, transfer length, range and, where it writes, write protection; false: it has failed. */
bool scsi_range_check(struct scsi_task *task, const struct scsi_range *range);
/* Flags of the ios of byte 1. */
unsigned scsi_range_flags(const struct scsi_range *range);
/* The whole blocks of what came of the Data-Out, in bytes. */
uint64_t scsi_range_came(const struct scsi_task *task, const struct scsi_range *range);

/* ---- run and length functions of the table's rows */
void scsi_test_unit_ready(struct scsi_task *task);
void scsi_request_sense(struct scsi_task *task);
void scsi_inquiry(struct scsi_task *task);
void scsi_report_luns(struct scsi_task *task);
void scsi_read_capacity_10(struct scsi_task *task);
void scsi_read_capacity_16(struct scsi_task *task);
void scsi_read_write(struct scsi_task *task);
void scsi_synchronize_cache(struct scsi_task *task);
void scsi_verify(struct scsi_task *task);
void scsi_write_verify(struct scsi_task *task);
void scsi_compare_write(struct scsi_task *task);
void scsi_orwrite(struct scsi_task *task);
void scsi_write_atomic(struct scsi_task *task);
void scsi_write_same(struct scsi_task *task);
void scsi_unmap(struct scsi_task *task);
void scsi_get_lba_status(struct scsi_task *task);
void scsi_sanitize(struct scsi_task *task);
void scsi_prefetch(struct scsi_task *task);
void scsi_start_stop(struct scsi_task *task);
void scsi_prevent_allow(struct scsi_task *task);
void scsi_read_defects(struct scsi_task *task);
void scsi_log_sense(struct scsi_task *task);
void scsi_reserve(struct scsi_task *task);
void scsi_release(struct scsi_task *task);
void scsi_mode_sense(struct scsi_task *task);
void scsi_mode_select(struct scsi_task *task);
void scsi_report_opcodes(struct scsi_task *task);
void scsi_report_tmfs(struct scsi_task *task);

uint64_t scsi_rw_length(const struct scsi_task *task);
uint64_t scsi_verify_length(const struct scsi_task *task);
uint64_t scsi_compare_write_length(const struct scsi_task *task);
uint64_t scsi_write_atomic_length(const struct scsi_task *task);
uint64_t scsi_write_same_length(const struct scsi_task *task);
uint64_t scsi_sanitize_length(const struct scsi_task *task);
uint64_t scsi_report_luns_length(const struct scsi_task *task);

/* Vital product data page CODE into OUT (SCSI_CONTROL_MAX); 0: no such page. */
unsigned vpd_build(const struct scsi_task *task, uint8_t code, uint8_t *out);
/* Bytes of TMFs and their names come from one table: REPORT SUPPORTED TMFS. */
void tmf_supported(uint8_t out[2]);

#endif
