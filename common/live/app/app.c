// SPDX-License-Identifier: BSD-3-Clause
#include "common/live/app/app.h"

#include "common/live/base/quiesce.h"
#include "common/run/run_list.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// The control thread wakes once per tick; the counts below are ticks.
#define TICK_US 20000
#define PROGRESS_TICKS 25 // half a second
#define LINK_TICKS 5
#define WATCH_TICKS 5
#define WAITS_TICKS 500
#define FEW_RECORDS 4096

static bool all_run(const struct live_app *app) {
	bool run = true;

	for (uint32_t i = 0; i < app->lcores; i++)
		run &= atomic_load(&app->lcore[i]->running) && !atomic_load(&app->lcore[i]->done);
	return run;
}

static bool began_running(const struct live_app *app) {
	return atomic_load(&app->lcore[0]->running);
}

static void drain(struct live_app *app) {
	for (uint32_t i = 0; i < app->lcores; i++) {
		for (uint32_t k = 0; k < app->lcore[i]->streams; k++)
			tel_drain(app->lcore[i]->stream[k]);
	}
	if (app->program->drain != NULL)
		app->program->drain(app);
}

static void sample(struct live_app *app, bool last) {
	for (uint32_t i = 0; i < app->lcores; i++)
		watch_sampler_sample(&app->sampler[i], last);
}

static void print_progress(struct live_app *app) {
	struct watch_count count;
	double run_s = 0;

	watch_shown(&app->lcore[0]->watch, &count);
	if (count.begun_ns != NEVER_NS)
		run_s = (double)time_since(count.now_ns, count.begun_ns) / 1e9;
	fprintf(stderr, "{\"virtual_s\": %.3f, \"wall_s\": %.3f, \"duration_s\": %.3f", run_s,
		run_s, (double)app->run.duration_ns / 1e9);
	app->program->progress(app, stderr);
	fprintf(stderr, "}\n");
}

// Whether a line can be written without waiting: a reader that has stopped must not stop this
// thread.
static bool is_writable(int fd) {
	struct pollfd p = {.fd = fd, .events = POLLOUT};

	return poll(&p, 1, 0) == 1 && (p.revents & POLLOUT) != 0;
}

static void report_progress(struct live_app *app, uint32_t tick) {
	if (!app->opt.progress || !is_writable(STDERR_FILENO))
		return;
	if (!app->ready && (app->program->ready_when_open || all_run(app))) {
		fprintf(stderr, "{\"ready\": true}\n");
		app->ready = true;
	}
	if (app->ready && tick % PROGRESS_TICKS == 0 && all_run(app))
		print_progress(app);
}

// A run may wait for packets that never arrive (`start: traffic`), or for ports that never come up:
// prints that once.
static void say_if_waiting(const struct live_app *app) {
	char down[LIVE_PORTS_MAX * (PARAM_TEXT_SIZE + 16)] = "";

	if (app->sampler->sample.count.begun_ns != NEVER_NS)
		return;
	for (uint32_t i = 0, used = 0; i < app->ports; i++) {
		if (!atomic_load(&app->port[i].up))
			used += (uint32_t)snprintf(down + used, sizeof(down) - used,
				"; port %s is down", app->port[i].name);
	}
	fprintf(stderr, "%s: still waits for %s%s\n", app->program->name,
		app->waits_for != NULL ? app->waits_for : "its lcores", down);
}

// Ends the run if a card is to be taken away: the kernel waits until it is closed.
static void end_without_card(struct live_app *app) {
	struct fact fault;

	for (uint32_t i = 0; i < app->ports; i++) {
		if (port_removed(&app->port[i], &fault))
			atomic_store(&app->lcore[0]->stop, true);
	}
}

// The control thread does all work that may block: it writes files, asks the kernel about links and
// prints progress.
static void *control_main(void *arg) {
	struct live_app *app = arg;

	if (CPU_COUNT(&app->cpus) > 0)
		pthread_setaffinity_np(pthread_self(), sizeof(app->cpus), &app->cpus);
	for (uint32_t tick = 0; !atomic_load(&app->control_stop); tick++) {
		if (atomic_load(&app->recording))
			drain(app);
		for (uint32_t i = 0; tick % LINK_TICKS == 0 && i < app->ports; i++)
			port_poll_link(&app->port[i]);
		end_without_card(app);
		if (tick % WATCH_TICKS == 0 && began_running(app))
			sample(app, false);
		if (tick == WAITS_TICKS)
			say_if_waiting(app);
		report_progress(app, tick);
		usleep(TICK_US);
	}
	if (began_running(app))
		sample(app, true);
	drain(app);
	return NULL;
}

static int start_control(struct live_app *app, struct err *err) {
	int rc = pthread_create(&app->control, NULL, control_main, app);

	app->control_running = rc == 0;
	return rc == 0 ? 0 : err_set(err, -rc, "a control thread: %s", strerror(rc));
}

