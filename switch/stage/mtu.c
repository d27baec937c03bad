// SPDX-License-Identifier: BSD-3-Clause
// A link's MTU: an IP packet that is larger is dropped (`too_big`), and its sender is told so by
// ICMP "fragmentation needed" (RFC 1191) or ICMPv6 "packet too big" (RFC 8201), unless the hop is a
// black hole. No packet is fragmented: all count as sent with "don't fragment", as TCP's are.
//
// The message goes on along the path in the packet's place, at the time of its arrival, and is
// turned round at the path's end, in virtual time by the receiver, live by the switch: it comes
// back by the way of the ACKs, as if the hop was next to the receiver. Stages behind this one delay
// it, and may lose it. The ledger counts it as `duplicated`: in + duplicated = out + drops +
// inside.
//
// Where we differ from routers, and why: each packet gets a message, where Linux sends one a second
// to a destination at most; the first one is what counts.
#include "common/net/wire.h"
#include "switch/stage/instant.h"

struct mtu {
	struct instant pass;
	uint64_t mtu;
	bool black_hole;
};

static const struct param params[] = {
	{"mtu", "1500B", "largest IP packet that passes, header included", UNIT_BYTES,
		PARAM_U64(struct mtu, mtu), 68, 65000, .live = true},
	{"black_hole", "no", "drop what is larger without telling its sender", UNIT_NONE,
		PARAM_BOOL(struct mtu, black_hole), .live = true},
	PARAM_END,
};

static int mtu_init(void *self, const struct stage_env *env, struct err *err) {
	struct mtu *m = self;

	m->pass.env = env;
	return 0;
}

static void refuse(struct mtu *m, struct pkt *p, struct pkt_list *drops) {
	const struct stage_env *env = m->pass.env;
	struct pkt *answer = NULL;

	if (!m->black_hole && (p->flags & PKT_TOO_BIG) == 0)
		answer = stage_too_big(env, p, (uint32_t)m->mtu);
	stage_drop(env, drops, p, DROP_TOO_BIG);
	if (answer != NULL)
		instant_pass(&m->pass, answer);
}

static void mtu_push(void *self, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	struct mtu *m = self;

	for (uint32_t i = 0; i < n; i++) {
		if (pkts[i]->size_bytes > m->mtu + WIRE_ETH + WIRE_FCS)
			refuse(m, pkts[i], drops);
		else
			instant_pass(&m->pass, pkts[i]);
	}
}

const struct stage_ops stage_mtu = {
	.name = "mtu",
	.summary = "drops packets that are larger than a link's MTU, and tells their senders",
	.reference = "RFC 1191, RFC 8201 (path MTU discovery)",
	.params = params,
	.state_size = sizeof(struct mtu),
	.init = mtu_init,
	.push = mtu_push,
	.pop = instant_pop,
	.next_ns = instant_next_ns,
	.backlog = instant_backlog,
	.needs = &(const struct stage_needs){.copies = true},
};
