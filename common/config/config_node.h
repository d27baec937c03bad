// SPDX-License-Identifier: BSD-3-Clause
// Inside of the config tree, shared by config.c, params.c, yaml.c and override.c only.
#pragma once
#include "common/config/config.h"

#include <stddef.h>
#include <stdint.h>

#define CONFIG_DEPTH_MAX 32
#define CONFIG_MAP_MAX 1024 // entries of one map: duplicates are searched for one by one
#define CONFIG_KEY_MAX 128 // bytes
#define CONFIG_BYTES_MAX (4u << 20)

struct config_entry {
	const char *key; // NULL in a list
	struct config_node *value;
	const char *source; // where the key stands, as in the node
	uint32_t line, col;
	bool read;
};

struct config_node {
	struct config *doc;
	enum config_kind kind;
	const char *source; // file name, or the whole "-o ..." text
	uint32_t line, col; // from 1; line 0: the source says it all
	const char *text; // of a scalar
	size_t count, room;
	struct config_entry *entry;
	const char **asked; // keys that were looked for in vain, to suggest
	size_t asked_count;
};

struct config_chunk {
	struct config_chunk *next;
	size_t used, size;
	_Alignas(16) char bytes[];
};

struct config {
	struct config_node *root;
	struct config_chunk *chunks; // all memory of the document, newest first
	const struct config_file *files; // that it names, the last one first
};

// Zeroed; lives as long as the document. Never NULL: without memory at start there is nothing
// better to do than abort.
void *config_alloc(struct config *c, size_t size);
char *config_copy(struct config *c, const char *text, size_t len);
const char *config_place_text(struct config *c, const char *source, uint32_t line, uint32_t col);

struct config_node *config_node_new(
	struct config *c, enum config_kind kind, const char *source, uint32_t line, uint32_t col);
// Adds a child at the parent's place; key is NULL in a list and must not be there yet in a map.
struct config_entry *config_entry_add(
	struct config_node *parent, const char *key, struct config_node *value);
struct config_entry *config_entry_find(const struct config_node *map, const char *key);
bool config_is_empty(const struct config_node *n); // a scalar without text
// An empty scalar turns into a map without entries; anything else stays what it is.
void config_empty_to_map(struct config_node *n);

// Builds a tree from one YAML document: a file when no levels are above it, else the value of an
// override, whose `source` then is the place of every node. *root is NULL when it is empty.
int config_yaml_load(struct config *c, const char *source, const char *text, size_t len, int levels,
	struct config_node **root, struct err *err);
