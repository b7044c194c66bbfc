/* SPDX-License-Identifier: MIT */
/*
 * Values of text keys: reading numbers, binary values and lists, writing pairs.
 *
 * Spec: RFC 7143 section 6.1.
 */
#ifndef TARGET_ISCSI_VALUE_H
#define TARGET_ISCSI_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base.h"

/* A text being written; what does not fit sets `full` and adds nothing. */
struct iscsi_out {
	char *data;
	size_t size;
	size_t len;
	bool full;
};

/* Appends `NAME=value` and its NUL. */
void iscsi_out_add(struct iscsi_out *out, const char *name, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* The whole of VALUE, decimal without leading zeroes or 0x; false for anything else. */
bool iscsi_number(const char *value, uint64_t *number);

/*
 * A binary value: 0x and hex digits, 0b and padded base64, or a decimal number
 * below 2^64 as big-endian bytes without leading zeroes. Returns the bytes
 * written, -EINVAL, or -E2BIG if they are more than SIZE.
 */
int iscsi_binary(const char *value, uint8_t *bytes, size_t size);

/*
 * Cuts the next item off a comma-separated *LIST; false at its end. Items may
 * be empty. *ITEM lies in the list and has no NUL.
 */
bool iscsi_list_next(const char **list, const char **item, size_t *len);
bool iscsi_item_is(const char *item, size_t len, const char *what);
/* Whether LIST holds exactly WHAT. */
bool iscsi_list_has(const char *list, const char *what);

#endif
