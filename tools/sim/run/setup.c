// SPDX-License-Identifier: BSD-3-Clause
// Set-up and clean-up of a run: the sections of the config, sizes and memory of hosts, paths and
// pools, and the telemetry streams.
#include "tools/sim/run/sim.h"

#include "common/base/mem.h"
#include "common/base/u64.h"
#include "tools/sim/frame.h"
#include "tools/sim/guest/guests.h"
#include "tools/sim/pipeline.h"

#include <errno.h>
#include <string.h>

#define RING_RECORDS 16384
#define COPIES_MAX 64 // of a packet that memory is reserved for
#define PKTS_MAX (UINT64_C(1) << 31) // of a pool: 137 GB, if all are in use
#define PIPE_SEGS_MAX (UINT64_C(1) << 40) // far more than fits into memory
#define SEGS_LEAST (UINT64_C(1) << 20) // 32 MB of address space
#define SEGS_PROVEN_MAX (UINT64_C(1) << (sizeof(void *) < 8 ? 22 : 26)) // 128 MB or 2 GB of it

// Whether an earlier group has the same route.
static bool seen_before(const struct paths *ps, uint32_t group) {
	for (uint32_t i = 0; i < group; i++) {
		if (memcmp(ps->route[i], ps->route[group], sizeof(ps->route[i])) == 0)
			return true;
	}
	return false;
}

// The packets that all links, edges and delays can hold at any time of the schedule, if all were
// full segments of the smallest size of any group; the packets per second, of which a route carries
// what its slowest path does; and how many one packet may become on its way there and back.
static void size_network(
	const struct sim *s, uint64_t *pipe_segs, uint64_t *segs_per_s, uint64_t *copies) {
	uint32_t frame = groups_min_frame(&s->groups), counted = 0;
	const struct paths *ps = &s->paths;

	*pipe_segs = 0;
	*segs_per_s = 1024;
	*copies = 1;
	for (uint32_t g = 0; g < ps->groups; g++) {
		uint64_t rate_bps = NEVER_NS, delay_ns = 0, become = 1;

		if (seen_before(ps, g))
			continue;
		for (uint32_t d = 0; d < FLOWS_DIRECTIONS; d++) {
			const struct route *r = &ps->route[g][d];

			for (uint32_t i = 0; i < r->count; i++) {
				struct path_capacity c = path_capacity(r->path[i], frame);
				uint32_t bit = 1u << r->path[i]->index;

				delay_ns += c.delay_ns;
				become = min_u64(become * c.copies, COPIES_MAX);
				if (d == FLOWS_REVERSE)
					continue;
				rate_bps = min_u64(rate_bps, c.rate_bps);
				if ((counted & bit) == 0)
					*pipe_segs += min_u64(c.queue_pkts, PIPE_SEGS_MAX);
				counted |= bit;
			}
		}
		uint64_t rate = rate_bps / (8 * (uint64_t)frame) + 1024;

		*copies = max_u64(*copies, become);
		*segs_per_s += rate - 1024;
		*pipe_segs += (uint64_t)((double)rate * (double)delay_ns / 1e9);
	}
}

// Refuses a run for which the machine has too little memory, before any is allocated.
static int memory_check(struct sim *s, const struct host_env *env, struct err *err) {
	const struct config_node *flows = config_get(config_root(s->run->config), "flows");
	uint64_t windows = host_window_segs(&s->groups);
	uint64_t bytes = (uint64_t)s->groups.flows
			* (sizeof(struct flow) + sizeof(struct receiver)
				+ ((size_t)SEG_BYTES << SEG_ORDER_MIN))
		+ 4 * env->pipe_segs * (SIM_PKT_SIZE + SEG_BYTES) + 4 * windows * SEG_BYTES;
	struct err why;
	char what[64];

	snprintf(what, sizeof(what), "%u flows and %llu packets in flight", s->groups.flows,
		(unsigned long long)(env->pipe_segs + windows));
	int rc = mem_check(bytes, what, &why);
	return rc < 0 ? config_err(flows, rc, err, "%s", why.msg) : 0;
}

