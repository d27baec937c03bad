// SPDX-License-Identifier: BSD-3-Clause
#include "sender/live/plan.h"

#include "common/base/ns.h"
#include "common/net/flow_addr.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#define FRAME_MAX_BYTES 1518 // with FCS; what a live port's buffers take
#define RATE_DEFAULT_BPS 10e9
#define PIPE_DEFAULT_NS 200e6
#define PIPE_SLACK_NS 10e6

static const struct param plan_params[] = {
	{"rate", "0bit",
		"what the network carries at most; 0: from paths and schedule, else 10Gbit",
		UNIT_RATE_BPS, PARAM_U64(struct live_plan, rate_bps), .min = 0, .max = 1e12},
	{"pipe", "0s",
		"longest round trip, queues included; 0: from paths and schedule, else 200ms",
		UNIT_TIME_NS, PARAM_U64(struct live_plan, pipe_ns), .min = 0, .max = 60e9},
	{"answer", "10s", "how long a peer may take to answer ARP and the first SYN", UNIT_TIME_NS,
		PARAM_U64(struct live_plan, answer_ns), .min = 1e6, .max = 3600e9},
	{"dynamic_connections", "64",
		"connections a receiver takes beside those of `flows`, each lcore", UNIT_NONE,
		PARAM_U64(struct live_plan, dynamic_connections), .min = 0, .max = 65536},
	{"handover", "4096", "received frames that may wait for another lcore, at each", UNIT_NONE,
		PARAM_U64(struct live_plan, handover), .min = 1, .max = 1 << 20},
	{"checksum", "yes", "verify received TCP checksums", UNIT_NONE,
		PARAM_BOOL(struct live_plan, checksum)},
	PARAM_END,
};
static const char *const own_keys[] = {"lcores", "ports", "rate", "pipe", "answer",
	"dynamic_connections", "strangers", "handover", "checksum", NULL};
static const char *const process_keys[] = {LIVE_PROCESS_KEYS, "strangers", NULL};

static const struct param port_params[] = {
	{"name", NULL, "the port's name in messages and figures", UNIT_NONE,
		PARAM_TEXT(struct live_port, name)},
	LIVE_PORT_ROLE(struct live_port, role),
	LIVE_PORT_IP(struct live_port, ip_text),
	{"peer", "", "the other side's first address; default: as above", UNIT_NONE,
		PARAM_TEXT(struct live_port, peer_text)},
	{"queues", "1", "receive and transmit queues: 1, or one for each of lcores", UNIT_NONE,
		PARAM_U64(struct live_port, queues), .min = 1, .max = LIVE_LCORES_MAX},
	{"gateway", "", "next hop, if the peer is not on this network", UNIT_NONE,
		PARAM_TEXT(struct live_port, gateway_text)},
	{"port", "5001", "TCP port of the receiving side", UNIT_NONE,
		PARAM_U64(struct live_port, peer_port), .min = 1, .max = 65535},
	{"mac", "", "MAC address; default: the device's", UNIT_NONE,
		PARAM_TEXT(struct live_port, mac_text)},
	{"lead", "20us", LIVE_LEAD_HELP, UNIT_TIME_NS, PARAM_U64(struct live_port, lead_ns),
		.min = 0, .max = LIVE_LEAD_NS_MAX},
	PARAM_END,
};
static const char *const port_also[] = {"dev", NULL};

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

struct network {
	struct config_node *schedule;
	double rate_bps; // of the slowest link of "forward", each link at its fastest
	double delay_ns; // all paths together, each delay at its longest
	double start_ns; // the same as the run begins
	double queue_ns, queue_bdp; // all links together: in time, and in BDPs
};

// One stage: its parameters, and what the schedule calls it.
struct stage {
	struct config_node *params;
	char name[64]; // "forward.link"
};

// The stage's entry at its largest: as the run begins, or by the schedule.
static double largest(
	const struct network *n, const struct stage *s, const char *key, enum unit unit) {
	double value = number(s->params, key, unit);
	char full[sizeof(s->name) + 16];

	snprintf(full, sizeof(full), "%s.%s", s->name, key);
	for (size_t i = 0; n->schedule != NULL && i < config_count(n->schedule); i++)
		value = fmax(value, number(config_at(n->schedule, i), full, unit));
	return value;
}

// What a queue's limit means in time. The limit of a discipline is always called that.
static void add_queue(struct network *n, struct config_node *link, double rate_bps) {
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
		n->queue_ns += limit.value * 8e9 / rate_bps;
		break;
	case LIMIT_PACKETS:
		n->queue_ns += limit.value * (FRAME_MAX_BYTES + WIRE_OVERHEAD) * 8e9 / rate_bps;
		break;
	case LIMIT_TIME:
		n->queue_ns += limit.value;
		break;
	case LIMIT_BDP:
		n->queue_bdp += limit.value;
		break;
	}
}

