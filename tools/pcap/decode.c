// SPDX-License-Identifier: BSD-3-Clause
#include "tools/pcap/decode.h"

#include "common/base/likely.h"
#include "common/net/wire_ip.h"
#include "tools/pcap/decode_layer.h"
#include "tools/pcap/fields.h"

#include <pcap/pcap.h>
#include <stdio.h>
#include <string.h>

#define LAYERS_MAX 32 // of a frame, likewise
#define TAKEN_BY_ALL 576u // bytes of an IPv4 packet
#define IPV6_HEADER 40u
#define UDP_HEADER 8u

static inline uint64_t get64(const uint8_t *p) {
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return __builtin_bswap64(v);
}

__extension__ typedef unsigned __int128 uint128;

// Two multiplications, each of whose halves meet: every bit of the key moves about half of the
// hash's.
static inline uint32_t hash_key(const struct flow_key *k) {
	uint64_t ports = (uint64_t)k->port[0] << 16 | k->port[1];
	uint64_t a = k->end[0].low ^ k->end[0].high * UINT64_C(0xc2b2ae3d27d4eb4f);
	uint64_t b = k->end[1].low ^ k->end[1].high * UINT64_C(0x165667b19e3779f9);
	uint128 m = (uint128)(a ^ UINT64_C(0x9e3779b97f4a7c15))
		* (b ^ ports << 32 ^ UINT64_C(0xd6e8feb86659fd93));
	uint64_t x = ((uint64_t)m ^ (uint64_t)(m >> 64) ^ ports) * UINT64_C(0x9e3779b97f4a7c15);

	return (uint32_t)(x >> 32);
}

static inline void set_key(struct packet *p, const struct endpoint *src, const struct endpoint *dst,
	const uint8_t *ports, bool udp) {
	uint16_t src_port = wire_get16(ports), dst_port = wire_get16(ports + 2);
	bool swap = src->high != dst->high ? src->high > dst->high
		: src->low != dst->low	   ? src->low > dst->low
					   : src_port > dst_port;

	p->ipv4 = endpoint_is_ipv4(src) && endpoint_is_ipv4(dst);
	p->from = swap;
	p->key.end[swap] = *src;
	p->key.end[!swap] = *dst;
	p->key.port[swap] = src_port;
	p->key.port[!swap] = dst_port;
	p->key.udp = udp;
	p->hash = hash_key(&p->key);
}

// `r` begins with the TCP header; its length is that of the segment.
static inline __attribute__((always_inline)) enum decode decode_tcp(
	struct rest *r, const struct endpoint *src, const struct endpoint *dst, struct packet *p) {
	const uint8_t *tcp = r->p;

	if (unlikely(r->length < WIRE_TCP))
		return DECODE_MALFORMED;
	if (unlikely(r->captured < WIRE_TCP))
		return DECODE_TRUNCATED;
	uint32_t header = (tcp[12] >> 4) * 4u;
	if (unlikely(header < WIRE_TCP || header > r->length))
		return DECODE_MALFORMED;
	uint32_t captured = header < r->captured ? header : r->captured;

	p->payload = r->length - header;
	p->captured = r->captured - captured;
	p->data = tcp + captured;
	enum wire_status options = wire_parse_tcp_header(tcp, captured, &p->seg);
	p->options = unlikely(captured < header) ? DECODE_OPTIONS_CUT
		: unlikely(options != WIRE_OK)	 ? DECODE_OPTIONS_BAD
						 : DECODE_OPTIONS_WHOLE;
	set_key(p, src, dst, tcp, false);
	return DECODE_TCP;
}

struct layer layer_tcp(struct walk *w) {
	return layer_end(decode_tcp(&w->r, &w->src, &w->dst, w->p));
}

// Its length field is 0 in a jumbogram, and what a card is still to cut up has another. What a
// tunnel's port makes of the payload holds if it can be read; else it is a datagram's.
struct layer layer_udp(struct walk *w) {
	struct rest *r = &w->r;
	struct packet *p = w->p;
	const uint8_t *udp = r->p;

