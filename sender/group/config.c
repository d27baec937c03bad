// SPDX-License-Identifier: BSD-3-Clause
#include "common/net/wire.h"
#include "common/run/run_list.h"
#include "sender/group/control.h"
#include "sender/group/host.h"
#include "sender/source/sizes.h"
#include "sender/source/source.h"
#include "sender/transport.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ECN_AS_CC = CC_ECN_ECT1 + 1, ACK_EVERY_AS_CC = 0 };
static const char *const ip_names[] = {"ipv4", "ipv6", NULL};
static const char *const ecn_names[] = {"off", "ect0", "ect1", "cc", NULL};
static const char *const unheard_names[] = {"refuse", "allow", NULL};
static const char *const feedback_names[] = {"cc", "classic", "dctcp", "accecn", NULL};
static const char *const pacing_names[] = {"cc", "srtt", "fq", "off", NULL};
static const char *const acks_names[] = {"fixed", "linux", NULL};
static const char *const mtu_probing_names[] = {"off", "black_hole", "always", NULL};
static const char *const tso_words[] = {"no", "linux", NULL};
static const char *const ack_every_words[] = {"cc", NULL};

static const struct param params[] = {
	{"name", "", "name in tables and figures; default: the congestion control's", UNIT_NONE,
		PARAM_TEXT(struct group, name)},
	FLOWS_COUNT(struct group, count),
	{"start", "0s", "start of the first flow", UNIT_TIME_NS, PARAM_U64(struct group, start_ns),
		0, 1e14},
	{"stop", "0s", "no new data after this time; 0s: never", UNIT_TIME_NS,
		PARAM_U64(struct group, stop_ns), 0, 1e14},
	{"stagger", "0s", "time between the starts of two flows", UNIT_TIME_NS,
		PARAM_U64(struct group, stagger_ns), 0, 1e13},
	{"stop_stagger", "0s", "time between the stops of two flows, the first at stop",
		UNIT_TIME_NS, PARAM_U64(struct group, stop_stagger_ns), 0, 1e13},
	{"jitter", "0s", "each flow starts later by a uniform draw up to this", UNIT_TIME_NS,
		PARAM_U64(struct group, jitter_ns), 0, 1e13},
	{"ip", "ipv4", "of its packets, in both directions", UNIT_NONE,
		PARAM_ENUM(struct group, ip, ip_names)},
	{"mss", "1460B",
		"TCP maximum segment size: payload plus TCP options; with ip: ipv6, whose header "
		"is 20 bytes longer, 1440B unless written",
		UNIT_BYTES, PARAM_U64(struct group, mss), 88, 9000},
	FLOWS_BASE_RTT(struct group, base_rtt_ns),
	{"host", "ideal",
		"what its hosts are, in one word that sets parameters which are not written: "
		"ideal: none; linux: tso: linux, gro: 20us, acks: linux, rmem: 6MiB, "
		"wmem: 4MiB, hz: 250; "
		"genericcc: ack_every: 1 (the sender over UDP of that name)",
		UNIT_NONE, PARAM_ENUM(struct group, host, group_host_names)},
	{"hz", "0",
		"ticks per second of its hosts' kernels, which their timers and some algorithms "
		"count (CONFIG_HZ); 0: timers are exact",
		UNIT_NONE, PARAM_U64(struct group, hz), 10, 10000, .zero = true},
	{"ecn", "cc",
		"ECN codepoint of data packets; cc: the one that the algorithm asks for (ect0 "
		"instead of ect1 where the peer has only classic feedback), else off",
		UNIT_NONE, PARAM_ENUM(struct group, ecn, ecn_names)},
	{"dscp", "0", "of its packets in both directions (RFC 2474)", UNIT_NONE,
		PARAM_U64(struct group, dscp), 0, 63},
	{"ecn_unheard", "refuse",
		"ecn: with an algorithm that does not answer marks: refuse it, "
		"or allow it and ignore the echoes",
		UNIT_NONE, PARAM_ENUM(struct group, ecn_unheard, unheard_names)},
	{"ecn_feedback", "cc",
		"receiver: cc: what the algorithm needs, else classic (RFC 3168): CE is echoed "
		"until CWR; dctcp (RFC 8257): as often as it came; accecn (RFC 9768): "
		"ACKs carry a counter",
		UNIT_NONE, PARAM_ENUM(struct group, ecn_feedback, feedback_names)},
	{"pacing", "cc",
		"cc: as the algorithm says; srtt: at least cwnd/srtt; fq: the same as Linux's fq "
		"does it, not before the 11th segment; off",
		UNIT_NONE, PARAM_ENUM(struct group, pacing, pacing_names)},
	{"tso", "no",
		"segments that leave back to back in one pacing slot: no: one; linux: 1 ms of data "
		"at Linux's pacing rate, 2 to 45 (tcp_tso_autosize); or so many",
		UNIT_NONE, PARAM_U64(struct group, tso), 2, 64, .choices = tso_words},
	{"ack_every", "cc",
		"receiver: full segments per ACK; cc: 1 where the algorithm takes a delayed ACK "
		"for a queue, else 2 (RFC 5681)",
		UNIT_NONE, PARAM_U64(struct group, ack_every), 1, 64, .choices = ack_every_words},
	{"ack_delay", "40ms", "receiver: longest time an ACK is held back", UNIT_TIME_NS,
		PARAM_U64(struct group, ack_delay_ns), 0, 5e8},
	{"acks", "fixed",
		"receiver: fixed: ack_every, ack_delay; linux: every segment up to 16 at first, "
		"then every second or after an adaptive time (quick-ACK), and compressed SACKs",
		UNIT_NONE, PARAM_ENUM(struct group, acks, acks_names)},
	{"gro", "0s",
		"receiver: adjacent segments that arrive within this time are one to TCP, up to "
		"64 KB, as a network card's interrupt brings them (GRO)",
		UNIT_TIME_NS, PARAM_U64(struct group, gro_ns), 0, 1e7},
	{"rwnd", "1GB", "receive window", UNIT_BYTES, PARAM_U64(struct group, rwnd), 2000, 1.07e9},
	{"rmem", "0B",
		"receive buffer that grows as Linux's (tcp_rcv_space_adjust), at most to this; "
		"half of it is window, and rwnd is its bound. 0B: "
		"the window is rwnd from the start",
		UNIT_BYTES, PARAM_U64(struct group, rmem), 8192, 2e9, .zero = true},
	{"wmem", "0B",
		"send buffer that grows with the window as Linux's (tcp_sndbuf_expand), at most to "
		"this; what is not acknowledged is in it, and the application writes again once a "
		"third is free. 0B: without a limit",
		UNIT_BYTES, PARAM_U64(struct group, wmem), 8192, 2e9, .zero = true},
	{"read_rate", "0bit",
		"rate at which the receiving application reads, of payload; 0bit: at once",
		UNIT_RATE_BPS, PARAM_U64(struct group, read_bps), 1000, 1e12, .zero = true},
	{"rto_min", "200ms", "least the retransmission timeout exceeds srtt (Linux: 200ms)",
		UNIT_TIME_NS, PARAM_U64(struct group, rto_min_ns), 1e6, 6e10},
	{"rto_initial", "1s", "retransmission timeout before the first RTT sample", UNIT_TIME_NS,
		PARAM_U64(struct group, rto_initial_ns), 1e6, 6e10},
	{"rto_max", "60s", "cap of the timeout's backoff", UNIT_TIME_NS,
		PARAM_U64(struct group, rto_max_ns), 1e9, 3e11},
	{"retries", "15",
		"timeouts, or unanswered probes of a closed window, after which a flow gives up",
		UNIT_NONE, PARAM_U64(struct group, retries), 1, 100},
	{"sack", "yes", "selective acknowledgements (RFC 2018)", UNIT_NONE,
		PARAM_BOOL(struct group, sack)},
	{"timestamps", "yes", "TCP timestamps (RFC 7323)", UNIT_NONE,
		PARAM_BOOL(struct group, timestamps)},
	{"tlp", "yes", "tail loss probe (RFC 8985)", UNIT_NONE, PARAM_BOOL(struct group, tlp)},
	{"frto", "yes", "detect spurious timeouts without timestamps (RFC 5682)", UNIT_NONE,
		PARAM_BOOL(struct group, frto)},
	{"mtu_probing", "off",
		"packetization layer path MTU discovery (RFC 4821): black_hole: after 4 timeouts "
		"in a row segments of 1024 bytes, then larger ones if they arrive; always: from "
		"the start (Linux: tcp_mtu_probing 0, 1, 2)",
		UNIT_NONE, PARAM_ENUM(struct group, mtu_probing, mtu_probing_names)},
	PARAM_END,
};

