// SPDX-License-Identifier: BSD-3-Clause
// A path: stages in order, one direction.
//
//	path_push -> stage 0 -> stage 1 -> ... -> path_pop
//
// A packet is pushed with arrival_ns = its theoretical arrival, at most now, never earlier than
// that of the previous packet (the path raises it if it is). The result is exact as long as
// path_pop is not called with a time beyond the arrival of a packet that is pushed later, plus
// tail_ns.
//
// Packets are popped with arrival_ns = their theoretical departure from the last stage. Packets
// that stages drop are counted by reason and given back to their owner before the call returns.
#pragma once
#include "switch/stage/flow_delays.h"

#include "common/base/fact.h"
#include "common/base/json.h"
#include "common/config/base_rtt.h"
#include "common/config/hosts.h"

#define PATH_STAGES_MAX 16
#define PATH_LINKS_MAX 64 // of a run

struct run_list;

struct path_stage {
	const struct stage_ops *ops;
	void *state;
	// "forward.link"; a second link is "forward.link2"; with a `name:`, "forward.NAME".
	char name[48];
	struct stage_env env;
	uint64_t after_ns; // least time from here to the end of the path
	struct config_node *node; // where it stands in the config, or the hosts that it is of
};

// A stage with figures; only these have an index among the links.
static inline bool path_is_link(const struct path_stage *s) {
	return s->ops->figures != NULL;
}

// A delay and nothing else: a link may have one behind its wire, but is served in its own time.
static inline bool path_is_delay(const struct path_stage *s) {
	return s->ops->delay != NULL && !path_is_link(s);
}

// `group` of an event record about this stage: the index of its link, or UINT16_MAX.
static inline uint16_t path_event_group(const struct path_stage *s) {
	return path_is_link(s) ? s->env.link_index : UINT16_MAX;
}

struct path {
	char name[32];
	struct config_node *source; // parameters of the capture its packets come from; NULL: none
	struct path_stage stage[PATH_STAGES_MAX];
	uint32_t stages;
	uint32_t next_id;
	// The least time that the delays at its end take: so far ahead path_pop may be called.
	uint64_t tail_ns;
	// Rate of its slowest stage, the largest up to now and in the schedule; 0: it has none.
	uint64_t max_rate_bps;
	uint64_t max_delay_ns; // of all its delays together, the largest likewise
	// For limits in BDP: the longest round trip of a group that passes it (path_route.h).
	uint64_t base_rtt_ns;
	struct tel *tel_arrivals; // NULL: off
	struct pkt_owner owner;
	bool reads_headers; // a stage does
	bool deferred; // its link has not been served for the packets that came last
	uint64_t idle_ns; // before then path_pop needs nothing from the stages before the last
	uint64_t last_arrival_ns;
	struct pkt_list drops; // of this call, not yet counted; empty between calls
	struct pkt_count in, out;
	struct stage_copies copies; // packets that its stages made
	struct pkt_count drop[DROP_REASONS];
	// When the measurement began: `in`, and of `drop`.
	uint64_t measured_in_pkts, measured_drop_pkts[DROP_REASONS];
	struct tel *tel_packets;
	const struct tel_run *tel_run;
	struct path_tap *tap; // NULL: none
	uint8_t index; // in the config
};

// The paths that packets of a flow group pass in one direction, in order (path_route.h).
#define PATHS_MAX 16
struct route {
	struct path *path[FLOWS_ROUTE_MAX];
	uint32_t count; // 0: the config has none of the default's name
};

// All paths of a run, by name, from the config's `paths` section.
struct paths {
	struct path path[PATHS_MAX];
	uint32_t count;
	struct route route[GROUPS_MAX][FLOWS_DIRECTIONS];
	uint32_t groups;
	uint64_t class_extra_ns[PATHS_MAX][GROUPS_MAX]; // of a path's last delay stage
	struct flow_delays flow_delays[PATHS_MAX];
	// By the side of their hosts (flows.h): states of the stages that are its cards
	// (stage/card.h). NULL: it has none.
	void *cards[FLOWS_DIRECTIONS];
	const struct aqm_ops *qdisc[FLOWS_DIRECTIONS][HOSTS_KINDS_MAX]; // of those that send
};

