// SPDX-License-Identifier: BSD-3-Clause
#include "live_dpdk.h"

#include "intr_dpdk.h"

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

static void drain(struct sender_live *s) {
	tel_drain(&s->tel_cc);
	tel_drain(&s->tel_flows);
	tel_drain(&s->tel_interval);
	tel_drain(&s->tel_events);
}

static void print_progress(struct sender_app *app) {
	double t_s = (double)atomic_load(&app->live.shown_ns) / 1e9;

	fprintf(stderr,
		"{\"virtual_s\": %.3f, \"wall_s\": %.3f, \"duration_s\": %.3f, \"utilisation\": "
		"null, \"flows_open\": %llu, \"tx_bytes\": %llu}\n",
		t_s, t_s, (double)app->run.duration_ns / 1e9,
		(unsigned long long)atomic_load(&app->live.shown_open),
		(unsigned long long)atomic_load(&app->live.shown_bytes));
}

// Everything that may wait: files, the state of links, what the user sees.
static void *control_main(void *arg) {
	struct sender_app *app = arg;

	if (CPU_COUNT(&app->cpus) > 0)
		pthread_setaffinity_np(pthread_self(), sizeof(app->cpus), &app->cpus);
	for (uint32_t tick = 0; !atomic_load(&app->control_stop); tick++) {
		bool running = atomic_load(&app->live.running);

		if (running)
			drain(&app->live);
		if (tick % LINK_TICKS == 0) {
			for (uint32_t i = 0; i < app->live.ports; i++)
				port_poll_link(&app->live.port[i].port);
		}
		if (running && tick % WATCH_TICKS == 0)
			watch_probe_sample(&app->probe, false);
		if (app->opt->progress && !app->ready) {
			fprintf(stderr, "{\"ready\": true}\n");
			app->ready = true;
		}
		if (app->opt->progress && running && tick % PROGRESS_TICKS == 0)
			print_progress(app);
		usleep(CONTROL_TICK_US);
	}
	if (atomic_load(&app->live.running))
		watch_probe_sample(&app->probe, true);
	return NULL;
}

// Who is watched, as what.
static void prepare_watch(struct sender_app *app) {
	struct sender_live *s = &app->live;

	app->watch.self = "sender";
	app->watch.packets = "paced packets";
	app->probe =
		(struct watch_probe){.watch = &app->watch, .lcore = &s->watch, .clock = &s->clock};
	for (uint32_t i = 0; i < s->ports; i++)
		app->probe.port[i] = &s->port[i].port;
	watch_probe_init(&app->probe, &app->plan.process, s->ports, PKT_NS);
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

		args.dev[args.devs++] = dev;
		// Received frames are read at once; echo and ARP replies may have to wait.
		app->rx_buffers += port_own_buffers(dev, app->plan.process.burst) + 1024;
		app->tx_buffers += port_own_buffers(dev, app->plan.process.burst) + SENDER_OUT_MAX;
	}
	args.memory_bytes = pool_bytes(app->rx_buffers) + pool_bytes(app->tx_buffers);
	return eal_start(&app->eal, &args, err);
}

static int open_ports(struct sender_app *app, struct err *err) {
	struct sender_live *s = &app->live;
	int rc;

	for (uint32_t i = 0; i < app->plan.ports; i++) {
		const struct live_port *from = &app->plan.port[i];
		struct sender_port *p = &s->port[i];

		p->plan = from;
		p->live = s;
		p->refused_ns = NEVER_NS;
		p->port.lead_ns = from->role == LIVE_SENDER ? from->lead_ns : 0;
		p->addresses = from->role == LIVE_SENDER ? flow_addr_count(app->groups.flows) : 1;
		rc = port_open(&p->port, &from->dev, from->name, s->rx_pool, &app->eal, err);
		if (rc < 0)
			return rc;
		s->ports++;
		if (from->mac_given)
			p->port.mac = from->mac;
		sender_learn_peer(p, &p->peer_mac);
		if (from->role == LIVE_RECEIVER && (rc = sender_strangers_init(p, err)) < 0)
			return rc;
	}
	return 0;
}

static struct host_env host_env(struct sender_app *app) {
	uint64_t frame = groups_min_frame(&app->groups);
	struct host_env env = {
		.output = sender_output,
		.seed = app->run.seed,
		.segs_per_s = app->plan.rate_bps / (8 * frame) + 1024,
		.tel_run = &app->run.tel,
	};

	env.pipe_segs = (uint64_t)((double)env.segs_per_s * (double)app->plan.pipe_ns / 1e9) + 1024;
	return env;
}