// The least size of the scoreboard. It takes address space until it is used, so that it may be as
// large as it can become; with more flows, or larger windows, what the network can hold bounds it
// (host.c).
static uint64_t segs_least(const struct groups *gs) {
	uint64_t proven = host_peer_window_segs(gs);

	return proven > SEGS_PROVEN_MAX ? SEGS_LEAST : max_u64(SEGS_LEAST, proven);
}

// The hosts as nodes.
static void sides_init(struct sim *s) {
	static const struct node_ops *const ops[] = {&side_sender_ops, &side_receiver_ops};

	topology_init(&s->topology, &s->paths);
	for (uint32_t d = 0; d < FLOWS_DIRECTIONS; d++) {
		s->pools_of[d] = &s->pools;
		s->side[d] = (struct side){.node.ops = ops[d],
			.to = topology_to(&s->topology, d),
			.from = topology_from(&s->topology, d),
			.host = d == FLOWS_FORWARD ? &s->sender : &s->receiver,
			.pools = &s->pools,
			.pool = {&s->pool[d], &s->pool[POOL_LARGE + d]},
			.paths = &s->paths};
	}
}

// The sender asks whether segments are recorded here, once, and not for each.
static int record_segments(struct sim *s, struct err *err) {
	struct side *x = &s->side[FLOWS_FORWARD];

	if (!s->run->telemetry_segments)
		return 0;
	x->segments = &s->segments;
	x->node.ops = &side_recorded_ops;
	s->sender.env.output = side_recorded_output;
	return segments_init(
		&s->segments, &s->tel[TEL_STREAM_SEGMENTS], &s->run->tel, &s->groups, err);
}

// The nodes of the run: those of the hosts, or those that guests make of them.
static int nodes_init(struct sim *s, uint64_t pipe_segs, struct err *err) {
	struct node *sender = &s->side[FLOWS_FORWARD].node;
	struct node *receiver = &s->side[FLOWS_REVERSE].node;
	struct guests_env env = {.run = s->run,
		.groups = &s->groups,
		.side = s->side,
		.pools = &s->pools,
		.pipe_segs = pipe_segs};
	int rc = guests_init(&s->guests, &env, err);

	if (rc == 0)
		topology_hosts(&s->topology, guests_node(s->guests, FLOWS_FORWARD, sender),
			guests_node(s->guests, FLOWS_REVERSE, receiver));
	return rc;
}

static int hosts_init(struct sim *s, struct err *err) {
	struct host_env env = {
		.seed = s->run->seed,
		.duration_ns = s->run->duration_ns,
		.virtual_time = true,
		.segs_least = segs_least(&s->groups),
		.tel_run = &s->run->tel,
	};
	uint64_t copies;
	int rc;

	size_network(s, &env.pipe_segs, &env.segs_per_s, &copies);
	rc = memory_check(s, &env, err);
	if (rc < 0)
		return rc;
	s->dropped = mem_map(2 * s->groups.flows * sizeof(*s->dropped));
	if (s->dropped == NULL)
		return err_set(err, -ENOMEM, "no memory for %u flows", s->groups.flows);
	env.output = side_sender_output;
	env.ctx = &s->side[FLOWS_FORWARD];
	env.flows = true;
	env.tel_cc = &s->tel[TEL_STREAM_CC];
	env.tel_flows = &s->tel[TEL_STREAM_FLOWS];
	env.tel_interval = &s->tel[TEL_STREAM_INTERVAL];
	env.tel_events = &s->tel[TEL_STREAM_EVENTS];
	env.tel_transfers = &s->tel[TEL_STREAM_TRANSFERS];
	network_read_empty(s->empty, config_root(s->run->config));
	env.empty = s->empty;
	rc = host_init(&s->sender, &s->groups, &env, err);
	if (rc < 0)
		return rc;
	env.output = side_receiver_output;
	env.ctx = &s->side[FLOWS_REVERSE];
	env.flows = false;
	env.receivers = s->groups.flows;
	rc = host_init(&s->receiver, &s->groups, &env, err);
	if (rc < 0)
		return rc;
	// A packet for each segment on the scoreboard, its retransmission, and their ACKs.
	uint64_t pkts = min_u64(PKTS_MAX,
		copies
			* (4 * ((uint64_t)s->sender.arena.blocks << SEG_ORDER_MIN)
				+ 16 * (uint64_t)s->groups.flows));

	sides_init(s);
	rc = record_segments(s, err);
	for (uint8_t i = 0; rc == 0 && i < POOL_FRAMES; i++)
		rc = pool_init(&s->pools, &s->pool[i], i,
			i >= POOL_LARGE ? SIM_PKT_SIZE : sizeof(struct pkt), pkts, err);
	if (rc == 0)
		rc = nodes_init(s, copies * env.pipe_segs, err);
	return rc;
}

