// SPDX-License-Identifier: BSD-3-Clause
// A receive window that follows a buffer and the application that reads from it.
//
// The buffer (`rmem`) grows with what arrives, as Linux's does (tcp_rcv_space_adjust of 6.12). Once
// per round trip, with `copied` bytes read since the last time and `before` in the round trip
// before:
//
//	if copied > before:
//	  window = 2 copied + 16 mss           a round trip's data, and as much again while losses
//	                                       are repaired
//	  window += 2 window (copied - before) / before, room for slow start
//	  buffer = min(window / share, rmem)   never less than it is; share: 0.67, the rest of a
//	                                       buffer is overhead
//
// It begins with 128 KB (tcp_rmem[1]), of which 87 KB are data. What is advertised begins, in the
// SYN-ACK, with the whole segments of the peer that fit into 64 KB, grows by two per segment
// (tcp_grow_window), and is no more than what is free in the buffer while it holds the last
// segment; nothing, if less than a segment or 1/16 of it is (__tcp_select_window). The right edge
// never moves back. The first round trip begins with the connection; round trips are measured by
// the timestamps that data echoes: a shorter one counts at once, a longer one by 1/8
// (tcp_rcv_rtt_update); without timestamps it is the handshake's. What waits behind a hole is in
// the buffer too: a flow that loses much at once may have to wait until the hole is filled.
//
// A slow reader (`read_rate`) takes data from the buffer at a constant rate, so that the window
// closes. Once it could be twice as large, an ACK says so (tcp_cleanup_rbuf); if that is lost, the
// sender's probes of the closed window find out.
//
// Where we differ, and why: the share of data in a buffer is a constant, where the kernel measures
// it for each size of segment (tcp_measure_rcv_mss), because it depends on the card's driver: 0.67
// is that of full segments in buffers of 2.2 KB, as in the guests of tools/sim/guest. A slow reader
// reads bytes, not blocks.
#include "sender/endpoint/endpoint.h"
#include "sender/tcp/receiver.h"

#define BUFFER_START 131072 // tcp_rmem[1]
#define DATA_OF(buffer) ((buffer) / 256 * 171) // scaling_ratio, in 1/256
#define SYN_WINDOW_MAX 65535
#define SEGS_ROUNDED                                                                               \
	2 // a sender whose peer's window holds fewer cuts its segments (tcp_bound_to_half_wnd)
#define FIRST_SEGS 10 // tcp_init_buffer_space: of the first round trip

uint64_t receiver_window_max(const struct group *g) {
	return g->rmem == 0 ? g->rwnd : min_u64(g->rwnd, DATA_OF(g->rmem));
}

void receiver_window_init(struct receiver *r, const struct group *g, uint32_t seg_bytes) {
	struct receiver_window *w = &r->acks->window;

	w->update_ns = NEVER_NS;
	w->limit = UINT64_MAX;
	w->space = receiver_window_max(g);
	if (g->rmem > 0)
		w->space = min_u64(w->space, DATA_OF(BUFFER_START));
	w->advertise = w->edge = min_u64(w->space, SYN_WINDOW_MAX);
	if (g->rmem == 0)
		w->advertise = w->space;
	else if (w->edge >= SEGS_ROUNDED * (uint64_t)seg_bytes)
		w->advertise = w->edge -= w->edge % seg_bytes;
	w->before = FIRST_SEGS * g->payload;
}

void receiver_window_read(const struct endpoint *e, struct receiver *r, uint64_t now_ns) {
	struct receiver_window *w = &r->acks->window;
	double bps = (double)receiver_group(e, r)->read_bps, bytes;

	bytes = (double)time_since(now_ns, w->read_ns) * bps / 8e9;
	if (bps <= 0 || bytes >= (double)(r->rcv_nxt - w->read)) {
		w->read = r->rcv_nxt;
		w->read_ns = now_ns;
	} else {
		w->read += (uint64_t)bytes;
		w->read_ns += (uint64_t)((double)(uint64_t)bytes * 8e9 / bps);
	}
}

// What the buffer has room for.
static uint64_t room(const struct receiver *r) {
	const struct receiver_window *w = &r->acks->window;
	uint64_t held = r->rcv_nxt - w->read + r->range_bytes;

	return held < w->space ? w->space - held : 0;
}

static void measure_rtt(struct receiver *r, const struct seg *s, uint64_t now_ns) {
	struct receiver_window *w = &r->acks->window;
	uint64_t rtt_ns;

	if (!r->ts_ok || (s->options & SEG_OPT_TS) == 0) {
		w->rtt_ns = r->acks->rtt_ns;
		return;
	}
	if (s->len < r->payload || s->tsecr == w->tsecr || s->tsecr == 0)
		return;
	w->tsecr = s->tsecr;
	rtt_ns = (uint64_t)(flow_tsval(now_ns) - s->tsecr) * NS_PER_MS;
	rtt_ns = time_max(rtt_ns, NS_PER_MS);
	if (w->rtt_ns == 0 || rtt_ns < w->rtt_ns)
		w->rtt_ns = rtt_ns;
	else
		w->rtt_ns += rtt_ns / 8 - w->rtt_ns / 8;
}

