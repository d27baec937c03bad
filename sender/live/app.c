// SPDX-License-Identifier: BSD-3-Clause
#include "sender/live/app.h"

#include "common/live/intr.h"

#include <errno.h>
#include <rte_ethdev.h>
#include <rte_mempool.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONTROL_TICK_US 20000
#define PROGRESS_TICKS 25 // half a second
#define LINK_TICKS 5
#define WATCH_TICKS 5
#define PKT_NS 1000 // a turn's share per packet is far below
#define START_AHEAD_NS (50 * NS_PER_MS) // from the last preparations to the first SYN

static uint64_t ring_size(uint64_t least) {
	uint64_t size = 256;

	while (size < least)
		size *= 2;
	return size;
}

static void drain(struct sender_app *app) {
	for (uint32_t k = 0; k < app->lcores; k++) {
		struct sender_live *s = &app->live[k];

		tel_drain(&s->tel_cc);
		tel_drain(&s->tel_flows);
		tel_drain(&s->tel_interval);
		tel_drain(&s->tel_events);
	}
}

static void print_progress(struct sender_app *app) {
	double t_s = (double)atomic_load(&app->live[0].shown_ns) / 1e9;
	uint64_t open = 0, bytes = 0;

	for (uint32_t k = 0; k < app->lcores; k++) {
		open += atomic_load(&app->live[k].shown_open);
		bytes += atomic_load(&app->live[k].shown_bytes);
	}
	fprintf(stderr,
		"{\"virtual_s\": %.3f, \"wall_s\": %.3f, \"duration_s\": %.3f, \"utilisation\": "
		"null, \"flows_open\": %llu, \"tx_bytes\": %llu}\n",
		t_s, t_s, (double)app->run.duration_ns / 1e9, (unsigned long long)open,
		(unsigned long long)bytes);
}

static void sample(struct sender_app *app, bool last) {
	for (uint32_t k = 0; k < app->lcores; k++)
		watch_probe_sample(&app->probe[k], last);
}

// Everything that may wait: files, the state of links, what the user sees.
static void *control_main(void *arg) {
	struct sender_app *app = arg;

	if (CPU_COUNT(&app->cpus) > 0)
		pthread_setaffinity_np(pthread_self(), sizeof(app->cpus), &app->cpus);
	for (uint32_t tick = 0; !atomic_load(&app->control_stop); tick++) {
		bool running = atomic_load(&app->live[0].running);

		if (running)
			drain(app);
		if (tick % LINK_TICKS == 0) {
			for (uint32_t i = 0; i < app->plan.ports; i++)
				port_poll_link(&app->port[i]);
		}
		if (running && tick % WATCH_TICKS == 0)
			sample(app, false);
		if (app->opt->progress && !app->ready) {
			fprintf(stderr, "{\"ready\": true}\n");
			app->ready = true;
		}
		if (app->opt->progress && running && tick % PROGRESS_TICKS == 0)
			print_progress(app);
		usleep(CONTROL_TICK_US);
	}
	if (atomic_load(&app->live[0].running))
		sample(app, true);
	return NULL;
}

// Who is watched, as what.
static void prepare_watch(struct sender_app *app, uint32_t k) {
	struct sender_live *s = &app->live[k];
	struct watch_probe *p = &app->probe[k];

	app->watch[k].self = "sender";
	app->watch[k].packets = "paced packets";
	*p = (struct watch_probe){.watch = &app->watch[k],
		.lcore = &s->watch,
		.index = k,
		.clock = &app->live[0].clock};
	for (uint32_t i = 0; i < s->ports; i++) {
		p->port[i] = s->port[i].port;
		p->other[i] = !s->port[i].serves || s->port[i].queue > 0;
		p->queue[i] = s->port[i].serves ? s->port[i].queue : -1;
	}
	watch_probe_init(p, &app->plan.process, s->ports, PKT_NS);
}

