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
// Code outside stage/ does not know the types of stages: what only some stages have is in
// structs of its own, which a stage names or leaves NULL. A stage with `figures` is called a link
// by the summary, interval records, top, ctl and the report.
#pragma once
#include "common/base/ns.h"
#include "common/base/param.h"
#include "common/base/pkt.h"
#include "common/config/config.h"
#include "common/telemetry/telemetry.h"
#include "switch/aqm.h"

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

// What a stage may have besides the operations that all have, of each kind a struct. Its members
// may be NULL if that is said.

// A part of a stage with a table of its own, for keys such as queue.target.
struct stage_part {
	const struct param *params; // PARAM_END behind the last
	void *object;
	void (*update)(void *object); // as aqm_ops has it
	size_t rng; // likewise
};

// Parameters beyond its table.
struct stage_config {
	const struct param *also; // keys that configure() reads; NULL: none
	int (*configure)(void *st, struct config_node *node, struct err *err); // or NULL
	// A `live` parameter of the table was changed at now_ns. NULL: nothing follows.
	void (*update)(void *st, uint64_t now_ns);
	struct stage_part (*queue)(void *st); // its discipline; NULL: it has none
};

// Times between a packet's arrival and its departure; a stage without waits for nothing but others.
// Known once the parameters are read, before init.
struct stage_delay {
	uint64_t (*min_ns)(const void *st); // the lookahead of virtual time
	uint64_t (*max_ns)(const void *st); // determines env->max_pkts
};

// What it holds and how fast it is: sizes memory.
struct stage_capacity {
	struct aqm_limit (*limit)(const void *st); // of all its queues
	uint64_t (*rate_bps)(const void *st);
	// Of a stage without figures: the part of the time up to now_ns for which its wire, or the
	// busiest of them, was in use. NULL: it has figures.
	double (*busy)(const void *st, uint64_t now_ns);
};

// Statistics of its queue and its wire: these make it a link.
struct stage_figures {
	// Processes all departures due by now_ns; the packets wait for pop.
	void (*serve)(void *st, uint64_t now_ns, struct pkt_list *drops);
	struct stage_stats *(*read)(void *st, uint64_t now_ns); // after it was served to now_ns
	// Takes packets that come while it is busy with others, which it need not be served for: it
	// is when the next stage wants them. False: it must be; nothing was done. NULL: always.
	bool (*defer)(void *st, struct pkt *const *pkts, uint32_t n);
};

// Internal values for plots, recorded once per interval (TEL_EV_OBSERVED).
struct stage_observer {
	const char *names[AQM_OBSERVED]; // of the numbers; NULL: unused, or a discipline's
	// Zero before the call. Returns the observer's name: the stage's or its discipline's;
	// NULL: there are no values.
	const char *(*observe)(const void *st, double out[AQM_OBSERVED]);
};

// What it needs of packets and of the seed.
struct stage_needs {
	bool copies; // it makes at most one copy of a packet (stage_copy)
	// True once a packet's fate depended on a draw from its random stream. NULL: it has none.
	bool (*random)(const void *st);
	size_t rng, rng2; // offsets of its random streams, which a seed begins anew; 0: none
	bool (*flows)(const void *st); // whether it reads packets' flow_id; NULL: no
	bool (*headers)(const void *st); // whether it asks for headers (pkt_headers); NULL: no
};

struct stage_ops {
	const char *name;
	const char *alias; // what else it is called; NULL: nothing
	const char *summary;
	const char *reference; // paper or RFC, for --list; NULL: none
	const struct param *params;
	size_t state_size; // zeroed, then the table's fields are filled, then configure, init

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

	// NULL: it has nothing of the kind.
	const struct stage_config *config;
	const struct stage_delay *delay;
	const struct stage_capacity *capacity;
	const struct stage_figures *figures;
	const struct stage_observer *observer;
	const struct stage_needs *needs;
};

// As one of the functions of struct stage_needs.
static inline bool stage_always(const void *st) {
	return true;
}

static inline bool stage_copies_packets(const struct stage_ops *ops) {
	return ops->needs != NULL && ops->needs->copies;
}
static inline bool stage_random(const struct stage_ops *ops, const void *st) {
	return ops->needs != NULL && ops->needs->random != NULL && ops->needs->random(st);
}
static inline bool stage_reads_flows(const struct stage_ops *ops, const void *st) {
	return ops->needs != NULL && ops->needs->flows != NULL && ops->needs->flows(st);
}
static inline bool stage_reads_headers(const struct stage_ops *ops, const void *st) {
	return ops->needs != NULL && ops->needs->headers != NULL && ops->needs->headers(st);
}
// Keys that it reads besides its parameters; NULL: none.
static inline const struct param *stage_also(const struct stage_ops *ops) {
	return ops->config != NULL ? ops->config->also : NULL;
}
// As its observer; NULL: there are no values.
static inline const char *stage_observe(
	const struct stage_ops *ops, const void *st, double out[AQM_OBSERVED]) {
	return ops->observer != NULL ? ops->observer->observe(st, out) : NULL;
}

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
// The message to p's sender that p is larger than `mtu`, counted as a copy. NULL: there is none.
struct pkt *stage_too_big(const struct stage_env *env, const struct pkt *p, uint32_t mtu);
// Drops p on its arrival, in a stage without a queue.
void stage_drop(
	const struct stage_env *env, struct pkt_list *drops, struct pkt *p, enum drop_reason why);
