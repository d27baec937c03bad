// SPDX-License-Identifier: BSD-3-Clause
// Decompression of a stream: gzip (RFC 1952, several members behind each other too) and Zstandard
// (RFC 8878).
#pragma once
#include "common/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct codec;

#define CODEC_MAGIC_BYTES 4u
// By the first bytes, CODEC_MAGIC_BYTES or fewer if there are no more; *codec is NULL if they are
// not compressed. 0 or -errno with a sentence.
int codec_open(
	struct codec **codec, const char *name, const uint8_t *magic, size_t size, struct err *err);
void codec_close(struct codec *codec); // NULL is allowed
// Takes bytes from *from on and writes at most `room` bytes to `to`; moves *from on. Returns how
// many it wrote, or -errno with a sentence if the compressed data are damaged.
int64_t codec_read(struct codec *codec, const uint8_t **from, const uint8_t *from_end, uint8_t *to,
	size_t room, struct err *err);
// Does what was taken so far end a member or a frame?
bool codec_complete(const struct codec *codec);
