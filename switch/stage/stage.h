// SPDX-License-Identifier: BSD-3-Clause
// Stages of a path: link, delay, loss, ...
//
// At each step, packets that have arrived are pushed; packets that are due are popped and pushed
// into the next stage.
//
// Logical time: a packet enters with arrival_ns = the theoretical time it left the stage before,
// and pop sets arrival_ns to the theoretical time it leaves this one, at most now. Packets enter
// in order of arrival_ns and leave in order of departure. A stage must decide by these times
// only, so that the result does not depend on when or how often it is called.
//
// Code outside this folder does not know the types of stages: an operation that only some stages
// have may be NULL. A stage with `figures` is called a link by the summary, interval records, top,
// ctl and the report.
#pragma once
#include "common/base/ns.h"
#include "common/base/param.h"
#include "common/base/pkt.h"
#include "common/config/config.h"
#include "common/telemetry/telemetry.h"
#include "switch/aqm/aqm.h"

struct path;
struct stage_env;
struct flow_delays;

// Sees packets on their way (captures): all of them, whether or not there are records of them. It
// outlives the path, and changes nothing.
struct path_tap {
	// They have their numbers, and enter the first stage next; they have left the last.
	void (*arrived)(
		struct path_tap *tap, const struct path *path, struct pkt *const *pkts, uint32_t n);
	void (*departed)(
		struct path_tap *tap, const struct path *path, struct pkt *const *pkts, uint32_t n);
	// The events of stage_trace.
	void (*event)(struct path_tap *tap, const struct stage_env *env,
		enum tel_packet_event event, const struct pkt *p, uint64_t ts_ns);
};

// Copies that the stages of a path have made.
struct stage_copies {
	struct pkt_count made; // with those that there was no memory for
	struct pkt_count *no_memory; // drops of the path
};

// The surroundings of a stage; outlives the stage.
struct stage_env {
	const char *name; // "forward.link", unique in a run; seeds its random stream
	uint64_t run_seed;
	uint64_t base_rtt_ns; // for limits in BDP: sum of the constant delays of a round trip
	uint32_t mtu_bytes; // largest frame with FCS
	// Extra constant delay per delay class (flow group), in the one delay stage that carries
	// it.
	const uint64_t *class_extra_ns;
	uint32_t class_count;
	// Delays of single flows (flow_delays.h); NULL: all of a group have the same.
	const struct flow_delays *flow_delays;
	uint64_t max_pkts; // packets a delay line must be able to hold
	const struct pkt_owner *owner; // of its packets
	struct stage_copies *copies;
	uint32_t copy_bit; // set in the number of a copy; differs between stages of a path
	// Telemetry of links; NULL: off.
	struct tel *tel_packets;
	const struct tel_run *tel_run;
	struct path_tap *tap; // NULL: none
	uint8_t link_index; // of a stage with figures in the summary; STAGE_NO_LINK: it has none
	uint8_t path_index, stage_index; // of the path in the config, of the stage in the path
};

#define STAGE_NO_LINK UINT8_MAX

struct stage_stats;

struct stage_ops {
	const char *name;
	const char *summary;
	const char *reference; // paper or RFC, for --list; NULL: none
	const struct param *params;
	// Keys besides the parameters, which configure() reads; NULL: none.
	const struct param *also;
	size_t state_size; // zeroed, then the table's fields are filled, then configure, init
	bool copies; // it makes at most one copy of a packet (stage_copy)
	const char *observed[AQM_OBSERVED]; // names of observe()'s numbers; NULL: unused

	int (*configure)(void *st, struct config_node *node, struct err *err); // NULL: nothing more
	int (*init)(void *st, const struct stage_env *env, struct err *err);
	void (*fini)(void *st); // may be NULL; also called when configure or init failed
	// Takes a burst, so that a stage keeps its state in registers and packets can be
	// prefetched.
	void (*push)(void *st, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops);
	// Returns up to `max` packets that leave by now_ns, none if `max` is 0; if fewer, no more
	// are due.
	uint32_t (*pop)(
		void *st, uint64_t now_ns, struct pkt **pkts, uint32_t max, struct pkt_list *drops);
	// Earliest time at which pop may return a packet; NEVER_NS: not before a push. Virtual time
	// jumps there; live loops poll.
	uint64_t (*next_ns)(const void *st);
	struct backlog (*backlog)(const void *st); // packets inside
	// Processes all departures due by now_ns; the packets wait for pop. NULL: pop does this.
	void (*serve)(void *st, uint64_t now_ns, struct pkt_list *drops);
	// Statistics of its queue and wire, after it was served to now_ns. NULL: it keeps none.
	struct stage_stats *(*figures)(void *st, uint64_t now_ns);
	// Internal values for plots, zero before the call, recorded once per interval
	// (TEL_EV_OBSERVED). Returns the observer's name: the stage's or its discipline's; NULL:
	// there are no values. May be NULL.
	const char *(*observe)(const void *st, double out[AQM_OBSERVED]);
	// A `live` parameter of the table was changed at now_ns; may be NULL.
	void (*update)(void *st, uint64_t now_ns);
	// Minimum time between a packet's arrival and its departure (the lookahead of virtual
	// time). Known once the parameters are read, before init.
	uint64_t (*min_delay_ns)(const void *st); // NULL: 0
	// True once a packet's fate depended on a draw from its random stream. NULL: it has no
	// random stream.
	bool (*random)(const void *st);
	// Whether it reads packets' flow_id. NULL: no.
	bool (*flows)(const void *st);
	// Whether it reads packets' headers (pkt_headers). NULL: no.
	bool (*headers)(const void *st);
	// Longest time a packet may stay; determines env->max_pkts. NULL: the stage has no such
	// bound.
	uint64_t (*max_delay_ns)(const void *st);
	// The limit of all its queues and its rate, to size memory. NULL: it has none.
	struct aqm_limit (*limit)(const void *st);
	uint64_t (*rate_bps)(const void *st);
	// Of a stage without figures that serialises: the part of the time up to now_ns for which
	// its wire, or the busiest of them, was in use. NULL: it does not serialise, or it has
	// figures.
	double (*busy)(const void *st, uint64_t now_ns);
};

extern const struct stage_ops *const stage_all[]; // ends with NULL
const struct stage_ops *stage_find(const char *name);

// Whether stage_trace has a reader.
static inline bool stage_traced(const struct stage_env *env) {
	return tel_on(env->tel_packets) || env->tap != NULL;
}
// Records an event of p at ts_ns, if the stream is on and p's flow is recorded. queue_bytes: the
// backlog after the event.
void stage_trace(const struct stage_env *env, enum tel_packet_event event, const struct pkt *p,
	uint64_t ts_ns, uint64_t queue_bytes);
// A copy of p, counted and recorded at p's arrival. NULL: there is no memory for it, which is
// counted as a drop.
struct pkt *stage_copy(const struct stage_env *env, const struct pkt *p);
// Drops p on its arrival, in a stage without a queue.
void stage_drop(
	const struct stage_env *env, struct pkt_list *drops, struct pkt *p, enum drop_reason why);
