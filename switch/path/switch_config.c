// SPDX-License-Identifier: BSD-3-Clause
#include "switch/path/switch_config.h"

#include "common/base/u64.h"
#include "common/net/address.h"
#include "common/run/run_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LARGE_PACKET 512 // bytes: least mean of the frames that keep their buffer
#define STRAIGHT_PKTS 1024 // buffers of a port without a path
#define PATH_SLACK_PKTS 1024 // bursts, the frame on the wire, packets that leave late

static const char *const start_names[] = {"now", "traffic", NULL};
static const struct param section_params[] = {
	LIVE_PROCESS_PARAMS(struct switch_config, process, "1024"),
	{"start", "now", "when duration and warmup begin: traffic is the first TCP or UDP packet",
		UNIT_NONE, PARAM_ENUM(struct switch_config, start, start_names)},
	{"pool", "0", "packets that may be inside; 0: as many as queues and delays may hold",
		UNIT_NONE, PARAM_U64(struct switch_config, pool), .min = 0, .max = 1e9},
	PARAM_END,
};
static const struct param also[] = {
	LIVE_PROCESS_ALSO("live.switch.ports"),
	{"static", "", "MAC addresses that are known from the start", UNIT_NONE,
		PARAM_LIST("live.switch.static"), .min = 0, .max = SWITCH_STATIC_MAX},
	PARAM_END,
};

static const struct param port_params[] = {
	LIVE_PORT_PARAMS(struct switch_config_port, common),
	{"path", "", "what leaves through this port goes through this path; default: straight out",
		UNIT_NONE, PARAM_TEXT(struct switch_config_port, path_name)},
	{"min_packet", "512B", "smallest mean packet its path must hold; sizes the packet pool",
		UNIT_BYTES, PARAM_U64(struct switch_config_port, min_packet), .min = 64,
		.max = 9018},
	{"lcore", "", "the CPU, one of lcores, that serves it; default: each one in turn",
		UNIT_NONE, PARAM_TEXT(struct switch_config_port, lcore_text)},
	{"rx_queues", "1", "receive queues, each for another one of lcores", UNIT_NONE,
		PARAM_U64(struct switch_config_port, rx_queues), .min = 1, .max = LIVE_LCORES_MAX},
	PARAM_END,
};

static const struct live_section section = {
	.name = "switch",
	.params = section_params,
	.also = also,
	.port_params = port_params,
	.port_size = sizeof(struct switch_config_port),
	.ports_min = 2,
	.ports_max = LIVE_PORTS_MAX,
};

struct fixed {
	char mac[PARAM_TEXT_SIZE];
	char port[PARAM_TEXT_SIZE];
};
static const struct param fixed_params[] = {
	{"mac", NULL, "MAC address", UNIT_NONE, PARAM_TEXT(struct fixed, mac)},
	{"port", NULL, "the port it is behind", UNIT_NONE, PARAM_TEXT(struct fixed, port)},
	PARAM_END,
};

void switch_config_list(struct run_list *l) {
	run_list_live_section(l, &section, "weir-switch");
	run_list_entry(l,
		&(struct run_listed){.kind = "live",
			.name = "live.switch.static",
			.summary = "a MAC address and its port",
			.params = fixed_params});
}

int switch_config_flows(struct switch_config *p, struct config *c, uint64_t seed,
	uint64_t duration_ns, struct err *err) {
	struct config_node *root = config_root(c), *list = config_get(root, "flows");
	struct config_node *live = config_get(root, "live");
	struct flows f;
	int rc;

	if ((rc = live_mtu(live, &p->process, err)) < 0
		|| (rc = live_sender_ip(live, &p->flow_base_ip, err)) < 0)
		return rc;
	if ((rc = flows_read(&f, list, err)) < 0
		|| (rc = base_rtts_init(&p->base_rtts, &f, list, seed, duration_ns, err)) < 0)
		return rc;
	config_skip(list);
	p->groups = f.groups;
	memcpy(p->group_base_rtt_ns, f.base_rtt_ns, sizeof(p->group_base_rtt_ns));
	memcpy(p->group_route, f.route, sizeof(p->group_route));
	p->group_of = calloc(f.count + 1, sizeof(*p->group_of));
	if (p->group_of == NULL)
		return err_set(err, -ENOMEM, "flows: no memory for %u", f.count);
	for (uint32_t g = 0; g < f.groups; g++) {
		for (uint32_t i = 0; i < f.group_count[g]; i++)
			p->group_of[p->flows++] = (uint16_t)g;
	}
	return 0;
}

