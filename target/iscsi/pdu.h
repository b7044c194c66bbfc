/* SPDX-License-Identifier: MIT */
/*
 * iSCSI PDUs: layout, opcodes, and what may travel with each opcode.
 *
 * Basic header segment, 48 bytes, big-endian; words are named by their offset
 * because their meaning changes with the opcode:
 *
 *        0               1               2               3
 *     0 |.|I| opcode    |F|  flags      |    opcode-specific            |
 *     4 | AHS words     | DataSegmentLength (24 bits)                   |
 *     8 | LUN, or opcode-specific (login: ISID, TSIH)                   |
 *    12 |                                                               |
 *    16 | Initiator Task Tag                                            |
 *    20 | TTT, expected length, referenced tag, or CID                  |
 *    24 | CmdSN (requests), StatSN (responses)                          |
 *    28 | ExpStatSN (requests), ExpCmdSN (responses)                    |
 *    32 | CDB (SCSI command), RefCmdSN; MaxCmdSN (responses)            |
 *    36 | ExpDataSN, DataSN, R2TSN                                      |
 *    40 | buffer offset                                                 |
 *    44 | residual, desired length                                      |
 *
 * Spec: RFC 7143 section 11.
 */
#ifndef TARGET_ISCSI_PDU_H
#define TARGET_ISCSI_PDU_H

#include <stdbool.h>

#include "core/base.h"
#include "core/wire.h"

#define ISCSI_BHS_BYTES 48
#define ISCSI_DIGEST_BYTES 4
/* Extended CDB of 260 bytes plus a bidirectional length; more is nobody's command. */
#define ISCSI_AHS_MAX 264
#define ISCSI_NO_TAG UINT32_MAX
/* Login, text and other payloads that are read as a whole. */
#define ISCSI_CONTROL_MAX 8192

enum iscsi_opcode {
	ISCSI_NOP_OUT = 0x00,
	ISCSI_SCSI_COMMAND = 0x01,
	ISCSI_TMF_REQUEST = 0x02,
	ISCSI_LOGIN_REQUEST = 0x03,
	ISCSI_TEXT_REQUEST = 0x04,
	ISCSI_DATA_OUT = 0x05,
	ISCSI_LOGOUT_REQUEST = 0x06,
	ISCSI_SNACK = 0x10,
	ISCSI_NOP_IN = 0x20,
	ISCSI_SCSI_RESPONSE = 0x21,
	ISCSI_TMF_RESPONSE = 0x22,
	ISCSI_LOGIN_RESPONSE = 0x23,
	ISCSI_TEXT_RESPONSE = 0x24,
	ISCSI_DATA_IN = 0x25,
	ISCSI_LOGOUT_RESPONSE = 0x26,
	ISCSI_R2T = 0x31,
	ISCSI_ASYNC = 0x32,
	ISCSI_REJECT = 0x3f,
};

#define ISCSI_OPCODE_MASK 0x3f
#define ISCSI_IMMEDIATE 0x40
#define ISCSI_FINAL 0x80

/* SCSI command flags (byte 1). */
#define ISCSI_CMD_READ 0x40
#define ISCSI_CMD_WRITE 0x20
#define ISCSI_CMD_ATTR 0x07
/* Data-In and SCSI response flags. */
#define ISCSI_DATA_STATUS 0x01
#define ISCSI_UNDERFLOW 0x02
#define ISCSI_OVERFLOW 0x04
/* Login and text. */
#define ISCSI_CONTINUE 0x40

/* Reject reasons, 11.17.1. */
enum iscsi_reject_reason {
	ISCSI_REJECT_DATA_DIGEST = 0x02,
	ISCSI_REJECT_SNACK = 0x03,
	ISCSI_REJECT_PROTOCOL = 0x04,
	ISCSI_REJECT_UNSUPPORTED = 0x05,
	ISCSI_REJECT_IMMEDIATE = 0x06,
	ISCSI_REJECT_IN_PROGRESS = 0x07,
	ISCSI_REJECT_FIELD = 0x09,
	ISCSI_REJECT_RESOURCES = 0x0a,
};

