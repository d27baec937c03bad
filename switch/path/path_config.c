// SPDX-License-Identifier: BSD-3-Clause
// From the config's `paths` section to paths.
//
//	paths:
//	  forward:
//	    - loss: {rate: 1%}
//	    - link: {rate: 1Gbit, queue: {codel: {}}}
//	    - delay: {delay: 10ms}
//	  reverse: [{delay: {delay: 10ms}}]
//
// In this order: all parameters are read, then the base RTT of each path follows from the delays
// and the groups' routes (route.c), then the stages are initialised, which resolves limits in
// bandwidth-delay products.
#include "switch/path/path_route.h"

#include "common/base/u64.h"
#include "common/run/run_list.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

// Bound of a delay line no link stands before; memory is the owner's pool, this is only a limit.
#define LINE_PKTS_MAX (UINT64_C(1) << 24)
#define LINE_PKTS_SLACK 4096
#define FRAME_MIN_BYTES 60u
#define STAGE_NAME_SIZE 16 // of `name:`; with the path's name it fits into struct path_stage's
#define STAGE_ALSO_MAX 4
static_assert(sizeof(((struct path *)0)->name) + STAGE_NAME_SIZE
		<= sizeof(((struct path_stage *)0)->name),
	"a stage's whole name");

static bool name_valid(const char *name, size_t size) {
	size_t len = strlen(name);

	for (size_t i = 0; i < len; i++) {
		if (!isalnum((unsigned char)name[i]) && name[i] != '_' && name[i] != '-')
			return false;
	}
	return len > 0 && len < size;
}

// "forward.link", "forward.link2", ..., or what the stage's `name:` says: "forward.bottleneck".
static int stage_name(
	const struct path *p, struct path_stage *s, struct config_node *params, struct err *err) {
	struct config_node *given = config_get(params, "name");
	const char *own = given != NULL ? config_text(given) : s->ops->name;
	char name[sizeof(s->name)]; // snprintf must not read and write one object
	uint32_t place = 1;

	if (own == NULL || !name_valid(own, STAGE_NAME_SIZE))
		return config_err(given, -EINVAL, err,
			"%s: name: at most %d letters, digits, _ and - are a name", p->name,
			STAGE_NAME_SIZE - 1);
	for (const struct path_stage *o = p->stage; o < s; o++)
		place += o->ops == s->ops;
	int len = snprintf(name, sizeof(name), "%s.%s", p->name, own);

	if (given == NULL && place > 1)
		snprintf(name + len, sizeof(name) - (size_t)len, "%u", place);
	memcpy(s->name, name, sizeof(name));
	for (const struct path_stage *o = p->stage; o < s; o++) {
		if (strcmp(o->name, name) == 0)
			return config_err(given != NULL ? given : params, -EINVAL, err,
				"%s: two stages are called %s: give one of them another name:",
				p->name, name + strlen(p->name) + 1);
	}
	return 0;
}

static const struct param path_also[] = {
	{"name", "",
		"in overrides, schedules and results; default: its type, a second link is link2",
		UNIT_NONE, PARAM_SCALAR},
	PARAM_END,
};

// Keys of a stage that its table does not have: those it reads itself, and the name.
static int stage_params(struct path_stage *s, struct config_node *params, struct err *err) {
	struct param also[STAGE_ALSO_MAX + 2] = {path_also[0]};

	const struct param *own = stage_also(s->ops);

	for (size_t i = 0; own != NULL && own[i].name != NULL; i++) {
		assert(i < STAGE_ALSO_MAX);
		also[1 + i] = own[i];
	}
	return config_params(params, s->name, s->ops->params, also, s->state, err);
}

static struct config_name nth_stage(size_t i) {
	return stage_all[i] != NULL ? (struct config_name){stage_all[i]->name, stage_all[i]->alias}
				    : (struct config_name){NULL, NULL};
}

