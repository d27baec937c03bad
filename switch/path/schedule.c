// SPDX-License-Identifier: BSD-3-Clause
#include "switch/path/schedule.h"

#include "common/run/run_list.h"
#include "switch/path/path_route.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct param params[] = {
	{"at", NULL, "when; every other key of the item is what changes: forward.link.rate: 5Gbit",
		UNIT_TIME_NS, .type = PARAM_TYPE_F64, .min = 0, .max = 1e18},
	PARAM_END,
};

void schedule_list(struct run_list *l) {
	run_list_entry(l,
		&(struct run_listed){.kind = "run",
			.name = "schedule",
			.summary = "changes at one time: an item of the list `schedule`",
			.params = params});
}

// "forward.link.rate": the path, and what is left of the key.
static struct path *entry_path(struct paths *ps, const char *key, const char **rest) {
	const char *dot = strchr(key, '.');

	for (uint32_t i = 0; dot != NULL && i < ps->count; i++) {
		const char *name = ps->path[i].name;

		if (strlen(name) == (size_t)(dot - key) && strncmp(name, key, strlen(name)) == 0) {
			*rest = dot + 1;
			return &ps->path[i];
		}
	}
	return NULL;
}

static int other_read(const struct schedule_others *others, struct schedule_entry *e,
	const char *key, struct err *err) {
	struct err why = {""};
	int rc = others == NULL
		? -ENOENT
		: others->check(others->ctx, e->at_ns, key, e->value, &e->number, &why);

	e->key = key;
	e->link = UINT16_MAX;
	return rc == 0 || rc == -ENOENT
		? rc
		: config_err(e->node, rc, err, "schedule: %s: %s", key, why.msg);
}

static int entry_read(const struct schedule_others *others, struct schedule_entry *e,
	const char *key, struct config_node *value, struct paths *ps, struct err *err) {
	struct err why = {""};
	int rc;

	e->node = value;
	e->path = entry_path(ps, key, &e->key);
	e->value = config_text(value);
	if (e->value == NULL)
		return config_err(value, -EINVAL, err, "schedule: %s: must be a single value", key);
	if (e->path == NULL && (rc = other_read(others, e, key, err)) != -ENOENT)
		return rc;
	if (e->path == NULL)
		return config_err(value, -EINVAL, err,
			"schedule: %s: does not start with the name of a path; write e.g. "
			"%s.link.rate",
			key, ps->count > 0 ? ps->path[0].name : "forward");
	rc = path_check(e->path, e->key, e->value, &e->stage, &e->param, &why);
	if (rc < 0)
		return config_err(value, rc, err, "schedule: %s: %s", key, why.msg);
	e->link = path_event_group(e->stage);
	return 0;
}

// The changes of one time.
static int changes_read(struct schedule *s, uint64_t at_ns, uint32_t item,
	struct config_node *changes, struct paths *ps, struct err *err) {
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < config_count(changes); i++) {
		const char *key = config_key(changes, i);

		if (strcmp(key, "at") == 0)
			continue;
		struct schedule_entry *e = &s->entry[s->count++];
		e->at_ns = at_ns;
		e->item = item;
		rc = entry_read(s->others, e, key, config_at(changes, i), ps, err);
	}
	return rc;
}

// One item of the list: its time and its changes.
static int item_read(struct schedule *s, uint32_t item, struct config_node *node, struct paths *ps,
	struct err *err) {
	struct config_node *at = config_kind(node) == CONFIG_MAP ? config_get(node, "at") : NULL;
	double at_ns;

	if (at == NULL)
		return config_err(node, -EINVAL, err,
			"schedule: must be a map such as {at: 10s, forward.link.rate: 5Gbit}");
	if (config_text(at) == NULL || unit_parse(config_text(at), UNIT_TIME_NS, &at_ns) < 0
		|| at_ns < 0 || at_ns > 1e18)
		return config_err(
			at, -EINVAL, err, "schedule: at: must be %s", unit_example(UNIT_TIME_NS));
	if (config_count(node) < 2)
		return config_err(node, -EINVAL, err, "schedule: nothing changes at this time");
	return changes_read(s, (uint64_t)(at_ns + 0.5), item, node, ps, err);
}

// Stable insertion: entries of one time stay in the order they were written.
static void schedule_sort(struct schedule *s) {
	for (uint32_t i = 1; i < s->count; i++) {
		struct schedule_entry e = s->entry[i];
		uint32_t k = i;

		for (; k > 0 && s->entry[k - 1].at_ns > e.at_ns; k--)
			s->entry[k] = s->entry[k - 1];
		s->entry[k] = e;
	}
}