	if (!take(r, UDP_HEADER))
		return layer_short(w, UDP_HEADER);
	uint16_t src_port = wire_get16(udp), dst_port = wire_get16(udp + 2);
	layer_fn *tunnel = layer_of_port(dst_port);

	p->payload = r->length;
	p->captured = r->captured;
	p->data = r->p;
	p->options = DECODE_OPTIONS_WHOLE;
	memset(&p->seg, 0, sizeof(p->seg));
	set_key(p, &w->src, &w->dst, udp, true);
	if (tunnel == NULL)
		tunnel = layer_of_port(src_port);
	if (tunnel == NULL) {
		enum tunnel encrypted = tunnel_encrypted(r, src_port, dst_port);

		p->tunnel = (uint8_t)(encrypted != TUNNEL_NONE ? encrypted : p->tunnel);
		return layer_end(DECODE_UDP);
	}
	if (!w->in_udp)
		w->outer = *p;
	w->in_udp = true;
	return layer_next(tunnel);
}

// The header says that the packet has so many bytes. More than the frame's: of a frame that was
// cut, and whose length is not known; else it is wrong.
static inline bool set_length(struct walk *w, uint32_t total) {
	struct rest *r = &w->r;

	if (unlikely(total > r->length)) {
		if (!w->length_lost)
			return false;
		w->p->wire_bytes += total - r->length;
		w->p->length_from_ip = true;
	}
	r->length = total; // without the padding of a short frame
	if (r->captured > total)
		r->captured = total;
	return true;
}

// A mark further out is one of the packet within (RFC 6040).
static inline void set_ecn(struct walk *w, uint8_t ecn) {
	w->p->ecn = w->outer_ce && ecn != ECN_NOT_ECT ? ECN_CE : ecn;
	w->outer_ce = w->p->ecn == ECN_CE || (w->outer_ce && ecn == ECN_NOT_ECT);
}

static struct layer of_protocol(struct walk *w, uint8_t protocol) {
	layer_fn *next =
		likely(protocol == WIRE_PROTO_TCP) ? layer_tcp : layer_of_protocol(protocol);

	return next == NULL ? layer_end(DECODE_NOT_TCP) : layer_next(next);
}

// A header without a length: of a segment that the card is still to cut up, all of the frame. Such
// a segment is longer than what every host takes (RFC 791): shorter ones were cut by the capture,
// and nothing says how long they were.
static inline bool length_unknown(const struct walk *w) {
	return w->length_lost && w->r.length < TAKEN_BY_ALL;
}

struct layer layer_ipv4(struct walk *w) {
	struct rest *r = &w->r;
	const uint8_t *ip = r->p;

	if (unlikely(r->captured < WIRE_IPV4))
		return layer_short(w, WIRE_IPV4);
	uint32_t header = (ip[0] & 15) * 4u, total = wire_get16(ip + 2);
	if (unlikely(total == 0)) {
		if (length_unknown(w))
			return layer_end(DECODE_TRUNCATED);
		total = r->length;
	}
	if (unlikely(ip[0] >> 4 != 4 || header < WIRE_IPV4 || total < header
		    || !set_length(w, total)))
		return layer_end(DECODE_MALFORMED);
	set_ecn(w, ip[1] & 3);
	w->p->ip_id = wire_get16(ip + 4);
	if (unlikely((wire_get16(ip + 6) & WIRE_IP_FRAGMENT) != 0))
		return layer_end(DECODE_FRAGMENT);
	w->src = (struct endpoint){0, ENDPOINT_IPV4 | wire_get32(ip + 12)};
	w->dst = (struct endpoint){0, ENDPOINT_IPV4 | wire_get32(ip + 16)};
	return unlikely(!take(r, header)) ? layer_end(DECODE_TRUNCATED) : of_protocol(w, ip[9]);
}

// Behind IPv6's own header.
static struct layer ipv6_extensions(struct walk *w, uint8_t proto) {
	struct rest *r = &w->r;

