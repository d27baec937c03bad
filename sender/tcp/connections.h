// SPDX-License-Identifier: BSD-3-Clause
// Dynamic connections: connections of a receiving host that are not flows of the config, such as a
// kernel's.
//
// After the receivers of its flows a host has spare ones, as many as this table has entries. A new
// connection gets the first unused receiver, else the first whose connection is over; if there is
// none, it is refused and counted. Connections are found by their addresses in a chained hash
// table. All memory is allocated at the start.
#pragma once
#include "common/base/likely.h"
#include "common/net/wire.h"
#include "sender/tcp/receiver.h"

#define CONNECTION_NONE UINT32_MAX
#define CONNECTION_BUCKETS 1024 // a power of two

struct connection {
	struct wire_addr addr; // of the segments we send
	uint32_t next; // in its bucket
	bool used;
};

struct connections {
	struct connection *entry; // entry i belongs to the i-th spare receiver
	uint32_t size;
	uint32_t bucket[CONNECTION_BUCKETS];
	uint64_t refused; // connections refused for lack of a receiver
};

// Makes a table of `size` connections, which may be 0. 0, or -ENOMEM with a sentence in err.
int connections_init(struct connections *c, uint32_t size, struct err *err);
void connections_fini(struct connections *c);

// The slow path of connections_receiver: all segments but those of the config's flows.
uint32_t connections_lookup(struct connections *c, struct endpoint *e, const struct wire_addr *from,
	const struct seg *seg);
// The receiver of e for a segment from these addresses. CONNECTION_NONE: the segment belongs to no
// connection, and begins none or found no free receiver. `index`: the receiver of the config's flow
// with these addresses, or CONNECTION_NONE.
static inline uint32_t connections_receiver(struct connections *c, struct endpoint *e,
	uint32_t index, const struct wire_addr *from, const struct seg *seg) {
	return likely(index != CONNECTION_NONE) ? index : connections_lookup(c, e, from, seg);
}

// The addresses to which the spare receiver with this number (struct receiver.id) sends.
static inline const struct wire_addr *connections_addr(
	const struct connections *c, const struct endpoint *e, uint32_t id) {
	return &c->entry[id - e->groups->flows].addr;
}
