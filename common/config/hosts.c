// SPDX-License-Identifier: BSD-3-Clause
#include "common/config/hosts.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

const struct param hosts_params[] = {
	{"sending", "", "those that send data and receive ACKs", UNIT_NONE,
		PARAM_MAP("hosts.sending")},
	{"receiving", "", "those that receive data and send ACKs", UNIT_NONE,
		PARAM_MAP("hosts.receiving")},
	PARAM_END,
};
static_assert(FLOWS_DIRECTIONS == 2, "rows of hosts_params, in the order of the directions");

const struct param hosts_side_params[] = {
	{"count", "1", "number of hosts; a flow's is its number modulo this", UNIT_NONE,
		PARAM_U64(struct hosts_side, count), 1, 1024},
	{"card", "0bit", "rate at which a card sends, on the wire; 0bit: at once", UNIT_RATE_BPS,
		PARAM_U64(struct hosts_side, card_bps), 1e3, 1e12, .zero = true},
	{"limit", "10000pkt", "queue of each card (pfifo), without the frame on the wire",
		UNIT_NONE, PARAM_LIMIT(struct hosts_side, limit), 1e-6, 1e15},
	{"coalesce", "0s", "least time between two interrupts of a card for what arrives",
		UNIT_TIME_NS, PARAM_U64(struct hosts_side, coalesce_ns), 0, 1e7},
	{"cpu", "0s",
		"a processor's time for each packet that arrives; while there are some it needs "
		"no interrupt (NAPI). 0s: none",
		UNIT_TIME_NS, PARAM_U64(struct hosts_side, cpu_ns), 0, 1e6},
	{"ring", "1024", "packets that a card holds for its processor; it drops others (ring)",
		UNIT_NONE, PARAM_U64(struct hosts_side, ring), 1, 65536},
	{"gro", "yes",
		"adjacent segments that one interrupt brings are one to TCP, up to 64 KB; "
		"of ACKs nothing is joined",
		UNIT_NONE, PARAM_BOOL(struct hosts_side, gro)},
	{"gro_flows", "64",
		"of which a card's GRO holds segments at a time, in lists of 8 by hash; a full "
		"list hands over its oldest. Linux: 64 since 4.19, 8 before",
		UNIT_NONE, PARAM_U64(struct hosts_side, gro_flows), 8, 64},
	PARAM_END,
};

#define GROUPS_KEY(name)                                                                           \
	{ name, "", "as a group's", UNIT_NONE, PARAM_SCALAR }
#define GUESTS_KEY                                                                                 \
	{                                                                                          \
		"qdisc", "", "of Linux guests, as their stack's; Weir's cards have a pfifo",       \
			UNIT_NONE, PARAM_SCALAR                                                    \
	}
static const struct param sending_keys[] = {
	GROUPS_KEY("tso"), GROUPS_KEY("hz"), GUESTS_KEY, PARAM_END};
static const struct param receiving_keys[] = {
	GROUPS_KEY("acks"), GROUPS_KEY("rmem"), GUESTS_KEY, PARAM_END};
const struct param *const hosts_group_params[FLOWS_DIRECTIONS] = {sending_keys, receiving_keys};

// Of hosts that are guests: what they have, and what their stack calls it.
static const struct param guests_params[] = {
	{"count", "hosts", "", UNIT_NONE, PARAM_SCALAR},
	{"card", "card", "", UNIT_NONE, PARAM_SCALAR},
	{"coalesce", "coalesce", "", UNIT_NONE, PARAM_SCALAR},
	{"qdisc", "qdisc", "", UNIT_NONE, PARAM_SCALAR},
	PARAM_END,
};

// Adds to `to` what the hosts have and it has not.
static void complete(
	struct config_node *to, const char *key, struct config_node *side, const char *of) {
	struct config_node *at = config_get(side, of);

	if (at != NULL && config_text(at) != NULL && config_get(to, key) == NULL)
		config_add(to, key, config_text(at));
}

// A group's `gro` gathers each flow's segments by themselves, a card's those of all.
static int group_gro(struct config_node *group, struct err *err) {
	struct config_node *at = config_get(group, "gro");
	double ns;

	if (at == NULL)
		config_add(group, "gro", "0s"); // also of `host: linux`
	else if (config_text(at) == NULL || unit_parse(config_text(at), UNIT_TIME_NS, &ns) < 0
		|| ns > 0)
		return config_err(at, -EINVAL, err,
			"gro: with hosts.receiving the card joins segments: write coalesce there");
	return 0;
}

