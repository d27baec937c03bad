// SPDX-License-Identifier: BSD-3-Clause
// Reads tests/vectors/NAME.csv: lines of "#" and one of column names, then rows of a scenario and
// numbers.
#pragma once
#include "test.h"

#include <stdio.h>
#include <string.h>

#define VECTOR_COLUMNS 16

struct vectors {
	FILE *file;
	char line[512];
	const char *scenario; // of the present row
	bool begins; // it is the scenario's first
	char last[64];
	double column[VECTOR_COLUMNS]; // after the scenario
	uint32_t rows;
};

static inline void vectors_open(struct vectors *v, const char *name) {
	char path[1024];

	snprintf(path, sizeof(path), "%s/%s.csv", VECTORS, name);
	*v = (struct vectors){.file = fopen(path, "r")};
	ck_assert_msg(v->file != NULL, "cannot open %s", path);
	while (fgets(v->line, sizeof(v->line), v->file) != NULL && v->line[0] == '#')
		;
	ck_assert_int_eq(strncmp(v->line, "scenario,", 9), 0);
}

// The next row; false: there is none, and the file is closed.
static inline bool vectors_next(struct vectors *v) {
	char *text;

	if (fgets(v->line, sizeof(v->line), v->file) == NULL) {
		ck_assert_uint_gt(v->rows, 0);
		fclose(v->file);
		return false;
	}
	v->scenario = strtok_r(v->line, ",\n", &text);
	v->begins = strcmp(v->scenario, v->last) != 0;
	snprintf(v->last, sizeof(v->last), "%s", v->scenario);
	for (int i = 0; i < VECTOR_COLUMNS; i++) {
		const char *number = strtok_r(NULL, ",\n", &text);

		v->column[i] = number == NULL ? 0 : strtod(number, NULL);
	}
	v->rows++;
	return true;
}

// Equal up to the rounding of a few hundred operations on doubles.
static inline bool vectors_same(double a, double b) {
	double larger = a > b ? a : b, smaller = a > b ? b : a;

	return larger - smaller <= 1e-11 * larger;
}
