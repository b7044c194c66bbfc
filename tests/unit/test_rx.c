/* SPDX-License-Identifier: MIT */
/* The receive machine: the same PDUs whatever the pieces they come in. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "core/crc32c.h"
#include "target/iscsi/rx.h"

#define STREAM_MAX (2 * MIB)

/* A stream of bytes that is handed out in pieces, and what came of it. */
struct wire {
	uint8_t *bytes;
	size_t length, at;
	size_t piece; /* at most so much a read; 0: all */
	bool eof;
	unsigned reads;

	struct buf_pool *pool;
	struct buf_list list;
	uint8_t control[ISCSI_CONTROL_MAX];
	unsigned headers, pdus, bad_digests, stop_at;
	uint64_t sum; /* of payload bytes as they arrived */
	uint32_t last_tag;
	bool drop;
};

static ssize_t wire_readv(void *arg, struct iovec *iov, unsigned count)
{
	struct wire *w = arg;
	size_t left = w->length - w->at, done = 0;

	w->reads++;
	if (!left && w->eof)
		return 0;
	if (!left) {
		errno = EAGAIN;
		return -1;
	}
	if (w->piece && left > w->piece)
		left = w->piece;
	for (unsigned i = 0; i < count && left; i++) {
		size_t n = left < iov[i].iov_len ? left : iov[i].iov_len;

		memcpy(iov[i].iov_base, w->bytes + w->at, n);
		w->at += n;
		left -= n;
		done += n;
	}
	return (ssize_t)done;
}

/* Data-Out lands in the list at its offset, text in the control buffer. */
static bool wire_header(void *arg, struct iscsi_pdu *pdu, struct iscsi_dest *dest)
{
	struct wire *w = arg;

	w->headers++;
	ck_assert_uint_eq(iscsi_itt(&pdu->bhs), w->last_tag + 1);
	w->last_tag++;
	if (w->drop)
		return true;
	if (iscsi_opcode(&pdu->bhs) == ISCSI_DATA_OUT)
		*dest = (struct iscsi_dest){ .sink = ISCSI_SINK_LIST,
					     .list = &w->list,
					     .offset = get_be32(pdu->bhs.word40) };
	else if (iscsi_opcode(&pdu->bhs) == ISCSI_TEXT_REQUEST)
		*dest = (struct iscsi_dest){ .sink = ISCSI_SINK_CONTROL, .control = w->control };
	return true;
}

static bool wire_pdu(void *arg, struct iscsi_pdu *pdu, bool digest_ok)
{
	struct wire *w = arg;

	w->pdus++;
	w->bad_digests += !digest_ok;
	if (pdu->control)
		for (uint32_t i = 0; i < pdu->length; i++)
			w->sum += pdu->control[i];
	return w->pdus != w->stop_at;
}

static const struct iscsi_rx_ops ops = {
	.header = wire_header,
	.pdu = wire_pdu,
	.readv = wire_readv,
};

static struct wire wire_new(void)
{
	struct wire w = { .bytes = malloc(STREAM_MAX), .pool = buf_pool_new(2 * MIB) };

	ck_assert(buf_take(w.pool, MIB, &w.list));
	/* The list moves with the struct: its table must be in a unit, or be set again. */
	return w;
}

static void wire_free(struct wire *w)
{
	buf_give(w->pool, &w->list);
	buf_pool_free(w->pool);
	free(w->bytes);
}

static void put(struct wire *w, const void *bytes, size_t n)
{
	ck_assert_uint_le(w->length + n, STREAM_MAX);
	memcpy(w->bytes + w->length, bytes, n);
	w->length += n;
}

static uint8_t pattern(uint32_t i)
{
	return (uint8_t)(i * 7 + i / 251 + 3);
}

static void add(struct wire *w, uint32_t tag, uint8_t opcode, uint32_t offset, uint32_t length,
		bool hd, bool dd)
{
	uint8_t digest[4], pad[4] = { 0 }, *data = malloc(length + 4);
	struct iscsi_bhs bhs = { .opcode = opcode };

	put_be24(bhs.length, length);
	put_be32(bhs.itt, tag);
	put_be32(bhs.word40, offset);
	put(w, &bhs, sizeof(bhs));
	put_le32(digest, crc32c(&bhs, sizeof(bhs)));
	if (hd)
		put(w, digest, sizeof(digest));
	for (uint32_t i = 0; i < length; i++)
		data[i] = pattern(offset + i);
	memcpy(data + length, pad, iscsi_pad(length));
	put(w, data, length + iscsi_pad(length));
	put_le32(digest, crc32c(data, length + iscsi_pad(length)));
	if (dd && length)
		put(w, digest, sizeof(digest));
	free(data);
}