static const struct param plugins[] = {
	{"cc", "",
		"congestion control; required, but of a Linux stack, which has its own, and of "
		"source: udp, which has none",
		UNIT_NONE, PARAM_PLUGIN("cc")},
	{"source", "bulk", "when flows send, and how much", UNIT_NONE, PARAM_PLUGIN("source")},
	FLOWS_PATH,
	{"stack", "weir", "whose TCP sends", UNIT_NONE, PARAM_PLUGIN("stack")},
	{"peer", "", "whose TCP receives; default: as stack", UNIT_NONE, PARAM_PLUGIN("stack")},
	{"hosts", "", "the name of its hosts, where a side has several kinds (hosts)", UNIT_NONE,
		PARAM_SCALAR},
	PARAM_END,
};

void groups_observers(const struct groups *gs, struct tel_run *run) {
	static_assert(CC_OBSERVED == TEL_OBSERVED, "as many as a record holds");
	for (uint32_t i = 0; i < gs->count; i++) {
		const struct cc_ops *cc = gs->group[i].cc;

		if (cc != NULL)
			tel_observer(run, TEL_STREAM_CC, cc->name, cc->observed);
	}
}

static void laws_list(struct run_list *l) {
	const struct base_rtt_law *law;

	for (size_t i = 0; (law = base_rtt_law(i)) != NULL; i++)
		run_list_entry(l,
			&(struct run_listed){.kind = "base_rtt",
				.name = law->name,
				.summary = law->summary,
				.params = law->params,
				.also = {law->also}});
}

