// SPDX-License-Identifier: BSD-3-Clause
// weir-sender: thousands of TCP connections from one lcore or several, each under its own congestion control,
// and the receiving side of them or of another host's.
#include "sender/live/app.h"

#include "sender/source/source.h"

#include <errno.h>
#include <string.h>

#define PROGRAM "weir-sender"

static int list(const struct run_options *opt) {
	const char *kind = opt->list;
	bool cc = run_list_asked(kind, "cc"), source = run_list_asked(kind, "source");
	bool flows = run_list_asked(kind, "flows"), run = run_list_asked(kind, "run");
	struct run_list l;

	run_list_begin(&l, opt, stdout);
	for (const struct cc_ops *const *o = cc_all; cc && *o != NULL; o++)
		run_list_plugin(&l, "cc", (*o)->name, (*o)->summary, (*o)->params, (*o)->observed,
			CC_OBSERVED);
	for (const struct source_ops *const *o = source_all; source && *o != NULL; o++)
		run_list_plugin(&l, "source", (*o)->name, (*o)->summary, (*o)->params, NULL, 0);
	if (flows)
		groups_list(&l);
	if (run)
		run_list_run(&l);
	run_list_end(&l);
	if (cc || source || flows || run)
		return 0;
	fprintf(stderr, PROGRAM ": --list: '%s' is not one of cc, source, flows, run\n", kind);
	return 2;
}

// Reads every section of the config that concerns the sender.
static int configure(struct sender_app *app, struct err *err) {
	struct config *c = app->run.config;
	struct config_node *flows = config_get(config_root(c), "flows");
	int rc;

	if (flows == NULL)
		return config_err(config_root(c), -EINVAL, err,
			"flows is required: a list of groups such as - {count: 10, cc: copa}");
	if ((rc = groups_init(&app->groups, flows, err)) < 0)
		return rc;
	if ((rc = live_plan_init(&app->plan, c, &app->groups, err)) < 0)
		return rc;
	if ((rc = config_unused(c, err)) < 0)
		return rc;
	run_warn_unreached(&app->run, groups_unreached(&app->groups, flows, app->run.duration_ns),
		"flows: the start of this group");
	return 0;
}

static bool summary(void *app, FILE *out, const char *verdict) {
	return sender_app_summary(app, out, verdict);
}

// Both hosts of an lcore.
static int had_memory(const struct sender_live *s, struct err *err) {
	struct err why;
	int rc = host_had_memory(&s->sender, &why);

	if (rc == 0)
		rc = host_had_memory(&s->receiver, &why);
	return rc == 0 ? 0
		       : err_set(err, rc,
			       "%s; live.sender.rate and live.sender.pipe say how much is needed",
			       why.msg);
}

// The experiment's own outcome: "ok", or what went wrong with our memory or the peer (then an error).
static int outcome(const struct sender_app *app, const char **verdict, struct err *err) {
	const struct live_port *port = live_plan_port(&app->plan, LIVE_SENDER);
	bool unanswered = false;
	char ip[16];
	int rc = 0;

	*verdict = "ok";
	if (run_stop)
		*verdict = "interrupted";
	for (uint32_t k = 0; k < app->lcores; k++) {
		const struct sender_live *s = &app->live[k];

		unanswered |= s->unanswered;
		if (rc == 0)
			rc = had_memory(s, err);
	}
	if (!sender_hopeless(app->live))
		return rc;
	live_ip_text(port->peer, ip);
	*verdict = err->msg;
	if (unanswered)
		return err_set(err, -ETIMEDOUT, "%s:%u answers ARP but no SYN (%.3g s)", ip,
			(unsigned)port->peer_port, (double)app->plan.answer_ns / 1e9);
	return err_set(err, -ECONNREFUSED, "%s:%u refused or gave up every flow", ip,
		(unsigned)port->peer_port);
}

static int experiment(struct sender_app *app, struct err *err) {
	char sentence[WATCH_SENTENCE_SIZE];
	const char *verdict = "ok";
	int rc;

	run_catch_signals();
	if ((rc = sender_app_open(app, err)) < 0) {
		run_discard(&app->run);
		return rc;
	}
	rc = sender_app_run(app, err);
	if (rc == 0)
		rc = outcome(app, &verdict, err);
	verdict = watch_verdict(app->watch, app->lcores, verdict, sentence);
	return run_end(&app->run, app->began ? summary : NULL, app, verdict, rc, err);
}

int main(int argc, char **argv) {
	static struct run_options opt;
	static struct sender_app app = {.eal = EAL_NONE};
	struct err err = {0};
	int rc = run_options(&opt, argc, argv, PROGRAM, &err);

	if (rc != 0)
		return run_exit(PROGRAM, rc, &err);
	if (opt.list != NULL)
		return (rc = list(&opt)) != 0 ? rc : run_exit(PROGRAM, 0, &err);
	app.opt = &opt;
	if ((rc = run_load(&app.run, &opt, &err)) < 0)
		return run_exit(PROGRAM, rc, &err);
	rc = configure(&app, &err);
	if (rc == 0 && opt.print_config) {
		config_print(app.run.config, stdout);
	} else if (rc == 0 && !opt.check) {
		rc = experiment(&app, &err);
		sender_app_close(&app);
	}
	groups_fini(&app.groups);
	run_free(&app.run);
	return run_exit(PROGRAM, rc, &err);
}
