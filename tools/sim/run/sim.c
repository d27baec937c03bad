// SPDX-License-Identifier: BSD-3-Clause
// The run: who owns packets, and what happens at the boundaries of windows.
#include "tools/sim/run/sim.h"

#include "common/base/u64.h"
#include "common/net/headers.h"
#include "tools/sim/guest/guests.h"
#include "tools/sim/pipeline.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#define STEPS 512 // at least, of a run
#define STEP_MAX_NS (NS_PER_S / 10)

static struct pkt *copy_packet(void *ctx, const struct pkt *p) {
	const struct sim *s = ctx;
	struct pools *pools = s->pools_of[pool_direction(p)];
	struct pool *pool = pools->pool[p->pool];
	struct pkt *copy = pool_get(pool, p->pool);

	if (copy == NULL) {
		pools->unsent++;
		return NULL;
	}
	memcpy(copy, p, pool->object);
	pools->inside++;
	return copy;
}

// The flow is told at the next boundary: it may run on another thread, and reads it only there.
static void drop_data(struct sim *s, const struct pkt *pkt) {
	bool back = pool_direction(pkt) == FLOWS_REVERSE;

	s->dropped[pkt->flow_id + (back ? s->groups.flows : 0)]++;
	s->any_dropped = true;
}

static void join_counts(struct sim *s) {
	pools_join(&s->pools, s->pools_of[FLOWS_FORWARD]);
	for (uint32_t i = 0; s->any_dropped && i < s->groups.flows; i++) {
		uint32_t *back = &s->dropped[s->groups.flows + i];

		host_dropped(&s->sender, i, s->dropped[i], *back);
		s->dropped[i] = *back = 0;
	}
	s->any_dropped = false;
}

static void free_packets(void *ctx, struct pkt_list *drops) {
	struct sim *s = ctx;
	struct pkt *pkt;

	while ((pkt = pkt_list_pop(drops)) != NULL) {
		struct pools *pools = s->pools_of[pool_direction(pkt)];

		if ((pkt->flow_id & FLOW_ADDR_HASHED) != 0)
			guests_dropped(s->guests, pkt);
		else if (pkt_seg(pkt)->len > 0)
			drop_data(s, pkt);
		pool_put(pools, pkt);
		pools->inside--;
	}
}

// In the packet's place travels what its sender is to know: its sequence number and, as `window`,
// the MTU; as `ack` its size, for captures.
static struct pkt *too_big(void *ctx, const struct pkt *p, uint32_t mtu) {
	const struct sim *s = ctx;
	uint32_t ip_header = s->groups.group[p->delay_class].ip_header;
	struct pkt *answer;
	struct seg *seg;

	// Datagrams have nobody who listens, and a guest's frames are not turned round.
	if (frame_is_whole(p) || (pkt_seg_const(p)->options & SEG_OPT_UDP) != 0
		|| (answer = copy_packet(ctx, p)) == NULL)
		return NULL;
	answer->flags = PKT_TOO_BIG;
	answer->ecn = ECN_NOT_ECT;
	answer->size_bytes = (uint16_t)(WIRE_FCS
		+ wire_too_big_size(
			ip_header == WIRE_IPV6, p->size_bytes - (uint32_t)(WIRE_ETH + WIRE_FCS)));
	seg = pkt_seg(answer);
	seg_header(seg, seg->seq, seg->len, 0, (uint16_t)mtu, 0, false, 0, 0);
	return answer;
}

static struct pkt_headers headers(void *ctx, const struct pkt *p) {
	const struct seg *seg = pkt_seg_const(p);
	const struct sim *s = ctx;

	if (frame_is_whole(p)) // a guest's, whose program marks its packets itself
		return headers_read(frame_bytes_const(p), p->size_bytes - WIRE_FCS);
	struct pkt_headers h = {.seq = seg->seq,
		.seq_count = (uint16_t)(seg->len + ((seg->flags & SEG_FIN) != 0)),
		.syn = (seg->flags & SEG_SYN) != 0,
		.dscp = (uint8_t)s->groups.group[p->delay_class].dscp};

	headers_of_ack(&h, seg);
	return h;
}

struct pkt_owner sim_owner(struct sim *s) {
	return (struct pkt_owner){.copy = copy_packet,
		.free = free_packets,
		.too_big = too_big,
		.headers = headers,
		.ctx = s};
}

// The next time of an action for which all earlier events must be done: an interval, a change, the
// warm-up's end.
static uint64_t next_boundary(const struct sim *s, uint64_t until_ns) {
	uint64_t t_ns = time_min(until_ns, schedule_next_ns(&s->schedule));

	if (!s->measuring)
		t_ns = time_min(t_ns, s->run->warmup_ns);
	return time_min(t_ns, time_min(s->next_interval_ns, s->run->stop.next_ns));
}

