// SPDX-License-Identifier: BSD-3-Clause
// Stages of a path: link, delay, loss, ...
//
// Each turn at time now: push what came in, pop what is due, hand it to the next stage.
//
// Logical time: a packet enters with arrival_ns = the theoretical time it left the stage before,
// and pop sets arrival_ns to the theoretical time it leaves this one, at most now. Packets enter
// in order of arrival_ns and leave in order of departure. A stage must decide by these times
// only, so that the result does not depend on when or how often it is called.
//
// Nobody outside this folder asks which stage a stage is: what only some have is an operation that may be NULL.
// A stage with `figures` is a link to the summary, interval records, top, ctl and the report.
#pragma once
#include "common/base/ns.h"
#include "common/base/param.h"
#include "common/base/pkt.h"
#include "common/config/config.h"
#include "common/telemetry/telemetry.h"
#include "switch/aqm/aqm.h"

// What a stage may know of its surroundings; outlives the stage.
struct stage_env {
	const char *name; // "forward.link", unique in a run; seeds its random stream
	uint64_t run_seed;
	uint64_t base_rtt_ns; // sum of the constant delays of both paths
	uint32_t mtu_bytes; // largest frame with FCS
	// Extra constant delay per delay class (flow group), in the one delay stage that carries it.
	const uint64_t *class_extra_ns;
	uint32_t class_count;
	uint64_t max_pkts; // packets a delay line must be able to hold
	// Telemetry of links; NULL: off.
	struct tel *tel_packets;
	const struct tel_run *tel_run;
	uint8_t link_index; // of a stage with figures in the summary; STAGE_NO_LINK: it has none
	uint8_t path_index, stage_index; // of the path in the config, of the stage in the path
};

#define STAGE_NO_LINK UINT8_MAX

struct stage_stats;

struct stage_ops {
	const char *name;
	const char *summary;
	const struct param *params;
	const char *const *also; // keys that configure() reads itself; NULL: none
	const char *also_rows; // what --list says of them
	size_t state_size; // zeroed, then the table's fields are filled, then configure, init
	const char *observed[AQM_OBSERVED]; // names of observe()'s numbers; NULL: unused

	int (*configure)(void *st, struct config_node *node, struct err *err); // NULL: nothing more
	int (*init)(void *st, const struct stage_env *env, struct err *err);
	void (*fini)(void *st); // may be NULL; also called when configure or init failed
	// In bursts, so that a stage keeps its state in registers and packets are fetched ahead.
	void (*push)(void *st, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops);
	// The packets that leave by now_ns, at most `max`; less than that: no more are due.
	uint32_t (*pop)(
		void *st, uint64_t now_ns, struct pkt **pkts, uint32_t max, struct pkt_list *drops);
	// When pop may next yield; NEVER_NS: not before a push. Virtual time jumps there; live loops poll.
	uint64_t (*next_ns)(const void *st);
	struct backlog (*backlog)(const void *st); // packets inside
	// Does what is due by now_ns and keeps what leaves for pop. NULL: nothing is decided before pop.
	void (*serve)(void *st, uint64_t now_ns, struct pkt_list *drops);
	// What it counts of its queue and wire, once it was served to now_ns. NULL: no figures.
	struct stage_stats *(*figures)(void *st, uint64_t now_ns);
	// Numbers worth plotting beside its figures, zero at first, recorded once per interval
	// (TEL_EV_OBSERVED). Returns whose they are, its own name or its discipline's; NULL: there are none. May
	// be NULL.
	const char *(*observe)(const void *st, double out[AQM_OBSERVED]);
	// A parameter in the table was changed at now_ns (table entries with `live`); may be NULL.
	void (*update)(void *st, uint64_t now_ns);
	// Least time between a packet's arrival and its departure (the lookahead of virtual time).
	// Known once the parameters are read, before init.
	uint64_t (*min_delay_ns)(const void *st); // NULL: 0
	// Has a draw of its random stream decided anything? NULL: it has no stream.
	bool (*random)(const void *st);
	// Longest time a packet may stay; sizes env->max_pkts. NULL: the stage has no such bound.
	uint64_t (*max_delay_ns)(const void *st);
	// What its queues together may hold, and the rate at which it sends; sizes memory. NULL: it has none.
	struct aqm_limit (*limit)(const void *st);
	uint64_t (*rate_bps)(const void *st);
};

extern const struct stage_ops *const stage_all[]; // ends with NULL
const struct stage_ops *stage_find(const char *name);

// Records what happened to p at ts_ns, if there is a stream and p's flow is recorded. queue_bytes: the
// backlog after it.
void stage_tell(const struct stage_env *env, enum tel_packet_event event, const struct pkt *p,
	uint64_t ts_ns, uint64_t queue_bytes);
// A stage without a queue drops p on its arrival.
void stage_drop(
	const struct stage_env *env, struct pkt_list *drops, struct pkt *p, enum drop_reason why);
