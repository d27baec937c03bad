// SPDX-License-Identifier: BSD-3-Clause
// Dynamic connections: those of a receiving host that are none of the config's flows, a kernel's for example.
//
// Behind the receivers of its flows a host has spare ones, as many as this table has entries. A connection that
// begins gets the first that has none, else the first whose connection is over; without either it is refused
// and counted. A connection is found by its addresses, in a hash table of chains. All memory is allocated at
// the start.
#pragma once
#include "common/net/wire.h"
#include "sender/host.h"

#define CONNECTION_NONE UINT32_MAX
#define CONNECTION_BUCKETS 1024 // a power of two

struct connection {
	struct wire_addr addr; // as we send
	uint32_t next; // in its bucket
	bool used;
};

struct connections {
	struct connection *entry; // the i-th has the i-th spare receiver
	uint32_t size;
	uint32_t bucket[CONNECTION_BUCKETS];
	uint64_t refused; // for want of a receiver
};

// A table of `size` connections, 0 for none. -ENOMEM and a sentence.
int connections_init(struct connections *c, uint32_t size, struct err *err);
void connections_fini(struct connections *c);

// connections_receiver, for all but what is of a flow of the config and begins nothing.
uint32_t connections_lookup(struct connections *c, struct host *h, uint32_t index,
	const struct wire_addr *from, const struct seg *seg);
// The receiver of h that a segment from there is for; CONNECTION_NONE: it is of no connection, and begins none
// or found no receiver. `index`: the receiver of the config's flow with these addresses, CONNECTION_NONE if
// there is no such flow. A receiver whose connection is over begins anew with a SYN of another number.
static inline uint32_t connections_receiver(struct connections *c, struct host *h, uint32_t index,
	const struct wire_addr *from, const struct seg *seg) {
	if (__builtin_expect(index != CONNECTION_NONE && (seg->flags & SEG_SYN) == 0, 1))
		return index;
	return connections_lookup(c, h, index, from, seg);
}

// Where the spare receiver with this number (struct receiver.id) sends to.
static inline const struct wire_addr *connections_addr(
	const struct connections *c, const struct host *h, uint32_t id) {
	return &c->entry[id - h->groups->flows].addr;
}
