// SPDX-License-Identifier: BSD-3-Clause
// Segments that leave in bursts, as from a host with segmentation offload (TSO), and Linux's pacing
// by fq.
//
// The stack hands its card up to `size` segments at once; they leave back to back and use one
// pacing slot, whose gap is that of all of them. `tso: linux` takes the size from the pacing rate,
// be there a pacer or not:
//
//	bytes = rate / 1024 s + 64 KB / 2^(rtt_min / 512 us)     at most 64 KB
//	size  = max(bytes / payload, 2)                           BBR: 1 below 1.2 Mbit/s
//	size  = max(rate burst_ns / payload, 1)                   Prague: burst_ns is 0.25 ms
//
// (tcp_tso_autosize, sk_pacing_shift 10, tcp_tso_rtt_log 9, bbr_min_tso_segs of Linux 6.12). Its
// last segment has PSH, if it has several (__tcp_transmit_skb), so that a receiver's card hands it
// over at once. A burst takes at most half of the window (tcp_cwnd_test). A smaller burst than
// `size` waits for more room in the window if the next ACK must come soon, unless a third of the
// window is free, it is all that there is to send, it is the rest of a socket buffer (64 KB of the
// stream), or a loss is being repaired (tcp_tso_should_defer). Retransmissions leave in bursts of
// the same size.
//
// `pacing: fq` is the pace of `pacing: srtt` (tcp_update_pacing_rate) with two rules of
// tcp_update_skb_after_send: the first ten segments are not paced, and if a burst leaves later than
// its slot, because nothing allowed it earlier, the next gap is shorter by that time, at most by
// half.
//
// Where we differ, and why: Linux's fq holds segments that TCP has already sent, a millisecond of
// them or two bursts (TCP small queues), and TCP's RTT samples begin when fq lets them go. Here
// segments wait unsent: the packets on the wire have the same times, and inflight does not count
// what has not left. Socket buffers are full from the first one:
// in Linux those that were written before the peer's window has opened are smaller.
#include "sender/tcp/bursts.h"

#include "sender/tcp/pacer.h"
#include "sender/tcp/service.h"

#include <math.h>

#define BURST_RATE_PART 1024 // bursts per second at least: sk_pacing_shift
#define BURST_RTT_UNIT_NS (512 * NS_PER_US) // tcp_tso_rtt_log
#define BURST_SEGS_MIN 2
#define BURST_SLOW_BPS 1.2e6 // bbr_min_tso_rate

uint32_t burst_segs(const struct group *g, const struct flow *f) {
	double bps = f->out.pacing_bps > 0 ? f->out.pacing_bps : pacer_window_bps(g, f);
	double bytes = bps / 8 / BURST_RATE_PART;
	uint64_t halved = f->rtt.min_ns / BURST_RTT_UNIT_NS;
	uint32_t segs;

	if (g->has_service && f->service->flow.burst_segs > 0)
		return (uint32_t)min_u64(f->service->flow.burst_segs, burst_segs_max(f));
	if (g->tso != TSO_LINUX)
		return g->tso == TSO_NO ? 1 : (uint32_t)g->tso;
	if (bps <= 0)
		return burst_segs_max(f); // no RTT yet
	if (g->cc->burst_ns > 0) {
		bytes = bps / 8e9 * (double)g->cc->burst_ns;
		return (uint32_t)fmax(fmin(bytes, BURST_BYTES_MAX) / f->payload, 1);
	}
	if (halved < 32)
		bytes += (double)(BURST_BYTES_MAX >> halved);
	segs = (uint32_t)(fmin(bytes, BURST_BYTES_MAX) / f->payload);
	if (segs >= BURST_SEGS_MIN)
		return segs;
	return segs <= 1 && f->out.pacing_bps > 0 && bps < BURST_SLOW_BPS ? 1 : BURST_SEGS_MIN;
}

// Whether to wait for the ACK that makes room for a larger burst (tcp_tso_should_defer). `room`:
// what the congestion window has.
static bool defers(const struct flow *f, uint32_t size, uint64_t room, uint64_t now_ns) {
	uint64_t peer = (f->wnd_bytes - flow_offset(f, f->nxt)) / f->payload;
	uint64_t peer_whole = (f->wnd_bytes - f->una_bytes) / f->payload;
	uint64_t limit = min_u64(room, peer), whole = min_u64((uint64_t)f->cwnd_segs, peer_whole);
	uint64_t buffer = burst_segs_max(f), rest = buffer - f->nxt % buffer;
	uint64_t written_ns = time_max(f->last_send_ns, f->next_send_ns), ack_ns;

	if (f->ca != FLOW_CA_OPEN || f->una == f->nxt || limit >= size
		|| limit >= f->data_segs - f->nxt || limit >= rest || limit >= whole / 3
		|| time_since(now_ns, written_ns) > NS_PER_MS)
		return false;
	ack_ns = flow_sent_ns(flow_seg(f, f->una), now_ns) + f->rtt.srtt_ns;
	return time_since(ack_ns, now_ns) <= time_min(f->rtt.srtt_ns / 2, NS_PER_MS);
}

uint32_t burst_part(
	const struct flow *f, uint32_t size, int64_t room, bool retransmit, uint64_t now_ns) {
	uint32_t n = (uint32_t)min_u64((uint64_t)(room > 0 ? room : 1), size);

	if (retransmit)
		return n;
	if (defers(f, size, (uint64_t)room, now_ns))
		return 0;
	return (uint32_t)min_u64(n, (uint64_t)fmax(f->cwnd_segs / 2, 1));
}

bool burst_ends(const struct flow *f, uint64_t index, bool retransmit) {
	if (retransmit)
		return f->unsent_lost == 1;
	return flow_offset(f, index + 1) + flow_len(f, index + 1) > f->wnd_bytes;
}