// Refuses a schedule after which packets come back without delay, because then nothing can be
// computed ahead. Several changes at one time count together.
int sim_delays_stay(const struct schedule *schedule, struct err *err) {
	for (uint32_t i = 0; i < schedule->count; i++) {
		const struct schedule_entry *e = &schedule->entry[i];
		bool last = i + 1 == schedule->count || e[1].at_ns != e->at_ns;

		if (last && e->ahead_ns == 0)
			return config_err(e->node, -EINVAL, err,
				"schedule: this leaves no delay in either direction; virtual time "
				"needs more than 0 in one of them, 1ns will do");
	}
	return 0;
}

// A stop rule's delay is that of a link.
static int stop_check(const struct sim *s, struct err *err) {
	if (!stop_uses(&s->run->stop, STOP_DELAY)
		|| route_has_link(&s->paths.route[0][FLOWS_FORWARD]))
		return 0;
	return config_err(config_get(config_root(s->run->config), "stop"), -EINVAL, err,
		"stop: delay: the first group passes no link, whose queue it would be");
}

static int paths_read(struct sim *s, struct err *err) {
	struct config_node *root = config_root(s->run->config), *node = config_get(root, "paths");
	struct flows flows;
	struct paths_env env = {
		.run_seed = s->run->seed,
		.mtu_bytes = groups_mtu_bytes(&s->groups),
		.group_base_rtt_ns = flows.base_rtt_ns,
		.base_rtts = &s->groups.base_rtts,
		.group_route = flows.route,
		.flows = config_get(root, "flows"),
		.hosts = &s->hosts,
		.groups = s->groups.count,
		.groups_only = true,
		.owner = sim_owner(s),
		.no_source = "a run has either flows or captures as its traffic",
		.tel_packets = &s->tel[TEL_STREAM_PACKETS],
		.tel_arrivals = &s->tel[TEL_STREAM_ARRIVALS],
		.tel_run = &s->run->tel,
	};
	int rc = flows_read(&flows, env.flows, err);

	if (rc == 0)
		rc = paths_init(&s->paths, node, &env, err);
	if (rc == 0)
		rc = routes_check(&s->paths, node, err);
	if (rc == 0)
		rc = stop_check(s, err);
	if (rc < 0)
		return rc;
	sim_others(s);
	rc = schedule_init(&s->schedule, config_get(root, "schedule"), &s->paths, &s->others, err);
	if (rc == 0)
		rc = sim_delays_stay(&s->schedule, err);
	return rc < 0 ? rc : branches_read(s, err);
}

