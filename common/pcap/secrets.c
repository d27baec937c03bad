// SPDX-License-Identifier: BSD-3-Clause
#include "common/pcap/secrets.h"

#include "common/base/u64.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LENGTH 4u // of the block, at its end

static uint32_t get32(const uint8_t *p, bool swapped) {
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return swapped ? __builtin_bswap32(v) : v;
}

static uint64_t padded(uint32_t size) {
	return ((uint64_t)size + 3) & ~UINT64_C(3);
}

bool secrets_fit(const uint8_t *head, uint32_t total, bool swapped) {
	return SECRETS_HEAD + padded(get32(head + 12, swapped)) + LENGTH <= total;
}

static bool make_room(struct secrets *s, size_t size) {
	size_t room = (size_t)max_u64(s->size + size, 2 * s->room);

	if (s->size + size <= s->room)
		return true;
	uint8_t *bytes = realloc(s->bytes, room);

	if (bytes == NULL)
		return false;
	s->bytes = bytes;
	s->room = room;
	return true;
}

bool secrets_read(struct secrets *s, struct input *in, uint32_t total, bool swapped, int *rc,
	struct err *err) {
	uint32_t head[SECRETS_HEAD / 4];
	size_t size, part;

	for (uint32_t i = 0; i < SECRETS_HEAD / 4; i++)
		head[i] = get32(in->at + i * sizeof(head[0]), swapped);
	size = padded(head[3]);
	head[1] = (uint32_t)size + SECRETS_HEAD + LENGTH;
	if (s->size + head[1] > SECRETS_BYTES_MAX || !make_room(s, head[1])) {
		*rc = err_set(err, -ENOMEM,
			"%s: its decryption secrets have more than %zu MiB or than there is "
			"memory: take them out (editcap --discard-all-secrets)",
			in->name, SECRETS_BYTES_MAX >> 20);
		return false;
	}
	uint8_t *to = s->bytes + s->size;

	memcpy(to, head, SECRETS_HEAD);
	to += SECRETS_HEAD;
	in->at += SECRETS_HEAD;
	total -= SECRETS_HEAD + (uint32_t)size;
	for (; size > 0; size -= part) {
		if (!input_fill(in, 1, rc, err))
			return false;
		part = (size_t)min_u64(size, (uint64_t)(in->end - in->at));
		memcpy(to, in->at, part);
		to += part;
		in->at += part;
	}
	memcpy(to, &head[1], LENGTH);
	if (!input_skip(in, total, rc, err))
		return false;
	s->size += head[1];
	return true;
}

int secrets_add(struct secrets *s, const uint8_t *blocks, size_t size) {
	if (!make_room(s, size))
		return -ENOMEM;
	memcpy(s->bytes + s->size, blocks, size);
	s->size += size;
	return 0;
}

void secrets_free(struct secrets *s) {
	free(s->bytes);
	*s = (struct secrets){.bytes = NULL};
}
