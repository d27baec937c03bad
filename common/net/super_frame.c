// SPDX-License-Identifier: BSD-3-Clause
#include "common/net/super_frame.h"

#include "common/net/wire_ip.h"
#include "common/net/wire_put.h"

#define IPV4_DF 0x4000u
#define TCP_SUM 16u // of the checksum in its header
#define UDP_SUM 6u
#define TCP_FLAGS 13u
#define JOINED_FLAGS (SEG_ACK | SEG_PSH | SEG_ECE | SEG_CWR)
#define UDP_LENGTH 4u
#define JUMBO 8u // bytes of IPv6's hop-by-hop header with that option alone (RFC 2675)
#define JUMBO_OPTION 0xc2

static uint32_t sum_at(bool tcp) {
	return tcp ? TCP_SUM : UDP_SUM;
}

// Of a pseudo header (RFC 9293 section 3.1, RFC 768, RFC 8200 section 8.1), not complemented.
static uint32_t pseudo_sum(const uint8_t *ip, bool ipv6, bool tcp, uint32_t l4_bytes) {
	uint32_t proto = tcp ? WIRE_PROTO_TCP : WIRE_PROTO_UDP;

	return wire_sum(ip + (ipv6 ? 8 : 12), ipv6 ? 32 : 8, proto + l4_bytes);
}

static void put_partial(
	uint8_t *packet, uint32_t ip, uint32_t l4, bool ipv6, bool tcp, uint32_t l4_bytes) {
	uint16_t sum = (uint16_t)~wire_fold(pseudo_sum(packet + ip, ipv6, tcp, l4_bytes));

	wire_put16(packet + l4 + sum_at(tcp), sum);
	if (!tcp)
		wire_put16(packet + l4 + UDP_LENGTH, l4_bytes);
}

// Sets the length of the IP packet at `ip`, whose header has so many bytes.
static void put_length(uint8_t *ip, bool ipv6, uint32_t header, uint32_t bytes) {
	if (ipv6) {
		wire_put16(ip + 4, bytes - WIRE_IPV6);
		return;
	}
	wire_put16(ip + 2, bytes);
	wire_put16(ip + 10, 0);
	wire_put16(ip + 10, wire_fold(wire_sum(ip, header, 0)));
}

// BIG TCP: the kernel writes a packet above 64 KiB as a jumbogram.
static uint8_t *without_jumbo(uint8_t *bytes, uint32_t *len) {
	struct wire_walk w = wire_walk(bytes, *len);
	uint8_t *ip = bytes + w.ip, *option = ip + WIRE_IPV6;

	if (!w.ipv6 || w.l4 < w.ip + WIRE_IPV6 + JUMBO || wire_get16(ip + 4) != 0 || ip[6] != 0
		|| option[1] != 0 || option[2] != JUMBO_OPTION)
		return bytes;
	ip[6] = option[0];
	memmove(bytes + JUMBO, bytes, w.ip + WIRE_IPV6);
	*len -= JUMBO;
	return bytes + JUMBO;
}

bool super_frame_read(struct super_frame *f, uint8_t *bytes, uint32_t len, uint32_t size) {
	bytes = without_jumbo(bytes, &len);
	struct wire_walk w = wire_walk(bytes, len);

	*f = (struct super_frame){
		.bytes = bytes,
		.len = len,
		.size = size,
		.ip = (uint32_t)w.ip,
		.l4 = (uint32_t)w.l4,
		.tcp = w.proto == WIRE_PROTO_TCP,
		.ipv6 = w.ipv6,
	};
	f->header = f->l4 + (f->tcp ? (uint32_t)wire_tcp_size(bytes, len, &w) : WIRE_UDP);
	return w.ip > 0 && w.l4 >= w.ip + wire_ip_header(w.ipv6) && w.end == len && !w.fragment
		&& (f->tcp || w.proto == WIRE_PROTO_UDP) && size > 0 && f->header > f->l4
		&& f->header < len;
}

uint32_t super_frame_cut(const struct super_frame *f, uint32_t offset, uint8_t *packet) {
	uint32_t left = f->len - f->header - offset, payload = left < f->size ? left : f->size;
	uint8_t *ip = packet + f->ip, *l4 = packet + f->l4;

	memcpy(packet, f->bytes, f->header);
	memcpy(packet + f->header, f->bytes + f->header + offset, payload);
	if (!f->ipv6)
		wire_put16(ip + 4, wire_get16(ip + 4) + offset / f->size);
	put_length(ip, f->ipv6, f->l4 - f->ip, f->header - f->ip + payload);
	if (f->tcp) {
		wire_put32(l4 + 4, wire_get32(l4 + 4) + offset);
		if (payload < left)
			l4[TCP_FLAGS] &= (uint8_t) ~(SEG_PSH | SEG_FIN);
		if (offset > 0 && f->cwr_first)
			l4[TCP_FLAGS] &= (uint8_t)~SEG_CWR;
	}
	put_partial(packet, f->ip, f->l4, f->ipv6, f->tcp, f->header - f->l4 + payload);
	return f->header + payload;
}

uint32_t super_frame_sum_at(const uint8_t *frame, size_t len, uint32_t *l4) {
	struct wire_walk w = wire_walk(frame, len);
	bool tcp = w.proto == WIRE_PROTO_TCP;

	*l4 = (uint32_t)w.l4;
	if (w.ip == 0 || w.fragment || w.end > len || (!tcp && w.proto != WIRE_PROTO_UDP)
		|| w.l4 + (tcp ? WIRE_TCP : WIRE_UDP) > w.end)
		return 0;
	return sum_at(tcp);
}

