// SPDX-License-Identifier: BSD-3-Clause
// Detection of spurious window reductions: segments that were declared lost may only have been
// late, because packets were reordered or because the path has become slower than the timeout. Four
// ways to detect it:
//
//	Eifel (RFC 3522)    an ACK in sequence echoes a timestamp from before the first
//	                    retransmission: it answers the original
//	D-SACK (RFC 3708)   every retransmission of the episode was reported as a duplicate; reports
//	                    of what was sent once are of the network's duplicates
//	F-RTO (RFC 5682 3)  after a timeout: the ACK of the retransmission releases new segments
//	                    instead of further retransmissions, and the next ACK acknowledges some
//	                    that were never retransmitted
//	nothing was sent    the episode ended before anything was retransmitted
//
// In each case the algorithm takes its reduction back (cc_ops.on_spurious), and lost segments that
// were not yet retransmitted count as in flight.
//
// Where we differ from the RFCs, and why
//   - As in Linux, a fast recovery is not taken back by Eifel while other retransmissions are in
//     flight: they may answer real losses. D-SACKs may still prove it later.
//   - A reduction by ECN is never taken back, nor a timeout in fast recovery: the losses before it
//     may have been real.
//   - RFC 4015's response is the algorithm's window as it was; the RTT estimator learns from the
//     samples that follow.
//   - F-RTO needs SACK here; RFC 5682 section 2 without SACK is not built. As in Linux it goes on
//     after a repeated timeout of the same segment, where the RFC ends it.
//   - A loss that the tail loss probe has repaired is not taken back: its reduction begins when the
//     repair is known.
#include "sender/endpoint/endpoint.h"
#include "sender/tcp/loss.h"

// Retransmissions that are already in flight, a tail loss probe included, count as part of the
// episode: they may have had the same cause.
void spurious_start(struct flow *f, bool timeout, uint64_t now_ns) {
	f->undo_from = f->una;
	f->undo_timeout = timeout;
	f->undo_retrans = f->retrans + (f->tlp_end != 0 && f->tlp_retrans);
	f->undo_sent = f->retrans > 0;
	if (f->undo_sent)
		f->undo_tsval = flow_tsval(flow_sent_ns(flow_seg(f, f->retrans_head), now_ns));
}

void spurious_sent(struct flow *f, uint64_t now_ns) {
	f->undo_retrans++;
	if (f->undo_sent)
		return;
	f->undo_sent = true;
	f->undo_tsval = flow_tsval(now_ns);
}

void spurious_duplicates(struct flow *f, const struct seg_sack *b, struct delivery *d) {
	uint32_t segs = (b->end - b->start + f->payload - 1) / f->payload;

	if (f->undo_from == UNDO_NONE || !f->undo_sent
		|| seq_diff(b->start, flow_seq(f, f->undo_from)) < 0
		|| seq_diff(b->start, flow_seq(f, f->recover)) >= 0)
		return;
	f->undo_retrans -= segs < f->undo_retrans ? segs : f->undo_retrans;
	d->all_duplicates = f->undo_retrans == 0;
	// Retransmitted because later segments had arrived, and yet not lost: packets were
	// reordered.
	d->reordered |= !f->undo_timeout;
}

static bool eifel(const struct flow *f, const struct delivery *d) {
	return d->advanced && f->undo_sent && d->tsecr != 0
		&& seq_diff(d->tsecr, f->undo_tsval) < 0;
}

// RFC 5682 section 3.1, steps 2 and 3. True: the timeout was spurious.
static bool frto(struct flow *f, const struct delivery *d) {
	switch ((enum flow_frto)f->frto) {
	case FRTO_OFF:
		return false;
	case FRTO_RETRANSMITTED:
		if (d->advanced)
			f->frto = f->una < f->recover ? FRTO_NEW : FRTO_OFF;
		return false;
	case FRTO_NEW:
		if (d->acked == 0 && !d->advanced)
			return false;
		f->frto = FRTO_OFF;
		return d->original && f->una < f->recover;
	}
	return false;
}

// Clears the loss marks of segments that were not retransmitted: they count as in flight again.
// From the highest number down, because RACK's scan needs transmission times in order.
static void unmark(struct flow *f, uint64_t now_ns) {
	uint64_t next_ns = UINT64_MAX;

	for (uint64_t i = f->nxt; i-- > f->una;) {
		struct seg_rec *r = flow_seg(f, i);
		uint64_t sent_ns = flow_sent_ns(r, now_ns);

		if ((r->flags & (SENT_SACKED | SENT_RETRANS)) != 0
			|| ((r->flags & SENT_LOST) != 0 && sent_ns > next_ns))
			continue;
		next_ns = sent_ns;
		if ((r->flags & SENT_LOST) == 0)
			continue;
		r->flags &= (uint16_t)~SENT_LOST;
		f->lost--;
		flow_packet(f, i, CC_PACKET_RESTORED, now_ns);
		loss_unsent_end(f, i);
	}
	f->rack_scan = f->una;
}

static void undo(struct endpoint *e, struct flow *f, uint32_t how, uint64_t now_ns) {
	const struct group *g = flow_group(e, f);
	double before = f->out.cwnd_segs;

	if (f->unsent_lost > 0)
		unmark(f, now_ns);
	// The original arrived: RACK's RTT of the retransmission is wrong.
	if (f->rack_retrans)
		f->rack_sent_ns = 0;
	f->undo_from = UNDO_NONE;
	f->frto = FRTO_OFF;
	// With retransmissions in flight the state stays until they are acknowledged, without a
	// further reduction.
	if (f->lost == 0)
		f->ca = FLOW_CA_OPEN;
	if (f->undo_timeout)
		f->count.spurious_timeouts++;
	else
		f->count.spurious_recoveries++;
	if (g->cc->on_spurious != NULL)
		g->cc->on_spurious(f->cc_state, g->cc_config, now_ns, &f->out);
	flow_note_mode(e, f);
	endpoint_event(e, f, TEL_EV_UNDO, before, f->out.cwnd_segs, how, now_ns);
}

void spurious_detect(struct endpoint *e, struct flow *f, struct delivery *d) {
	bool loss = f->ca == FLOW_CA_LOSS, recovery = f->ca == FLOW_CA_RECOVERY;

	if (f->undo_from == UNDO_NONE)
		return;
	if ((loss || recovery) && eifel(f, d)) {
		d->reordered |= recovery;
		if (loss || f->retrans == 0)
			undo(e, f, TEL_UNDO_EIFEL, d->now_ns);
	} else if (d->all_duplicates) {
		undo(e, f, TEL_UNDO_DSACK, d->now_ns);
	} else if (loss && frto(f, d)) {
		undo(e, f, TEL_UNDO_FRTO, d->now_ns);
	} else if (recovery && !f->undo_sent && f->una >= f->recover) {
		undo(e, f, TEL_UNDO_UNSENT, d->now_ns);
	}
}
