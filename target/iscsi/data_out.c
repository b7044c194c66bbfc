/* SPDX-License-Identifier: MIT */
/*
 * The Data-Out side of one WRITE: what was promised, what is asked for, what came.
 *
 *   start() ─▶ [unsolicited sequence] ─▶ { ask() ─▶ pdu()* with F }* ─▶ complete
 *                                └──── error ──▶ the rest of the open sequence is
 *                                                dropped, then complete
 *
 * Invariants:
 * 1. received <= asked, and asked grows by max_burst at most at a time.
 * 2. Once an error is noted nothing more is asked for and no payload kept; the
 *    first error wins.
 * 3. Every path ends: by data, by an F bit, or by the connection's Data-Out
 *    deadline.
 *
 * Not here: buffers, tags and PDUs (data_out_conn.c).
 *
 * Spec: RFC 7143 sections 4.2.5, 11.7, 11.8.
 */
#include "target/iscsi/data_out.h"

void iscsi_data_out_fail(struct iscsi_data_out *out, enum iscsi_data_error error)
{
	if (out->error == ISCSI_DATA_OK)
		out->error = error;
}

void iscsi_data_out_start(struct iscsi_data_out *out, const struct iscsi_data_rules *rules,
			  uint64_t wanted, uint64_t edtl, uint32_t immediate, bool final)
{
	uint64_t burst = min_u64(rules->first_burst, edtl);

	assert(wanted <= edtl);
	*out = (struct iscsi_data_out){ .wanted = wanted, .edtl = edtl, .rules = *rules };
	if (out->rules.max_r2t > ISCSI_R2T_MAX)
		out->rules.max_r2t = ISCSI_R2T_MAX;
	out->received = immediate;
	out->asked = immediate;
	out->unsolicited = !final;
	if (immediate > burst)
		iscsi_data_out_fail(out, ISCSI_DATA_AMOUNT);
	else if ((immediate && !rules->immediate_data) || (!final && rules->initial_r2t))
		iscsi_data_out_fail(out, ISCSI_DATA_UNSOLICITED);
	else if (!final)
		out->asked = burst;
}

bool iscsi_data_out_may_ask(const struct iscsi_data_out *out)
{
	return out->error == ISCSI_DATA_OK && !out->unsolicited && out->asked < out->wanted &&
	       out->r2t_count < out->rules.max_r2t;
}

bool iscsi_data_out_ask(struct iscsi_data_out *out, struct iscsi_r2t *r2t)
{
	if (!iscsi_data_out_may_ask(out))
		return false;
	r2t->sn = out->r2tsn++;
	r2t->offset = out->asked;
	r2t->length = (uint32_t)min_u64(out->rules.max_burst, out->wanted - out->asked);
	out->asked += r2t->length;
	out->r2ts[(out->r2t_first + out->r2t_count++) % ISCSI_R2T_MAX] = *r2t;
	return true;
}

/* A sequence's last PDU came, rightly or not. */
static void sequence_end(struct iscsi_data_out *out, bool solicited)
{
	out->next_datasn = 0;
	if (!solicited) {
		out->unsolicited = false;
		/* It may end short of FirstBurstLength: R2Ts ask for the rest. */
		out->asked = out->received;
	} else if (out->r2t_count) {
		out->r2t_first = (out->r2t_first + 1) % ISCSI_R2T_MAX;
		out->r2t_count--;
	}
}

static enum iscsi_data_error check(const struct iscsi_data_out *out,
				   const struct iscsi_data_pdu *pdu)
{
	const struct iscsi_r2t *r2t = &out->r2ts[out->r2t_first];
	uint64_t end;

	if (!pdu->solicited) {
		if (!out->unsolicited)
			return ISCSI_DATA_UNSOLICITED;
		end = out->asked;
	} else {
		if (out->unsolicited || !out->r2t_count || pdu->r2t_sn != r2t->sn)
			return ISCSI_DATA_SEQUENCE;
		end = r2t->offset + r2t->length;
	}
	if (pdu->datasn != out->next_datasn)
		return ISCSI_DATA_SEQUENCE;
	if (pdu->offset != out->received)
		return ISCSI_DATA_OFFSET;
	if (pdu->length > end - out->received)
		return ISCSI_DATA_AMOUNT;
	/* A solicited sequence is exactly what was asked for; F says so at its end. */
	if (pdu->solicited && pdu->final != (out->received + pdu->length == end))
		return ISCSI_DATA_AMOUNT;
	return ISCSI_DATA_OK;
}

bool iscsi_data_out_pdu(struct iscsi_data_out *out, const struct iscsi_data_pdu *pdu)
{
	enum iscsi_data_error error = check(out, pdu);

	if (error != ISCSI_DATA_OK)
		iscsi_data_out_fail(out, error);
	if (out->error != ISCSI_DATA_OK) {
		/* After an error the sequence's F bit ends all: what else was asked for is late. */
		if (pdu->final) {
			out->unsolicited = false;
			out->r2t_count = 0;
		}
		return false;
	}
	out->received += pdu->length;
	out->next_datasn++;
	if (pdu->final)
		sequence_end(out, pdu->solicited);
	return true;
}

bool iscsi_data_out_owed(const struct iscsi_data_out *out)
{
	return out->unsolicited || out->r2t_count;
}

bool iscsi_data_out_complete(const struct iscsi_data_out *out)
{
	if (iscsi_data_out_owed(out))
		return false;
	return out->error != ISCSI_DATA_OK || out->received >= out->wanted;
}
