// SPDX-License-Identifier: BSD-3-Clause
// A link whose rate is constant from one change to the next, and whose changes the stage makes
// itself. The wire is served up to each change before it, so that all is exact however late the
// stage is called. A stage may add a delay behind the wire; order is kept.
#pragma once
#include "switch/stage/link.h"

struct stepped {
	struct link link;
	uint64_t change_ns; // when the next step begins; NEVER_NS: it does not
	uint64_t rate_bps, delay_ns; // of the present step
	uint64_t min_delay_ns; // of all steps: so far ahead stepped_pop may be called
	uint64_t released_ns; // the last packet's departure
	// Sets the three for the step that begins at now_ns.
	void (*step)(struct stepped *s, uint64_t now_ns);
	// Called at the end of a step when the link is empty: may skip changes up to now_ns. NULL:
	// none.
	void (*skip)(struct stepped *s, uint64_t now_ns);
};

// For init, once the functions are set: begins the first step. limit_bps as in link_begin.
int stepped_begin(
	struct stepped *s, const struct stage_env *env, uint64_t limit_bps, struct err *err);
// Makes the changes up to now_ns, and serves the wire up to the last of them.
void stepped_follow(struct stepped *s, uint64_t now_ns, struct pkt_list *drops);

// Operations of a struct that begins with a struct stepped.
void stepped_serve(void *self, uint64_t now_ns, struct pkt_list *drops);
void stepped_push(void *self, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops);
uint32_t stepped_pop(
	void *self, uint64_t now_ns, struct pkt **pkts, uint32_t max, struct pkt_list *drops);
uint64_t stepped_next_ns(const void *self);
