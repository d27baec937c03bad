// SPDX-License-Identifier: BSD-3-Clause
// A packet as queueing code sees it: sizes and times, never bytes.
//
// With DPDK this struct is the private area of the mbuf, at a constant offset from its start. In
// virtual time it is the first part of a larger object with the decoded TCP segment. Queueing code
// uses both in the same way.
#pragma once
#include "common/base/likely.h"
#include "common/base/wheel.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Lists of values make the enums here and the names in telemetry: V(CONSTANT, number, name,
// meaning).
#define PKT_CONSTANT_(constant, number, name, meaning) constant = number,

// The two ECN bits of the IP header (RFC 3168).
#define ECN_VALUES(V)                                                                              \
	V(ECN_NOT_ECT, 0, "not_ect", "not ECN capable")                                            \
	V(ECN_ECT1, 1, "ect1", "ECN capable, low latency (RFC 9331)")                              \
	V(ECN_ECT0, 2, "ect0", "ECN capable")                                                      \
	V(ECN_CE, 3, "ce", "congestion experienced")

enum ecn { ECN_VALUES(PKT_CONSTANT_) };

// Why a packet was dropped. The names are those of telemetry and of the summary's ledger.
#define DROP_REASON_VALUES(V)                                                                      \
	V(DROP_NONE, 0, "none", "it was not")                                                      \
	V(DROP_QUEUE_FULL, 1, "queue_full", "a queue at its limit")                                \
	V(DROP_AQM, 2, "aqm", "an active queue management decision")                               \
	V(DROP_LOSS, 3, "loss", "a loss stage")                                                    \
	V(DROP_DELAY_FULL, 4, "delay_full", "a delay line at its limit")                           \
	V(DROP_NO_MBUF, 5, "no_mbuf", "live: no buffer to receive or copy into")                   \
	V(DROP_NO_ROUTE, 6, "no_route", "live: no port for the destination")                       \
	V(DROP_TX, 7, "tx", "live: the port did not take it")                                      \
	V(DROP_MALFORMED, 8, "malformed", "live: an IP header that cannot be")                     \
	V(DROP_POLICED, 9, "policed", "a policer: too few tokens")                                 \
	V(DROP_ACK_FILTER, 10, "ack_filter", "an ACK that a newer one in the queue covers")        \
	V(DROP_CUT, 11, "cut", "live: shorter than its IP header says: the port did not get all")  \
	V(DROP_CHECKSUM, 12, "checksum", "live: a wrong checksum of the IP header")                \
	V(DROP_TOO_LONG, 13, "too_long", "live: longer than a buffer")                             \
	V(DROP_MTU, 14, "mtu", "live: longer than the MTU of the interface by which it leaves")    \
	V(DROP_DRIVER, 15, "driver", "live: the port's driver took it and did not send it")        \
	V(DROP_TOO_BIG, 16, "too_big", "larger than the MTU of a stage")                           \
	V(DROP_RING, 17, "ring", "a host's card whose ring was full")

enum drop_reason { DROP_REASON_VALUES(PKT_CONSTANT_) DROP_REASONS };

// Bits of pkt.flags.
#define PKT_MARKED 0x01 // CE was set by the current queue; the link counts and clears it
#define PKT_CORRUPT 0x04 // a stage flipped a bit, which the receiver's checksum finds
// Not a packet of its flow, but what its sender is to be told: that it was too big (stage mtu).
#define PKT_TOO_BIG 0x80
#define PKT_POLL_END 0x02 // virtual time only: the last that a host's card hands over at a time
// TCP options that a stage cleared (net/clear.h), on SYNs and SYN/ACKs or on other segments.
#define PKT_CLEAR_ACCECN_SYN 0x08
#define PKT_CLEAR_ACCECN 0x10
#define PKT_CLEAR_SACK_SYN 0x20
#define PKT_CLEAR_SACK 0x40
#define PKT_CLEARED (PKT_CLEAR_ACCECN_SYN | PKT_CLEAR_ACCECN | PKT_CLEAR_SACK_SYN | PKT_CLEAR_SACK)

struct pkt {
	union {
		struct {
			struct pkt *next;
			uint64_t arrival_ns; // theoretical arrival at the current stage
			// Departure from the current stage, in stages that know it on arrival
			// (delays, edges). Live: due time of a frame that another lcore sends.
			uint64_t release_ns;
		};
		struct timer timer; // of a packet in a wheel, where arrival_ns is not kept
	};
	uint32_t flow_id;
	uint16_t size_bytes; // frame with FCS, without preamble and gap
	uint8_t ecn;
	uint8_t pool; // virtual time: the pool that it is returned to
	uint32_t id; // counts packets into the path; joins telemetry records
	uint16_t delay_class; // flow group; selects the delay
	uint8_t drop_reason;
	uint8_t flags;
	// The owner's data, which may continue beyond the struct if the object is larger: in
	// virtual time the segment (net/seg.h), in the live switch a small frame
	// (switch/live/lcore.h).
	uint8_t user[24];
};
static_assert(sizeof(struct pkt) == 64, "one cache line");
static_assert(offsetof(struct pkt, timer.expires_ns) == offsetof(struct pkt, release_ns),
	"a timer fires at the packet's departure");