static enum iscsi_rx_result run_all(struct wire *w, struct iscsi_rx *rx)
{
	enum iscsi_rx_result result;

	do {
		result = iscsi_rx_run(rx, 1000000, UINT64_MAX);
	} while (result == ISCSI_RX_IDLE && w->at < w->length);
	return result;
}

static void start(struct wire *w, struct iscsi_rx *rx, bool hd, bool dd)
{
	if (w->list.count <= BUF_INLINE)
		w->list.iov = w->list.inline_iov;
	ck_assert(iscsi_rx_init(rx, &ops, w));
	ck_assert(iscsi_rx_full_feature(rx, hd, dd));
}

static const size_t pieces[] = { 1, 2, 3, 5, 47, 48, 49, 52, 100, 4096, 65537, 0 };
static const uint32_t lengths[] = { 1, 2, 3, 4, 5, 511, 512, 513, 4095, 65536, 65537 };

START_TEST(any_pieces_make_the_same_pdus)
{
	for (unsigned digests = 0; digests < 4; digests++) {
		bool hd = digests & 1, dd = digests & 2;
		struct wire w = wire_new();
		uint32_t tag = 0, offset = 0, text = 0;
		uint64_t expected = 0;
		struct iscsi_rx rx;

		start(&w, &rx, hd, dd);
		w.piece = pieces[_i];
		for (unsigned i = 0; i < ARRAY_LEN(lengths); i++) {
			add(&w, ++tag, ISCSI_SCSI_COMMAND, 0, 0, hd, dd);
			add(&w, ++tag, ISCSI_DATA_OUT, offset, lengths[i], hd, dd);
			offset += lengths[i];
			text = lengths[i] <= ISCSI_CONTROL_MAX ? lengths[i] : 7;
			add(&w, ++tag, ISCSI_TEXT_REQUEST, 0, text, hd, dd);
			for (uint32_t k = 0; k < text; k++)
				expected += pattern(k);
		}
		ck_assert_int_eq(run_all(&w, &rx), ISCSI_RX_IDLE);
		ck_assert_uint_eq(w.pdus, tag);
		ck_assert_uint_eq(w.headers, tag);
		ck_assert_uint_eq(w.bad_digests, 0);
		ck_assert_uint_eq(w.sum, expected);
		for (uint32_t i = 0; i < offset; i += 127) {
			uint8_t byte;

			buf_read(&w.list, i, &byte, 1);
			ck_assert_uint_eq(byte, pattern(i));
		}
		iscsi_rx_fini(&rx);
		wire_free(&w);
	}
}
END_TEST

START_TEST(headers_come_many_at_a_time)
{
	struct wire w = wire_new();
	struct iscsi_rx rx;

	start(&w, &rx, false, false);
	for (uint32_t tag = 1; tag <= 300; tag++)
		add(&w, tag, ISCSI_SCSI_COMMAND, 0, 0, false, false);
	ck_assert_int_eq(run_all(&w, &rx), ISCSI_RX_IDLE);
	ck_assert_uint_eq(w.pdus, 300);
	/* The first few exactly, then the rest at once. */
	ck_assert_uint_le(w.reads, 8);
	iscsi_rx_fini(&rx);
	wire_free(&w);
}
END_TEST

START_TEST(payload_goes_straight_to_its_place)
{
	struct wire w = wire_new();
	struct iscsi_rx rx;

	start(&w, &rx, false, true);
	for (uint32_t tag = 1; tag <= 100; tag++)
		add(&w, tag, ISCSI_DATA_OUT, (tag - 1) * 8192, 8191, false, true);
	ck_assert_int_eq(run_all(&w, &rx), ISCSI_RX_IDLE);
	ck_assert_uint_eq(w.pdus, 100);
	ck_assert_uint_eq(rx.payload_copies, 0);
	/* One system call a PDU, and one that finds nothing. */
	ck_assert_uint_le(w.reads, 103);
	iscsi_rx_fini(&rx);
	wire_free(&w);
}
END_TEST

