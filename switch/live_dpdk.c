// SPDX-License-Identifier: BSD-3-Clause
#include "live_dpdk.h"

#include "intr_dpdk.h"

#include <errno.h>
#include <math.h>
#include <rte_ethdev.h>
#include <rte_mempool.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#define CONTROL_TICK_US 20000
#define PROGRESS_TICKS 25 // half a second
#define LINK_TICKS 5
#define WATCH_TICKS 5
#define WAITS_TICKS 500 // ten seconds without traffic are told
#define PKT_NS 500 // a turn's share per packet is far below
#define STATIONS_MAX 4096
#define WHO "the switch"

int switch_ask(struct switch_live *s, const struct switch_question *q,
	void (*use)(const struct switch_mailbox *box, void *ctx), void *ctx, struct err *err) {
	struct switch_mailbox *box = &s->mailbox;
	bool runs = atomic_load(&s->running) && !atomic_load(&s->done);
	int rc = control_begin(&box->box, runs, WHO, err);

	if (rc < 0)
		return rc;
	box->request = q->request;
	box->path = q->path;
	snprintf(box->key, sizeof(box->key), "%s", q->key != NULL ? q->key : "");
	snprintf(box->value, sizeof(box->value), "%s", q->value != NULL ? q->value : "");
	rc = control_wait(&box->box, WHO, err);
	if (rc == 0 && box->rc < 0)
		rc = err_set(err, box->rc, "%s", box->err.msg);
	else if (rc == 0 && use != NULL)
		use(box, ctx);
	control_end();
	return rc;
}

// Utilisation of the first link since the progress line before.
struct progress {
	double bits, capacity;
	double utilisation;
	uint64_t run_ns; // since the start, which may be the first traffic
};

static void progress_take(const struct switch_mailbox *box, void *ctx) {
	const struct switch_snapshot *snap = &box->snapshot;
	struct progress *p = ctx;

	p->run_ns = snap->start_ns == NEVER_NS ? 0 : snap->now_ns - snap->start_ns;
	p->utilisation = NAN;
	if (snap->links == 0)
		return;
	if (snap->link[0].capacity_bits > p->capacity)
		p->utilisation = (snap->link[0].wire_bits - p->bits)
			/ (snap->link[0].capacity_bits - p->capacity);
	p->bits = snap->link[0].wire_bits;
	p->capacity = snap->link[0].capacity_bits;
}

static void print_progress(struct switch_app *app, struct progress *p) {
	const struct switch_question q = {.request = SWITCH_SNAPSHOT};

	if (switch_ask(&app->live, &q, progress_take, p, NULL) < 0)
		return;
	fprintf(stderr,
		"{\"virtual_s\": %.3f, \"wall_s\": %.3f, \"duration_s\": %.3f, \"utilisation\": ",
		(double)p->run_ns / 1e9, (double)p->run_ns / 1e9,
		(double)app->run.duration_ns / 1e9);
	if (isfinite(p->utilisation))
		fprintf(stderr, "%.4f}\n", p->utilisation);
	else
		fprintf(stderr, "null}\n");
}

static void drain(struct switch_live *s) {
	tel_drain(&s->tel_packets);
	tel_drain(&s->tel_arrivals);
	tel_drain(&s->tel_links);
	tel_drain(&s->tel_events);
}

// `start: traffic` may wait for what nobody sends: says so, once.
static void say_waits(const struct switch_app *app) {
	const struct switch_live *s = &app->live;
	char down[LIVE_PORTS_MAX * (PARAM_TEXT_SIZE + 16)] = "";

	if (app->plan.start != PLAN_START_TRAFFIC || app->probe.sample.count.begun_ns != NEVER_NS)
		return;
	for (uint32_t i = 0, used = 0; i < s->ports; i++) {
		if (!atomic_load(&s->port[i].port.up))
			used += (uint32_t)snprintf(down + used, sizeof(down) - used,
				"; port %s is down", s->port[i].port.name);
	}
	fprintf(stderr, "%s: still waits for the first TCP or UDP packet (start: traffic)%s\n",
		app->opt->program, down);
}

