// SPDX-License-Identifier: BSD-3-Clause
// The config tree: memory and access.
#include "common/config/config.h"

#include "common/config/config_node.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES (64u << 10)

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

// Remembers a key that was asked for and is not there: a good suggestion for one that nothing
// reads.
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

struct config_node *config_append(struct config_node *map, const char *key) {
	struct config_node *list = config_get(map, key);
	struct config_node *item =
		config_node_new(map->doc, CONFIG_MAP, map->source, map->line, map->col);

	if (list == NULL) {
		list = config_node_new(map->doc, CONFIG_LIST, map->source, map->line, map->col);
		config_entry_add(map, key, list);
	}
	config_entry_add(list, NULL, item);
	return item;
}

void config_remove(struct config_node *map, const char *key) {
	struct config_entry *e = config_entry_find(map, key), *end = map->entry + map->count;

	if (e == NULL)
		return;
	memmove(e, e + 1, (size_t)(end - e - 1) * sizeof(*e));
	map->count--;
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

void config_name_add(char names[static CONFIG_NAMES_SIZE], const char *name) {
	size_t used = strlen(names);

	if (used + strlen(name) + 3 < CONFIG_NAMES_SIZE)
		stpcpy(stpcpy(names + used, used > 0 ? ", " : ""), name);
}
