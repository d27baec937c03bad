// SPDX-License-Identifier: BSD-3-Clause
// The bytes of a capture: a file, a pipe or standard input, plain or compressed with gzip or zstd,
// which is seen by the first bytes and not by the name. One pass, in a buffer of fixed size.
#pragma once
#include "common/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define INPUT_BYTES                                                                                \
	((size_t)2 << 20) // of the buffer, a large page: the most that input_fill gives at once

struct input {
	const uint8_t *at, *end; // what is in the buffer and not yet taken
	uint64_t offset; // of `end` in the decompressed capture
	bool ended; // nothing follows `end`
	// Private.
	const char *name; // for error sentences: owned by the caller
	uint8_t *buffer;
	struct codec *codec; // NULL: not compressed
	uint8_t *packed; // compressed bytes
	size_t packed_at, packed_end;
	uint64_t packed_bytes; // taken from the file
	int fd; // -1: memory
	bool packed_ended;
};

// Opens a file; "-" is standard input. 0 or -errno with a sentence.
int input_open(struct input *in, const char *path, struct err *err);
// The same for bytes in memory, which stay the caller's: tests and fuzzing.
int input_open_memory(
	struct input *in, const char *name, const void *bytes, size_t size, struct err *err);
void input_close(struct input *in);
// Reads on until at least n bytes (at most INPUT_BYTES) are between `at` and `end`, which may move
// them. False: so many do not follow; `ended` is then set. -errno in *rc with a sentence if they
// cannot be read or decompressed.
bool input_fill(struct input *in, size_t n, int *rc, struct err *err);
// Passes over n bytes, however many; false if so many do not follow.
bool input_skip(struct input *in, uint64_t n, int *rc, struct err *err);
// At the end: was a compressed file cut off?
bool input_cut(const struct input *in);
// Bytes of the file itself that were read so far: with its size they say how far the work is.
uint64_t input_file_bytes(const struct input *in);

// Offset of `at`.
static inline uint64_t input_offset(const struct input *in) {
	return in->offset - (uint64_t)(in->end - in->at);
}
