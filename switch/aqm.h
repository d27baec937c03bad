// SPDX-License-Identifier: BSD-3-Clause
// Queue disciplines: one file each, one ops table per file.
//
// Ownership: enqueue takes the packet; dequeue returns one. The discipline pushes packets that it
// drops on `drops` with a reason (pkt_drop); the caller counts and frees them. A discipline never
// frees, logs or reads a clock. Times are theoretical: `now_ns` of an enqueue is the packet's
// arrival, `now_ns` of a dequeue the moment at which the link becomes free, however late the loop
// runs.
//
// A mark sets p->ecn = ECN_CE and PKT_MARKED in p->flags, only on packets that are ECN capable.
// The state is zeroed, then param_defaults and the config fill it, then init is called.
#pragma once
#include "common/base/ns.h"
#include "common/base/param.h"
#include "common/base/pkt.h"

#define AQM_OBSERVED 4

struct serialiser;

// A discipline's environment.
struct aqm_env {
	// Of the link at the start; 0: it begins down, and nothing can be computed from its rate.
	uint64_t rate_bps;
	uint64_t base_rtt_ns; // for limits in BDP; the sum of the constant delays of a round trip
	uint32_t overhead_bytes; // per frame on the link
	uint32_t mtu_bytes; // largest frame with FCS
	uint64_t seed; // hash(run seed, path, stage)
	const struct pkt_owner *owner; // of packets; NULL: it is asked for nothing
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

// All members must be set, except those that may be NULL.
struct aqm_ops {
	const char *name;
	const char *summary; // one line, with the paper or RFC
	const char *reference; // the paper's authors and title, or the RFC, for --list; NULL: none
	const struct param *params;
	size_t state_size;
	const char *observed[AQM_OBSERVED]; // names of observe()'s numbers; NULL: unused
	bool flows; // reads packets' flow_id; live, it is computed only if something needs it

	int (*init)(void *q, const struct aqm_env *env, struct err *err);
	void (*fini)(void *q); // may be NULL: nothing to free; also called when init failed
	void (*enqueue)(void *q, struct pkt *p, uint64_t now_ns, struct pkt_list *drops);
	struct pkt *(*dequeue)(void *q, uint64_t now_ns, struct pkt_list *drops);
	// For a queue before a wire. The first takes packets in order of arrival and serves
	// departures due before each; the second, called when the wire's frame is due, returns up
	// to `max` packets that have left by now_ns. AQM_BURSTS (bursts.h) makes both from the two
	// above. Both may be NULL: then each packet costs a call. They write no records: if a
	// stream is open, packets are processed one by one.
	void (*enqueue_burst)(void *q, struct serialiser *serialiser, struct pkt *const *pkts,
		uint32_t n, struct pkt_list *drops);
	uint32_t (*dequeue_burst)(void *q, struct serialiser *serialiser, uint64_t now_ns,
		struct pkt **pkts, uint32_t max, struct pkt_list *drops);
	// Of a discipline whose dequeue takes the oldest packet and does nothing else: appends
	// packets if all of them fit. False: nothing was done. NULL: it is another one.
	bool (*enqueue_whole)(void *q, struct pkt *const *pkts, uint32_t n);
	// A `live` parameter was changed. NULL: nothing follows.
	void (*update)(void *q);
	struct backlog (*backlog)(const void *q);
	struct aqm_limit (*limit)(const void *q); // as resolved by init
	// Internal values for plots, zero before the call, recorded once per interval
	// (TEL_EV_OBSERVED); may be NULL.
	void (*observe)(const void *q, double out[AQM_OBSERVED]);
	// Whether it reads packets' headers (pkt_headers), once its parameters are known. NULL:
	// no.
	bool (*headers)(const void *q);
	// True once a packet's fate depended on a draw or on the seed. NULL: on none.
	bool (*random)(const void *q);
	size_t rng; // offset of its random stream, which a seed begins anew; 0: none
};

// How a control law takes the oldest packet off a queue; *left_bytes becomes the rest's. NULL: the
// queue is empty.
typedef struct pkt *aqm_get_fn(void *queue, uint64_t *left_bytes);

// Every discipline in the order --list prints them; ends with NULL.
extern const struct aqm_ops *const aqm_all[];
const struct aqm_ops *aqm_find(const char *name);

// Limits in bytes and packets count frames with FCS; those in time and BDP count the link's
// overhead too.
struct aqm_limit aqm_limit_resolve(const struct limit *limit, const struct aqm_env *env);
// -EINVAL and a sentence that begins with `name` if what a limit means is not known: a BDP without
// a round trip, a BDP or a time on a link that begins down. `such_as`: what to write then.
int aqm_limit_known(const char *name, const struct limit *limit, const struct aqm_env *env,
	const char *such_as, struct err *err);
// For a discipline that computes `what` from the link's rate.
int aqm_rate_known(const char *what, const struct aqm_env *env, struct err *err);
// aqm_limit_resolve, for a discipline's init, with checks: a BDP needs a base RTT, and a full-sized
// frame must fit.
int aqm_limit_init(
	struct aqm_limit *l, const struct limit *limit, const struct aqm_env *env, struct err *err);
// Whether a packet of `size` bytes fits.
static inline bool aqm_limit_fits(
	const struct aqm_limit *l, uint64_t pkts, uint64_t bytes, uint32_t size) {
	return pkts < l->pkts && bytes + size + (pkts + 1) * l->overhead_bytes <= l->bytes;
}
