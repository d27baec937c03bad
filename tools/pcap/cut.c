// SPDX-License-Identifier: BSD-3-Clause
#include "tools/pcap/cut.h"

#include "common/base/likely.h"
#include "common/base/mem.h"

#include <errno.h>
#include <string.h>

#define UNIT_MIN 400u // a smaller divisor comes from sizes that have nothing in common
#define PAYLOAD_USUAL 1460u // what Ethernet has room for: one segment

int cut_init(struct cut *c, uint32_t flows_max, struct err *err) {
	memset(c, 0, sizeof(*c));
	c->flows_max = flows_max;
	c->flow = mem_map(flows_max * sizeof(*c->flow));
	if (c->flow != NULL && table_init(&c->table, flows_max) == 0)
		return 0;
	cut_fini(c);
	return err_set(err, -ENOMEM, "no memory for %u flows", flows_max);
}

void cut_fini(struct cut *c) {
	if (c->flow == NULL)
		return;
	mem_unmap(c->flow, c->flows_max * sizeof(*c->flow));
	table_fini(&c->table);
	c->flow = NULL;
}

static struct cut_flow *find(const struct cut *c, const struct packet *p) {
	uint32_t hash = p->hash + p->from, at = hash, i;

	while ((i = table_find(&c->table, hash, &at)) != TABLE_NONE) {
		if (c->flow[i].from == p->from
			&& memcmp(&c->flow[i].key, &p->key, sizeof(p->key)) == 0)
			return &c->flow[i];
	}
	return NULL;
}

static uint32_t common_divisor(uint32_t a, uint32_t b) {
	while (b != 0) {
		uint32_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

void cut_add(struct cut *c, uint32_t side, const struct packet *p) {
	struct cut_flow *f = p->payload == 0 || p->key.udp ? NULL : find(c, p);

	if (p->payload == 0 || p->key.udp || (f == NULL && c->flows == c->flows_max))
		return;
	if (f == NULL) {
		f = &c->flow[c->flows];
		*f = (struct cut_flow){.key = p->key, .from = p->from};
		table_insert(&c->table, p->hash + p->from, c->flows++);
	}
	f->packets[side]++;
	if (p->payload > f->most[side])
		f->most[side] = p->payload;
	if ((p->seg.flags & (SEG_PSH | SEG_FIN)) == 0)
		f->divisor = common_divisor(f->divisor, p->payload);
}

void cut_decide(struct cut *c) {
	for (uint32_t i = 0; i < c->flows; i++) {
		struct cut_flow *f = &c->flow[i];
		uint32_t less = f->most[f->most[0] > f->most[1]],
			 most = f->most[f->most[0] < f->most[1]];
		bool alike = f->most[0] == f->most[1] && f->packets[0] == f->packets[1];

		// What only one side has cannot be cut differently.
		if (less == 0 || most <= PAYLOAD_USUAL || alike)
			continue;
		f->unit = f->divisor >= UNIT_MIN ? f->divisor : less;
		if (f->unit == most)
			f->unit = 0;
		c->units += f->unit != 0;
	}
}

uint32_t cut_unit(const struct cut *c, const struct packet *p) {
	const struct cut_flow *f =
		c->units == 0 || p->payload == 0 || p->key.udp ? NULL : find(c, p);

	return f == NULL ? 0 : f->unit;
}

bool cut_part(const struct packet *p, uint32_t unit, uint32_t n, struct packet *part) {
	uint64_t at = (uint64_t)n * unit;

	if (at >= p->payload)
		return false;
	uint32_t begin = (uint32_t)at, left = p->payload - begin;

	*part = *p;
	part->payload = left < unit ? left : unit;
	part->captured = p->captured < begin ? 0 : p->captured - begin;
	part->data = p->data + (p->captured < begin ? p->captured : begin);
	if (part->captured > part->payload)
		part->captured = part->payload;
	part->wire_bytes = p->wire_bytes - p->payload + part->payload;
	part->ip_id = 0;
	part->seg.seq = p->seg.seq + begin;
	part->seg.flags &= (uint8_t)~SEG_PSH;
	if (n > 0)
		part->seg.flags &= (uint8_t)~SEG_CWR;
	if (left > unit)
		part->seg.flags &= (uint8_t)~SEG_FIN;
	return true;
}