// tcp_rcv_space_adjust.
static void adjust(const struct group *g, struct receiver *r, uint64_t now_ns) {
	struct receiver_window *w = &r->acks->window;
	uint64_t copied = w->read - w->measured, window;

	if (w->rtt_ns == 0 || now_ns - w->measured_ns < w->rtt_ns)
		return;
	if (copied > w->before) {
		window = 2 * copied + 16 * g->mss;
		window += 2
			* (uint64_t)((double)window * (double)(copied - w->before)
				/ (double)w->before);
		w->space = max_u64(w->space, min_u64(window, receiver_window_max(g)));
		w->before = copied;
	}
	w->measured = w->read;
	w->measured_ns = now_ns;
}

static void ask_control(const struct group *g, struct receiver *r, const struct seg *s, bool late,
	uint8_t ecn, uint64_t now_ns) {
	bool stamped = r->ts_ok && (s->options & SEG_OPT_TS) != 0;
	const struct cc_arrival arrival = {
		.now_ns = now_ns,
		.bytes = s->len,
		.now_ts = flow_tsval(now_ns),
		.tsval = stamped ? s->tsval : 0,
		.tsecr = stamped ? s->tsecr : 0,
		.late = late,
		.ce = ecn == ECN_CE,
	};
	struct receiver_window *w = &r->acks->window;

	w->limit = g->cc->on_arrival(w->control, g->cc_config, &arrival);
}

void receiver_window_data(const struct endpoint *e, struct receiver *r, const struct seg *s,
	bool late, uint8_t ecn, uint64_t now_ns) {
	const struct group *g = receiver_group(e, r);
	struct receiver_window *w = &r->acks->window;
	uint64_t most;

	receiver_window_read(e, r, now_ns);
	if (g->cc != NULL && g->cc->on_arrival != NULL && s->len > 0)
		ask_control(g, r, s, late, ecn, now_ns);
	if (g->rmem == 0)
		return;
	measure_rtt(r, s, now_ns);
	// The segment itself is not yet read. One beyond a hole is charged after this question
	// (tcp_data_queue_ofo).
	most = seq_diff(s->seq, receiver_seq(r, r->rcv_nxt)) > 0
		? min_u64(w->space, room(r) + s->len)
		: min_u64(w->space - s->len, room(r));
	if (most > w->advertise) {
		w->advertise = min_u64(most, w->advertise + 2 * (uint64_t)s->len);
		r->acks->grew = true;
	}
	adjust(g, r, now_ns); // the application reads what has been taken
}

// The window that may be advertised now, were there no edge (__tcp_select_window).
static uint64_t selected(const struct receiver *r) {
	const struct receiver_window *w = &r->acks->window;
	uint64_t free = room(r);

	if (free < w->space / 2 && (free < w->space / 16 || free < r->payload))
		return 0;
	return min_u64(min_u64(free, w->advertise), w->limit);
}

void receiver_window_set(const struct endpoint *e, struct receiver *r, uint64_t now_ns) {
	struct receiver_window *w = &r->acks->window;
	uint64_t unit = UINT64_C(1) << r->wscale, size;

	receiver_window_read(e, r, now_ns);
	w->edge = max_u64(w->edge, r->rcv_nxt + (selected(r) & ~(unit - 1)));
	size = (w->edge - r->rcv_nxt + unit - 1) >> r->wscale;
	r->window = (uint16_t)min_u64(size, UINT16_MAX);
	w->edge = max_u64(w->edge, r->rcv_nxt + ((uint64_t)r->window << r->wscale));
}

// The reader frees space: when the window can be twice what the peer knows of.
uint64_t receiver_window_update_ns(const struct endpoint *e, struct receiver *r, uint64_t now_ns) {
	struct receiver_window *w = &r->acks->window;
	double bps = (double)receiver_group(e, r)->read_bps;
	uint64_t known = w->edge > r->rcv_nxt ? w->edge - r->rcv_nxt : 0;
	uint64_t wanted = max_u64(2 * known, max_u64(w->space / 16, r->payload)), free;
	uint64_t unit = UINT64_C(1) << r->wscale;

	w->update_ns = NEVER_NS;
	wanted = (wanted + unit - 1) & ~(unit - 1);
	// What may be advertised grows only with data: until then an ACK would say nothing new.
	if (bps <= 0 || r->fin_seen || wanted > min_u64(w->space, w->advertise))
		return NEVER_NS;
	receiver_window_read(e, r, now_ns);
	free = room(r);
	if (free >= w->space)
		return NEVER_NS; // all is read: the last ACK said so
	w->update_ns = free >= wanted
		? now_ns
		: w->read_ns + (uint64_t)((double)(wanted - free + 1) * 8e9 / bps) + 1;
	w->update_ns = time_max(w->update_ns, now_ns);
	return w->update_ns;
}
