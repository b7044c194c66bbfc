/* SPDX-License-Identifier: MIT */
/*
 * Asynchronous messages: we ask for a logout before we go.
 *
 *    36 | AsyncEvent    | AsyncVCode    | Parameter1                    |
 *    40 | Parameter2                    | Parameter3 (seconds)          |
 *
 * Invariants:
 * 1. One message waits at a time; the newest event counts.
 * 2. Only a session in full feature phase is told anything.
 *
 * Not here: when it goes out (answer.c), closing what does not leave (server.c).
 *
 * Spec: RFC 7143 section 11.9.
 */
#include "target/iscsi/iscsi_int.h"

void iscsi_async(struct iscsi_session *session, uint8_t event, uint16_t seconds)
{
	if (!session->conn || session->state != ISCSI_SESSION_UP)
		return;
	session->want_async = true;
	session->async_event = event;
	session->async_seconds = seconds;
	iscsi_conn_kick(session->conn);
}

void iscsi_async_produce(struct iscsi_session *session)
{
	struct iscsi_bhs bhs;

	session->want_async = false;
	iscsi_bhs_init(&bhs, ISCSI_ASYNC, ISCSI_FINAL, ISCSI_NO_TAG);
	bhs.word36[0] = session->async_event;
	put_be16(bhs.word40 + 2, session->async_seconds);
	iscsi_stamp(session, &bhs, true);
	iscsi_tx_add(&session->conn->tx, &bhs, NULL, NULL);
}
