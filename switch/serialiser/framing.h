// SPDX-License-Identifier: BSD-3-Clause
// How many bytes a frame takes on a link, or counts at a policer: what it is carried in. framing.c
// has the sources.
#pragma once
#include "common/base/likely.h"
#include "common/base/param.h"
#include "common/config/config.h"

enum framing_kind { FRAMING_ETHERNET, FRAMING_NONE, FRAMING_IP, FRAMING_DOCSIS, FRAMING_ATM };
extern const char *const framing_names[];

struct framing {
	int kind; // enum framing_kind
	uint64_t overhead_bytes; // as configured
	uint64_t extra_bytes; // to add to a frame's size with FCS, modulo 2^64
	bool padded; // the sum is filled up
};

// The table's entry for a struct with a `struct framing`: `framing: atm`.
#define FRAMING_PARAM(T, field, def, help)                                                         \
	{ "framing", def, help, UNIT_NONE, PARAM_ENUM(T, field.kind, framing_names) }
// The key `overhead`, whose default depends on the framing: for stage_ops.also.
#define FRAMING_OVERHEAD_PARAM                                                                     \
	{                                                                                          \
		"overhead", "",                                                                    \
			"per frame without FCS (ip: per IP packet); default: that of the framing", \
			UNIT_BYTES, PARAM_U64(struct framing, overhead_bytes), 0, 1000             \
	}
// Reads `overhead` from the stage's map once `kind` is known.
int framing_configure(struct framing *f, struct config_node *node, struct err *err);

// The same for frames whose size plus overhead is `bytes`.
uint64_t framing_padded(const struct framing *f, uint64_t bytes);

// Bytes that a frame of this size with FCS takes.
static inline uint64_t framing_bytes(const struct framing *f, uint64_t size_bytes) {
	uint64_t bytes = size_bytes + f->extra_bytes;

	return likely(!f->padded) ? bytes : framing_padded(f, bytes);
}

// What limits in time and BDP count per frame on top of its size: that of a full-sized frame.
static inline uint32_t framing_overhead_bytes(const struct framing *f, uint32_t mtu_bytes) {
	uint64_t bytes = framing_bytes(f, mtu_bytes);

	return bytes > mtu_bytes ? (uint32_t)(bytes - mtu_bytes) : 0;
}
