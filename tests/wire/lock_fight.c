/* SPDX-License-Identifier: MIT */
/*
 * Two sessions want one block by COMPARE AND WRITE, round after round, and tasks are aborted.
 *
 *   lock_fight URL ROUNDS SEED
 *
 * In a round both write what nobody else writes if the block is as the last round left it. Each may
 * abort its own command, and a third session may reset or clear what runs.
 *
 * Invariants:
 * 1. A round has at most one winner, and one at least unless both commands were aborted or not run.
 * 2. A miscompare is never told while the block is what the command compared.
 * 3. From the answer to ABORT TASK on, the command writes nothing, and is not answered any more.
 * 4. The block counts the winners.
 *
 * Not here: that every fate occurred (test_locks.py, from the counts on the last line).
 *
 * Spec: SBC-3 5.2 (COMPARE AND WRITE), SAM-5 7 (task management), RFC 7143 section 11.5.
 */
#include "tests/wire/peer.h"

#define ANSWER_US (60 * UINT64_C(1000000))

enum fate {
	OPEN,
	WON,     /* GOOD */
	LOST,    /* miscompare */
	NOT_RUN, /* unit attention */
	ABORTED, /* over without an answer */
};

struct fighter {
	struct peer peer;
	uint32_t who;
	struct scsi_task *task;
	enum fate fate;
	bool aborts, abort_sent, abort_done;
	uint32_t abort_response;
	uint8_t data[2 * BLOCK];
};

static struct fighter fighters[2] = { { .who = 1 }, { .who = 2 } };
static struct peer third, reader;
static struct peer *everyone[] = { &fighters[0].peer, &fighters[1].peer, &third };
static uint32_t round_number, block_number, block_who;
static bool tmf_open;
static enum iscsi_task_mgmt_funcs tmf; /* of the third; 0: none in this round */
static struct {
	unsigned won, landed, void_rounds, miscompares, attentions, aborted, functions;
} count;

static _Noreturn void wrong(const char *what)
{
	for (unsigned i = 0; i < 2; i++)
		warnx("%u: fate %u, abort %s with %u", fighters[i].who, fighters[i].fate,
		      fighters[i].abort_done ? "answered" :
		      fighters[i].abort_sent ? "sent" :
					       "not sent",
		      fighters[i].abort_response);
	errx(1, "round %u (function %u): %s", round_number, tmf, what);
}

/* ---- what comes */

static void lock_ended(struct iscsi_context *iscsi, int status, void *data, void *arg)
{
	struct fighter *fighter = arg;
	struct scsi_task *task = data;

	(void)iscsi;
	if (status == SCSI_STATUS_CANCELLED) /* by us, at the end of the round */
		return;
	if (fighter->abort_done)
		wrong("an answer after that to ABORT TASK");
	if (status == SCSI_STATUS_GOOD)
		fighter->fate = WON;
	else if (status == SCSI_STATUS_CHECK_CONDITION && task->sense.key == SCSI_SENSE_MISCOMPARE)
		fighter->fate = LOST;
	else if (status == SCSI_STATUS_CHECK_CONDITION &&
		 task->sense.key == SCSI_SENSE_UNIT_ATTENTION)
		fighter->fate = NOT_RUN;
	else if (status == SCSI_STATUS_TASK_ABORTED) /* by the third: TAS is 1 */
		fighter->fate = ABORTED;
	else
		wrong(iscsi_get_error(fighter->peer.iscsi));
}

static void abort_ended(struct iscsi_context *iscsi, int status, void *data, void *arg)
{
	struct fighter *fighter = arg;

	(void)iscsi;
	if (status != SCSI_STATUS_GOOD)
		wrong("ABORT TASK failed");
	fighter->abort_done = true;
	fighter->abort_response = *(uint32_t *)data;
	if (fighter->abort_response > ISCSI_TMR_TASK_DOES_NOT_EXIST)
		wrong("ABORT TASK refused");
	if (fighter->fate == OPEN) {
		/* Only a function of the third may have ended it in silence. */
		if (fighter->abort_response == ISCSI_TMR_TASK_DOES_NOT_EXIST &&
		    tmf != ISCSI_TM_LUN_RESET && tmf != ISCSI_TM_CLEAR_TASK_SET)
			wrong("no such task, and yet no answer");
		fighter->fate = ABORTED;
	}
}

