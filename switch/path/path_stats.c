// SPDX-License-Identifier: BSD-3-Clause
// What paths report: link figures, interval records, the ledger.
#include "switch/path/path.h"

#include "switch/path/fields.h"
#include "switch/stage/card.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// The i-th link of all paths in the order of the config, or NULL.
static struct path_stage *paths_link(struct paths *ps, uint32_t i, struct path **path) {
	for (uint32_t n = 0; n < ps->count; n++) {
		for (uint32_t k = 0; k < ps->path[n].stages; k++) {
			*path = &ps->path[n];
			if (path_is_link(&ps->path[n].stage[k]) && i-- == 0)
				return &ps->path[n].stage[k];
		}
	}
	return NULL;
}

// Of a link that was served to now_ns.
static struct stage_stats *path_stats(const struct path_stage *s, uint64_t now_ns) {
	return s->ops->figures->read(s->state, now_ns);
}

uint8_t path_last_link(const struct path *p) {
	uint8_t link = STAGE_NO_LINK;

	for (uint32_t i = 0; i < p->stages; i++) {
		if (path_is_link(&p->stage[i]))
			link = p->stage[i].env.link_index;
	}
	return link;
}

bool paths_random(const struct paths *ps) {
	for (uint32_t i = 0; i < ps->count; i++) {
		if (ps->flow_delays[i].count > 0)
			return true;
		for (uint32_t k = 0; k < ps->path[i].stages; k++) {
			const struct path_stage *s = &ps->path[i].stage[k];

			if (stage_random(s->ops, s->state))
				return true;
		}
	}
	return false;
}

bool paths_flows(const struct paths *ps) {
	for (uint32_t i = 0; i < ps->count; i++) {
		for (uint32_t k = 0; k < ps->path[i].stages; k++) {
			const struct path_stage *s = &ps->path[i].stage[k];

			if (s->env.class_extra_ns != NULL || stage_reads_flows(s->ops, s->state))
				return true;
		}
	}
	return false;
}

uint32_t paths_links(struct paths *ps) {
	struct path *p;
	uint32_t n = 0;

	while (paths_link(ps, n, &p) != NULL)
		n++;
	return n;
}

static void paths_serve(struct paths *ps, uint64_t now_ns) {
	for (uint32_t i = 0; i < ps->count; i++)
		path_serve(&ps->path[i], now_ns);
}

void path_measure(struct path *p, uint64_t now_ns) {
	path_serve(p, now_ns);
	p->measured_in_pkts = p->in.pkts;
	for (uint32_t r = 0; r < DROP_REASONS; r++)
		p->measured_drop_pkts[r] = p->drop[r].pkts;
	for (uint32_t i = 0; i < p->stages; i++) {
		if (path_is_link(&p->stage[i]))
			stats_restart(path_stats(&p->stage[i], now_ns), STATS_RUN, now_ns);
	}
}

void paths_measure(struct paths *ps, uint64_t now_ns) {
	for (uint32_t i = 0; i < ps->count; i++)
		path_measure(&ps->path[i], now_ns);
	for (uint32_t side = 0; side < FLOWS_DIRECTIONS; side++) {
		if (ps->cards[side] != NULL)
			card_measure(ps->cards[side], now_ns);
	}
}

struct path_capacity path_capacity(const struct path *p, uint32_t frame_bytes) {
	struct path_capacity c = {.copies = 1};

	for (uint32_t i = 0; i < p->stages; i++) {
		const struct path_stage *s = &p->stage[i];

		c.copies <<= stage_copies_packets(s->ops);
		if (s->ops->capacity != NULL) {
			struct aqm_limit l = s->ops->capacity->limit(s->state);

			c.queue_pkts += min_u64(l.pkts, l.bytes / (frame_bytes + l.overhead_bytes));
		}
	}
	c.rate_bps = p->max_rate_bps > 0 ? p->max_rate_bps : PATH_RATE_DEFAULT_BPS;
	c.delay_ns = p->max_delay_ns;
	return c;
}

static const struct path_stage *first_link(const struct path *p) {
	for (uint32_t i = 0; i < p->stages; i++) {
		if (path_is_link(&p->stage[i]))
			return &p->stage[i];
	}
	return NULL;
}

