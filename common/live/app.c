// SPDX-License-Identifier: BSD-3-Clause
#include "common/live/app.h"

#include "common/live/intr.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// The control thread's ticks.
#define TICK_US 20000
#define PROGRESS_TICKS 25 // half a second
#define LINK_TICKS 5
#define WATCH_TICKS 5
#define WAITS_TICKS 500

uint64_t live_end_ns(const struct live_app *app) {
	uint64_t end_ns = 0;

	for (uint32_t i = 0; i < app->lcores; i++)
		end_ns = time_max(end_ns, app->lcore[i]->now_ns);
	return end_ns;
}

uint64_t live_start_ns(const struct live_app *app) {
	uint64_t start_ns = app->lcore[0]->start_ns;

	return start_ns == NEVER_NS ? live_end_ns(app) : start_ns;
}

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
}

static void sample(struct live_app *app, bool last) {
	for (uint32_t i = 0; i < app->lcores; i++)
		watch_probe_sample(&app->probe[i], last);
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

static void tell_the_user(struct live_app *app, uint32_t tick) {
	if (!app->opt.progress)
		return;
	if (!app->ready && (app->program->ready_when_open || all_run(app))) {
		fprintf(stderr, "{\"ready\": true}\n");
		app->ready = true;
	}
	if (app->ready && tick % PROGRESS_TICKS == 0 && all_run(app))
		print_progress(app);
}

// Everything that may wait: files, the kernel's view of links, what the user sees.
static void *control_main(void *arg) {
	struct live_app *app = arg;

	if (CPU_COUNT(&app->cpus) > 0)
		pthread_setaffinity_np(pthread_self(), sizeof(app->cpus), &app->cpus);
	for (uint32_t tick = 0; !atomic_load(&app->control_stop); tick++) {
		if (atomic_load(&app->recording))
			drain(app);
		for (uint32_t i = 0; tick % LINK_TICKS == 0 && i < app->ports; i++)
			port_poll_link(&app->port[i]);
		if (tick % WATCH_TICKS == 0 && began_running(app))
			sample(app, false);
		if (tick == WAITS_TICKS && app->program->waits != NULL)
			app->program->waits(app);
		tell_the_user(app, tick);
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

// Of the lcore's streams, one: the first lcore's is a file, the others' records go there too.
static int open_stream(
	struct live_app *app, uint32_t k, const struct live_stream *s, struct err *err) {
	struct lcore *l = app->lcore[k];
	struct tel *t = &l->tel[s->stream];
	uint64_t records = app->program->ring_records(app, k, s->stream);
	int rc;

	if (k == 0)
		rc = tel_open(t, s->stream, &app->run.tel, s->suffix, records, NULL, err);
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
			if (s->level == LIVE_ARRIVALS ? app->run.telemetry_arrivals
						      : tel->level >= s->level)
				rc = open_stream(app, k, s, err);
		}
	}
	return rc;
}

// The first lcore's last: they have the files.
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

static void prepare_watch(struct live_app *app, uint32_t k) {
	const struct lcore *l = app->lcore[k];
	struct watch_probe *p = &app->probe[k];

	app->watch[k].self = app->program->self;
	app->watch[k].packets = app->program->packets;
	p->watch = &app->watch[k];
	p->lcore = &app->lcore[k]->watch;
	p->index = k;
	p->clock = &app->lcore[0]->clock;
	for (uint32_t i = 0; i < l->ports; i++) {
		p->port[i] = l->port[i];
		p->other[i] = !l->owns_port[i];
		p->queue[i] = l->rx_queue[i];
	}
	watch_probe_init(p, app->process, l->ports, app->program->pkt_ns);
}

static int start_eal(struct live_app *app, struct err *err) {
	struct eal_args args = {
		.program = app->program->name,
		.process = app->process,
		.user_argc = app->opt.eal_argc,
		.user_argv = app->opt.eal_argv,
	};
	int rc = app->program->size(app, &args, err);

	return rc < 0 ? rc : eal_start(&app->eal, &args, err);
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

// Everything up to the first packet. Time begins when the run folder is there.
static int open_run(struct live_app *app, struct err *err) {
	struct clock_anchor anchor = clock_anchor();
	char log[640];
	int rc;

	live_other_cpus(app->process, &app->cpus);
	if ((rc = start_eal(app, err)) < 0 || (rc = app->program->open(app, err)) < 0)
		return rc;
	for (uint32_t k = 0; k < app->lcores; k++) {
		app->lcore[k]->duration_ns = app->run.duration_ns;
		app->lcore[k]->warmup_ns = app->run.warmup_ns;
		prepare_watch(app, k);
	}
	if ((rc = clock_init(&app->lcore[0]->clock, &anchor, err)) < 0
		|| (rc = run_create(&app->run, &app->opt, false, err)) < 0
		|| (rc = start_clock(app, err)) < 0 || (rc = start_control(app, err)) < 0)
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

int live_ask(struct live_app *app, uint32_t lcore, int request, struct err *err) {
	struct lcore *l = app->lcore[lcore];
	char who[32];
	int rc;

	snprintf(who, sizeof(who), "the %s", app->program->self);
	if ((rc = control_free(&l->box, who, err)) < 0)
		return rc;
	l->request = request;
	return control_wait(&l->box, who, err);
}

int live_ask_all(struct live_app *app, int request, struct err *err) {
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < app->lcores; i++)
		rc = live_ask(app, i, request, err);
	return rc;
}

static int run_lcores(struct live_app *app, struct err *err) {
	eal_run_lcores(lcore_main, (void *const *)app->lcore, app->lcores);
	app->wall_s = (double)time_since(live_end_ns(app), app->lcore[0]->loop_ns) / 1e9;
	if (app->program->finish != NULL)
		app->program->finish(app);
	stop_control(app);
	for (uint32_t k = 0; k < app->lcores; k++) {
		watch_probe_fini(&app->probe[k]);
		watch_finish(&app->watch[k]);
	}
	return close_streams(app, err);
}

static bool summary(void *of, FILE *out, const char *verdict) {
	uint64_t start_ns = live_start_ns(of);
	struct live_app *app = of;
	bool balanced;
	struct json j;

	json_begin(&j, out);
	json_text(&j, "program", app->program->name);
	json_text(&j, "version", run_version());
	json_text(&j, "title", app->run.title);
	json_u64(&j, "seed", app->run.seed);
	json_f64(&j, "virtual_s", (double)time_since(live_end_ns(app), start_ns) / 1e9);
	json_f64(&j, "start_s", (double)start_ns / 1e9);
	json_f64(&j, "warmup_s", (double)app->run.warmup_ns / 1e9);
	json_f64(&j, "measured_from_s", (double)app->lcore[0]->measured_ns / 1e9);
	json_f64(&j, "wall_s", app->wall_s);
	json_text(&j, "verdict", verdict);
	watch_json(app->watch, app->lcores, &j);
	balanced = app->program->summary(app, &j);
	json_object(&j, "telemetry");
	json_u64(&j, "level", app->run.telemetry_level);
	for (uint32_t i = 0; i < app->lcore[0]->streams; i++) {
		const struct tel *t = app->lcore[0]->stream[i];

		watch_stream_json(
			&j, tel_stream_name((enum tel_stream)(t - app->lcore[0]->tel)), t);
	}
	json_close(&j, '}');
	json_end(&j);
	return balanced;
}

static int experiment(struct live_app *app, struct err *err) {
	char sentence[WATCH_SENTENCE_SIZE], text[WATCH_SENTENCE_SIZE];
	const char *verdict = "ok";
	int rc;

	run_catch_signals();
	if ((rc = open_run(app, err)) < 0) {
		stop_control(app);
		run_discard(&app->run);
		return rc;
	}
	rc = run_lcores(app, err);
	if (rc == 0)
		rc = app->program->outcome(app, &verdict, text, err);
	verdict = watch_verdict(app->watch, app->lcores, verdict, sentence);
	rc = run_end(&app->run, summary, app, verdict, rc, err);
	if (rc == 0 && app->program->linger != NULL)
		app->program->linger(app);
	return rc;
}

static void close_run(struct live_app *app) {
	int saved = eal_hush(&app->eal);

	intr_hold(); // for good: handlers know nothing of ports that are closed
	for (uint32_t i = 0; i < app->ports; i++)
		port_close(&app->port[i]);
	app->program->close(app);
	eal_unhush(saved);
	eal_stop(&app->eal);
}

static int list(
	const struct live_program *program, const struct run_options *opt, struct err *err) {
	struct run_list l;
	bool any;

	run_list_begin(&l, opt, stdout);
	any = program->list(&l, opt->list);
	run_list_end(&l);
	return any
		? 0
		: err_set(err, -EINVAL, "--list: '%s' is not one of %s", opt->list, program->kinds);
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
		config_print(app->run.config, stdout);
	} else if (rc == 0 && !app->opt.check) {
		rc = experiment(app, &err);
		close_run(app);
	}
	program->unconfigure(app);
	run_free(&app->run);
	return run_exit(program->name, rc, &err);
}

void live_faults_json(struct live_app *app, struct json *j) {
	const struct lcore *first = app->lcore[0];
	char text[256];

	for (uint32_t i = 0; i < app->ports; i++) {
		if (port_fault(&app->port[i], live_start_ns(app), live_end_ns(app), text,
			    sizeof(text)))
			json_text(j, NULL, text);
	}
	for (uint32_t i = 0; i < first->streams; i++) {
		if (tel_fault(first->stream[i], text, sizeof(text)))
			json_text(j, NULL, text);
	}
}

void live_lcore_json(const struct live_app *app, uint32_t lcore, struct json *j) {
	const struct lcore_load *load = &app->lcore[lcore]->load;

	json_u64(j, "cpu", app->process->lcore[lcore]);
	json_u64(j, "iterations", load->iterations);
	json_u64(j, "iteration_max_ns", load->iteration_max_ns);
	// Stood still, while DPDK's interrupt thread handled something.
	json_u64(j, "quiesced", load->quiesced);
	json_u64(j, "quiesced_max_ns", load->quiesced_max_ns);
	json_f64(j, "busy", app->wall_s > 0 ? (double)load->busy_ns / 1e9 / app->wall_s : 0);
	json_u64(j, "tsc_hz", app->lcore[lcore]->clock.tsc_hz);
}

void live_control_info(struct live_app *app, struct rte_tel_data *d) {
	struct watch_count count;

	watch_shown(&app->lcore[0]->watch, &count);
	rte_tel_data_add_dict_string(d, "program", app->program->name);
	rte_tel_data_add_dict_string(d, "version", run_version());
	rte_tel_data_add_dict_string(d, "run", app->run.dir);
	control_u64(d, "seed", app->run.seed);
	control_u64(d, "now_ns", count.now_ns);
	control_u64(d, "elapsed_ns",
		count.begun_ns == NEVER_NS ? 0 : time_since(count.now_ns, count.begun_ns));
	control_u64(d, "duration_ns", app->run.duration_ns);
	control_u64(d, "iterations", count.turns);
	control_u64(d, "busy_ns", count.busy_ns);
	control_u64(d, "cpu", app->process->lcore[0]);
	control_u64(d, "lcores", app->lcores);
}

struct rte_tel_data *live_control_lcore(struct live_app *app, uint32_t lcore) {
	struct rte_tel_data *one = control_dict();
	struct watch_count count;

	if (one == NULL)
		return NULL;
	watch_shown(&app->lcore[lcore]->watch, &count);
	control_u64(one, "cpu", app->process->lcore[lcore]);
	control_u64(one, "now_ns", count.now_ns);
	control_u64(one, "iterations", count.turns);
	control_u64(one, "busy_ns", count.busy_ns);
	return one;
}

int live_control_stop(struct live_app *app, struct rte_tel_data *d) {
	atomic_store(&app->lcore[0]->stop, true);
	return control_ok(d);
}
