// SPDX-License-Identifier: BSD-3-Clause
// The list of queue disciplines, and their limits.
#include "switch/aqm.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

// In the order in which --list prints them.
#define AQMS(V)                                                                                    \
	V(fifo)                                                                                    \
	V(codel)                                                                                   \
	V(cobalt)                                                                                  \
	V(pie)                                                                                     \
	V(docsis_pie)                                                                              \
	V(red)                                                                                     \
	V(step)                                                                                    \
	V(drr)                                                                                     \
	V(fq_codel)                                                                                \
	V(fq_pie)                                                                                  \
	V(dualpi2)                                                                                 \
	V(cake)

#define DECLARE(name) extern const struct aqm_ops aqm_##name;
AQMS(DECLARE)

#define ENTRY(name) &aqm_##name,
const struct aqm_ops *const aqm_all[] = {AQMS(ENTRY) NULL};

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

// Rounds a number of bytes or packets to an integer, within the range of the sums below.
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

int aqm_limit_known(const char *name, const struct limit *limit, const struct aqm_env *env,
	const char *such_as, struct err *err) {
	bool bdp = limit->kind == LIMIT_BDP;

	if (bdp && env->base_rtt_ns == 0)
		return err_set(err, -EINVAL,
			"%s: a BDP needs a base RTT, but its paths have no delay; write %s", name,
			such_as);
	if ((bdp || limit->kind == LIMIT_TIME) && env->rate_bps == 0)
		return err_set(err, -EINVAL,
			"%s: %s needs a rate, but the link's is 0 at the start; "
			"write it in packets or bytes",
			name, bdp ? "a BDP" : "a time");
	return 0;
}

int aqm_rate_known(const char *what, const struct aqm_env *env, struct err *err) {
	if (env->rate_bps > 0)
		return 0;
	return err_set(
		err, -EINVAL, "%s: the link's rate decides it, and that is 0 at the start", what);
}

int aqm_limit_init(struct aqm_limit *l, const struct limit *limit, const struct aqm_env *env,
	struct err *err) {
	int rc = aqm_limit_known("limit", limit, env, "a limit such as 100pkt, 1MB or 10ms", err);

	if (rc < 0)
		return rc;
	*l = aqm_limit_resolve(limit, env);
	if (!aqm_limit_fits(l, 0, 0, env->mtu_bytes))
		return err_set(err, -EINVAL,
			"limit: no full-sized frame fits: it is %u B, the limit %llu B",
			env->mtu_bytes + l->overhead_bytes, (unsigned long long)l->bytes);
	return 0;
}
