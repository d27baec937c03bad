// SPDX-License-Identifier: BSD-3-Clause
#include "sender/group/network.h"

#include "common/net/wire.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define PIPE_SLACK_NS 10e6 // added to what delays and queues give

// One entry of a map as a number in its unit; 0 if it is not there.
static double number(struct config_node *map, const char *key, enum unit unit) {
	struct config_node *n = NULL;
	double value = 0;

	if (map != NULL && config_kind(map) == CONFIG_MAP)
		n = config_get(map, key);
	if (n == NULL || config_text(n) == NULL || unit_parse(config_text(n), unit, &value) < 0)
		return 0;
	return value;
}

// What is read of them. All paths are added up: whatever a packet and its ACK go through is among
// them.
struct reader {
	struct config_node *schedule, *flows;
	bool edges; // count edges among the links
	uint32_t frame_bytes; // the largest
	// Of the slowest link of each path in which data begins, each link at its fastest, all
	// together.
	double rate_bps;
	double path_bps; // of the path that is read
	double delay_ns; // each delay at its longest
	double start_ns; // the same as the run begins
	double queue_ns, queue_bdp; // of all links, each in one or the other
};

// One stage: its parameters, and what the schedule calls it.
struct stage {
	struct config_node *params;
	char name[CONFIG_ITEM_SIZE + 64]; // "forward.link"
};

// The stage's entry at its largest: as the run begins, or by the schedule.
static double largest(
	const struct reader *r, const struct stage *s, const char *key, enum unit unit) {
	double value = number(s->params, key, unit);
	char path_key[sizeof(s->name) + 16];

	snprintf(path_key, sizeof(path_key), "%s.%s", s->name, key);
	for (size_t i = 0; r->schedule != NULL && i < config_count(r->schedule); i++)
		value = fmax(value, number(config_at(r->schedule, i), path_key, unit));
	return value;
}

// What a queue's limit means in time. The limit of a discipline is always called that.
static void add_queue(struct reader *r, struct config_node *link, double rate_bps) {
	static const struct param limit_param = {
		.name = "limit", .type = PARAM_TYPE_LIMIT, .min = 0, .max = HUGE_VAL};
	struct config_node *queue = config_get(link, "queue"), *params = NULL, *node = NULL;
	struct limit limit = {.kind = LIMIT_BDP, .value = 1};
	const char *name;

	if (queue != NULL && config_plugin(queue, "queue", &name, &params, NULL) == 0
		&& params != NULL && config_kind(params) == CONFIG_MAP)
		node = config_get(params, "limit");
	if (node != NULL && config_text(node) != NULL)
		param_set(&limit_param, &limit, config_text(node), NULL);
	switch (limit.kind) {
	case LIMIT_BYTES:
		r->queue_ns += limit.value * 8e9 / rate_bps;
		break;
	case LIMIT_PACKETS:
		r->queue_ns += limit.value * (r->frame_bytes + WIRE_OVERHEAD) * 8e9 / rate_bps;
		break;
	case LIMIT_TIME:
		r->queue_ns += limit.value;
		break;
	case LIMIT_BDP:
		r->queue_bdp += limit.value;
		break;
	}
}

static void add_rate(struct reader *r, double rate_bps) {
	if (r->path_bps == 0 || rate_bps < r->path_bps)
		r->path_bps = rate_bps;
}

static void add_link(struct reader *r, const struct stage *link) {
	double rate_bps = number(link->params, "rate", UNIT_RATE_BPS);

	if (rate_bps <= 0) // it begins down
		rate_bps = largest(r, link, "rate", UNIT_RATE_BPS);
	if (rate_bps <= 0)
		return;
	add_queue(r, link->params, rate_bps);
	add_rate(r, largest(r, link, "rate", UNIT_RATE_BPS));
}

static void add_delay(struct reader *r, const struct stage *delay) {
	static const char *const keys[] = {"delay", "late_by"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		r->start_ns += number(delay->params, keys[i], UNIT_TIME_NS);
		r->delay_ns += largest(r, delay, keys[i], UNIT_TIME_NS);
	}
}

