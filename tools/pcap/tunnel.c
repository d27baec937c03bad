// SPDX-License-Identifier: BSD-3-Clause
// What IP is carried in: tunnels by their IP protocol and by their UDP port (IANA's registries). A
// UDP datagram with such a port whose payload makes no sense as a tunnel's is a datagram like any
// other.
#include "common/net/wire_ip.h"
#include "tools/pcap/decode_layer.h"

#include <string.h>

#define GRE_CHECKSUM 0x8000
#define GRE_ROUTING 0x4000
#define GRE_KEY 0x2000
#define GRE_SEQUENCE 0x1000
#define GRE_ACK 0x0080 // of version 1, PPTP
#define TYPE_PPP_IN_GRE 0x880b
#define TYPE_ERSPAN_2 0x88be
#define TYPE_ERSPAN_3 0x22eb
#define ERSPAN_3_PLATFORM 1 // in its last byte: eight more bytes follow
#define GTP_DATA 255
#define PORT_OPENVPN 1194
#define PORT_ESP 4500

static struct layer read_erspan_2(struct walk *w) {
	w->p->tunnel = TUNNEL_ERSPAN;
	return layer_behind(w, 8, layer_ethernet);
}

static struct layer read_erspan_3(struct walk *w) {
	if (w->r.captured < 12)
		return layer_short(w, 12);
	w->p->tunnel = TUNNEL_ERSPAN;
	return layer_behind(w, (w->r.p[11] & ERSPAN_3_PLATFORM) != 0 ? 20 : 12, layer_ethernet);
}

// RFC 2784, RFC 2890, and RFC 2637 (PPTP).
struct layer layer_gre(struct walk *w) {
	if (w->r.captured < 4)
		return layer_short(w, 4);
	uint16_t flags = wire_get16(w->r.p), type = wire_get16(w->r.p + 2);
	bool pptp = (flags & 7) == 1;
	uint32_t header = 4u + (!pptp && (flags & GRE_CHECKSUM) != 0 ? 4 : 0)
		+ ((flags & GRE_KEY) != 0 ? 4 : 0) + ((flags & GRE_SEQUENCE) != 0 ? 4 : 0)
		+ (pptp && (flags & GRE_ACK) != 0 ? 4 : 0);

	w->p->tunnel = TUNNEL_GRE;
	if ((flags & 7) > 1 || (flags & GRE_ROUTING) != 0)
		return layer_end(DECODE_NOT_TCP);
	switch (type) {
	case TYPE_PPP_IN_GRE:
		return layer_behind(w, header, layer_ppp);
	case TYPE_ERSPAN_2: // without a sequence number: type I, without a header
		return layer_behind(
			w, header, (flags & GRE_SEQUENCE) != 0 ? read_erspan_2 : layer_ethernet);
	case TYPE_ERSPAN_3:
		return layer_behind(w, header, read_erspan_3);
	default:
		return layer_of_type(w, header, type);
	}
}

static struct layer read_ip_in_ip(struct walk *w) {
	w->p->tunnel = TUNNEL_IP_IN_IP;
	return layer_next(layer_ip);
}

// RFC 3378.
static struct layer read_etherip(struct walk *w) {
	w->p->tunnel = TUNNEL_ETHERIP;
	return layer_behind(w, 2, layer_ethernet);
}

// RFC 8986: Ethernet in IPv6.
static struct layer read_ethernet_in_ip(struct walk *w) {
	w->p->tunnel = TUNNEL_ETHERIP;
	return layer_next(layer_ethernet);
}

// RFC 4023.
static struct layer read_mpls_in_ip(struct walk *w) {
	w->p->tunnel = TUNNEL_MPLS_IN_IP;
	return layer_next(layer_mpls);
}

static struct layer read_esp(struct walk *w) {
	w->p->tunnel = TUNNEL_ESP;
	return layer_end(DECODE_ENCRYPTED);
}

// RFC 4302, in IPv4: in IPv6 it is an extension header.
static struct layer read_authentication(struct walk *w) {
	if (w->r.captured < 12)
		return layer_short(w, 12);
	layer_fn *next = layer_of_protocol(w->r.p[0]);

	return next == NULL ? layer_end(DECODE_NOT_TCP)
			    : layer_behind(w, (w->r.p[1] + 2u) * 4, next);
}

// RFC 7348; with other flags (draft-ietf-nvo3-vxlan-gpe) the fourth byte says what follows.
static struct layer read_vxlan(struct walk *w) {
	if (w->r.captured < 8)
		return layer_short(w, 8);
	bool other = (w->r.p[0] & 0x04) != 0;