void groups_list(struct run_list *l) {
	controls_list(l);
	for (const struct source_ops *const *o = source_all; *o != NULL; o++)
		run_list_entry(l,
			&(struct run_listed){.kind = "source",
				.name = (*o)->name,
				.summary = (*o)->summary,
				.reference = (*o)->reference,
				.params = (*o)->params,
				.also = {(*o)->also}});
	stacks_list(l);
	laws_list(l);
	run_list_entry(l,
		&(struct run_listed){.kind = "flows",
			.name = "flows",
			.summary = "a group of flows: one item of the list `flows`",
			.params = params,
			.also = {plugins}});
	run_list_entry(l,
		&(struct run_listed){.kind = "flows",
			.name = "flows.path",
			.summary = "paths of a group's packets: `path` of a group",
			.params = flows_path_params});
	run_list_entry(l,
		&(struct run_listed){.kind = "flows",
			.name = "source.sizes",
			.summary = "sizes of a source's transfers: `sizes` of a source",
			.params = sizes_params,
			.also = {sizes_file_params}});
}

// Whose TCP it is. A kernel's control has nothing but a name here.
static int group_stack(struct group *g, struct config_node *node, struct err *err) {
	int rc = stack_read(&g->stack, node, "stack", err);

	g->peer = g->stack;
	g->peer.reset_ns = 0; // of the other side
	if (rc == 0)
		rc = stack_read(&g->peer, node, "peer", err);
	if (rc < 0)
		return rc;
	if ((g->stack.quic != NULL) != (g->peer.quic != NULL))
		return config_err(config_get(node, "peer"), -EINVAL, err,
			"peer: a QUIC stack needs one at the other side: leave peer out, or write "
			"peer: {quic: NAME}");
	if (g->stack.quic != NULL && g->ip == GROUP_IPV6)
		return config_err(config_get(node, "ip"), -EINVAL, err,
			"ip: the programs of QUIC stacks have IPv4 alone");
	if (g->stack.quic != NULL) {
		quic_run(&g->stack, true, g->count);
		quic_run(&g->peer, false, g->count);
	}
	if ((g->stack.guest || g->peer.guest) && g->ip_header + WIRE_TCP + g->mss > 1500)
		return config_err(node, -EINVAL, err,
			"mss: a Linux guest's card takes frames of 1514 bytes: %uB at most",
			1500 - g->ip_header - WIRE_TCP);
	if ((g->stack.run[0] != '\0' || g->peer.run[0] != '\0') && g->dscp > 0)
		return config_err(config_get(node, "dscp"), -EINVAL, err,
			"dscp: with run a program marks its packets itself (IP_TOS; iperf3 -S)");
	if (!g->stack.guest)
		return 0;
	if (config_get(node, "cc") != NULL)
		return config_err(config_get(node, "cc"), -EINVAL, err,
			g->stack.quic != NULL ? "cc: with stack: quic it is the stack's own: "
						"stack: {quic: {NAME: {cc: %s}}}"
					      : "cc: with stack: linux it is the kernel's: stack: "
						"{linux: {cc: %s}}",
			g->stack.quic != NULL ? g->stack.quic_control : g->stack.cc);
	g->control = g->stack.quic != NULL ? g->stack.quic_control : g->stack.cc;
	if (g->name[0] == '\0' && g->stack.quic != NULL)
		snprintf(g->name, sizeof(g->name), "%s %.40s", g->stack.quic, g->control);
	if (g->name[0] == '\0') {
		memcpy(g->name, "linux ", 6);
		memcpy(g->name + 6, g->stack.cc,
			strlen(g->stack.cc) + 1); // one that the kernel has
	}
	return 0;
}

