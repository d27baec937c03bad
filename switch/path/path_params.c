// SPDX-License-Identifier: BSD-3-Clause
// Parameters of a path's stages while it runs: listed, checked, changed.
#include "switch/path/path.h"

#include "common/base/rng.h"
#include "common/config/config.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <xxhash.h>

#define QUEUE ".queue" // between the names of a stage and a parameter of its discipline
#define QUEUE_SIZE (sizeof(QUEUE) - 1)

static double param_number(const struct param *param, const void *obj) {
	const char *field = (const char *)obj + param->offset;

	switch (param->type) {
	case PARAM_TYPE_U64:
		return (double)*(const uint64_t *)(const void *)field;
	case PARAM_TYPE_F64:
		return *(const double *)(const void *)field;
	case PARAM_TYPE_BOOL:
		return *(const bool *)(const void *)field;
	case PARAM_TYPE_ENUM:
		return *(const int *)(const void *)field;
	default:
		break;
	}
	return (double)NAN;
}

// A parameter's object: the stage's state, or that of its queue discipline.
struct place {
	void *object;
	const char *prefix; // of the parameter's key
	void (*update)(void *object); // of a discipline
	bool of_queue;
};

static struct stage_part stage_queue(const struct path_stage *s) {
	static const struct param none[] = {PARAM_END};

	return s->ops->config != NULL && s->ops->config->queue != NULL
		? s->ops->config->queue(s->state)
		: (struct stage_part){.params = none};
}

static uint32_t table_size(const struct param *table) {
	uint32_t n = 0;

	while (table[n].name != NULL)
		n++;
	return n;
}

static struct place param_place(const struct path_stage *s, const struct param *param) {
	struct stage_part queue = stage_queue(s);
	uint32_t own = table_size(s->ops->params);

	if (param >= s->ops->params && param < s->ops->params + own)
		return (struct place){s->state, "", NULL, false};
	return (struct place){queue.object, "queue.", queue.update, true};
}

bool paths_next_param(const struct paths *ps, struct path_param *at) {
	for (; at->path < ps->count; at->path++, at->index = 0) {
		const struct path *p = &ps->path[at->path];

		for (; at->index < p->stages; at->index++, at->param = NULL) {
			at->stage = &p->stage[at->index];
			at->param = at->param == NULL ? at->stage->ops->params : at->param + 1;
			while (at->param->name != NULL && !at->param->live)
				at->param++;
			if (at->param->name == NULL)
				continue;
			at->value = param_number(at->param, at->stage->state);
			return true;
		}
	}
	return false;
}

// false: not a value of this parameter.
static bool param_put_number(const struct param *param, void *obj, double value) {
	char *field = (char *)obj + param->offset;
	bool number = param->type == PARAM_TYPE_U64 || param->type == PARAM_TYPE_F64;

	if (!(value >= 0) || (number && !param_in_range(param, value)))
		return false;

	switch (param->type) {
	case PARAM_TYPE_U64:
		*(uint64_t *)(void *)field = (uint64_t)value;
		break;
	case PARAM_TYPE_F64:
		*(double *)(void *)field = value;
		break;
	case PARAM_TYPE_BOOL:
		*(bool *)(void *)field = value != 0;
		break;
	case PARAM_TYPE_ENUM:
		*(int *)(void *)field = (int)value;
		break;
	default:
		return false;
	}
	return true;
}

static int no_stage(const struct path *p, size_t prefix, struct err *err) {
	char known[CONFIG_NAMES_SIZE] = "";

	for (uint32_t i = 0; i < p->stages; i++)
		config_name_add(known, p->stage[i].name + prefix);
	return err_set(err, -EINVAL, "path %s has no such stage; it has %s", p->name, known);
}

// Whether a key is one of those that a stage reads besides its parameters.
static bool stage_reads(const struct stage_ops *ops, const char *key) {
	return stage_also(ops) != NULL && param_find(stage_also(ops), key) != NULL;
}

int path_check(struct path *p, const char *key, const char *value, struct path_stage **stage,
	const struct param **param, struct err *err) {
	const char *dot = strrchr(key, '.'), *end = dot;
	const struct param *table;
	size_t prefix = strlen(p->name) + 1;
	struct err why;

	*stage = NULL;
	if (dot != NULL && (size_t)(dot - key) > QUEUE_SIZE
		&& memcmp(dot - QUEUE_SIZE, QUEUE, QUEUE_SIZE) == 0)
		end = dot - QUEUE_SIZE;
	for (uint32_t i = 0; dot != NULL && i < p->stages; i++) {
		const char *name = p->stage[i].name + prefix;

		if (strlen(name) == (size_t)(end - key) && strncmp(name, key, strlen(name)) == 0)
			*stage = &p->stage[i];
	}
	if (*stage == NULL)
		return no_stage(p, prefix, err);
	table = end < dot ? stage_queue(*stage).params : (*stage)->ops->params;
	*param = param_find(table, dot + 1);
	if (*param == NULL && (end < dot || !stage_reads((*stage)->ops, dot + 1)))
		return err_set(err, -EINVAL, "%s has no parameter '%s'",
			end < dot ? "its queue" : (*stage)->ops->name, dot + 1);
	if (*param == NULL || !(*param)->live)
		return err_set(err, -EINVAL, "cannot be changed while running");

	// Read as one of its own, not of a state: a live lcore, too, checks changes.
	char scratch[PARAM_TEXT_SIZE] __attribute__((aligned(8)));
	struct param alone = **param;
	alone.offset = 0;
	int rc = param_set(&alone, scratch, value, &why);
	return rc < 0 ? err_set(err, rc, "%s", why.msg + strlen((*param)->name) + 2) : 0;
}