	if ((w->r.p[0] & 0x08) == 0)
		return layer_end(DECODE_MALFORMED);
	w->p->tunnel = TUNNEL_VXLAN;
	if (other && (w->r.p[3] == 1 || w->r.p[3] == 2))
		return layer_behind(w, 8, layer_ip);
	return other && w->r.p[3] != 3 ? layer_end(DECODE_NOT_IP)
				       : layer_behind(w, 8, layer_ethernet);
}

// RFC 8926.
static struct layer read_geneve(struct walk *w) {
	if (w->r.captured < 8)
		return layer_short(w, 8);
	if (w->r.p[0] >> 6 != 0)
		return layer_end(DECODE_MALFORMED);
	w->p->tunnel = TUNNEL_GENEVE;
	return layer_of_type(w, 8 + (w->r.p[0] & 63) * 4u, wire_get16(w->r.p + 2));
}

// 3GPP TS 29.281: extension headers have their length, in words, first and the next one's type
// last.
static struct layer read_gtp(struct walk *w) {
	const uint8_t *p = w->r.p;
	uint32_t header = 8;

	if (w->r.captured < 12)
		return layer_short(w, 12);
	if (p[0] >> 4 != 3 || p[1] != GTP_DATA) // version 1, of users
		return layer_end(DECODE_MALFORMED);
	if ((p[0] & 7) != 0) {
		bool more = (p[0] & 4) != 0 && p[11] != 0;

		for (header = 12; more;) {
			if (w->r.captured <= header || p[header] == 0)
				return layer_short(w, header + 1);
			header += p[header] * 4u;
			if (w->r.captured < header)
				return layer_short(w, header);
			more = p[header - 1] != 0;
		}
	}
	w->p->tunnel = TUNNEL_GTP;
	return layer_behind(w, header, layer_ip);
}

// RFC 4380: IPv6, behind an indication of origin or not.
static struct layer read_teredo(struct walk *w) {
	bool origin = w->r.captured > 8 && w->r.p[0] == 0 && w->r.p[1] == 0;

	w->p->tunnel = TUNNEL_TEREDO;
	return origin ? layer_behind(w, 8, layer_ipv6) : layer_next(layer_ipv6);
}

layer_fn *layer_of_protocol(uint8_t protocol) {
	static const struct {
		uint8_t protocol;
		layer_fn *read;
	} protocols[] = {
		{WIRE_PROTO_TCP, layer_tcp},
		{WIRE_PROTO_UDP, layer_udp},
		{4, read_ip_in_ip},
		{41, read_ip_in_ip},
		{47, layer_gre},
		{50, read_esp},
		{51, read_authentication},
		{94, read_ip_in_ip},
		{97, read_etherip},
		{137, read_mpls_in_ip},
		{143, read_ethernet_in_ip},
	};

	for (size_t i = 0; i < sizeof(protocols) / sizeof(protocols[0]); i++) {
		if (protocols[i].protocol == protocol)
			return protocols[i].read;
	}
	return NULL;
}

layer_fn *layer_of_port(uint16_t port) {
	static const struct {
		uint16_t port;
		layer_fn *read;
	} ports[] = {
		{2152, read_gtp}, {3544, read_teredo}, {4754, layer_gre}, // RFC 8086
		{4789, read_vxlan}, {4790, read_vxlan}, {6081, read_geneve},
		{6635, read_mpls_in_ip}, // RFC 7510
		{8472, read_vxlan}, // what Linux had before IANA's
	};

	for (size_t i = 0; i < sizeof(ports) / sizeof(ports[0]); i++) {
		if (ports[i].port == port)
			return ports[i].read;
	}
	return NULL;
}

// Its four kinds of messages have the sizes 148, 92, 64 and 32 + 16 n, and three bytes of 0 behind
// the kind.
static bool is_wireguard(const struct rest *r) {
	static const uint32_t sizes[] = {0, 148, 92, 64};

	if (r->captured < 4 || r->p[1] != 0 || r->p[2] != 0 || r->p[3] != 0)
		return false;
	return r->p[0] >= 1 && r->p[0] <= 3
		? r->length == sizes[r->p[0]]
		: r->p[0] == 4 && r->length >= 32 && r->length % 16 == 0;
}

enum tunnel tunnel_encrypted(const struct rest *payload, uint16_t src_port, uint16_t dst_port) {
	if (is_wireguard(payload))
		return TUNNEL_WIREGUARD;
	if (src_port == PORT_OPENVPN || dst_port == PORT_OPENVPN)
		return TUNNEL_OPENVPN;
	// RFC 3948: of a key exchange the first four bytes are 0; a keep-alive is one byte.
	bool esp = (src_port == PORT_ESP || dst_port == PORT_ESP) && payload->captured >= 8
		&& wire_get32(payload->p) != 0;

	return esp ? TUNNEL_ESP : TUNNEL_NONE;
}
