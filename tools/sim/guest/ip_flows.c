// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/guest/ip_flows.h"

#include "common/base/json.h"
#include "common/base/u64.h"
#include "common/telemetry/telemetry.h"
#include "tools/sim/guest/fields.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS (2 * IP_FLOWS_MAX)
#define PROTO_ICMPV6 58
#define PROTO_SCTP 132

int ip_flows_init(struct ip_flows *fs, struct err *err) {
	fs->flow = calloc(IP_FLOWS_MAX, sizeof(*fs->flow));
	return fs->flow != NULL ? 0 : err_set(err, -ENOMEM, "no memory for a guest's flows");
}

void ip_flows_fini(struct ip_flows *fs) {
	free(fs->flow);
	fs->flow = NULL;
}

static bool same(const struct wire_flow *a, const struct wire_flow *b) {
	return a->src == b->src && a->dst == b->dst && a->src_port == b->src_port
		&& a->dst_port == b->dst_port && a->proto == b->proto && a->ipv6 == b->ipv6;
}

static size_t ip_at(const uint8_t *frame, uint32_t size) {
	return WIRE_ETH + (size_t)wire_tags(frame, size) * WIRE_TAG;
}

static void copy_addresses(struct ip_flow *f, const uint8_t *frame, uint32_t size) {
	const uint8_t *ip = frame + ip_at(frame, size);
	size_t bytes = f->key.ipv6 ? 16 : 4;

	memcpy(f->src, ip + (f->key.ipv6 ? 8 : 12), bytes);
	memcpy(f->dst, ip + (f->key.ipv6 ? 8 : 12) + bytes, bytes);
}

struct ip_flow *ip_flows_find(struct ip_flows *fs, const struct wire_flow *key, uint32_t id,
	const uint8_t *frame, uint32_t size) {
	uint32_t at = id % SLOTS;
	struct ip_flow *f;

	for (; fs->slot[at] != 0; at = (at + 1) % SLOTS) {
		if (same(&fs->flow[fs->slot[at] - 1].key, key))
			return &fs->flow[fs->slot[at] - 1];
	}
	if (fs->count == IP_FLOWS_MAX)
		return NULL;
	f = &fs->flow[fs->count++];
	fs->slot[at] = (uint16_t)fs->count;
	*f = (struct ip_flow){.key = *key, .id = id, .to = IP_FLOW_NOWHERE};
	copy_addresses(f, frame, size);
	return f;
}

uint16_t ip_flow_payload(const struct wire_flow *key, const uint8_t *frame, uint32_t size) {
	size_t at = ip_at(frame, size), end = wire_length(frame, size);

	at += key->ipv6 ? WIRE_IPV6 : (size_t)(frame[at] & 15) * 4;
	if (key->proto == WIRE_PROTO_UDP && (key->src_port | key->dst_port) != 0)
		at += WIRE_UDP; // of a fragment the ports are not read
	end = end < size ? end : size;
	return (uint16_t)(end > at ? end - at : 0);
}

void ip_flow_sent(struct ip_flow *f, uint32_t payload) {
	f->interval.sent_pkts++;
	f->interval.sent_bytes += payload;
}

void ip_flow_received(struct ip_flow *f, uint32_t payload, bool ce, uint64_t delay_ns) {
	struct ip_flow_count *c = &f->interval;

	c->delay_min_ns = c->received_pkts == 0 ? delay_ns : min_u64(c->delay_min_ns, delay_ns);
	c->delay_max_ns = max_u64(c->delay_max_ns, delay_ns);
	c->delay_sum_ns += delay_ns;
	c->received_pkts++;
	c->received_bytes += payload;
	c->ce_pkts += ce;
}

static void add(struct ip_flow_count *to, const struct ip_flow_count *c) {
	if (c->received_pkts > 0)
		to->delay_min_ns = to->received_pkts == 0
			? c->delay_min_ns
			: min_u64(to->delay_min_ns, c->delay_min_ns);
	to->delay_max_ns = max_u64(to->delay_max_ns, c->delay_max_ns);
	to->delay_sum_ns += c->delay_sum_ns;
	to->sent_pkts += c->sent_pkts;
	to->sent_bytes += c->sent_bytes;
	to->received_pkts += c->received_pkts;
	to->received_bytes += c->received_bytes;
	to->ce_pkts += c->ce_pkts;
	to->drops += c->drops;
}