static void stop_control(struct live_app *app) {
	if (!app->control_running)
		return;
	atomic_store(&app->control_stop, true);
	pthread_join(app->control, NULL);
	app->control_running = false;
}

// The size of a stream's ring in records, a power of two.
static uint64_t ring_records(const struct live_app *app, const struct live_stream *s) {
	uint64_t records = 256;

	if (s->ring != LIVE_FLOW_RECORDS)
		return s->ring == LIVE_RING_SIZE ? app->process->ring_size : FEW_RECORDS;
	while (records < 4 * app->flows)
		records *= 2;
	return records;
}

// Opens one of the lcore's streams. The first lcore's has the file; other lcores' records are
// written to it too.
static int open_stream(
	struct live_app *app, uint32_t k, const struct live_stream *s, struct err *err) {
	struct lcore *l = app->lcore[k];
	struct tel *t = &l->tel[s->stream];
	uint64_t records = ring_records(app, s);
	int rc;

	if (k == 0)
		rc = tel_open(t, s->stream, &app->run.tel, s->suffix, records, err);
	else
		rc = tel_join(t, &app->lcore[0]->tel[s->stream], &app->run.tel, records, err);
	if (rc == 0)
		l->stream[l->streams++] = t;
	return rc;
}

static int open_streams(struct live_app *app, struct err *err) {
	const struct clock *c = &app->lcore[0]->clock;
	struct tel_run *tel = &app->run.tel;
	int rc = 0;

	tel->tsc_hz = c->tsc_hz;
	tel->tsc_start = c->tsc_start;
	tel->utc_start_ns = c->start.utc_ns;
	for (uint32_t k = 0; k < app->lcores; k++) {
		app->lcore[k]->interval_ns = tel->level >= 1 ? app->run.telemetry_interval_ns : 0;
		app->lcore[k]->interval_next_ns = app->lcore[k]->interval_ns;
		for (const struct live_stream *s = app->program->streams; rc == 0 && s->level > 0;
			s++) {
			if ((app->without >> s->stream & 1) != 0)
				continue;
			if (s->level == LIVE_ARRIVALS ? app->run.telemetry_arrivals
						      : tel->level >= s->level)
				rc = open_stream(app, k, s, err);
		}
	}
	return rc;
}

// Closes the first lcore's streams last, because they have the files.
static int close_streams(struct live_app *app, struct err *err) {
	struct err one;
	int rc = 0;

	for (uint32_t k = app->lcores; k-- > 0;) {
		struct lcore *l = app->lcore[k];

		for (uint32_t i = 0; i < l->streams; i++) {
			int closed = tel_close(l->stream[i], &one);

			if (closed < 0 && rc == 0)
				rc = err_set(err, closed, "%s", one.msg);
		}
	}
	return rc;
}

static int start_eal(struct live_app *app, struct err *err) {
	struct eal_args args = {
		.program = app->program->name,
		.process = app->process,
		.user_argc = app->opt.eal_argc,
		.user_argv = app->opt.eal_argv,
	};

	app->program->size(app, &args);
	return eal_start(&app->eal, &args, err);
}

static int start_clock(struct live_app *app, struct err *err) {
	struct clock *c = &app->lcore[0]->clock;
	int rc = 0;

	clock_start(c);
	if (app->process->epoch_utc_ns > 0)
		rc = clock_set_epoch(c, app->process->epoch_utc_ns, err);
	for (uint32_t k = 1; k < app->lcores; k++)
		app->lcore[k]->clock = *c;
	return rc;
}

// The CPUs on which the control thread may run: all but the lcores', if there are others.
static void other_cpus(const struct live_process *process, cpu_set_t *cpus) {
	cpu_set_t all;

	CPU_ZERO(cpus);
	if (sched_getaffinity(0, sizeof(all), &all) < 0)
		return;
	*cpus = all;
	for (uint32_t i = 0; i < process->lcores; i++)
		CPU_CLR(process->lcore[i], cpus);
	if (CPU_COUNT(cpus) == 0)
		*cpus = all;
}