static int start_eal(struct sender_app *app, struct err *err) {
	struct eal_args args = {
		.program = app->opt->program,
		.process = &app->plan.process,
		.user_argc = app->opt->eal_argc,
		.user_argv = app->opt->eal_argv,
	};

	for (uint32_t i = 0; i < app->plan.ports; i++) {
		const struct live_dev *dev = &app->plan.port[i].dev;
		uint64_t n = app->lcores, own = port_own_buffers(dev, app->plan.process.burst);

		args.dev[args.devs++] = dev;
		// Received frames are read at once, or wait for another lcore; echo and ARP replies may have
		// to wait.
		app->rx_buffers +=
			n * own + 1024 + app->plan.port[i].queues * (n - 1) * app->plan.handover;
		app->tx_buffers += n * (own + SENDER_OUT_MAX + SENDER_OUT_RING) - SENDER_OUT_RING;
	}
	args.memory_bytes = pool_bytes(app->rx_buffers) + pool_bytes(app->tx_buffers);
	return eal_start(&app->eal, &args, err);
}

static int open_port(struct sender_app *app, uint32_t i, struct err *err) {
	const struct live_port *from = &app->plan.port[i];
	struct port *port = &app->port[i];
	int rc;

	port->rx_queues = port->tx_queues = (uint16_t)from->queues;
	// A card's clock is one lcore's.
	port->lead_ns = from->role == LIVE_SENDER && app->lcores == 1 ? from->lead_ns : 0;
	rc = port_open(port, &from->dev, from->name, app->live[0].rx_pool, &app->eal, err);
	if (rc == 0 && from->mac_given)
		port->mac = from->mac;
	return rc;
}

// A lcore's view of an open port.
static int join_port(struct sender_app *app, uint32_t k, uint32_t i, struct err *err) {
	const struct live_port *from = &app->plan.port[i];
	struct sender_live *s = &app->live[k];
	struct sender_port *p = &s->port[i];

	p->plan = from;
	p->port = &app->port[i];
	p->live = s;
	p->refused_ns = NEVER_NS;
	p->addresses = from->role == LIVE_SENDER ? flow_addr_count(app->groups.flows) : 1;
	// Ports that have but one queue are served by one lcore each, in turn.
	p->serves = from->queues > 1 || i % app->lcores == k;
	p->queue = from->queues > 1 ? (uint16_t)k : 0;
	p->leads = k == 0;
	s->ports++;
	sender_learn_peer(p, &p->peer_mac);
	return from->role == LIVE_RECEIVER ? sender_strangers_init(p, err) : 0;
}

static int open_ports(struct sender_app *app, struct err *err) {
	int rc = 0;

	for (uint32_t i = 0; i < app->plan.ports; i++) {
		if ((rc = open_port(app, i, err)) < 0)
			return rc;
		for (uint32_t k = 0; rc == 0 && k < app->lcores; k++)
			rc = join_port(app, k, i, err);
	}
	return rc < 0 ? rc : sender_share(app->live, err);
}

static struct host_env host_env(const struct sender_app *app, uint32_t k) {
	uint64_t frame = groups_min_frame(&app->groups);
	struct host_env env = {
		.output = sender_output,
		.seed = app->run.seed,
		.duration_ns = app->run.duration_ns,
		.segs_per_s = app->plan.rate_bps / (8 * frame) + 1024,
		.tel_run = &app->run.tel,
		.share = k,
		.shares = app->lcores,
	};

	env.pipe_segs = (uint64_t)((double)env.segs_per_s * (double)app->plan.pipe_ns / 1e9) + 1024;
	return env;
}

// A lcore's ring of a stream, the first one's with its file.
static int open_stream(struct sender_app *app, struct tel *t, struct tel *first,
	enum tel_stream stream, uint64_t size, struct err *err) {
	const char *suffix = stream == TEL_STREAM_EVENTS ? "-sender" : "";

	if (t != first)
		return tel_join(t, first, &app->run.tel, size, err);
	return tel_open(t, stream, &app->run.tel, suffix, size, NULL, err);
}

static int open_streams(struct sender_app *app, uint32_t k, struct err *err) {
	struct sender_live *s = &app->live[k], *first = app->live;
	uint64_t size = app->plan.process.ring_size, flows = app->groups.flows;
	uint64_t each = ring_size(4 * (uint64_t)host_share((uint32_t)flows, k, app->lcores));
	uint32_t level = app->run.tel.level;
	int rc = 0;

	if (level >= 2)
		rc = open_stream(app, &s->tel_cc, &first->tel_cc, TEL_STREAM_CC, size, err);
	if (rc == 0 && level >= 1)
		rc = open_stream(
			app, &s->tel_flows, &first->tel_flows, TEL_STREAM_FLOWS, each, err);
	if (rc == 0 && level >= 1)
		rc = open_stream(app, &s->tel_interval, &first->tel_interval, TEL_STREAM_INTERVAL,
			each, err);
	if (rc == 0 && level >= 1)
		rc = open_stream(
			app, &s->tel_events, &first->tel_events, TEL_STREAM_EVENTS, size, err);
	s->interval_ns = level >= 1 ? app->run.telemetry_interval_ns : 0;
	return rc;
}

