// SPDX-License-Identifier: BSD-3-Clause
// From a connection's hash to its place in the table of connections: open addressing, linear
// probing, at most half full. A slot holds the whole hash, so that another connection's key is
// looked at once in 2^32 times; who has the keys compares them.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TABLE_NONE UINT32_MAX

struct table_slot {
	uint32_t hash;
	uint32_t index; // TABLE_NONE: free
};

struct table {
	struct table_slot *slot;
	uint32_t mask;
	size_t bytes;
};

int table_init(struct table *t, uint32_t entries); // 0 or -ENOMEM
void table_fini(struct table *t);
void table_insert(struct table *t, uint32_t hash, uint32_t index);
// Takes the entry away that has this hash and index.
void table_remove(struct table *t, uint32_t hash, uint32_t index);

static inline const struct table_slot *table_home(const struct table *t, uint32_t hash) {
	return &t->slot[hash & t->mask];
}

// The first entry with this hash from slot *at on (begin with the hash itself); *at is then the
// slot behind it.
// TABLE_NONE: there is none.
static inline uint32_t table_find(const struct table *t, uint32_t hash, uint32_t *at) {
	for (uint32_t i = *at & t->mask; t->slot[i].index != TABLE_NONE; i = (i + 1) & t->mask) {
		if (t->slot[i].hash == hash) {
			*at = i + 1;
			return t->slot[i].index;
		}
	}
	return TABLE_NONE;
}
