// SPDX-License-Identifier: BSD-3-Clause
// A frame on its way to its TCP segment: one function per layer, which takes its header and says
// which layer follows, or what became of the frame. decode.c has IP, TCP and UDP, link.c what is
// below IP, tunnel.c what IP is carried in.
#pragma once
#include "tools/pcap/decode.h"

#include <stdbool.h>

// What is left of a frame: captured bytes from p on, and how many there were on the wire (not
// fewer).
struct rest {
	const uint8_t *p;
	uint32_t captured, length;
};

struct walk {
	struct rest r;
	struct packet *p;
	struct endpoint src, dst; // of the last IP header
	bool length_lost; // the frame's length is that of what was captured: it may have been cut
	bool outer_ce; // an IP header further out is marked
	bool in_udp; // `outer` is the UDP datagram that what is read now was in
	struct packet outer;
};

// The next layer; NULL: `end` says what became of the frame.
struct layer {
	struct layer (*read)(struct walk *w);
	enum decode end;
};
typedef struct layer layer_fn(struct walk *w);

static inline struct layer layer_next(layer_fn *read) {
	return (struct layer){read, DECODE_COUNT};
}

static inline struct layer layer_end(enum decode end) {
	return (struct layer){NULL, end};
}

static inline bool take(struct rest *r, uint32_t n) {
	if (r->captured < n)
		return false;
	r->p += n;
	r->captured -= n;
	r->length -= n;
	return true;
}

// A header of n bytes is not whole: it was not captured, or never there.
static inline struct layer layer_short(const struct walk *w, uint32_t n) {
	return layer_end(w->r.length < n ? DECODE_MALFORMED : DECODE_TRUNCATED);
}

// Behind n bytes of a header is another layer.
static inline struct layer layer_behind(struct walk *w, uint32_t n, layer_fn *read) {
	return take(&w->r, n) ? layer_next(read) : layer_short(w, n);
}

// decode.c
layer_fn layer_ip, layer_ipv4, layer_ipv6; // layer_ip: by its first four bits
layer_fn layer_tcp, layer_udp;
// link.c
layer_fn layer_ethernet, layer_mpls, layer_ppp;
layer_fn *layer_of_link(uint16_t link_type); // NULL: it is not read
// What follows a header that ends n bytes on and has an Ethernet type.
struct layer layer_of_type(struct walk *w, uint32_t n, uint16_t type);
// tunnel.c
layer_fn layer_gre;
layer_fn *layer_of_protocol(uint8_t protocol); // of IP; NULL: nothing that is read is in it
layer_fn *layer_of_port(uint16_t port); // of UDP
// A UDP payload that nobody can read: a tunnel whose bytes are encrypted; TUNNEL_NONE: none that is
// known.
enum tunnel tunnel_encrypted(const struct rest *payload, uint16_t src_port, uint16_t dst_port);