// Whether the times of starts and stops go together.
static int group_times(const struct group *g, struct config_node *node, struct err *err) {
	const struct config_node *at = config_get(node, "stop_stagger");
	uint64_t last = g->count - 1;

	if (g->stop_ns > 0 && g->stop_ns <= g->start_ns)
		return config_err(node, -EINVAL, err, "stop must be later than start");
	if (g->stop_stagger_ns == 0)
		return 0;
	if (g->stop_ns == 0)
		return config_err(at, -EINVAL, err,
			"stop_stagger: without stop no flow stops; write when the first one does");
	if (source_scheduled(g->source))
		return config_err(at, -EINVAL, err,
			"stop_stagger: source %s says when flows begin and end", g->source->name);
	if (g->stop_ns + last * g->stop_stagger_ns
		<= g->start_ns + last * g->stagger_ns + g->jitter_ns)
		return config_err(at, -EINVAL, err,
			"stop_stagger: the last flow would stop before it starts");
	return 0;
}

// Whether the source goes with the group's other keys.
static int source_fits(struct group *g, struct config_node *node, struct err *err) {
	g->probes = g->source->probes;
	g->keeps = source_keeps(g->source, g->source_config);
	if ((source_scheduled(g->source) || g->source->transport != NULL)
		&& (g->stack.guest || g->peer.guest))
		return config_err(config_get(node, "source"), -EINVAL, err,
			"source: %s is for Weir's own stack at both ends; "
			"with a Linux guest there is bulk or size",
			g->source->name);
	if (g->source->kind == SOURCE_ARRIVALS && (g->stagger_ns > 0 || g->jitter_ns > 0))
		return config_err(config_get(node, g->stagger_ns > 0 ? "stagger" : "jitter"),
			-EINVAL, err, "%s: source %s says when flows start",
			g->stagger_ns > 0 ? "stagger" : "jitter", g->source->name);
	return 0;
}

static struct config_name nth_source(size_t i) {
	return (struct config_name){source_all[i] != NULL ? source_all[i]->name : NULL, NULL};
}

static int group_source(struct group *g, struct config_node *node, struct err *err) {
	struct config_node *at = config_get(node, "source"), *params_node = NULL;
	const char *name;
	size_t which;
	int rc;

	if (at == NULL) {
		config_add(node, "source", "bulk");
		at = config_get(node, "source");
	}
	if ((rc = config_plugin(at, "source", &name, &params_node, err)) < 0)
		return rc;
	if ((rc = config_registered(at, "source", "a source", nth_source, &which, err)) < 0)
		return rc;
	g->source = source_all[which];
	rc = config_object(params_node, g->source->name, g->source->params, g->source->also,
		g->source->config_size, &g->source_config, err);
	if (rc == 0 && g->source->configure != NULL)
		rc = g->source->configure(g->source_config, params_node, err);
	return rc < 0 ? rc : source_fits(g, node, err);
}