int paths_read_change(struct paths *ps, char *text, struct path_change *c, struct err *err) {
	char *equals = strchr(text, '='), *dot = strchr(text, '.'), names[CONFIG_NAMES_SIZE];
	struct path_stage *stage;
	const struct param *param;
	struct err why;
	int rc;

	if (equals == NULL || dot == NULL || dot > equals)
		return err_set(err, -EINVAL, "'%.60s' is not a change such as %s.link.rate=5Gbit",
			text, ps->path[0].name);
	*equals = *dot = '\0';
	*c = (struct path_change){paths_find(ps, text), dot + 1, equals + 1};
	if (c->path == NULL) {
		paths_names(ps, names);
		return err_set(err, -EINVAL, "there is no path '%s'; there is %s", text, names);
	}
	rc = path_check(c->path, c->key, c->value, &stage, &param, &why);
	return rc < 0 ? err_set(err, rc, "%s.%s: %s", text, c->key, why.msg) : 0;
}

// Which of all parameters of the path's stages, from 0; behind them come those of their queues.
static uint32_t param_index(
	const struct path *p, const struct path_stage *s, const struct param *param) {
	bool of_queue = param_place(s, param).of_queue;
	uint32_t index = (uint32_t)(param - (of_queue ? stage_queue(s).params : s->ops->params));

	for (const struct path_stage *o = p->stage; o < p->stage + p->stages; o++) {
		if (of_queue || o < s)
			index += table_size(o->ops->params);
		if (of_queue && o < s)
			index += table_size(stage_queue(o).params);
	}
	return index;
}

uint32_t path_name_hash(const char *name) {
	return XXH32(name, strlen(name), 0);
}

static uint32_t param_hash(const struct path_stage *s, const struct param *param) {
	char name[sizeof(s->name) + 32];

	snprintf(name, sizeof(name), "%s.%s%s", s->name, param_place(s, param).prefix, param->name);
	return path_name_hash(name);
}

// What follows from a new value of a parameter.
static void path_changed(
	struct path *p, struct path_stage *s, const struct param *param, uint64_t now_ns) {
	struct place at = param_place(s, param);

	if (at.update != NULL)
		at.update(at.object);
	else if (!at.of_queue && s->ops->config != NULL && s->ops->config->update != NULL)
		s->ops->config->update(s->state, now_ns);
	path_serve(p, now_ns); // a link that was down may send again
	path_derive(p);
	p->idle_ns = 0;
	path_trace(p,
		&(struct tel_arrivals){
			.ts_ns = now_ns,
			.value = param_number(param, at.object),
			.flow_id = param_hash(s, param),
			.pkt_id = p->next_id,
			.event = TEL_CHANGED,
			.param = (uint8_t)param_index(p, s, param),
		});
}

static void reseed(void *object, size_t offset, uint64_t seed) {
	if (offset > 0)
		rng_init((struct rng *)(void *)((char *)object + offset), seed, "schedule");
}

// A change comes behind the packets that are already in, and finds every stage served up to its
// time.
static uint64_t path_change_ns(struct path *p, uint64_t now_ns) {
	now_ns = time_max(now_ns, p->last_arrival_ns);
	path_serve(p, now_ns);
	return now_ns;
}

void paths_reseed(struct paths *ps, uint64_t seed) {
	for (uint32_t i = 0; i < ps->count; i++) {
		for (uint32_t k = 0; k < ps->path[i].stages; k++) {
			struct path_stage *s = &ps->path[i].stage[k];
			const struct stage_needs *needs = s->ops->needs;
			struct stage_part queue = stage_queue(s);
			struct rng names;

			rng_init(&names, seed, s->name);
			reseed(s->state, needs != NULL ? needs->rng : 0, rng_u64(&names));
			reseed(s->state, needs != NULL ? needs->rng2 : 0, rng_u64(&names));
			reseed(queue.object, queue.rng, rng_u64(&names));
		}
	}
}

int path_set(struct path *p, const char *key, const char *value, uint64_t now_ns, double *before,
	double *after, struct err *err) {
	struct path_stage *s;
	const struct param *param;
	int rc = path_check(p, key, value, &s, &param, err);

	if (rc < 0)
		return rc;
	now_ns = path_change_ns(p, now_ns);
	void *object = param_place(s, param).object;
	*before = param_number(param, object);
	rc = param_set(param, object, value, err);
	if (rc < 0)
		return rc;
	*after = param_number(param, object);
	path_changed(p, s, param, now_ns);
	return 0;
}

bool path_put(struct path *p, struct path_stage *s, const struct param *param, double value,
	uint64_t now_ns) {
	now_ns = path_change_ns(p, now_ns);
	if (!param->live || !param_put_number(param, param_place(s, param).object, value))
		return false;
	path_changed(p, s, param, now_ns);
	return true;
}

static const struct param *param_of_hash(
	const struct path_stage *s, const struct param *table, uint32_t name_hash) {
	for (; table->name != NULL; table++) {
		if (param_hash(s, table) == name_hash)
			return table;
	}
	return NULL;
}

int path_set_recorded(
	struct path *p, uint32_t name_hash, double value, uint64_t now_ns, struct err *err) {
	for (uint32_t i = 0; i < p->stages; i++) {
		struct path_stage *s = &p->stage[i];
		const struct param *param = param_of_hash(s, s->ops->params, name_hash);

		if (param == NULL)
			param = param_of_hash(s, stage_queue(s).params, name_hash);
		if (param == NULL)
			continue;
		if (!path_put(p, s, param, value, now_ns))
			return err_set(err, -ERANGE, "%s: %s cannot have become %g", s->name,
				param->name, value);
		return 0;
	}
	return err_set(err, -EINVAL, "%s: there is no such parameter", p->name);
}
