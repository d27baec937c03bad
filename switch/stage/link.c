// SPDX-License-Identifier: BSD-3-Clause
// A link: one queue discipline and a serialiser.
//
// The serialiser is a virtual finish time (as in GCRA, ITU-T I.371), not a token bucket: no burst,
// and an exact rate in the long run.
//
//	start     = max(arrival, end of the frame before)
//	departure = start + bytes on the wire * 8 / rate
//
// serial.h has the arithmetic: a busy link's rate is off by less than 1e-10 up to 1 Tbit/s.
//
// `framing` and `overhead` say what a frame takes on the wire (framing.c): with the defaults,
// Ethernet's 24 B on top of the frame without FCS, a rate of 10 Gbit/s is 10GbE on the wire, where
// a frame of 1514 B takes 1538 B.
//
// Logical time: a packet is dequeued at the moment the wire becomes free, and the discipline gets
// that time, however late the loop runs. A departure precedes an arrival at the same time. The
// frame on the wire is not in the queue. Limits in BDP or time stay as resolved at the start.
//
// A new rate applies at once, to the unsent part of the frame on the wire. Departures already taken
// stay correct:
// pop returns a frame no earlier than its end, so the frame on the wire is the only one with an end
// in the future that was computed with the old rate. (A path serves its links up to the time of a
// change before it.)
//
// At rate 0 the link is down: the frame on the wire is interrupted, packets wait in the queue, and
// nothing is lost but what the queue drops. With a rate again the rest of that frame is sent first.
// Of a link that is down from the start, limits in BDP or time are those of the lowest rate, and so
// is all that disciplines compute from the rate at the start (COBALT: the time of four frames; RED:
// thresholds and weight; DOCSIS-PIE: delays).
#include "switch/stage/link.h"

#include "common/base/u64.h"

#define RATE_MIN_BPS 1000

struct constant_link {
	struct link link;
	uint64_t rate_bps;
};

static const struct param params[] = {
	{"rate", NULL, "bits per second on the wire; 0: the link is down", UNIT_RATE_BPS,
		PARAM_U64(struct constant_link, rate_bps), RATE_MIN_BPS, 1e12, .zero = true,
		.live = true},
	LINK_FRAMING_PARAM(struct constant_link),
	PARAM_END,
};

static const struct param also[] = {LINK_QUEUE_PARAM, FRAMING_OVERHEAD_PARAM, PARAM_END};

static void constant_update(void *self, uint64_t now_ns) {
	struct constant_link *c = self;

	serialiser_rate(&c->link.serialiser, now_ns, c->rate_bps);
}

static int constant_init(void *self, const struct stage_env *env, struct err *err) {
	struct constant_link *c = self;

	return link_begin(&c->link, env, c->rate_bps, c->rate_bps, err);
}

static uint64_t constant_rate_bps(const void *self) {
	const struct constant_link *c = self;

	return c->rate_bps;
}

const struct stage_ops stage_link = {
	.name = "link",
	.summary = "a queue and a serialiser of constant rate",
	.reference = "virtual finish time as in GCRA, ITU-T I.371",
	.params = params,
	.state_size = sizeof(struct constant_link),
	.init = constant_init,
	.fini = link_fini,
	.push = link_push,
	.pop = link_pop,
	.next_ns = link_next_ns,
	.backlog = link_backlog,
	.config = &(const struct stage_config){.also = also,
		.configure = link_configure,
		.update = constant_update,
		.queue = link_part},
	.capacity =
		&(const struct stage_capacity){.limit = link_limit, .rate_bps = constant_rate_bps},
	.figures =
		&(const struct stage_figures){
			.serve = link_serve, .read = link_figures, .defer = link_defer},
	.observer = &link_observer,
	.needs =
		&(const struct stage_needs){
			.random = link_random, .flows = link_flows, .headers = link_headers},
};
