// SPDX-License-Identifier: BSD-3-Clause
// Connections that are none of the config's flows: found, begun, refused, and their receivers used
// again.
#include "sender/host/host.h"
#include "sender/tcp/connections.h"
#include "test.h"

#include <string.h>

#define FLOWS 2u
#define SPARE 4u
#define US 0xc6130001u
#define THEM 0xc6120001u
#define PORT 5001
#define ISN 1000u

struct site {
	struct config *config;
	struct groups groups;
	struct host host;
	struct connections c;
	struct seg last; // that the host sent
};

static void output(void *ctx, uint32_t id, const struct seg *seg, uint32_t n, uint8_t ecn,
	uint64_t due_ns, bool paced) {
	struct site *s = ctx;

	s->last = *seg;
}

static void site_open(struct site *s, uint32_t spare) {
	static const char text[] = "flows: [{count: 1, cc: copa}, {count: 1, cc: copa, rwnd: 4kB}]";
	struct host_env env = {.output = output, .ctx = s, .receivers = FLOWS + spare};
	struct err err;

	memset(s, 0, sizeof(*s));
	s->config = config_parse("t", text, strlen(text), &err);
	ck_assert_ptr_nonnull(s->config);
	ck_assert_int_eq(
		groups_init(&s->groups, config_get(config_root(s->config), "flows"), &err), 0);
	ck_assert_int_eq(host_init(&s->host, &s->groups, &env, &err), 0);
	ck_assert_int_eq(connections_init(&s->c, spare, &err), 0);
}

static void site_close(struct site *s) {
	connections_fini(&s->c);
	host_fini(&s->host);
	groups_fini(&s->groups);
	config_free(s->config);
}

static struct wire_addr from(uint16_t port) {
	return (struct wire_addr){
		.src_mac = {{2, 0, 0, 0, 0, 1}},
		.dst_mac = {{2, 0, 0, 0, 0, 2}},
		.src_ip = THEM,
		.dst_ip = US,
		.src_port = port,
		.dst_port = PORT,
	};
}

// A segment from that port comes in; the receiver that it went to.
static uint32_t receive(struct site *s, uint16_t port, uint8_t flags, uint32_t seq) {
	struct seg seg = {.flags = flags, .seq = seq};
	struct wire_addr a = from(port);
	uint32_t i = connections_receiver(&s->c, &s->host.endpoint, CONNECTION_NONE, &a, &seg);

	if (i != CONNECTION_NONE)
		host_rx_receiver(&s->host, i, &seg, ECN_NOT_ECT, 0);
	return i;
}

static uint32_t syn(struct site *s, uint16_t port) {
	return receive(s, port, SEG_SYN, ISN);
}

// Its peer resets it.
static void end(struct site *s, uint16_t port) {
	uint32_t i = receive(s, port, SEG_RST, ISN + 1);

	ck_assert_uint_ne(i, CONNECTION_NONE);
	ck_assert(receiver_over(&s->host.receiver[i]));
}

TEST(a_connection_is_found_by_its_addresses) {
	struct site s;

	site_open(&s, SPARE);
	for (uint16_t i = 0; i < SPARE; i++)
		ck_assert_uint_eq(syn(&s, (uint16_t)(100 + i)), FLOWS + i);
	for (uint16_t i = 0; i < SPARE; i++) {
		const struct receiver *r = &s.host.receiver[FLOWS + i];
		const struct wire_addr *to = connections_addr(&s.c, &s.host.endpoint, r->id);

		ck_assert_uint_eq(receive(&s, (uint16_t)(100 + i), SEG_ACK, ISN + 1), FLOWS + i);
		ck_assert_uint_eq(r->state, RECEIVER_OPEN);
		ck_assert_uint_eq(r->id, FLOWS + i);
		// The way back.
		ck_assert_uint_eq(to->dst_port, 100 + i);
		ck_assert_uint_eq(to->src_port, PORT);
		ck_assert_uint_eq(to->dst_ip, THEM);
		ck_assert_uint_eq(to->src_ip, US);
		ck_assert_uint_eq(to->dst_mac.b[5], 1);
		ck_assert_uint_eq(to->src_mac.b[5], 2);
	}
	site_close(&s);
}