	for (int i = 0; i < WIRE_EXTENSIONS_MAX && wire_is_extension(proto); i++) {
		if (r->captured < 8)
			return layer_short(w, 8);
		uint32_t size = (uint32_t)wire_extension_size(proto, r->p);
		if (proto == WIRE_EXT_FRAGMENT && wire_is_part(r->p))
			return layer_end(DECODE_FRAGMENT);
		proto = r->p[0];
		if (!take(r, size))
			return layer_short(w, size);
	}
	return of_protocol(w, proto);
}

struct layer layer_ipv6(struct walk *w) {
	const uint8_t *ip = w->r.p;

	if (w->r.captured < IPV6_HEADER)
		return layer_short(w, IPV6_HEADER);
	uint32_t payload = wire_get16(ip + 4);
	if (payload == 0) { // or a jumbogram (RFC 2675)
		if (length_unknown(w))
			return layer_end(DECODE_TRUNCATED);
		payload = w->r.length - IPV6_HEADER;
	}
	if (ip[0] >> 4 != 6 || !set_length(w, IPV6_HEADER + payload))
		return layer_end(DECODE_MALFORMED);
	w->src = (struct endpoint){get64(ip + 8), get64(ip + 16)};
	w->dst = (struct endpoint){get64(ip + 24), get64(ip + 32)};
	set_ecn(w, ip[1] >> 4 & 3);
	w->p->ip_id = 0;
	take(&w->r, IPV6_HEADER);
	return ipv6_extensions(w, ip[6]);
}

struct layer layer_ip(struct walk *w) {
	if (w->r.captured == 0)
		return layer_short(w, 1);
	return w->r.p[0] >> 4 == 4    ? layer_next(layer_ipv4)
		: w->r.p[0] >> 4 == 6 ? layer_next(layer_ipv6)
				      : layer_end(DECODE_NOT_IP);
}

// Nearly every frame: Ethernet, then IPv4 without options, then TCP. False: it must be looked at
// more closely.
static inline bool usual_frame(const struct frame *f, struct rest *r, struct packet *p) {
	const uint8_t *ip = f->data + WIRE_ETH;

	if (unlikely(f->link_type != LINK_ETHERNET || f->captured < WIRE_ETH + WIRE_IPV4
		    || wire_get16(f->data + 12) != WIRE_ETHERTYPE_IPV4 || ip[0] != 0x45
		    || ip[9] != WIRE_PROTO_TCP || (wire_get16(ip + 6) & WIRE_IP_FRAGMENT) != 0))
		return false;
	uint32_t total = wire_get16(ip + 2), captured = f->captured - WIRE_ETH;

	if (unlikely(total < WIRE_IPV4 || total > f->length - WIRE_ETH))
		return false;
	p->ecn = ip[1] & 3;
	p->ip_id = wire_get16(ip + 4);
	*r = (struct rest){ip + WIRE_IPV4, (captured < total ? captured : total) - WIRE_IPV4,
		total - WIRE_IPV4};
	return true;
}

static enum decode walk_layers(const struct frame *f, struct packet *p) {
	struct walk w = {
		.r = {f->data, f->captured, f->length},
		.p = p,
		.length_lost = f->length == f->captured,
	};
	struct layer at = layer_next(layer_of_link(f->link_type));

	if (at.read == NULL)
		return DECODE_LINK_TYPE;
	for (uint32_t i = 0; at.read != NULL && i < LAYERS_MAX; i++)
		at = at.read(&w);
	if (at.read != NULL)
		at.end = DECODE_NOT_IP;
	bool unread =
		at.end == DECODE_MALFORMED || at.end == DECODE_NOT_IP || at.end == DECODE_NOT_TCP;

	if (w.in_udp && unread) {
		*p = w.outer;
		return DECODE_UDP;
	}
	return at.end;
}

enum decode decode_frame(const struct frame *f, struct packet *p) {
	struct rest r;

	p->ts_ns = f->ts_ns;
	p->wire_bytes = f->length;
	p->tunnel = TUNNEL_NONE;
	p->length_from_ip = false;
	if (unlikely(!usual_frame(f, &r, p)))
		return walk_layers(f, p);
	const uint8_t *ip = f->data + WIRE_ETH;

