// SPDX-License-Identifier: BSD-3-Clause
// Packets that are in a capture more than once. What a packet is told by: addresses, ports, all of
// its TCP header and its IP identification; TTL, ECN bits and checksums may differ.
//
//	at another point   the same packet on its way: before and behind a switch, at a bridge and
//	                   its port, at a bond and its card, sent and received on a loopback. Its
//	                   data count where it was seen first, which is nearest to its sender, and
//	                   its ACK where it was seen last (track.c)
//	at the same point  within COPIES_SAME_NS: a mirror port that shows both directions, `-i any`
//	                   without the interfaces' numbers, or the network doubled it. Without an IP
//	                   identification only what takes up sequence numbers may be told from the
//	                   next packet, and the tracker knows by when (alike_ns)
#pragma once
#include "tools/pcap/decode.h"

#define COPIES_POINTS_NS (10 * NS_PER_S) // on its way, queues included
#define COPIES_SAME_NS (10 * NS_PER_MS)
#define COPIES_SYN_NS NS_PER_MS // no host sends one again so soon

enum copy {
	COPY_NONE,
	COPY_SAME, // at the same point
	COPY_OTHER, // the first at another point
	COPY_REPEATED, // one of more there, or at a point where what a switch drops is captured
};

struct copies {
	struct copies_seen *seen;
	uint32_t mask; // of sets
	uint32_t points; // highest point so far, plus one
};

int copies_init(struct copies *c); // 0 or -ENOMEM
void copies_fini(struct copies *c);
// Sets p->copy, p->first_ns and p->alike_ns, of packets in the order of time.
void copies_find(struct copies *c, struct packet *packets, uint32_t n);
