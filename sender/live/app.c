// SPDX-License-Identifier: BSD-3-Clause
#include "sender/live/app.h"

#include <errno.h>

#define START_AHEAD_NS (50 * NS_PER_MS) // time from the end of the preparations to the first SYN
#define BEGIN_NS_MAX (60 * NS_PER_S)

static struct host_env host_env(const struct sender_app *app, uint32_t k) {
	uint64_t frame = groups_min_frame(&app->groups);
	struct host_env env = {
		.output = sender_output,
		.seed = app->live.run.seed,
		.duration_ns = app->live.run.duration_ns,
		.segs_per_s = app->config.rate_bps / (8 * frame) + 1024,
		.tel_run = &app->live.run.tel,
		.shard_id = k,
		.shards = app->live.lcores,
	};

	env.pipe_segs =
		(uint64_t)((double)env.segs_per_s * (double)app->config.pipe_ns / 1e9) + 1024;
	return env;
}

// The number of an lcore's receivers: of its flows, and for dynamic connections.
static uint32_t receivers(const struct sender_app *app, uint32_t k) {
	return host_shard_flows(app->groups.flows, k, app->live.lcores)
		+ (uint32_t)app->config.dynamic_connections;
}

// The ACKs that a receiver holds at most: twice one for each segment that the network carries
// meanwhile.
static uint64_t delayed_segs(const struct sender_app *app, const struct live_port *port) {
	struct host_env env = host_env(app, 0);

	return 2 * (uint64_t)((double)env.segs_per_s * (double)port->delay_ns / 1e9);
}

// Memory of all hosts, in bytes.
static uint64_t hosts_bytes(const struct sender_app *app) {
	const struct live_port *receiver = sender_config_port(&app->config, LIVE_RECEIVER);
	uint64_t bytes = 0;

	for (uint32_t k = 0; k < app->live.lcores; k++) {
		struct host_env env = host_env(app, k);

		env.flows = sender_config_port(&app->config, LIVE_SENDER) != NULL;
		if (receiver != NULL)
			env.receivers = receivers(app, k);
		if (receiver != NULL && receiver->delay_ns > 0)
			bytes += seg_delay_bytes(delayed_segs(app, receiver));
		bytes += host_bytes(&app->groups, &env);
	}
	return bytes;
}

void sender_size(struct live_app *live, struct eal_args *args) {
	struct sender_app *app = sender_app(live);
	uint64_t n = live->lcores = app->config.process.lcores;

	for (uint32_t i = 0; i < app->config.ports; i++) {
		const struct live_dev *dev = &app->config.port[i].common.dev;
		uint64_t own = port_own_buffers(dev, app->config.process.burst);

		args->dev[args->devs++] = dev;
		// Received frames wait only in rings to other lcores; echo and ARP replies may wait
		// for the port.
		app->rx_buffers += n * own + 1024
			+ app->config.port[i].queues * (n - 1) * app->config.process.handover;
		app->tx_buffers +=
			n * (own + SENDER_EGRESS_SLOTS + SENDER_TX_RING) - SENDER_TX_RING;
	}
	args->pool_bytes = pool_bytes(app->rx_buffers + app->tx_buffers, app->config.process.mtu);
	args->other_bytes = hosts_bytes(app);
	snprintf(args->what, sizeof(args->what), "%u flows", app->groups.flows);
	snprintf(args->sum, sizeof(args->sum),
		"their state %.0f MB, %llu frames that are received and %llu to send %.0f MB",
		(double)args->other_bytes / 1e6, (unsigned long long)app->rx_buffers,
		(unsigned long long)app->tx_buffers, (double)args->pool_bytes / 1e6);
}

