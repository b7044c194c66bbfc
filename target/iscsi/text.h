/* SPDX-License-Identifier: MIT */
/*
 * Text Requests in full feature phase: SendTargets and renegotiation.
 *
 * Answers of any length are written piece by piece, each fetched by the
 * initiator with the Target Transfer Tag of the one before; between pieces only
 * a position is kept, so that targets may come and go meanwhile.
 *
 * Spec: RFC 7143 sections 6.4, 11.10, 11.11, appendix C.
 */
#ifndef TARGET_ISCSI_TEXT_H
#define TARGET_ISCSI_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "target/iscsi/keys.h"
#include "target/iscsi/login.h"
#include "target/iscsi/pdu.h"

#define ISCSI_ADDRESS_MAX 255

struct iscsi_text_ops {
	/*
	 * The first target, in strcmp order of names, after AFTER ("": of all)
	 * that this connection's initiator may see; NULL: no more. Copied at once. A
	 * target asked for by its name is looked for with this too.
	 */
	const char *(*target_next)(void *arg, const char *after);
	/*
	 * TargetAddress number INDEX of TARGET as shown ("192.0.2.1:3260,1",
	 * "[2001:db8::1]:3260,2") into TEXT; false: no more, or no such target.
	 */
	bool (*target_address)(void *arg, const char *target, unsigned index, char *text,
			       size_t size);
};

struct iscsi_text {
	const struct iscsi_text_ops *ops;
	void *arg;
	struct iscsi_params *params; /* max_send changes when they declare another */
	enum iscsi_session_type session_type;
	const char *target_name; /* of a normal session; borrowed; "" in discovery */

	/* Private. */
	struct iscsi_keys keys;
	bool open;        /* within a negotiation */
	bool answering;   /* pieces of the answer are left */
	bool final_asked; /* F of the request being answered */
	uint32_t itt;
	uint32_t ttt; /* that we issued last */
	uint32_t ttt_next;
	char *in; /* a request's text that is continued, ISCSI_TEXT_MAX bytes; else NULL */
	uint32_t in_len;
	struct iscsi_out out; /* answers to other keys; they leave before targets */
	uint32_t out_sent;
	bool listing;     /* SendTargets: pairs are left */
	bool all;         /* not only `target` */
	bool name_due;    /* TargetName of `target` comes next */
	unsigned address; /* index of its next TargetAddress */
	uint32_t record_len, record_sent;
	char target[ISCSI_NAME_MAX + 1];
	char record[ISCSI_ADDRESS_MAX + 32]; /* the pair that is leaving */
	char out_data[1024];
};

/* PARAMS and TARGET_NAME must live as long. */
void iscsi_text_init(struct iscsi_text *text, const struct iscsi_text_ops *ops, void *arg,
		     struct iscsi_params *params, enum iscsi_session_type type,
		     const char *target_name);
/* Gives back what a continued request holds. */
void iscsi_text_fini(struct iscsi_text *text);

struct iscsi_text_response {
	/*
	 * BHS with opcode, flags, LUN, ITT, TTT and data length; StatSN, ExpCmdSN
	 * and MaxCmdSN are the sender's to fill.
	 */
	uint8_t bhs[ISCSI_BHS];
	char *data;    /* the caller's, */
	uint32_t size; /* at least params->max_send or what of it fits; not 0 */
	uint32_t len;
};

/*
 * One Text Request whose data has arrived whole (DATA is not changed). 0 and
 * RESPONSE to send, or the reason of the Reject to send instead; the
 * negotiation is then reset, the connection goes on.
 */
int iscsi_text_step(struct iscsi_text *text, const uint8_t bhs[ISCSI_BHS], const char *data,
		    uint32_t len, struct iscsi_text_response *response);

#endif