static int stage_read(struct path *p, struct config_node *node, struct err *err) {
	struct path_stage *s = &p->stage[p->stages];
	size_t which;
	struct config_node *params = NULL;
	const char *name;
	int rc = config_plugin(node, "stage", &name, &params, err);

	if (rc < 0)
		return rc;
	if ((rc = config_registered(node, p->name, "a stage", nth_stage, &which, err)) < 0)
		return rc;
	s->ops = stage_all[which];
	s->node = node;
	if ((rc = stage_name(p, s, params, err)) < 0)
		return rc;
	s->state = calloc(1, s->ops->state_size);
	if (s->state == NULL)
		return err_set(err, -ENOMEM, "%s: no memory", s->name);
	p->stages++;
	rc = stage_params(s, params, err);
	if (rc == 0 && s->ops->config != NULL && s->ops->config->configure != NULL)
		rc = s->ops->config->configure(s->state, params, err);
	return rc;
}

// Is it the list's first item, {source: {pcap: FILE}}? 1: yes, and no stage.
static int source_read(
	struct path *p, struct config_node *node, const char *no_source, struct err *err) {
	const char *name;
	int rc;

	if (config_kind(node) != CONFIG_MAP || config_get(node, "source") == NULL)
		return 0;
	if ((rc = config_plugin(node, "stage", &name, &p->source, err)) < 0)
		return rc;
	return no_source == NULL
		? 1
		: config_err(node, -EINVAL, err, "%s: source: %s", p->name, no_source);
}

static int path_read(struct path *p, const char *name, struct config_node *node,
	const char *no_source, struct err *err) {
	int source, rc;

	if (!name_valid(name, sizeof(p->name)))
		return config_err(node, -EINVAL, err,
			"paths: '%s' is not a name of at most %zu letters, digits, _ and -", name,
			sizeof(p->name) - 1);
	snprintf(p->name, sizeof(p->name), "%s", name);
	if (config_kind(node) != CONFIG_LIST || config_count(node) == 0)
		return config_err(node, -EINVAL, err,
			"%s: must be a list of stages, such as [{delay: {delay: 10ms}}]", name);
	if ((source = source_read(p, config_at(node, 0), no_source, err)) < 0)
		return source;
	if (config_count(node) - (size_t)source > PATH_STAGES_MAX)
		return config_err(
			node, -E2BIG, err, "%s: more than %d stages", name, PATH_STAGES_MAX);
	for (size_t i = (size_t)source; i < config_count(node); i++) {
		if ((rc = stage_read(p, config_at(node, i), err)) < 0)
			return rc;
	}
	return p->stages > 0
		? 0
		: config_err(node, -EINVAL, err,
			"%s: no stage follows the source, such as {delay: {delay: 10ms}}", name);
}

void path_derive(struct path *p) {
	uint64_t after_ns = 0, rate_bps = 0, slowest_bps = NEVER_NS, delay_ns = 0;
	uint32_t copies = 1; // of a packet behind the last stage with a rate
	bool tail = true;

	for (uint32_t i = p->stages; i-- > 0;) {
		struct path_stage *s = &p->stage[i];

		s->after_ns = after_ns;
		tail = tail && path_is_delay(s);
		if (s->ops->delay != NULL)
			after_ns += s->ops->delay->min_ns(s->state);
		if (tail)
			p->tail_ns = after_ns;
	}
	for (uint32_t i = 0; i < p->stages; i++) {
		struct path_stage *s = &p->stage[i];

		copies <<= stage_copies_packets(s->ops);
		if (s->ops->capacity != NULL) {
			copies = 1;
			rate_bps = s->ops->capacity->rate_bps(s->state);
			slowest_bps = min_u64(slowest_bps, rate_bps);
		}
		if (s->ops->delay == NULL)
			continue;
		uint64_t max_ns = s->ops->delay->max_ns(s->state);
		double pkts = (double)rate_bps * (double)max_ns / (8e9 * FRAME_MIN_BYTES);

		delay_ns += max_ns;
		uint64_t bound = rate_bps == 0 || pkts > 1e15
			? LINE_PKTS_MAX
			: copies * (uint64_t)pkts + LINE_PKTS_SLACK;
		// Packets already inside came under the old parameters: never less than before.
		if (bound > s->env.max_pkts)
			s->env.max_pkts = bound;
	}
	if (slowest_bps != NEVER_NS)
		p->max_rate_bps = max_u64(p->max_rate_bps, slowest_bps);
	p->max_delay_ns = time_max(p->max_delay_ns, delay_ns);
}

