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

#define NAME_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
#define KIND_NAME                                                                                  \
	{                                                                                          \
		"name", "", "of one of several kinds of hosts, which groups name (hosts)",         \
			UNIT_NONE, PARAM_TEXT(struct hosts_kind, name)                             \
	}
static const struct param name_params[] = {KIND_NAME, PARAM_END};

const struct param hosts_side_params[] = {
	KIND_NAME,
	{"count", "1", "number of hosts; a flow's is its number modulo this", UNIT_NONE,
		PARAM_U64(struct hosts_kind, count), 1, 1024},
	{"card", "0bit", "rate at which a card sends, on the wire; 0bit: at once", UNIT_RATE_BPS,
		PARAM_U64(struct hosts_kind, card_bps), 1e3, 1e12, .zero = true},
	{"limit", "10000pkt", "queue before each card, without the frame on the wire", UNIT_NONE,
		PARAM_LIMIT(struct hosts_kind, limit), 1e-6, 1e15},
	{"qdisc", "pfifo",
		"discipline of that queue: pfifo, fq (a queue per flow: drr), or the name of "
		"another "
		"one, with its defaults",
		UNIT_NONE, PARAM_TEXT(struct hosts_kind, qdisc)},
	{"coalesce", "0s", "least time between two interrupts of a card for what arrives",
		UNIT_TIME_NS, PARAM_U64(struct hosts_kind, coalesce_ns), 0, 1e7},
	{"cpu", "0s",
		"a processor's time for each packet that arrives; while there are some it needs "
		"no interrupt (NAPI). 0s: none",
		UNIT_TIME_NS, PARAM_U64(struct hosts_kind, cpu_ns), 0, 1e6},
	{"ring", "1024", "packets that a card holds for its processor; it drops others (ring)",
		UNIT_NONE, PARAM_U64(struct hosts_kind, ring), 1, 65536},
	{"gro", "yes",
		"adjacent segments that one interrupt brings are one to TCP, up to 64 KB; "
		"of ACKs nothing is joined",
		UNIT_NONE, PARAM_BOOL(struct hosts_kind, gro)},
	{"gro_flows", "64",
		"of which a card's GRO holds segments at a time, in lists of 8 by hash; a full "
		"list hands over its oldest. Linux: 64 since 4.19, 8 before",
		UNIT_NONE, PARAM_U64(struct hosts_kind, gro_flows), 8, 64},
	PARAM_END,
};

#define GROUPS_KEY(name)                                                                           \
	{ name, "", "as a group's", UNIT_NONE, PARAM_SCALAR }
static const struct param sending_keys[] = {
	GROUPS_KEY("tso"), GROUPS_KEY("hz"), GROUPS_KEY("wmem"), PARAM_END};
static const struct param receiving_keys[] = {GROUPS_KEY("acks"), GROUPS_KEY("rmem"), PARAM_END};
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

// Adds to a group what the hosts of its kind have; *ours: they are no guests.
static int group_complete(const struct hosts_kind *kind, enum flows_direction d,
	struct config_node *group, bool *ours, struct err *err) {
	struct config_node *guests;
	int rc = group_guests(group, d, &guests, err);

	*ours = guests == NULL;
	if (rc < 0)
		return rc;
	for (const struct param *p = guests_params; guests != NULL && p->name != NULL; p++)
		complete(guests, p->def, kind->node, p->name);
	if (guests != NULL)
		return 0;
	for (const struct param *p = hosts_group_params[d]; p->name != NULL; p++)
		complete(group, p->name, kind->node, p->name);
	return d == FLOWS_REVERSE ? group_gro(group, err) : 0;
}

// -1: none of the side's kinds has that name.
static int kind_find(const struct hosts_side *side, const char *name) {
	for (uint32_t k = 0; name != NULL && k < side->kinds; k++) {
		const struct config_node *own = config_get(side->kind[k].node, "name");

		if (own != NULL && config_text(own) != NULL && strcmp(config_text(own), name) == 0)
			return (int)k;
	}
	return -1;
}

