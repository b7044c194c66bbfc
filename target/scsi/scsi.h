/* SPDX-License-Identifier: MIT */
/*
 * What a transport sees of SCSI: devices, I_T nexuses, tasks, task management.
 *
 * The front (target/iscsi) fills in a task, enters it, gathers its Data-Out,
 * submits it, and answers with what comes back. A task travels as a shard
 * message to the home of its LUN and returns to the front's shard by `done`.
 *
 * Life of a task: scsi_task_enter() -> [front gathers Data-Out] ->
 * scsi_task_submit() -> done. From enter on it is in the logical unit's task
 * set, so that an abort, a reset or a reservation reaches it wherever it is.
 * `done` runs exactly once, after that the task is the front's again. A task
 * that is aborted before its submit is done without one; the front then must
 * not submit it (task->state tells).
 *
 * Spec: SAM-5 5 and 7, SPC-4, SBC-3.
 */
#ifndef TARGET_SCSI_SCSI_H
#define TARGET_SCSI_SCSI_H

#include <bsd/sys/queue.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/buf.h"
#include "core/shard.h"

#define SCSI_CDB_MAX 16
#define SCSI_SENSE_MAX 96
#define SCSI_TRANSFER_MAX (16 * MIB) /* of one command; VPD B0 says so */

/* Status, SAM-5 5.3.1. */
enum scsi_status {
	SCSI_GOOD = 0x00,
	SCSI_CHECK_CONDITION = 0x02,
	SCSI_CONDITION_MET = 0x04,
	SCSI_BUSY = 0x08,
	SCSI_RESERVATION_CONFLICT = 0x18,
	SCSI_TASK_SET_FULL = 0x28,
	SCSI_ACA_ACTIVE = 0x30,
	SCSI_TASK_ABORTED = 0x40,
};

/* Nothing of it was done, and the initiator is to send it again: it is no read and no write. */
static inline bool scsi_turned_away(enum scsi_status status)
{
	return status == SCSI_BUSY || status == SCSI_TASK_SET_FULL;
}

enum scsi_attr { SCSI_SIMPLE, SCSI_ORDERED, SCSI_HEAD_OF_QUEUE, SCSI_ACA };

enum scsi_dir { SCSI_NO_DATA, SCSI_DATA_IN, SCSI_DATA_OUT };

/* What a nexus is: SAM-5 4.7, RFC 7143 10.1. */
struct scsi_nexus_id {
	char initiator[224]; /* iSCSI name */
	uint8_t isid[6];
	uint16_t portal_group; /* target portal group tag = relative target port id */
};

struct scsi_device; /* a SCSI target device: its ports and its logical units */
struct scsi_nexus;
struct scsi_lu;
struct scsi_task;

/*
 * At session login; NULL: out of memory. A second nexus with an equal id is
 * refused (NULL, errno EEXIST): the front has ended the old one first.
 */
struct scsi_nexus *scsi_nexus_new(struct scsi_device *device, const struct scsi_nexus_id *id);
/*
 * Take NEXUS out of the registry at once: its id is free for a new login while
 * its tasks drain behind a stalled device. It gets no unit attentions any more and
 * must enter no new task; the front then asks for SCSI_NEXUS_RESET, waits for
 * `done` and frees it. Retiring twice is retiring once.
 */
void scsi_nexus_retire(struct scsi_nexus *nexus);
/* At session end. Asserts that none of its tasks is in a task set. Retires it if need be. */
void scsi_nexus_free(struct scsi_nexus *nexus);

enum scsi_task_state {
	SCSI_TASK_IDLE,    /* the front's */
	SCSI_TASK_ENTERED, /* in the task set, data being gathered */
	SCSI_TASK_SUBMITTED,
};

/* Why a task came back without a command's own status. */
enum scsi_outcome {
	SCSI_COMPLETED, /* status, sense, data_in_length are valid */
	SCSI_ABORTED,   /* send nothing (TAS=0, or its own nexus asked for it) */
};

struct scsi_task {
	struct shard_msg msg;

	/* The front's, before enter. */
	struct scsi_nexus *nexus;
	uint64_t lun; /* the 8 bytes of SAM-5 4.7, as a big-endian number */
	uint8_t cdb[SCSI_CDB_MAX];
	uint8_t cdb_length; /* 16, more with an additional header segment */
	bool cdb_too_long;  /* an extended CDB came: refused with 05/20/00 */
	enum scsi_attr attr;
	uint64_t tag;         /* the initiator task tag */
	uint64_t expected_in; /* expected data transfer length, by direction; 0: none */
	uint64_t expected_out;
	void (*done)(struct scsi_task *task);
	/* A condition that the transport found while gathering data: the command is
	 * not executed and ends with this sense. SCSI_TRANSPORT_OK: none. */
	enum scsi_transport_error {
		SCSI_TRANSPORT_OK,
		SCSI_TRANSPORT_DIGEST,        /* 0B/47/05 */
		SCSI_TRANSPORT_UNSOLICITED,   /* 0B/0C/0C: unexpected unsolicited data */
		SCSI_TRANSPORT_TOO_MUCH_DATA, /* 0B/0C/0D... incorrect amount of data */
		SCSI_TRANSPORT_OFFSET,        /* 0B/4B/05: data offset error */
		SCSI_TRANSPORT_SEQUENCE,      /* 0B/4B/00: data phase error */
	} transport_error;