static int open_telemetry(struct sender_app *app, struct err *err) {
	const struct clock *c = &app->live[0].clock;
	struct tel_run *tel = &app->run.tel;
	int rc = 0;

	tel->tsc_hz = c->tsc_hz;
	tel->tsc_start = c->tsc_start;
	tel->utc_start_ns = c->start.utc_ns;
	for (uint32_t k = 0; rc == 0 && k < app->lcores; k++)
		rc = open_streams(app, k, err);
	return rc;
}

// Others' rings first: the first lcore's have the files.
static int close_telemetry(struct sender_app *app, struct err *err) {
	struct err one;
	int rc = 0;

	for (uint32_t k = app->lcores; k-- > 0;) {
		struct sender_live *s = &app->live[k];
		struct tel *const streams[] = {
			&s->tel_cc, &s->tel_flows, &s->tel_interval, &s->tel_events};

		for (size_t i = 0; i < sizeof(streams) / sizeof(streams[0]); i++) {
			int closed = tel_close(streams[i], &one);

			if (closed < 0 && rc == 0)
				rc = err_set(err, closed, "%s", one.msg);
		}
	}
	return rc;
}

// The receivers of a lcore's flows, and spare ones.
static uint32_t receivers(const struct sender_app *app, uint32_t k) {
	return host_share(app->groups.flows, k, app->lcores) + (uint32_t)app->plan.strangers;
}

// A lcore's hosts, of the ports there are.
static int open_hosts(struct sender_app *app, uint32_t k, uint64_t start_ns, struct err *err) {
	struct sender_live *s = &app->live[k];
	int rc = 0;

	s->start_ns = start_ns;
	for (uint32_t i = 0; rc == 0 && i < s->ports; i++) {
		bool sends = sender_sends(&s->port[i]);
		struct host *h = sends ? &s->sender : &s->receiver;
		struct host_env env = host_env(app, k);

		env.ctx = &s->port[i];
		env.start_ns = s->start_ns;
		if (sends) {
			env.flows = true;
			env.src_ip = s->port[i].plan->ip;
			env.dst_ip = s->port[i].plan->peer;
			env.dst_port = (uint16_t)s->port[i].plan->peer_port;
			env.tel_cc = &s->tel_cc;
			env.tel_flows = &s->tel_flows;
			env.tel_interval = &s->tel_interval;
			env.tel_events = &s->tel_events;
		} else {
			env.receivers = receivers(app, k);
		}
		rc = host_init(h, &app->groups, &env, err);
		s->port[i].host = h;
	}
	s->measure_ns = s->start_ns + app->run.warmup_ns;
	s->interval_next_ns = s->start_ns + s->interval_ns;
	return rc;
}

// What the hosts would need, before DPDK takes its share.
static int check_memory(struct sender_app *app, struct err *err) {
	uint64_t bytes = 0;
	char what[64];

	for (uint32_t k = 0; k < app->lcores; k++) {
		struct host_env env = host_env(app, k);

		env.flows = live_plan_port(&app->plan, LIVE_SENDER) != NULL;
		if (live_plan_port(&app->plan, LIVE_RECEIVER) != NULL)
			env.receivers = receivers(app, k);
		bytes += host_bytes(&app->groups, &env);
	}
	snprintf(what, sizeof(what), "%u flows", app->groups.flows);
	return app->plan.process.force ? 0 : live_memory_check(bytes, what, err);
}

static int start_control(struct sender_app *app, struct err *err) {
	int rc = pthread_create(&app->control, NULL, control_main, app);

	return rc == 0 ? 0 : err_set(err, -rc, "a control thread: %s", strerror(rc));
}

static void stop_control(struct sender_app *app) {
	atomic_store(&app->control_stop, true);
	pthread_join(app->control, NULL);
	atomic_store(&app->control_stop, false);
}