static bool answers_ecn(const struct group *g) {
	return g->stack.guest || (g->cc != NULL && g->cc->ecn);
}

static int group_init(struct group *g, struct config_node *node, struct err *err) {
	int rc;

	group_host(node);
	rc = config_params(node, "flows", params, plugins, g, err);
	g->ip_header = wire_ip_header(g->ip == GROUP_IPV6);
	if (rc == 0)
		rc = group_stack(g, node, err);
	if (rc == 0)
		rc = group_source(g, node, err);
	if (rc == 0)
		rc = group_control(g, node, err);
	if (rc == 0)
		rc = stack_fits(&g->stack, g->count, g->stagger_ns + g->jitter_ns, g->source->name,
			node, err);
	if (rc < 0)
		return rc;
	if ((rc = group_times(g, node, err)) < 0)
		return rc;
	if (g->ecn == ECN_AS_CC)
		g->ecn = g->cc == NULL ? CC_ECN_OFF : (int)g->cc->codepoint;
	if (g->ack_every == ACK_EVERY_AS_CC)
		g->ack_every = g->cc != NULL && g->cc->ack_each ? 1 : 2;
	if (g->ecn != CC_ECN_OFF && !answers_ecn(g) && !g->ecn_unheard)
		return config_err(config_get(node, "ecn"), -EINVAL, err,
			"ecn: %s does not answer ECN marks and would starve flows that do: "
			"write ecn: off, or ecn_unheard: allow to study that",
			g->control);
	if (g->rwnd < g->mss)
		return config_err(node, -EINVAL, err, "rwnd must hold a segment: mss or more");
	if (g->rmem > 0 && g->rmem < 4 * g->mss)
		return config_err(
			node, -EINVAL, err, "rmem must hold four segments: 4 * mss or more");
	if (g->wmem > 0 && g->wmem < 4 * g->mss)
		return config_err(
			node, -EINVAL, err, "wmem must hold four segments: 4 * mss or more");
	group_host_modes(g);
	if ((rc = group_feedback(g, node, err)) < 0)
		return rc;
	g->payload = (uint32_t)g->mss - (g->timestamps ? 12u : 0u);
	if (g->transport != NULL)
		g->payload = g->transport->payload(g->source_config);
	return 0;
}

int groups_init(struct groups *gs, struct config_node *node, struct err *err) {
	struct flows all;
	int rc;

	memset(gs, 0, sizeof(*gs));
	if ((rc = flows_read(&all, node, err)) < 0)
		return rc;
	for (size_t i = 0; i < all.groups; i++) {
		struct group *g = &gs->group[gs->count++];

		rc = group_init(g, config_at(node, i), err);
		if (rc < 0) {
			groups_fini(gs);
			return rc;
		}
		g->first = gs->flows;
		gs->flows += (uint32_t)g->count;
		gs->dscp |= g->dscp > 0;
		gs->ipv6 |= g->ip == GROUP_IPV6;
		gs->datagrams |= g->transport != NULL;
	}
	return 0;
}

int groups_draw(struct groups *gs, struct config_node *flows, uint64_t seed, uint64_t duration_ns,
	struct err *err) {
	struct flows all;
	int rc = flows_read(&all, flows, err);

	if (rc == 0)
		rc = base_rtts_init(&gs->base_rtts, &all, flows, seed, duration_ns, err);
	for (uint32_t i = 0; rc == 0 && i < gs->count; i++)
		gs->group[i].base_rtt_ns = gs->base_rtts.group[i].max_ns;
	return rc;
}

const struct config_node *groups_guest(const struct groups *gs, struct config_node *flows) {
	for (uint32_t i = 0; i < gs->count; i++) {
		if (gs->group[i].stack.guest || gs->group[i].peer.guest)
			return config_at(flows, i);
	}
	return NULL;
}

void groups_fini(struct groups *gs) {
	for (uint32_t i = 0; i < gs->count; i++) {
		struct group *g = &gs->group[i];

		if (g->source_config != NULL && g->source->fini != NULL)
			g->source->fini(g->source_config);
		free(g->cc_config);
		free(g->source_config);
	}
	base_rtts_free(&gs->base_rtts);
	gs->count = 0;
	gs->flows = 0;
}
