// SPDX-License-Identifier: BSD-3-Clause
// Path MTU discovery: segments that a router refuses, cut anew and sent again.
#include "link.h"

#define SEEDS 240
#define GROUP "{cc: newreno, source: {size: {bytes: 1MB}}}"

// 1 MB are 691 segments of 1448 bytes, and 742 of 1348. The handshake ends after 20 ms, the first
// ten die, and the answer comes a round trip later: what is sent then arrives.
TEST(a_transfer_goes_on_a_round_trip_later) {
	struct link *l = LINK(.group = GROUP, .mtu = 1400);
	const struct flow *f = link_flow(l);

	link_run(l, 40 * MS - 1);
	ck_assert_uint_eq(f->nxt, 10);
	ck_assert_uint_eq(f->payload, 1448);
	link_run(l, 40 * MS);
	ck_assert_uint_eq(f->payload, 1348);
	ck_assert_uint_eq(f->data_segs, 742);
	ck_assert_uint_eq(f->path_mtu, 1400);
	ck_assert_uint_eq(l->data_count, 20);
	ck_assert_uint_eq(l->data[10].index, 0);
	ck_assert_uint_eq(l->data[10].seg.len, 1348);
	ck_assert_double_eq(f->cwnd_segs, 10);
	link_finish(l, 10 * S);
	link_complete(l);
	ck_assert_uint_eq(l->died, 10);
	ck_assert_uint_eq(f->count.retransmits, 10);
	ck_assert_uint_eq(f->count.timeouts, 0);
	ck_assert_uint_eq(f->count.cwnd_reductions, 0);
	ck_assert_uint_eq(f->count.lost_segs, 0);
}

// It quotes a segment that is in flight, says less than the segments have, and is no less than
// Linux and RFC 8200 believe; else nothing changes.
TEST(what_is_made_up_is_not_believed) {
	struct link *l = HAND(.group = "{cc: newreno}");
	const struct flow *f = link_flow(l);
	uint64_t bad = l->tx.count.rx_bad;

	ck_assert_uint_eq(host_too_big(&l->tx, 0, flow_seq(f, 0) - 1, 1400, l->now_ns), 0);
	ck_assert_uint_eq(host_too_big(&l->tx, 0, flow_seq_nxt(f), 1400, l->now_ns), 0);
	ck_assert_uint_eq(l->tx.count.rx_bad, bad + 2);
	ck_assert_uint_eq(host_too_big(&l->tx, 0, flow_seq(f, 9), 1500, l->now_ns), 0);
	ck_assert_uint_eq(f->payload, 1448);
	ck_assert_uint_eq(f->count.retransmits, 0);
	ck_assert_uint_eq(host_too_big(&l->tx, 0, flow_seq(f, 9), 68, l->now_ns), 552);
	ck_assert_uint_eq(f->payload, 552 - 52);
	ck_assert_uint_eq(l->tx.count.rx_bad, bad + 2);
	link_check(l);
}

// Of 10 segments of 1448, segments 3 to 5, bytes 4344 to 8688, have arrived. In segments of 1000
// these are 5 to 7 whole; 4 and 8 in part, which are sent again. 14480 bytes are 14 segments and a
// part of the 15th, which the next new one carries again.
TEST(what_is_sacked_stays_so) {
	struct link *l = HAND(.group = "{cc: newreno}");
	const struct flow *f = link_flow(l);
	uint64_t t_ns = l->now_ns + 20 * MS;

	hand_sack_at(l, 0, 3, 6, t_ns);
	uint64_t nxt = f->nxt, sent = nxt * 1448;
	ck_assert_uint_eq(f->sacked, 3);
	double cwnd = f->out.cwnd_segs;
	host_too_big(&l->tx, 0, flow_seq(f, 1), 1052, t_ns);
	link_check(l);
	ck_assert_uint_eq(f->payload, 1000);
	ck_assert_uint_eq(f->sacked, 3);
	for (uint64_t i = 0; i < sent / 1000; i++)
		ck_assert_int_eq((flow_seg(f, i)->flags & SENT_SACKED) != 0, i >= 5 && i < 8);
	ck_assert_double_eq(f->out.cwnd_segs, cwnd);
	// The peer has all that the old segments held.
	struct seg s = hand_ack(l, 0, t_ns + MS);
	s.ack = f->iss + 1 + (uint32_t)sent;
	hand_feed(l, &s, t_ns + MS);
	ck_assert_uint_eq(f->una_bytes, sent);
	ck_assert_uint_eq(f->una, sent / 1000);
}

