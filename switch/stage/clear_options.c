// SPDX-License-Identifier: BSD-3-Clause
// Clears TCP options, as middleboxes do that do not know them: NOPs stand in their place, so that
// packets keep their size, and the checksum of TCP is adjusted (M. Honda and others: Is it Still
// Possible to Extend TCP?, IMC 2011, found such paths; RFC 9768, section 3.2.3.2, says what AccECN
// does about them).
//
//	accecn   the byte counters of AccECN (kinds 172 and 174)
//	sack     SACK permitted on SYNs and SYN/ACKs, SACK blocks on other segments (kinds 4 and 5)
//
//	keep     the option stays
//	syn      cleared on SYNs and SYN/ACKs
//	later    cleared on all other segments
//	all      cleared on both
//
// The stage sets bits of the packet's flags, and decides nothing by its headers. Live, and in
// captures, the frame is changed when it leaves its path (net/clear.h); in virtual time, where
// segments travel decoded, the receiving host gets the segment without these options. So
// disciplines of the same path that read headers still see them.
#include "switch/stage/instant.h"

enum { CLEAR_KEEP, CLEAR_SYN, CLEAR_LATER, CLEAR_ALL };
static const char *const clear_names[] = {"keep", "syn", "later", "all", NULL};

struct clear_options {
	struct instant pass;
	int accecn, sack;

	uint8_t flags; // that packets get
};

static const struct param params[] = {
	{"accecn", "keep", "segments on which AccECN's option is cleared", UNIT_NONE,
		PARAM_ENUM(struct clear_options, accecn, clear_names), .live = true},
	{"sack", "keep", "segments on which SACK permitted and SACK blocks are cleared", UNIT_NONE,
		PARAM_ENUM(struct clear_options, sack, clear_names), .live = true},
	PARAM_END,
};

static uint8_t flags(int option, uint8_t syn, uint8_t later) {
	return (uint8_t)((option == CLEAR_SYN || option == CLEAR_ALL ? syn : 0)
		| (option == CLEAR_LATER || option == CLEAR_ALL ? later : 0));
}

static void clear_options_update(void *self, uint64_t now_ns) {
	struct clear_options *c = self;

	c->flags = flags(c->accecn, PKT_CLEAR_ACCECN_SYN, PKT_CLEAR_ACCECN)
		| flags(c->sack, PKT_CLEAR_SACK_SYN, PKT_CLEAR_SACK);
}

static int clear_options_init(void *self, const struct stage_env *env, struct err *err) {
	struct clear_options *c = self;

	c->pass.env = env;
	clear_options_update(self, 0);
	return 0;
}

static void clear_options_push(
	void *self, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	struct clear_options *c = self;

	for (uint32_t i = 0; i < n; i++) {
		pkts[i]->flags |= c->flags;
		instant_pass(&c->pass, pkts[i]);
	}
}

const struct stage_ops stage_clear_options = {
	.name = "clear_options",
	.summary = "clears TCP options, as some middleboxes do",
	.reference = "Honda and others 2011; RFC 9768, section 3.2.3.2",
	.params = params,
	.state_size = sizeof(struct clear_options),
	.init = clear_options_init,
	.push = clear_options_push,
	.pop = instant_pop,
	.next_ns = instant_next_ns,
	.backlog = instant_backlog,
	.config = &(const struct stage_config){.update = clear_options_update},
};