static void function_ended(struct iscsi_context *iscsi, int status, void *data, void *arg)
{
	(void)iscsi, (void)arg;
	if (status != SCSI_STATUS_GOOD || *(uint32_t *)data != ISCSI_TMR_FUNC_COMPLETE)
		wrong("the third's function failed");
	tmf_open = false;
}

/* ---- a round */

/* What the block holds; asked again where a unit attention or the third came in between. */
static void look(uint32_t *number, uint32_t *who)
{
	for (unsigned tries = 0; tries < 8; tries++) {
		struct scsi_task *task =
			iscsi_read16_sync(reader.iscsi, reader.lun, 0, BLOCK, BLOCK, 0, 0, 0, 0, 0);
		bool again;

		if (!task)
			give_up("read", iscsi_get_error(reader.iscsi));
		if (task->status == SCSI_STATUS_GOOD) {
			memcpy(number, task->datain.data, 4);
			memcpy(who, task->datain.data + 4, 4);
			for (unsigned at = 8; at < BLOCK; at += 8)
				if (memcmp(task->datain.data, task->datain.data + at, 8))
					wrong("a block half written");
			scsi_free_scsi_task(task);
			return;
		}
		again = task->status == SCSI_STATUS_TASK_ABORTED ||
			task->sense.key == SCSI_SENSE_UNIT_ATTENTION;
		scsi_free_scsi_task(task);
		if (!again)
			give_up("read", iscsi_get_error(reader.iscsi));
	}
	wrong("no reading the block");
}

/* The command leaves first: libiscsi lets immediate requests overtake others. */
static void send_abort(struct fighter *fighter)
{
	struct peer *peer = &fighter->peer;

	while (iscsi_out_queue_length(peer->iscsi) > 0)
		peers_serve(&peer, 1, 1000);
	fighter->abort_sent = true;
	count.aborted++;
	if (iscsi_task_mgmt_async(fighter->peer.iscsi, fighter->peer.lun, ISCSI_TM_ABORT_TASK,
				  fighter->task->itt, fighter->task->cmdsn, abort_ended, fighter))
		wrong(iscsi_get_error(fighter->peer.iscsi));
}

static void send_lock(struct fighter *fighter)
{
	stamp(fighter->data, block_number, block_who);
	stamp(fighter->data + BLOCK, block_number + 1, fighter->who);
	fighter->fate = OPEN;
	fighter->abort_sent = fighter->abort_done = false;
	fighter->task = iscsi_compareandwrite_task(fighter->peer.iscsi, fighter->peer.lun, 0,
						   fighter->data, sizeof(fighter->data), BLOCK, 0,
						   0, 0, 0, 0, lock_ended, fighter);
	if (!fighter->task)
		wrong(iscsi_get_error(fighter->peer.iscsi));
	if (fighter->aborts)
		send_abort(fighter);
}

static void send_function(void)
{
	tmf_open = tmf != 0;
	if (!tmf)
		return;
	count.functions++;
	if (iscsi_task_mgmt_async(third.iscsi, third.lun, tmf, 0xffffffff, 0, function_ended, NULL))
		wrong(iscsi_get_error(third.iscsi));
}

/* Whether all is over; who was ended in silence by the third's function asks for its fate. */
static bool settled(void)
{
	bool all = !tmf_open;

	for (unsigned i = 0; i < 2; i++) {
		struct fighter *fighter = &fighters[i];

		if (fighter->fate == OPEN && !fighter->abort_sent && !tmf_open && tmf)
			send_abort(fighter);
		if (fighter->fate == OPEN || (fighter->abort_sent && !fighter->abort_done))
			all = false;
	}
	return all;
}

static void send_round(uint64_t *seed)
{
	static const enum iscsi_task_mgmt_funcs functions[] = {
		0, 0, 0, 0, ISCSI_TM_ABORT_TASK_SET, ISCSI_TM_CLEAR_TASK_SET, ISCSI_TM_LUN_RESET,
	};
	uint64_t dice = chance(seed);
	unsigned first = dice & 1, place = (unsigned)(dice >> 1) % 3;

	tmf = functions[(dice >> 8) % (sizeof(functions) / sizeof(functions[0]))];
	fighters[0].aborts = (dice >> 16) % 4 == 0;
	fighters[1].aborts = (dice >> 24) % 4 == 0;
	for (unsigned step = 0; step < 3; step++) {
		if (step == place)
			send_function();
		if (step < 2)
			send_lock(&fighters[step ^ first]);
		/* What was sent so far leaves, or all leaves at once. */
		if (dice >> 32 & 1)
			peers_serve(everyone, 3, 0);
	}
}