static int open_port(struct sender_app *app, uint32_t i, struct err *err) {
	const struct live_port *from = &app->config.port[i];
	struct port *port = &app->live.port[i];
	int rc;

	port->rx_queues = port->tx_queues = (uint16_t)from->queues;
	// A card's clock can be followed by one lcore only.
	port->lead_ns =
		from->role == LIVE_SENDER && app->live.lcores == 1 ? from->common.lead_ns : 0;
	rc = port_open(port, &from->common, app->lcore->rx_pool, &app->live.eal, err);
	if (rc == 0 && from->mac_given)
		port->mac = from->mac;
	return rc;
}

// Sets up an open port in an lcore's struct.
static int join_port(struct sender_app *app, uint32_t k, uint32_t i, struct err *err) {
	const struct live_port *from = &app->config.port[i];
	struct sender_lcore *s = &app->lcore[k];
	struct sender_port *p = &s->port[i];
	int rc;

	p->config = from;
	p->port = &app->live.port[i];
	p->live = s;
	p->addresses = from->role == LIVE_SENDER ? flow_addr_count(app->groups.flows) : 1;
	// A port with one queue belongs to one lcore; ports are assigned to lcores in turn.
	p->owns_queue = from->queues > 1 || i % app->live.lcores == k;
	p->queue = from->queues > 1 ? (uint16_t)k : 0;
	p->is_primary = p->owns_queue && p->queue == 0;
	s->lcore.port[i] = p->port;
	s->lcore.rx_queue[i] = p->owns_queue ? p->queue : -1;
	s->lcore.owns_port[i] = p->is_primary;
	if (p->is_primary)
		p->port->clock = &s->lcore.clock;
	s->lcore.ports++;
	rc = egress_init(&p->egress, &s->lcore, i, SENDER_EGRESS_SLOTS, &app->config.process, err);
	if (rc == 0 && from->delay_ns > 0)
		rc = seg_delay_init(&p->delay, from->delay_ns, delayed_segs(app, from), err);
	p->egress.queue = p->queue;
	sender_learn_peer(p, &p->peer_mac);
	if (rc < 0 || from->role != LIVE_RECEIVER)
		return rc;
	return connections_init(&p->connections, (uint32_t)app->config.dynamic_connections, err);
}

static void prepare(
	struct sender_app *app, uint32_t k, struct rte_mempool *rx, struct rte_mempool *tx) {
	struct sender_lcore *s = &app->lcore[k];
	struct live_app *live = &app->live;

	live->lcore[k] = &s->lcore;
	lcore_init(&s->lcore, live->lcore, live->lcores, k, live->program->lcore);
	s->all = app->lcore;
	s->config = &app->config;
	s->groups = &app->groups;
	s->rx_pool = rx;
	s->tx_pool = tx;
}

int sender_open(struct live_app *live, struct err *err) {
	struct sender_app *app = sender_app(live);
	const struct run_options *opt = &live->opt;
	uint64_t mtu = app->config.process.mtu;
	struct rte_mempool *rx, *tx = NULL;
	int rc = opt->pcap != NULL ? pcap_writer_check(opt->pcap, opt->force, err) : 0;

	if (rc < 0)
		return rc;
	rx = pool_create("weir-rx", app->rx_buffers, mtu, false, err);
	if (rx != NULL)
		tx = pool_create("weir-tx", app->tx_buffers, mtu, false, err);
	if (tx == NULL)
		return -ENOMEM;
	for (uint32_t k = 0; k < live->lcores; k++)
		prepare(app, k, rx, tx);
	live->ports = app->config.ports;
	live->flows = host_shard_flows(app->groups.flows, 0, live->lcores);
	groups_observers(&app->groups, &live->run.tel);
	for (uint32_t i = 0; rc == 0 && i < live->ports; i++) {
		rc = open_port(app, i, err);
		for (uint32_t k = 0; rc == 0 && k < live->lcores; k++)
			rc = join_port(app, k, i, err);
	}
	return rc < 0 ? rc : sender_make_rings(app->lcore, err);
}

