// SPDX-License-Identifier: BSD-3-Clause
// Frames of guests become packets of the run's paths, and packets become frames for guests.
//
// A TCP segment is of the flow whose port its sender's side has (flow_addr.h). Any other packet of
// IPv4 or IPv6 is of an IP flow (ip_flows.h), which goes to the guest that has the port's flow, or
// else to the only guest of the group's other side. Multicast is not carried, but for IPv6's
// neighbour solicitations.
#include "tools/sim/guest/guests_private.h"

#include "common/net/flow_addr.h"
#include "common/net/wire.h"

#include <assert.h>
#include <string.h>

static_assert(sizeof(struct ip_flow_ref) <= FRAME_OWNER_SIZE, "behind the frame");

// A guest's pool: its parity says which way its packets go (pool_direction).
uint8_t guests_pool_of(const struct guests *gs, uint32_t guest) {
	return (uint8_t)(POOL_FRAMES + 2 * guest
		+ (gs->place[guest].sender ? FLOWS_FORWARD : FLOWS_REVERSE));
}

static uint32_t maker_of(const struct pkt *p) {
	return (p->pool - (uint32_t)POOL_FRAMES) / 2;
}

static struct ip_flow_ref *ref_of(struct pkt *p) {
	return frame_owner(p);
}

static struct ip_flow *flow_of(struct guests *gs, const struct pkt *p) {
	const struct ip_flow_ref *r = ref_of((struct pkt *)(uintptr_t)p);

	return &gs->ip_flows[maker_of(p)].flow[r->flow];
}

// Takes a packet for a frame, which is copied; NULL: there is no memory.
static struct pkt *new_packet(
	struct guests *gs, uint32_t guest, uint32_t flow_id, const uint8_t *frame, uint32_t size) {
	struct pkt *p = pool_get(&gs->pool[guest], guests_pool_of(gs, guest));

	if (p == NULL) {
		snprintf(gs->guest[guest].trouble, sizeof(gs->guest[guest].trouble),
			"the memory for its packets is full");
		return NULL;
	}
	p->flow_id = flow_id;
	p->ecn = wire_ecn_any(frame, size);
	p->delay_class = gs->place[guest].group;
	p->drop_reason = DROP_NONE;
	p->flags = 0;
	memcpy(frame_bytes(p), frame, size);
	if (size < WIRE_MIN_FRAME) {
		memset(frame_bytes(p) + size, 0, WIRE_MIN_FRAME - size);
		size = WIRE_MIN_FRAME;
	}
	p->size_bytes = (uint16_t)(size + WIRE_FCS);
	return p;
}

// The flow of the config with the port of the guest's own side; FLOW_ADDR_NONE: none has it.
uint32_t guests_flow_of_port(
	const struct guests *gs, uint32_t guest, uint32_t sender_ip, uint16_t sender_port) {
	uint32_t id =
		flow_addr_index(FLOW_ADDR_SENDER, gs->env.groups->flows, sender_ip, sender_port);

	return id != FLOW_ADDR_NONE && gs->of_flow[gs->place[guest].sender][id] == guest
		? id
		: FLOW_ADDR_NONE;
}

// A segment of one of the config's flows; FLOW_ADDR_NONE: it is none.
static uint32_t read_segment(const struct guests *gs, uint32_t guest, const uint8_t *frame,
	const struct wire_info *info, struct seg *seg) {
	const struct wire_addr *a = &info->addr;
	bool sender = gs->place[guest].sender;

	if (info->proto != WIRE_PROTO_TCP || info->fragment
		|| wire_parse_tcp(frame, info, false, seg) != WIRE_OK)
		return FLOW_ADDR_NONE;
	return guests_flow_of_port(
		gs, guest, sender ? a->src_ip : a->dst_ip, sender ? a->src_port : a->dst_port);
}

// Of one host, but for the groups of IPv6 that hosts ask for an address (RFC 4291 section 2.7.1).
static bool for_one_host(const uint8_t *frame) {
	static const uint8_t solicited[] = {0x33, 0x33, 0xff};

	return (frame[0] & 1) == 0 || memcmp(frame, solicited, sizeof(solicited)) == 0;
}

static const char *name_of(const struct wire_flow *key) {
	const char *name = ip_flow_protocol(key->proto);

	return key->proto == WIRE_PROTO_TCP ? "TCP beside its flows" : name == NULL ? "IP" : name;
}

