/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes the configuration: any bytes are taken or refused with one line, and
 * what was taken holds what conf.h promises.
 */
#include <stdlib.h>
#include <string.h>

#include "core/conf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct conf *conf)
{
	if (!conf->node.name || !conf->node.state_dir || !conf->node.control)
		abort();
	for (unsigned i = 0; i < conf->portal_count; i++)
		if (!conf->portals[i].name || conf->portals[i].listen_count == 0)
			abort();
	for (unsigned i = 0; i < conf->backing_count; i++)
		if (!conf->backings[i].path || conf->backings[i].block_size % 512 ||
		    conf->backings[i].physical_block % conf->backings[i].block_size ||
		    conf->backings[i].size_bytes % conf->backings[i].block_size)
			abort();
	for (unsigned i = 0; i < conf->target_count; i++) {
		const struct conf_target *target = &conf->targets[i];

		if (target->allow.count == 0 || target->portals.count == 0)
			abort();
		for (unsigned j = 0; j < target->lun_count; j++)
			if (!conf_backing(conf, target->luns[j].backing) ||
			    (j && target->luns[j].number <= target->luns[j - 1].number))
				abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct conf_error error;
	struct conf *conf;

	if (conf_parse("fuzz", (const char *)data, size, &conf, &error) == 0) {
		check(conf);
		conf_free(conf);
	} else if (strncmp(error.text, "fuzz:", 5) != 0 || strchr(error.text, '\n')) {
		abort();
	}
	return 0;
}
