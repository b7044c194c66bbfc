/* SPDX-License-Identifier: MIT */
/*
 * SCSI target devices and logical units, for those who set them up.
 *
 * A logical unit stands on one block device and lives at one home shard. A
 * device maps LUNs to logical units, each with the initiators that may see it;
 * one logical unit may be mapped into several devices.
 */
#ifndef TARGET_SCSI_DEVICE_H
#define TARGET_SCSI_DEVICE_H

#include <uuid/uuid.h>

#include "backstore/blk.h"
#include "target/scsi/scsi.h"

struct lu_store;

struct scsi_lu_config {
	struct shard *home;
	struct blk *blk;  /* a reference is taken */
	uuid_t uuid;      /* identity for ever: NAA, T10 designator, serial number */
	uint32_t oui;     /* 0: NAA type 3, else type 6 */
	bool write_cache; /* WCE=1, honest SYNCHRONIZE CACHE; else GOOD means durable */
	bool read_only;
	const char *product; /* INQUIRY product id, at most 16 characters; NULL: "disk" */
	/* For what outlives a restart; NULL: nothing does. Taken over, and closed with the unit. */
	struct lu_store *store;
	unsigned tasks_max; /* at most this many at the home, then TASK SET FULL; 0: 512 */
};

struct scsi_lu_stats {
	uint64_t reads, writes, read_bytes, write_bytes, others, errors;
	unsigned in_flight; /* in the task set: being gathered, waiting, at the device */
};

/* Where a sanitize operation of a logical unit is. */
enum lu_sanitize { LU_SANITIZE_NONE, LU_SANITIZE_RUNNING, LU_SANITIZE_FAILED };

/* NULL with errno set, the store still the caller's. One reference is the caller's. */
struct scsi_lu *scsi_lu_new(const struct scsi_lu_config *config);
struct scsi_lu *scsi_lu_ref(struct scsi_lu *lu);
/*
 * The last one frees it: no task in its set (asserted). References, maps and
 * tasks are the front's shard's business; what reaches the block device runs at the home.
 */
void scsi_lu_unref(struct scsi_lu *lu);
struct blk *scsi_lu_blk(struct scsi_lu *lu);
/*
 * At the home: BLK, of which a reference is taken, in the place of one that was waiting or failed
 * from the start and so has nothing in flight. Hosts hear of the new size.
 */
void scsi_lu_set_blk(struct scsi_lu *lu, struct blk *blk);
void scsi_lu_stats(const struct scsi_lu *lu, struct scsi_lu_stats *stats);
/* FAILED_NS, of the home's clock: when it failed, or began to be known as failed. */
enum lu_sanitize scsi_lu_sanitize(const struct scsi_lu *lu, uint64_t *failed_ns);

/* NAME: the iSCSI target name; it is the SCSI target device name of VPD 83h. */
struct scsi_device *scsi_device_new(const char *name, struct shard *front);
/* Asserts that no nexus is left. */
void scsi_device_free(struct scsi_device *device);

/* Tells whether INITIATOR may see a LUN. */
typedef bool scsi_mask_fn(void *arg, uint16_t lun, const char *initiator);

/*
 * Map (takes a reference) or, with LU NULL, unmap LUN. Every nexus gets
 * 06/3F/0E. Unmapping lets tasks in the set end first; DONE (may be NULL)
 * runs then; meanwhile LUN may become another. Unmapping what is not mapped, or
 * is leaving already, is done at once. -EEXIST, -ENOMEM, -EINVAL (above
 * SCSI_LUN_MAX), -EXDEV (the LU is already mapped by a device of another front shard).
 */
#define SCSI_LUN_MAX 16383 /* flat addressing, SAM-5 4.7.7.3 */
int scsi_device_map(struct scsi_device *device, uint16_t lun, struct scsi_lu *lu, bool read_only);
void scsi_device_unmap(struct scsi_device *device, uint16_t lun, void (*done)(void *arg),
		       void *arg);
void scsi_device_mask(struct scsi_device *device, scsi_mask_fn *mask, void *arg);
/* The mask or the map of INITIATOR's view changed: 06/3F/0E. */
void scsi_device_view_changed(struct scsi_device *device);

/*
 * Portal groups of the device, for REPORT TARGET PORT GROUPS; replaced as a
 * whole. VPD 83h names the port of the nexus that asks. -EINVAL: too many.
 */
#define SCSI_PORTS_MAX 64
int scsi_device_set_ports(struct scsi_device *device, const uint16_t *groups, unsigned count);

#endif
