// SPDX-License-Identifier: BSD-3-Clause
// The config tree meets the tables that give its values types: parameters and their defaults, names
// of plug-ins, and keys that no table has, with what was probably meant.
#include "common/config/config.h"

#include "common/config/config_node.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SUGGEST_DISTANCE 2

// Levenshtein's distance between two keys, whatever the case of their letters.
static size_t distance(const char *a, const char *b) {
	size_t row[CONFIG_KEY_MAX + 1], len = strlen(b);

	if (len > CONFIG_KEY_MAX)
		return SIZE_MAX;
	for (size_t j = 0; j <= len; j++)
		row[j] = j;
	for (size_t i = 0; a[i] != '\0'; i++) {
		size_t diagonal = row[0];
		row[0] = i + 1;
		for (size_t j = 0; j < len; j++) {
			bool same = tolower((unsigned char)a[i]) == tolower((unsigned char)b[j]);
			size_t best = diagonal + !same;
			diagonal = row[j + 1];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (diagonal + 1 < best)
				best = diagonal + 1;
			row[j + 1] = best;
		}
	}
	return row[len];
}

void config_suggest(const char *key, const char *candidate, const char **best, size_t *best_d) {
	size_t d = distance(key, candidate);

	if (d <= SUGGEST_DISTANCE && d < strlen(key) && d < strlen(candidate) && d < *best_d) {
		*best = candidate;
		*best_d = d;
	}
}

static int unknown_key(const struct config_node *map, size_t i, const char *what, const char *best,
	struct err *err) {
	const struct config_entry *e = &map->entry[i];
	const char *place = config_place_text(map->doc, e->source, e->line, e->col);
	bool has_what = what != NULL && what[0] != '\0';
	const char *quote = "";

	// {dev: net_af_packet0,iface=veth0}
	if (best == NULL && e->line > 0 && strchr(e->key, '=') != NULL)
		quote = "; a value with a comma in it needs quotes";
	return err_set(err, -EINVAL, "%s: %s%sunknown key '%s'%s%s%s%s", place,
		has_what ? what : "", has_what ? ": " : "", e->key,
		best != NULL ? "; did you mean '" : "", best != NULL ? best : "",
		best != NULL ? "'?" : "", quote);
}

static int check_keys(const struct config_node *map, const char *what, const struct param *table,
	const struct param *also, struct err *err) {
	for (size_t i = 0; i < map->count; i++) {
		const char *key = map->entry[i].key, *best = NULL;
		size_t best_d = SIZE_MAX;
		if (param_find(table, key) != NULL
			|| (also != NULL && param_find(also, key) != NULL))
			continue;
		for (const struct param *p = table; p->name != NULL; p++)
			config_suggest(key, p->name, &best, &best_d);
		for (const struct param *p = also; p != NULL && p->name != NULL; p++)
			config_suggest(key, p->name, &best, &best_d);
		return unknown_key(map, i, what, best, err);
	}
	return 0;
}

// A resolved config has each value in its usual spelling: other programs read it.
static void rewrite(struct config_node *n, const struct param *p, const void *obj) {
	char text[PARAM_TEXT_SIZE];

	param_get(p, obj, text, sizeof(text));
	n->text = config_copy(n->doc, text, strlen(text));
}

int config_param(struct config_node *map, const char *what, const struct param *p, void *obj,
	struct err *err) {
	struct config_entry *e = map != NULL ? config_entry_find(map, p->name) : NULL;
	struct err inner;
	int rc;

	if (e != NULL) {
		e->read = true;
		if (e->value->kind == CONFIG_MAP && p->of != NULL)
			return param_set(p, obj, p->def, err); // another reader has the plug-in
		if (e->value->kind != CONFIG_SCALAR)
			return config_err(e->value, -EINVAL, err,
				"%s: a single value is wanted, not a %s", p->name,
				e->value->kind == CONFIG_MAP ? "map" : "list");
		if (p->type == PARAM_TYPE_FILE && e->value->text[0] != '\0')
			return config_read_content(
				e->value, p->name, (void *)((char *)obj + p->offset), err);
		rc = param_set(p, obj, e->value->text, &inner);
		if (rc == 0 && param_is_other(p, e->value->text))
			rewrite(e->value, p, obj);
		return rc < 0 ? config_err(e->value, rc, err, "%s", inner.msg) : 0;
	}
	if (p->def == NULL)
		return config_err(map, -EINVAL, err, "%s%s%s is required", what,
			what[0] != '\0' ? ": " : "", p->name);
	rc = param_set(p, obj, p->def, &inner);
	return rc < 0 ? config_err(map, rc, err, "%s", inner.msg) : 0;
}