void switch_config_free(struct switch_config *p) {
	base_rtts_free(&p->base_rtts);
	free(p->group_of);
	p->group_of = NULL;
}

// Rate of the run's fastest path with a link; PATH_RATE_DEFAULT_BPS if there is none.
static uint64_t fastest_bps(const struct paths *ps) {
	uint64_t rate_bps = 0;

	for (uint32_t i = 0; i < ps->count; i++)
		rate_bps = max_u64(rate_bps, ps->path[i].max_rate_bps);
	return rate_bps > 0 ? rate_bps : PATH_RATE_DEFAULT_BPS;
}

static uint64_t path_pkts(const struct paths *ps, const struct path *p, uint32_t frame) {
	struct path_capacity c = path_capacity(p, frame);
	uint64_t rate_bps = p->max_rate_bps > 0 ? p->max_rate_bps : fastest_bps(ps);
	double delayed =
		c.copies * (double)rate_bps * (double)c.delay_ns / (8e9 * (frame + WIRE_OVERHEAD));

	return PATH_SLACK_PKTS + c.queue_pkts + (uint64_t)delayed;
}

// Which lcore serves the i-th port.
static int port_lcore(struct switch_config *p, uint32_t i, struct config_node *n, struct err *err) {
	struct switch_config_port *port = &p->port[i];
	const struct live_process *lp = &p->process;
	double cpu;

	port->lcore = i % lp->lcores;
	if (port->rx_queues > lp->lcores)
		return config_err(config_get(n, "rx_queues"), -EINVAL, err,
			"rx_queues: %llu are more than the lcores, %u",
			(unsigned long long)port->rx_queues, lp->lcores);
	if (port->lcore_text[0] == '\0')
		return 0;
	if (unit_parse(port->lcore_text, UNIT_NONE, &cpu) == 0) {
		for (port->lcore = 0; port->lcore < lp->lcores; port->lcore++) {
			if (cpu == lp->lcore[port->lcore])
				return 0;
		}
	}
	return config_err(config_get(n, "lcore"), -EINVAL, err,
		"lcore: '%s' is not a CPU that live.switch.lcores names", port->lcore_text);
}

// Every lcore has something to do.
static int no_lcore_idle(const struct switch_config *p, struct err *err) {
	for (uint32_t i = 0; i < p->process.lcores; i++) {
		bool used = false;

		for (uint32_t k = 0; k < p->ports; k++) {
			used |= p->port[k].lcore == i;
			for (uint32_t q = 0; q < p->port[k].rx_queues; q++)
				used |= switch_config_receiver(p, k, q) == i;
		}
		if (!used)
			return config_err(config_at(p->process.lcores_node, i), -EINVAL, err,
				"lcores: CPU %u has nothing to do: it has no port, "
				"nor a receive queue of one",
				p->process.lcore[i]);
	}
	return 0;
}