// Inputs of paths from outside the `paths` section.
struct paths_env {
	uint64_t run_seed;
	uint32_t mtu_bytes; // largest frame with FCS
	// base_rtt per flow group, 0: none. The difference to the delay of the group's paths is
	// added in the last delay stage of its way back (of its way there if that has none); less
	// than that is an error.
	const uint64_t *group_base_rtt_ns;
	// Of groups whose flows have base RTTs of their own, which are added in the same way; NULL:
	// there are none.
	const struct base_rtts *base_rtts;
	struct flows_route (*group_route)[FLOWS_DIRECTIONS]; // NULL: "forward" and "reverse"
	struct config_node *flows; // the list of groups, for messages; NULL: there is none
	const struct hosts *hosts; // whose cards are at the ends of paths; NULL: there are none
	uint32_t groups;
	bool groups_only; // all packets come from the groups' flows: every path is one of theirs
	struct pkt_owner owner; // of packets that are pushed
	const char *no_source; // why no path may have a source; NULL: the caller reads them
	struct tel *tel_packets, *tel_arrivals; // NULL: off
	const struct tel_run *tel_run;
};

// Reads, checks and initialises all paths. On error nothing needs freeing.
int paths_init(
	struct paths *ps, struct config_node *node, const struct paths_env *env, struct err *err);
void paths_fini(struct paths *ps);
// Registers the names of the numbers that the paths' stages and disciplines observe, before the
// stream of events is opened.
void paths_observers(const struct paths *ps, struct tel_run *run);
// For --list: the registered queue disciplines and stages.
void paths_list(struct run_list *l);
struct path *paths_find(struct paths *ps, const char *name);
// "forward, reverse": for messages about a path that does not exist.
void paths_names(const struct paths *ps, char names[static CONFIG_NAMES_SIZE]);

void path_push(struct path *p, struct pkt *const *pkts, uint32_t n);
// Counts a packet for which the caller has no memory as received and dropped (no_mbuf).
void path_push_nothing(struct path *p, uint32_t size_bytes);
// Advances every stage to now_ns and returns packets that have left the path: at most `max`; fewer:
// no more have.
uint32_t path_pop(struct path *p, uint64_t now_ns, struct pkt **pkts, uint32_t max);
// When path_pop may next yield; NEVER_NS if only a push can change that. Stages in front of a delay
// need not be served before that (they work in theoretical time), so there is one event per packet.
uint64_t path_next_ns(const struct path *p);
// Least time from push to pop over all stages.
uint64_t path_min_delay_ns(const struct path *p);
// The last of its stages that delay; NULL: none does.
struct path_stage *path_last_delay(struct path *p);
// Index of its last link in the summary; STAGE_NO_LINK: it has none.
uint8_t path_last_link(const struct path *p);
// True once the run's seed has decided something.
bool paths_random(const struct paths *ps);
// Whether a stage reads packets' flow_id or their delay class.
bool paths_flows(const struct paths *ps);
// Packets and bytes inside all stages.
struct backlog path_backlog(const struct path *p);
// in + copies made == out + drops + inside, in packets and bytes?
bool path_balanced(const struct path *p);
// Finds a live parameter by its key ("link.rate"), and checks that `value` is one for it. The
// caller puts the path's name and the key before the sentence.
int path_check(struct path *p, const char *key, const char *value, struct path_stage **stage,
	const struct param **param, struct err *err);
// Reads "forward.link.rate=5Gbit" and checks it likewise. Writes into the text, in which *c's key
// and value are then.
struct path_change {
	struct path *path;
	const char *key, *value;
};
int paths_read_change(struct paths *ps, char *text, struct path_change *c, struct err *err);
// Sets "link.rate" (or "link2.rate", "delay.delay", ...) from text at now_ns; only parameters
// marked live. Writes the old and new value for the event record.
int path_set(struct path *p, const char *key, const char *value, uint64_t now_ns, double *before,
	double *after, struct err *err);
// The same with a number that is valid for the parameter (what path_set gave as `before`, for
// example). False: it is not valid.
bool path_put(struct path *p, struct path_stage *stage, const struct param *param, double value,
	uint64_t now_ns);
// Begins the random streams of all stages anew, from a seed of the run.
void paths_reseed(struct paths *ps, uint64_t seed);
// The same for a replay, with what path_set recorded in the arrivals stream: the value and the hash
// of the parameter's name, which does not depend on the other parameters.
int path_set_recorded(
	struct path *p, uint32_t name_hash, double value, uint64_t now_ns, struct err *err);
