/* SPDX-License-Identifier: MIT */
/* The halves of a measurement's JSON. */
#ifndef BENCH_JSON_INT_H
#define BENCH_JSON_INT_H

#include "bench/json.h"

/* json_fio.c: fio's members of the file and of its one job, into ROOT. */
void json_fio(const struct outcome *outcome, json_t *root);
/* json_yoke.c: the member `yoke`. */
json_t *json_yoke(const struct outcome *outcome);

static inline void json_put(json_t *object, const char *key, json_t *value)
{
	json_object_set_new(object, key, value);
}

#endif