double path_utilisation(struct path *p, uint64_t now_ns) {
	const struct path_stage *link = first_link(p);

	path_serve(p, now_ns);
	if (link == NULL)
		return (double)NAN;
	struct stage_stats *s = path_stats(link, now_ns);
	struct stats_totals to = stats_totals(s, now_ns);

	return stats_figures(&stats_peak(s, STATS_RUN)->from, &to).utilisation;
}

bool route_has_link(const struct route *r) {
	for (uint32_t i = 0; i < r->count; i++) {
		if (first_link(r->path[i]) != NULL)
			return true;
	}
	return false;
}

struct path_queued route_queued(const struct route *r, uint64_t now_ns) {
	for (uint32_t i = 0; i < r->count; i++) {
		const struct path_stage *link = first_link(r->path[i]);

		if (link == NULL)
			continue;
		struct stage_stats *s = path_stats(link, now_ns);
		const struct stats_totals *from = &stats_peak(s, STATS_RUN)->from;
		struct stats_totals to = stats_totals(s, now_ns);

		return (struct path_queued){
			to.dequeued - from->dequeued, to.sojourn_ns - from->sojourn_ns};
	}
	return (struct path_queued){0};
}

static uint32_t saturate32(uint64_t v) {
	return v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

static void link_interval(const struct path_stage *s, struct tel *links, uint64_t now_ns) {
	struct stage_stats *st = path_stats(s, now_ns);
	const struct stats_peak *peak = stats_peak(st, STATS_INTERVAL);
	struct stats_totals to = stats_totals(st, now_ns);
	struct stats_figures f = stats_figures(&peak->from, &to);
	struct link_count n = stats_count(&peak->from, &to);
	struct tel_links *r = tel_put(links);

	if (r != NULL)
		*r = (struct tel_links){
			.ts_ns = now_ns,
			.out_bytes = n.out_bytes,
			.rate_bps = st->varies ? (uint64_t)f.rate_mean_bps : st->rate_bps,
			.link = s->env.link_index,
			.out_pkts = n.out_pkts,
			.drops = n.drops,
			.marks = n.marks,
			.queue_pkts = saturate32(st->queue_pkts),
			.queue_max_pkts = saturate32(peak->queue_pkts),
			.queue_mean_pkts = (float)f.queue_mean_pkts,
			.queue_mean_bytes = (float)f.queue_mean_bytes,
			.sojourn_mean_ns = (uint64_t)f.sojourn_mean_ns,
			.sojourn_max_ns = peak->sojourn_ns,
		};
	stats_restart(st, STATS_INTERVAL, now_ns);
}

static void stage_event(const struct path_stage *s, struct tel *events, uint64_t now_ns) {
	double out[AQM_OBSERVED] = {0};
	const char *name = stage_observe(s->ops, s->state, out);
	struct tel_events *r;

	if (name == NULL || (r = tel_put(events)) == NULL)
		return;
	*r = (struct tel_events){
		.ts_ns = now_ns,
		.value = out[0],
		.value2 = (float)out[1],
		.value3 = (float)out[2],
		.value4 = (float)out[3],
		.flow_id = TEL_NO_FLOW,
		.detail = tel_observer_number(s->env.tel_run, TEL_STREAM_EVENTS, name),
		.event = TEL_EV_OBSERVED,
		.group = (uint16_t)s->env.link_index,
		.path = s->env.path_index,
		.stage = s->env.stage_index,
	};
}

void path_interval(struct path *p, struct tel *links, struct tel *events, uint64_t now_ns) {
	path_serve(p, now_ns);
	for (uint32_t i = 0; i < p->stages; i++) {
		if (path_is_link(&p->stage[i]))
			link_interval(&p->stage[i], links, now_ns);
		stage_event(&p->stage[i], events, now_ns);
	}
}

void paths_interval(struct paths *ps, struct tel *links, struct tel *events, uint64_t now_ns) {
	for (uint32_t i = 0; i < ps->count; i++)
		path_interval(&ps->path[i], links, events, now_ns);
}

// Is its name its type, as that of "forward.link" is?
static bool named_as_type(const struct path *p, const struct path_stage *s) {
	return strcmp(s->name + strlen(p->name) + 1, s->ops->name) == 0;
}

const char *path_link_title(const struct path *p, const struct path_stage *s) {
	for (const struct path_stage *o = p->stage; o < s; o++) {
		if (path_is_link(o) && named_as_type(p, o))
			return s->name;
	}
	return named_as_type(p, s) ? p->name : s->name;
}

void paths_summary(struct paths *ps, struct json *j, uint64_t now_ns) {
	struct path_stage *s;
	struct path *p;

	paths_serve(ps, now_ns);
	json_object(j, "links");
	for (uint32_t i = 0; (s = paths_link(ps, i, &p)) != NULL; i++) {
		struct stage_stats *st = path_stats(s, now_ns);
		const struct stats_peak *peak = stats_run(st, now_ns);
		const struct hist *sojourn = stats_sojourn(st);
		struct stats_totals to = stats_totals(st, now_ns);
		struct stats_figures f = stats_figures(&peak->from, &to);
		const struct link_count since = stats_count(&peak->from, &to), *sum = &since;
		const bool known[COUNTER_SOURCES] = {[COUNT_ALWAYS] = true};
		bool timed = sojourn->total > 0; // a packet has left

		json_object(j, path_link_title(p, s));
		LINK_FIELDS(FIELD_JSON)
		json_close(j, '}');
	}
	json_close(j, '}');
}

static void json_count(struct json *j, const char *name, uint64_t pkts, uint64_t bytes) {
	json_object(j, name);
	PACKETS_FIELDS(FIELD_JSON)
	json_close(j, '}');
}

bool path_none_for_most(
	uint64_t received, const struct pkt_count drop[DROP_REASONS], struct fact *fault) {
	static const struct {
		enum drop_reason reason;
		const char *what;
	} kinds[] = {
		{DROP_MALFORMED, "were malformed"},
		{DROP_CHECKSUM, "had a wrong IP checksum"},
		{DROP_CUT,
			"were longer than the port receives (at the host set the MTU to 1500, "
			"and tso, gso and gro off)"},
		{DROP_TOO_LONG, "were longer than a buffer"},
		{DROP_MTU, "were longer than the MTU of the interface by which they leave"},
		{DROP_NO_ROUTE, "had no port to leave by"},
	};
	size_t n = sizeof(kinds) / sizeof(kinds[0]);
	const char *separator = ", ";
	uint64_t thrown = 0;

	for (size_t i = 0; i < n; i++)
		thrown += drop[kinds[i].reason].pkts;
	if (thrown <= received / 2)
		return false;
	fact_set(fault, "thrown_away", "most of what came was thrown away: of %llu frames received",
		(unsigned long long)received);
	fact_number(fault, "count", (double)thrown);
	fact_number(fault, "of", (double)received);
	for (size_t i = 0; i < n; i++) {
		if (drop[kinds[i].reason].pkts == 0)
			continue;
		fact_more(fault, "%s%llu %s", separator,
			(unsigned long long)drop[kinds[i].reason].pkts, kinds[i].what);
		separator = " and ";
	}
	return true;
}

static void write_drops(const struct path *p, struct json *j) {
	json_object(j, "drops");
	for (uint32_t r = DROP_NONE + 1; r < DROP_REASONS; r++) {
		if (p->drop[r].pkts > 0)
			json_count(j, drop_reason_name((enum drop_reason)r), p->drop[r].pkts,
				p->drop[r].bytes);
	}
	json_close(j, '}');
}

bool paths_balanced(const struct paths *ps) {
	bool all = true;

	for (uint32_t i = 0; i < ps->count; i++)
		all &= path_balanced(&ps->path[i]);
	return all;
}

void paths_ledger(const struct paths *ps, struct json *j) {
	json_object(j, "paths");
	for (uint32_t i = 0; i < ps->count; i++) {
		const struct path *p = &ps->path[i];
		struct backlog inside = path_backlog(p);

		json_object(j, p->name);
		PATH_LEDGER_FIELDS(FIELD_JSON)
		json_close(j, '}');
	}
	json_close(j, '}');
}

void paths_ledger_only(const struct paths *ps, struct json *j, bool balanced) {
	json_object(j, "ledger");
	PATHS_LEDGER_FIELDS(FIELD_JSON)
	json_close(j, '}');
}
