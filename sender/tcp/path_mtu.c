// SPDX-License-Identifier: BSD-3-Clause
// Path MTU discovery (RFC 1191, RFC 8201): a router that drops a packet because it is too large for
// the next link says so by ICMP, with that link's MTU. The segments become smaller, what is in
// flight is cut anew and sent again, and that is all: it is no sign of congestion, so the window
// keeps its segments, as Linux's does (tcp_simple_retransmit).
//
// A flow's segments are numbered by their size (flow.h), so a new size gives all of them new
// numbers: segment i is [i payload, (i + 1) payload) again, of which the first may be acknowledged
// in part. What was sent of a segment that was not sent whole counts as a window probe's bytes
// (probe_end), which a segment carries again. Each new record is that of the bytes' last
// transmission; a segment is SACKED if all that it overlaps were.
//
// Where we differ from Linux, and why
//   - All that is not SACKED counts as lost, although a part may have passed before the path
//     changed; Linux marks what is larger than the new size, the same but for the last segment.
//   - The MTU of a path is not raised again after ten minutes; of a flow's next connection it
//     stays.
#include "sender/tcp/path_mtu.h"
#include "common/net/wire.h"
#include "sender/endpoint/endpoint.h"
#include "sender/tcp/loss.h"

#include <string.h>

// Less is not believed: Linux's ip_no_pmtu_disc and min_pmtu; RFC 8200 section 5.
#define MTU_MIN 552
#define MTU_MIN_IPV6 1280

uint32_t path_mtu_payload(const struct endpoint *e, const struct flow *f) {
	const struct group *g = flow_group(e, f);

	if (f->path_mtu == 0)
		return UINT32_MAX;
	return f->path_mtu - g->ip_header - WIRE_TCP - (f->ts_ok ? 12u : 0u);
}

// The segment with the byte at an offset.
static uint64_t segment_at(const struct flow *f, uint64_t offset) {
	if (f->data_segs != FLOW_ENDLESS && offset >= f->total_bytes)
		return f->data_segs + (offset > f->total_bytes);
	return f->writes ? writes_segment(f, offset, false) : offset / f->payload;
}

static uint64_t segs_of(const struct flow *f, uint64_t bytes) {
	return (bytes + f->payload - 1) / f->payload;
}

// Gives all data their numbers by the flow's new payload.
static void renumber(struct flow *f) {
	uint64_t seg = f->write_seg, bytes = f->write_bytes;

	for (uint32_t k = 0; f->writes && k < f->transfers; k++) {
		struct flow_transfer *t = &f->transfer[(f->transfer_first + k) % f->transfer_room];

		t->end_seg = seg += segs_of(f, t->end_bytes - bytes);
		bytes = t->end_bytes;
	}
	if (f->data_segs != FLOW_ENDLESS)
		f->data_segs = f->writes ? seg : segs_of(f, f->total_bytes);
}

// The segment whose record bytes [from, to) get, of those that had them.
static uint64_t merged(const struct flow *old, uint64_t from, uint64_t to) {
	uint64_t i = segment_at(old, from), last = segment_at(old, to - 1), found = i;

	for (; i <= last; i++) {
		if ((flow_seg(old, i)->flags & SENT_SACKED) == 0)
			found = i;
	}
	return found;
}

// Writes the records of [una, nxt), and counts them. `lost`: what is not SACKED is.
static void fill(struct flow *f, const struct flow *old, bool lost) {
	f->sacked = f->lost = 0;
	f->fack = f->una;
	for (uint64_t i = f->una; i < f->nxt; i++) {
		uint64_t from = flow_offset(f, i), len = flow_len(f, i);
		struct seg_rec *r = flow_seg(f, i);

		seg_copy(&f->ring, i, &old->ring,
			merged(old, max_u64(from, f->una_bytes), from + (len > 0 ? len : 1)));
		r->flags &= (uint16_t) ~(SENT_LOST | SENT_RETRANS);
		if ((r->flags & SENT_SACKED) != 0) {
			flow_links(f, i)->sacked_end = (uint32_t)(i + 1);
			f->fack = i + 1;
			f->sacked++;
		} else if (lost) { // its RTT is none (Karn)
			r->flags |= SENT_LOST | SENT_EVER_RETRANS;
			f->lost++;
		}
	}
	f->unsent_lost = f->lost;
	f->retrans = 0;
	f->retrans_head = f->retrans_tail = UINT64_MAX;
}