// The guests' parameters, if the group has guests at this side; NULL: it has not.
static int group_guests(struct config_node *group, enum flows_direction side,
	struct config_node **guests, struct err *err) {
	struct config_node *at = config_get(group, side == FLOWS_FORWARD ? "stack" : "peer");
	const char *name;
	int rc;

	*guests = NULL;
	if (at == NULL && side == FLOWS_REVERSE && config_get(group, "stack") != NULL) {
		rc = group_guests(group, FLOWS_FORWARD, guests, err);
		return *guests == NULL
			? rc
			: config_err(group, -EINVAL, err,
				"hosts.receiving: write the guests that receive, too: "
				"peer: {linux: {}}");
	}
	if (at == NULL)
		return 0;
	rc = config_plugin(at, "stack", &name, guests, err);
	if (rc == 0 && strcasecmp(name, "linux") != 0)
		*guests = NULL;
	return rc;
}

static int group_complete(struct hosts_side *side, enum flows_direction d,
	struct config_node *group, struct err *err) {
	const struct param *keys = hosts_group_params[d];
	struct config_node *guests;
	int rc = group_guests(group, d, &guests, err);

	if (rc < 0)
		return rc;
	side->guests = guests != NULL;
	for (const struct param *p = guests_params; side->guests && p->name != NULL; p++)
		complete(guests, p->def, side->node, p->name);
	if (side->guests)
		return 0;
	for (const struct param *p = keys; p->name != NULL && p->type == PARAM_TYPE_SCALAR; p++) {
		if (strcmp(p->name, "qdisc") != 0)
			complete(group, p->name, side->node, p->name);
	}
	return d == FLOWS_REVERSE ? group_gro(group, err) : 0;
}

static int groups_complete(struct hosts_side *side, enum flows_direction d,
	struct config_node *flows, struct err *err) {
	bool ours = false;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < config_count(flows); i++) {
		struct config_node *group = config_at(flows, i);
		bool before = side->guests;

		if (config_kind(group) != CONFIG_MAP)
			continue;
		side->guests = false;
		rc = group_complete(side, d, group, err);
		ours |= !side->guests;
		if (rc == 0 && ours && (before || side->guests))
			return config_err(group, -EINVAL, err,
				"hosts.%s: all of its flows have Linux guests, or none",
				hosts_params[d].name);
	}
	if (rc == 0 && !side->guests && config_get(side->node, "qdisc") != NULL)
		return config_err(config_get(side->node, "qdisc"), -EINVAL, err,
			"qdisc: of Linux guests only; Weir's cards have a pfifo of `limit`");
	return rc;
}

int hosts_read(
	struct hosts *h, struct config_node *root, struct config_node *flows, struct err *err) {
	static const struct param none[] = {PARAM_END};
	struct config_node *node = config_get(root, "hosts");
	int rc = 0;

	memset(h, 0, sizeof(*h));
	if (node != NULL)
		rc = config_params(node, "hosts", none, hosts_params, NULL, err);
	for (enum flows_direction d = 0; rc == 0 && node != NULL && d < FLOWS_DIRECTIONS; d++) {
		struct hosts_side *side = &h->side[d];

		side->node = config_get(node, hosts_params[d].name);
		if (side->node == NULL)
			continue;
		side->node = config_section(node, hosts_params[d].name);
		// Before its defaults are in the tree: what is not written, groups keep.
		if (flows != NULL && config_kind(flows) == CONFIG_LIST)
			rc = groups_complete(side, d, flows, err);
		if (rc == 0 && side->guests)
			rc = config_params(
				side->node, hosts_params[d].of, none, guests_params, NULL, err);
		else if (rc == 0)
			rc = config_params(side->node, hosts_params[d].of, hosts_side_params,
				hosts_group_params[d], side, err);
	}
	return rc;
}

int hosts_none(struct config_node *root, struct err *err) {
	const struct config_node *node = config_get(root, "hosts");

	return node == NULL
		? 0
		: config_err(node, -EINVAL, err,
			"hosts: those of a live run are real, with cards of their own; run it "
			"without --live, or without hosts");
}