START_TEST(payload_among_headers_is_moved_once_and_counted)
{
	struct wire w = wire_new();
	struct iscsi_rx rx;
	uint32_t tag = 0;

	start(&w, &rx, false, false);
	while (tag < 20)
		add(&w, ++tag, ISCSI_SCSI_COMMAND, 0, 0, false, false);
	add(&w, ++tag, ISCSI_DATA_OUT, 0, 4096, false, false);
	add(&w, ++tag, ISCSI_DATA_OUT, 4096, 262144, false, false);
	ck_assert_int_eq(run_all(&w, &rx), ISCSI_RX_IDLE);
	ck_assert_uint_eq(w.pdus, tag);
	ck_assert_uint_ge(rx.payload_copies, 1);
	ck_assert_uint_le(rx.payload_copies, 2);
	ck_assert(!rx.batch);
	iscsi_rx_fini(&rx);
	wire_free(&w);
}
END_TEST

START_TEST(a_wrong_data_digest_is_told_and_the_stream_goes_on)
{
	struct wire w = wire_new();
	struct iscsi_rx rx;

	start(&w, &rx, true, true);
	w.piece = pieces[_i];
	add(&w, 1, ISCSI_DATA_OUT, 0, 1023, true, true);
	w.bytes[w.length - 1] ^= 1;
	add(&w, 2, ISCSI_TEXT_REQUEST, 0, 6, true, true);
	w.bytes[w.length - 9] ^= 0x80; /* a byte of the payload */
	add(&w, 3, ISCSI_DATA_OUT, 0, 3, true, true);
	ck_assert_int_eq(run_all(&w, &rx), ISCSI_RX_IDLE);
	ck_assert_uint_eq(w.pdus, 3);
	ck_assert_uint_eq(w.bad_digests, 2);
	iscsi_rx_fini(&rx);
	wire_free(&w);
}
END_TEST

START_TEST(a_wrong_header_digest_ends_the_stream)
{
	struct wire w = wire_new();
	struct iscsi_rx rx;

	start(&w, &rx, true, false);
	w.piece = pieces[_i];
	add(&w, 1, ISCSI_SCSI_COMMAND, 0, 0, true, false);
	add(&w, 2, ISCSI_SCSI_COMMAND, 0, 0, true, false);
	w.bytes[w.length - 30] ^= 4;
	ck_assert_int_eq(run_all(&w, &rx), ISCSI_RX_PROTOCOL);
	ck_assert_uint_eq(w.pdus, 1);
	iscsi_rx_fini(&rx);
	wire_free(&w);
}
END_TEST

START_TEST(an_additional_header_beyond_the_bound_ends_the_stream)
{
	struct wire w = wire_new();
	struct iscsi_bhs bhs = { .opcode = ISCSI_SCSI_COMMAND, .ahs_words = 255 };
	struct iscsi_rx rx;

	ck_assert(iscsi_rx_init(&rx, &ops, &w));
	put(&w, &bhs, sizeof(bhs));
	ck_assert_int_eq(run_all(&w, &rx), ISCSI_RX_PROTOCOL);
	ck_assert_uint_eq(w.headers, 0);
	iscsi_rx_fini(&rx);
	wire_free(&w);
}
END_TEST

START_TEST(what_nobody_wants_is_skipped)
{
	struct wire w = wire_new();
	struct iscsi_rx rx;

	start(&w, &rx, false, true);
	w.piece = pieces[_i];
	w.drop = true;
	add(&w, 1, ISCSI_DATA_OUT, 0, 300001, false, true);
	add(&w, 2, ISCSI_DATA_OUT, 0, 1, false, true);
	add(&w, 3, ISCSI_NOP_OUT, 0, 0, false, true);
	add(&w, 4, ISCSI_DATA_OUT, 0, 70001, false, true);
	w.bytes[w.length - 1] ^= 1; /* checked although dropped */
	ck_assert_int_eq(run_all(&w, &rx), ISCSI_RX_IDLE);
	ck_assert_uint_eq(w.pdus, 4);
	ck_assert_uint_eq(w.bad_digests, 1);
	iscsi_rx_fini(&rx);
	wire_free(&w);
}
END_TEST

