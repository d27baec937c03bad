// SPDX-License-Identifier: BSD-3-Clause
// Branches of a run: at one time it goes on in several ways, each from the same state and with
// changes of its own, which are those that a schedule may make:
//
//	branches:
//	  at: 300s
//	  runs: {same: {}, slow: {forward.link.rate: 5Gbit}}
//
// The run up to then, the trunk, ends there, at its last step before that time. A branch is a
// process that is forked from it, so that memory is copied only where it changes. Its run folder,
// OUT/branches/NAME, has the trunk's records and its own, and a config.yaml with its changes in
// `schedule`, from which weir-sim makes the same records without a trunk.
#include "tools/sim/run/sim.h"

#include "common/run/run_list.h"
#include "sender/cc/cc.h"

#include <ctype.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NAME_MAX_BYTES 100
#define POLL_NS 10000000 // between two polls of whether a branch has ended

static const struct param params[] = {
	{"at", NULL, "when the run goes on in several ways", UNIT_TIME_NS,
		PARAM_U64(struct branches, at_ns), 1, 86400e9, .seconds = true},
	PARAM_END,
};
static const struct param also[] = {
	{"runs", "", "the branches by name: what changes then, as in `schedule`; {}: nothing",
		UNIT_NONE, PARAM_MAP("schedule")},
	PARAM_END,
};

void branches_list(struct run_list *l) {
	run_list_entry(l,
		&(struct run_listed){.kind = "run",
			.name = "branches",
			.summary = "a run that goes on in several ways, in virtual time",
			.params = params,
			.also = {also}});
}

static bool is_name(const char *name) {
	size_t n = 0;

	while (isalnum((unsigned char)name[n])
		|| (n > 0 && name[n] != '\0' && strchr("._=,+-", name[n]) != NULL))
		n++;
	return n > 0 && n <= NAME_MAX_BYTES && name[n] == '\0';
}

static int branch_read(
	struct sim *s, struct branch *b, struct config_node *runs, size_t i, struct err *err) {
	struct config_node *list = config_get(config_root(s->run->config), "schedule");
	uint32_t items = list != NULL ? (uint32_t)config_count(list) : 0;

	b->name = config_key(runs, i);
	b->changes = config_section(runs, b->name);
	if (!is_name(b->name))
		return config_err(b->changes, -EINVAL, err,
			"branches: '%.60s' cannot name a folder: write letters, digits and ._=,+- "
			"behind one of them",
			b->name);
	if (config_kind(b->changes) != CONFIG_MAP || config_get(b->changes, "at") != NULL)
		return config_err(b->changes, -EINVAL, err,
			"branches: %s: must be a map such as {forward.link.rate: 5Gbit}", b->name);
	int rc = schedule_branch(
		&b->schedule, &s->schedule, s->branches.at_ns, b->changes, items, &s->paths, err);
	return rc < 0 ? rc : sim_delays_stay(&b->schedule, err);
}

int branches_read(struct sim *s, struct err *err) {
	struct config_node *node = config_get(config_root(s->run->config), "branches"), *runs;
	struct branches *bs = &s->branches;
	int rc;

	*bs = (struct branches){.at_ns = NEVER_NS};
	if (node == NULL)
		return 0;
	rc = config_params(node, "branches", params, also, bs, err);
	if (rc < 0)
		return rc;
	if (bs->at_ns >= s->run->duration_ns)
		return config_err(config_get(node, "at"), -EINVAL, err,
			"branches: at: must be earlier than the run's end, %g s",
			(double)s->run->duration_ns / 1e9);
	runs = config_get(node, "runs");
	if (runs == NULL || config_kind(runs) != CONFIG_MAP || config_count(runs) == 0
		|| config_count(runs) > BRANCHES_MAX)
		return config_err(runs != NULL ? runs : node, -EINVAL, err,
			"branches: runs: must be a map of 1 to %d branches such as "
			"{same: {}, slow: {forward.link.rate: 5Gbit}}",
			BRANCHES_MAX);
	bs->branch = calloc(config_count(runs), sizeof(*bs->branch));
	if (bs->branch == NULL)
		return err_set(err, -ENOMEM, "branches: no memory");
	for (size_t i = 0; rc == 0 && i < config_count(runs); i++)
		rc = branch_read(s, &bs->branch[bs->count++], runs, i, err);
	return rc;
}

void branches_fini(struct branches *bs) {
	for (uint32_t i = 0; i < bs->count; i++)
		schedule_fini(&bs->branch[i].schedule);
	free(bs->branch);
	*bs = (struct branches){.at_ns = NEVER_NS};
}

static bool is_ours(const struct cc_ops *cc) {
	for (const struct cc_ops *const *o = cc_all; *o != NULL; o++) {
		if (*o == cc)
			return true;
	}
	return cc == NULL;
}

