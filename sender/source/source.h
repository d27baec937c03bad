// SPDX-License-Identifier: BSD-3-Clause
// Sources: how much a flow sends. A flow closes when all of it is acknowledged.
#pragma once
#include "common/base/param.h"
#include "common/base/rng.h"

#include <stddef.h>
#include <stdint.h>

#define SOURCE_ENDLESS UINT64_MAX

struct source_ops {
	const char *name;
	const char *summary;
	const struct param *params;
	size_t config_size;

	// Payload bytes of one flow, or SOURCE_ENDLESS; `rng` is the group's own.
	uint64_t (*bytes)(const void *config, struct rng *rng);
};

extern const struct source_ops *const source_all[]; // ends with NULL
const struct source_ops *source_find(const char *name);
