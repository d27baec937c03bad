// SPDX-License-Identifier: BSD-3-Clause
// A decoded TCP segment: what the transport sends and receives. wire.h turns it into bytes.
#pragma once
#include "pkt.h"

#include <assert.h>
#include <stdint.h>

#define SEG_FIN 0x01
#define SEG_SYN 0x02
#define SEG_RST 0x04
#define SEG_PSH 0x08
#define SEG_ACK 0x10
#define SEG_ECE 0x40
#define SEG_CWR 0x80

// Bits of seg.options: which options are present.
#define SEG_OPT_TS 0x01
#define SEG_OPT_MSS 0x02
#define SEG_OPT_WSCALE 0x04
#define SEG_OPT_SACK_OK 0x08

#define SEG_SACK_MAX 4 // three with timestamps

struct seg_sack {
	uint32_t start, end; // sequence numbers, end exclusive
};

struct seg {
	uint32_t seq, ack;
	uint32_t tsval, tsecr;
	uint16_t len; // payload bytes
	uint16_t window; // as on the wire, before scaling
	uint8_t flags;
	uint8_t options;
	uint8_t sack_count;
	uint8_t wscale;
	// The first 24 bytes share the packet's cache line in virtual time; the rest is read only
	// when sack_count or options say so.
	struct seg_sack sack[SEG_SACK_MAX];
	uint16_t mss;
};
static_assert(offsetof(struct seg, sack) == 24, "the common part fills struct pkt");

// Everything but SACK blocks and mss, which nobody reads before sack_count or options say so.
static inline void seg_header(struct seg *s, uint32_t seq, uint32_t ack, uint16_t window) {
	s->seq = seq;
	s->ack = ack;
	s->tsval = s->tsecr = 0;
	s->len = 0;
	s->window = window;
	s->flags = SEG_ACK;
	s->options = s->sack_count = s->wscale = 0;
}

static inline void seg_timestamps(struct seg *s, uint32_t tsval, uint32_t tsecr) {
	s->options = SEG_OPT_TS;
	s->tsval = tsval;
	s->tsecr = tsecr;
}

// Sequence number arithmetic modulo 2^32 (RFC 9293 section 3.4).
static inline int32_t seq_diff(uint32_t a, uint32_t b) {
	return (int32_t)(a - b);
}

// The virtual-time packet: struct pkt followed by the rest of the segment.
#define SIM_PKT_SIZE 128
static_assert(offsetof(struct pkt, user) + sizeof(struct seg) <= SIM_PKT_SIZE, "fits two lines");

static inline struct seg *pkt_seg(struct pkt *p) {
	return (struct seg *)(void *)((char *)p + offsetof(struct pkt, user));
}