// Makes an lcore's hosts on its ports.
static int open_hosts(struct sender_app *app, uint32_t k, uint64_t start_ns, struct err *err) {
	struct sender_lcore *s = &app->lcore[k];
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < s->lcore.ports; i++) {
		bool sends = sender_sends(&s->port[i]);
		struct host *h = sends ? &s->sender : &s->receiver;
		struct host_env env = host_env(app, k);

		env.ctx = &s->port[i];
		env.start_ns = start_ns;
		if (sends) {
			env.flows = true;
			env.src_ip = s->port[i].config->ip;
			env.dst_ip = s->port[i].config->peer;
			env.dst_port = (uint16_t)s->port[i].config->peer_port;
			env.tel_cc = &s->lcore.tel[TEL_STREAM_CC];
			env.tel_flows = &s->lcore.tel[TEL_STREAM_FLOWS];
			env.tel_interval = &s->lcore.tel[TEL_STREAM_INTERVAL];
			env.tel_events = &s->lcore.tel[TEL_STREAM_EVENTS];
			env.tel_transfers = &s->lcore.tel[TEL_STREAM_TRANSFERS];
			env.empty = app->empty;
		} else {
			env.receivers = receivers(app, k);
		}
		rc = host_init(h, &app->groups, &env, err);
		if (rc == 0 && sends && app->live.run.warmup_ns == 0)
			host_measure(h, start_ns);
		s->port[i].host = h;
	}
	lcore_start_at(&s->lcore, start_ns);
	s->lcore.interval_next_ns = start_ns + s->lcore.interval_ns;
	return rc;
}

int sender_connect(struct live_app *live, struct err *err) {
	return sender_resolve(sender_app(live)->lcore, err);
}

// When flows begin: at live.sender.begin, but no sooner than they can.
static int begin_at(const struct sender_app *app, uint64_t *start_ns, struct err *err) {
	const struct clock *c = &app->live.lcore[0]->clock;
	uint64_t now_ns = clock_now(c), utc_ns = app->config.begin_utc_ns;
	uint64_t begin_ns = time_since(utc_ns, c->start.utc_ns);

	*start_ns = now_ns + START_AHEAD_NS + app->groups.flows * NS_PER_US;
	if (utc_ns == 0)
		return 0;
	if (time_since(begin_ns, now_ns) > BEGIN_NS_MAX)
		return err_set(err, -ERANGE,
			"live.sender.begin: %llu is %.3g s ahead by this host's clock: "
			"at most a minute",
			(unsigned long long)utc_ns, (double)time_since(begin_ns, now_ns) / 1e9);
	if (begin_ns < *start_ns)
		run_warn(&app->live.run, "live.sender.begin has passed: flows begin %.3g s late",
			(double)(*start_ns - begin_ns) / 1e9);
	*start_ns = time_max(*start_ns, begin_ns);
	return 0;
}

int sender_begin(struct live_app *live, struct err *err) {
	struct sender_app *app = sender_app(live);
	uint64_t start_ns;
	int rc = begin_at(app, &start_ns, err);

	for (uint32_t k = 0;
		k < live->lcores && sender_config_port(&app->config, LIVE_SENDER) == NULL; k++)
		live->watch[k].self = "receiver"; // in sentences
	for (uint32_t k = 0; rc == 0 && k < live->lcores; k++)
		rc = open_hosts(app, k, start_ns, err);
	return rc < 0 ? rc : sender_capture_open(app, err);
}

void sender_close(struct live_app *live) {
	struct sender_app *app = sender_app(live);

	for (uint32_t k = 0; k < live->lcores; k++) {
		for (uint32_t i = 0; i < app->lcore[k].lcore.ports; i++) {
			connections_fini(&app->lcore[k].port[i].connections);
			egress_fini(&app->lcore[k].port[i].egress);
			seg_delay_fini(&app->lcore[k].port[i].delay);
		}
		host_fini(&app->lcore[k].sender);
		host_fini(&app->lcore[k].receiver);
	}
	sender_capture_free(app);
	groups_fini(&app->groups);
}
