// SPDX-License-Identifier: BSD-3-Clause
// The config tree: memory, access, and the tables that give it types.
#include "common/config/config.h"

#include "common/config/node.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES (64u << 10)
#define SUGGEST_DISTANCE 2

void *config_alloc(struct config *c, size_t size) {
	struct config_chunk *chunk = c->chunks;

	size = (size + 15) & ~(size_t)15;
	if (chunk == NULL || chunk->size - chunk->used < size) {
		size_t room = size > CHUNK_BYTES ? size : CHUNK_BYTES;
		chunk = calloc(1, sizeof(*chunk) + room);
		if (chunk == NULL) {
			fputs("out of memory\n", stderr);
			abort();
		}
		chunk->size = room;
		chunk->next = c->chunks;
		c->chunks = chunk;
	}
	void *p = chunk->bytes + chunk->used;
	chunk->used += size;
	return p;
}

char *config_copy(struct config *c, const char *text, size_t len) {
	char *copy = config_alloc(c, len + 1);

	memcpy(copy, text, len);
	return copy;
}

const char *config_place_text(struct config *c, const char *source, uint32_t line, uint32_t col) {
	if (line == 0)
		return source;
	size_t size = strlen(source) + 24;
	char *text = config_alloc(c, size);
	snprintf(text, size, "%s:%u:%u", source, line, col);
	return text;
}

struct config_node *config_node_new(
	struct config *c, enum config_kind kind, const char *source, uint32_t line, uint32_t col) {
	struct config_node *n = config_alloc(c, sizeof(*n));

	n->doc = c;
	n->kind = kind;
	n->source = source;
	n->line = line;
	n->col = col;
	return n;
}

struct config_entry *config_entry_add(
	struct config_node *parent, const char *key, struct config_node *value) {
	if (parent->count == parent->room) {
		size_t room = parent->room == 0 ? 4 : 2 * parent->room;
		struct config_entry *more = config_alloc(parent->doc, room * sizeof(*more));
		if (parent->count > 0)
			memcpy(more, parent->entry, parent->count * sizeof(*more));
		parent->entry = more;
		parent->room = room;
	}
	struct config_entry *e = &parent->entry[parent->count++];
	*e = (struct config_entry){
		key, value, parent->source, parent->line, parent->col, .read = false};
	return e;
}

struct config_entry *config_entry_find(const struct config_node *map, const char *key) {
	for (size_t i = 0; i < map->count; i++) {
		if (strcmp(map->entry[i].key, key) == 0)
			return &map->entry[i];
	}
	return NULL;
}

bool config_is_empty(const struct config_node *n) {
	return n->kind == CONFIG_SCALAR && n->text[0] == '\0';
}

void config_empty_to_map(struct config_node *n) {
	if (config_is_empty(n))
		n->kind = CONFIG_MAP;
}

struct config *config_parse(const char *name, const char *text, size_t len, struct err *err) {
	struct config *c = calloc(1, sizeof(*c));

	if (c == NULL) {
		err_set(err, -ENOMEM, "%s: out of memory", name);
		return NULL;
	}
	if (config_yaml_load(c, name, text, len, 0, &c->root, err) < 0)
		goto fail;
	if (c->root == NULL || config_is_empty(c->root)) {
		err_set(err, -EINVAL, "%s: the file is empty", name);
		goto fail;
	}
	if (c->root->kind != CONFIG_MAP) {
		config_err(c->root, -EINVAL, err, "a config starts with 'key: value', not with %s",
			c->root->kind == CONFIG_LIST ? "a list" : "a single value");
		goto fail;
	}
	return c;
fail:
	config_free(c);
	return NULL;
}

static struct config *parse_stream(FILE *in, const char *name, struct err *err) {
	struct config *c = NULL;
	char *text = malloc(CONFIG_BYTES_MAX + 1);

	if (text == NULL) {
		err_set(err, -ENOMEM, "%s: out of memory", name);
		return NULL;
	}
	size_t len = fread(text, 1, CONFIG_BYTES_MAX + 1, in);
	if (ferror(in))
		err_set(err, -errno, "%s: cannot be read: %s", name, strerror(errno));
	else if (len > CONFIG_BYTES_MAX)
		err_set(err, -EINVAL, "%s: larger than the %u MiB a config may have", name,
			CONFIG_BYTES_MAX >> 20);
	else
		c = config_parse(name, text, len, err);
	free(text);
	return c;
}

struct config *config_load(const char *path, struct err *err) {
	if (strcmp(path, "-") == 0)
		return parse_stream(stdin, "standard input", err);
	FILE *in = fopen(path, "re");
	if (in == NULL) {
		err_set(err, -errno, "%s: cannot be read: %s", path, strerror(errno));
		return NULL;
	}
	struct config *c = parse_stream(in, path, err);
	fclose(in);
	return c;
}

void config_free(struct config *c) {
	if (c == NULL)
		return;
	while (c->chunks != NULL) {
		struct config_chunk *next = c->chunks->next;
		free(c->chunks);
		c->chunks = next;
	}
	free(c);
}

struct config_node *config_root(struct config *c) {
	return c->root;
}

enum config_kind config_kind(const struct config_node *n) {
	return n->kind;
}

const char *config_place(const struct config_node *n) {
	return config_place_text(n->doc, n->source, n->line, n->col);
}

const char *config_text(const struct config_node *n) {
	return n->kind == CONFIG_SCALAR ? n->text : NULL;
}