// Goes through all changes before anything moves, and takes them back: each path keeps what it was
// at its largest (path_derive).
static int schedule_rehearse(struct schedule *s, struct paths *ps, struct err *err) {
	double *before = calloc(s->count + 1, sizeof(*before));
	double after;
	int rc = 0;

	if (before == NULL)
		return err_set(err, -ENOMEM, "schedule: no memory");
	for (uint32_t i = 0; i < s->count; i++) {
		struct schedule_entry *e = &s->entry[i];

		if (e->path != NULL)
			rc = path_set(e->path, e->key, e->value, 0, &before[i], &after, err);
		assert(rc == 0); // checked as it was read
		e->ahead_ns = routes_ahead_ns(ps);
	}
	for (uint32_t i = s->count; i-- > 0;) {
		const struct schedule_entry *e = &s->entry[i];

		if (e->path != NULL)
			path_put(e->path, e->stage, e->param, before[i], 0);
	}
	free(before);
	return rc;
}

static int schedule_order(struct schedule *s, struct paths *ps, struct err *err) {
	schedule_sort(s);
	return schedule_rehearse(s, ps, err);
}

int schedule_init(struct schedule *s, struct config_node *node, struct paths *ps,
	const struct schedule_others *others, struct err *err) {
	size_t entries = 0;
	int rc = 0;

	*s = (struct schedule){.others = others};
	if (node == NULL)
		return 0;
	if (config_kind(node) != CONFIG_LIST)
		return config_err(node, -EINVAL, err,
			"schedule: must be a list such as [{at: 10s, forward.link.rate: 5Gbit}]");
	for (size_t i = 0; i < config_count(node); i++)
		entries += config_count(config_at(node, i));
	s->entry = calloc(entries + 1, sizeof(*s->entry));
	if (s->entry == NULL)
		return err_set(err, -ENOMEM, "schedule: no memory");
	for (uint32_t i = 0; rc == 0 && i < config_count(node); i++)
		rc = item_read(s, i, config_at(node, i), ps, err);
	if (rc == 0)
		rc = schedule_order(s, ps, err);
	if (rc < 0)
		schedule_fini(s);
	return rc;
}

int schedule_branch(struct schedule *s, const struct schedule *trunk, uint64_t at_ns,
	struct config_node *changes, uint32_t item, struct paths *ps, struct err *err) {
	int rc;

	*s = (struct schedule){.others = trunk->others, .count = trunk->count};
	s->entry = calloc(trunk->count + config_count(changes) + 1, sizeof(*s->entry));
	if (s->entry == NULL)
		return err_set(err, -ENOMEM, "schedule: no memory");
	if (trunk->count > 0)
		memcpy(s->entry, trunk->entry, trunk->count * sizeof(*s->entry));
	rc = changes_read(s, at_ns, item, changes, ps, err);
	return rc < 0 ? rc : schedule_order(s, ps, err);
}

const struct config_node *schedule_unreached(const struct schedule *s, uint64_t duration_ns) {
	for (uint32_t i = 0; i < s->count; i++) {
		if (s->entry[i].at_ns >= duration_ns)
			return s->entry[i].node;
	}
	return NULL;
}

int schedule_part(struct schedule *part, const struct schedule *whole, struct path *const *paths,
	uint32_t n, struct err *err) {
	*part = (struct schedule){.entry = calloc(whole->count + 1, sizeof(*part->entry))};
	if (part->entry == NULL)
		return err_set(err, -ENOMEM, "schedule: no memory");
	for (uint32_t i = 0; i < whole->count; i++) {
		for (uint32_t k = 0; k < n; k++) {
			if (paths[k] == whole->entry[i].path)
				part->entry[part->count++] = whole->entry[i];
		}
	}
	return 0;
}

void schedule_fini(struct schedule *s) {
	free(s->entry);
	*s = (struct schedule){0};
}

uint64_t schedule_next_ns(const struct schedule *s) {
	return s->next < s->count ? s->entry[s->next].at_ns : NEVER_NS;
}

uint32_t schedule_apply(struct schedule *s, uint64_t now_ns, struct tel *events) {
	uint32_t changes = 0;

	for (; schedule_next_ns(s) <= now_ns && s->next < s->count; s->next++) {
		const struct schedule_entry *e = &s->entry[s->next];
		double before = 0, after = 0;
		int rc = 0;

		if (e->path == NULL) {
			before = (double)s->others->apply(s->others->ctx, e->key, e->number);
			after = (double)e->number;
		} else {
			rc = path_set(e->path, e->key, e->value, e->at_ns, &before, &after, NULL);
		}
		assert(rc == 0); // checked at the start
		(void)rc;
		changes++;
		struct tel_events *r = events != NULL ? tel_put(events) : NULL;
		if (r != NULL)
			*r = (struct tel_events){
				.ts_ns = e->at_ns,
				.value = after,
				.flow_id = TEL_NO_FLOW,
				.detail = e->item,
				.before = (float)before,
				.event = TEL_EV_PARAM,
				.group = e->link,
			};
	}
	return changes;
}
