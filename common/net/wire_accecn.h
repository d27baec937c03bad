// SPDX-License-Identifier: BSD-3-Clause
// The AccECN option (RFC 9768 section 3.2.3): up to three counters of 24 bits. Kind 172 begins with
// E0B, kind 174 with E1B.
#pragma once
#include "common/net/seg.h"
#include "common/net/wire_ip.h"
#include "common/net/wire_put.h"

#include <stdbool.h>
#include <string.h>

#define WIRE_ACCECN0 172
#define WIRE_ACCECN1 174
#define WIRE_ACCECN_FIELD 3u // bytes
#define WIRE_ACCECN_MAX 12u // with a NOP behind it

static inline bool wire_is_accecn(const uint8_t *option) {
	return option[0] == WIRE_ACCECN0 || option[0] == WIRE_ACCECN1;
}

// Place of a field in seg.ecn_bytes.
static inline size_t wire_accecn_place(bool e0b_first, size_t field) {
	return e0b_first ? field : SEG_ECN_E1B - field;
}

// Reads an option of `size` bytes. Fields for which it is too short are not there; bytes beyond
// them are ignored, and so is a second option, as it would say of which fields there are what is
// not true of the first one's.
static inline void wire_parse_accecn(const uint8_t *option, uint8_t size, struct seg *seg) {
	bool e0b_first = option[0] == WIRE_ACCECN0;
	uint8_t fields = (uint8_t)((size - 2u) / WIRE_ACCECN_FIELD);

	if ((seg->options & SEG_OPT_ACCECN) != 0)
		return;
	seg->options |= e0b_first ? SEG_OPT_ACCECN0 : SEG_OPT_ACCECN1;
	seg->ecn_fields = fields < SEG_ECN_FIELDS ? fields : SEG_ECN_FIELDS;
	for (size_t i = 0; i < seg->ecn_fields; i++) {
		const uint8_t *field = option + 2 + WIRE_ACCECN_FIELD * i;

		seg->ecn_bytes[wire_accecn_place(e0b_first, i)] =
			(uint32_t)field[0] << 16 | wire_get16(field + 1);
	}
}

// How many fields fit into `room` bytes.
static inline size_t wire_accecn_fields(const struct seg *seg, size_t room) {
	size_t fits = room < 4 ? 0 : (room - 2) / WIRE_ACCECN_FIELD;

	if ((seg->options & SEG_OPT_ACCECN) == 0)
		return 0;
	return seg->ecn_fields < fits ? seg->ecn_fields : fits;
}

// Bytes of an option with so many fields, padded to words.
static inline size_t wire_accecn_size(size_t fields) {
	return fields == 0 ? 0 : (2 + WIRE_ACCECN_FIELD * fields + 3) / 4 * 4;
}

// Writes it, padded by NOPs to WIRE_ACCECN_MAX.
static inline void wire_put_accecn(uint8_t *option, const struct seg *seg, size_t fields) {
	bool e0b_first = (seg->options & SEG_OPT_ACCECN0) != 0;

	memset(option, 1, WIRE_ACCECN_MAX);
	option[0] = e0b_first ? WIRE_ACCECN0 : WIRE_ACCECN1;
	option[1] = (uint8_t)(2 + WIRE_ACCECN_FIELD * fields);
	for (size_t i = 0; i < fields; i++) {
		uint32_t bytes = seg->ecn_bytes[wire_accecn_place(e0b_first, i)];

		option[2 + WIRE_ACCECN_FIELD * i] = (uint8_t)(bytes >> 16);
		wire_put16(option + 3 + WIRE_ACCECN_FIELD * i, bytes & 0xffff);
	}
}
