// SPDX-License-Identifier: BSD-3-Clause
// A table of numbers in a file that a config names: a measured distribution, each number as likely
// as the others.
#pragma once
#include "common/config/config.h"

#include <stdint.h>

struct numbers {
	double *value; // sorted
	uint32_t count;
};

// Reads the file of the map's key `file` (config_read_file): numbers between spaces or newlines.
// After an error, too, numbers_fini.
int numbers_read(struct numbers *n, struct config_node *map, struct err *err);
void numbers_fini(struct numbers *n);

// The number at quantile u in [0, 1).
static inline double numbers_quantile(const struct numbers *n, double u) {
	return n->value[(uint32_t)(u * n->count)];
}