static void stop_sample(struct sim *s) {
	struct host_figures f = host_figures(&s->sender, s->now_ns);
	double seconds = (double)(s->now_ns - s->run->warmup_ns) / 1e9;
	struct path_queued queued = route_queued(&s->paths.route[0][FLOWS_FORWARD], s->now_ns);
	const struct stop_sum sum[STOP_METRICS_COUNT] = {
		[STOP_GOODPUT] = {f.goodput_bps * seconds, seconds},
		[STOP_JFI] = {f.jfi, 1},
		[STOP_CWND_REDUCTIONS] = {f.cwnd_reductions_per_s * seconds, seconds},
		[STOP_DROPS] = {f.drops_per_s * seconds, seconds},
		[STOP_SHARE] = {f.first_group_bps * seconds, f.goodput_bps * seconds},
		[STOP_DELAY] = {(double)queued.sojourn_ns, (double)queued.pkts},
	};

	stop_put(&s->run->stop, sum);
}

static void publish(struct sim *s) {
	for (uint32_t i = 0; i < TEL_STREAM_COUNT; i++)
		tel_publish(&s->tel[i]);
}

// Ends an interval, unless one ends there: with every telemetry.interval, with the warm-up and with
// the run, so that each interval is of one of them.
static void end_interval(struct sim *s) {
	uint64_t now_ns = s->now_ns;

	if (now_ns == s->interval_start_ns)
		return;
	guests_interval(s->guests, &s->tel[TEL_STREAM_IP_FLOWS], now_ns);
	host_interval(&s->sender, now_ns);
	paths_interval(&s->paths, &s->tel[TEL_STREAM_LINKS], &s->tel[TEL_STREAM_EVENTS], now_ns);
	s->interval_start_ns = now_ns;
}

// Serves the paths. If nobody reads their figures now, a link that takes packets without that is
// left alone: all that it gave to the delay behind it would leave the cache there.
static void serve_paths(struct sim *s, bool read) {
	for (uint32_t i = 0; i < s->paths.count; i++) {
		if (read || !s->paths.path[i].deferred)
			path_serve(&s->paths.path[i], s->now_ns);
	}
	join_counts(s);
}

static void at_boundary(struct sim *s) {
	uint64_t now_ns = s->now_ns;

	serve_paths(s, next_boundary(s, now_ns + 1) <= now_ns || s->records.stream != NULL);
	if (s->failed == 0)
		s->failed = records_move(&s->records, now_ns, &s->err);
	s->pools.inside_max = max_u64(s->pools.inside_max, s->pools.inside);
	capture_flush(s->capture, now_ns);
	if (now_ns == s->next_interval_ns) {
		end_interval(s);
		s->next_interval_ns += s->run->telemetry_interval_ns;
	}
	if (!s->measuring && now_ns >= s->run->warmup_ns) {
		s->measuring = true;
		end_interval(s);
		host_measure(&s->sender, now_ns);
		receivers_gro_measure(&s->receiver.endpoint);
		paths_measure(&s->paths, now_ns);
		guests_measure(s->guests);
	}
	if (now_ns >= schedule_next_ns(&s->schedule)) {
		schedule_apply(&s->schedule, now_ns, &s->tel[TEL_STREAM_EVENTS]);
		topology_order(&s->topology);
	}
	if (now_ns == s->run->stop.next_ns)
		stop_sample(s);
	publish(s);
}

// Packets that enter a path ahead from the first event on leave it no earlier than the window's
// length later. So windows begin at events, and idle time costs nothing, however short the delay
// is.
static void run_windows(struct sim *s, uint64_t boundary_ns) {
	struct topology *n = &s->topology;

	while (s->now_ns < boundary_ns && s->failed == 0) {
		uint64_t event_ns = time_max(topology_next_ns(n, boundary_ns), s->now_ns);
		uint64_t end_ns = time_min(event_ns + n->window_ns, boundary_ns);

		s->failed = topology_run(n, end_ns - 1, &s->err);
		s->now_ns = end_ns;
	}
}

bool sim_goes_on(const struct sim *s) {
	return s->now_ns < s->run->duration_ns && !s->run->stop.settled && s->failed == 0;
}

uint64_t sim_step_ns(const struct sim *s) {
	uint64_t step_ns = time_min(s->run->duration_ns / STEPS + 1, STEP_MAX_NS);

	return time_min(s->now_ns + step_ns,
		s->now_ns < s->run->warmup_ns ? s->run->warmup_ns : s->run->duration_ns);
}

void sim_run(struct sim *s, uint64_t until_ns) {
	if (s->now_ns == 0)
		at_boundary(s);
	while (s->now_ns < until_ns && !s->run->stop.settled && s->failed == 0) {
		uint64_t boundary_ns = next_boundary(s, until_ns);

		if (s->pipeline != NULL)
			s->now_ns = pipeline_run(s->pipeline, boundary_ns);
		else
			run_windows(s, boundary_ns);
		publish(s);
		at_boundary(s);
	}
}

