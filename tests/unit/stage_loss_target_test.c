// SPDX-License-Identifier: BSD-3-Clause
#include "switch_test.h"

static struct pkt_headers next; // of the packet that is put

static struct pkt_headers headers(void *ctx, const struct pkt *p) {
	return next;
}
static const struct pkt_owner owner = {.headers = headers};

static bool lost(struct stage_bench *b, uint32_t flow, struct pkt_headers h) {
	static uint64_t now_ns;
	struct pkt p = {.size_bytes = 1518, .flow_id = flow};
	uint32_t drops = b->drops.count;

	next = h;
	stage_put(b, &p, ++now_ns);
	if (b->drops.count == drops) {
		ck_assert_ptr_eq(stage_take(b, now_ns), &p);
		return false;
	}
	ck_assert_uint_eq(p.drop_reason, DROP_LOSS);
	b->drops = (struct pkt_list){0}; // the packet is on the stack
	b->in_pkts--;
	b->in_bytes -= p.size_bytes;
	return true;
}

#define SYN(n) ((struct pkt_headers){.seq = (n), .syn = true})
#define DATA(n, size) ((struct pkt_headers){.seq = (n), .seq_count = (size)})

TEST(the_byte_and_its_first_retransmissions) {
	struct stage_bench b = {.owner = owner};

	ck_assert_int_eq(
		stage_open(&b, "{loss_target: {flow: 3, byte: 2000, retransmissions: 2}}"), 0);
	ck_assert(b.ops->needs->headers(b.st) && b.ops->needs->flows(b.st));
	// The sequence number wraps between the SYN and the byte, which is number 2000 of the
	// payload.
	uint32_t isn = UINT32_MAX - 500;
	ck_assert(!lost(&b, 3, SYN(isn)));
	ck_assert(!lost(&b, 3, SYN(isn))); // once more
	ck_assert(!lost(&b, 3, DATA(isn + 1, 1000)));
	ck_assert(!lost(&b, 3, DATA(isn + 1 + 1000, 1000))); // 1000 to 1999
	ck_assert(!lost(&b, 2, DATA(isn + 1 + 2000, 1000))); // of another flow
	ck_assert(!lost(&b, 3, DATA(isn + 1 + 2000, 0))); // an ACK
	ck_assert(lost(&b, 3, DATA(isn + 1 + 2000, 1000)));
	ck_assert(!lost(&b, 3, DATA(isn + 1 + 3000, 1000)));
	ck_assert(lost(&b, 3, DATA(isn + 1 + 1990, 11))); // its last byte
	ck_assert(!lost(&b, 3, DATA(isn + 1 + 1990, 10)));
	ck_assert(lost(&b, 3, DATA(isn + 1 + 2000, 1000)));
	ck_assert(!lost(&b, 3, DATA(isn + 1 + 2000, 1000)));
}

TEST(the_first_connection_only) {
	struct stage_bench b = {.owner = owner};

	ck_assert_int_eq(
		stage_open(&b, "{loss_target: {flow: 0, byte: 0, retransmissions: 5}}"), 0);
	ck_assert(!lost(&b, 0, SYN(9)));
	ck_assert(lost(&b, 0, DATA(10, 1)));
	ck_assert(!lost(&b, 0, SYN(5000)));
	ck_assert(!lost(&b, 0, DATA(10, 1)));
	ck_assert(!lost(&b, 0, DATA(5001, 1)));
}

TEST(a_connection_that_is_older) {
	struct stage_bench b = {.owner = owner};

	ck_assert_int_eq(stage_open(&b, "{loss_target: {flow: 0, byte: 100}}"), 0);
	ck_assert(!lost(&b, 0, DATA(10, 0)));
	ck_assert(!lost(&b, 0, DATA(10, 100)));
	ck_assert(lost(&b, 0, DATA(110, 100)));
	ck_assert(!lost(&b, 0, DATA(110, 100)));
}
