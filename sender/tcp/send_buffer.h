// SPDX-License-Identifier: BSD-3-Clause
// A sender's buffer of limited size (`wmem`), and the application that fills it.
//
// What the application has written stays in the buffer until it is acknowledged, also what the peer
// has SACKed. With data left it writes until the buffer is full, and again once a third is free
// (sk_stream_memory_free, sk_stream_is_writeable):
//
//	queued      = bytes from una to `written`, and SKB_BYTES for each burst of them; bursts that
//	              were SACKed are joined (tcp_shift_skb_data)
//	full          queued >= size
//	writes again  size - queued >= queued / 2
//
// The buffer grows, at most to `wmem`, while the congestion window is not full
// (tcp_should_expand_sndbuf, tcp_sndbuf_expand):
//
//	size = 2 max(cwnd, 10, reordering + 1) memory     never less than it is
//	memory of a segment by itself = 2^k + 256 bytes, 2^k >= mss + 640
//
// So mostly its largest size limits a flow. Then rate samples are limited by the application from
// each write on that finds everything sent, the window open and each loss repaired, until all that
// was in flight then is delivered (tcp_rate_check_app_limited). A flow that stops still sends what
// was written.
//
// Where we differ, and why: the bursts in flight count as if all had the size of the next one, as
// they do at a steady rate; of what was sent again by itself Linux cuts bursts in two. BBR's buffer
// has three windows at least, not two (bbr_sndbuf_expand): the difference is below the limit, where
// a size matters only to flows whose SACKed data wait behind holes for many round trips.
#pragma once
#include "sender/endpoint/endpoint.h"
#include "sender/tcp/flow.h"

// When the connection opens: a buffer, if its group has one.
void send_buffer_open(const struct group *g, struct flow *f);
// Lets the application write. True: it has written, and there may be more to send.
bool send_buffer_write(const struct endpoint *e, struct flow *f, uint64_t now_ns);

// Whether segment `index` is data that the application has yet to write.
static inline bool send_buffer_lacks(const struct flow *f, uint64_t index) {
	return unlikely(f->buffered) && index >= f->written && index < f->data_segs;
}
