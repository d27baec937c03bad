// SPDX-License-Identifier: BSD-3-Clause
// QUIC stacks by name, each with the congestion controls that its program offers:
//
//	flows:
//	  - {count: 1, stack: {quic: {ngtcp2: {cc: bbr}}}}
//
// Both ends are programs in Linux guests, as with `run`. tools/weir guests add NAME builds them:
//
//	weir-quic serve CC
//	weir-quic send ADDRESS CC CONNECTIONS BYTES TRANSFERS
//
// BYTES 0: each connection sends until SIGTERM. Else each makes one transfer after another, over a
// new connection, and prints `transfer BYTES NANOSECONDS` for each.
#include "common/run/run_list.h"
#include "sender/group/stack.h"

#include <inttypes.h>
#include <string.h>

#define CARD_BPS 10000000000 // as that of stack: linux by default

static const char *const aioquic_cc[] = {"cubic", "reno", NULL};
static const char *const msquic_cc[] = {"cubic", "bbr", NULL};
static const char *const ngtcp2_cc[] = {"cubic", "reno", "bbr", "bbr2", NULL};
static const char *const quic_go_cc[] = {"reno", NULL};
static const char *const quiche_cc[] = {"cubic", "reno", "bbr2_gcongestion", NULL};
static const char *const quinn_cc[] = {"cubic", "reno", "bbr", NULL};
static const char *const s2n_quic_cc[] = {"cubic", "bbr", NULL};

#define PARAMS(name, controls, default_)                                                           \
	static const struct param name[] = {                                                       \
		{"cc", default_, "the stack's congestion control", UNIT_NONE,                      \
			PARAM_ENUM(struct stack, quic_cc, controls)},                              \
		{"size", "0B",                                                                     \
			"bytes of a transfer, over a connection of its own; 0B: connections send " \
			"until the group's stop",                                                  \
			UNIT_BYTES, PARAM_U64(struct stack, quic_bytes), 0, 1e12},                 \
		{"transfers", "1",                                                                 \
			"with size: how many each of the group's flows makes, one after another",  \
			UNIT_NONE, PARAM_U64(struct stack, quic_transfers), 1, 1e6},               \
		{"qlog", "yes", "whether both ends write a qlog into the run folder", UNIT_NONE,   \
			PARAM_BOOL(struct stack, quic_qlog)},                                      \
		{"kernel", STACK_CURRENT, "the guests' kernel, as tools/weir guests list has it",  \
			UNIT_NONE, PARAM_TEXT(struct stack, kernel)},                              \
		PARAM_END,                                                                         \
	}
PARAMS(aioquic_params, aioquic_cc, "cubic");
PARAMS(msquic_params, msquic_cc, "cubic");
PARAMS(ngtcp2_params, ngtcp2_cc, "cubic");
PARAMS(quic_go_params, quic_go_cc, "reno");
PARAMS(quiche_params, quiche_cc, "cubic");
PARAMS(quinn_params, quinn_cc, "cubic");
PARAMS(s2n_quic_params, s2n_quic_cc, "cubic");

static const struct {
	const char *name, *summary;
	const struct param *params;
} stacks[] = {
	{"aioquic", "Python's, HTTP/3", aioquic_params},
	{"msquic", "Microsoft's; it writes no qlog", msquic_params},
	{"ngtcp2", "Debian's programs of it, HTTP/3", ngtcp2_params},
	{"quic-go", "Go's; its CUBIC is set to Reno", quic_go_params},
	{"quiche", "Cloudflare's; its qlog has no losses", quiche_params},
	{"quinn", "Rust's", quinn_params},
	{"s2n-quic", "Amazon's; it writes no qlog", s2n_quic_params},
};
#define STACKS (sizeof(stacks) / sizeof(stacks[0]))

static struct config_name nth(size_t i) {
	return (struct config_name){i < STACKS ? stacks[i].name : NULL, NULL};
}

void quic_list(struct run_list *l) {
	for (size_t i = 0; i < STACKS; i++)
		run_list_entry(l,
			&(struct run_listed){.kind = "quic",
				.name = stacks[i].name,
				.summary = stacks[i].summary,
				.params = stacks[i].params});
}

int quic_read(struct stack *st, struct config_node *at, struct err *err) {
	struct config_node *map;
	const char *name;
	size_t which;
	int rc;

	if ((rc = config_plugin(at, "quic", &name, &map, err)) < 0
		|| (rc = config_registered(at, "quic", "a QUIC stack", nth, &which, err)) < 0)
		return rc;
	*st = (struct stack){.guest = true,
		.quic = stacks[which].name,
		.cc = "cubic",
		.qdisc = "fq",
		.hosts = 1,
		.card_bps = CARD_BPS};
	if ((rc = config_params(map, st->quic, stacks[which].params, NULL, st, err)) < 0)
		return rc;
	st->quic_control = stacks[which].params[0].choices[st->quic_cc];
	return 0;
}

void quic_run(struct stack *st, bool sends, uint64_t connections) {
	if (sends)
		snprintf(st->run, sizeof(st->run),
			"%s/weir-quic send {peer} %s %" PRIu64 " %" PRIu64 " %" PRIu64, st->quic,
			st->quic_control, connections, st->quic_bytes, st->quic_transfers);
	else
		snprintf(st->run, sizeof(st->run), "%s/weir-quic serve %s", st->quic,
			st->quic_control);
}
