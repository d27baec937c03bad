// SPDX-License-Identifier: BSD-3-Clause
// Bytes to structs and back. Everything on the wire is big-endian; loads and stores go through
// memcpy, so no alignment is asked of the caller.
//
// Checksums (RFC 1071) are ones' complement sums: 2^16 = 1 (mod 2^16 - 1), so 32-bit words may be
// summed as they are and folded at the end, and a sum of words in the wrong byte order is the sum
// in the wrong byte order.
//
// TCP options come in the order Linux writes them, so that its receive fast path (RFC 1323's
// "header prediction") knows a data segment at sight, and are padded to words:
//
//	SYN   MSS, SACK permitted, timestamps, NOP, window scale
//	data  NOP, NOP, timestamps
//	ack   NOP, NOP, timestamps, NOP, NOP, SACK, AccECN, NOP
//
// The AccECN option has as many of its three fields as there is room for.
#include "common/net/wire_ip.h"

#include "common/base/pkt.h"
#include "common/net/wire_accecn.h"
#include "common/net/wire_put.h"

#include <string.h>

#define OPT_EOL 0
#define OPT_NOP 1
#define OPT_MSS 2
#define OPT_WSCALE 3
#define OPT_SACK_OK 4
#define OPT_SACK 5
#define OPT_TS 8
#define TS_ALIGNED 0x0101080au // NOP, NOP, timestamps, 10: how a data segment's options begin
#define PLAIN_OFFSET 0x8000u // data offset: 32 bytes of TCP header
#define OPTIONS_MAX 40u
#define WSCALE_MAX 14 // RFC 7323 section 2.3

#define IP_PLAIN 0x4500u // version 4, a header of 20 bytes, no TOS
#define IP_DF 0x4000u
#define IP_OFFSET 0x1fffu
#define IP_TTL 64u

// Writes a word that a checksum covers.
static inline uint8_t *sum32(uint8_t *p, uint32_t v, uint64_t *sum) {
	*sum += v;
	return wire_put32(p, v);
}

// Adding a sum to itself with its halves exchanged leaves in the upper half what both add up to,
// and the carry out of the lower half with it.
static inline uint16_t fold64(uint64_t sum) {
	sum += sum >> 32 | sum << 32;
	uint32_t half = (uint32_t)(sum >> 32);
	half += half >> 16 | half << 16;
	return (uint16_t)(half >> 16);
}

// Words of a multiple of four bytes, in the machine's order: RFC 1071 section 2 (B).
static inline uint64_t sum_words(const uint8_t *p, size_t len) {
	uint64_t acc = 0;

	for (size_t i = 0; i < len; i += 4) {
		uint32_t v;
		memcpy(&v, p + i, sizeof(v));
		acc += v;
	}
	return acc;
}

uint32_t wire_sum(const void *bytes, size_t len, uint32_t sum) {
	const uint8_t *p = bytes;
	size_t whole = len & ~(size_t)3;
	uint64_t acc = sum_words(p, whole);
	uint8_t tail[4] = {0};

	len -= whole;
	if (len > 0) {
		uint32_t v;
		memcpy(tail, p + whole, len);
		memcpy(&v, tail, sizeof(v));
		acc += v;
	}
	return sum + __builtin_bswap16(fold64(acc));
}

uint16_t wire_fold(uint32_t sum) {
	return (uint16_t)~fold64(sum);
}

uint16_t wire_csum_replace(uint16_t csum, uint16_t was, uint16_t is) {
	return (uint16_t)~fold64((uint64_t)(uint16_t)~csum + (uint16_t)~was + is);
}

static void read_ipv4(const uint8_t *frame, size_t len, struct wire_info *info) {
	const uint8_t *ip = frame + WIRE_ETH;
	size_t header = (size_t)(ip[0] & 15) * 4;
	uint16_t fragment = wire_get16(ip + 6);

	info->ecn = ip[1] & 3;
	info->dscp = ip[1] >> 2;
	info->ip_len = wire_get16(ip + 2);
	info->proto = ip[9];
	info->addr.src_ip = wire_get32(ip + 12);
	info->addr.dst_ip = wire_get32(ip + 16);
	info->l4_offset = (uint16_t)(WIRE_ETH + header);
	info->fragment = (fragment & WIRE_IP_FRAGMENT) != 0;
	if ((info->proto == WIRE_PROTO_TCP || info->proto == WIRE_PROTO_UDP)
		&& (fragment & IP_OFFSET) == 0 && info->ip_len >= header + 4
		&& len >= WIRE_ETH + header + 4) {
		info->addr.src_port = wire_get16(ip + header);
		info->addr.dst_port = wire_get16(ip + header + 2);
	}
}

