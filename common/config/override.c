// SPDX-License-Identifier: BSD-3-Clause
// -o path.to.key=value
#include "common/base/utf8.h"
#include "common/config/config_node.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN_MAX 120 // bytes of a value in the place of a message

static_assert(CONFIG_ITEM_SIZE == CONFIG_KEY_MAX + 24, "a key and a number");

// Where the walk along the path is.
struct walk {
	struct config *doc;
	const char *source; // "-o path=value"
	char part[CONFIG_KEY_MAX + 1]; // the next step
	const char *done; // the path up to here, for messages
	int done_len;
	const char *rest; // what follows the next step, up to and with the value
	int levels;
	struct config_node **slot;
	struct err *err;
};

static struct config_node *empty_scalar(struct walk *w) {
	struct config_node *n = config_node_new(w->doc, CONFIG_SCALAR, w->source, 0, 0);

	n->text = "";
	return n;
}

static int step_map(struct walk *w, struct config_node *map) {
	struct config_entry *e = config_entry_find(map, w->part);

	if (e == NULL) {
		if (map->count >= CONFIG_MAP_MAX)
			return err_set(w->err, -EINVAL, "%s: a map may have %d entries, not more",
				w->source, CONFIG_MAP_MAX);
		e = config_entry_add(
			map, config_copy(w->doc, w->part, strlen(w->part)), empty_scalar(w));
		e->source = w->source;
		e->line = 0;
	}
	w->slot = &e->value;
	return 0;
}

// schedule.+={at: 1s, ...}
static int step_append(struct walk *w, struct config_node *list) {
	list->kind = CONFIG_LIST;
	w->slot = &config_entry_add(list, NULL, empty_scalar(w))->value;
	return 0;
}

static int step_number(struct walk *w, const struct config_node *list) {
	unsigned long i = strtoul(w->part, NULL, 10);

	if (strlen(w->part) > 9 || i >= list->count)
		return err_set(w->err, -EINVAL, "%s: there is no %.*s%s%s, the list has %zu items",
			w->source, w->done_len, w->done, w->done_len > 0 ? "." : "", w->part,
			list->count);
	w->slot = &list->entry[i].value;
	return 0;
}

// {link: {...}} and a bare "link" are both a link; NULL: a map of several keys has no type.
static const char *type_of(const struct config_node *item) {
	if (item->kind == CONFIG_SCALAR)
		return item->text;
	return item->kind == CONFIG_MAP && item->count == 1 ? item->entry[0].key : NULL;
}

// What {link: {name: x, ...}} and {name: x, ...} write as their name, or NULL.
static const char *name_of(const struct config_node *item) {
	const struct config_node *map = item;

	if (map->kind == CONFIG_MAP && map->count == 1)
		map = map->entry[0].value;
	const struct config_entry *e =
		map->kind == CONFIG_MAP ? config_entry_find(map, "name") : NULL;
	return e != NULL ? config_text(e->value) : NULL;
}

// "link" is the first link of the list, "link2" the second; empty for an item without a type.
static void typed_name(
	const struct config_node *list, size_t i, char name[static CONFIG_ITEM_SIZE]) {
	const char *type = type_of(list->entry[i].value);
	size_t place = 0;

	name[0] = '\0';
	for (size_t k = 0; type != NULL && k <= i; k++) {
		const char *other = type_of(list->entry[k].value);
		place += other != NULL && strcmp(other, type) == 0;
	}
	if (place == 1)
		snprintf(name, CONFIG_ITEM_SIZE, "%s", type);
	else if (place > 1)
		snprintf(name, CONFIG_ITEM_SIZE, "%s%zu", type, place);
}

const char *config_item(
	const struct config_node *list, size_t i, char name[static CONFIG_ITEM_SIZE]) {
	const char *given = name_of(list->entry[i].value);

	typed_name(list, i, name);
	if (given != NULL)
		snprintf(name, CONFIG_ITEM_SIZE, "%s", given);
	return type_of(list->entry[i].value);
}

static size_t find_item(const struct config_node *list, const char *part) {
	for (size_t i = 0; i < list->count; i++) {
		const char *name = name_of(list->entry[i].value);
		if (name != NULL && strcmp(name, part) == 0)
			return i;
	}
	for (size_t i = 0; i < list->count; i++) {
		char name[CONFIG_ITEM_SIZE];
		typed_name(list, i, name);
		if (strcmp(name, part) == 0)
			return i;
	}
	return list->count;
}

static int no_item(const struct walk *w, const struct config_node *list) {
	char known[CONFIG_NAMES_SIZE] = "", nearest[CONFIG_ITEM_SIZE] = "";
	size_t best_d = SIZE_MAX;

	for (size_t i = 0; i < list->count; i++) {
		char name[CONFIG_ITEM_SIZE];
		const char *best = NULL;

		config_item(list, i, name);
		if (name[0] != '\0')
			config_name_add(known, name);
		config_suggest(w->part, name, &best, &best_d);
		if (best != NULL)
			snprintf(nearest, sizeof(nearest), "%s", best);
	}
	bool numbered = isdigit(
		(unsigned char)w->part[strlen(w->part) - 1]); // then how many there are says more
	if (nearest[0] != '\0' && !numbered)
		return err_set(w->err, -EINVAL,
			"%s: the list %.*s has no item called '%s'; did you mean '%s'?", w->source,
			w->done_len, w->done, w->part, nearest);
	return err_set(w->err, -EINVAL, "%s: the list %.*s has no item called '%s'%s%s", w->source,
		w->done_len, w->done, w->part,
		known[0] != '\0' ? "; it has " : ": write its number, from 0", known);
}

