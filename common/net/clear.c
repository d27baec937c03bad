// SPDX-License-Identifier: BSD-3-Clause
#include "common/net/clear.h"

#include "common/net/wire.h"
#include "common/net/wire_accecn.h"
#include "common/net/wire_ip.h"
#include "common/net/wire_put.h"

#define TCP_CHECKSUM 16 // in the TCP header
#define OPTIONS_MAX 40
#define OPT_EOL 0
#define OPT_NOP 1
#define OPT_SACK_OK 4
#define OPT_SACK 5

static bool is_cleared(const uint8_t *option, bool syn, uint8_t flags) {
	uint8_t bit = 0;

	if (wire_is_accecn(option))
		bit = syn ? PKT_CLEAR_ACCECN_SYN : PKT_CLEAR_ACCECN;
	else if (option[0] == OPT_SACK_OK || option[0] == OPT_SACK)
		bit = syn ? PKT_CLEAR_SACK_SYN : PKT_CLEAR_SACK;
	return (flags & bit) != 0;
}

void clear_frame(uint8_t *frame, size_t len, uint8_t flags) {
	struct wire_walk w = wire_walk(frame, len);
	size_t header = wire_tcp_size(frame, len, &w), size;
	uint8_t *tcp = frame + w.l4, was[OPTIONS_MAX];
	uint16_t sum;

	if (header == 0)
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
