// SPDX-License-Identifier: BSD-3-Clause
#include "switch/live/app.h"

#include "common/live/intr.h"

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
#define CACHE_BUFFERS 1024 // of the pool, in a lcore's own cache
#define WHO "the switch"

static bool all_run(struct switch_live *all) {
	bool run = true;

	for (uint32_t i = 0; i < all->lcores; i++)
		run &= atomic_load(&all[i].running) && !atomic_load(&all[i].done);
	return run;
}

static bool has_path(const struct switch_live *s, const struct path *path) {
	for (uint32_t i = 0; i < s->paths; i++) {
		if (s->path[i] == path)
			return true;
	}
	return false;
}

static int ask_one(struct switch_live *s, const struct switch_question *q, struct err *err) {
	struct switch_mailbox *box = &s->mailbox;
	int rc;

	if ((rc = control_free(&box->box, WHO, err)) < 0)
		return rc;
	box->request = q->request;
	box->path = q->path;
	box->first = q->first;
	snprintf(box->key, sizeof(box->key), "%s", q->key != NULL ? q->key : "");
	snprintf(box->value, sizeof(box->value), "%s", q->value != NULL ? q->value : "");
	rc = control_wait(&box->box, WHO, err);
	return rc == 0 && box->rc < 0 ? err_set(err, box->rc, "%s", box->err.msg) : rc;
}