// The path before the i-th port, and its quota of the pool.
static int port_path(struct switch_config *p, uint32_t i, struct paths *ps, struct config_node *n,
	struct err *err) {
	struct switch_config_port *port = &p->port[i];
	char names[CONFIG_NAMES_SIZE];

	port->quota = port->large_quota = STRAIGHT_PKTS;
	if (port->path_name[0] == '\0')
		return 0;
	port->path = paths_find(ps, port->path_name);
	if (port->path == NULL) {
		paths_names(ps, names);
		return config_err(n, -EINVAL, err, "path: there is no path '%s'; there is %s",
			port->path_name, names);
	}
	for (uint32_t k = 0; k < i; k++) {
		if (p->port[k].path == port->path)
			return config_err(n, -EINVAL, err,
				"path: '%s' is used by port '%s' too; a path has one exit",
				port->path_name, p->port[k].common.name);
	}
	port->quota = path_pkts(ps, port->path, (uint32_t)port->min_packet);
	port->large_quota = SWITCH_SHORT_PKTS
		+ path_pkts(ps, port->path, (uint32_t)max_u64(port->min_packet, LARGE_PACKET));
	port->large_quota = time_min(port->large_quota, port->quota);
	return 0;
}

// Where groups name their paths, any packet may pass any path, and leave by any port.
static int switch_config_routes(struct switch_config *p, struct paths *ps, struct err *err) {
	uint64_t quota = STRAIGHT_PKTS, large_quota = STRAIGHT_PKTS + SWITCH_SHORT_PKTS;

	for (uint32_t g = 0; g < p->groups; g++) {
		for (int d = 0; d < FLOWS_DIRECTIONS; d++)
			p->routed |= p->group_route[g][d].node != NULL;
	}
	if (!p->routed)
		return 0;
	if (p->process.lcores > 1)
		return config_err(p->process.lcores_node, -EINVAL, err,
			"lcores: %u CPUs are named, but where groups of flows name their paths, "
			"one lcore serves all paths: name one CPU",
			p->process.lcores);
	for (uint32_t i = 0; i < ps->count; i++) {
		uint64_t min_packet = LARGE_PACKET;

		for (uint32_t k = 0; k < p->ports; k++)
			min_packet = time_min(min_packet, p->port[k].min_packet);
		quota += path_pkts(ps, &ps->path[i], (uint32_t)min_packet);
		large_quota += path_pkts(ps, &ps->path[i], LARGE_PACKET);
	}
	for (uint32_t k = 0; k < p->ports; k++) {
		p->port[k].quota = quota;
		p->port[k].large_quota = time_min(large_quota, quota);
	}
	return 0;
}

// The paths with captures are one lcore's, which begins and ends the run.
static int switch_config_sources(
	const struct switch_config *p, const struct paths *ps, struct err *err) {
	for (uint32_t i = 0; i < ps->count; i++) {
		if (ps->path[i].source != NULL && p->process.lcores > 1)
			return config_err(p->process.lcores_node, -EINVAL, err,
				"lcores: %u CPUs are named, but where a path has a source, one "
				"lcore serves all paths: name one CPU",
				p->process.lcores);
	}
	return 0;
}

static bool named_by_a_group(
	const struct switch_config *p, const struct paths *ps, const struct path *path) {
	for (uint32_t g = 0; g < p->groups; g++) {
		for (int d = 0; d < FLOWS_DIRECTIONS; d++) {
			const struct route *r = &ps->route[g][d];

			for (uint32_t i = 0; p->group_route[g][d].node != NULL && i < r->count;
				i++) {
				if (r->path[i] == path)
					return true;
			}
		}
	}
	return false;
}

// Every path has its exit.
static int no_path_unused(const struct switch_config *p, const struct paths *ps,
	struct config_node *list, struct err *err) {
	for (uint32_t i = 0; i < ps->count; i++) {
		bool used = named_by_a_group(p, ps, &ps->path[i]);

		for (uint32_t k = 0; k < p->ports; k++)
			used |= p->port[k].path == &ps->path[i];
		if (!used)
			return config_err(list, -EINVAL, err,
				"live.switch.ports: no port sends through path '%s'; "
				"give its exit `path: %s`",
				ps->path[i].name, ps->path[i].name);
	}
	return 0;
}

