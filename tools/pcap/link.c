// SPDX-License-Identifier: BSD-3-Clause
// What is below IP: the link types of captures (www.tcpdump.org/linktypes.html), Ethernet types,
// LLC, PPP, 802.11.
#include "common/net/wire_ip.h"
#include "tools/pcap/decode_layer.h"

#include <string.h>

#define TYPE_LENGTH_MAX 1500u // an Ethernet type up to here is a length, and LLC follows
#define TYPE_LLC 4u // of a cooked capture: LLC
#define TYPE_QINQ_OLD 0x9100
#define TYPE_MPLS 0x8847
#define TYPE_MPLS_MULTICAST 0x8848
#define TYPE_PPPOE 0x8864
#define TYPE_BRIDGED 0x6558 // Ethernet in GRE, Geneve and others
#define TYPE_PBB 0x88e7 // IEEE 802.1ah
#define TYPE_MACSEC 0x88e5
#define TYPE_NSH 0x894f
#define MACSEC_ENCRYPTED 0x0c
#define MACSEC_SCI 0x20
#define SLL_HEADER 16u
#define SLL2_HEADER 20u
#define ARPHRD_RADIOTAP 803
#define ARPHRD_NETLINK 824
#define IPOIB_ADDRESS 40u // before the header of RFC 4391 section 6
#define NFLOG_PAYLOAD 9u