// Prepares the run up to the first packet. The clock starts when the run folder exists.
static int open_run(struct live_app *app, struct err *err) {
	struct clock_anchor anchor;
	char log[640];
	int rc;

	clock_plant(app->process->test_offset_ns, app->process->test_drift_ppm);
	anchor = clock_anchor();
	other_cpus(app->process, &app->cpus);
	if ((rc = start_eal(app, err)) < 0 || (rc = app->program->open(app, err)) < 0)
		return rc;
	eal_usual_modes(&app->eal);
	for (uint32_t k = 0; k < app->lcores; k++) {
		app->lcore[k]->duration_ns = app->run.duration_ns;
		app->lcore[k]->warmup_ns = app->run.warmup_ns;
		app->watch[k].self = app->program->self;
		app->watch[k].packets = app->program->packets;
		app->watch[k].untimed = app->process->test_any_tsc;
		watch_sampler_init(&app->sampler[k], &app->watch[k], app->lcore[k], app->process,
			app->program->pkt_ns);
	}
	if ((rc = clock_init(&app->lcore[0]->clock, &anchor, app->process->test_any_tsc, err)) < 0
		|| (rc = run_create(&app->run, &app->opt, false, err)) < 0
		|| (rc = start_clock(app, err)) < 0
		|| (rc = control_register(app->program->commands, app, err)) < 0
		|| (rc = start_control(app, err)) < 0)
		return rc;
	if (app->program->connect != NULL && (rc = app->program->connect(app, err)) < 0)
		return rc;
	snprintf(log, sizeof(log), "%s/%s-dpdk.log", app->run.dir, app->program->name);
	if ((rc = eal_log_to(&app->eal, log, err)) < 0 || (rc = open_streams(app, err)) < 0)
		return rc;
	atomic_store(&app->recording, true);
	return app->program->begin != NULL ? app->program->begin(app, err) : 0;
}

static int lcore_main(void *arg) {
	struct lcore *l = arg;

	l->ops->loop(l);
	control_open(&l->box, false);
	return 0;
}

static int run_lcores(struct live_app *app, struct err *err) {
	eal_run_lcores(lcore_main, (void *const *)app->lcore, app->lcores);
	app->wall_s = (double)time_since(live_end_ns(app), app->lcore[0]->loop_ns) / 1e9;
	if (app->program->finish != NULL)
		app->program->finish(app);
	stop_control(app);
	for (uint32_t k = 0; k < app->lcores; k++) {
		watch_sampler_fini(&app->sampler[k]);
		watch_finish(&app->watch[k]);
	}
	return close_streams(app, err);
}

static void port_facts(const struct live_app *app, struct facts *verdict) {
	struct fact fault;

	for (uint32_t i = 0; i < app->ports; i++) {
		const struct port *p = &app->port[i];

		if (p->no_rss)
			facts_say(verdict, "no_rss",
				"port %s: its driver offers no RSS, so that one of its %u receive "
				"queues may get all packets",
				p->name, p->rx_queues);
		if (port_removed(p, &fault))
			facts_lead(verdict, "port_removed", fault.sentence);
	}
}

static int experiment(struct live_app *app, struct err *err) {
	static struct facts verdict;
	int rc;

	run_catch_signals();
	run_stdout_aside();
	if ((rc = open_run(app, err)) < 0) {
		stop_control(app);
		run_discard(&app->run);
		return rc;
	}
	rc = run_lcores(app, err);
	if (rc == 0)
		rc = app->program->outcome(app, &verdict, err);
	watch_facts(app->watch, app->lcores, &verdict);
	port_facts(app, &verdict);
	if (app->process->test_any_tsc)
		facts_lead(&verdict, "untimed",
			"times were not judged: live.test_any_tsc takes a TSC that need not be "
			"invariant");
	rc = run_end(&app->run, live_summary, app, &verdict, rc, err);
	if (rc == 0 && app->program->linger != NULL)
		app->program->linger(app);
	return rc;
}

static void close_run(struct live_app *app) {
	int saved = eal_hush(&app->eal);

	quiesce_hold(); // never released: drivers' handlers do not know that ports are closed
	for (uint32_t i = 0; i < app->ports; i++)
		port_close(&app->port[i]);
	app->program->close(app);
	eal_unhush(saved);
	eal_stop(&app->eal);
}

static int list(
	const struct live_program *program, const struct run_options *opt, struct err *err) {
	struct run_list l;

	run_list_begin(&l, opt, stdout);
	program->list(&l);
	return run_list_end(&l, program->kinds, err);
}

int live_main(struct live_app *app, const struct live_program *program, int argc, char **argv) {
	struct err err = {0};
	int rc;

	app->program = program;
	app->eal = (struct eal)EAL_NONE;
	if ((rc = run_options(&app->opt, argc, argv, program->name, &err)) != 0)
		return run_exit(program->name, rc, &err);
	if (app->opt.list != NULL)
		return run_exit(program->name, list(program, &app->opt, &err), &err);
	if ((rc = run_load(&app->run, &app->opt, &err)) < 0)
		return run_exit(program->name, rc, &err);
	rc = program->configure(app, &err);
	if (rc == 0 && app->opt.print_config) {
		run_print_config(&app->run);
	} else if (rc == 0 && !app->opt.check) {
		rc = experiment(app, &err);
	}
	close_run(app);
	run_free(&app->run);
	return run_exit(program->name, rc, &err);
}