void wire_read(const uint8_t *frame, size_t len, struct wire_info *info) {
	*info = (struct wire_info){.ethertype = wire_get16(frame + 12), .l4_offset = WIRE_ETH};
	memcpy(info->addr.dst_mac.b, frame, 6);
	memcpy(info->addr.src_mac.b, frame + 6, 6);
	if (info->ethertype == WIRE_ETHERTYPE_IPV6)
		wire_read_ipv6(frame, len, info);
	else if (wire_is_ipv4(frame) && len >= WIRE_ETH + WIRE_IPV4)
		read_ipv4(frame, len, info);
}

enum wire_status wire_parse(const uint8_t *frame, size_t len, struct wire_info *info) {
	enum wire_status status = wire_check(frame, len);

	if (status == WIRE_OK)
		wire_read(frame, len, info);
	return status;
}

// One option of known kind and length; those with a wrong length for their kind are passed over,
// and so are those that belong on a SYN when it is none.
static void parse_option(const uint8_t *p, uint8_t size, struct seg *seg) {
	bool syn = (seg->flags & SEG_SYN) != 0;

	if (p[0] == OPT_TS && size == 10) {
		seg->options |= SEG_OPT_TS;
		seg->tsval = wire_get32(p + 2);
		seg->tsecr = wire_get32(p + 6);
	} else if (p[0] == OPT_SACK && size >= 10 && (size - 2) % 8 == 0) {
		seg->sack_count = (uint8_t)((size - 2) / 8);
		for (size_t i = 0; i < seg->sack_count; i++) {
			seg->sack[i].start = wire_get32(p + 2 + 8 * i);
			seg->sack[i].end = wire_get32(p + 6 + 8 * i);
		}
	} else if (p[0] == OPT_MSS && size == 4 && syn) {
		seg->options |= SEG_OPT_MSS;
		seg->mss = wire_get16(p + 2);
	} else if (p[0] == OPT_WSCALE && size == 3 && syn) {
		seg->options |= SEG_OPT_WSCALE;
		seg->wscale = p[2] < WSCALE_MAX ? p[2] : WSCALE_MAX;
	} else if (p[0] == OPT_SACK_OK && size == 2 && syn) {
		seg->options |= SEG_OPT_SACK_OK;
	} else if (wire_is_accecn(p)) {
		wire_parse_accecn(p, size, seg);
	}
}

static enum wire_status parse_options(const uint8_t *p, size_t len, struct seg *seg) {
	while (len > 0 && p[0] != OPT_EOL) {
		size_t size = 1;
		if (p[0] != OPT_NOP) {
			if (len < 2 || p[1] < 2 || p[1] > len)
				return WIRE_BAD_HEADER;
			size = p[1];
			parse_option(p, p[1], seg);
		}
		p += size;
		len -= size;
	}
	return WIRE_OK;
}

static inline bool all_zero(const uint8_t *p, size_t len) {
	return len == 0 || (p[0] == 0 && memcmp(p, p + 1, len - 1) == 0);
}

// The payload of our own senders is zeros, which add nothing, and are recognised in a tenth of the
// time that adding them takes. `header` is at most `len`; `addresses` are what they add.
static inline bool tcp_sum_good(const uint8_t *tcp, size_t header, size_t len, uint64_t addresses) {
	uint64_t pseudo = addresses + WIRE_PROTO_TCP + len;
	uint32_t sum = fold64(pseudo) + __builtin_bswap16(fold64(sum_words(tcp, header)));

	if (!all_zero(tcp + header, len - header))
		sum = wire_sum(tcp + header, len - header, sum);
	return wire_fold(sum) == 0;
}

enum wire_status wire_parse_tcp_header(const uint8_t *tcp, size_t size, struct seg *seg) {
	const uint8_t *options = tcp + WIRE_TCP;

