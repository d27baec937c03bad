// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/run/trials.h"

#include "sender/cc/outcome.h"
#include "tools/sim/guest/guests.h"
#include "tools/sim/run/sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

// The run of a config that has been read.
static int run_trial(struct sim *s, struct err *err) {
	struct err late;
	int rc = guests_check(s->guests, err), closed;

	if (rc == 0)
		rc = sim_open(s, NULL, err);
	if (rc == 0)
		rc = sim_threads(s, 1, err);
	if (rc < 0)
		return rc;
	run_stdout_aside();
	s->failed = guests_boot(s->guests, &s->err);
	while (sim_goes_on(s))
		sim_run(s, sim_step_ns(s));
	closed = sim_close(s, &late);
	run_stdout_back();
	if (s->failed < 0)
		return err_set(err, s->failed, "%s", s->err.msg);
	if (closed < 0)
		return err_set(err, closed, "%s", late.msg);
	rc = cc_outcome(err);
	return rc < 0 ? rc : sim_had_memory(s, err);
}

// JSON of several lines as one: line breaks and the spaces after them are between its values, never
// in a text.
static void print_line(const char *json, size_t size) {
	for (size_t i = 0; i < size; i++) {
		if (json[i] == '\n') {
			while (i + 1 < size && json[i + 1] == ' ')
				i++;
			continue;
		}
		putchar_unlocked(json[i]);
	}
	putchar_unlocked('\n');
}

// Answers with the run's summary; s NULL: with the error.
static int answer(struct sim *s, struct err *err) {
	static const struct facts none;
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);
	bool balanced = true;
	struct json j;

	if (f == NULL)
		return err_set(err, -ENOMEM, "out of memory");
	if (s != NULL) {
		balanced = sim_summary(s, f, &none);
	} else {
		json_begin(&j, f);
		json_text(&j, "error", err->msg);
		json_end(&j);
	}
	if (fclose(f) == 0 && balanced)
		print_line(text, size);
	free(text);
	return balanced ? 0 : err_set(err, -EIO, "the ledger does not balance");
}

static int one_trial(struct run *run, struct err *err) {
	static struct sim s;
	int rc = sim_init(&s, run, err);

	if (rc < 0)
		return rc;
	if (s.branches.count > 0)
		rc = err_set(err, -EINVAL, "a trial has no branches: they have run folders");
	if (rc == 0)
		rc = config_unused(run->config, err);
	if (rc == 0)
		rc = run_unrecorded(run, err);
	if (rc == 0)
		rc = run_trial(&s, err);
	if (rc == 0)
		rc = answer(&s, err);
	sim_fini(&s);
	return rc;
}

// The run that a line asks for: a config, or overrides of the command line's config, which live in
// *list until the run is freed.
static int read_line(struct run *run, const struct run_options *opt, struct run_options *own,
	struct config **list, const char *line, size_t length, struct err *err) {
	*list = NULL;
	if (opt->config_path == NULL)
		return run_read(run, opt, "trial", line, length, err);
	*own = *opt;
	*run = (struct run){.lock_fd = -1, .reserve_fd = -1}; // to be freed, whatever is wrong
	*list = config_parse("trial", line, length, err);
	if (*list == NULL)
		return -EINVAL;

	struct config_node *all = config_get(config_root(*list), "o");
	size_t room = (size_t)(RUN_OVERRIDES_MAX - own->override_count);

	if (all == NULL || config_kind(all) != CONFIG_LIST || config_count(all) > room)
		return err_set(err, -EINVAL,
			"trial: beside CONFIG a line is {\"o\": [\"KEY=VALUE\", ...]}, of at most "
			"%zu",
			room);
	for (size_t i = 0; i < config_count(all); i++) {
		const char *text = config_text(config_at(all, i));

		if (text == NULL)
			return err_set(err, -EINVAL, "trial: o: each is text: KEY=VALUE");
		own->overrides[own->override_count++] = text;
	}
	return run_load(run, own, err);
}

int trials(const struct run_options *opt, struct err *err) {
	struct run_options own;
	char *line = NULL;
	size_t room = 0;
	ssize_t length;
	int rc = 0;

	// Short runs touch little of their memory: no huge pages, which would be cleared for each.
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	while (rc == 0 && (length = getline(&line, &room, stdin)) > 0) {
		struct err why = {0};
		struct config *list;
		struct run run;

		if (read_line(&run, opt, &own, &list, line, (size_t)length, &why) < 0
			|| one_trial(&run, &why) < 0)
			rc = answer(NULL, &why);
		run_free(&run);
		config_free(list);
		if (rc == 0)
			rc = run_flush(err);
	}
	free(line);
	return rc;
}