// Finds the kind that a group's flows are on. A side of one kind needs no name.
static int group_kind(struct hosts *h, enum flows_direction d, size_t i, struct config_node *group,
	struct err *err) {
	const struct config_node *at = config_get(group, "hosts");
	const char *name = at != NULL ? config_text(at) : NULL;
	int kind = kind_find(&h->side[d], name), other = kind_find(&h->side[1 - d], name);

	if (at != NULL && kind < 0 && other < 0)
		return config_err(at, -EINVAL, err, "hosts: no hosts have the name '%s'",
			name != NULL ? name : "");
	if (kind < 0 && h->side[d].kinds > 1)
		return config_err(at != NULL ? at : group, -EINVAL, err,
			"hosts: hosts.%s has several kinds: write the name of the group's",
			hosts_params[d].name);
	h->side[d].group_kind[i] = (uint8_t)(kind < 0 ? 0 : kind);
	return 0;
}

static int groups_complete(
	struct hosts *h, enum flows_direction d, struct config_node *flows, struct err *err) {
	struct hosts_side *side = &h->side[d];
	bool ours = false;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < config_count(flows) && i < GROUPS_MAX; i++) {
		struct config_node *group = config_at(flows, i);
		bool own = false;

		if (config_kind(group) != CONFIG_MAP)
			continue;
		if ((rc = group_kind(h, d, i, group, err)) < 0)
			return rc;
		rc = group_complete(hosts_kind(side, (uint32_t)i), d, group, &own, err);
		ours |= own;
		side->guests |= !own;
		if (rc == 0 && ours && side->guests)
			return config_err(group, -EINVAL, err,
				"hosts.%s: all of its flows have Linux guests, or none",
				hosts_params[d].name);
	}
	return rc;
}

// One kind, or a list of them.
static int kinds_find(
	struct hosts_side *side, struct config_node *node, const char *name, struct err *err) {
	struct config_node *at = config_get(node, name);

	if (at == NULL)
		return 0;
	if (config_kind(at) != CONFIG_LIST) {
		side->kind[side->kinds++].node = config_section(node, name);
		return 0;
	}
	if (config_count(at) == 0 || config_count(at) > HOSTS_KINDS_MAX)
		return config_err(at, -EINVAL, err, "hosts.%s: 1 to %d kinds of hosts", name,
			HOSTS_KINDS_MAX);
	for (size_t i = 0; i < config_count(at); i++) {
		struct config_node *kind = config_at(at, i), *own = NULL;

		if (config_kind(kind) == CONFIG_MAP)
			own = config_get(kind, "name");
		if (own == NULL || config_text(own) == NULL)
			return config_err(kind, -EINVAL, err,
				"hosts.%s: of several kinds each is a map with a name", name);
		if (strspn(config_text(own), NAME_LETTERS) != strlen(config_text(own)))
			return config_err(
				own, -EINVAL, err, "name: letters, digits, _ and - are a name");
		if (kind_find(side, config_text(own)) >= 0)
			return config_err(own, -EINVAL, err, "hosts.%s: two kinds are called %s",
				name, config_text(own));
		side->kind[side->kinds++].node = kind;
	}
	return 0;
}

static int side_read(struct hosts_side *side, enum flows_direction d, struct err *err) {
	const char *what = hosts_params[d].of;
	int rc = 0;

	for (uint32_t k = 0; rc == 0 && k < side->kinds; k++) {
		struct hosts_kind *kind = &side->kind[k];

		if (side->guests) {
			rc = config_params(kind->node, what, name_params, guests_params, kind, err);
			continue;
		}
		rc = config_params(
			kind->node, what, hosts_side_params, hosts_group_params[d], kind, err);
		kind->first = side->count;
		side->count += (uint32_t)kind->count;
		side->gro |= kind->gro;
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
	for (enum flows_direction d = 0; rc == 0 && node != NULL && d < FLOWS_DIRECTIONS; d++)
		rc = kinds_find(&h->side[d], node, hosts_params[d].name, err);
	for (enum flows_direction d = 0; rc == 0 && d < FLOWS_DIRECTIONS; d++) {
		struct hosts_side *side = &h->side[d];

		// Before its defaults are in the tree: what is not written, groups keep.
		if (side->kinds > 0 && flows != NULL && config_kind(flows) == CONFIG_LIST)
			rc = groups_complete(h, d, flows, err);
		if (rc == 0)
			rc = side_read(side, d, err);
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