START_TEST(data_past_the_end_of_its_list_is_dropped)
{
	struct wire w = wire_new();
	struct iscsi_rx rx;
	uint8_t byte;

	start(&w, &rx, false, true);
	w.piece = pieces[_i];
	add(&w, 1, ISCSI_DATA_OUT, MIB - 100, 4096, false, true);
	add(&w, 2, ISCSI_DATA_OUT, MIB + 4, 64, false, true);
	add(&w, 3, ISCSI_NOP_OUT, 0, 0, false, true);
	ck_assert_int_eq(run_all(&w, &rx), ISCSI_RX_IDLE);
	ck_assert_uint_eq(w.pdus, 3);
	ck_assert_uint_eq(w.bad_digests, 0);
	buf_read(&w.list, MIB - 1, &byte, 1);
	ck_assert_uint_eq(byte, pattern(MIB - 1));
	iscsi_rx_fini(&rx);
	wire_free(&w);
}
END_TEST

/* As many as a turn takes, and no more in the socket: a second turn would find nothing. */
START_TEST(a_turn_that_took_all_leaves_nothing_for_another)
{
	struct wire w = wire_new();
	struct iscsi_rx rx;

	start(&w, &rx, false, false);
	for (uint32_t tag = 1; tag <= 16; tag++)
		add(&w, tag, ISCSI_SCSI_COMMAND, 0, 0, false, false);
	ck_assert_int_eq(iscsi_rx_run(&rx, 16, UINT64_MAX), ISCSI_RX_IDLE);
	ck_assert_uint_eq(w.pdus, 16);
	iscsi_rx_fini(&rx);
	wire_free(&w);
}
END_TEST

START_TEST(a_turn_is_bounded)
{
	struct wire w = wire_new();
	struct iscsi_rx rx;
	unsigned turns = 0;

	start(&w, &rx, false, false);
	for (uint32_t tag = 1; tag <= 100; tag++)
		add(&w, tag, ISCSI_SCSI_COMMAND, 0, 0, false, false);
	while (iscsi_rx_run(&rx, 16, UINT64_MAX) == ISCSI_RX_BUDGET)
		ck_assert_uint_eq(w.pdus, ++turns * 16);
	ck_assert_uint_eq(turns, 6);
	ck_assert_uint_eq(w.pdus, 100);
	iscsi_rx_fini(&rx);
	wire_free(&w);
}
END_TEST

START_TEST(a_callback_stops_it_and_the_end_is_told)
{
	struct wire w = wire_new();
	struct iscsi_rx rx;

	start(&w, &rx, false, false);
	w.stop_at = 2;
	w.eof = true;
	for (uint32_t tag = 1; tag <= 3; tag++)
		add(&w, tag, ISCSI_SCSI_COMMAND, 0, 0, false, false);
	ck_assert_int_eq(run_all(&w, &rx), ISCSI_RX_STOPPED);
	ck_assert_uint_eq(w.pdus, 2);
	ck_assert_int_eq(run_all(&w, &rx), ISCSI_RX_EOF);
	ck_assert_uint_eq(w.pdus, 3);
	iscsi_rx_fini(&rx);
	wire_free(&w);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("rx");
	TCase *tcase = tcase_create("rx");
	const int n = (int)ARRAY_LEN(pieces);
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, any_pieces_make_the_same_pdus, 0, n);
	tcase_add_test(tcase, headers_come_many_at_a_time);
	tcase_add_test(tcase, payload_goes_straight_to_its_place);
	tcase_add_test(tcase, payload_among_headers_is_moved_once_and_counted);
	tcase_add_loop_test(tcase, a_wrong_data_digest_is_told_and_the_stream_goes_on, 0, n);
	tcase_add_loop_test(tcase, a_wrong_header_digest_ends_the_stream, 0, n);
	tcase_add_test(tcase, an_additional_header_beyond_the_bound_ends_the_stream);
	tcase_add_loop_test(tcase, what_nobody_wants_is_skipped, 0, n);
	tcase_add_loop_test(tcase, data_past_the_end_of_its_list_is_dropped, 0, n);
	tcase_add_test(tcase, a_turn_that_took_all_leaves_nothing_for_another);
	tcase_add_test(tcase, a_turn_is_bounded);
	tcase_add_test(tcase, a_callback_stops_it_and_the_end_is_told);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