// A packet for which its path has no memory, as side.c's: main reports that the run is not valid.
static void refused(void *ctx, const struct pkt *pkt) {
	struct sim *s = ctx;
	enum flows_direction d = pool_direction(pkt);

	path_push_nothing(s->paths.route[pkt->delay_class][d].path[0], pkt->size_bytes);
	s->pools_of[d]->unsent++;
	s->pools_of[d]->inside--;
	if (pkt_seg_const(pkt)->len > 0)
		drop_data(s, pkt);
}

// Why this run has one thread; NULL: it may have two.
static const char *one_thread(struct sim *s) {
	if (s->topology.node[NODE_SENDER] != &s->side[FLOWS_FORWARD].node
		|| s->topology.node[NODE_RECEIVER] != &s->side[FLOWS_REVERSE].node)
		return "guests are its hosts";
	if (!topology_divide(&s->topology))
		return "a path is on the way to both hosts, or paths are in a circle";
	if (topology_delay_ns(&s->topology, FLOWS_FORWARD)
			+ topology_delay_ns(&s->topology, FLOWS_REVERSE)
		< PIPELINE_DELAY_MIN_NS)
		return "the delay of the paths is too short to gain by more";
	if ((s->tel[TEL_STREAM_PACKETS].ring != NULL && s->run->telemetry_level != 2)
		|| s->tel[TEL_STREAM_ARRIVALS].ring != NULL || s->capture != NULL)
		return "all paths record their packets in one order";
	return NULL;
}

// Processors that this process may use and that nothing else keeps busy at this moment; 1 at least.
static uint32_t idle_processors(void) {
	FILE *f = fopen("/proc/loadavg", "re");
	unsigned int running = 1; // this process is one of them
	cpu_set_t may;

	if (f == NULL || fscanf(f, "%*s %*s %*s %u/", &running) != 1)
		running = UINT16_MAX;
	if (f != NULL)
		fclose(f);
	if (sched_getaffinity(0, sizeof(may), &may) != 0)
		return 1;
	uint32_t count = (uint32_t)CPU_COUNT(&may);

	return count >= running ? count - running + 1 : 1;
}

// At level 2 each thread has its own records of packets, which are joined in one order. Not beside
// arrivals: a replay compares each stage's in the order of its decisions.
static int keep_records(struct sim *s, struct err *err) {
	const struct topology_part *back = &s->topology.part[FLOWS_REVERSE];
	struct tel *stream = &s->tel[TEL_STREAM_PACKETS], *arrivals = &s->tel[TEL_STREAM_ARRIVALS];

	if (stream->ring == NULL || arrivals->ring != NULL || s->run->telemetry_level != 2)
		return 0;
	for (uint32_t i = 0; i < s->paths.count; i++)
		path_streams(&s->paths.path[i], &s->records.kept[FLOWS_FORWARD], arrivals);
	for (uint32_t i = 0; i < back->paths && s->threads == 2; i++)
		path_streams(s->topology.path[back->path[i] - NODE_PATHS].path,
			&s->records.kept[FLOWS_REVERSE], arrivals);
	return records_init(&s->records, stream, &s->run->tel, err);
}

int sim_threads(struct sim *s, uint32_t asked, struct err *err) {
	struct pipeline_env env = {.side = s->side,
		.topology = &s->topology,
		.pools = s->pools_of,
		.refused = refused,
		.ctx = s};
	uint32_t threads = asked > 0 ? asked : idle_processors();
	const char *why = threads > 1 ? one_thread(s) : NULL;

	s->threads = threads > 1 && why == NULL ? 2 : 1;
	if (asked > 1 && why != NULL)
		run_warn(s->run, "--threads %u: the run has one thread; %s", asked, why);
	else if (asked > 2)
		run_warn(s->run, "--threads %u: the run has two threads, which is the most", asked);
	int rc = keep_records(s, err);
	return rc == 0 && s->threads == 2 ? pipeline_begin(&s->pipeline, &env, err) : rc;
}

int sim_close(struct sim *s, struct err *err) {
	int rc;

	serve_paths(s, true);
	end_interval(s);
	host_still_open(&s->sender, s->now_ns);
	for (uint32_t i = 0; i < s->paths.count; i++)
		path_end(&s->paths.path[i], s->now_ns);
	join_counts(s);
	if (s->failed == 0)
		s->failed = records_move(&s->records, NEVER_NS, &s->err);
	publish(s);
	rc = capture_close(s->capture, err);
	for (uint32_t i = 0; i < TEL_STREAM_COUNT; i++) {
		struct err one;

		if (s->tel[i].ring == NULL)
			continue;
		int closed = tel_close(&s->tel[i], &one);
		if (closed < 0 && rc == 0)
			rc = err_set(err, closed, "%s", one.msg);
	}
	return rc;
}

int sim_had_memory(const struct sim *s, struct err *err) {
	int rc = host_had_memory(&s->sender, err);

	if (rc == 0)
		rc = host_had_memory(&s->receiver, err);
	if (rc == 0 && s->pools.unsent > 0)
		rc = err_set(err, -ENOSPC, HOST_NO_FIGURES,
			"packets were dropped because the memory for packets was full");
	return rc;
}
