// SPDX-License-Identifier: BSD-3-Clause
// The summary's `why`: the reason why no queue built up at a link, so that its discipline never
// dropped or marked.
//
// A queue has stood at a link that was in use for 95 % of the time, or whose discipline dropped or
// marked while a packet or more waited on average. Bursts that come and go are no standing queue.
// Without one, one of these is the reason, the first that holds:
//
//	no_packets  nothing came, perhaps because stages in front of it, or of paths before its own,
//	            dropped all
//	own_queue   the queue's own discipline dropped or marked: it, or its limit, keeps it short
//	elsewhere   another stage of the path, or of its flows' routes there and back, was busy for
//	            more than 90 % of the time
//	offered     the senders offered less than the link can carry; other stages of the path may
//	            have dropped their packets
#include "switch/path/path.h"

#include "switch/serialiser/stats.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define STANDING_UTILISATION 0.95
#define STANDING_PKTS 1.0
#define BOTTLENECK_BUSY 0.9

static struct stats_figures figures(
	const struct path_stage *s, uint64_t now_ns, struct link_count *in_run) {
	struct stage_stats *st = s->ops->figures->read(s->state, now_ns);
	const struct stats_totals *from = &stats_peak(st, STATS_RUN)->from;
	struct stats_totals to = stats_totals(st, now_ns);

	if (in_run != NULL)
		*in_run = stats_count(from, &to);
	return stats_figures(from, &to);
}

// The part of the time for which the stage could take no more; 0: it has no rate.
static double busy(const struct path_stage *s, uint64_t now_ns) {
	if (path_is_link(s))
		return figures(s, now_ns, NULL).utilisation;
	return s->ops->capacity != NULL ? s->ops->capacity->busy(s->state, now_ns) : 0;
}

static const struct path_stage *busiest(
	const struct path *p, const struct path_stage *but, uint64_t now_ns, double *most) {
	const struct path_stage *found = NULL;

	for (uint32_t i = 0; i < p->stages; i++) {
		const struct path_stage *s = &p->stage[i];
		double b = s == but ? 0 : busy(s, now_ns);

		if (b > *most) {
			*most = b;
			found = s;
		}
	}
	return found;
}

static bool on_route(const struct route *r, const struct path *p) {
	for (uint32_t i = 0; i < r->count; i++) {
		if (r->path[i] == p)
			return true;
	}
	return false;
}

// Whether data passes it, and not ACKs alone. Without groups only its name says so.
static bool carries_data(const struct paths *ps, const struct path *p) {
	bool acks = false;

	for (uint32_t g = 0; g < ps->groups; g++) {
		if (on_route(&ps->route[g][FLOWS_FORWARD], p))
			return true;
		acks = acks || on_route(&ps->route[g][FLOWS_REVERSE], p);
	}
	return !acks && strcmp(p->name, "reverse") != 0;
}

// The busiest other stage of the path, or of those that its flows pass before it, behind it or on
// their way back.
static const struct path_stage *bottleneck(const struct paths *ps, const struct path *p,
	const struct path_stage *s, uint64_t now_ns, double *most) {
	const struct path_stage *found = busiest(p, s, now_ns, most), *other;

	for (uint32_t g = 0; g < ps->groups; g++) {
		if (!on_route(&ps->route[g][FLOWS_FORWARD], p))
			continue;
		for (uint32_t d = 0; d < FLOWS_DIRECTIONS; d++) {
			const struct route *r = &ps->route[g][d];

			for (uint32_t i = 0; i < r->count; i++) {
				other = r->path[i] == p ? NULL
							: busiest(r->path[i], NULL, now_ns, most);
				found = other != NULL ? other : found;
			}
		}
	}
	return found;
}

// What stages other than links dropped: random loss, a policer, edges. `name`: the path, in the
// genitive. Returns their share of the path's packets.
static double lost_elsewhere(
	const struct path *p, const char *name, uint64_t now_ns, struct fact *why) {
	uint64_t lost[DROP_REASONS] = {0}, all = 0, by_links = 0;
	const char *separator = " (";
	double part;

	for (uint32_t i = 0; i < p->stages; i++) {
		if (path_is_link(&p->stage[i])) {
			struct link_count in_run;

			figures(&p->stage[i], now_ns, &in_run);
			by_links += in_run.drops;
		}
	}
	for (uint32_t r = DROP_NONE + 1; r < DROP_REASONS; r++) {
		bool queue = r == DROP_QUEUE_FULL || r == DROP_AQM;

		uint64_t pkts = p->drop[r].pkts - p->measured_drop_pkts[r];

		lost[queue ? DROP_QUEUE_FULL : r] += pkts;
		all += pkts;
	}
	by_links = min_u64(by_links, lost[DROP_QUEUE_FULL]);
	lost[DROP_QUEUE_FULL] -= by_links;
	all -= by_links;
	if (all == 0)
		return 0;
	// Packets that came before the measurement may be dropped in it.
	part = (double)all / (double)max_u64(all, p->in.pkts - p->measured_in_pkts);
	fact_more(why, "; other stages dropped %.3g %% of %s packets", 100 * part, name);
	for (uint32_t r = DROP_NONE + 1; r < DROP_REASONS; r++) {
		if (lost[r] > 0) {
			fact_more(why, "%s%s", separator, drop_reason_name((enum drop_reason)r));
			separator = ", ";
		}
	}
	fact_more(why, ")");
	return part;
}

