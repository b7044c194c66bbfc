/* SPDX-License-Identifier: MIT */
/* The halves of a measurement's JSON. */
#ifndef BENCH_JSON_INT_H
#define BENCH_JSON_INT_H

#include "bench/json.h"

/* json_fio.c: fio's members of the file and of its one job, into ROOT. */
void json_fio(const struct outcome *outcome, json_t *root);
/* json_yoke.c: the member `yoke`. */
json_t *json_yoke(const struct outcome *outcome);

/*
 * A text that we did not write ourselves. What is no UTF-8, which JSON cannot hold, becomes `?`;
 * otherwise the whole object that it is put into would be missing.
 */
json_t *json_text(const char *text);

static inline void json_put(json_t *object, const char *key, json_t *value)
{
	json_object_set_new(object, key, value);
}

#endif