// Does the data of a flow group enter the network by this path?
static bool is_first(const struct reader *r, const char *path_name) {
	bool first = r->flows == NULL && strcmp(path_name, "forward") == 0;

	for (size_t i = 0; r->flows != NULL && i < config_count(r->flows); i++) {
		struct config_node *group = config_at(r->flows, i), *path = NULL, *names = NULL;
		const char *name = "forward";

		if (config_kind(group) == CONFIG_MAP)
			path = config_get(group, "path");
		if (path != NULL && config_kind(path) == CONFIG_MAP)
			names = config_get(path, "forward");
		if (names != NULL && config_kind(names) == CONFIG_LIST && config_count(names) > 0)
			names = config_at(names, 0);
		if (names != NULL)
			name = config_text(names);
		first |= name != NULL && strcmp(path_name, name) == 0;
	}
	return first;
}

static void add_path(struct reader *r, struct config_node *path, const char *path_name) {
	r->path_bps = 0;
	for (size_t i = 0; i < config_count(path); i++) {
		char name[CONFIG_ITEM_SIZE];
		const char *type = config_item(path, i, name);
		struct config_node *item = config_at(path, i);
		struct stage s = {0};

		if (type != NULL && config_kind(item) == CONFIG_MAP)
			s.params = config_get(item, type);
		if (s.params == NULL || config_kind(s.params) != CONFIG_MAP)
			continue;
		snprintf(s.name, sizeof(s.name), "%.60s.%s", path_name, name);
		if (strcasecmp(type, "link") == 0)
			add_link(r, &s);
		else if (strcasecmp(type, "edges") == 0 && r->edges)
			add_rate(r, number(s.params, "rate", UNIT_RATE_BPS));
		else if (strcasecmp(type, "delay") == 0)
			add_delay(r, &s);
	}
	if (is_first(r, path_name))
		r->rate_bps += r->path_bps;
}

void network_read(
	struct network *n, struct config_node *root, uint64_t base_rtt_ns, uint32_t frame_bytes) {
	struct config_node *paths = config_get(root, "paths");
	struct reader r = {.schedule = config_get(root, "schedule"),
		.flows = config_get(root, "flows"),
		.frame_bytes = frame_bytes};
	double extra_ns = (double)base_rtt_ns;

	for (size_t i = 0;
		paths != NULL && config_kind(paths) == CONFIG_MAP && i < config_count(paths); i++)
		add_path(&r, config_at(paths, i), config_key(paths, i));
	config_skip(paths);
	config_skip(r.schedule);
	*n = (struct network){.rate_bps = NETWORK_RATE_BPS, .pipe_ns = NETWORK_PIPE_NS};
	if (r.rate_bps <= 0)
		return;
	n->rate_bps = (uint64_t)r.rate_bps;
	n->pipe_ns = (uint64_t)(fmax(r.delay_ns, extra_ns) + r.queue_ns
		+ fmax(r.start_ns, extra_ns) * r.queue_bdp + PIPE_SLACK_NS);
}

// Adds the paths of a route.
static void add_route(
	struct reader *r, struct config_node *paths, const struct flows_route *route) {
	for (uint32_t i = 0; i < route->count; i++) {
		struct config_node *path = config_get(paths, route->path[i]);
		double slowest = r->path_bps;

		if (path == NULL || config_kind(path) != CONFIG_LIST)
			continue;
		add_path(r, path, route->path[i]);
		if (slowest > 0 && (r->path_bps == 0 || slowest < r->path_bps))
			r->path_bps = slowest;
	}
}

void network_read_empty(struct network_empty empty[GROUPS_MAX], struct config_node *root) {
	struct config_node *paths = config_get(root, "paths"), *hosts = config_get(root, "hosts");
	struct flows flows;
	struct err err;
	double card_bps = 0;

	memset(empty, 0, GROUPS_MAX * sizeof(*empty));
	if (paths == NULL || config_kind(paths) != CONFIG_MAP
		|| flows_read(&flows, config_get(root, "flows"), &err) < 0)
		return;
	if (hosts != NULL && config_kind(hosts) == CONFIG_MAP)
		card_bps = number(config_get(hosts, "sending"), "card", UNIT_RATE_BPS);
	for (uint32_t g = 0; g < flows.groups; g++) {
		struct reader forward = {.edges = true}, reverse = {0};

		add_route(&forward, paths, &flows.route[g][FLOWS_FORWARD]);
		add_route(&reverse, paths, &flows.route[g][FLOWS_REVERSE]);
		if (card_bps > 0)
			add_rate(&forward, card_bps);
		empty[g].rate_bps = (uint64_t)forward.path_bps;
		empty[g].rtt_ns = flows.base_rtt_ns[g] > 0
			? flows.base_rtt_ns[g]
			: (uint64_t)(forward.start_ns + reverse.start_ns);
	}
}
