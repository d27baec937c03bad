// SPDX-License-Identifier: BSD-3-Clause
// Any frames at the ports of a layer 2 switch whose ports are received on two lcores.
//
// Each event is a frame, or time, or a port that goes down or comes up. A decision never names the
// port that a frame came from, one that is down or one that there is not; only one address leads to
// one port; and a station that has just been heard is found there by both lcores. ARP frames are
// answered as the sender does, and the answer is relayed back to who asked.
#include "fuzz.h"

#include "common/net/wire.h"
#include "switch/path/fabric.h"

#define STATIONS 16

struct lan {
	struct input in;
	struct fabric fabric[2]; // port i is received on lcore i % 2
	uint32_t ports;
	uint64_t up, now_ns;
};

static bool is_group(const uint8_t mac[6]) {
	return (mac[0] & 1) != 0;
}

static bool is_reserved(const uint8_t mac[6]) {
	static const uint8_t prefix[] = {0x01, 0x80, 0xc2, 0, 0};

	return memcmp(mac, prefix, sizeof(prefix)) == 0 && mac[5] < 16;
}

static struct fabric_decision relay(
	struct lan *l, const uint8_t dst[6], const uint8_t src[6], uint32_t in_port) {
	struct fabric_decision d =
		fabric_relay(&l->fabric[in_port & 1], dst, src, in_port, l->now_ns);
	uint64_t from = UINT64_C(1) << in_port;

	NEED((d.ports & ~l->up) == 0 && (d.ports & from) == 0);
	NEED((d.action == FABRIC_DROP) == (d.ports == 0));
	NEED(d.action != FABRIC_FORWARD
		|| (d.port < l->ports && d.ports == UINT64_C(1) << d.port && !is_group(dst)));
	NEED(d.action != FABRIC_FLOOD || d.ports == (l->up & ~from));
	NEED(!is_reserved(dst) || d.action == FABRIC_DROP);
	NEED(!is_group(dst) || is_reserved(dst) || d.ports == (l->up & ~from));
	return d;
}

// A station that has just sent from a port that is up is there, for the port's lcore and the other.
static void found_at(struct lan *l, const uint8_t mac[6], uint32_t port) {
	static const uint8_t zero[6], fixed[6] = {2, 0, 0, 0, 0, 7};

	if (is_group(mac) || memcmp(mac, zero, 6) == 0 || memcmp(mac, fixed, 6) == 0
		|| !(l->up >> port & 1))
		return;
	for (uint32_t other = 0; other < l->ports && other < 3; other++) {
		struct fabric_decision d = relay(l, mac, zero, other);

		NEED(other == port ? d.action == FABRIC_DROP
				   : d.action == FABRIC_FORWARD && d.port == port);
	}
}

static void answer_arp(struct lan *l, const uint8_t *frame, size_t size, uint32_t in_port) {
	static const struct wire_mac us = {{2, 0, 0, 0, 0, 9}};
	uint8_t answer[WIRE_MIN_FRAME];
	struct wire_arp arp, back;

	if (wire_parse_arp(frame, size, &arp) != WIRE_OK || !arp.request)
		return;
	NEED(!is_group(arp.sender_mac.b)); // RFC 1812 section 3.3.2
	struct wire_arp reply = {
		.sender_mac = us, .sender_ip = arp.target_ip, .target_ip = arp.sender_ip};
	NEED(wire_write_arp(answer, &reply, &arp.sender_mac) == sizeof(answer));
	NEED(wire_parse_arp(answer, sizeof(answer), &back) == WIRE_OK && !back.request);
	NEED(memcmp(answer, arp.sender_mac.b, 6) == 0);
	if (l->ports > 1)
		relay(l, answer, answer + 6, (in_port + 1) % l->ports);
}

static void frame(struct lan *l) {
	uint32_t in_port = in_u8(&l->in) % l->ports, step_ns = in_u16(&l->in);
	size_t size = in_u8(&l->in), left = (size_t)(l->in.end - l->in.at);
	struct wire_info info;

	size = size < left ? size : left;
	// A copy of its exact size, so that the sanitizer sees a read beyond it.
	uint8_t *f = malloc(size > 0 ? size : 1);
	NEED(f != NULL);
	memcpy(f, l->in.at, size);
	l->in.at += size;
	// Two lcores believe whoever heard it last: what was heard at the same time counts as
	// earlier.
	l->now_ns += NS_PER_MS + step_ns;
	if (wire_parse(f, size, &info) == WIRE_OK && (l->up >> in_port & 1)) {
		relay(l, f, f + 6, in_port);
		found_at(l, f + 6, in_port);
		answer_arp(l, f, size, in_port);
	}
	free(f);
}

static void port_changes(struct lan *l) {
	uint8_t what = in_u8(&l->in);
	uint32_t port = (what >> 1) % l->ports;
	uint64_t bit = UINT64_C(1) << port;

	l->up = (what & 1) != 0 ? l->up | bit : l->up & ~bit;
	for (uint32_t i = 0; i < 2; i++)
		fabric_set_up(&l->fabric[i], port, (what & 1) != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	static const uint8_t fixed[6] = {2, 0, 0, 0, 0, 7};
	struct lan l = {.in = {data, data + size}};
	struct err err;

	l.ports = 1 + in_u8(&l.in) % FABRIC_PORTS_MAX;
	for (uint32_t i = 0; i < 2; i++) {
		NEED(fabric_init(&l.fabric[i], l.ports, STATIONS, FABRIC_AGE_NS, &err) == 0);
		NEED(fabric_add_static(&l.fabric[i], fixed, l.ports - 1, &err) == 0);
	}
	fabric_join(&l.fabric[0], &l.fabric[1]);
	fabric_join(&l.fabric[1], &l.fabric[0]);
	l.up = l.fabric[0].up;
	while (l.in.at < l.in.end) {
		uint8_t kind = in_u8(&l.in);

		if ((kind & 7) == 7)
			port_changes(&l);
		else if ((kind & 7) == 6)
			l.now_ns += (uint64_t)in_u8(&l.in) * NS_PER_S * 4; // some age
		else
			frame(&l);
	}
	fabric_fini(&l.fabric[0]);
	fabric_fini(&l.fabric[1]);
	return 0;
}