static int step_name(struct walk *w, const struct config_node *list) {
	size_t found = find_item(list, w->part);

	if (found == list->count)
		return no_item(w, list);
	struct config_node *item = list->entry[found].value;
	if (type_of(item) == NULL) { // a map of several keys, by its name
		w->slot = &list->entry[found].value;
		return 0;
	}
	if (item->kind == CONFIG_SCALAR) {
		item->kind = CONFIG_MAP;
		config_entry_add(item, item->text, empty_scalar(w));
	}
	w->levels++; // through the item into its value
	w->slot = &item->entry[0].value;
	return 0;
}

// queue: codel, entered as queue.fifo.limit=1MB
static int not_a_map(const struct walk *w, const struct config_node *n) {
	const char *equals = strchr(w->rest, '=');

	if (w->rest[0] != '.')
		return err_set(w->err, -EINVAL, "%s: %.*s is '%.80s' (%s), not a map", w->source,
			w->done_len, w->done, n->text, config_place(n));
	return err_set(w->err, -EINVAL,
		"%s: %.*s is %.80s (%s), not %s; to replace it write -o '%.*s={%s: {%.*s: %s}}'",
		w->source, w->done_len, w->done, n->text, config_place(n), w->part, w->done_len,
		w->done, w->part, (int)(equals - w->rest - 1), w->rest + 1, equals + 1);
}

static int step(struct walk *w) {
	struct config_node *n = *w->slot;

	w->levels++;
	if (strcmp(w->part, "+") == 0 && (n->kind == CONFIG_LIST || config_is_empty(n)))
		return step_append(w, n);
	if (n->kind == CONFIG_LIST && strspn(w->part, "0123456789") == strlen(w->part))
		return step_number(w, n);
	if (n->kind == CONFIG_LIST)
		return step_name(w, n);
	if (n->kind == CONFIG_SCALAR && strcmp(n->text, w->part) == 0 && n->text[0] != '\0') {
		// queue: fifo, entered as queue.fifo
		n->kind = CONFIG_MAP;
		config_entry_add(n, n->text, empty_scalar(w));
	}
	config_empty_to_map(n);
	if (n->kind == CONFIG_SCALAR)
		return not_a_map(w, n);
	return step_map(w, n);
}

// The length of the next part of a path, up to '.' or the end. Keys of a schedule's item, or of
// `sysctl`, contain dots: the longest key of the map that the path begins with; else, in a map that
// has such keys, all that is left.
static size_t part_length(const struct config_node *at, const char *path, const char *end) {
	size_t all = (size_t)(end - path), longest = 0;
	const char *stop = memchr(path, '.', all);
	bool dots = false;

	for (size_t i = 0; at != NULL && at->kind == CONFIG_MAP && i < at->count; i++) {
		const char *key = at->entry[i].key;
		size_t len = strlen(key);

		dots |= strchr(key, '.') != NULL;
		if (len > longest && len <= all && memcmp(key, path, len) == 0
			&& (len == all || path[len] == '.'))
			longest = len;
	}
	if (longest > 0)
		return longest;
	return stop == NULL || dots ? all : (size_t)(stop - path);
}

// Takes the next part of path into w->part and returns what follows.
static const char *next_part(struct walk *w, const char *path, const char *end) {
	size_t len = part_length(*w->slot, path, end);

	if (len == 0 || len > CONFIG_KEY_MAX) {
		err_set(w->err, -EINVAL, "%s: a part of the path is %s", w->source,
			len == 0 ? "empty" : "too long");
		return NULL;
	}
	memcpy(w->part, path, len);
	w->part[len] = '\0';
	for (const char *s = w->part; *s != '\0';) {
		uint32_t character;
		size_t n = utf8_read(s, &character);
		if (n == 0) {
			err_set(w->err, -EINVAL, "%s: the path is not UTF-8 text", w->source);
			return NULL;
		}
		s += n;
	}
	return path + len;
}

// "-o path=value" as messages name it. A long value is cut, or a message would have no room for
// what is wrong.
static const char *place_of(struct config *c, const char *assignment, const char *equals) {
	size_t room = (size_t)(equals != NULL ? equals - assignment : 0) + SHOWN_MAX;
	bool cut = strlen(assignment) > room;
	size_t size = strlen(assignment) + sizeof("-o ...");
	char *source = config_alloc(c, size);

	while (cut && room > 0 && (assignment[room] & 0xC0) == 0x80) // within a character
		room--;
	snprintf(source, size, "-o %.*s%s", (int)room, assignment, cut ? "..." : "");
	return source;
}

int config_override(struct config *c, const char *assignment, struct err *err) {
	const char *equals = strchr(assignment, '=');
	const char *source = place_of(c, assignment, equals);
	struct walk w = {.doc = c, .source = source, .slot = &c->root, .err = err};
	struct config_node *value;
	const char *part = assignment;
	int rc;

	if (equals == NULL)
		return err_set(err, -EINVAL, "%s: write it as -o path.to.key=value", source);
	w.done = assignment;
	for (;; part++) {
		part = next_part(&w, part, equals);
		if (part == NULL)
			return -EINVAL;
		w.rest = part;
		if ((rc = step(&w)) < 0)
			return rc;
		if (w.levels >= CONFIG_DEPTH_MAX)
			return err_set(err, -EINVAL, "%s: nested more than %d levels deep", source,
				CONFIG_DEPTH_MAX);
		w.done_len = (int)(part - assignment);
		if (part == equals)
			break;
	}
	rc = config_yaml_load(c, source, equals + 1, strlen(equals + 1), w.levels, &value, err);
	if (rc < 0)
		return rc;
	*w.slot = value != NULL ? value : empty_scalar(&w);
	return 0;
}
