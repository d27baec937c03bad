// SPDX-License-Identifier: BSD-3-Clause
#include "sender/tcp/accecn.h"

#include "sender/endpoint/endpoint.h"
#include "sender/tcp/loss.h"

// Of the numbers d, d + 8, ... up to `most` the smallest that is not below `least`.
static uint32_t not_below(uint32_t d, uint32_t least, uint32_t most) {
	uint32_t n = least > d ? d + (least - d + 7) / 8 * 8 : d;

	return n <= most ? n : most;
}

uint32_t accecn_marks(
	struct accecn_sender *s, const struct seg *ack, uint32_t acked, uint32_t payload) {
	uint32_t d = (seg_ace(ack) - s->cep) & 7, marks = d;
	bool option = seg_has_ceb(ack);

	if (acked >= 8) {
		uint32_t safer = acked - ((acked - d) & 7);

		marks = safer;
		if (option && s->ceb_known) {
			uint32_t bytes = (ack->ecn_bytes[SEG_ECN_CEB] - s->ceb) & ACCECN_BYTES_MASK;

			marks = not_below(d, (bytes + payload - 1) / payload, safer);
		}
	}
	s->ceb_known = option;
	if (option)
		s->ceb = ack->ecn_bytes[SEG_ECN_CEB];
	s->cep += marks;
	return marks;
}

bool flow_take_marks(struct endpoint *e, struct flow *f, const struct seg *s, struct delivery *d) {
	const struct cc_ops *cc = flow_group(e, f)->cc;
	bool ece = !f->accecn && (s->flags & SEG_ECE) != 0;

	if (f->accecn && f->marks.first) {
		f->ecn_ok = seg_ace(s) != 0;
		f->marks.first = false;
	}
	if (!f->ecn_ok)
		return false;
	if (f->accecn && d->acked > 0 && !d->old && seq_diff(s->tsval, f->ts_recent) >= 0) {
		d->ce = accecn_marks(&f->marks, s, d->acked, f->payload);
		ece = d->ce > 0;
		d->each = !ece ? CC_CE_NO : d->ce >= d->acked ? CC_CE_YES : CC_CE_UNKNOWN;
	} else if (!f->accecn && !f->classic_ecn) {
		d->ce = ece ? d->acked : 0;
		d->each = ece ? CC_CE_YES : CC_CE_NO;
	} else if (ece) {
		d->ce = !f->echoing;
	}
	f->echoing = ece;
	f->count.ce_segs += d->ce;
	if (!cc->ecn || f->classic_ecn)
		d->ce = 0;
	if (d->ce > d->acked)
		d->ce = d->acked; // the rest is of segments that earlier ACKs have acknowledged
	return ece && cc->ecn;
}