/* The block holds NUMBER, WHO at the end, and what SEEN says when FIGHTER's fate was final. */
static void judge_fighter(const struct fighter *fighter, bool seen, uint32_t number, uint32_t who)
{
	bool wrote = number == block_number + 1 && who == fighter->who;

	if (fighter->fate == WON && !wrote)
		wrong("GOOD, and not written");
	if (fighter->fate == LOST && (wrote || number == block_number))
		wrong("a miscompare of what was equal");
	if (fighter->fate == NOT_RUN && wrote)
		wrong("written beside a unit attention");
	if (fighter->fate == ABORTED && wrote != seen)
		wrong("written after the answer to ABORT TASK");
	count.won += fighter->fate == WON;
	count.landed += fighter->fate == ABORTED && wrote;
	count.miscompares += fighter->fate == LOST;
	count.attentions += fighter->fate == NOT_RUN;
}

/* Whose fate has become final without an answer, and whether the block shows its write by then. */
static void look_at_aborted(bool *looked, bool *seen)
{
	uint32_t number, who;

	for (unsigned i = 0; i < 2; i++) {
		if (fighters[i].fate != ABORTED || looked[i])
			continue;
		looked[i] = true;
		look(&number, &who);
		seen[i] = number == block_number + 1 && who == fighters[i].who;
	}
}

/* Unit attentions of a round are heard in it, or the next would be no fight. */
static void hear(struct peer *peer)
{
	struct scsi_task *task;
	bool again = true;

	for (unsigned tries = 0; again && tries < 8; tries++) {
		task = iscsi_testunitready_sync(peer->iscsi, peer->lun);
		again = !task || task->status != SCSI_STATUS_GOOD;
		if (task)
			scsi_free_scsi_task(task);
	}
	if (again)
		wrong("never ready again");
}

static void fight_once(uint64_t *seed)
{
	bool looked[2] = { false, false }, seen[2] = { false, false };
	uint64_t deadline = now_us() + ANSWER_US;
	uint32_t number, who;
	unsigned i;

	send_round(seed);
	while (!settled()) {
		look_at_aborted(looked, seen);
		if (now_us() > deadline)
			wrong("no answer");
		peers_serve(everyone, 3, 1000);
	}
	look_at_aborted(looked, seen);
	look(&number, &who);
	if (number != block_number && (number != block_number + 1 || (who != 1 && who != 2)))
		wrong("a block that nobody wrote");
	for (i = 0; i < 2; i++)
		judge_fighter(&fighters[i], seen[i], number, who);
	peers_serve(everyone, 3, 0); /* an answer too many would be here */
	for (i = 0; i < 2; i++) {
		if (fighters[i].fate == ABORTED)
			iscsi_scsi_cancel_task(fighters[i].peer.iscsi, fighters[i].task);
		scsi_free_scsi_task(fighters[i].task);
		if (tmf)
			hear(&fighters[i].peer);
	}
	count.void_rounds += number == block_number;
	block_number = number;
	block_who = who;
}

int main(int argc, char **argv)
{
	uint64_t seed;
	uint8_t block[BLOCK];
	uint32_t rounds;

	if (argc != 4)
		errx(2, "usage: lock_fight URL ROUNDS SEED");
	rounds = (uint32_t)strtoul(argv[2], NULL, 10);
	seed = strtoull(argv[3], NULL, 10) * 2654435761u + 88172645463325252u;
	peer_open(&fighters[0].peer, argv[1], "one");
	peer_open(&fighters[1].peer, argv[1], "two");
	peer_open(&third, argv[1], "third");
	peer_open(&reader, argv[1], "reader");
	stamp(block, 0, 0);
	peer_write(&reader, block);
	for (round_number = 0; round_number < rounds; round_number++)
		fight_once(&seed);
	if (block_number != count.won + count.landed)
		errx(1, "the block counts %u, %u won and %u landed", block_number, count.won,
		     count.landed);
	printf("fight: rounds=%u winners=%u won=%u landed=%u void=%u miscompares=%u attentions=%u "
	       "aborts=%u functions=%u\n",
	       rounds, block_number, count.won, count.landed, count.void_rounds, count.miscompares,
	       count.attentions, count.aborted, count.functions);
	peer_close(&fighters[0].peer);
	peer_close(&fighters[1].peer);
	peer_close(&third);
	peer_close(&reader);
	return 0;
}