int sim_init(struct sim *s, struct run *run, struct err *err) {
	struct config_node *root = config_root(run->config);
	struct config_node *flows = config_get(root, "flows"), *live = config_get(root, "live");
	int rc;

	memset(s, 0, sizeof(*s));
	s->run = run;
	if (live != NULL) // of the other programs
		config_skip(live);
	if (flows == NULL)
		return err_set(err, -EINVAL,
			"%s: flows is required: a list of groups such as "
			"- {count: 10, cc: copa}",
			config_place(root));
	rc = hosts_read(&s->hosts, root, flows, err);
	if (rc == 0)
		rc = groups_init(&s->groups, flows, err);
	if (rc == 0)
		groups_share(&s->groups, &s->hosts);
	if (rc == 0)
		rc = groups_draw(&s->groups, flows, run->seed, run->duration_ns, err);
	if (rc == 0)
		rc = paths_read(s, err);
	if (rc == 0)
		rc = hosts_init(s, err);
	if (rc == 0)
		rc = branches_check(s, err);
	s->next_interval_ns = run->telemetry_interval_ns;
	if (rc < 0)
		sim_fini(s);
	return rc;
}

static uint32_t write_frame(void *ctx, const struct path *path, const struct pkt *p, uint8_t *bytes,
	uint32_t room, uint32_t *length) {
	const struct sim *s = ctx;

	return frame_write(p, &s->groups.group[p->delay_class], bytes, room, length);
}

// Data before its first path, ACKs behind their last one.
static bool at_sender(void *ctx, const struct path *path, const struct pkt *p, bool leaving) {
	const struct sim *s = ctx;
	enum flows_direction d = pool_direction(p);
	const struct route *r = &s->paths.route[p->delay_class][d];

	return leaving ? d == FLOWS_REVERSE && r->path[r->count - 1] == path
		       : d == FLOWS_FORWARD && r->path[0] == path;
}

static bool stream_wanted(const struct sim *s, enum tel_stream stream) {
	uint64_t level = s->run->telemetry_level;

	switch (stream) {
	case TEL_STREAM_PACKETS:
	case TEL_STREAM_CC:
		return level >= 2;
	case TEL_STREAM_FLOWS:
	case TEL_STREAM_INTERVAL:
	case TEL_STREAM_LINKS:
	case TEL_STREAM_EVENTS:
		return level >= 1;
	case TEL_STREAM_TRANSFERS:
		return level >= 1 && groups_scheduled(&s->groups);
	case TEL_STREAM_IP_FLOWS:
		return level >= 1 && guests_send_any(s->guests);
	case TEL_STREAM_ARRIVALS:
		return s->run->telemetry_arrivals;
	case TEL_STREAM_SEGMENTS:
		return s->run->telemetry_segments;
	default:
		return false; // of captures
	}
}

int sim_open(struct sim *s, const char *pcap, struct err *err) {
	paths_observers(&s->paths, &s->run->tel);
	groups_observers(&s->groups, &s->run->tel);
	for (uint32_t i = 0; i < TEL_STREAM_COUNT; i++) {
		if (!stream_wanted(s, (enum tel_stream)i))
			continue;
		int rc = tel_open(
			&s->tel[i], (enum tel_stream)i, &s->run->tel, "", RING_RECORDS, err);
		if (rc < 0)
			return rc;
	}
	return pcap == NULL ? 0
			    : capture_open(&s->capture, pcap,
				    &(struct capture_env){.run = s->run,
					    .paths = &s->paths,
					    .at_sender = at_sender,
					    .frame = write_frame,
					    .ctx = s},
				    err);
}

void sim_fini(struct sim *s) {
	pools_fini(&s->pools);
	pipeline_end(s->pipeline);
	mem_unmap(s->dropped, 2 * s->groups.flows * sizeof(*s->dropped));
	segments_fini(&s->segments);
	records_fini(&s->records);
	guests_free(s->guests);
	s->guests = NULL;
	capture_free(s->capture);
	host_fini(&s->sender);
	host_fini(&s->receiver);
	branches_fini(&s->branches);
	schedule_fini(&s->schedule);
	if (s->paths.count > 0)
		paths_fini(&s->paths);
	groups_fini(&s->groups);
}
