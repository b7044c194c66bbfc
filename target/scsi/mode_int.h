/* SPDX-License-Identifier: MIT */
/* Mode pages: what MODE SENSE (mode.c), MODE SELECT (mode_select.c) and saving (mode_save.c) share. */
#ifndef TARGET_SCSI_MODE_INT_H
#define TARGET_SCSI_MODE_INT_H

#include "target/scsi/lu_int.h"

#define MODE_PAGE_MAX 64
/* The longest parameter list that is looked at: every page several times over. */
#define MODE_LIST_MAX 1024

#define MODE_SPF 0x40
#define MODE_LONGLBA 0x01

/* Fills in the page with MODE, or with NULL its changeable bits: OUT is where its parameters begin, zeroed. */
typedef void mode_fill_fn(const struct scsi_lu *lu, const struct lu_mode *mode, uint8_t *out);
/* Takes over the changeable values at IN. */
typedef void mode_take_fn(struct lu_mode *mode, const uint8_t *in);

struct mode_page {
	uint8_t page, subpage;
	uint8_t length; /* of the parameters */
	mode_fill_fn *fill;
	mode_take_fn *take; /* NULL: nothing is changeable */
};

/* A parameter list that was checked: pages from FIRST to LENGTH, none with length 0. */
struct mode_list {
	unsigned first, length;
	uint8_t bytes[MODE_LIST_MAX];
};

/* ---- mode.c */
const struct mode_page *mode_page(unsigned index);
const struct mode_page *mode_page_find(uint8_t page, uint8_t subpage);
/* The one with WCE. */
bool mode_page_caches(const struct mode_page *page);
/* There is something in it that MODE SELECT can change and save. */
bool mode_page_savable(const struct scsi_lu *lu, const struct mode_page *page);
/* With its header, PS 0; MODE NULL: what is changeable. Its length, at most MODE_PAGE_MAX. */
unsigned mode_page_put(const struct scsi_lu *lu, const struct mode_page *page,
		       const struct lu_mode *mode, uint8_t *out);

/* ---- mode_select.c */
void mode_list_read(const struct scsi_task *task, struct mode_list *list);
void mode_list_take(struct lu_mode *mode, const struct mode_list *list);
/* To what is in force; other nexuses will be told. */
void mode_list_apply(struct scsi_task *task, const struct mode_list *list);

/* ---- mode_save.c */
/* Save what is in force and what the task's list makes of it, apply the list, complete. */
void mode_save(struct lu_task *lt);

#endif