uint64_t path_min_delay_ns(const struct path *p) {
	uint64_t sum_ns = 0;

	for (uint32_t i = 0; i < p->stages; i++) {
		if (p->stage[i].ops->delay != NULL)
			sum_ns += p->stage[i].ops->delay->min_ns(p->stage[i].state);
	}
	return sum_ns;
}

struct path_stage *path_last_delay(struct path *p) {
	for (uint32_t i = p->stages; i-- > 0;) {
		if (path_is_delay(&p->stage[i]))
			return &p->stage[i];
	}
	return NULL;
}

static int paths_start(struct paths *ps, const struct paths_env *env, struct err *err) {
	uint32_t links = 0;

	for (uint32_t i = 0; i < ps->count; i++) {
		struct path *p = &ps->path[i];
		uint32_t copy_bit = UINT32_C(1) << 31;

		p->tel_packets = env->tel_packets;
		p->tel_arrivals = env->tel_arrivals;
		p->owner = env->owner;
		p->copies.no_memory = &p->drop[DROP_NO_MBUF];
		p->tel_run = env->tel_run;
		for (uint32_t k = 0; k < p->stages; k++) {
			struct path_stage *s = &p->stage[k];
			struct err why = {""};

			if (path_is_link(s) && links >= PATH_LINKS_MAX)
				return config_err(s->node, -E2BIG, err,
					"more than %d links in one run", PATH_LINKS_MAX);
			s->env.name = s->name;
			s->env.run_seed = env->run_seed;
			s->env.base_rtt_ns = p->base_rtt_ns;
			s->env.mtu_bytes = env->mtu_bytes;
			s->env.owner = &p->owner;
			p->reads_headers |= stage_reads_headers(s->ops, s->state);
			s->env.copies = &p->copies;
			s->env.copy_bit = copy_bit;
			copy_bit >>= stage_copies_packets(s->ops);
			s->env.tel_packets = env->tel_packets;
			s->env.tel_run = env->tel_run;
			s->env.path_index = (uint8_t)i;
			s->env.stage_index = (uint8_t)k;
			s->env.link_index = STAGE_NO_LINK;
			if (path_is_link(s))
				s->env.link_index = (uint8_t)links++;
			int rc = s->ops->init(s->state, &s->env, &why);
			if (rc < 0)
				return config_err(s->node, rc, err, "%s: %s", s->name, why.msg);
		}
		path_derive(p);
	}
	return 0;
}

// The observer is the stage or its discipline.
static void observer(struct tel_run *run, const char *name) {
	for (const struct aqm_ops *const *o = aqm_all; *o != NULL; o++)
		if (strcmp((*o)->name, name) == 0)
			tel_observer(run, TEL_STREAM_EVENTS, name, (*o)->observed);
	for (const struct stage_ops *const *o = stage_all; *o != NULL; o++)
		if (strcmp((*o)->name, name) == 0)
			tel_observer(run, TEL_STREAM_EVENTS, name, (*o)->observer->names);
}

void paths_observers(const struct paths *ps, struct tel_run *run) {
	static_assert(AQM_OBSERVED == TEL_OBSERVED, "as many as a record holds");
	double out[AQM_OBSERVED];

	for (uint32_t i = 0; i < ps->count; i++) {
		const struct path *p = &ps->path[i];

		for (uint32_t k = 0; k < p->stages; k++) {
			const struct path_stage *s = &p->stage[k];
			const char *name = stage_observe(s->ops, s->state, out);

			if (name != NULL)
				observer(run, name);
		}
	}
}