	*seg = (struct seg){
		.seq = wire_get32(tcp + 4),
		.ack = wire_get32(tcp + 8),
		.flags = tcp[13],
		.options = tcp[12] & 1 ? SEG_OPT_AE : 0,
		.window = wire_get16(tcp + 14),
	};
	if (size == WIRE_TCP + 12 && wire_get32(options) == TS_ALIGNED) {
		seg->options |= SEG_OPT_TS;
		seg->tsval = wire_get32(options + 4);
		seg->tsecr = wire_get32(options + 8);
		return WIRE_OK;
	}
	return parse_options(options, size - WIRE_TCP, seg);
}

// Of addresses outside 2001:2::/96 *addr does not have all.
static uint64_t addresses_sum(const uint8_t *frame, const struct wire_addr *addr) {
	return addr->ipv6 ? wire_frame_sum(frame, true) : wire_addr_sum(addr);
}

enum wire_status wire_parse_tcp(
	const uint8_t *frame, const struct wire_info *info, bool verify, struct seg *seg) {
	const uint8_t *tcp = frame + info->l4_offset;
	enum wire_status status;

	if (info->proto != WIRE_PROTO_TCP || info->fragment)
		return WIRE_BAD_HEADER;
	size_t len = WIRE_ETH + (size_t)info->ip_len - info->l4_offset;
	if (len < WIRE_TCP)
		return WIRE_TRUNCATED;
	size_t header = (size_t)(tcp[12] >> 4) * 4;
	if (header < WIRE_TCP)
		return WIRE_BAD_HEADER;
	if (header > len)
		return WIRE_TRUNCATED;
	if (verify && !tcp_sum_good(tcp, header, len, addresses_sum(frame, &info->addr)))
		return WIRE_BAD_CHECKSUM;
	status = wire_parse_tcp_header(tcp, header, seg);
	seg->len = (uint16_t)(len - header);
	return status;
}

static size_t options_before_sack(const struct seg *seg) {
	size_t size = 0;

	if (seg->options & SEG_OPT_MSS)
		size += 4;
	if (seg->options & SEG_OPT_TS)
		size += 12;
	else if (seg->options & SEG_OPT_SACK_OK)
		size += 4;
	if (seg->options & SEG_OPT_WSCALE)
		size += 4;
	return size;
}

// How many of the segment's SACK blocks fit behind `before` bytes of options.
static size_t sack_blocks(const struct seg *seg, size_t before) {
	size_t room = (OPTIONS_MAX - before - 4) / 8;

	return seg->sack_count < room ? seg->sack_count : room;
}

size_t wire_tcp_header(const struct seg *seg) {
	size_t before = options_before_sack(seg);
	size_t blocks = sack_blocks(seg, before);

	before += blocks > 0 ? 4 + 8 * blocks : 0;
	return WIRE_TCP + before + wire_accecn_size(wire_accecn_fields(seg, OPTIONS_MAX - before));
}

size_t wire_tcp_frame_any(const struct seg *seg, uint32_t ip) {
	size_t len = WIRE_ETH + ip + wire_tcp_header(seg) + seg->len;

	if ((seg->options & SEG_OPT_UDP) != 0)
		len = WIRE_ETH + ip + WIRE_UDP + (seg->len > 0 ? seg->len : WIRE_UDP_NUMBERS);
	return len < WIRE_MIN_FRAME ? WIRE_MIN_FRAME : len;
}

