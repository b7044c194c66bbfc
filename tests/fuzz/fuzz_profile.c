/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes profiles: any bytes are taken or refused with one line, and what was taken holds what
 * the fields promise and multiplies to points, or is too much, but nothing else.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_values(const struct matrix *matrix)
{
	for (unsigned key = 0; key < MATRIX_KEYS; key++) {
		const struct matrix_field *field = &matrix_fields[key];

		if (matrix->of[key].count > (field->list ? MATRIX_VALUES_MAX : 1))
			abort();
		for (unsigned i = 0; i < matrix->of[key].count; i++)
			if (matrix->of[key].values[i] < field->min ||
			    matrix->of[key].values[i] > field->max)
				abort();
	}
}

static void check_points(const struct matrix *matrix)
{
	struct bench_plan plan = { 0 };
	struct bench_fault fault;
	int err = matrix_points(matrix, NULL, 0, &plan, &fault);

	if (err) {
		if (err != -EINVAL || plan.points)
			abort();
		return;
	}
	if (!plan.points || plan.point_count == 0 || plan.point_count > MATRIX_POINTS_MAX)
		abort();
	for (unsigned i = 0; i < plan.point_count; i++) {
		const struct bench_stream *s = &plan.points[i].streams[0];

		if (plan.points[i].stream_count != 1 || !plan.points[i].sessions || !s->depth ||
		    s->block_bytes % 512 || !s->block_bytes || s->read_percent > 100)
			abort();
	}
	free(plan.points);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct profile profile;
	struct conf_error error;

	if (profile_parse("fuzz", (const char *)data, size, &profile, &error) == 0) {
		if (!*profile.name || !*profile.from || !*profile.tells)
			abort();
		check_values(&profile.matrix);
		check_points(&profile.matrix);
	} else if (strncmp(error.text, "fuzz:", 5) != 0 || strchr(error.text, '\n')) {
		abort();
	}
	return 0;
}