// The `place`th stage of that type on its path, if this is one.
static bool find_stage(struct stage *s, struct config_node *node, const char *path,
	const char *type, uint32_t *place) {
	struct config_node *given;
	const char *name = type;
	char ordinal[12] = "";

	s->params = config_kind(node) == CONFIG_MAP ? config_get(node, type) : NULL;
	if (s->params == NULL || config_kind(s->params) != CONFIG_MAP)
		return false;
	given = config_get(s->params, "name");
	if (++*place > 1 && given == NULL)
		snprintf(ordinal, sizeof(ordinal), "%u", *place);
	if (given != NULL && config_text(given) != NULL)
		name = config_text(given);
	snprintf(s->name, sizeof(s->name), "%s.%s%s", path, name, ordinal);
	return true;
}

static void add_link(struct network *n, const struct stage *link, bool forward) {
	double rate_bps = number(link->params, "rate", UNIT_RATE_BPS);

	if (rate_bps <= 0)
		return;
	add_queue(n, link->params, rate_bps);
	rate_bps = largest(n, link, "rate", UNIT_RATE_BPS);
	if (forward && (n->rate_bps == 0 || rate_bps < n->rate_bps))
		n->rate_bps = rate_bps;
}

static void add_delay(struct network *n, const struct stage *delay) {
	static const char *const keys[] = {"delay", "late_by"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		n->start_ns += number(delay->params, keys[i], UNIT_TIME_NS);
		n->delay_ns += largest(n, delay, keys[i], UNIT_TIME_NS);
	}
}

static void add_path(struct network *n, struct config_node *path, const char *name) {
	bool forward = strcmp(name, "forward") == 0;
	uint32_t links = 0, delays = 0;

	for (size_t i = 0; i < config_count(path); i++) {
		struct stage s;

		if (find_stage(&s, config_at(path, i), name, "link", &links))
			add_link(n, &s, forward);
		else if (find_stage(&s, config_at(path, i), name, "delay", &delays))
			add_delay(n, &s);
	}
}

// What the switch would do with `paths` and `schedule`, as far as the sender must know: it sizes the
// scoreboard, which holds what is under way at any time of the run.
static void derive_network(struct live_plan *p, struct config *c, const struct groups *gs) {
	struct config_node *paths = config_get(config_root(c), "paths");
	struct network n = {.schedule = config_get(config_root(c), "schedule")};
	double extra_ns = 0;

	for (size_t i = 0;
		paths != NULL && config_kind(paths) == CONFIG_MAP && i < config_count(paths); i++)
		add_path(&n, config_at(paths, i), config_key(paths, i));
	config_skip(paths);
	config_skip(n.schedule);
	for (uint32_t i = 0; i < gs->count; i++)
		extra_ns = fmax(extra_ns, (double)gs->group[i].base_rtt_ns);
	if (p->rate_bps == 0)
		p->rate_bps = (uint64_t)(n.rate_bps > 0 ? n.rate_bps : RATE_DEFAULT_BPS);
	if (p->pipe_ns == 0 && n.rate_bps > 0)
		p->pipe_ns = (uint64_t)(fmax(n.delay_ns, extra_ns) + n.queue_ns
			+ fmax(n.start_ns, extra_ns) * n.queue_bdp + PIPE_SLACK_NS);
	if (p->pipe_ns == 0)
		p->pipe_ns = (uint64_t)PIPE_DEFAULT_NS;
}

// Both ends of all connections, and who passes their packets on, must have addresses for tests:
// what is sent to others, and what others answer, would leave the testbed.
static int in_range(const struct live_plan *p, struct config_node *n, const struct live_port *port,
	uint32_t flows, struct err *err) {
	uint32_t more = flow_addr_count(flows) - 1, sends = port->role == LIVE_SENDER;
	const struct {
		const char *key;
		uint32_t first, last;
	} range[] = {
		{"ip", port->ip, port->ip + (sends ? more : 0)},
		{"peer", port->peer, port->peer + (sends ? 0 : more)},
		{"gateway", port->next_hop, port->next_hop},
	};
	char ip[16];

	for (size_t i = 0; i < sizeof(range) / sizeof(range[0]); i++) {
		bool first = live_may_send(&p->process, range[i].first);

		if (first && live_may_send(&p->process, range[i].last))
			continue;
		live_ip_text(first ? range[i].last : range[i].first, ip);
		return config_err(n, -EINVAL, err,
			"%s: %s is outside 198.18.0.0/15, the addresses for tests; "
			"live.allow_destinations: yes sends there all the same",
			range[i].key, ip);
	}
	return 0;
}

