// SPDX-License-Identifier: BSD-3-Clause
// Decryption secrets of a pcapng capture (blocks of type 10), such as the keys of TLS by which
// Wireshark shows what its packets carry. What they say is not looked at.
#pragma once
#include "common/pcap/input.h"

#define SECRETS_BLOCK 10u
#define SECRETS_HEAD 16u // type, total length, type of the secrets, their length
#define SECRETS_BYTES_MAX ((size_t)64 << 20) // of all that are kept

// Whole blocks one behind the other, in the byte order of this machine and without their options.
struct secrets {
	uint8_t *bytes;
	size_t size;
	size_t room; // private
};

// Do the secrets fit into their block, whose first SECRETS_HEAD bytes these are?
bool secrets_fit(const uint8_t *head, uint32_t total, bool swapped);
// Takes the block of which secrets_fit is true from the input, `total` bytes. False: it is cut off,
// or -errno in *rc with a sentence. Then nothing was added.
bool secrets_read(struct secrets *s, struct input *in, uint32_t total, bool swapped, int *rc,
	struct err *err);
// Adds a copy of such blocks. 0 or -ENOMEM.
int secrets_add(struct secrets *s, const uint8_t *blocks, size_t size);
void secrets_free(struct secrets *s);