// Remembers a key that somebody wanted: a good suggestion for one that nobody does.
static void remember_asked(struct config_node *map, const char *key) {
	for (size_t i = 0; i < map->asked_count; i++) {
		if (strcmp(map->asked[i], key) == 0)
			return;
	}
	const char **asked = config_alloc(map->doc, (map->asked_count + 1) * sizeof(*asked));
	if (map->asked_count > 0)
		memcpy(asked, map->asked, map->asked_count * sizeof(*asked));
	asked[map->asked_count++] = config_copy(map->doc, key, strlen(key));
	map->asked = asked;
}

struct config_node *config_get(struct config_node *map, const char *key) {
	if (map == NULL || map->kind != CONFIG_MAP)
		return NULL;
	struct config_entry *e = config_entry_find(map, key);
	if (e == NULL) {
		remember_asked(map, key);
		return NULL;
	}
	e->read = true;
	return e->value;
}

struct config_node *config_section(struct config_node *map, const char *key) {
	struct config_node *n = config_get(map, key);

	if (n == NULL) {
		n = config_node_new(map->doc, CONFIG_MAP, map->source, map->line, map->col);
		config_entry_add(map, config_copy(map->doc, key, strlen(key)), n)->read = true;
	}
	config_empty_to_map(n);
	return n;
}

size_t config_count(const struct config_node *n) {
	return n->kind == CONFIG_SCALAR ? 0 : n->count;
}

const char *config_key(const struct config_node *map, size_t i) {
	assert(i < map->count);
	return map->entry[i].key;
}

struct config_node *config_at(struct config_node *n, size_t i) {
	assert(i < n->count);
	n->entry[i].read = true;
	return n->entry[i].value;
}

void config_skip(struct config_node *n) {
	if (n == NULL)
		return;
	for (size_t i = 0; i < n->count; i++) {
		n->entry[i].read = true;
		config_skip(n->entry[i].value);
	}
}

void config_add(struct config_node *map, const char *key, const char *text) {
	struct config_node *n =
		config_node_new(map->doc, CONFIG_SCALAR, map->source, map->line, map->col);

	assert(map->kind == CONFIG_MAP && config_entry_find(map, key) == NULL);
	n->text = config_copy(map->doc, text, strlen(text));
	config_entry_add(map, config_copy(map->doc, key, strlen(key)), n)->read = true;
}

int config_err(const struct config_node *n, int rc, struct err *err, const char *fmt, ...) {
	char sentence[sizeof(err->msg)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(sentence, sizeof(sentence), fmt, ap);
	va_end(ap);
	if (n == NULL)
		return err_set(err, rc, "%s", sentence);
	return err_set(err, rc, "%s: %s", config_place(n), sentence);
}

// Levenshtein's distance between two keys.
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
			size_t best = diagonal + (a[i] != b[j]);
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

// Keeps the nearest candidate for a mistyped key; short words must be nearer.
static void suggest(const char *key, const char *candidate, const char **best, size_t *best_d) {
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

static bool is_among(const char *key, const char *const *names) {
	for (; names != NULL && *names != NULL; names++) {
		if (strcmp(*names, key) == 0)
			return true;
	}
	return false;
}

static int check_keys(const struct config_node *map, const char *what, const struct param *table,
	const char *const *also, struct err *err) {
	for (size_t i = 0; i < map->count; i++) {
		const char *key = map->entry[i].key, *best = NULL;
		size_t best_d = SIZE_MAX;
		if (param_find(table, key) != NULL || is_among(key, also))
			continue;
		for (const struct param *p = table; p->name != NULL; p++)
			suggest(key, p->name, &best, &best_d);
		for (const char *const *name = also; name != NULL && *name != NULL; name++)
			suggest(key, *name, &best, &best_d);
		return unknown_key(map, i, what, best, err);
	}
	return 0;
}

int config_param(struct config_node *map, const char *what, const struct param *p, void *obj,
	struct err *err) {
	struct config_entry *e = map != NULL ? config_entry_find(map, p->name) : NULL;
	struct err inner;
	int rc;

	if (e != NULL) {
		e->read = true;
		if (e->value->kind != CONFIG_SCALAR)
			return config_err(e->value, -EINVAL, err,
				"%s: a single value is wanted, not a %s", p->name,
				e->value->kind == CONFIG_MAP ? "map" : "list");
		rc = param_set(p, obj, e->value->text, &inner);
		return rc < 0 ? config_err(e->value, rc, err, "%s", inner.msg) : 0;
	}
	if (p->def == NULL)
		return config_err(map, -EINVAL, err, "%s%s%s is required", what,
			what[0] != '\0' ? ": " : "", p->name);
	rc = param_set(p, obj, p->def, &inner);
	return rc < 0 ? config_err(map, rc, err, "%s", inner.msg) : 0;
}

int config_params(struct config_node *n, const char *what, const struct param *table,
	const char *const *also, void *obj, struct err *err) {
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

// Two names where one is wanted, the second from an override of a parameter of something that is not
// there: "-o queue.fifo.limit=1MB" onto a codel.
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

void config_name_add(char names[static CONFIG_NAMES_SIZE], const char *name) {
	size_t used = strlen(names);

	if (used + strlen(name) + 3 < CONFIG_NAMES_SIZE)
		stpcpy(stpcpy(names + used, used > 0 ? ", " : ""), name);
}

static int find_unused(struct config_node *n, struct err *err) {
	int rc;

	for (size_t i = 0; i < n->count; i++) {
		if (n->kind == CONFIG_MAP && !n->entry[i].read) {
			const char *best = NULL;
			size_t best_d = SIZE_MAX;
			for (size_t k = 0; k < n->asked_count; k++)
				suggest(n->entry[i].key, n->asked[k], &best, &best_d);
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