int branches_check(const struct sim *s, struct err *err) {
	struct config_node *root = config_root(s->run->config);
	const char *why = s->guests != NULL ? "guests, which are processes" : NULL;

	for (uint32_t i = 0; i < s->groups.count; i++) {
		if (!is_ours(s->groups.group[i].cc))
			why = "a plug-in or a control in Python, which have threads or processes";
	}
	return s->branches.count == 0 || why == NULL
		? 0
		: config_err(config_get(root, "branches"), -EINVAL, err,
			"branches: a run with %s of their own has none", why);
}

// In the branch's process: leaves the trunk's folder, and goes on in one of its own.
static int branch_begin(struct sim *s, struct branch *b, struct err *err) {
	struct config_node *root = config_root(s->run->config), *item;
	const char *at = config_text(config_get(config_get(root, "branches"), "at"));
	uint32_t next = s->schedule.next;
	int rc;

	config_remove(root, "branches");
	if (config_count(b->changes) > 0) {
		item = config_append(root, "schedule");
		config_add(item, "at", at);
		for (size_t i = 0; i < config_count(b->changes); i++)
			config_add(item, config_key(b->changes, i),
				config_text(config_at(b->changes, i)));
	}
	rc = run_branch(s->run, b->name, s->branches.at_ns, b->changes, err);
	for (uint32_t i = 0; i < TEL_STREAM_COUNT; i++) {
		if (tel_on(&s->tel[i]))
			rc = tel_branch(&s->tel[i], &s->run->tel, rc, err);
	}
	schedule_fini(&s->schedule);
	s->schedule = b->schedule; // those of the trunk up to now are its first ones
	s->schedule.next = next;
	b->schedule = (struct schedule){0};
	branches_fini(&s->branches);
	return rc < 0 ? rc : 1;
}

// Forks a process for the branch. 0 in the trunk, else as branches_run.
static int branch_fork(struct sim *s, struct branch *b, struct err *err) {
	pid_t trunk = getpid();

	pid_t child = fork();

	if (child < 0)
		return err_set(err, -errno, "branches: %s: fork: %s", b->name, strerror(errno));
	if (child > 0) {
		b->process = child;
		return 0;
	}
	prctl(PR_SET_PDEATHSIG, SIGTERM); // its folder is written then, as after Ctrl-C
	if (getppid() != trunk)
		raise(SIGTERM);
	return branch_begin(s, b, err);
}

// Notes a branch that did not end well.
static void note(char failed[static CONFIG_NAMES_SIZE], const struct branch *b, int status) {
	char text[NAME_MAX_BYTES + 32];

	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return;
	if (WIFEXITED(status))
		snprintf(text, sizeof(text), "%s (exit status %d)", b->name, WEXITSTATUS(status));
	else
		snprintf(text, sizeof(text), "%s (killed by signal %d)", b->name, WTERMSIG(status));
	config_name_add(failed, text);
}

// Waits until fewer than `most` branches run. A signal that ends the trunk ends them.
static void branches_wait(
	struct branches *bs, uint32_t most, char failed[static CONFIG_NAMES_SIZE]) {
	const struct timespec pause = {.tv_nsec = POLL_NS};

	for (;;) {
		uint32_t running = 0;

		for (struct branch *b = bs->branch; b < bs->branch + bs->count; b++) {
			int status;

			if (b->process == 0)
				continue;
			if (run_stop && !bs->ended)
				kill(b->process, SIGTERM);
			if (waitpid(b->process, &status, WNOHANG) == 0) {
				running++;
				continue;
			}
			b->process = 0;
			note(failed, b, status);
		}
		bs->ended = run_stop != 0;
		if (running < most)
			return;
		nanosleep(&pause, NULL);
	}
}

int branches_run(struct sim *s, uint32_t most, struct err *err) {
	char failed[CONFIG_NAMES_SIZE] = "";
	cpu_set_t may;
	int rc = 0;

	if (most == 0)
		most = sched_getaffinity(0, sizeof(may), &may) == 0 ? (uint32_t)CPU_COUNT(&may) : 1;
	for (uint32_t i = 0; i < TEL_STREAM_COUNT; i++)
		tel_drain(&s->tel[i]);
	fflush(NULL);
	for (uint32_t i = 0; rc == 0 && i < s->branches.count && !run_stop; i++) {
		branches_wait(&s->branches, most, failed);
		if (!run_stop)
			rc = branch_fork(s, &s->branches.branch[i], err);
		if (rc != 0 && s->branches.count == 0)
			return rc; // in the branch
	}
	branches_wait(&s->branches, 1, failed);
	if (rc == 0 && failed[0] != '\0')
		rc = err_set(err, -EIO, "these branches failed: %s", failed);
	return rc;
}