// What else has the numbers of segments.
static void restart(struct flow *f) {
	f->rtx_hint = f->rack_seg = f->dsack_round = f->una;
	f->relost = 0;
	f->rack_scan = f->lost > 0 ? f->nxt : f->una;
	f->cwnd_limited_nxt = f->recover = f->nxt;
	f->tlp_end = 0;
	f->seen_count = 0;
	f->dupacks = 0;
	f->undo_from = UNDO_NONE;
	f->frto = FRTO_OFF;
	if (f->rtx_end != UINT64_MAX)
		f->rtx_end = f->nxt;
	if (f->rtx_kind == RTX_REO)
		f->rtx_kind = RTX_RTO;
}

// Gives what is not acknowledged segments of another size. False: the arena has no room for the
// records; nothing was done.
static bool resize(struct endpoint *e, struct flow *f, uint32_t payload, bool lost) {
	struct flow_transfer transfer[UINT8_MAX];
	const size_t transfers = f->writes ? f->transfer_room * sizeof(transfer[0]) : 0;
	uint64_t whole = flow_offset(f, f->nxt);
	struct flow old;

	flow_keep_delivered(f);
	old = *f;
	if (transfers > 0)
		memcpy(transfer, f->transfer, transfers);
	old.transfer = transfer;
	f->payload = payload;
	renumber(f);
	f->una = segment_at(f, f->una_bytes);
	f->nxt = max_u64(segment_at(f, whole), f->una);
	if (f->buffered)
		f->written = max_u64(segment_at(f, flow_offset(&old, old.written)), f->nxt);
	f->ring = (struct seg_ring){.stride = old.ring.stride};
	while (f->ring.rec == NULL || f->nxt - f->una > f->ring.mask) {
		if (seg_ring_grow(&f->ring, &e->arena, f->una, f->una))
			continue;
		seg_ring_free(&f->ring, &e->arena);
		if (transfers > 0)
			memcpy(f->transfer, transfer, transfers);
		old.transfer = f->transfer;
		*f = old;
		return false;
	}
	fill(f, &old, lost);
	seg_ring_free(&old.ring, &e->arena);
	f->probe_end = max_u64(f->probe_end, whole);
	restart(f);
	return true;
}

bool path_mtu_resize(struct endpoint *e, struct flow *f, uint32_t payload, bool lost, uint32_t why,
	uint64_t now_ns) {
	uint32_t before = f->payload;

	if (!resize(e, f, payload, lost)) {
		e->count.seg_refused++;
		return false;
	}
	endpoint_event(e, f, TEL_EV_PATH_MTU, before, payload, why, now_ns);
	return true;
}

uint32_t flow_too_big(
	struct endpoint *e, struct flow *f, uint32_t seq, uint32_t mtu, uint64_t now_ns) {
	uint32_t least = flow_group(e, f)->ip == GROUP_IPV6 ? MTU_MIN_IPV6 : MTU_MIN;
	uint32_t ahead = seq - (f->iss + 1 + (uint32_t)f->una_bytes);

	// RFC 5927 section 7.2: it quotes what is in flight, or somebody has made it up.
	if (f->state != FLOW_OPEN || ahead >= flow_sent_bytes(f) - f->una_bytes) {
		e->count.rx_bad++;
		return 0;
	}
	mtu = mtu > least ? mtu : least;
	f->path_mtu = f->path_mtu == 0 || mtu < f->path_mtu ? mtu : f->path_mtu;
	if (path_mtu_payload(e, f) >= f->payload)
		return 0; // an answer to a packet from before
	if (!path_mtu_resize(e, f, path_mtu_payload(e, f), true, PATH_MTU_ICMP, now_ns))
		return 0;
	f->search.high = (uint32_t)min_u64(f->search.high, f->payload);
	if (f->lost > 0)
		f->ca = FLOW_CA_LOSS; // no reduction follows
	flow_send(e, f, now_ns, now_ns);
	flow_arm_rtx(e, f, now_ns);
	return f->path_mtu;
}