static_assert(offsetof(struct pkt, user) % 8 == 0, "a segment starts here");

#define PKT_SACKS 4 // blocks of an ACK

// What headers of a packet say, for stages and disciplines that ask for it: its owner reads them
// only then. Zero where there is nothing of the kind.
struct pkt_headers {
	uint32_t seq; // TCP sequence number
	uint16_t seq_count; // sequence numbers of its payload and its FIN
	bool syn;
	uint8_t dscp; // of IP
	// Of a segment that is an ACK and nothing else: without data, of the flags only ACK and
	// those of ECN, of the options only timestamps and SACK.
	bool pure_ack;
	bool timestamps;
	uint8_t ace; // AE, CWR and ECE, a number of three bits
	uint8_t sacks;
	uint32_t ack, tsval;
	struct pkt_sack {
		uint32_t start, end; // sequence numbers, end exclusive
	} sack[PKT_SACKS];
};

// Number of packets and the sum of their sizes.
struct pkt_count {
	uint64_t pkts;
	uint64_t bytes;
};

static inline void pkt_count_add(struct pkt_count *c, uint64_t pkts, uint64_t bytes) {
	c->pkts += pkts;
	c->bytes += bytes;
}

// Singly linked FIFO; owns the packets on it.
struct pkt_list {
	struct pkt *head;
	struct pkt *tail;
	uint32_t count;
	uint64_t bytes;
};

static inline void pkt_list_push(struct pkt_list *l, struct pkt *p) {
	p->next = NULL;
	if (l->head == NULL)
		l->head = p;
	else
		l->tail->next = p;
	l->tail = p;
	l->count++;
	l->bytes += p->size_bytes;
}

static inline struct pkt *pkt_list_pop(struct pkt_list *l) {
	struct pkt *p = l->head;

	if (p == NULL)
		return NULL;
	l->head = p->next;
	if (l->head != NULL)
		prefetch_write(l->head);
	l->count--;
	l->bytes -= p->size_bytes;
	p->next = NULL;
	return p;
}

// Takes p out, whose predecessor is `before`; NULL: it is the head.
static inline void pkt_list_remove(struct pkt_list *l, struct pkt *before, struct pkt *p) {
	if (before == NULL)
		l->head = p->next;
	else
		before->next = p->next;
	if (p->next == NULL)
		l->tail = before;
	l->count--;
	l->bytes -= p->size_bytes;
	p->next = NULL;
}

// Moves all of `from` to the end of `to`.
static inline void pkt_list_join(struct pkt_list *to, struct pkt_list *from) {
	if (from->head == NULL)
		return;
	if (to->head == NULL)
		to->head = from->head;
	else
		to->tail->next = from->head;
	to->tail = from->tail;
	to->count += from->count;
	to->bytes += from->bytes;
	*from = (struct pkt_list){0};
}

// Who has the memory and the bytes of packets. Paths, stages and disciplines ask it for what they
// cannot do with a struct pkt alone. Each program has one; any function may be NULL.
struct pkt_owner {
	// A packet like p, on the same way; NULL: there is no memory for one.
	struct pkt *(*copy)(void *ctx, const struct pkt *p);
	// Takes back packets that were dropped. NULL: their memory is not managed.
	void (*free)(void *ctx, struct pkt_list *drops);
	// A packet with PKT_TOO_BIG, on the way of p: the message to p's sender that its packet is
	// larger than `mtu` (ICMP, ICMPv6). NULL: there is no memory for one, or p gets no answer.
	struct pkt *(*too_big)(void *ctx, const struct pkt *p, uint32_t mtu);
	// Numbers of the packet's hosts, of 16 bits: the source's in the upper half, the
	// destination's in the lower one. NULL: its flow group stands for both.
	uint32_t (*hosts)(void *ctx, const struct pkt *p);
	struct pkt_headers (*headers)(void *ctx, const struct pkt *p); // NULL: there are none
	void *ctx;
};

// `o` may be NULL.
static inline uint32_t pkt_hosts(const struct pkt_owner *o, const struct pkt *p) {
	return o != NULL && o->hosts != NULL ? o->hosts(o->ctx, p)
					     : p->delay_class * UINT32_C(0x10001);
}

static inline struct pkt_headers pkt_headers(const struct pkt_owner *o, const struct pkt *p) {
	return o != NULL && o->headers != NULL ? o->headers(o->ctx, p) : (struct pkt_headers){0};
}

// Puts p on the caller's list of drops with its reason.
static inline void pkt_drop(struct pkt_list *drops, struct pkt *p, enum drop_reason why) {
	p->drop_reason = (uint8_t)why;
	pkt_list_push(drops, p);
}

// The telemetry and ledger name of a drop reason, e.g. "queue_full".
const char *drop_reason_name(enum drop_reason why);