int config_params(struct config_node *n, const char *what, const struct param *table,
	const struct param *also, void *obj, struct err *err) {
	int rc;

	if (what == NULL)
		what = "";
	if (n != NULL) {
		config_empty_to_map(n);
		if (n->kind == CONFIG_LIST)
			return config_err(n, -EINVAL, err,
				"%s%sa map of parameters is wanted, not a list", what,
				what[0] != '\0' ? ": " : "");
		if (n->kind == CONFIG_SCALAR)
			return config_err(n, -EINVAL, err,
				"%s%sa map of parameters is wanted, not '%.80s'", what,
				what[0] != '\0' ? ": " : "", n->text);
		if ((rc = check_keys(n, what, table, also, err)) < 0)
			return rc;
	}
	for (const struct param *p = table; p->name != NULL; p++) {
		if ((rc = config_param(n, what, p, obj, err)) < 0)
			return rc;
		if (n != NULL && config_entry_find(n, p->name) == NULL)
			config_add(n, p->name, p->def);
	}
	return 0;
}

int config_object(struct config_node *n, const char *what, const struct param *table,
	const struct param *also, size_t size, void **object, struct err *err) {
	*object = calloc(1, size == 0 ? 1 : size);
	if (*object == NULL)
		return err_set(err, -ENOMEM, "no memory for %s", what);
	return config_params(n, what, table, also, *object, err);
}

// Two names where one is wanted, the second from an override of a parameter of something that is
// not there: "-o queue.fifo.limit=1MB" onto a codel.
static int other_plugin(const struct config_node *n, const char *what, struct err *err) {
	const struct config_entry *here = &n->entry[0], *other = &n->entry[1];
	const char *path = other->source + strlen("-o "), *equals = strchr(path, '=');
	size_t len = strlen(other->key);

	for (const char *s = path; s + len + 1 < equals; s++) {
		if (s[0] != '.' || strncmp(s + 1, other->key, len) != 0 || s[len + 1] != '.')
			continue;
		const char *param = s + len + 2;
		return err_set(err, -EINVAL,
			"%s: %s is %s (%s), not %s; to replace it write -o '%.*s={%s: {%.*s: %s}}'",
			other->source, what, here->key, config_place(here->value), other->key,
			(int)(s - path), path, other->key, (int)(equals - param), param,
			equals + 1);
	}
	return config_err(n, -EINVAL, err, "%s: one name is wanted, not %zu ('%s', '%s'%s)", what,
		n->count, here->key, other->key, n->count > 2 ? ", ..." : "");
}

int config_plugin(struct config_node *n, const char *what, const char **name,
	struct config_node **params, struct err *err) {
	if (n == NULL)
		return err_set(err, -EINVAL, "%s is required", what);
	if (n->kind == CONFIG_LIST)
		return config_err(
			n, -EINVAL, err, "%s: a name or {name: {...}} is wanted, not a list", what);
	if (config_is_empty(n) || (n->kind == CONFIG_MAP && n->count == 0))
		return config_err(n, -EINVAL, err, "%s: a name is wanted", what);
	if (n->kind == CONFIG_SCALAR && strlen(n->text) > CONFIG_KEY_MAX)
		return config_err(n, -EINVAL, err, "%s: '%.40s...' is no name", what, n->text);
	if (n->kind == CONFIG_SCALAR) {
		// A bare name becomes {name: {}}, so that its defaults have a place.
		struct config_node *empty =
			config_node_new(n->doc, CONFIG_MAP, n->source, n->line, n->col);
		n->kind = CONFIG_MAP;
		config_entry_add(n, n->text, empty);
	}
	if (n->count > 1)
		return other_plugin(n, what, err);
	n->entry[0].read = true;
	*name = n->entry[0].key;
	*params = n->entry[0].value;
	config_empty_to_map(*params);
	return 0;
}

int config_registered(struct config_node *n, const char *what, const char *is,
	struct config_name (*nth)(size_t i), size_t *which, struct err *err) {
	struct config_entry *e = &n->entry[0];
	char known[CONFIG_NAMES_SIZE] = "";
	const char *best = NULL;
	size_t best_d = SIZE_MAX;

	for (size_t i = 0; nth(i).name != NULL; i++) {
		struct config_name x = nth(i);
		if (strcasecmp(e->key, x.name) == 0
			|| (x.alias != NULL && strcasecmp(e->key, x.alias) == 0)) {
			e->key = x.name;
			*which = i;
			return 0;
		}
		config_name_add(known, x.name);
		config_suggest(e->key, x.name, &best, &best_d);
	}
	if (best != NULL)
		return config_err(n, -EINVAL, err, "%s: '%s' is not %s; did you mean '%s'?", what,
			e->key, is, best);
	return config_err(
		n, -EINVAL, err, "%s: '%s' is not %s; there is %s", what, e->key, is, known);
}

static int find_unused(struct config_node *n, struct err *err) {
	int rc;

	for (size_t i = 0; i < n->count; i++) {
		if (n->kind == CONFIG_MAP && !n->entry[i].read) {
			const char *best = NULL;
			size_t best_d = SIZE_MAX;
			for (size_t k = 0; k < n->asked_count; k++)
				config_suggest(n->entry[i].key, n->asked[k], &best, &best_d);
			return unknown_key(n, i, NULL, best, err);
		}
		if ((rc = find_unused(n->entry[i].value, err)) < 0)
			return rc;
	}
	return 0;
}

int config_unused(struct config *c, struct err *err) {
	return find_unused(c->root, err);
}
