// SPDX-License-Identifier: BSD-3-Clause
#include "tools/pcap/table.h"

#include "common/base/mem.h"

#include <errno.h>
#include <string.h>

int table_init(struct table *t, uint32_t entries) {
	uint32_t slots = 16;

	while (slots < 2 * entries)
		slots *= 2;
	t->bytes = slots * sizeof(*t->slot);
	t->slot = mem_map(t->bytes);
	t->mask = slots - 1;
	if (t->slot == NULL)
		return -ENOMEM;
	memset(t->slot, 0xff, t->bytes);
	return 0;
}

void table_fini(struct table *t) {
	mem_unmap(t->slot, t->bytes);
	t->slot = NULL;
}

void table_insert(struct table *t, uint32_t hash, uint32_t index) {
	uint32_t i = hash & t->mask;

	while (t->slot[i].index != TABLE_NONE)
		i = (i + 1) & t->mask;
	t->slot[i] = (struct table_slot){hash, index};
}

// The entries behind it move up, unless that would put them before their home (Knuth, volume 3,
// algorithm 6.4R).
void table_remove(struct table *t, uint32_t hash, uint32_t index) {
	uint32_t i = hash & t->mask;

	while (t->slot[i].index != TABLE_NONE
		&& (t->slot[i].hash != hash || t->slot[i].index != index))
		i = (i + 1) & t->mask;
	if (t->slot[i].index == TABLE_NONE)
		return;
	for (uint32_t k = (i + 1) & t->mask; t->slot[k].index != TABLE_NONE;
		k = (k + 1) & t->mask) {
		uint32_t home = t->slot[k].hash & t->mask;

		if (((k - home) & t->mask) >= ((k - i) & t->mask)) {
			t->slot[i] = t->slot[k];
			i = k;
		}
	}
	t->slot[i].index = TABLE_NONE;
}