static void record(
	const struct ip_flow *f, struct tel *tel, uint64_t now_ns, uint16_t group, bool forward) {
	const struct ip_flow_count *c = &f->interval;
	bool received = c->received_pkts > 0;
	struct tel_ip_flows *r = tel_put(tel);

	if (r == NULL)
		return;
	*r = (struct tel_ip_flows){
		.ts_ns = now_ns,
		.sent_bytes = c->sent_bytes,
		.received_bytes = c->received_bytes,
		.delay_mean_ns =
			received ? c->delay_sum_ns / c->received_pkts : TEL_UNKNOWN(uint64_t),
		.delay_min_ns = received ? c->delay_min_ns : TEL_UNKNOWN(uint64_t),
		.delay_max_ns = received ? c->delay_max_ns : TEL_UNKNOWN(uint64_t),
		.flow_id = f->id,
		.sent_pkts = (uint32_t)c->sent_pkts,
		.received_pkts = (uint32_t)c->received_pkts,
		.ce_pkts = (uint32_t)c->ce_pkts,
		.drops = (uint32_t)c->drops,
		.src_port = f->key.src_port,
		.dst_port = f->key.dst_port,
		.group = group,
		.protocol = f->key.proto,
		.forward = forward,
	};
}

void ip_flows_interval(
	struct ip_flows *fs, struct tel *tel, uint64_t now_ns, uint16_t group, bool forward) {
	for (uint32_t i = 0; i < fs->count; i++) {
		struct ip_flow *f = &fs->flow[i];
		const struct ip_flow_count *c = &f->interval;

		if ((c->sent_pkts | c->received_pkts | c->drops) == 0)
			continue;
		if (tel->ring != NULL)
			record(f, tel, now_ns, group, forward);
		add(&f->all, c);
		f->interval = (struct ip_flow_count){0};
	}
}

void ip_flows_measure(struct ip_flows *fs) {
	for (uint32_t i = 0; i < fs->count; i++)
		fs->flow[i].all = (struct ip_flow_count){0};
}

const char *ip_flow_protocol(uint8_t number) {
	switch (number) {
	case WIRE_PROTO_ICMP:
		return "icmp";
	case WIRE_PROTO_TCP:
		return "tcp";
	case WIRE_PROTO_UDP:
		return "udp";
	case PROTO_ICMPV6:
		return "icmpv6";
	case PROTO_SCTP:
		return "sctp";
	default:
		return NULL;
	}
}

static const char *address_text(const struct ip_flow *f, bool source, char *text) {
	return inet_ntop(
		f->key.ipv6 ? AF_INET6 : AF_INET, source ? f->src : f->dst, text, INET6_ADDRSTRLEN);
}

static uint64_t port_number(uint16_t port) {
	return port > 0 ? port : FIELD_UNKNOWN;
}

static const char *protocol_text(uint8_t number, char text[16]) {
	const char *name = ip_flow_protocol(number);

	snprintf(text, 16, "%u", number);
	return name != NULL ? name : text;
}

static void write_flow(
	struct json *j, const struct ip_flow *f, uint16_t group, bool forward, double seconds) {
	const struct ip_flow_count *c = &f->all;
	char number[16], src[INET6_ADDRSTRLEN], dst[INET6_ADDRSTRLEN];
	bool some = c->received_pkts > 0;

	json_object(j, NULL);
	IP_FLOW_FIELDS(FIELD_JSON)
	json_close(j, '}');
}

void ip_flows_summary(
	const struct ip_flows *fs, struct json *j, uint16_t group, bool forward, double seconds) {
	for (uint32_t i = 0; i < fs->count; i++)
		write_flow(j, &fs->flow[i], group, forward, seconds);
}
