// SPDX-License-Identifier: BSD-3-Clause
// What the fuzz targets share: conditions that hold in every build, and an input read byte by byte.
#pragma once
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Kept in every build: an assert() may be compiled out.
#define NEED(cond)                                                                                 \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);                 \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

struct input {
	const uint8_t *at, *end;
};

// Little endian; zeros once the input is used up.
static inline uint64_t in_bytes(struct input *in, size_t n) {
	uint64_t value = 0;

	for (size_t i = 0; i < n && in->at < in->end; i++)
		value |= (uint64_t)*in->at++ << (8 * i);
	return value;
}

static inline uint8_t in_u8(struct input *in) {
	return (uint8_t)in_bytes(in, 1);
}

static inline uint16_t in_u16(struct input *in) {
	return (uint16_t)in_bytes(in, 2);
}

// A number modulo 2^32: `base`, near it, somewhat near it, or any.
static inline uint32_t in_near(struct input *in, uint32_t base) {
	switch (in_u8(in) & 3) {
	case 0:
		return base;
	case 1:
		return base + (uint32_t)(int8_t)in_u8(in);
	case 2:
		return base + (uint32_t)(int16_t)in_u16(in);
	default:
		return (uint32_t)in_bytes(in, 4);
	}
}