// One address or port that differs makes it another connection.
TEST(all_of_the_addresses_count) {
	const struct seg ack = {.flags = SEG_ACK, .seq = ISN + 1};
	struct wire_addr others[4];
	struct site s;

	site_open(&s, SPARE);
	syn(&s, 100);
	for (size_t i = 0; i < 4; i++)
		others[i] = from(100);
	others[0].src_ip++;
	others[1].dst_ip++;
	others[2].src_port++;
	others[3].dst_port++;
	// In the bucket of the one that is there, whatever their hash.
	memset(s.c.bucket, 0, sizeof(s.c.bucket));
	for (size_t i = 0; i < 4; i++)
		ck_assert_uint_eq(connections_receiver(&s.c, &s.host.endpoint, CONNECTION_NONE,
					  &others[i], &ack),
			CONNECTION_NONE);
	ck_assert_uint_eq(receive(&s, 100, SEG_ACK, ISN + 1), FLOWS);
	site_close(&s);
}

TEST(only_a_syn_begins_a_connection) {
	static const uint8_t flags[] = {
		0, SEG_ACK, SEG_FIN | SEG_ACK, SEG_RST, SEG_SYN | SEG_ACK, SEG_SYN | SEG_FIN};
	struct site s;

	site_open(&s, SPARE);
	for (size_t i = 0; i < sizeof(flags); i++)
		ck_assert_uint_eq(receive(&s, 100, flags[i], ISN), CONNECTION_NONE);
	ck_assert_uint_eq(s.c.refused, 0);
	ck_assert_uint_eq(syn(&s, 100), FLOWS);
	site_close(&s);
}

TEST(a_full_table_refuses_and_counts) {
	struct site s;

	site_open(&s, SPARE);
	for (uint16_t i = 0; i < SPARE; i++)
		syn(&s, (uint16_t)(100 + i));
	ck_assert_uint_eq(syn(&s, 200), CONNECTION_NONE);
	ck_assert_uint_eq(syn(&s, 201), CONNECTION_NONE);
	ck_assert_uint_eq(receive(&s, 202, SEG_ACK, ISN), CONNECTION_NONE); // asks for nothing
	ck_assert_uint_eq(s.c.refused, 2);
	for (uint16_t i = 0; i < SPARE; i++)
		ck_assert_uint_eq(
			syn(&s, (uint16_t)(100 + i)), FLOWS + i); // a SYN that comes again
	ck_assert_uint_eq(s.c.refused, 2);
	site_close(&s);
	site_open(&s, 0);
	ck_assert_uint_eq(syn(&s, 100), CONNECTION_NONE);
	ck_assert_uint_eq(s.c.refused, 1);
	site_close(&s);
}

TEST(the_receiver_of_one_that_is_over_is_used_again) {
	struct site s;
	const struct receiver *r;

	site_open(&s, SPARE);
	r = &s.host.receiver[FLOWS + 2];
	for (uint16_t i = 0; i < SPARE; i++)
		syn(&s, (uint16_t)(100 + i));
	end(&s, 102);
	// Still known, until somebody needs the place.
	ck_assert_uint_eq(receive(&s, 102, SEG_ACK, ISN + 1), FLOWS + 2);
	ck_assert_uint_eq(syn(&s, 200), FLOWS + 2);
	ck_assert_uint_eq(r->state, RECEIVER_OPEN);
	ck_assert_uint_eq(r->id, FLOWS + 2);
	ck_assert_uint_eq(connections_addr(&s.c, &s.host.endpoint, r->id)->dst_port, 200);
	ck_assert_uint_eq(receive(&s, 102, SEG_ACK, ISN + 1), CONNECTION_NONE);
	ck_assert_uint_eq(syn(&s, 102), CONNECTION_NONE);
	ck_assert_uint_eq(s.c.refused, 1);
	site_close(&s);
}

// One that is over keeps its place while others never had a connection.
TEST(a_receiver_that_had_none_goes_first) {
	struct site s;

	site_open(&s, SPARE);
	syn(&s, 100);
	end(&s, 100);
	ck_assert_uint_eq(syn(&s, 101), FLOWS + 1);
	ck_assert_uint_eq(receive(&s, 100, SEG_ACK, ISN + 1), FLOWS);
	site_close(&s);
}

TEST(the_same_addresses_again_begin_anew) {
	struct site s;
	const struct receiver *r;

	site_open(&s, SPARE);
	r = &s.host.receiver[FLOWS];
	syn(&s, 100);
	ck_assert_uint_eq(receive(&s, 100, SEG_SYN, ISN + 5000), FLOWS); // it is open: refused
	ck_assert_uint_eq(r->irs, ISN);
	end(&s, 100);
	ck_assert_uint_eq(syn(&s, 100), FLOWS); // an old SYN
	ck_assert_uint_eq(r->state, RECEIVER_CLOSED);
	ck_assert_uint_eq(
		receive(&s, 100, SEG_SYN | SEG_ACK, ISN + 5000), FLOWS); // no SYN of theirs
	ck_assert_uint_eq(r->state, RECEIVER_CLOSED);
	ck_assert_uint_eq(receive(&s, 100, SEG_SYN, ISN + 5000), FLOWS);
	ck_assert_uint_eq(r->state, RECEIVER_OPEN);
	ck_assert_uint_eq(r->irs, ISN + 5000);
	ck_assert((s.last.flags & SEG_SYN) != 0);
	ck_assert_uint_eq(s.last.ack, ISN + 5001);
	ck_assert_uint_eq(syn(&s, 101), FLOWS + 1); // no place was lost
	site_close(&s);
}

