// SPDX-License-Identifier: BSD-3-Clause
#include "common/net/headers.h"

#include "common/net/wire.h"
#include "common/net/wire_ip.h"

#define TCP_FLAGS 13
#define TCP_OFFSET 12

struct pkt_headers headers_read(const uint8_t *frame, size_t len) {
	struct pkt_headers h = {0};
	struct wire_info w;

	if (len < WIRE_ETH + WIRE_IPV4 || !wire_is_ipv4(frame))
		return h;
	h.dscp = frame[WIRE_ETH + 1] >> 2;
	size_t tcp = WIRE_ETH + (size_t)(frame[WIRE_ETH] & 15) * 4;

	if (frame[WIRE_ETH + 9] != WIRE_PROTO_TCP || len < tcp + WIRE_TCP)
		return h;
	wire_read(frame, &w);
	size_t end = WIRE_ETH + w.ip_len,
	       payload = tcp + (size_t)(frame[tcp + TCP_OFFSET] >> 4) * 4;

	if (w.fragment)
		return h;
	h.seq = wire_get32(frame + tcp + 4);
	h.seq_count = (uint16_t)((end > payload ? end - payload : 0)
		+ ((frame[tcp + TCP_FLAGS] & SEG_FIN) != 0));
	h.syn = (frame[tcp + TCP_FLAGS] & SEG_SYN) != 0;
	return h;
}
