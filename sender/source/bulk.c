// SPDX-License-Identifier: BSD-3-Clause
// One transfer per flow: without end, or of a fixed size.
#include "sender/source/source.h"

static uint64_t bulk_bytes(const void *config, struct rng *rng) {
	return SOURCE_ENDLESS;
}

static const struct param no_params[] = {PARAM_END};

const struct source_ops source_bulk = {
	.name = "bulk",
	.summary = "always has data to send, until the group's stop or the end of the run",
	.params = no_params,
	.kind = SOURCE_ONCE,
	.bytes = bulk_bytes,
};

struct size_config {
	uint64_t bytes;
};

static const struct param size_params[] = {
	{"bytes", NULL, "payload of each flow", UNIT_BYTES, PARAM_U64(struct size_config, bytes), 1,
		1e15},
	PARAM_END,
};

static uint64_t size_bytes(const void *config, struct rng *rng) {
	const struct size_config *c = config;

	return c->bytes;
}

const struct source_ops source_size = {
	.name = "size",
	.summary = "sends a fixed number of bytes, then closes",
	.params = size_params,
	.config_size = sizeof(struct size_config),
	.kind = SOURCE_ONCE,
	.bytes = size_bytes,
};