struct iscsi_bhs {
	uint8_t opcode;
	uint8_t flags;
	uint8_t byte2;
	uint8_t byte3;
	uint8_t ahs_words;
	uint8_t length[3];
	uint8_t lun[8];
	uint8_t itt[4];
	uint8_t word20[4];
	uint8_t word24[4];
	uint8_t word28[4];
	uint8_t word32[4];
	uint8_t word36[4];
	uint8_t word40[4];
	uint8_t word44[4];
};
static_assert(sizeof(struct iscsi_bhs) == ISCSI_BHS_BYTES, "a BHS has 48 bytes");
static_assert(offsetof(struct iscsi_bhs, lun) == 8, "LUN at 8");
static_assert(offsetof(struct iscsi_bhs, itt) == 16, "ITT at 16");
static_assert(offsetof(struct iscsi_bhs, word32) == 32, "CDB at 32");

/* A PDU as it came in; AHS points into the receive buffer while its header is handled. */
struct iscsi_pdu {
	struct iscsi_bhs bhs;
	const uint8_t *ahs;
	unsigned ahs_bytes;
	const uint8_t *control; /* the payload, when it was received as a whole */
	uint32_t length;        /* of the payload, padding not counted */
};

/* How much payload an opcode may bring. */
enum iscsi_payload {
	ISCSI_PAYLOAD_NONE,
	ISCSI_PAYLOAD_CONTROL, /* at most ISCSI_CONTROL_MAX */
	ISCSI_PAYLOAD_SEGMENT, /* at most our MaxRecvDataSegmentLength */
};

/* A row of the table of what initiators may send. */
struct iscsi_request {
	const char *name; /* NULL: no such opcode */
	enum iscsi_payload payload;
	uint16_t ahs_max;
	bool in_discovery; /* allowed in a discovery session */
	bool numbered;     /* carries a CmdSN */
};

/* Never NULL; unknown opcodes have a row without a name. */
const struct iscsi_request *iscsi_request(uint8_t opcode);
/* "NOP-Out", "unknown". */
const char *iscsi_opcode_name(uint8_t opcode);

enum iscsi_verdict {
	ISCSI_PDU_OK,
	ISCSI_PDU_UNKNOWN,  /* reject: command not supported */
	ISCSI_PDU_PROTOCOL, /* reject: protocol error; its payload is skipped */
	ISCSI_PDU_FATAL,    /* cannot be skipped: close */
};

/*
 * Check the sizes of a full-feature PDU before anybody looks inside.
 * SEGMENT_MAX is the MaxRecvDataSegmentLength that we declared.
 */
enum iscsi_verdict iscsi_pdu_check(const struct iscsi_bhs *bhs, uint32_t segment_max,
				   bool discovery);

/* What the AHS of a SCSI command says. */
struct iscsi_ahs {
	bool extended_cdb;
	bool bidirectional;
	unsigned cdb_bytes; /* with the 16 of the BHS */
};
/* False: malformed. */
bool iscsi_ahs_parse(const uint8_t *ahs, unsigned len_bytes, struct iscsi_ahs *out);

static inline uint8_t iscsi_opcode(const struct iscsi_bhs *bhs)
{
	return bhs->opcode & ISCSI_OPCODE_MASK;
}

static inline bool iscsi_is_immediate(const struct iscsi_bhs *bhs)
{
	return bhs->opcode & ISCSI_IMMEDIATE;
}

static inline uint32_t iscsi_itt(const struct iscsi_bhs *bhs)
{
	return get_be32(bhs->itt);
}

static inline uint32_t iscsi_ttt(const struct iscsi_bhs *bhs)
{
	return get_be32(bhs->word20);
}

static inline uint32_t iscsi_cmdsn(const struct iscsi_bhs *bhs)
{
	return get_be32(bhs->word24);
}

static inline uint64_t iscsi_lun(const struct iscsi_bhs *bhs)
{
	return get_be64(bhs->lun);
}

static inline uint32_t iscsi_length(const struct iscsi_bhs *bhs)
{
	return get_be24(bhs->length);
}

/* The 16 bytes of the CDB: the last four words together. */
static inline const uint8_t *iscsi_cdb(const struct iscsi_bhs *bhs)
{
	return (const uint8_t *)bhs + offsetof(struct iscsi_bhs, word32);
}

static inline unsigned iscsi_pad(uint32_t length)
{
	return -length & 3;
}

/* A response's first bytes; all else zero. */
static inline void iscsi_bhs_init(struct iscsi_bhs *bhs, enum iscsi_opcode opcode, uint8_t flags,
				  uint32_t itt)
{
	memset(bhs, 0, sizeof(*bhs));
	bhs->opcode = opcode;
	bhs->flags = flags;
	put_be32(bhs->itt, itt);
}

#endif
