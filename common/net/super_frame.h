// SPDX-License-Identifier: BSD-3-Clause
// A kernel's super-frame: packets of one flow that a host hands over as one, with one header (TSO
// and USO; GRO when it receives). Cut into the packets that would be on the wire, and packets
// joined to such a frame again.
//
// A host that leaves checksums to its card writes the sum of the pseudo header alone (a partial
// sum, WIRE_L4_PARTIAL). The kernel believes a partial sum: so a packet whose bytes were changed
// needs its whole sum first.
//
// Cut as the kernel does it: IPv4's identification counts up; PSH and FIN are the last packet's
// alone; CWR is the first one's if the host says so, else each one's (AccECN, RFC 9768).
//
// Joined are packets with a good sum that follow each other in their flow, with the same headers
// but for what counts up: no other ECN bits, TTL, acknowledgement, window, flags or options. All
// but the last are equally long, and PSH ends a frame. IPv4 without DF, fragments, VLAN tags and
// packets of other protocols are not joined.
#pragma once
#include "common/net/wire.h"

#define SUPER_FRAME_MAX 65535u // bytes of a joined IP packet
#define SUPER_FRAME_HEADER (WIRE_ETH + WIRE_IPV6 + WIRE_TCP + 40u) // of a joined frame, at most

// A frame with packets of up to `size` bytes of payload.
struct super_frame {
	const uint8_t *bytes;
	uint32_t len, size;
	uint32_t ip, l4, header; // in bytes from its start; the header's end
	bool tcp, ipv6, cwr_first;
};

// Reads a frame of TCP or UDP; without IPv6's option for jumbograms, which is taken out of `bytes`.
// False: it is none that can be cut.
bool super_frame_read(struct super_frame *f, uint8_t *bytes, uint32_t len, uint32_t size);
// Writes the packet whose payload begins `offset` bytes into the frame's, with a partial sum.
// Returns its length; `packet` has room for header and size.
uint32_t super_frame_cut(const struct super_frame *f, uint32_t offset, uint8_t *packet);

// Where the L4 checksum of a frame is, in bytes from its transport header at *l4; 0: it has none.
uint32_t super_frame_sum_at(const uint8_t *frame, size_t len, uint32_t *l4);
// Writes the whole checksum of a frame of TCP or UDP that has a partial one.
void super_frame_fill_sum(uint8_t *frame, size_t len);
// The same of any Internet checksum, of what is from `l4` to the packet's end, as of a packet in a
// tunnel.
void super_frame_fill_sum_at(uint8_t *frame, size_t len, uint32_t l4, uint32_t at);

// A packet on its way out.
struct joint {
	const uint8_t *frame;
	uint32_t l4; // its transport header, from its start; 0: unknown
	uint32_t header, payload; // where the headers end, and what follows
	uint32_t seq;
	bool tcp, ipv6, joins; // others may be joined to it
};

// Reads a packet. `partial`: it has a partial sum; otherwise the sum is verified. `joins` says
// whether it may be joined; if not, only its flow matters.
void joint_read(struct joint *j, const uint8_t *frame, size_t len, bool partial);
// Whether both are of one flow, so that their order matters.
bool joint_same_flow(const struct joint *a, const struct joint *b);
// Whether `next` goes behind `last`, in a frame that begins with `first` and has so many bytes of
// payload.
bool joint_follows(const struct joint *first, const struct joint *last, const struct joint *next,
	uint32_t payload);
// Writes the joined frame's header; returns its length, first->header.
uint32_t joint_header(const struct joint *first, const struct joint *last, uint32_t payload,
	uint8_t header[SUPER_FRAME_HEADER]);