// Everything that may wait: files, the kernel's view of links, what the user sees.
static void *control_main(void *arg) {
	struct switch_app *app = arg;
	struct progress progress = {0};
	bool ready = false;

	if (CPU_COUNT(&app->cpus) > 0)
		pthread_setaffinity_np(pthread_self(), sizeof(app->cpus), &app->cpus);
	for (uint32_t tick = 0; !atomic_load(&app->control_stop); tick++) {
		drain(&app->live);
		if (tick % LINK_TICKS == 0) {
			for (uint32_t i = 0; i < app->live.ports; i++)
				port_poll_link(&app->live.port[i].port);
		}
		if (tick % WATCH_TICKS == 0)
			watch_probe_sample(&app->probe, false);
		if (tick == WAITS_TICKS)
			say_waits(app);
		if (app->opt->progress && !ready && atomic_load(&app->live.running)) {
			fprintf(stderr, "{\"ready\": true}\n");
			ready = true;
		}
		if (app->opt->progress && ready && tick % PROGRESS_TICKS == 0)
			print_progress(app, &progress);
		usleep(CONTROL_TICK_US);
	}
	watch_probe_sample(&app->probe, true);
	drain(&app->live);
	return NULL;
}

// Who is watched, as what.
static void prepare_watch(struct switch_app *app) {
	struct switch_live *s = &app->live;

	app->watch.self = "switch";
	app->watch.packets = "packets";
	app->probe =
		(struct watch_probe){.watch = &app->watch, .lcore = &s->watch, .clock = &s->clock};
	for (uint32_t i = 0; i < s->ports; i++)
		app->probe.port[i] = &s->port[i].port;
	watch_probe_init(&app->probe, &app->plan.process, s->ports, PKT_NS);
}

static int open_ports(struct switch_app *app, struct err *err) {
	struct switch_live *s = &app->live;
	int rc;

	for (uint32_t i = 0; i < app->plan.ports; i++) {
		const struct plan_port *from = &app->plan.port[i];
		struct switch_port *p = &s->port[i];

		p->path = from->path;
		p->last_link = from->path != NULL ? path_last_link(from->path) : STAGE_NO_LINK;
		p->share = from->share;
		p->large_share = from->large;
		p->refused_ns = NEVER_NS;
		p->port.lead_ns = from->lead_ns;
		rc = port_open(&p->port, &from->dev, from->name, s->pool, &app->eal, err);
		if (rc < 0)
			return rc;
		s->ports++;
	}
	rc = fabric_init(&s->fabric, s->ports, STATIONS_MAX, FABRIC_AGE_NS, err);
	for (uint32_t i = 0; rc == 0 && i < app->plan.fixed_count; i++)
		rc = fabric_add_static(
			&s->fabric, app->plan.fixed[i].mac.b, app->plan.fixed[i].port, err);
	return rc;
}

static int start_eal(struct switch_app *app, struct err *err) {
	struct eal_args args = {
		.program = app->opt->program,
		.process = &app->plan.process,
		.user_argc = app->opt->eal_argc,
		.user_argv = app->opt->eal_argv,
	};
	struct err why;
	char sum[256];
	int rc = 0;

	for (uint32_t i = 0; i < app->plan.ports; i++) {
		const struct plan_port *p = &app->plan.port[i];

		args.dev[args.devs++] = &p->dev;
		app->port_buffers += port_own_buffers(&p->dev, app->plan.process.burst);
		app->buffers += p->large;
		if (p->path != NULL)
			app->small += p->share;
	}
	app->buffers += app->port_buffers + SWITCH_FRESH_MAX;
	args.memory_bytes = pool_bytes(app->buffers);
	if (!app->plan.process.force)
		rc = live_memory_check(args.memory_bytes
				+ app->small * (SWITCH_SMALL_BYTES + sizeof(struct pkt *)),
			"packets", &why);
	if (rc == 0)
		rc = eal_start(&app->eal, &args, &why);
	if (rc == -ENOMEM) {
		plan_text(&app->plan, app->port_buffers, sum, sizeof(sum));
		return err_set(err, rc,
			"%s (%s; a larger min_packet or a smaller queue takes less)", why.msg, sum);
	}
	return rc < 0 ? err_set(err, rc, "%s", why.msg) : 0;
}

