/* SPDX-License-Identifier: MIT */
/* The transmit queue: the same bytes however little the socket takes. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "core/crc32c.h"
#include "target/iscsi/tx.h"

struct sink {
	uint8_t *bytes;
	size_t length;
	size_t piece; /* at most so much a write; 0: all */
	size_t room;  /* until it blocks */
	unsigned writes;
	unsigned sent[64];
	unsigned sent_count;
	int error;
};

static ssize_t sink_writev(void *arg, struct iovec *iov, unsigned count)
{
	struct sink *s = arg;
	size_t left = s->piece ? s->piece : SIZE_MAX, done = 0;

	s->writes++;
	if (s->error || !s->room) {
		errno = s->error ? s->error : EAGAIN;
		return -1;
	}
	left = left < s->room ? left : s->room;
	for (unsigned i = 0; i < count && left; i++) {
		size_t n = left < iov[i].iov_len ? left : iov[i].iov_len;

		memcpy(s->bytes + s->length, iov[i].iov_base, n);
		s->length += n;
		left -= n;
		done += n;
	}
	s->room -= done;
	return (ssize_t)done;
}

static void sink_sent(void *arg, void *owner)
{
	struct sink *s = arg;

	s->sent[s->sent_count++] = *(unsigned *)owner;
}

static const struct iscsi_tx_ops ops = { .sent = sink_sent, .writev = sink_writev };

static const size_t pieces[] = { 1, 3, 47, 48, 51, 52, 4095, 70000, 0 };
static const uint32_t lengths[] = { 0, 1, 2, 3, 4, 48, 4096, 65536, 200001 };
static unsigned numbers[ARRAY_LEN(lengths)];

static struct iscsi_bhs header(uint32_t tag)
{
	struct iscsi_bhs bhs;

	iscsi_bhs_init(&bhs, ISCSI_DATA_IN, ISCSI_FINAL, tag);
	return bhs;
}

/* What must have come out for lengths[], from the bytes alone. */
static void check_stream(const struct sink *s, const uint8_t *data, bool hd, bool dd)
{
	size_t at = 0;

	for (unsigned i = 0; i < ARRAY_LEN(lengths); i++) {
		const uint8_t *pdu = s->bytes + at;
		uint32_t padded = lengths[i] + iscsi_pad(lengths[i]);

		ck_assert_uint_eq(pdu[0], ISCSI_DATA_IN);
		ck_assert_uint_eq(get_be24(pdu + 5), lengths[i]);
		ck_assert_uint_eq(get_be32(pdu + 16), i);
		at += ISCSI_BHS_BYTES;
		if (hd) {
			ck_assert_uint_eq(get_le32(s->bytes + at), crc32c(pdu, ISCSI_BHS_BYTES));
			at += ISCSI_DIGEST_BYTES;
		}
		ck_assert_int_eq(memcmp(s->bytes + at, data, lengths[i]), 0);
		for (uint32_t k = lengths[i]; k < padded; k++)
			ck_assert_uint_eq(s->bytes[at + k], 0);
		if (dd && lengths[i]) {
			ck_assert_uint_eq(get_le32(s->bytes + at + padded),
					  crc32c(s->bytes + at, padded));
			at += ISCSI_DIGEST_BYTES;
		}
		at += padded;
	}
	ck_assert_uint_eq(at, s->length);
}

START_TEST(any_pieces_send_the_same_bytes)
{
	struct buf_pool *pool = buf_pool_new(MIB);
	uint8_t *data = malloc(262144);
	struct buf_list list;

	ck_assert(buf_take(pool, 262144, &list));
	for (unsigned i = 0; i < 262144; i++)
		data[i] = (uint8_t)(i * 13 + i / 256);
	buf_write(&list, 0, data, 262144);
	for (unsigned digests = 0; digests < 8; digests++) {
		struct sink s = { .bytes = malloc(MIB), .piece = pieces[_i] };
		struct iscsi_tx tx;

		ck_assert(iscsi_tx_init(&tx, &ops, &s));
		ck_assert(iscsi_tx_full_feature(&tx));
		tx.header_digest = digests & 1;
		tx.data_digest = digests & 2;
		for (unsigned i = 0; i < ARRAY_LEN(lengths); i++) {
			struct iscsi_tx_data from = { .length = lengths[i] };
			struct iscsi_bhs bhs = header(i);

			numbers[i] = i;
			if (digests & 4)
				from.list = &list;
			else
				from.data = data;
			iscsi_tx_add(&tx, &bhs, &from, &numbers[i]);
		}
		ck_assert_int_eq(iscsi_tx_flush(&tx), ISCSI_TX_BLOCKED);
		ck_assert_uint_eq(s.length, 0);
		s.room = SIZE_MAX;
		while (iscsi_tx_flush(&tx) == ISCSI_TX_BLOCKED)
			;
		check_stream(&s, data, tx.header_digest, tx.data_digest);
		ck_assert_uint_eq(s.sent_count, ARRAY_LEN(lengths));
		for (unsigned i = 0; i < s.sent_count; i++)
			ck_assert_uint_eq(s.sent[i], i);
		if (!s.piece)
			ck_assert_uint_eq(s.writes, 2);
		iscsi_tx_fini(&tx);
		free(s.bytes);
	}
	buf_give(pool, &list);
	buf_pool_free(pool);
	free(data);
}
END_TEST