TEST(a_flows_receiver_is_its_own_and_begins_anew_in_its_group) {
	const struct seg first = {.flags = SEG_SYN, .seq = ISN}, ack = {.flags = SEG_ACK};
	const struct seg rst = {.flags = SEG_RST, .seq = ISN + 1};
	const struct seg other = {.flags = SEG_SYN, .seq = ISN + 5000};
	struct wire_addr a = from(10001);
	struct receiver *r;
	struct site s;

	site_open(&s, SPARE);
	r = &s.host.receiver[1];
	ck_assert_uint_eq(connections_receiver(&s.c, &s.host.endpoint, 1, &a, &first), 1);
	host_rx_receiver(&s.host, 1, &first, ECN_NOT_ECT, 0);
	ck_assert_uint_eq(connections_receiver(&s.c, &s.host.endpoint, 1, &a, &ack), 1);
	host_rx_receiver(&s.host, 1, &rst, ECN_NOT_ECT, 0);
	ck_assert_uint_eq(r->state, RECEIVER_CLOSED);
	ck_assert_uint_eq(connections_receiver(&s.c, &s.host.endpoint, 1, &a, &other), 1);
	host_rx_receiver(&s.host, 1, &other, ECN_NOT_ECT, 0);
	ck_assert_uint_eq(r->state, RECEIVER_OPEN);
	ck_assert_uint_eq(r->irs, ISN + 5000);
	ck_assert_uint_eq(r->group_index, 1);
	ck_assert_uint_eq(r->id, 1);
	for (uint32_t i = 0; i < SPARE; i++)
		ck_assert(!s.c.entry[i].used);
	site_close(&s);
}

// Ports whose connections share a bucket.
static void collide(uint16_t *port, uint32_t n) {
	uint32_t bucket = 0, found = 0;

	for (uint32_t p = 1; found < n; p++) {
		uint32_t b = flow_addr_hash(THEM, US, (uint16_t)p, PORT, WIRE_PROTO_TCP)
			& (CONNECTION_BUCKETS - 1);

		ck_assert_uint_lt(p, 65536);
		if (found == 0)
			bucket = b;
		if (b == bucket)
			port[found++] = (uint16_t)p;
	}
}

// The first, one in the middle and the last of a chain.
TEST(any_place_of_a_chain_is_given_up_alone) {
	uint16_t port[SPARE + 1];

	collide(port, SPARE + 1);
	for (uint32_t gone = 0; gone < SPARE; gone++) {
		struct site s;

		site_open(&s, SPARE);
		for (uint32_t i = 0; i < SPARE; i++)
			ck_assert_uint_eq(syn(&s, port[i]), FLOWS + i);
		end(&s, port[gone]);
		ck_assert_uint_eq(syn(&s, port[SPARE]), FLOWS + gone);
		for (uint32_t i = 0; i < SPARE; i++)
			ck_assert_uint_eq(receive(&s, port[i], SEG_ACK, ISN + 1),
				i == gone ? CONNECTION_NONE : FLOWS + i);
		ck_assert_uint_eq(receive(&s, port[SPARE], SEG_ACK, ISN + 1), FLOWS + gone);
		site_close(&s);
	}
}

// RFC 9293 section 3.10.7.1.
TEST(a_segment_of_no_connection_is_reset) {
	struct seg rst, in = {.seq = 100, .ack = 7000, .len = 20, .flags = SEG_ACK};

	ck_assert(seg_reset(&rst, &in));
	ck_assert_uint_eq(rst.flags, SEG_RST);
	ck_assert_uint_eq(rst.seq, 7000);
	in.flags = SEG_SYN | SEG_FIN;
	ck_assert(seg_reset(&rst, &in));
	ck_assert_uint_eq(rst.flags, SEG_RST | SEG_ACK);
	ck_assert_uint_eq(rst.seq, 0);
	ck_assert_uint_eq(rst.ack, 122);
	in.flags = SEG_RST | SEG_ACK;
	ck_assert(!seg_reset(&rst, &in));
}
