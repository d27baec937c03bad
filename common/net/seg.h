// SPDX-License-Identifier: BSD-3-Clause
// A decoded TCP segment, or a UDP datagram: what the transport sends and receives. wire.h turns it
// into bytes.
#pragma once
#include "common/base/pkt.h"

#include <assert.h>
#include <stdbool.h>
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
#define SEG_OPT_ACCECN0 0x10 // AccECN (RFC 9768 section 3.2.3): first field E0B
#define SEG_OPT_ACCECN1 0x20 // the same with E1B first
#define SEG_OPT_UDP 0x40 // not an option: a datagram; only seq, ack and len are used (wire_udp.c)
#define SEG_OPT_AE 0x80 // not an option: the flag AE, which has no room in `flags`

// Fields of the AccECN option: bytes of payload that arrived with ECT(0), CE, ECT(1), modulo 2^24.
// CE is the second on the wire in either order.
#define SEG_ECN_E0B 0
#define SEG_ECN_CEB 1
#define SEG_ECN_E1B 2
#define SEG_ECN_FIELDS 3

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
	uint32_t ecn_bytes[SEG_ECN_FIELDS]; // with one of SEG_OPT_ACCECN
	uint16_t mss;
	uint8_t ecn_fields; // how many of them are there, in the option's order
};
static_assert(offsetof(struct seg, sack) == 24, "the common part fills struct pkt");
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "seg_header packs");

// Everything but SACK blocks, byte counts and mss, which are read only if sack_count or options say
// so. It is written and copied in the same three words: a load that spans several stores waits
// until they have left the store buffer, and a segment is copied as soon as it is made.
typedef uint64_t __attribute__((may_alias)) seg_word;
static_assert(offsetof(struct seg, sack) == 3 * sizeof(seg_word), "the common part");
static_assert(offsetof(struct seg, flags) == 20 && offsetof(struct seg, options) == 21
		&& offsetof(struct seg, sack_count) == 22,
	"where seg_is_large looks for them");

static inline void seg_header(struct seg *s, uint32_t seq, uint32_t ack, uint16_t len,
	uint16_t window, uint8_t flags, bool timestamps, uint32_t tsval, uint32_t tsecr) {
	seg_word *w = (seg_word *)(void *)s;

	w[0] = (uint64_t)ack << 32 | seq;
	w[1] = timestamps ? (uint64_t)tsecr << 32 | tsval : 0;
	w[2] = (timestamps ? (uint64_t)SEG_OPT_TS << 40 : 0) | (uint64_t)flags << 32
		| (uint64_t)window << 16 | len;
}

static inline void seg_copy_header(struct seg *to, const struct seg *from) {
	const seg_word *w = (const seg_word *)(const void *)from;
	seg_word *v = (seg_word *)(void *)to;

	// Atomic: not to be merged into longer ones. Not a loop: gcc leaves one of atomic loads as
	// it is.
	v[0] = __atomic_load_n(&w[0], __ATOMIC_RELAXED);
	v[1] = __atomic_load_n(&w[1], __ATOMIC_RELAXED);
	v[2] = __atomic_load_n(&w[2], __ATOMIC_RELAXED);
}

#define SEG_OPT_ACCECN (SEG_OPT_ACCECN0 | SEG_OPT_ACCECN1)

// Whether it has more than the common part.
static inline bool seg_is_large(const struct seg *s) {
	const seg_word *w = (const seg_word *)(const void *)s;

	// sack_count, options and flags are bytes of one word.
	return (w[2]
		       & ((uint64_t)0xff << 48 | (uint64_t)SEG_OPT_ACCECN << 40
			       | (uint64_t)SEG_SYN << 32))
		!= 0;
}

// Whether it has timestamps and no other option, and is no SYN.
static inline bool seg_is_usual(const struct seg *s) {
	const seg_word *w = (const seg_word *)(const void *)s;

	return (w[2] & ((uint64_t)UINT16_MAX << 40 | (uint64_t)SEG_SYN << 32))
		== (uint64_t)SEG_OPT_TS << 40;
}

// Whether it is an ACK with timestamps and nothing else: the third word but for window and wscale.
static inline bool seg_is_bare_ack(const struct seg *s) {
	const seg_word *w = (const seg_word *)(const void *)s;

	return (w[2] & ~((uint64_t)0xff << 56 | (uint64_t)UINT16_MAX << 16))
		== ((uint64_t)SEG_OPT_TS << 40 | (uint64_t)SEG_ACK << 32);
}

// Whether it asks for a new connection. With a FIN it does not, as in Linux.
static inline bool seg_opens(const struct seg *s) {
	return (s->flags & (SEG_SYN | SEG_ACK | SEG_RST | SEG_FIN)) == SEG_SYN;
}

// Whether the AccECN option counts bytes with CE.
static inline bool seg_has_ceb(const struct seg *s) {
	return (s->options & SEG_OPT_ACCECN) != 0 && s->ecn_fields > SEG_ECN_CEB;
}

// The flags AE, CWR and ECE as a number of three bits (RFC 9768: ACE).
static inline uint8_t seg_ace(const struct seg *s) {
	return (uint8_t)((s->options & SEG_OPT_AE ? 4 : 0) | (s->flags & SEG_CWR ? 2 : 0)
		| (s->flags & SEG_ECE ? 1 : 0));
}

static inline void seg_set_ace(struct seg *s, uint32_t ace) {
	s->options = (uint8_t)((s->options & ~SEG_OPT_AE) | (ace & 4 ? SEG_OPT_AE : 0));
	s->flags = (uint8_t)((s->flags & ~(SEG_CWR | SEG_ECE)) | (ace & 2 ? SEG_CWR : 0)
		| (ace & 1 ? SEG_ECE : 0));
}

// Sequence number arithmetic modulo 2^32 (RFC 9293 section 3.4).
static inline int32_t seq_diff(uint32_t a, uint32_t b) {
	return (int32_t)(a - b);
}

// The reset that answers a segment of no connection (RFC 9293 section 3.10.7.1). False: none does.
static inline bool seg_reset(struct seg *rst, const struct seg *s) {
	if ((s->flags & SEG_RST) != 0)
		return false;
	*rst = (struct seg){.flags = SEG_RST};
	if ((s->flags & SEG_ACK) != 0) {
		rst->seq = s->ack;
	} else {
		rst->flags |= SEG_ACK;
		rst->ack =
			s->seq + s->len + ((s->flags & SEG_SYN) != 0) + ((s->flags & SEG_FIN) != 0);
	}
	return true;
}

// The virtual-time packet: struct pkt followed by the rest of the segment.
#define SIM_PKT_SIZE 128
static_assert(offsetof(struct pkt, user) + sizeof(struct seg) <= SIM_PKT_SIZE, "fits two lines");

static inline const struct seg *pkt_seg_const(const struct pkt *p) {
	return (const struct seg *)(const void *)((const char *)p + offsetof(struct pkt, user));
}

static inline struct seg *pkt_seg(struct pkt *p) {
	return (struct seg *)(void *)((char *)p + offsetof(struct pkt, user));
}
