// SPDX-License-Identifier: BSD-3-Clause
// Which ACKs in a queue a newer one of the same flow makes redundant (Hoiland-Jorgensen, Taht,
// Morton: Piece of CAKE, LANMAN 2018, section III.D; what else an ACK may tell: RFC 2018, 2883,
// 3168, 7323, 9768).
//
// An ACK is redundant if a newer one tells all that it tells, and more:
//
//	number      the newer one's is higher, or it is the same and the newer one has SACK blocks
//	            that are new: else it is a duplicate ACK, whose count tells the sender of a loss
//	SACK        each block is within a block of the newer one or below its number
//	D-SACK      what arrived twice (its first block is below its number, or within the second
//	            block) is told once only: such an ACK is never redundant
//	timestamp   is not later than the newer one's
//	ECN         AE, CWR and ECE are the same, and in all packets of the flow between them, so
//	            that each change arrives, and with the number up to which the earlier ones hold
//
// All of them must be ACKs and nothing else (struct pkt_headers).
#pragma once
#include "common/base/pkt.h"

static inline bool ack_filter_below(uint32_t a, uint32_t b) {
	return (int32_t)(a - b) <= 0;
}

static inline bool ack_filter_within(struct pkt_sack block, const struct pkt_headers *h) {
	for (uint32_t i = 0; i < h->sacks; i++) {
		if (ack_filter_below(h->sack[i].start, block.start)
			&& ack_filter_below(block.end, h->sack[i].end))
			return true;
	}
	return false;
}

static inline bool ack_filter_dsack(const struct pkt_headers *h) {
	struct pkt_headers others = *h;

	if (h->sacks == 0)
		return false;
	others.sack[0] = others.sack[--others.sacks];
	return !ack_filter_below(h->ack, h->sack[0].start)
		|| ack_filter_within(h->sack[0], &others);
}

// Whether both are ACKs with the same ECN bits. Where a packet between two ACKs is not, the older
// one is not redundant.
static inline bool ack_filter_alike(
	const struct pkt_headers *newer, const struct pkt_headers *older) {
	return newer->pure_ack && older->pure_ack && newer->ace == older->ace;
}

static inline bool ack_filter_covers(
	const struct pkt_headers *newer, const struct pkt_headers *older) {
	bool more = newer->ack != older->ack;

	if (!ack_filter_alike(newer, older) || newer->timestamps != older->timestamps
		|| !ack_filter_below(older->ack, newer->ack)
		|| !ack_filter_below(older->tsval, newer->tsval) || ack_filter_dsack(older))
		return false;
	for (uint32_t i = 0; i < older->sacks; i++) {
		if (!ack_filter_below(older->sack[i].end, newer->ack)
			&& !ack_filter_within(older->sack[i], newer))
			return false;
	}
	for (uint32_t i = 0; !more && i < newer->sacks; i++)
		more = !ack_filter_within(newer->sack[i], older);
	return more;
}