// No packet came to the link: names what was lost in its path, or in those before it on the routes
// of its flows.
static void lost_before(
	const struct paths *ps, const struct path *p, uint64_t now_ns, struct fact *why) {
	char name[sizeof(p->name) + 2];
	double own = lost_elsewhere(p, "the path's", now_ns, why), most = own;
	uint64_t named = 0;

	for (uint32_t g = 0; own <= 0 && g < ps->groups; g++) {
		const struct route *r = &ps->route[g][FLOWS_FORWARD];

		for (uint32_t i = 0; on_route(r, p) && i < r->count && r->path[i] != p; i++) {
			uint64_t bit = UINT64_C(1) << r->path[i]->index;

			snprintf(name, sizeof(name), "%s's", r->path[i]->name);
			if ((named & bit) == 0)
				most = fmax(most, lost_elsewhere(r->path[i], name, now_ns, why));
			named |= bit;
		}
	}
	fact_number(why, "dropped_elsewhere", most);
}

static void own_queue(
	const struct path_stage *s, const struct link_count *in_run, struct fact *why) {
	struct aqm_limit l = s->ops->capacity->limit(s->state);
	double pkts = (double)(in_run->out_pkts + in_run->drops);

	why->cause = "own_queue";
	fact_number(why, "dropped", (double)in_run->drops / pkts);
	fact_number(why, "marked", (double)in_run->marks / pkts);
	fact_more(why, "its own queue dropped %.3g %% of its packets and marked %.3g %%",
		100 * (double)in_run->drops / pkts, 100 * (double)in_run->marks / pkts);
	if (l.pkts < UINT64_MAX)
		fact_more(why, ", and holds at most %llu packet%s", (unsigned long long)l.pkts,
			l.pkts == 1 ? "" : "s");
	else if (l.bytes < UINT64_MAX)
		fact_more(why, ", and holds at most %llu B", (unsigned long long)l.bytes);
}

// False: there was a standing queue.
static bool reason(const struct paths *ps, const struct path *p, const struct path_stage *s,
	uint64_t now_ns, struct fact *why) {
	struct link_count in_run;
	struct stats_figures f = figures(s, now_ns, &in_run);
	const struct path_stage *other;
	double most = BOTTLENECK_BUSY;

	if (f.utilisation >= STANDING_UTILISATION
		|| (in_run.drops + in_run.marks > 0 && f.queue_mean_pkts >= STANDING_PKTS))
		return false;
	fact_set(why, "no_packets", "%s: no standing queue: ", path_link_title(p, s));
	fact_text(why, "link", path_link_title(p, s));
	fact_number(why, "utilisation", f.utilisation);
	if (in_run.out_pkts + in_run.drops == 0) {
		fact_more(why, "no packet came");
		lost_before(ps, p, now_ns, why);
		return true;
	}
	if (in_run.drops + in_run.marks > 0) {
		own_queue(s, &in_run, why);
		return true;
	}
	why->cause = "offered";
	fact_more(why, "the senders offered %.3g %% of the link", 100 * f.utilisation);
	other = bottleneck(ps, p, s, now_ns, &most);
	if (other == NULL) {
		fact_number(why, "dropped_elsewhere", lost_elsewhere(p, "the path's", now_ns, why));
		return true;
	}
	why->cause = "elsewhere";
	fact_text(why, "bottleneck", other->name);
	fact_number(why, "bottleneck_used", most);
	fact_more(
		why, "; the bottleneck is elsewhere: %s was %.3g %% used", other->name, 100 * most);
	return true;
}

void paths_why(struct paths *ps, struct json *j, uint64_t now_ns) {
	struct fact why;

	for (uint32_t i = 0; i < ps->count; i++)
		path_serve(&ps->path[i], now_ns);
	json_array(j, "why");
	for (uint32_t i = 0; i < ps->count; i++) {
		const struct path *p = &ps->path[i];

		if (!carries_data(ps, p))
			continue;
		for (uint32_t k = 0; k < p->stages; k++) {
			const struct path_stage *s = &p->stage[k];

			if (path_is_link(s) && reason(ps, p, s, now_ns, &why))
				fact_json(&why, j, NULL);
		}
	}
	json_close(j, ']');
}