	/* By enter: what the command moves, from CDB, block size and the LU. */
	enum scsi_dir dir;
	uint64_t transfer_length; /* bytes, <= SCSI_TRANSFER_MAX; beyond it the command fails at submit */
	bool express;             /* goes past bulk I/O */
	/* Room that `data` must have: what is moved, as far as it comes, and after the unit
	 * that this ends in, for commands that need it, one more unit of scratch memory. */
	uint64_t buffer_length;

	/*
	 * Data, in the front's buffers, buffer_length of them; at submit of DATA_OUT
	 * filled with data_out_length bytes (any that came, with a transport_error). For
	 * DATA_IN with less room what does not fit is not read, and data_in_length tells
	 * all the same what the command yields.
	 */
	struct buf_list data;
	uint64_t data_out_length; /* min(transfer_length, expected_out) */

	/* At done. */
	enum scsi_outcome outcome;
	uint8_t status;
	uint8_t sense[SCSI_SENSE_MAX];
	uint8_t sense_length;
	uint64_t data_in_length; /* bytes of data that the command yields; the front sends
				    min(this, expected_in) and states the residual */

	/* The device server's. */
	enum scsi_task_state state; /* the front may read it, outside of SUBMITTED too */
	atomic_bool aborting;  /* its fate is decided: set by the front's shard, read by the home */
	bool tell_aborted;     /* by another nexus, with TAS=1 at the time */
	bool dormant;          /* submitted, waits for its turn */
	bool running;          /* handed to the home */
	bool read_only;        /* its mapping's */
	uint32_t raise_others; /* unit attentions for the other nexuses, before it ends */
	struct scsi_lu *lu;    /* NULL: no such LUN for this initiator */
	struct scsi_mapping *mapping;
	const struct scsi_op *op; /* NULL: no such command */
	TAILQ_ENTRY(scsi_task) set_link;
	void *lu_private;
};

/* Zeroed and given the front's fields above, a task may be entered; entered anew after `done`. */

/*
 * Put TASK into its LU's task set and say what it moves. Always succeeds: what
 * is wrong (no such LUN, unknown opcode) moves nothing and fails at submit.
 */
void scsi_task_enter(struct scsi_task *task);
/* Data gathered. `done` may run before this returns. */
void scsi_task_submit(struct scsi_task *task);

/* Task management, SAM-5 7. */
enum scsi_tmf_function {
	SCSI_ABORT_TASK,
	SCSI_ABORT_TASK_SET,
	SCSI_CLEAR_TASK_SET,
	SCSI_LUN_RESET,
	SCSI_TARGET_RESET, /* every LU of the device; the front does the rest */
	SCSI_QUERY_TASK,
	SCSI_QUERY_TASK_SET,
	SCSI_QUERY_ASYNC_EVENT,
	SCSI_NEXUS_RESET, /* I_T NEXUS RESET; also what a session's end asks for */
};

enum scsi_tmf_response {
	SCSI_TMF_COMPLETE,
	SCSI_TMF_SUCCEEDED, /* the query found it */
	SCSI_TMF_NO_TASK,
	SCSI_TMF_NO_LUN,
	SCSI_TMF_NOT_SUPPORTED,
	SCSI_TMF_REJECTED,
};

struct scsi_tmf {
	struct shard_msg msg;
	struct scsi_nexus *nexus;
	enum scsi_tmf_function function;
	uint64_t lun;
	uint64_t tag; /* ABORT TASK, QUERY TASK: the initiator task tag asked for */
	void (*done)(struct scsi_tmf *tmf);
	enum scsi_tmf_response response;
	/* QUERY ASYNC EVENT that SUCCEEDED: SAM-5 7.10, depth and sense key, ASC, ASCQ. */
	uint8_t event[3];

	/* The device server's. */
	struct scsi_mapping *mapping; /* whose LU is being told, at its home */
	const struct scsi_lu *lu;     /* that is at the LUN; only compared */
	uint64_t next_key;            /* of the LUs still to be told */
	bool told;                    /* every LU concerned was */
	bool telling, arrived;
	bool resets; /* the LU being told */
	TAILQ_ENTRY(scsi_tmf) link;
};

/*
 * `done` runs once the fate of every task concerned is final (their own `done`
 * ran before), perhaps before this returns. A task at a stalled device is waited
 * for: the front may answer the initiator's later login meanwhile, never lie.
 */
void scsi_tmf_submit(struct scsi_tmf *tmf);

/* A nexus's tasks that are in some task set. */
unsigned scsi_nexus_tasks(const struct scsi_nexus *nexus);
const struct scsi_nexus_id *scsi_nexus_id(const struct scsi_nexus *nexus);

#endif
