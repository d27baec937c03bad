// SPDX-License-Identifier: BSD-3-Clause
// Numbers, offsets and sizes of segments where transfers share a connection: each one's last
// segment may be short.
//
//	write_seg, write_bytes    where the oldest transfer begins that is not acknowledged
//	end_seg, end_bytes        where each of them ends, and the next begins
//
// Segments below write_seg are acknowledged; of them the offsets are not known any more. They are
// only compared with.
#include "sender/tcp/flow.h"

// The transfer that a segment, or a byte, belongs to. Without one it is of size 0, at the end of
// all that was written.
struct written {
	uint64_t seg, bytes;
	uint64_t end_seg, end_bytes;
};

static bool next(const struct flow *f, uint32_t k, struct written *w) {
	const struct flow_transfer *t = &f->transfer[(f->transfer_first + k) % f->transfer_room];

	w->seg = k == 0 ? f->write_seg : w->end_seg;
	w->bytes = k == 0 ? f->write_bytes : w->end_bytes;
	w->end_seg = k < f->transfers ? t->end_seg : f->data_segs;
	w->end_bytes = k < f->transfers ? t->end_bytes : f->total_bytes;
	return k < f->transfers;
}

static struct written of_segment(const struct flow *f, uint64_t index) {
	struct written w = {0};

	for (uint32_t k = 0; next(f, k, &w) && w.end_seg <= index; k++)
		;
	return w;
}

uint64_t writes_offset(const struct flow *f, uint64_t index) {
	struct written w = of_segment(f, index);

	return w.bytes + (index - w.seg) * f->payload;
}

uint32_t writes_len(const struct flow *f, uint64_t index) {
	struct written w = of_segment(f, index);
	uint64_t left = w.end_bytes - (w.bytes + (index - w.seg) * f->payload);

	return (uint32_t)min_u64(left, f->payload);
}

uint64_t writes_segment(const struct flow *f, uint64_t offset, bool up) {
	struct written w = {0};

	for (uint32_t k = 0; next(f, k, &w) && w.end_bytes <= offset; k++)
		;
	return w.seg + (offset - w.bytes + (up ? f->payload - 1 : 0)) / f->payload;
}

uint64_t writes_sacked_bytes(const struct flow *f) {
	uint64_t bytes = 0;

	for (uint64_t i = f->una; f->sacked > 0 && i < f->nxt; i++) {
		if ((flow_seg(f, i)->flags & SENT_SACKED) != 0)
			bytes += flow_len(f, i);
	}
	return bytes;
}
