// SPDX-License-Identifier: BSD-3-Clause
// Targeted loss: the segment that carries one byte of one flow is lost, and so are its first
// retransmissions. What the sender does then follows from RFCs alone (TLP, RTO, F-RTO), and can be
// computed.
//
//	byte 0 is the first one of payload: the sequence number behind that of the SYN. A FIN
//	counts as a byte. Lost is each segment with  seq <= first + byte < seq + bytes,
//	1 + retransmissions of them in all
//
// Only the first connection of the flow counts: a SYN of another sequence number ends it. If the
// first segment that comes is no SYN, since the connection is older than the run, bytes count from
// that segment on. A sequence number comes again after 4 GiB; by then the target was lost as often
// as it should be.
//
// It asks for packets' headers (pkt_headers), which the owner of packets reads for such a stage
// only.
#include "common/base/u64.h"
#include "switch/stage/instant.h"

enum { TARGET_NONE, TARGET_OPEN, TARGET_OVER };

struct target {
	struct instant pass;
	uint64_t flow, byte, retransmissions;

	uint64_t lost;
	uint32_t first; // sequence number of byte 0
	int state; // of the flow's first connection
};

static const struct param params[] = {
	{"flow", NULL, "its number, counted from 0 over all groups", UNIT_NONE,
		PARAM_U64(struct target, flow), 0, UINT32_MAX - 1},
	{"byte", NULL, "of its payload, counted from 0: the segment that has it is lost", UNIT_NONE,
		PARAM_U64(struct target, byte), 0, UINT32_MAX},
	{"retransmissions", "0", "that are lost too: the first ones of this byte", UNIT_NONE,
		PARAM_U64(struct target, retransmissions), 0, 1000},
	PARAM_END,
};

static int target_init(void *self, const struct stage_env *env, struct err *err) {
	struct target *t = self;

	t->pass.env = env;
	return 0;
}

static bool has_target(struct target *t, const struct pkt *p) {
	if (p->flow_id != t->flow || t->state == TARGET_OVER || t->lost > t->retransmissions)
		return false;
	struct pkt_headers h = pkt_headers(t->pass.env->owner, p);
	uint32_t first = h.seq + h.syn;

	if (h.seq_count == 0 && !h.syn) // an ACK
		return false;
	if (t->state == TARGET_NONE) {
		t->state = TARGET_OPEN;
		t->first = first;
	} else if (h.syn && first != t->first) {
		t->state = TARGET_OVER;
		return false;
	}
	return t->first + (uint32_t)t->byte - first < h.seq_count;
}

static void target_push(void *self, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	struct target *t = self;

	for (uint32_t i = 0; i < n; i++) {
		if (has_target(t, pkts[i])) {
			t->lost++;
			stage_drop(t->pass.env, drops, pkts[i], DROP_LOSS);
		} else {
			instant_pass(&t->pass, pkts[i]);
		}
	}
}

const struct stage_ops stage_loss_target = {
	.name = "loss_target",
	.summary = "loses the segment with a given byte of a flow, and its first retransmissions",
	.params = params,
	.state_size = sizeof(struct target),
	.init = target_init,
	.push = target_push,
	.pop = instant_pop,
	.next_ns = instant_next_ns,
	.backlog = instant_backlog,
	.needs = &(const struct stage_needs){.flows = stage_always, .headers = stage_always},
};
