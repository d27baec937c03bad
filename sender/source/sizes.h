// SPDX-License-Identifier: BSD-3-Clause
// Sizes of transfers: the key `sizes` of sources that draw them.
//
//	fixed        mean
//	exponential  P(X > x) = e^(-x / mean)
//	pareto       P(X > x) = (m / x)^shape for x >= m, with m = mean (shape - 1) / shape
//	file         a distribution function from a file: lines "bytes P(X <= bytes)", straight
//	             lines between them
//
// Sizes are rounded up to whole bytes. A file's lines rise in both columns, and the last one is 1;
// if the first one is above 0, that part of the transfers has its size.
#pragma once
#include "common/base/param.h"
#include "common/base/rng.h"
#include "common/config/config.h"

#include <stdint.h>

enum sizes_law { SIZES_FIXED, SIZES_EXPONENTIAL, SIZES_PARETO, SIZES_FILE };

struct sizes_point {
	double bytes, p; // p = P(X <= bytes)
};

struct sizes {
	int law; // enum sizes_law
	uint64_t mean_bytes;
	double shape;
	struct sizes_point *point; // of a file
	uint32_t points;
};

// The row of a source's table `also`, and the table of its keys.
#define SIZES_PARAM                                                                                \
	{ "sizes", "", "sizes of the transfers", UNIT_NONE, PARAM_MAP("source.sizes") }
extern const struct param sizes_params[], sizes_file_params[];

// Reads `sizes` of a source's map. After an error, too, sizes_fini.
int sizes_read(struct sizes *s, struct config_node *source, struct err *err);
void sizes_fini(struct sizes *s);
uint64_t sizes_draw(const struct sizes *s, struct rng *rng);
double sizes_mean(const struct sizes *s);
