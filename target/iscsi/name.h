/* SPDX-License-Identifier: MIT */
/*
 * iSCSI names: is it one, and its one spelling.
 *
 * Spec: RFC 7143 section 4.2.7, RFC 3722 (the ASCII part of it), RFC 3980.
 */
#ifndef TARGET_ISCSI_NAME_H
#define TARGET_ISCSI_NAME_H

#include <stdbool.h>
#include <stddef.h>

#include "target/iscsi/keys.h"

/*
 * Writes TEXT's normal form (lower case) to NAME. False and NAME "" unless TEXT
 * is an iqn., eui. or naa. name of at most ISCSI_NAME_MAX bytes, without
 * control characters, spaces or bytes that are no UTF-8.
 */
bool iscsi_name_normalise(const char *text, char name[ISCSI_NAME_MAX + 1]);

#endif