// Whatever is lost, late or reordered meanwhile, with other sources and peers: the path's MTU falls
// at any packet, and all data arrives.
TEST(at_any_time) {
	static const char *const groups[] = {
		"{count: 2, cc: cubic, source: {size: {bytes: 200kB}}}",
		"{count: 2, cc: cubic, sack: no, source: {size: {bytes: 200kB}}}",
		("{count: 2, cc: newreno, timestamps: no, tso: linux, "
		 "source: {size: {bytes: 200001B}}}"),
		"{count: 2, cc: bbr, rwnd: 20kB, source: {size: {bytes: 200kB}}}",
		"{count: 2, cc: copa, gro: 1ms, source: {size: {bytes: 1449B}}}",
	};
	static const uint32_t mtus[] = {1499, 1400, 775, 552};

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct link *l = LINK(.group = groups[seed % 5], .mtu = mtus[seed / 5 % 4],
			.mtu_from = seed / 20 * 23, .loss = seed % 3 * 0.02,
			.ack_loss = seed % 2 * 0.1, .reorder = seed % 4 * 0.02, .late_ns = 3 * MS,
			.seed = seed, .iss_offset = UINT32_MAX - (uint32_t)seed * 1000);

		link_finish(l, 600 * S);
		link_complete(l);
		link_close(l);
	}
}

// Transfers that share a connection end where they did, in other segments.
TEST(transfers_are_cut_anew) {
	struct link *l = LINK(.group = "{cc: cubic, source: {video: {}}}", .mtu = 952,
		.mtu_from = 300, .loss = 0.01, .seed = 3);
	const struct flow *f = link_flow(l);

	link_run(l, 60 * S);
	ck_assert_uint_eq(f->payload, 900);
	ck_assert_uint_gt(f->count.acked_bytes, 3000000);
	ck_assert_uint_gt(l->died, 0);
	ck_assert_uint_eq(l->rx.receiver[0].rcv_nxt, f->una_bytes);
}

// Without a word from a router: the fourth timeout makes segments of 1024 bytes, which arrive; then
// probes find the 1348 that fit into 1400. The steps are those of halving [1024, 1448], and each
// size that is too large is tried three times.
TEST(a_black_hole_is_probed) {
	struct link *l = LINK(.group = "{cc: newreno, mtu_probing: black_hole, "
				       "source: {size: {bytes: 4MB}}}",
		.mtu = 1400, .black_hole = true);
	const struct flow *f = link_flow(l);

	while (f->count.timeouts < 3)
		NEED(link_step(l, 10 * S));
	ck_assert_uint_eq(f->payload, 1448);
	while (f->count.timeouts < 4)
		NEED(link_step(l, 10 * S));
	ck_assert_uint_eq(f->payload, 1024);
	ck_assert(f->searches);
	link_finish(l, 20 * S);
	link_complete(l);
	ck_assert_uint_eq(f->payload, 1348);
	ck_assert_uint_lt(f->search.high, 1348 + 8);
	ck_assert(!f->searches);
	ck_assert_uint_eq(f->count.timeouts, 4);
	ck_assert_uint_eq(f->count.cwnd_reductions, 0);
	ck_assert_uint_eq(f->count.spurious, 0);
}

// A probe is the last of what was acknowledged: nothing follows from its loss. One that arrives
// raises the size, and the window has the same bytes.
TEST(a_probe_that_arrives_raises_the_size) {
	struct link *l = HAND(.group = "{cc: newreno, mtu_probing: always}");
	const struct flow *f = link_flow(l);
	uint64_t t_ns = l->now_ns + 20 * MS;

	ck_assert_uint_eq(f->payload, 1024);
	hand_ack_at(l, 2, t_ns);
	const struct seg *probe = NULL;
	for (uint64_t i = 0; i < l->data_count; i++)
		probe = l->data[i].seg.len == 1236 ? &l->data[i].seg : probe;
	ck_assert_ptr_nonnull(probe);
	ck_assert_uint_eq(probe->seq + 1236, flow_seq(f, 2));
	double bytes = f->out.cwnd_segs * f->payload;
	struct seg s = hand_ack(l, 2, t_ns + MS);
	s.sack[s.sack_count++] = (struct seg_sack){probe->seq, probe->seq + 1236};
	hand_feed(l, &s, t_ns + MS);
	ck_assert_uint_eq(f->payload, 1236);
	ck_assert_double_eq_tol(f->out.cwnd_segs * f->payload, bytes, 1e-6);
	ck_assert_uint_eq(f->count.spurious, 0);
}

// Losses, reordering, other sources and peers, as above.
TEST(probing_at_any_time) {
	static const char *const groups[] = {
		"{count: 2, cc: cubic, mtu_probing: always, source: {size: {bytes: 200kB}}}",
		"{count: 2, cc: cubic, mtu_probing: black_hole, source: {size: {bytes: 200kB}}}",
		"{count: 2, cc: bbr, mtu_probing: black_hole, sack: no, "
		"source: {size: {bytes: 90kB}}}",
		"{count: 2, cc: copa, mtu_probing: always, rwnd: 20kB, "
		"source: {size: {bytes: 90kB}}}",
		"{count: 2, cc: newreno, mss: 8960B, mtu_probing: always, "
		"source: {size: {bytes: 300kB}}}",
	};
	static const uint32_t mtus[] = {1499, 1400, 1000, 300};

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct link *l = LINK(.group = groups[seed % 5], .mtu = mtus[seed / 5 % 4],
			.mtu_from = seed / 20 * 23, .black_hole = true, .loss = seed % 3 * 0.02,
			.ack_loss = seed % 2 * 0.1, .reorder = seed % 4 * 0.02, .late_ns = 3 * MS,
			.seed = seed);

		link_finish(l, 1200 * S);
		link_complete(l);
		link_close(l);
	}
}