static void prepare(struct sender_app *app) {
	for (uint32_t k = 0; k < app->lcores; k++) {
		struct sender_live *s = &app->live[k];

		s->all = app->live;
		s->lcores = app->lcores;
		s->index = k;
		s->plan = &app->plan;
		s->groups = &app->groups;
		s->duration_ns = app->run.duration_ns;
		s->rx_pool = app->live[0].rx_pool;
		s->tx_pool = app->live[0].tx_pool;
	}
}

int sender_app_open(struct sender_app *app, struct err *err) {
	struct sender_live *first = app->live;
	struct clock_anchor anchor = clock_anchor();
	int rc;

	live_other_cpus(&app->plan.process, &app->cpus);
	app->lcores = app->plan.process.lcores;
	if ((rc = check_memory(app, err)) < 0)
		return rc;
	if ((rc = start_eal(app, err)) < 0)
		return rc;
	if ((rc = run_create(&app->run, app->opt, false, err)) < 0)
		return rc;
	if ((first->rx_pool = pool_create("weir-rx", app->rx_buffers, err)) == NULL)
		return -ENOMEM;
	if ((first->tx_pool = pool_create("weir-tx", app->tx_buffers, err)) == NULL)
		return -ENOMEM;
	prepare(app);
	if ((rc = open_ports(app, err)) < 0)
		return rc;
	for (uint32_t k = 0; k < app->lcores; k++)
		prepare_watch(app, k);
	if ((rc = clock_init(&first->clock, &anchor, err)) < 0)
		return rc;
	if (app->plan.process.epoch_utc_ns > 0
		&& (rc = clock_set_epoch(&first->clock, app->plan.process.epoch_utc_ns, err)) < 0)
		return rc;
	for (uint32_t k = 1; k < app->lcores; k++)
		app->live[k].clock = first->clock;
	// Links are watched, and the user is told, from here on.
	if ((rc = start_control(app, err)) < 0)
		return rc;
	rc = sender_resolve(first, err);
	stop_control(app);
	return rc;
}

static int lcore_main(void *arg) {
	sender_loop(arg);
	return 0;
}

static void run_lcores(struct sender_app *app) {
	eal_run_lcores(lcore_main, app->live, sizeof(app->live[0]), app->lcores);
	sender_finish(app->live);
}

int sender_app_run(struct sender_app *app, struct err *err) {
	const struct sender_live *first = app->live;
	uint64_t start_ns;
	char path[640];
	struct err late;
	int rc, closed;

	snprintf(path, sizeof(path), "%s/%s-dpdk.log", app->run.dir, app->opt->program);
	if ((rc = eal_log_to(&app->eal, path, err)) < 0)
		return rc;
	if ((rc = open_telemetry(app, err)) < 0)
		return rc;
	// Time begins a moment from now.
	start_ns = clock_now(&first->clock) + START_AHEAD_NS + app->groups.flows * NS_PER_US;
	for (uint32_t k = 0; k < app->lcores; k++) {
		if ((rc = open_hosts(app, k, start_ns, err)) < 0)
			return rc;
	}
	if ((rc = sender_control(app, err)) < 0)
		return rc;
	if ((rc = start_control(app, err)) < 0)
		return rc;
	app->began = true;
	run_lcores(app);
	app->wall_s = (double)time_since(first->now_ns, first->start_ns) / 1e9;
	stop_control(app);
	for (uint32_t k = 0; k < app->lcores; k++) {
		watch_probe_fini(&app->probe[k]);
		watch_finish(&app->watch[k]);
	}
	closed = close_telemetry(app, &late);
	return closed < 0 ? err_set(err, closed, "%s", late.msg) : 0;
}

void sender_app_close(struct sender_app *app) {
	int saved = eal_hush(&app->eal);

	intr_hold(); // for good: handlers know nothing of ports that are closed
	for (uint32_t i = 0; i < app->plan.ports; i++)
		port_close(&app->port[i]);
	eal_unhush(saved);
	for (uint32_t k = 0; k < app->lcores; k++) {
		for (uint32_t i = 0; i < app->live[k].ports; i++)
			free(app->live[k].port[i].stranger);
		host_fini(&app->live[k].sender);
		host_fini(&app->live[k].receiver);
	}
	eal_stop(&app->eal);
}