	return decode_tcp(&r, &(struct endpoint){0, ENDPOINT_IPV4 | wire_get32(ip + 12)},
		&(struct endpoint){0, ENDPOINT_IPV4 | wire_get32(ip + 16)}, p);
}

static void count_unread(struct decode_count *c, uint16_t link_type) {
	uint32_t i = 0;

	while (i < c->unread_count && c->unread[i].link_type != link_type)
		i++;
	if (i == DECODE_UNREAD_MAX)
		return;
	c->unread_count += i == c->unread_count;
	c->unread[i].link_type = link_type;
	c->unread[i].packets++;
}

enum decode decode_counted(const struct frame *f, struct packet *p, struct decode_count *c) {
	enum decode what = decode_frame(f, p);

	c->what[what]++;
	c->tunnel[p->tunnel]++;
	c->lengths_from_ip += p->length_from_ip;
	if (unlikely(what == DECODE_LINK_TYPE))
		count_unread(c, f->link_type);
	return what;
}

uint64_t decode_total(const struct decode_count *c) {
	uint64_t sum = 0;

	for (uint32_t i = 0; i < DECODE_COUNT; i++)
		sum += c->what[i];
	return sum;
}

uint64_t decode_encrypted(const struct decode_count *c) {
	uint64_t sum = 0;

	for (uint32_t i = TUNNEL_ENCRYPTED; i < TUNNEL_COUNT; i++)
		sum += c->tunnel[i];
	return sum;
}

static const char *const tunnel_names[] = {
#define TUNNEL_NAME_(constant, name) name,
	TUNNEL_VALUES(TUNNEL_NAME_)};

static const char *link_name(uint16_t link_type) {
	const char *name = pcap_datalink_val_to_name(link_type);

	return name != NULL ? name : "without a name";
}

void decode_ledger(const struct decode_count *c, struct json *j) {
	static const char *const names[] = {
#define NAME_(constant, name, meaning) name,
		DECODE_VALUES(NAME_)};

	for (uint32_t i = 0; i < DECODE_COUNT; i++)
		json_u64(j, names[i], c->what[i]);
}

void decode_tunnels(const struct decode_count *c, struct json *j) {
	json_object(j, "tunnels");
	for (uint32_t i = TUNNEL_NONE + 1; i < TUNNEL_COUNT; i++) {
		if (c->tunnel[i] > 0)
			json_u64(j, tunnel_names[i], c->tunnel[i]);
	}
	json_close(j, '}');
}

void decode_link_types(const struct decode_count *c, struct json *j) {
	json_array(j, "unread_link_types");
	for (uint32_t i = 0; i < c->unread_count; i++) {
		json_object(j, NULL);
		LINK_TYPE_FIELDS(FIELD_JSON)
		json_close(j, '}');
	}
	json_close(j, ']');
}

bool decode_why_nothing(const struct decode_count *c, char *text, size_t size) {
	uint64_t packets = decode_total(c);
	enum tunnel most = TUNNEL_ENCRYPTED;
	const struct decode_unread *unread = &c->unread[0];

	for (uint32_t i = TUNNEL_ENCRYPTED; i < TUNNEL_COUNT; i++)
		most = c->tunnel[i] > c->tunnel[most] ? (enum tunnel)i : most;
	for (uint32_t i = 1; i < c->unread_count; i++)
		unread = c->unread[i].packets > unread->packets ? &c->unread[i] : unread;
	if (c->tunnel[most] == 0 && c->unread_count == 0)
		return false;
	if (c->tunnel[most] > unread->packets)
		snprintf(text, size,
			"%llu of %llu packets are of %s, which encrypts what it carries: capture "
			"at an end of it, behind the decryption",
			(unsigned long long)c->tunnel[most], (unsigned long long)packets,
			tunnel_names[most]);
	else
		snprintf(text, size,
			"%llu of %llu packets have link type %u (%s), which is not read: capture "
			"on an interface of Ethernet or IP",
			(unsigned long long)unread->packets, (unsigned long long)packets,
			unread->link_type, link_name(unread->link_type));
	return true;
}