static void write_options(uint8_t *p, const struct seg *seg, uint64_t *sum) {
	size_t before = options_before_sack(seg), blocks = sack_blocks(seg, before);
	size_t used = before + (blocks > 0 ? 4 + 8 * blocks : 0);
	size_t fields = wire_accecn_fields(seg, OPTIONS_MAX - used);
	uint8_t accecn[WIRE_ACCECN_MAX];

	if (seg->options & SEG_OPT_MSS)
		p = sum32(p, OPT_MSS << 24 | 4 << 16 | (uint32_t)seg->mss, sum);
	if (seg->options & SEG_OPT_TS) {
		uint32_t two = seg->options & SEG_OPT_SACK_OK ? OPT_SACK_OK << 24 | 2 << 16
							      : OPT_NOP << 24 | OPT_NOP << 16;
		p = sum32(p, two | OPT_TS << 8 | 10, sum);
		p = sum32(p, seg->tsval, sum);
		p = sum32(p, seg->tsecr, sum);
	} else if (seg->options & SEG_OPT_SACK_OK) {
		p = sum32(p, OPT_NOP << 24 | OPT_NOP << 16 | OPT_SACK_OK << 8 | 2, sum);
	}
	if (seg->options & SEG_OPT_WSCALE)
		p = sum32(
			p, OPT_NOP << 24 | OPT_WSCALE << 16 | 3 << 8 | (uint32_t)seg->wscale, sum);
	if (blocks > 0) {
		uint32_t size = (uint32_t)(2 + 8 * blocks);
		p = sum32(p, OPT_NOP << 24 | OPT_NOP << 16 | OPT_SACK << 8 | size, sum);
	}
	for (size_t i = 0; i < blocks; i++) {
		p = sum32(p, seg->sack[i].start, sum);
		p = sum32(p, seg->sack[i].end, sum);
	}
	if (fields > 0)
		wire_put_accecn(accecn, seg, fields);
	for (size_t i = 0; i < wire_accecn_size(fields); i += 4)
		p = sum32(p, wire_get32(accecn + i), sum);
}

static uint8_t *put_ipv4(uint8_t *p, const struct wire_addr *a, uint8_t proto, uint8_t tos,
	uint16_t ip_id, uint32_t payload) {
	uint64_t sum = (uint64_t)a->src_ip + a->dst_ip + (IP_TTL << 8 | proto);

	p = sum32(p, 0x45u << 24 | (uint32_t)tos << 16 | (WIRE_IPV4 + payload), &sum);
	p = sum32(p, (uint32_t)ip_id << 16 | IP_DF, &sum);
	p = wire_put32(p, IP_TTL << 24 | (uint32_t)proto << 16 | (uint16_t)~fold64(sum));
	p = wire_put32(p, a->src_ip);
	return wire_put32(p, a->dst_ip);
}

uint8_t *wire_put_ip(uint8_t *p, const struct wire_addr *addr, uint8_t proto, uint8_t tos,
	uint16_t ip_id, uint32_t payload) {
	p = wire_put_eth(p, &addr->dst_mac, &addr->src_mac,
		addr->ipv6 ? WIRE_ETHERTYPE_IPV6 : WIRE_ETHERTYPE_IPV4);
	return addr->ipv6 ? wire_put_ipv6(p, addr, proto, tos, payload)
			  : put_ipv4(p, addr, proto, tos, ip_id, payload);
}

size_t wire_write_tcp(uint8_t *buf, const struct wire_addr *addr, uint8_t tos, uint16_t ip_id,
	const struct seg *seg) {
	size_t header = wire_tcp_header(seg);
	uint32_t tcp_len = (uint32_t)header + seg->len;
	uint8_t *p = wire_put_ip(buf, addr, WIRE_PROTO_TCP, tos, ip_id, tcp_len);
	uint64_t sum = wire_addr_sum(addr) + WIRE_PROTO_TCP + tcp_len;

	p = sum32(p, (uint32_t)addr->src_port << 16 | addr->dst_port, &sum);
	p = sum32(p, seg->seq, &sum);
	p = sum32(p, seg->ack, &sum);
	uint32_t offset = (uint32_t)header / 4;
	uint32_t ae = seg->options & SEG_OPT_AE ? 1u << 24 : 0;
	p = sum32(p, offset << 28 | ae | (uint32_t)seg->flags << 16 | seg->window, &sum);
	write_options(p + 4, seg, &sum);
	wire_put32(p, (uint32_t)(uint16_t)~fold64(sum) << 16);
	return WIRE_ETH + wire_ip_header(addr->ipv6) + header;
}

void wire_template_init(struct wire_template *t, const struct wire_addr *addr) {
	uint8_t *p = (uint8_t *)t->eth;

	t->addr = *addr;
	p = wire_put_eth(p, &addr->dst_mac, &addr->src_mac, WIRE_ETHERTYPE_IPV4);
	wire_put16(p, IP_PLAIN);
}