// The guest at the other side that gets a new IP flow: that of the port's flow, or the only one;
// IP_FLOW_NOWHERE, and a sentence: there is none.
static uint16_t other_end(struct guests *gs, uint32_t guest, const struct wire_flow *key) {
	const struct guests_place *at = &gs->place[guest];
	const struct group *g = &gs->env.groups->group[at->group];
	uint32_t others = guests_of_side(g, !at->sender), id = g->first;
	char *trouble = gs->guest[guest].trouble;
	size_t size = sizeof(gs->guest[guest].trouble);

	if (others != 1 && key->proto == WIRE_PROTO_UDP)
		id = guests_flow_of_port(gs, guest, at->sender ? key->src : key->dst,
			at->sender ? key->src_port : key->dst_port);
	else if (others != 1)
		id = FLOW_ADDR_NONE;
	if (others == 0)
		snprintf(trouble, size,
			"sends %s, and Weir's own stack has TCP alone: give the "
			"group's other side a kernel too",
			name_of(key));
	else if (id == FLOW_ADDR_NONE)
		snprintf(trouble, size,
			"sends %s to one of %u guests with the same address: give "
			"the group's other side hosts: 1",
			name_of(key), others);
	return trouble[0] != '\0' ? IP_FLOW_NOWHERE : gs->of_flow[!at->sender][id];
}

// The hash of a live switch, which groups beside the first change, because all guests have the same
// addresses.
static uint32_t hash_of(const struct guests *gs, uint32_t guest, const struct wire_flow *key) {
	uint32_t first = gs->env.groups->group[gs->place[guest].group].first;

	return flow_addr_hash(key->src, key->dst, key->src_port, key->dst_port, key->proto)
		^ (first * UINT32_C(0x9e3779b1) & ~FLOW_ADDR_HASHED);
}

static struct pkt *ip_packet(
	struct guests *gs, uint32_t guest, const uint8_t *frame, uint32_t size) {
	struct ip_flows *flows = &gs->ip_flows[guest];
	struct wire_flow key;
	struct ip_flow *f;
	struct pkt *p;

	wire_read_flow(frame, size, &key);
	if (flows->flow == NULL || !for_one_host(frame) || wire_length(frame, size) == 0)
		return NULL;
	f = ip_flows_find(flows, &key, hash_of(gs, guest, &key), frame, size);
	if (f == NULL) {
		snprintf(gs->guest[guest].trouble, sizeof(gs->guest[guest].trouble),
			"its packets beside TCP have more than %u different addresses and ports",
			IP_FLOWS_MAX);
		return NULL;
	}
	if (f->to == IP_FLOW_NOWHERE && (f->to = other_end(gs, guest, &key)) == IP_FLOW_NOWHERE)
		return NULL;
	if ((p = new_packet(gs, guest, f->id, frame, size)) == NULL)
		return NULL;
	struct seg datagram = {.len = ip_flow_payload(&key, frame, size), .options = SEG_OPT_UDP};
	seg_copy_header(pkt_seg(p), &datagram);
	*ref_of(p) = (struct ip_flow_ref){.flow = (uint32_t)(f - flows->flow)};
	return p;
}

struct pkt *guests_packet(void *ctx, uint32_t guest, const uint8_t *frame, uint32_t size) {
	struct guests *gs = ctx;
	struct wire_info info;
	struct seg seg;
	struct pkt *p;

	if (wire_parse(frame, size, &info) != WIRE_OK)
		return NULL;
	uint32_t id = read_segment(gs, guest, frame, &info, &seg);
	if (id == FLOW_ADDR_NONE)
		return gs->guest[guest].epoch_ns > 0 ? ip_packet(gs, guest, frame, size) : NULL;
	if ((p = new_packet(gs, guest, id, frame, size)) != NULL)
		seg_copy_header(pkt_seg(p), &seg);
	return p;
}

uint32_t guests_encode(void *ctx, uint32_t guest, const struct pkt *p, uint8_t *frame) {
	const struct guests *gs = ctx;
	const struct group *g = &gs->env.groups->group[p->delay_class];
	uint32_t length, written = frame_write(p, g, frame, FRAME_ROOM, &length);

	memset(frame + written, 0, length - written); // payload
	return length;
}

void guests_ip_sent(struct guests *gs, struct pkt *p) {
	ref_of(p)->sent_ns = p->arrival_ns;
	ip_flow_sent(flow_of(gs, p), pkt_seg(p)->len);
}

uint32_t guests_ip_received(struct guests *gs, struct pkt *p) {
	struct ip_flow *f = flow_of(gs, p);

	ip_flow_received(f, pkt_seg(p)->len, p->ecn == ECN_CE, p->arrival_ns - ref_of(p)->sent_ns);
	return f->to;
}

void guests_dropped(struct guests *gs, const struct pkt *p) {
	flow_of(gs, p)->interval.drops++;
}
