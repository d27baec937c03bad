// SPDX-License-Identifier: BSD-3-Clause
// The list of queue disciplines, and what they share: limits.
#include "switch/aqm/aqm.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

extern const struct aqm_ops aqm_codel;
extern const struct aqm_ops aqm_fifo;

const struct aqm_ops *const aqm_all[] = {
	&aqm_fifo,
	&aqm_codel,
	NULL,
};

const struct aqm_ops *aqm_find(const char *name) {
	for (size_t i = 0; aqm_all[i] != NULL; i++) {
		const struct aqm_ops *ops = aqm_all[i];

		assert(ops->init && ops->enqueue && ops->dequeue && ops->backlog && ops->limit);
		assert((ops->observe == NULL) == (ops->observed[0] == NULL));
		if (strcmp(ops->name, name) == 0)
			return ops;
	}
	return NULL;
}

// Whole bytes or packets of a product of doubles, within what the sums below can hold.
static uint64_t limit_round(double v) {
	return v >= 0x1.0p62 ? UINT64_C(1) << 62 : (uint64_t)(v + 0.5);
}

struct aqm_limit aqm_limit_resolve(const struct limit *limit, const struct aqm_env *env) {
	struct aqm_limit l = {.bytes = UINT64_MAX, .pkts = UINT64_MAX};
	double bytes_per_ns = (double)env->rate_bps / 8e9;

	switch (limit->kind) {
	case LIMIT_BYTES:
		l.bytes = limit_round(limit->value);
		break;
	case LIMIT_PACKETS:
		l.pkts = limit_round(limit->value);
		break;
	case LIMIT_TIME:
		l.bytes = limit_round(limit->value * bytes_per_ns);
		l.overhead_bytes = env->overhead_bytes;
		break;
	case LIMIT_BDP:
		l.bytes = limit_round(limit->value * (double)env->base_rtt_ns * bytes_per_ns);
		l.overhead_bytes = env->overhead_bytes;
		break;
	}
	return l;
}

int aqm_limit_init(struct aqm_limit *l, const struct limit *limit, const struct aqm_env *env,
	struct err *err) {
	*l = aqm_limit_resolve(limit, env);
	if (limit->kind == LIMIT_BDP && env->base_rtt_ns == 0)
		return err_set(err, -EINVAL,
			"limit: a BDP needs a base RTT, but forward and reverse have no delay; "
			"write a limit such as 100pkt, 1MB or 10ms");
	if (!aqm_limit_fits(l, 0, 0, env->mtu_bytes))
		return err_set(err, -EINVAL,
			"limit: no full-sized frame fits: it is %u B, the limit %llu B",
			env->mtu_bytes + l->overhead_bytes, (unsigned long long)l->bytes);
	return 0;
}

uint64_t aqm_ring_whole(
	struct pkt_ring *r, const struct aqm_limit *l, struct pkt *const *pkts, uint32_t n) {
	uint32_t end = r->head + r->count, mask = r->slots - 1;
	struct pkt **slot = r->slot;
	uint64_t count = (uint64_t)r->count + n, bytes = 0;

	if (count > r->slots || count > l->pkts)
		return 0;
	// They are in it once they are counted.
	for (uint32_t i = 0; i < n; i++) {
		slot[(end + i) & mask] = pkts[i];
		bytes += pkts[i]->size_bytes;
	}
	if (r->bytes + bytes + count * l->overhead_bytes > l->bytes)
		return 0;
	r->count += n;
	r->bytes += bytes;
	return bytes;
}

uint64_t aqm_ring_all(struct pkt_ring *r, const struct aqm_limit *l, struct pkt *const *pkts,
	uint32_t n, struct pkt_list *drops) {
	uint64_t before = r->bytes;

	if (aqm_ring_whole(r, l, pkts, n) == 0)
		for (uint32_t i = 0; i < n; i++)
			aqm_ring_put(r, l, pkts[i], drops);
	return r->bytes - before;
}