void wire_write_plain(uint8_t *buf, const struct wire_template *t, uint8_t tos, uint16_t ip_id,
	const struct seg *seg) {
	const struct wire_addr *a = &t->addr;
	uint32_t tcp_len = WIRE_HEADER_PLAIN - WIRE_ETH - WIRE_IPV4 + (uint32_t)seg->len;
	uint32_t ip_len = WIRE_IPV4 + tcp_len;
	uint32_t flags = PLAIN_OFFSET | seg->flags;
	uint32_t ports = (uint32_t)a->src_port << 16 | a->dst_port;
	uint64_t addresses = (uint64_t)a->src_ip + a->dst_ip;
	uint64_t ip_sum = addresses + IP_PLAIN + IP_DF + (IP_TTL << 8 | WIRE_PROTO_TCP) + tos
		+ ip_len + ip_id;
	uint64_t tcp_sum = addresses + WIRE_PROTO_TCP + TS_ALIGNED + tcp_len + ports + flags
		+ seg->seq + seg->ack + seg->window + seg->tsval + seg->tsecr;

	memcpy(buf, t->eth, sizeof(t->eth));
	uint8_t *p = buf + WIRE_ETH;
	p[1] = tos;
	p = wire_put16(p + 2, ip_len);
	p = wire_put32(p, (uint32_t)ip_id << 16 | IP_DF);
	p = wire_put32(p, IP_TTL << 24 | WIRE_PROTO_TCP << 16 | (uint16_t)~fold64(ip_sum));
	p = wire_put32(p, a->src_ip);
	p = wire_put32(p, a->dst_ip);
	p = wire_put32(p, ports);
	p = wire_put32(p, seg->seq);
	p = wire_put32(p, seg->ack);
	p = wire_put32(p, flags << 16 | seg->window);
	p = wire_put32(p, (uint32_t)(uint16_t)~fold64(tcp_sum) << 16);
	p = wire_put32(p, TS_ALIGNED);
	p = wire_put32(p, seg->tsval);
	wire_put32(p, seg->tsecr);
}

bool wire_parse_plain(
	const uint8_t *frame, size_t len, bool verify, struct wire_info *info, struct seg *seg) {
	const uint8_t *ip = frame + WIRE_ETH, *tcp = ip + WIRE_IPV4;

	if (len < WIRE_HEADER_PLAIN
		|| wire_get32(frame + 12) >> 8 != (WIRE_ETHERTYPE_IPV4 << 8 | 0x45)
		|| ip[9] != WIRE_PROTO_TCP || (wire_get16(ip + 6) & WIRE_IP_FRAGMENT) != 0
		|| (tcp[12] & 0xf1) != PLAIN_OFFSET >> 8
		|| wire_get32(tcp + WIRE_TCP) != TS_ALIGNED)
		return false;
	uint32_t ip_len = wire_get16(ip + 2), tcp_len = ip_len - WIRE_IPV4;
	if (ip_len < WIRE_HEADER_PLAIN - WIRE_ETH || len < WIRE_ETH + ip_len
		|| !wire_ip_sum_good(ip, WIRE_IPV4))
		return false;
	memcpy(info->addr.dst_mac.b, frame, 6);
	memcpy(info->addr.src_mac.b, frame + 6, 6);
	info->addr.src_ip = wire_get32(ip + 12);
	info->addr.dst_ip = wire_get32(ip + 16);
	info->addr.src_port = wire_get16(tcp);
	info->addr.dst_port = wire_get16(tcp + 2);
	info->ethertype = WIRE_ETHERTYPE_IPV4;
	info->proto = WIRE_PROTO_TCP;
	info->addr.ipv6 = false;
	info->ecn = ip[1] & 3;
	info->dscp = ip[1] >> 2;
	info->ip_len = ip_len;
	info->l4_offset = WIRE_ETH + WIRE_IPV4;
	info->fragment = false;
	seg_header(seg, wire_get32(tcp + 4), wire_get32(tcp + 8),
		(uint16_t)(ip_len - (WIRE_HEADER_PLAIN - WIRE_ETH)), wire_get16(tcp + 14), tcp[13],
		true, wire_get32(tcp + WIRE_TCP + 4), wire_get32(tcp + WIRE_TCP + 8));
	return !verify
		|| tcp_sum_good(tcp, WIRE_HEADER_PLAIN - WIRE_ETH - WIRE_IPV4, tcp_len,
			(uint64_t)info->addr.src_ip + info->addr.dst_ip);
}