void super_frame_fill_sum_at(uint8_t *frame, size_t len, uint32_t l4, uint32_t at) {
	size_t end = wire_walk(frame, len).end;
	uint16_t sum;

	if (end > len || l4 + at + 2 > end)
		return;
	// The partial sum in its place is that of the pseudo header.
	sum = wire_fold(wire_sum(frame + l4, end - l4, 0));
	wire_put16(frame + l4 + at, sum == 0 && at == UDP_SUM ? UINT16_MAX : sum);
}

void super_frame_fill_sum(uint8_t *frame, size_t len) {
	uint32_t l4, at = super_frame_sum_at(frame, len, &l4);

	if (at > 0)
		super_frame_fill_sum_at(frame, len, l4, at);
}

static bool sum_is_good(const struct joint *j, size_t len) {
	const uint8_t *ip = j->frame + WIRE_ETH;
	uint32_t bytes = (uint32_t)len - j->l4;

	if (!j->tcp && wire_get16(j->frame + j->l4 + UDP_SUM) == 0)
		return false; // it has none
	return wire_fold(wire_sum(j->frame + j->l4, bytes, pseudo_sum(ip, j->ipv6, j->tcp, bytes)))
		== 0;
}

void joint_read(struct joint *j, const uint8_t *frame, size_t len, bool partial) {
	const uint8_t *ip = frame + WIRE_ETH;
	uint32_t header, total;
	uint8_t proto;

	*j = (struct joint){.frame = frame};
	if (len < WIRE_ETH)
		return;
	j->ipv6 = wire_get16(frame + 12) == WIRE_ETHERTYPE_IPV6;
	if ((!j->ipv6 && !wire_is_ipv4(frame))
		|| len < WIRE_ETH + wire_ip_header(j->ipv6) + WIRE_UDP)
		return;
	proto = j->ipv6 ? ip[6] : ip[9];
	total = j->ipv6 ? WIRE_IPV6 + wire_get16(ip + 4) : wire_get16(ip + 2);
	j->tcp = proto == WIRE_PROTO_TCP;
	j->l4 = WIRE_ETH + wire_ip_header(j->ipv6);
	if ((!j->tcp && proto != WIRE_PROTO_UDP) || WIRE_ETH + total != len
		|| (!j->ipv6 && (ip[0] != 0x45 || wire_get16(ip + 6) != IPV4_DF)))
		return;
	header = j->tcp && j->l4 + WIRE_TCP <= len ? (uint32_t)(frame[j->l4 + 12] >> 4) * 4
						   : WIRE_UDP;
	j->header = j->l4 + header;
	if (j->header >= len || (j->tcp && header < WIRE_TCP))
		return;
	j->payload = (uint32_t)len - j->header;
	j->seq = wire_get32(frame + j->l4 + 4);
	j->joins = (!j->tcp || (frame[j->l4 + TCP_FLAGS] & ~JOINED_FLAGS) == 0)
		&& (partial || sum_is_good(j, len));
}

bool joint_same_flow(const struct joint *a, const struct joint *b) {
	size_t from = a->ipv6 ? WIRE_ETH + 8 : WIRE_ETH + 12, size = a->ipv6 ? 36 : 12;

	// Addresses and, without options in between, ports.
	return a->l4 > 0 && a->l4 == b->l4 && a->tcp == b->tcp
		&& memcmp(a->frame + from, b->frame + from, size) == 0;
}

// Of one flow: the headers but for IP's length, identification and checksum, and TCP's sequence
// number, PSH and checksum.
static bool same_header(const struct joint *a, const struct joint *b) {
	const uint8_t *f = a->frame, *g = b->frame, *t = f + a->l4, *u = g + b->l4;

	if (a->header != b->header || memcmp(f, g, a->ipv6 ? 18 : 16) != 0
		|| memcmp(f + 20, g + 20, a->ipv6 ? 2 : 4) != 0)
		return false;
	return !a->tcp
		|| (memcmp(t + 8, u + 8, 5) == 0 && ((t[TCP_FLAGS] ^ u[TCP_FLAGS]) & ~SEG_PSH) == 0
			&& memcmp(t + 14, u + 14, 2) == 0
			&& memcmp(t + 18, u + 18, a->header - a->l4 - 18) == 0);
}

bool joint_follows(const struct joint *first, const struct joint *last, const struct joint *next,
	uint32_t payload) {
	if (!first->joins || !next->joins || last->payload != first->payload
		|| next->payload > first->payload
		|| first->header - WIRE_ETH + payload + next->payload > SUPER_FRAME_MAX)
		return false;
	if (first->tcp
		&& (next->seq != first->seq + payload
			|| (last->frame[last->l4 + TCP_FLAGS] & SEG_PSH) != 0))
		return false;
	return same_header(first, next);
}

uint32_t joint_header(const struct joint *first, const struct joint *last, uint32_t payload,
	uint8_t header[SUPER_FRAME_HEADER]) {
	uint32_t bytes = first->header - WIRE_ETH + payload;

	memcpy(header, first->frame, first->header);
	put_length(header + WIRE_ETH, first->ipv6, WIRE_IPV4, bytes);
	if (first->tcp)
		header[first->l4 + TCP_FLAGS] |= last->frame[last->l4 + TCP_FLAGS];
	put_partial(header, WIRE_ETH, first->l4, first->ipv6, first->tcp,
		first->header - first->l4 + payload);
	return first->header;
}