START_TEST(an_owner_is_told_with_its_last_byte)
{
	struct sink s = { .bytes = malloc(4096), .room = 2 * ISCSI_BHS_BYTES - 1 };
	unsigned first = 1, second = 2;
	struct iscsi_bhs bhs = header(0);
	struct iscsi_tx tx;

	ck_assert(iscsi_tx_init(&tx, &ops, &s));
	iscsi_tx_add(&tx, &bhs, NULL, &first);
	iscsi_tx_add(&tx, &bhs, NULL, &second);
	ck_assert_uint_eq(iscsi_tx_room(&tx), 0);
	ck_assert_int_eq(iscsi_tx_flush(&tx), ISCSI_TX_BLOCKED);
	ck_assert_uint_eq(s.sent_count, 1);
	ck_assert_uint_eq(iscsi_tx_room(&tx), 1);
	s.room = 1;
	ck_assert_int_eq(iscsi_tx_flush(&tx), ISCSI_TX_EMPTY);
	ck_assert_uint_eq(s.sent_count, 2);
	ck_assert_uint_eq(s.sent[1], 2);
	iscsi_tx_fini(&tx);
	free(s.bytes);
}
END_TEST

START_TEST(a_lost_socket_gives_all_owners_back)
{
	struct sink s = { .error = EPIPE };
	unsigned owner = 5;
	struct iscsi_bhs bhs = header(0);
	struct iscsi_tx tx;

	ck_assert(iscsi_tx_init(&tx, &ops, &s));
	ck_assert(iscsi_tx_full_feature(&tx));
	for (unsigned i = 0; i < 20; i++)
		iscsi_tx_add(&tx, &bhs, NULL, i % 2 ? &owner : NULL);
	ck_assert_int_eq(iscsi_tx_flush(&tx), ISCSI_TX_ERROR);
	ck_assert_uint_eq(s.sent_count, 0);
	iscsi_tx_drop(&tx);
	ck_assert_uint_eq(s.sent_count, 10);
	iscsi_tx_fini(&tx);
}
END_TEST

START_TEST(the_ring_goes_round)
{
	struct sink s = { .bytes = malloc(2 * MIB), .room = SIZE_MAX };
	struct iscsi_bhs bhs;
	struct iscsi_tx tx;
	uint32_t tag = 0;

	ck_assert(iscsi_tx_init(&tx, &ops, &s));
	ck_assert(iscsi_tx_full_feature(&tx));
	for (unsigned round = 0; round < 20; round++) {
		while (iscsi_tx_room(&tx) > round) {
			bhs = header(tag++);
			iscsi_tx_add(&tx, &bhs, NULL, NULL);
		}
		ck_assert_int_eq(iscsi_tx_flush(&tx), ISCSI_TX_EMPTY);
	}
	ck_assert_uint_eq(s.length, (size_t)tag * ISCSI_BHS_BYTES);
	for (uint32_t i = 0; i < tag; i++)
		ck_assert_uint_eq(get_be32(s.bytes + (size_t)i * ISCSI_BHS_BYTES + 16), i);
	ck_assert_uint_eq(s.writes, 20);
	iscsi_tx_fini(&tx);
	free(s.bytes);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("tx");
	TCase *tcase = tcase_create("tx");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, any_pieces_send_the_same_bytes, 0, (int)ARRAY_LEN(pieces));
	tcase_add_test(tcase, an_owner_is_told_with_its_last_byte);
	tcase_add_test(tcase, a_lost_socket_gives_all_owners_back);
	tcase_add_test(tcase, the_ring_goes_round);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
