// SPDX-License-Identifier: BSD-3-Clause
#include "sender/tcp/send_buffer.h"

#include "sender/tcp/bursts.h"

#define SKB_BYTES 896 // of a buffer without data: sk_buff, 320 of headers, skb_shared_info
#define OVERHEAD_BYTES 640 // MAX_TCP_HEADER, skb_shared_info
#define SK_BUFF_BYTES 256
#define WINDOWS 2 // tcp_sndbuf_expand, without a control's own
#define SEGS_MIN 10 // TCP_INIT_CWND

static void grow(const struct group *g, struct flow *f) {
	uint64_t segs = max_u64((uint64_t)f->cwnd_segs, max_u64(SEGS_MIN, f->reordering + 1));
	uint64_t memory = 1;

	while (memory < g->mss + OVERHEAD_BYTES)
		memory *= 2;
	memory = WINDOWS * segs * (memory + SK_BUFF_BYTES);
	f->buffer_bytes = max_u64(f->buffer_bytes, min_u64(memory, g->wmem));
}

static uint64_t queued(const struct group *g, const struct flow *f) {
	uint64_t sent = f->nxt - f->una - (f->sack_ok ? f->sacked : 0);
	uint64_t unsent = f->written - f->nxt;
	uint32_t burst = g->bursts ? burst_segs(g, f) : 1;
	uint64_t skbs =
		(sent + burst - 1) / burst + (unsent + burst_segs_max(f) - 1) / burst_segs_max(f);

	return flow_offset(f, f->written) - f->una_bytes + skbs * SKB_BYTES;
}

void send_buffer_open(const struct group *g, struct flow *f) {
	f->buffered = g->wmem > 0;
	if (f->buffered)
		grow(g, f);
}

bool send_buffer_write(const struct endpoint *e, struct flow *f, uint64_t now_ns) {
	const struct group *g = flow_group(e, f);
	uint64_t held, end;

	if (f->written >= f->data_segs || (now_ns >= f->stop_ns && !f->keep))
		return false;
	if (flow_window_room(f) > 0)
		grow(g, f);
	held = queued(g, f);
	if (f->buffer_bytes < held + held / 2)
		return false;
	if (f->nxt == f->written && flow_window_room(f) > 0 && f->unsent_lost == 0)
		flow_app_limits(f);
	// The last socket buffer is filled, once it has begun.
	end = f->written + (f->buffer_bytes - held) / f->payload + 1;
	end += burst_segs_max(f) - 1;
	f->written = min_u64(end - end % burst_segs_max(f), f->data_segs);
	return true;
}