static int port_addresses(const struct live_plan *p, struct live_port *port, struct config_node *n,
	uint32_t flows, struct err *err) {
	bool sends = port->role == LIVE_SENDER;
	uint32_t ours = sends ? FLOW_ADDR_SENDER : FLOW_ADDR_RECEIVER;
	uint32_t theirs = sends ? FLOW_ADDR_RECEIVER : FLOW_ADDR_SENDER;
	int rc;

	if ((rc = live_address(n, "ip", port->ip_text, ours, &port->ip, err)) < 0)
		return rc;
	if ((rc = live_address(n, "peer", port->peer_text, theirs, &port->peer, err)) < 0)
		return rc;
	if ((rc = live_address(n, "gateway", port->gateway_text, port->peer, &port->next_hop, err))
		< 0)
		return rc;
	if (live_mac(port->mac_text, &port->mac, &port->mac_given) < 0)
		return config_err(n, -EINVAL, err,
			"mac: '%s' is not a MAC address such as 02:00:00:00:00:01", port->mac_text);
	if ((rc = in_range(p, n, port, flows, err)) < 0)
		return rc;
	if (sends && port->peer - port->ip < flow_addr_count(flows))
		return config_err(
			n, -EINVAL, err, "peer: is one of the addresses of %u flows", flows);
	return 0;
}

static int port_read(struct live_plan *p, struct config_node *n, uint32_t flows, struct err *err) {
	struct live_port *port = &p->port[p->ports];
	int rc;

	if (config_kind(n) != CONFIG_MAP)
		return config_err(n, -EINVAL, err, "ports: a port is a map");
	if ((rc = config_params(n, "port", port_params, port_also, port, err)) < 0)
		return rc;
	if ((rc = live_dev_init(&port->dev, &p->process, n, err)) < 0)
		return rc;
	if (port->queues != 1 && port->queues != p->process.lcores)
		return config_err(n, -EINVAL, err, "queues: 1, or one for each of lcores: %u",
			p->process.lcores);
	for (uint32_t i = 0; i < p->ports; i++) {
		if (p->port[i].role == port->role)
			return config_err(n, -EINVAL, err, "role: two ports are %s",
				live_role_names[port->role]);
		if (strcmp(p->port[i].dev.name, port->dev.name) == 0)
			return config_err(
				n, -EINVAL, err, "dev: '%s' is used twice", port->dev.name);
	}
	p->ports++;
	return port_addresses(p, port, n, flows, err);
}

// Files that older versions wrote have the key by its name of then.
static int old_key(struct config_node *node, struct err *err) {
	struct config_node *old = config_get(node, "strangers");

	if (old == NULL || config_get(node, "dynamic_connections") != NULL)
		return 0;
	if (config_text(old) == NULL)
		return config_err(old, -EINVAL, err,
			"strangers: a single value is wanted; it is called dynamic_connections now");
	config_add(node, "dynamic_connections", config_text(old));
	return 0;
}

int live_plan_init(
	struct live_plan *p, struct config *c, const struct groups *gs, struct err *err) {
	struct config_node *node, *list, *live;
	int rc;

	if ((rc = live_process_init(&p->process, c, "sender", own_keys, &node, err)) < 0)
		return rc;
	if (p->process.lcores > gs->flows)
		return config_err(p->process.lcores_node, -EINVAL, err,
			"lcores: %u CPUs for %u flows; each needs one at least", p->process.lcores,
			gs->flows);
	if ((rc = old_key(node, err)) < 0)
		return rc;
	if ((rc = config_params(node, "sender", plan_params, process_keys, p, err)) < 0)
		return rc;
	list = config_get(node, "ports");
	if (list == NULL || config_kind(list) != CONFIG_LIST || config_count(list) < 1
		|| config_count(list) > LIVE_ROLES)
		return config_err(list != NULL ? list : node, -EINVAL, err,
			"live.sender.ports: one port to send from, one to receive at, or both");
	for (size_t i = 0; i < config_count(list); i++) {
		if ((rc = port_read(p, config_at(list, i), gs->flows, err)) < 0)
			return rc;
	}
	if (groups_mtu_bytes(gs) > FRAME_MAX_BYTES)
		return config_err(list, -EINVAL, err,
			"flows: an mss of more than 1460 B does not fit into the frames of a live port");
	derive_network(p, c, gs);
	// The switch's own.
	live = config_get(config_root(c), "live");
	config_skip(config_get(live, "switch"));
	return 0;
}

const struct live_port *live_plan_port(const struct live_plan *p, enum live_role role) {
	for (uint32_t i = 0; i < p->ports; i++) {
		if (p->port[i].role == (int)role)
			return &p->port[i];
	}
	return NULL;
}