static int open_telemetry(struct switch_app *app, struct err *err) {
	struct switch_live *s = &app->live;
	uint64_t size = app->plan.process.ring_size;
	struct tel_run *tel = &app->run.tel;
	int rc = 0;

	tel->tsc_hz = s->clock.tsc_hz;
	tel->tsc_start = s->clock.tsc_start;
	tel->utc_start_ns = s->clock.start.utc_ns;
	if (tel->level >= 2)
		rc = tel_open(&s->tel_packets, TEL_STREAM_PACKETS, tel, "", size, NULL, err);
	if (rc == 0 && app->run.telemetry_arrivals)
		rc = tel_open(&s->tel_arrivals, TEL_STREAM_ARRIVALS, tel, "", size, NULL, err);
	if (rc == 0 && tel->level >= 1)
		rc = tel_open(&s->tel_links, TEL_STREAM_LINKS, tel, "", 4096, NULL, err);
	if (rc == 0 && tel->level >= 1)
		rc = tel_open(&s->tel_events, TEL_STREAM_EVENTS, tel, "-switch", 4096, NULL, err);
	s->interval_ns = tel->level >= 1 ? app->run.telemetry_interval_ns : 0;
	s->interval_next_ns = s->interval_ns;
	return rc;
}

// Does a delay depend on whose packet it is, or does the telemetry say so?
static bool flows_matter(const struct switch_app *app) {
	bool any = app->run.tel.level >= 2 || app->run.telemetry_arrivals;

	for (uint32_t i = 0; i < app->paths.class_count; i++)
		any |= app->paths.class_extra_ns[i] > 0;
	return any;
}

int switch_app_open(struct switch_app *app, struct err *err) {
	struct switch_live *s = &app->live;
	struct clock_anchor first = clock_anchor();
	char path[640];
	int rc;

	live_other_cpus(&app->plan.process, &app->cpus);
	s->plan = &app->plan;
	s->paths = &app->paths;
	s->schedule = &app->schedule;
	s->burst = (uint32_t)app->plan.process.burst;
	s->patience_ns = app->plan.process.patience_ns;
	s->duration_ns = app->run.duration_ns;
	s->warmup_ns = app->run.warmup_ns;
	s->flows_matter = flows_matter(app);
	s->schedule_ns = s->start_ns = s->measure_ns = NEVER_NS;
	if ((rc = start_eal(app, err)) < 0)
		return rc;
	if ((s->pool = pool_create("weir", app->buffers, err)) == NULL)
		return -ENOMEM;
	if (!arena_init(&s->small, SWITCH_SMALL_BYTES, app->small))
		return err_set(err, -ENOMEM, "no memory for %llu small packets",
			(unsigned long long)app->small);
	if ((rc = open_ports(app, err)) < 0)
		return rc;
	prepare_watch(app);
	if ((rc = clock_init(&s->clock, &first, err)) < 0)
		return rc;
	if ((rc = run_create(&app->run, app->opt, false, err)) < 0)
		return rc;
	snprintf(path, sizeof(path), "%s/%s-dpdk.log", app->run.dir, app->opt->program);
	if ((rc = eal_log_to(&app->eal, path, err)) < 0)
		return rc;
	clock_start(&s->clock);
	if (app->plan.process.epoch_utc_ns > 0)
		clock_set_epoch(&s->clock, app->plan.process.epoch_utc_ns);
	if ((rc = open_telemetry(app, err)) < 0)
		return rc;
	return switch_control(app, err);
}

int switch_app_run(struct switch_app *app, struct err *err) {
	struct switch_live *s = &app->live;
	struct tel *const streams[] = {
		&s->tel_packets, &s->tel_arrivals, &s->tel_links, &s->tel_events};
	struct err one;
	int rc = 0;

	rc = pthread_create(&app->control, NULL, control_main, app);
	if (rc != 0)
		return err_set(err, -rc, "a control thread: %s", strerror(rc));
	app->control_running = true;
	uint64_t begin_ns = clock_now(&s->clock);
	switch_loop(s);
	app->wall_s = (double)(clock_now(&s->clock) - begin_ns) / 1e9;
	atomic_store(&app->control_stop, true);
	pthread_join(app->control, NULL);
	app->control_running = false;
	watch_probe_fini(&app->probe);
	watch_finish(&app->watch);
	for (size_t i = 0; i < sizeof(streams) / sizeof(streams[0]); i++) {
		int closed = tel_close(streams[i], &one);

		if (closed < 0 && rc == 0)
			rc = err_set(err, closed, "%s", one.msg);
	}
	return rc;
}

void switch_app_close(struct switch_app *app) {
	int saved = eal_hush(&app->eal);

	intr_hold(); // for good: handlers know nothing of ports that are closed
	for (uint32_t i = 0; i < app->live.ports; i++)
		port_close(&app->live.port[i].port);
	fabric_fini(&app->live.fabric);
	arena_fini(&app->live.small);
	eal_unhush(saved);
	eal_stop(&app->eal);
}
