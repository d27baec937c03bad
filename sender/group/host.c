// SPDX-License-Identifier: BSD-3-Clause
#include "sender/group/host.h"

#include "common/base/ns.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

const char *const group_host_names[] = {"ideal", "linux", "genericcc", NULL};

// What `host` stands for: key, text, key, text ... NULL.
static const char *const *const host_sets[] = {
	(const char *const[]){NULL},
	(const char *const[]){"tso", "linux", "gro", "20us", "acks", "linux", "rmem", "6MiB",
		"wmem", "4MiB", "hz", "250", NULL},
	(const char *const[]){"tso", "no", "gro", "0s", "acks", "fixed", "ack_every", "1", NULL},
};
static_assert(sizeof(host_sets) / sizeof(host_sets[0]) + 1
		== sizeof(group_host_names) / sizeof(group_host_names[0]),
	"one for each name");

// Adds what is not written.
static void complete(struct config_node *node, const char *key, const char *text) {
	if (config_get(node, key) == NULL)
		config_add(node, key, text);
}

static bool is(const struct config_node *at, const char *word) {
	return at != NULL && config_text(at) != NULL && strcmp(config_text(at), word) == 0;
}

void group_host(struct config_node *node) {
	const struct config_node *at;

	if (config_kind(node) != CONFIG_MAP)
		return;
	if (is(config_get(node, "ip"), "ipv6"))
		complete(node, "mss", "1440B");
	at = config_get(node, "host");
	for (size_t i = 0; group_host_names[i] != NULL; i++) {
		if (!is(at, group_host_names[i]))
			continue;
		for (const char *const *set = host_sets[i]; *set != NULL; set += 2)
			complete(node, set[0], set[1]);
	}
}

void group_host_modes(struct group *g) {
	const struct cc_ops *cc = g->cc;
	bool wants = cc != NULL && (cc->wants == NULL || cc->wants(g->cc_config));

	g->has_service = wants && cc->open != NULL;
	g->packets = g->has_service && cc->on_packet != NULL;
	g->sampled = g->has_service || (wants && (cc->on_sample != NULL || cc->requests != NULL));
	g->tick_ns = g->hz > 0 ? NS_PER_S / g->hz : 0;
	g->bursts = g->has_service || g->tso != TSO_NO || g->pacing == PACING_FQ;
	g->receiver_modes = 0;
	if (g->gro_ns > 0)
		g->receiver_modes |= RECEIVER_GRO;
	if (g->acks == ACKS_LINUX)
		g->receiver_modes |= RECEIVER_LINUX_ACKS;
	if (g->rmem > 0 || g->read_bps > 0 || (cc != NULL && cc->on_arrival != NULL))
		g->receiver_modes |= RECEIVER_WINDOW;
	g->paced_by_cc = g->pacing == PACING_CC && !g->bursts;
	g->samples = cc != NULL && (cc->rate || cc->samples);
	g->host_paced = g->pacing == PACING_SRTT || g->pacing == PACING_FQ;
}

int group_feedback(struct group *g, struct config_node *node, struct err *err) {
	int own = g->cc == NULL ? CC_FEEDBACK_CLASSIC : (int)g->cc->feedback;
	int feedback = g->ecn_feedback == 0 ? own : g->ecn_feedback - 1;
	bool dctcp = feedback == CC_FEEDBACK_DCTCP;

	if (dctcp && g->peer.guest && strcmp(g->peer.cc, "dctcp") != 0) {
		if (g->ecn_feedback != 0)
			return config_err(config_get(node, "ecn_feedback"), -EINVAL, err,
				"ecn_feedback: a kernel echoes each mark only with DCTCP: peer: "
				"{linux: {cc: dctcp}}, or ecn_feedback: classic");
		dctcp = false;
	}
	g->dctcp_echo = dctcp;
	g->accecn = g->ecn != CC_ECN_OFF && feedback == CC_FEEDBACK_ACCECN;
	return 0;
}

const struct hosts_side *groups_gro_side(const struct groups *gs) {
	const struct hosts_side *side = gs->hosts != NULL ? &gs->hosts->side[FLOWS_REVERSE] : NULL;

	return side != NULL && hosts_ours(side) && side->gro ? side : NULL;
}

void groups_share(struct groups *gs, const struct hosts *hosts) {
	const struct hosts_side *side;

	gs->hosts = hosts;
	side = groups_gro_side(gs);
	for (uint32_t i = 0; side != NULL && i < gs->count; i++) {
		if (hosts_kind(side, i)->gro)
			gs->group[i].receiver_modes |= RECEIVER_GRO;
	}
}