static inline uint16_t get16_le(const uint8_t *p) {
	return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t get32_le(const uint8_t *p) {
	return get16_le(p) | (uint32_t)get16_le(p + 2) << 16;
}

// RFC 8300: the payload's kind is in the fourth byte, the length of the header, in words, in the
// second.
static struct layer read_nsh(struct walk *w) {
	if (w->r.captured < 8)
		return layer_short(w, 8);
	uint32_t header = (w->r.p[1] & 63) * 4u;
	layer_fn *const kinds[] = {NULL, layer_ipv4, layer_ipv6, layer_ethernet};
	layer_fn *next = w->r.p[3] < 4 ? kinds[w->r.p[3]] : NULL;

	return header < 8      ? layer_end(DECODE_MALFORMED)
		: next == NULL ? layer_end(DECODE_NOT_IP)
			       : layer_behind(w, header, next);
}

// IEEE 802.1AE: what is only authenticated can be read.
static struct layer read_macsec(struct walk *w) {
	if (w->r.captured < 6)
		return layer_short(w, 6);
	uint32_t header = (w->r.p[0] & MACSEC_SCI) != 0 ? 14 : 6;

	w->p->tunnel = TUNNEL_MACSEC;
	if ((w->r.p[0] & MACSEC_ENCRYPTED) != 0)
		return layer_end(DECODE_ENCRYPTED);
	if (w->r.captured < header + 2)
		return layer_short(w, header + 2);
	return layer_of_type(w, header + 2, wire_get16(w->r.p + header));
}

static struct layer read_vlan(struct walk *w) {
	if (w->r.captured < 4)
		return layer_short(w, 4);
	return layer_of_type(w, 4, wire_get16(w->r.p + 2));
}

static struct layer read_pppoe(struct walk *w) {
	return layer_behind(w, 6, layer_ppp);
}

static struct layer read_pbb(struct walk *w) {
	return layer_behind(w, 4, layer_ethernet);
}

// IEEE 802.2, and SNAP: an organisation and an Ethernet type.
static struct layer read_llc(struct walk *w) {
	const uint8_t *p = w->r.p;

	if (w->r.captured < 8)
		return layer_short(w, 8);
	if (p[0] == 0x06 && p[1] == 0x06) // IP itself
		return layer_behind(w, 3, layer_ip);
	if (p[0] != 0xaa || p[1] != 0xaa || p[2] != 3)
		return layer_end(DECODE_NOT_IP);
	if (p[3] == 0 && p[4] == 0x80 && p[5] == 0xc2) // bridged (RFC 2684)
		return layer_behind(w, wire_get16(p + 6) == 1 ? 10 : 8, layer_ethernet);
	return layer_of_type(w, 8, wire_get16(p + 6));
}

struct layer layer_of_type(struct walk *w, uint32_t n, uint16_t type) {
	static const struct {
		uint16_t type;
		layer_fn *read;
	} types[] = {
		{WIRE_ETHERTYPE_IPV4, layer_ipv4},
		{WIRE_ETHERTYPE_IPV6, layer_ipv6},
		{WIRE_ETHERTYPE_VLAN, read_vlan},
		{WIRE_ETHERTYPE_QINQ, read_vlan},
		{TYPE_QINQ_OLD, read_vlan},
		{TYPE_MPLS, layer_mpls},
		{TYPE_MPLS_MULTICAST, layer_mpls},
		{TYPE_PPPOE, read_pppoe},
		{TYPE_BRIDGED, layer_ethernet},
		{TYPE_PBB, read_pbb},
		{TYPE_MACSEC, read_macsec},
		{TYPE_NSH, read_nsh},
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (types[i].type == type)
			return layer_behind(w, n, types[i].read);
	}
	return type <= TYPE_LENGTH_MAX ? layer_behind(w, n, read_llc) : layer_end(DECODE_NOT_IP);
}

struct layer layer_ethernet(struct walk *w) {
	if (w->r.captured < WIRE_ETH)
		return layer_short(w, WIRE_ETH);
	return layer_of_type(w, WIRE_ETH, wire_get16(w->r.p + 12));
}

// RFC 3032. Behind the last label is IP, or (RFC 4448) Ethernet, with a control word whose first
// four bits are 0.
struct layer layer_mpls(struct walk *w) {
	if (w->r.captured < 5)
		return layer_short(w, 5);
	bool last = (w->r.p[2] & 1) != 0;
	uint8_t version = w->r.p[4] >> 4;

	if (!last)
		return layer_behind(w, 4, layer_mpls);
	return version == 4 || version == 6 ? layer_behind(w, 4, layer_ip)
					    : layer_behind(w, version == 0 ? 8 : 4, layer_ethernet);
}

// RFC 1661, 1662: address and control, which may be left out, and a protocol, whose first byte of 0
// may be.
struct layer layer_ppp(struct walk *w) {
	if (w->r.captured < 4)
		return layer_short(w, 4);
	uint32_t at = w->r.p[0] == 0xff && w->r.p[1] == 3 ? 2 : 0;
	uint32_t size = (w->r.p[at] & 1) != 0 ? 1 : 2;
	uint16_t protocol = size == 1 ? w->r.p[at] : wire_get16(w->r.p + at);
	layer_fn *next = protocol == 0x21 ? layer_ipv4
		: protocol == 0x57	  ? layer_ipv6
		: protocol == 0x281	  ? layer_mpls
		: protocol == 0x31	  ? layer_ethernet // RFC 3518, but for its two bytes
					  : NULL;

	if (next == NULL)
		return layer_end(DECODE_NOT_IP);
	return layer_behind(w, at + size + (protocol == 0x31 ? 2 : 0), next);
}

static struct layer read_c_hdlc(struct walk *w) {
	if (w->r.captured < 4)
		return layer_short(w, 4);
	return layer_of_type(w, 4, wire_get16(w->r.p + 2));
}

static struct layer read_ppp_hdlc(struct walk *w) {
	bool cisco = w->r.captured > 0 && (w->r.p[0] == 0x0f || w->r.p[0] == 0x8f);

	return layer_next(cisco ? read_c_hdlc : layer_ppp);
}

// pppd's: the first byte is the direction, in place of the address.
static struct layer read_pppd(struct walk *w) {
	bool head = w->r.captured > 1 && w->r.p[0] <= 1 && w->r.p[1] == 3;

	return head ? layer_behind(w, 2, layer_ppp) : layer_next(layer_ppp);
}

// RFC 2427, with an address of two bytes.
static struct layer read_frame_relay(struct walk *w) {
	if (w->r.captured < 4)
		return layer_short(w, 4);
	uint32_t at = w->r.p[3] == 0 ? 4 : 3; // a byte to pad may stand before the protocol

	if (w->r.captured <= at)
		return layer_short(w, at + 1);
	switch (w->r.p[at]) {
	case 0xcc:
		return layer_behind(w, at + 1, layer_ipv4);
	case 0x8e:
		return layer_behind(w, at + 1, layer_ipv6);
	case 0x80:
		if (w->r.captured < at + 6)
			return layer_short(w, at + 6);
		return layer_of_type(w, at + 6, wire_get16(w->r.p + at + 4));
	default:
		return layer_end(DECODE_NOT_IP);
	}
}

// A frame of data: header, with a fourth address between access points, QoS and HT control, then
// LLC.
static struct layer read_wifi_padded(struct walk *w, bool padded) {
	const uint8_t *p = w->r.p;

	if (w->r.captured < 2)
		return layer_short(w, 2);
	bool qos = (p[0] & 0x80) != 0;
	uint32_t header = 24u + ((p[1] & 3) == 3 ? 6 : 0);

	if ((p[0] & 0x0c) != 0x08 || (p[0] & 0x40) != 0) // other than data, or none
		return layer_end(DECODE_NOT_IP);
	if (qos && w->r.captured < header + 2)
		return layer_short(w, header + 2);
	bool aggregate = qos && (p[header] & 0x80) != 0;
	header += qos ? ((p[1] & 0x80) != 0 ? 6u : 2u) : 0;
	if (padded)
		header = (header + 3) & ~3u;
	if ((p[1] & 0x40) != 0) {
		w->p->tunnel = TUNNEL_WIFI;
		return layer_end(DECODE_ENCRYPTED);
	}
	// Of an aggregate the first frame, behind two addresses and its length.
	return layer_behind(w, header + (aggregate ? 14 : 0), read_llc);
}

static struct layer read_wifi(struct walk *w) {
	return read_wifi_padded(w, false);
}

static struct layer read_wifi_aligned(struct walk *w) {
	return read_wifi_padded(w, true);
}

// www.radiotap.org: bit maps, then the fields; the second one has flags.
static struct layer read_radiotap(struct walk *w) {
	const uint8_t *p = w->r.p;

	if (w->r.captured < 8)
		return layer_short(w, 8);
	uint32_t header = get16_le(p + 2), present = get32_le(p + 4), at = 8;

	if (header < 8)
		return layer_end(DECODE_MALFORMED);
	if (w->r.captured < header)
		return layer_short(w, header);
	for (uint32_t more = present; (more & 1u << 31) != 0 && at + 4 <= header; at += 4)
		more = get32_le(p + at);
	if ((present & 1) != 0) // a time stamp, aligned to its size
		at = ((at + 7) & ~7u) + 8;
	uint8_t flags = (present & 2) != 0 && at < header ? p[at] : 0;
	if ((flags & 0x40) != 0) // its checksum is wrong
		return layer_end(DECODE_MALFORMED);
	return layer_behind(w, header, (flags & 0x20) != 0 ? read_wifi_aligned : read_wifi);
}

// Both begin with their length: Prism's behind a number, AVS's too, but in network order.
static struct layer read_prism(struct walk *w) {
	if (w->r.captured < 8)
		return layer_short(w, 8);
	bool avs = wire_get32(w->r.p) >> 16 == 0x8021;
	uint32_t header = avs ? wire_get32(w->r.p + 4) : get32_le(w->r.p + 4);

	return header < 8 ? layer_end(DECODE_MALFORMED) : layer_behind(w, header, read_wifi);
}

// Headers that begin with their length and say which link type follows.
static struct layer inner_link(struct walk *w, uint32_t header, uint32_t type) {
	layer_fn *next = type <= UINT16_MAX ? layer_of_link((uint16_t)type) : NULL;

	return header < 8      ? layer_end(DECODE_MALFORMED)
		: next == NULL ? layer_end(DECODE_NOT_IP)
			       : layer_behind(w, header, next);
}

static struct layer read_ppi(struct walk *w) {
	if (w->r.captured < 8)
		return layer_short(w, 8);
	return inner_link(w, get16_le(w->r.p + 2), get32_le(w->r.p + 4));
}

static struct layer read_pktap(struct walk *w) {
	if (w->r.captured < 12)
		return layer_short(w, 12);
	return inner_link(w, get32_le(w->r.p), get32_le(w->r.p + 8));
}

static struct layer read_pflog(struct walk *w) {
	if (w->r.captured < 1)
		return layer_short(w, 1);
	return layer_behind(w, (w->r.p[0] + 3u) & ~3u, layer_ip);
}

static struct layer read_enc(struct walk *w) {
	return layer_behind(w, 12, layer_ip);
}

// Of a packet with several VLAN tags the kernel tells what is behind the last, and since 6.10
// leaves those in the packet that the card did not take away: its type here, and IP behind it, not
// before?
static bool is_tagged(const struct rest *r, uint32_t at, uint16_t type) {
	uint8_t version = type == WIRE_ETHERTYPE_IPV4 ? 4 : type == WIRE_ETHERTYPE_IPV6 ? 6 : 0;

	if (version == 0 || r->captured <= at + 4)
		return false;
	bool is_ip = r->p[at] >> 4 == version && (version == 6 || (r->p[at] & 15) >= 5);

	return !is_ip && wire_get16(r->p + at + 2) == type && r->p[at + 4] >> 4 == version;
}

// A cooked capture's: some interfaces have their frames behind it, and netlink's are none.
static struct layer of_cooked(struct walk *w, uint32_t header, uint16_t hardware, uint16_t type) {
	if (hardware == ARPHRD_NETLINK)
		return layer_end(DECODE_NOT_IP);
	if (hardware == ARPHRD_RADIOTAP)
		return layer_behind(w, header, read_radiotap);
	if (is_tagged(&w->r, header, type))
		header += 4;
	return type == TYPE_LLC || type > TYPE_LENGTH_MAX ? layer_of_type(w, header, type)
							  : layer_end(DECODE_NOT_IP);
}

static struct layer read_sll(struct walk *w) {
	if (w->r.captured < SLL_HEADER)
		return layer_short(w, SLL_HEADER);
	return of_cooked(w, SLL_HEADER, wire_get16(w->r.p + 2), wire_get16(w->r.p + 14));
}

static struct layer read_sll2(struct walk *w) {
	if (w->r.captured < SLL2_HEADER)
		return layer_short(w, SLL2_HEADER);
	return of_cooked(w, SLL2_HEADER, wire_get16(w->r.p + 8), wire_get16(w->r.p));
}

// A protocol family, in the byte order of whoever wrote it.
static struct layer read_family(struct walk *w) {
	return layer_behind(w, 4, layer_ip);
}

// RFC 4391 section 6, mostly behind the addresses of InfiniBand.
static struct layer read_ipoib(struct walk *w) {
	for (uint32_t at = 0; at <= IPOIB_ADDRESS; at += IPOIB_ADDRESS) {
		uint16_t type = w->r.captured < at + 5 ? 0 : wire_get16(w->r.p + at);

		if ((type == WIRE_ETHERTYPE_IPV4 && w->r.p[at + 4] >> 4 == 4)
			|| (type == WIRE_ETHERTYPE_IPV6 && w->r.p[at + 4] >> 4 == 6))
			return layer_behind(w, at + 4, layer_ip);
	}
	return w->r.captured < IPOIB_ADDRESS + 4 ? layer_short(w, IPOIB_ADDRESS + 4)
						 : layer_end(DECODE_NOT_IP);
}

// Attributes, of which one is the packet; lengths are in the byte order of the host.
static struct layer read_nflog(struct walk *w) {
	uint32_t at = 4;

	while (w->r.captured >= at + 4) {
		uint32_t size = get16_le(w->r.p + at), type = get16_le(w->r.p + at + 2);

		if (type > 255) { // of a host with the other byte order
			size = wire_get16(w->r.p + at);
			type >>= 8;
		}
		if (size < 4)
			return layer_end(DECODE_MALFORMED);
		if (type == NFLOG_PAYLOAD) {
			struct rest *r = &w->r;

			take(r, at + 4);
			r->length = size - 4 < r->length ? size - 4 : r->length;
			r->captured = r->captured < r->length ? r->captured : r->length;
			return layer_next(layer_ip);
		}
		at += (size + 3) & ~3u;
	}
	return layer_short(w, at + 4);
}

layer_fn *layer_of_link(uint16_t link_type) {
	static const struct {
		uint16_t type;
		layer_fn *read;
	} links[] = {
		{LINK_ETHERNET, layer_ethernet},
		{LINK_SLL, read_sll},
		{LINK_SLL2, read_sll2},
		{LINK_NULL, read_family},
		{LINK_LOOP, read_family},
		{LINK_RAW, layer_ip},
		{LINK_RAW_BSD, layer_ip},
		{LINK_RAW_OPENBSD, layer_ip},
		{LINK_IPV4, layer_ip},
		{LINK_IPV6, layer_ip},
		{LINK_PPP, layer_ppp},
		{LINK_PPP_HDLC, read_ppp_hdlc},
		{LINK_PPP_ETHER, read_pppoe},
		{LINK_PPP_PPPD, read_pppd},
		{LINK_C_HDLC, read_c_hdlc},
		{LINK_FRELAY, read_frame_relay},
		{LINK_ATM_RFC1483, read_llc},
		{LINK_MPLS, layer_mpls},
		{LINK_IEEE802_11, read_wifi},
		{LINK_IEEE802_11_RADIOTAP, read_radiotap},
		{LINK_IEEE802_11_PRISM, read_prism},
		{LINK_IEEE802_11_AVS, read_prism},
		{LINK_PPI, read_ppi},
		{LINK_PKTAP, read_pktap},
		{LINK_ENC, read_enc},
		{LINK_PFLOG, read_pflog},
		{LINK_NFLOG, read_nflog},
		{LINK_IPOIB, read_ipoib},
	};

	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++) {
		if (links[i].type == link_type)
			return links[i].read;
	}
	return NULL;
}