int switch_ask(struct switch_live *all, const struct switch_question *q,
	void (*use)(const struct switch_mailbox *box, void *ctx), void *ctx, struct err *err) {
	const struct switch_mailbox *answer = &all->mailbox;
	int rc = 0;

	control_begin();
	if (q->request == SWITCH_SNAPSHOT)
		all->mailbox.snapshot = (struct switch_snapshot){0};
	for (uint32_t i = 0; rc == 0 && i < all->lcores; i++) {
		if (q->path != NULL && !has_path(&all[i], q->path))
			continue;
		rc = ask_one(&all[i], q, err);
		if (q->path != NULL)
			answer = &all[i].mailbox;
	}
	if (rc == 0 && use != NULL)
		use(answer, ctx);
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

	p->run_ns = snap->start_ns == NEVER_NS ? 0 : time_since(snap->now_ns, snap->start_ns);
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

	if (switch_ask(app->live, &q, progress_take, p, NULL) < 0)
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

static void drain(struct switch_live *all) {
	for (struct switch_live *s = all; s < all + all->lcores; s++) {
		tel_drain(&s->tel_packets);
		tel_drain(&s->tel_arrivals);
		tel_drain(&s->tel_links);
		tel_drain(&s->tel_events);
	}
}

static void sample(struct switch_app *app, bool last) {
	for (uint32_t i = 0; i < app->live->lcores; i++)
		watch_probe_sample(&app->probe[i], last);
}

// `start: traffic` may wait for what nobody sends: says so, once.
static void say_waits(const struct switch_app *app) {
	const struct switch_live *s = app->live;
	char down[LIVE_PORTS_MAX * (PARAM_TEXT_SIZE + 16)] = "";

	if (app->plan.start != PLAN_START_TRAFFIC || app->probe->sample.count.begun_ns != NEVER_NS)
		return;
	for (uint32_t i = 0, used = 0; i < s->ports; i++) {
		if (!atomic_load(&s->port[i].at->up))
			used += (uint32_t)snprintf(down + used, sizeof(down) - used,
				"; port %s is down", s->port[i].at->name);
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
		drain(app->live);
		if (tick % LINK_TICKS == 0) {
			for (uint32_t i = 0; i < app->live->ports; i++)
				port_poll_link(app->live->port[i].at);
		}
		if (tick % WATCH_TICKS == 0)
			sample(app, false);
		if (tick == WAITS_TICKS)
			say_waits(app);
		if (app->opt->progress && !ready && all_run(app->live)) {
			fprintf(stderr, "{\"ready\": true}\n");
			ready = true;
		}
		if (app->opt->progress && ready && tick % PROGRESS_TICKS == 0)
			print_progress(app, &progress);
		usleep(CONTROL_TICK_US);
	}
	sample(app, true);
	drain(app->live);
	return NULL;
}

// Who is watched, as what.
static void prepare_watch(struct switch_app *app, struct switch_live *s) {
	struct watch *w = &app->watch[s->index];
	struct watch_probe *probe = &app->probe[s->index];

	w->self = "switch";
	w->packets = "packets";
	*probe = (struct watch_probe){
		.watch = w, .lcore = &s->watch, .clock = &app->live->clock, .index = s->index};
	for (uint32_t i = 0; i < s->ports; i++) {
		probe->port[i] = s->port[i].at;
		probe->other[i] = s->port[i].to != NULL;
		probe->queue[i] = s->port[i].receives ? s->port[i].queue : -1;
	}
	watch_probe_init(probe, &app->plan.process, s->ports, PKT_NS);
}

static int open_ports(struct switch_app *app, struct err *err) {
	struct switch_live *all = app->live;

	for (uint32_t i = 0; i < app->plan.ports; i++) {
		const struct plan_port *from = &app->plan.port[i];
		struct port *p = &switch_owner(all, i)->port;
		int rc;

		p->lead_ns = from->lead_ns;
		p->rx_queues = (uint16_t)from->rx_queues;
		rc = port_open(p, &from->dev, from->name, all->pool, &app->eal, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int open_fabrics(struct switch_app *app, struct err *err) {
	uint32_t n = app->live->lcores;
	int rc = 0;

	for (uint32_t k = 0; rc == 0 && k < n; k++) {
		struct fabric *f = &app->live[k].fabric;

		rc = fabric_init(f, app->plan.ports, STATIONS_MAX, FABRIC_AGE_NS, err);
		for (uint32_t i = 0; rc == 0 && i < app->plan.fixed_count; i++)
			rc = fabric_add_static(
				f, app->plan.fixed[i].mac.b, app->plan.fixed[i].port, err);
	}
	for (uint32_t k = 0; rc == 0 && k < n * n; k++) {
		if (k / n != k % n)
			fabric_join(&app->live[k / n].fabric, &app->live[k % n].fabric);
	}
	return rc;
}

// Frames in rings between lcores, and what each lcore but the first keeps for itself.
static uint64_t lcore_buffers(const struct plan *p) {
	uint64_t others = p->process.lcores - 1;

	return others * (p->process.lcores * p->handover + SWITCH_FRESH_MAX + CACHE_BUFFERS);
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
		app->port_buffers +=
			p->rx_queues * port_own_buffers(&p->dev, app->plan.process.burst);
		app->buffers += p->large;
		if (p->path != NULL)
			app->small += p->share;
	}
	app->port_buffers += lcore_buffers(&app->plan);
	app->buffers += app->port_buffers + SWITCH_FRESH_MAX;
	args.memory_bytes = pool_bytes(app->buffers);
	if (!app->plan.process.force)
		rc = live_memory_check(
			args.memory_bytes + arena_bytes(app->small), "packets", &why);
	if (rc == 0)
		rc = eal_start(&app->eal, &args, &why);
	if (rc == -ENOMEM) {
		plan_text(&app->plan, app->port_buffers, sum, sizeof(sum));
		return err_set(err, rc,
			"%s (%s; a larger min_packet or a smaller queue takes less)", why.msg, sum);
	}
	return rc < 0 ? err_set(err, rc, "%s", why.msg) : 0;
}

// The first lcore's streams are files; the others' records go there as well.
static int open_stream(struct switch_app *app, struct tel *t, struct tel *first, enum tel_stream s,
	const char *suffix, uint64_t size, struct err *err) {
	if (t != first)
		return tel_join(t, first, &app->run.tel, size, err);
	return tel_open(t, s, &app->run.tel, suffix, size, NULL, err);
}

static int open_telemetry(struct switch_app *app, struct switch_live *s, struct err *err) {
	uint64_t size = app->plan.process.ring_size;
	struct tel_run *tel = &app->run.tel;
	struct switch_live *first = s->all;
	int rc = 0;

	tel->tsc_hz = first->clock.tsc_hz;
	tel->tsc_start = first->clock.tsc_start;
	tel->utc_start_ns = first->clock.start.utc_ns;
	if (tel->level >= 2)
		rc = open_stream(app, &s->tel_packets, &first->tel_packets, TEL_STREAM_PACKETS, "",
			size, err);
	if (rc == 0 && app->run.telemetry_arrivals)
		rc = open_stream(app, &s->tel_arrivals, &first->tel_arrivals, TEL_STREAM_ARRIVALS,
			"", size, err);
	if (rc == 0 && tel->level >= 1)
		rc = open_stream(
			app, &s->tel_links, &first->tel_links, TEL_STREAM_LINKS, "", 4096, err);
	if (rc == 0 && tel->level >= 1)
		rc = open_stream(app, &s->tel_events, &first->tel_events, TEL_STREAM_EVENTS,
			"-switch", 4096, err);
	s->interval_ns = tel->level >= 1 ? app->run.telemetry_interval_ns : 0;
	s->interval_next_ns = s->interval_ns;
	return rc;
}

// Does a delay depend on whose packet it is, or does the telemetry say so?
static bool flows_matter(const struct switch_app *app) {
	bool any = app->run.telemetry_level >= 2 || app->run.telemetry_arrivals;

	for (uint32_t i = 0; i < app->paths.class_count; i++)
		any |= app->paths.class_extra_ns[i] > 0;
	return any;
}

static void prepare(struct switch_app *app, uint32_t index) {
	struct switch_live *s = &app->live[index];

	s->all = app->live;
	s->lcores = app->plan.process.lcores;
	s->index = index;
	s->plan = &app->plan;
	s->burst = (uint32_t)app->plan.process.burst;
	s->patience_ns = app->plan.process.patience_ns;
	s->duration_ns = app->run.duration_ns;
	s->warmup_ns = app->run.warmup_ns;
	s->flows_matter = flows_matter(app);
	s->schedule_ns = s->start_ns = s->measure_ns = NEVER_NS;
	atomic_store(&s->begun_ns, NEVER_NS);
}

static int open_arena(struct switch_live *s, struct err *err) {
	uint64_t small = 0;

	for (uint32_t i = 0; i < s->ports; i++)
		small += s->port[i].path != NULL ? s->port[i].share : 0;
	if (small > 0 && !arena_init(&s->small, small))
		return err_set(err, -ENOMEM, "no memory for %llu small packets",
			(unsigned long long)small);
	return 0;
}

static int start_clock(struct switch_app *app, const struct clock_anchor *first, struct err *err) {
	struct clock *c = &app->live->clock;
	char path[640];
	int rc;

	if ((rc = clock_init(c, first, err)) < 0)
		return rc;
	if ((rc = run_create(&app->run, app->opt, false, err)) < 0)
		return rc;
	snprintf(path, sizeof(path), "%s/%s-dpdk.log", app->run.dir, app->opt->program);
	if ((rc = eal_log_to(&app->eal, path, err)) < 0)
		return rc;
	clock_start(c);
	return app->plan.process.epoch_utc_ns > 0
		? clock_set_epoch(c, app->plan.process.epoch_utc_ns, err)
		: 0;
}

int switch_app_open(struct switch_app *app, struct err *err) {
	struct clock_anchor first = clock_anchor();
	struct switch_live *all = app->live;
	struct rte_mempool *pool;
	int rc;

	live_other_cpus(&app->plan.process, &app->cpus);
	for (uint32_t i = 0; i < app->plan.process.lcores; i++)
		prepare(app, i);
	if ((rc = start_eal(app, err)) < 0)
		return rc;
	if ((pool = pool_create("weir", app->buffers, err)) == NULL)
		return -ENOMEM;
	if ((rc = switch_share(all, &app->paths, &app->schedule, err)) < 0)
		return rc;
	for (uint32_t i = 0; i < all->lcores; i++) {
		all[i].pool = pool;
		if ((rc = open_arena(&all[i], err)) < 0)
			return rc;
	}
	if ((rc = open_ports(app, err)) < 0 || (rc = open_fabrics(app, err)) < 0)
		return rc;
	for (uint32_t i = 0; i < all->lcores; i++)
		prepare_watch(app, &all[i]);
	if ((rc = start_clock(app, &first, err)) < 0)
		return rc;
	for (uint32_t i = 0; i < all->lcores; i++) {
		all[i].clock = all->clock;
		if ((rc = open_telemetry(app, &all[i], err)) < 0)
			return rc;
	}
	return switch_control(app, err);
}

static int run_lcore(void *arg) {
	struct switch_live *s = arg;

	control_open(&s->mailbox.box, true);
	switch_loop(s);
	control_open(&s->mailbox.box, false);
	return 0;
}

static void run_lcores(struct switch_live *all) {
	eal_run_lcores(run_lcore, all, sizeof(*all), all->lcores);
	switch_clear(all);
}

// The first lcore's last: they have the files.
static int close_telemetry(struct switch_live *all, struct err *err) {
	struct err one;
	int rc = 0;

	for (uint32_t i = all->lcores; i-- > 0;) {
		struct switch_live *s = &all[i];
		struct tel *const streams[] = {
			&s->tel_packets, &s->tel_arrivals, &s->tel_links, &s->tel_events};

		for (size_t k = 0; k < sizeof(streams) / sizeof(streams[0]); k++) {
			int closed = tel_close(streams[k], &one);

			if (closed < 0 && rc == 0)
				rc = err_set(err, closed, "%s", one.msg);
		}
	}
	return rc;
}

int switch_app_run(struct switch_app *app, struct err *err) {
	struct switch_live *all = app->live;
	int rc = pthread_create(&app->control, NULL, control_main, app);

	if (rc != 0)
		return err_set(err, -rc, "a control thread: %s", strerror(rc));
	app->control_running = true;
	uint64_t begin_ns = clock_now(&all->clock);
	run_lcores(all);
	app->wall_s = (double)(clock_now(&all->clock) - begin_ns) / 1e9;
	atomic_store(&app->control_stop, true);
	pthread_join(app->control, NULL);
	app->control_running = false;
	for (uint32_t i = 0; i < all->lcores; i++) {
		watch_probe_fini(&app->probe[i]);
		watch_finish(&app->watch[i]);
	}
	return close_telemetry(all, err);
}

void switch_app_close(struct switch_app *app) {
	int saved = eal_hush(&app->eal);
	struct switch_live *all = app->live;

	intr_hold(); // for good: handlers know nothing of ports that are closed
	for (uint32_t i = 0; i < app->plan.ports && all->lcores > 0; i++)
		port_close(&switch_owner(all, i)->port);
	switch_unshare(all);
	for (uint32_t i = 0; i < all->lcores; i++) {
		fabric_fini(&all[i].fabric);
		arena_fini(&all[i].small);
	}
	eal_unhush(saved);
	eal_stop(&app->eal);
}
