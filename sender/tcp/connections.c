// SPDX-License-Identifier: BSD-3-Clause
#include "sender/tcp/connections.h"

#include "common/net/flow_addr.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int connections_init(struct connections *c, uint32_t size, struct err *err) {
	memset(c, 0, sizeof(*c));
	memset(c->bucket, 0xff, sizeof(c->bucket)); // CONNECTION_NONE
	c->size = size;
	c->entry = calloc((size_t)size + 1, sizeof(*c->entry));
	return c->entry != NULL ? 0 : err_set(err, -ENOMEM, "no memory for connections");
}

void connections_fini(struct connections *c) {
	free(c->entry);
	c->entry = NULL;
	c->size = 0;
}

// Both directions of a connection have the same bucket.
static uint32_t *bucket_of(struct connections *c, const struct wire_addr *a) {
	uint32_t h = flow_addr_hash(a->src_ip, a->dst_ip, a->src_port, a->dst_port, WIRE_PROTO_TCP);

	return &c->bucket[h & (CONNECTION_BUCKETS - 1)];
}

static uint32_t find(struct connections *c, const struct wire_addr *from) {
	uint32_t i = *bucket_of(c, from);

	for (; i != CONNECTION_NONE; i = c->entry[i].next) {
		const struct wire_addr *a = &c->entry[i].addr;

		if (a->dst_ip == from->src_ip && a->dst_port == from->src_port
			&& a->src_ip == from->dst_ip && a->src_port == from->dst_port
			&& a->ipv6 == from->ipv6)
			break;
	}
	return i;
}

static void insert(struct connections *c, uint32_t i, const struct wire_addr *from) {
	uint32_t *bucket = bucket_of(c, from);

	c->entry[i] = (struct connection){
		.addr = wire_addr_back(from),
		.next = *bucket,
		.used = true,
	};
	*bucket = i;
}

static void take_out(struct connections *c, uint32_t i) {
	uint32_t *at = bucket_of(c, &c->entry[i].addr);

	while (*at != i)
		at = &c->entry[*at].next;
	*at = c->entry[i].next;
	c->entry[i].used = false;
}

// A free entry; CONNECTION_NONE: all are in use.
static uint32_t free_entry(struct connections *c, const struct receiver *spare) {
	for (uint32_t i = 0; i < c->size; i++) {
		if (!c->entry[i].used)
			return i;
	}
	for (uint32_t i = 0; i < c->size; i++) {
		if (receiver_over(&spare[i])) {
			take_out(c, i);
			return i;
		}
	}
	return CONNECTION_NONE;
}

// The entry for a new connection, or CONNECTION_NONE.
static uint32_t begin(struct connections *c, struct endpoint *e, const struct wire_addr *from) {
	struct receiver *spare = &e->receiver[e->receivers - c->size];
	uint32_t i = free_entry(c, spare);

	if (i == CONNECTION_NONE) {
		c->refused++;
		return CONNECTION_NONE;
	}
	insert(c, i, from);
	spare[i].id = e->groups->flows + i;
	receiver_renew(e, &spare[i], 0);
	return i;
}

uint32_t connections_lookup(struct connections *c, struct endpoint *e, const struct wire_addr *from,
	const struct seg *seg) {
	uint32_t i = find(c, from);

	if (i == CONNECTION_NONE && seg_opens(seg))
		i = begin(c, e, from);
	return i == CONNECTION_NONE ? i : e->receivers - c->size + i;
}