void paths_list(struct run_list *l) {
	for (const struct aqm_ops *const *o = aqm_all; *o != NULL; o++)
		run_list_entry(l,
			&(struct run_listed){.kind = "aqm",
				.name = (*o)->name,
				.summary = (*o)->summary,
				.reference = (*o)->reference,
				.params = (*o)->params,
				.observed = (*o)->observed,
				.nb_observed = AQM_OBSERVED});
	for (const struct stage_ops *const *o = stage_all; *o != NULL; o++) {
		const struct param *own = stage_also(*o);

		run_list_entry(l,
			&(struct run_listed){.kind = "stage",
				.name = (*o)->name,
				.alias = (*o)->alias,
				.summary = (*o)->summary,
				.reference = (*o)->reference,
				.params = (*o)->params,
				.also = {own != NULL ? own : path_also,
					own != NULL ? path_also : NULL},
				.observed = (*o)->observer != NULL ? (*o)->observer->names : NULL,
				.nb_observed = (*o)->observer != NULL ? AQM_OBSERVED : 0});
	}
}

int paths_init(
	struct paths *ps, struct config_node *node, const struct paths_env *env, struct err *err) {
	int rc = 0;

	memset(ps, 0, sizeof(*ps));
	if (node == NULL || config_kind(node) != CONFIG_MAP || config_count(node) == 0)
		return err_set(err, -EINVAL,
			"%s%spaths: must be a map of paths, such as "
			"{forward: [...], reverse: [...]}",
			node != NULL ? config_place(node) : "", node != NULL ? ": " : "");
	if (config_count(node) > PATHS_MAX)
		return config_err(node, -E2BIG, err, "paths: more than %d paths", PATHS_MAX);
	for (size_t i = 0; rc == 0 && i < config_count(node); i++) {
		struct path *p = &ps->path[ps->count++];

		p->index = (uint8_t)i;
		rc = path_read(p, config_key(node, i), config_at(node, i), env->no_source, err);
	}
	if (rc == 0)
		rc = routes_init(ps, node, env, err);
	if (rc == 0)
		rc = path_hosts_add(ps, env->hosts, err);
	if (rc == 0)
		rc = paths_start(ps, env, err);
	if (rc < 0)
		paths_fini(ps);
	return rc;
}

void path_streams(struct path *p, struct tel *packets, struct tel *arrivals) {
	p->tel_packets = packets;
	p->tel_arrivals = arrivals;
	for (uint32_t k = 0; k < p->stages; k++)
		p->stage[k].env.tel_packets = packets;
}

void path_owner(struct path *p, const struct pkt_owner *owner) {
	p->owner = *owner;
}

void path_tap(struct path *p, struct path_tap *tap) {
	p->tap = tap;
	for (uint32_t k = 0; k < p->stages; k++)
		p->stage[k].env.tap = tap;
}

void paths_fini(struct paths *ps) {
	for (uint32_t i = 0; i < ps->count; i++) {
		for (uint32_t k = 0; k < ps->path[i].stages; k++) {
			struct path_stage *s = &ps->path[i].stage[k];

			if (s->ops->fini != NULL)
				s->ops->fini(s->state);
			free(s->state);
			s->state = NULL;
		}
		ps->path[i].stages = 0;
		free(ps->flow_delays[i].extra_ns);
		ps->flow_delays[i] = (struct flow_delays){0};
	}
	ps->count = 0;
}

void paths_names(const struct paths *ps, char names[static CONFIG_NAMES_SIZE]) {
	names[0] = '\0';
	for (uint32_t i = 0; i < ps->count; i++)
		config_name_add(names, ps->path[i].name);
}

struct path *paths_find(struct paths *ps, const char *name) {
	for (uint32_t i = 0; i < ps->count; i++) {
		if (strcmp(ps->path[i].name, name) == 0)
			return &ps->path[i];
	}
	return NULL;
}
