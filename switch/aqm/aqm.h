// SPDX-License-Identifier: BSD-3-Clause
// Queue disciplines: one file each, one ops table per file.
//
// Ownership: enqueue takes the packet; dequeue gives one back. Whatever the discipline drops it
// pushes on `drops` with a reason (pkt_drop); the caller counts and frees. A discipline never
// frees, logs or reads a clock. Times are theoretical: `now_ns` of an enqueue is the packet's
// arrival, of a dequeue the moment the link is free, however late the loop runs.
//
// A mark sets p->ecn = ECN_CE and PKT_MARKED in p->flags, only on packets that are ECN capable.
// The state is zeroed, then param_defaults and the config fill it, then init is called.
#pragma once
#include "common/base/ns.h"
#include "common/base/param.h"
#include "common/base/pkt.h"

#define AQM_OBSERVED 4

struct wire;

// What a discipline may know of its surroundings.
struct aqm_env {
	uint64_t rate_bps; // of the link at the start
	uint64_t base_rtt_ns; // for limits in BDP; the sum of the constant delays of both paths
	uint32_t overhead_bytes; // per frame on the link
	uint32_t mtu_bytes; // largest frame with FCS
	uint64_t seed; // hash(run seed, path, stage)
};

struct backlog {
	uint64_t pkts;
	uint64_t bytes;
};

// A queue limit resolved against a link: enforced as bytes and packets.
struct aqm_limit {
	uint64_t bytes; // of frames plus `overhead_bytes` each
	uint64_t pkts;
	uint32_t overhead_bytes; // 0 for limits given in bytes: these count frames only
};

// All of it must be there but what may be NULL.
struct aqm_ops {
	const char *name;
	const char *summary; // one line, with the paper or RFC
	const struct param *params;
	size_t state_size;
	const char *observed[AQM_OBSERVED]; // names of observe()'s numbers; NULL: unused

	int (*init)(void *q, const struct aqm_env *env, struct err *err);
	void (*fini)(void *q); // may be NULL: nothing to free; also called when init failed
	void (*enqueue)(void *q, struct pkt *p, uint64_t now_ns, struct pkt_list *drops);
	struct pkt *(*dequeue)(void *q, uint64_t now_ns, struct pkt_list *drops);
	// Of a queue before a wire: packets in the order of their arrivals, with what is due before each; and,
	// when its frame is due, what has left by now_ns, `max` at most. Made of the two above by AQM_BURSTS
	// (bursts.h); both may be NULL, and a packet costs a call. Nothing is recorded of these packets: where a
	// stream is open they go one by one.
	void (*enqueue_burst)(void *q, struct wire *wire, struct pkt *const *pkts, uint32_t n,
		struct pkt_list *drops);
	uint32_t (*dequeue_burst)(void *q, struct wire *wire, uint64_t now_ns, struct pkt **pkts,
		uint32_t max, struct pkt_list *drops);
	struct backlog (*backlog)(const void *q);
	struct aqm_limit (*limit)(const void *q); // as resolved by init
	// The numbers worth plotting, zero at first, recorded once per interval (TEL_EV_OBSERVED); may be
	// NULL.
	void (*observe)(const void *q, double out[AQM_OBSERVED]);
};

// Every discipline in the order --list prints them; ends with NULL.
extern const struct aqm_ops *const aqm_all[];
const struct aqm_ops *aqm_find(const char *name);

// Bytes and packets count frames (FCS included); times and BDPs count what the link transmits.
struct aqm_limit aqm_limit_resolve(const struct limit *limit, const struct aqm_env *env);
// The same with the checks a discipline's init owes its user: a BDP needs a base RTT, and a
// full-sized frame must fit.
int aqm_limit_init(
	struct aqm_limit *l, const struct limit *limit, const struct aqm_env *env, struct err *err);
// Does a packet of `size` still fit?
static inline bool aqm_limit_fits(
	const struct aqm_limit *l, uint64_t pkts, uint64_t bytes, uint32_t size) {
	return pkts < l->pkts && bytes + size + (pkts + 1) * l->overhead_bytes <= l->bytes;
}
