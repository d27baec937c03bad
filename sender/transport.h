// SPDX-License-Identifier: BSD-3-Clause
// A transport beside TCP, in UDP datagrams: what it does when its connections are made, when
// packets arrive, and when its timers end. A host calls it for the flows of groups whose source
// asks for it (source_ops.transport). TCP is called directly: its path has no table.
#pragma once
#include <stddef.h>
#include <stdint.h>

struct endpoint;
struct flow;
struct receiver;
struct seg;

struct transport_ops {
	const char *name; // of its groups, if they have no other
	const char *summary;
	size_t connection_size; // of a flow's state (endpoint_connection)
	// Bytes of a full segment, by the config of the source that asks for it.
	uint32_t (*payload)(const void *source_config);
	// A flow was initialised, and is to start at its start_ns.
	void (*open)(struct endpoint *e, struct flow *f);
	// The flow's random stream begins anew. NULL: it has none.
	void (*reseed)(struct endpoint *e, struct flow *f, uint64_t seed);
	// At the sending side: a packet arrives; the timer `pace` ends.
	void (*receive)(struct endpoint *e, struct flow *f, const struct seg *s, uint64_t now_ns);
	void (*timer)(struct endpoint *e, struct flow *f, uint64_t now_ns);
	// At the receiving side: a packet arrives, with its ECN codepoint; the timer `delack` ends.
	void (*receive_data)(struct endpoint *e, struct receiver *r, const struct seg *s,
		uint8_t ecn, uint64_t now_ns);
	void (*receiver_timer)(struct endpoint *e, struct receiver *r, uint64_t now_ns);
};
