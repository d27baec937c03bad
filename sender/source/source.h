// SPDX-License-Identifier: BSD-3-Clause
// Sources: when flows send and how much. One file per source, or per family of sources, with one
// ops table each.
//
// A source gives its group a schedule of transfers. Four kinds differ in what a transfer waits for:
//
//	SOURCE_ONCE      one transfer per flow, when the flow starts
//	SOURCE_ARRIVALS  transfers of the group, at times of their own; each opens a connection on a
//	                 free flow
//	SOURCE_PAUSES    transfers of each flow, a pause after the end of the one before
//	SOURCE_WRITES    transfers of each flow, at times of their own, all on one connection
//
// Sizes, pauses and times between arrivals are drawn from a random stream that is named by the
// group (and by the flow, where each flow has its own schedule). So the schedule follows from the
// config and the seed alone: a live run is offered the same transfers as a run in virtual time,
// whatever the network does and however many lcores there are. sender/workload/workload.c carries
// schedules out.
#pragma once
#include "common/base/param.h"
#include "common/base/rng.h"
#include "common/config/config.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SOURCE_ENDLESS UINT64_MAX
#define SOURCE_STATE_BYTES 48

enum source_kind { SOURCE_ONCE, SOURCE_ARRIVALS, SOURCE_PAUSES, SOURCE_WRITES };

// The next transfer of a schedule.
struct transfer {
	// Since the arrival before it (first: since the start), or the pause before it. NEVER_NS:
	// there is none.
	uint64_t gap_ns;
	uint64_t bytes; // payload; SOURCE_ENDLESS: what is sent in `on_ns`
	uint64_t on_ns;
	uint64_t service_ns; // before its data is there; its completion time includes it
};

// What the flow has achieved, for sources that adapt to it. Zeros but for SOURCE_WRITES.
struct source_seen {
	uint64_t now_ns;
	uint64_t acked_bytes; // of all its transfers
	uint64_t written_bytes;
	uint32_t unfinished; // transfers that were written and are not acknowledged
	// The transfer that ended last; last_ns: since it was due or, if that is later, the one
	// before it ended. 0: none.
	uint64_t last_bytes, last_ns;
	// Payload that its control lets it send: the window per smoothed RTT, at most the pacing
	// rate. 0: not known yet.
	double permitted_bps;
};

struct transport_ops; // transport.h

struct source_ops {
	const char *name;
	const char *summary;
	const char *reference; // paper, for --list; NULL: none
	const struct param *params;
	// Keys besides the parameters, which configure() reads; NULL: none.
	const struct param *also;
	size_t config_size;
	enum source_kind kind;
	bool random; // the seed decides what it does
	const struct transport_ops
		*transport; // SOURCE_ONCE: in place of TCP with a control; NULL: TCP
	// probe.h: segments of one byte, from when the connection is open, whose RTTs are noted.
	bool probes;

	// Reads more of the source's map, after `params`; checks them together. NULL: nothing more.
	int (*configure)(void *config, struct config_node *node, struct err *err);
	// Frees what configure allocated, also after it failed; NULL: nothing.
	void (*fini)(void *config);
	// SOURCE_ONCE: payload bytes of one flow, or SOURCE_ENDLESS; `rng` is the group's own.
	uint64_t (*bytes)(const void *config, struct rng *rng);
	// The other kinds: draws the next transfer. `state` has SOURCE_STATE_BYTES bytes, zero at
	// first.
	void (*next)(const void *config, void *state, struct rng *rng,
		const struct source_seen *seen, struct transfer *t);
	// SOURCE_PAUSES: whether a flow's transfers use one connection; NULL: no.
	bool (*keeps)(const void *config);
};

extern const struct source_ops *const source_all[]; // ends with NULL
// Whether transfers of a group with this source are recorded one by one.
static inline bool source_scheduled(const struct source_ops *s) {
	return s->kind != SOURCE_ONCE;
}
// Whether a flow's transfers use one connection.
static inline bool source_keeps(const struct source_ops *s, const void *config) {
	return s->kind == SOURCE_WRITES || (s->keeps != NULL && s->keeps(config));
}
// An exponentially distributed time.
uint64_t source_exponential_ns(struct rng *rng, double mean_ns);