static int static_read(struct switch_config *p, struct config_node *list, struct err *err) {
	int rc;

	if (list == NULL)
		return 0;
	if (config_kind(list) != CONFIG_LIST || config_count(list) > SWITCH_STATIC_MAX)
		return config_err(list, -EINVAL, err, "static: a list of at most %d {mac, port}",
			SWITCH_STATIC_MAX);
	for (size_t i = 0; i < config_count(list); i++) {
		struct config_node *n = config_at(list, i);
		struct switch_config_static *s = &p->fixed[p->fixed_count++];
		struct fixed f = {0};

		if ((rc = config_params(n, "static", fixed_params, NULL, &f, err)) < 0)
			return rc;
		if (!address_mac(f.mac, &s->mac))
			return config_err(n, -EINVAL, err,
				"mac: '%s' is not a MAC address such as 02:00:00:00:00:01", f.mac);
		for (s->port = 0; s->port < p->ports; s->port++) {
			if (strcmp(p->port[s->port].common.name, f.port) == 0)
				break;
		}
		if (s->port == p->ports)
			return config_err(n, -EINVAL, err, "port: there is no port '%s'", f.port);
	}
	return 0;
}

// Scales the paths' quotas to the pool that the user wants.
static int scale_quotas(struct switch_config *p, struct config_node *node, struct err *err) {
	uint64_t sum = 0;

	for (uint32_t i = 0; i < p->ports; i++)
		sum += p->port[i].quota;
	if (p->pool == 0)
		return 0;
	if (p->pool < sum && !p->process.force)
		return config_err(node, -EINVAL, err,
			"pool: %llu packets are fewer than the %llu that queues and delays may "
			"hold; force: yes starts all the same, and drops the rest as no_mbuf",
			(unsigned long long)p->pool, (unsigned long long)sum);
	double scale = (double)p->pool / (double)sum;
	for (uint32_t i = 0; i < p->ports; i++) {
		p->port[i].quota = (uint64_t)((double)p->port[i].quota * scale);
		p->port[i].large_quota = (uint64_t)((double)p->port[i].large_quota * scale);
	}
	return 0;
}

int switch_config_keys(struct switch_config *p, struct config *c, struct err *err) {
	struct config_node *node;
	int rc = live_section_read(&section, c, p, &p->process, &node, err);

	return rc < 0 ? rc : live_ports_read(&section, &p->process, node, p->port, &p->ports, err);
}

int switch_config_ports(
	struct switch_config *p, struct config *c, struct paths *ps, struct err *err) {
	struct config_node *node = config_get(config_get(config_root(c), "live"), section.name);
	struct config_node *list = config_get(node, "ports");
	int rc;

	for (uint32_t i = 0; i < p->ports; i++) {
		struct config_node *n = config_at(list, i);

		if ((rc = port_lcore(p, i, n, err)) < 0 || (rc = port_path(p, i, ps, n, err)) < 0)
			return rc;
	}
	if ((rc = switch_config_routes(p, ps, err)) < 0
		|| (rc = switch_config_sources(p, ps, err)) < 0 || (rc = no_lcore_idle(p, err)) < 0
		|| (rc = scale_quotas(p, node, err)) < 0
		|| (rc = no_path_unused(p, ps, list, err)) < 0)
		return rc;
	return static_read(p, config_get(node, "static"), err);
}

int switch_config_text(
	const struct switch_config *p, uint64_t port_buffers, char *text, size_t size) {
	size_t used = 0;

	for (uint32_t i = 0; i < p->ports && used < size; i++) {
		const struct switch_config_port *port = &p->port[i];

		used += (size_t)snprintf(text + used, size - used, "%s %llu packets, ",
			port->path != NULL ? port->path_name : port->common.name,
			(unsigned long long)port->quota);
	}
	if (used < size)
		used += (size_t)snprintf(
			text + used, size - used, "ports %llu", (unsigned long long)port_buffers);
	return (int)(used < size ? used : size - 1);
}
