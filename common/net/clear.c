// SPDX-License-Identifier: BSD-3-Clause
#include "common/net/clear.h"

#include "common/net/wire.h"
#include "common/net/wire_accecn.h"
#include "common/net/wire_ip.h"
#include "common/net/wire_put.h"

#define VLAN 0x8100
#define VLAN_SERVICE 0x88a8
#define ETHERTYPE_IPV6 0x86dd
#define IPV4_OFFSET 0x1fff
#define IPV6_HEADER 40
#define TCP_CHECKSUM 16 // in the TCP header
#define OPTIONS_MAX 40
#define OPT_EOL 0
#define OPT_NOP 1
#define OPT_SACK_OK 4
#define OPT_SACK 5

// The TCP header behind up to two VLAN tags, and its length; NULL: there is none, or not all of it.
static uint8_t *tcp_header(uint8_t *frame, size_t len, size_t *header) {
	size_t ip = WIRE_ETH, tcp;

	while (ip + 4 <= len && ip < WIRE_ETH + 8
		&& (wire_get16(frame + ip - 2) == VLAN
			|| wire_get16(frame + ip - 2) == VLAN_SERVICE))
		ip += 4;
	if (ip + WIRE_IPV4 <= len && wire_get16(frame + ip - 2) == WIRE_ETHERTYPE_IPV4) {
		tcp = ip + 4u * (frame[ip] & 15);
		if (frame[ip + 9] != WIRE_PROTO_TCP
			|| (wire_get16(frame + ip + 6) & IPV4_OFFSET) != 0)
			return NULL;
	} else if (ip + IPV6_HEADER <= len && wire_get16(frame + ip - 2) == ETHERTYPE_IPV6) {
		tcp = ip + IPV6_HEADER;
		if (frame[ip + 6] != WIRE_PROTO_TCP)
			return NULL;
	} else {
		return NULL;
	}
	if (tcp + WIRE_TCP > len)
		return NULL;
	*header = 4u * (frame[tcp + 12] >> 4);
	return *header >= WIRE_TCP && tcp + *header <= len ? frame + tcp : NULL;
}

static bool is_cleared(const uint8_t *option, bool syn, uint8_t flags) {
	uint8_t bit = 0;

	if (wire_is_accecn(option))
		bit = syn ? PKT_CLEAR_ACCECN_SYN : PKT_CLEAR_ACCECN;
	else if (option[0] == OPT_SACK_OK || option[0] == OPT_SACK)
		bit = syn ? PKT_CLEAR_SACK_SYN : PKT_CLEAR_SACK;
	return (flags & bit) != 0;
}

void clear_frame(uint8_t *frame, size_t len, uint8_t flags) {
	size_t header, size;
	uint8_t *tcp = tcp_header(frame, len, &header), was[OPTIONS_MAX];
	uint16_t sum;

	if (tcp == NULL)
		return;
	memcpy(was, tcp + WIRE_TCP, header - WIRE_TCP);
	for (uint8_t *p = tcp + WIRE_TCP; p < tcp + header && *p != OPT_EOL; p += size) {
		size_t left = (size_t)(tcp + header - p);

		size = 1;
		if (*p == OPT_NOP)
			continue;
		if (left < 2 || p[1] < 2 || p[1] > left)
			break;
		size = p[1];
		if (is_cleared(p, (tcp[13] & SEG_SYN) != 0, flags))
			memset(p, OPT_NOP, size);
	}
	sum = wire_get16(tcp + TCP_CHECKSUM);
	for (size_t i = 0; i < header - WIRE_TCP; i += 2)
		sum = wire_csum_replace(sum, wire_get16(was + i), wire_get16(tcp + WIRE_TCP + i));
	wire_put16(tcp + TCP_CHECKSUM, sum);
}

void clear_seg(struct seg *s, uint8_t flags) {
	bool syn = (s->flags & SEG_SYN) != 0;

	if ((s->options & SEG_OPT_UDP) != 0)
		return;
	if ((flags & (syn ? PKT_CLEAR_ACCECN_SYN : PKT_CLEAR_ACCECN)) != 0)
		s->options &= (uint8_t)~SEG_OPT_ACCECN;
	if ((flags & (syn ? PKT_CLEAR_SACK_SYN : PKT_CLEAR_SACK)) != 0) {
		s->options &= (uint8_t)~SEG_OPT_SACK_OK;
		s->sack_count = 0;
	}
}
