// SPDX-License-Identifier: BSD-3-Clause
#include "tools/pcap/points.h"

#include "common/base/likely.h"
#include "common/net/wire_ip.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SLL_OUTGOING 4u // packet type, of both versions

void points_init(struct points *p, const char *only) {
	memset(p, 0, sizeof(*p));
	p->only = only;
}

// Is the text of `size` bytes on the list?
static bool listed(const char *list, const char *name) {
	for (const char *at = list; at[0] != '\0';) {
		size_t size = strcspn(at, ",");

		if (strlen(name) == size && strncmp(at, name, size) == 0)
			return true;
		at += size + (at[size] == ',');
	}
	return false;
}

void points_name(const struct point *p, char *name, size_t size) {
	snprintf(name, size, "%s%s", p->interface, p->way);
}

// `-i any`: the kernel's number of the interface (version 2), and whether this host sent the frame.
static void any_interface(const struct frame *f, uint32_t *number, const char **way) {
	bool second = f->link_type == LINK_SLL2;
	uint32_t type = 0;

	if (f->captured >= 20) {
		type = second ? f->data[10] : f->data[1];
		*number = second ? wire_get32(f->data + 4) : 0;
	}
	*way = type == SLL_OUTGOING ? " out" : " in";
}

// The name of a frame's interface; of a file without names its own.
static void name_of(const struct parts_batch *batch, const struct frame *f, uint32_t number,
	char *name, size_t size) {
	const struct reader *r = batch->reader;
	const char *slash = strrchr(batch->path, '/');

	if (f->link_type == LINK_SLL2)
		snprintf(name, size, "%u", number);
	else if (f->interface < READER_INTERFACES_MAX && r->interface[f->interface].name[0] != '\0')
		snprintf(name, size, "%s", r->interface[f->interface].name);
	else if (r->pcapng)
		snprintf(name, size, "%u", f->interface);
	else if (batch->slot > 0)
		snprintf(name, size, "%s", slash != NULL ? slash + 1 : batch->path);
	else
		snprintf(name, size, "0"); // the parts of one capture, too
}

static bool ends_with(const char *text, const char *end) {
	size_t size = strlen(text), least = strlen(end);

	return size > least && strcmp(text + size - least, end) == 0;
}

static uint16_t find_point(struct points *p, const char *name, const char *way) {
	uint32_t i = 0;

	while (i < p->count
		&& (strcmp(p->point[i].interface, name) != 0 || strcmp(p->point[i].way, way) != 0))
		i++;
	if (i < p->count)
		return (uint16_t)i;
	if (p->count == POINTS_MAX)
		return POINTS_MAX - 1;
	struct point *new = &p->point[p->count++];
	char whole[POINTS_NAME_MAX];

	snprintf(new->interface, sizeof(new->interface), "%s", name);
	new->way = way;
	points_name(new, whole, sizeof(whole));
	new->dropped = ends_with(name, " drop");
	new->read = p->only[0] == '\0' || listed(p->only, name) || listed(p->only, whole);
	return (uint16_t)i;
}

uint16_t points_of(struct points *p, const struct parts_batch *batch, const struct frame *f) {
	uint32_t number = 0, i = 0;
	const char *way = "";

	if (unlikely(f->link_type == LINK_SLL || f->link_type == LINK_SLL2))
		any_interface(f, &number, &way);
	if (unlikely(p->reader != batch->reader || batch->first))
		p->keys = 0;
	p->reader = batch->reader;
	uint64_t key = (uint64_t)number << 32 | (uint64_t)f->interface << 2
		| (way[0] == '\0'		? 0
				: way[1] == 'i' ? 1
						: 2);

	while (i < p->keys && p->key[i].key != key)
		i++;
	if (unlikely(i == p->keys)) {
		char name[READER_NAME_MAX];

		name_of(batch, f, number, name, sizeof(name));
		i = p->keys < POINTS_MAX ? p->keys++ : POINTS_MAX - 1;
		p->key[i] = (struct points_key){key, find_point(p, name, way)};
	}
	uint16_t point = p->key[i].point;

	return likely(p->point[point].read) ? point : POINTS_NONE;
}

int points_check(const struct points *p, struct err *err) {
	char has[512] = "", name[POINTS_NAME_MAX];
	size_t used = 0;

	for (uint32_t i = 0; i < p->count && used < sizeof(has) - POINTS_NAME_MAX - 8; i++) {
		points_name(&p->point[i], name, sizeof(name));
		used += (size_t)snprintf(
			has + used, sizeof(has) - used, "%s'%s'", used > 0 ? ", " : "", name);
	}
	for (const char *at = p->only; at[0] != '\0';) {
		int size = (int)strcspn(at, ",");
		bool found = false;

		for (uint32_t i = 0; i < p->count && !found; i++) {
			points_name(&p->point[i], name, sizeof(name));
			found = (strlen(name) == (size_t)size
					&& strncmp(name, at, (size_t)size) == 0)
				|| (strlen(p->point[i].interface) == (size_t)size
					&& strncmp(p->point[i].interface, at, (size_t)size) == 0);
		}
		if (!found)
			return err_set(err, -EINVAL,
				"--interface: no packet is of '%.*s'; the capture has %s", size, at,
				used > 0 ? has : "none");
		at += size + (at[size] == ',');
	}
	return 0;
}