// Of "forward.link.rate".
uint32_t path_name_hash(const char *name);

// One after the other, the live parameters of all paths, in the order of the config. *at begins as
// zero; false: there are no more.
struct path_param {
	const struct path_stage *stage;
	const struct param *param;
	double value; // NaN: not a number
	uint32_t path, index; // of the stage in its path; private
};
bool paths_next_param(const struct paths *ps, struct path_param *at);

// Advances every stage to now_ns without taking packets off the path.
void path_serve(struct path *p, uint64_t now_ns);
// path_serve, and the last record of this path in the arrivals stream.
void path_end(struct path *p, uint64_t now_ns);
// Times that follow from the parameters: what is left of a path, and the delay lines' bounds. After
// each change; path_config.c and path_params.c.
void path_derive(struct path *p);
// Appends a record to the arrivals stream, if there is one; path.c and path_params.c.
void path_trace(struct path *p, const struct tel_arrivals *r);

// What a path can hold besides its delays, and how fast it is; sizes memory.
struct path_capacity {
	uint64_t queue_pkts; // that the queues of its links and edges may hold
	uint64_t rate_bps; // of its slowest link or edges; of a path without: PATH_RATE_DEFAULT_BPS
	uint64_t delay_ns; // longest, all delay stages added up
	uint32_t copies; // packets that one may become, itself included
};
#define PATH_RATE_DEFAULT_BPS UINT64_C(10000000000)
// The largest that it is in the whole run, once schedule_init has gone through what is to come.
// All packets taken to be frames of `frame_bytes`, FCS included.
struct path_capacity path_capacity(const struct path *p, uint32_t frame_bytes);
// Share of the first link's capacity used since paths_measure; NaN without a link.
double path_utilisation(struct path *p, uint64_t now_ns);
bool route_has_link(const struct route *r);
// Packets that left the queue of the first link of a route since paths_measure, and their times in
// it.
struct path_queued {
	uint64_t pkts, sojourn_ns;
};
struct path_queued route_queued(const struct route *r, uint64_t now_ns);

// The path's records go to these streams from now on; before the first packet.
void path_streams(struct path *p, struct tel *packets, struct tel *arrivals);
// The owner of its packets from now on; before the first packet.
void path_owner(struct path *p, const struct pkt_owner *owner);
// Shows its packets to `tap`, before the first of them.
void path_tap(struct path *p, struct path_tap *tap);

// Link statistics. A link measures continuously; `measure` restarts the run's figures (warm-up).
uint32_t paths_links(struct paths *ps); // number of links in all paths
void paths_measure(struct paths *ps, uint64_t now_ns);
void path_measure(struct path *p, uint64_t now_ns);
// Appends one TEL_LINKS record per link for the interval that ends now, and to `events` what stages
// and the links' disciplines observe.
void paths_interval(struct paths *ps, struct tel *links, struct tel *events, uint64_t now_ns);
void path_interval(struct path *p, struct tel *links, struct tel *events, uint64_t now_ns);
// Writes "links": {"forward": {...}, "reverse.link2": ...} (fields.h). The path's name stands for
// "forward.link".
void paths_summary(struct paths *ps, struct json *j, uint64_t now_ns);
// Name of a link in the summary: the path's name stands for "forward.link", or the first of its
// links that is named as its type; "forward.link2" and links with a `name:` keep theirs.
const char *path_link_title(const struct path *p, const struct path_stage *s);
// "why": a fact for each link, except those that only ACKs pass, at which no queue has stood since
// paths_measure.
void paths_why(struct paths *ps, struct json *j, uint64_t now_ns);
// Of `received` frames, those that no path was for: `drop` is what was dropped before any. True:
// most of them, which `fault` says.
bool path_none_for_most(
	uint64_t received, const struct pkt_count drop[DROP_REASONS], struct fact *fault);
bool paths_balanced(const struct paths *ps);
// Writes "paths" of the ledger (fields.h); or a ledger that has nothing else.
void paths_ledger(const struct paths *ps, struct json *j);
void paths_ledger_only(const struct paths *ps, struct json *j, bool balanced);
