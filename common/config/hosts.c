// SPDX-License-Identifier: BSD-3-Clause
#include "common/config/hosts.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

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
	{"coalesce", "0s", "least time between two interrupts of a card for what arrives",
		UNIT_TIME_NS, PARAM_U64(struct hosts_side, coalesce_ns), 0, 1e7},
	{"cpu", "0s",
		"a processor's time for each packet that arrives; it takes them as long as there "
		"are "
		"some, without an interrupt (NAPI). 0s: none",
		UNIT_TIME_NS, PARAM_U64(struct hosts_side, cpu_ns), 0, 1e6},
	{"ring", "1024", "packets that a card holds for its processor; it drops others (ring)",
		UNIT_NONE, PARAM_U64(struct hosts_side, ring), 1, 65536},
	{"gro", "yes",
		"adjacent segments that one interrupt brings are one to TCP, up to 64 KB; "
		"of ACKs nothing is joined",
		UNIT_NONE, PARAM_BOOL(struct hosts_side, gro)},
	{"gro_flows", "64",
		"of which a card's GRO holds segments at a time, in lists of 8 by hash; a list "
		"that is "
		"full hands over its oldest. Linux: 64 since 4.19, 8 before",
		UNIT_NONE, PARAM_U64(struct hosts_side, gro_flows), 8, 64},
	PARAM_END,
};

// Of a group's keys, those that are its hosts'.
static const struct param sending_keys[] = {
	{"tso", "", "as a group's", UNIT_NONE, PARAM_SCALAR},
	{"hz", "", "as a group's", UNIT_NONE, PARAM_SCALAR},
	PARAM_END,
};
static const struct param receiving_keys[] = {
	{"acks", "", "as a group's", UNIT_NONE, PARAM_SCALAR},
	{"rmem", "", "as a group's", UNIT_NONE, PARAM_SCALAR},
	PARAM_END,
};
const struct param *const hosts_group_params[FLOWS_DIRECTIONS] = {sending_keys, receiving_keys};

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

static int groups_complete(struct hosts_side *side, const struct param *keys,
	struct config_node *flows, struct err *err) {
	bool receiving = keys == receiving_keys;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < config_count(flows); i++) {
		struct config_node *group = config_at(flows, i);

		if (config_kind(group) != CONFIG_MAP)
			continue;
		for (const struct param *p = keys; p->name != NULL; p++) {
			struct config_node *at = config_get(side->node, p->name);

			if (at != NULL && config_text(at) != NULL
				&& config_get(group, p->name) == NULL)
				config_add(group, p->name, config_text(at));
		}
		if (receiving)
			rc = group_gro(group, err);
	}
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
	for (int d = 0; rc == 0 && node != NULL && d < FLOWS_DIRECTIONS; d++) {
		struct hosts_side *side = &h->side[d];

		side->node = config_get(node, hosts_params[d].name);
		if (side->node == NULL)
			continue;
		side->node = config_section(node, hosts_params[d].name);
		rc = config_params(side->node, hosts_params[d].of, hosts_side_params,
			hosts_group_params[d], side, err);
		if (rc == 0 && flows != NULL && config_kind(flows) == CONFIG_LIST)
			rc = groups_complete(side, hosts_group_params[d], flows, err);
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