static int open_telemetry(struct sender_app *app, struct err *err) {
	struct sender_live *s = &app->live;
	uint64_t size = app->plan.process.ring_size, flows = app->groups.flows;
	struct tel_run *tel = &app->run.tel;
	int rc = 0;

	tel->tsc_hz = s->clock.tsc_hz;
	tel->tsc_start = s->clock.tsc_start;
	tel->utc_start_ns = s->clock.start.utc_ns;
	if (tel->level >= 2)
		rc = tel_open(&s->tel_cc, TEL_STREAM_CC, tel, "", size, NULL, err);
	if (rc == 0 && tel->level >= 1)
		rc = tel_open(
			&s->tel_flows, TEL_STREAM_FLOWS, tel, "", ring_size(4 * flows), NULL, err);
	if (rc == 0 && tel->level >= 1)
		rc = tel_open(&s->tel_interval, TEL_STREAM_INTERVAL, tel, "", ring_size(4 * flows),
			NULL, err);
	if (rc == 0 && tel->level >= 1)
		rc = tel_open(&s->tel_events, TEL_STREAM_EVENTS, tel, "-sender", size, NULL, err);
	s->interval_ns = tel->level >= 1 ? app->run.telemetry_interval_ns : 0;
	return rc;
}

// The hosts of the ports there are; their time begins a moment from now.
static int open_hosts(struct sender_app *app, struct err *err) {
	struct sender_live *s = &app->live;
	int rc = 0;

	s->start_ns = clock_now(&s->clock) + START_AHEAD_NS + app->groups.flows * NS_PER_US;
	for (uint32_t i = 0; rc == 0 && i < s->ports; i++) {
		bool sends = s->port[i].plan->role == LIVE_SENDER;
		struct host *h = sends ? &s->sender : &s->receiver;
		struct host_env env = host_env(app);

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
			env.receivers = app->groups.flows + (uint32_t)app->plan.strangers;
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
	struct host_env env = host_env(app);
	char what[64];

	env.flows = live_plan_port(&app->plan, LIVE_SENDER) != NULL;
	if (live_plan_port(&app->plan, LIVE_RECEIVER) != NULL)
		env.receivers = app->groups.flows + (uint32_t)app->plan.strangers;
	snprintf(what, sizeof(what), "%u flows", app->groups.flows);
	return app->plan.process.force
		? 0
		: live_memory_check(host_bytes(&app->groups, &env), what, err);
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

int sender_app_open(struct sender_app *app, struct err *err) {
	struct sender_live *s = &app->live;
	struct clock_anchor first = clock_anchor();
	int rc;

	live_other_cpus(&app->plan.process, &app->cpus);
	s->plan = &app->plan;
	s->groups = &app->groups;
	s->duration_ns = app->run.duration_ns;
	if ((rc = check_memory(app, err)) < 0)
		return rc;
	if ((rc = start_eal(app, err)) < 0)
		return rc;
	if ((s->rx_pool = pool_create("weir-rx", app->rx_buffers, err)) == NULL)
		return -ENOMEM;
	if ((s->tx_pool = pool_create("weir-tx", app->tx_buffers, err)) == NULL)
		return -ENOMEM;
	if ((rc = open_ports(app, err)) < 0)
		return rc;
	prepare_watch(app);
	if ((rc = clock_init(&s->clock, &first, err)) < 0)
		return rc;
	if (app->plan.process.epoch_utc_ns > 0)
		clock_set_epoch(&s->clock, app->plan.process.epoch_utc_ns);
	// Links are watched, and the user is told, from here on.
	if ((rc = start_control(app, err)) < 0)
		return rc;
	rc = sender_resolve(s, err);
	stop_control(app);
	return rc;
}

int sender_app_run(struct sender_app *app, struct err *err) {
	struct sender_live *s = &app->live;
	struct tel *const streams[] = {&s->tel_cc, &s->tel_flows, &s->tel_interval, &s->tel_events};
	char path[640];
	struct err one;
	int rc;

	snprintf(path, sizeof(path), "%s/%s-dpdk.log", app->run.dir, app->opt->program);
	if ((rc = eal_log_to(&app->eal, path, err)) < 0)
		return rc;
	if ((rc = open_telemetry(app, err)) < 0)
		return rc;
	if ((rc = open_hosts(app, err)) < 0)
		return rc;
	if ((rc = sender_control(app, err)) < 0)
		return rc;
	if ((rc = start_control(app, err)) < 0)
		return rc;
	app->began = true;
	sender_loop(s);
	app->wall_s = (double)time_since(s->now_ns, s->start_ns) / 1e9;
	stop_control(app);
	watch_probe_fini(&app->probe);
	watch_finish(&app->watch);
	for (size_t i = 0; i < sizeof(streams) / sizeof(streams[0]); i++) {
		int closed = tel_close(streams[i], &one);

		if (closed < 0 && rc == 0)
			rc = err_set(err, closed, "%s", one.msg);
	}
	return rc;
}

void sender_app_close(struct sender_app *app) {
	int saved = eal_hush(&app->eal);

	intr_hold(); // for good: handlers know nothing of ports that are closed
	for (uint32_t i = 0; i < app->live.ports; i++) {
		port_close(&app->live.port[i].port);
		free(app->live.port[i].stranger);
	}
	eal_unhush(saved);
	host_fini(&app->live.sender);
	host_fini(&app->live.receiver);
	eal_stop(&app->eal);
}
