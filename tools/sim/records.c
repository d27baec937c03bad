// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// Address space: ten times what 10 Gbit/s has in 100 ms; of a browser, where it is memory, less.
#define KEPT (UINT64_C(1) << (sizeof(void *) < 8 ? 18 : 22))

int records_init(
	struct records *r, struct tel *stream, const struct tel_run *run, struct err *err) {
	struct tel_run ring_only = *run;
	int rc = 0;

	ring_only.dir = NULL;
	r->stream = stream;
	for (uint32_t d = 0; d < FLOWS_DIRECTIONS && rc == 0; d++) {
		rc = tel_open(&r->kept[d], TEL_STREAM_PACKETS, &ring_only, "", KEPT, err);
		r->kept[d].lossless = false; // nothing drains it
	}
	return rc;
}

static struct tel_packets *kept(const struct tel *t) {
	return (struct tel_packets *)(void *)t->records;
}

// Of one time: any order that is always the same.
static int compare(const void *a, const void *b) {
	const struct tel_packets *x = a, *y = b;

	if (x->ts_ns != y->ts_ns)
		return x->ts_ns < y->ts_ns ? -1 : 1;
	return memcmp(x, y, sizeof(*x));
}

int records_move(struct records *r, uint64_t now_ns, struct err *err) {
	struct tel *all = &r->kept[FLOWS_FORWARD], *back = &r->kept[FLOWS_REVERSE];
	uint64_t count = all->written + back->written, moved = 0;
	struct tel_packets *record = kept(all);

	if (count == 0)
		return 0;
	if (all->lost + back->lost > 0 || count > KEPT)
		return err_set(err, -ENOSPC,
			"telemetry: more than %llu packets are recorded in one interval; choose a "
			"smaller sample or a shorter interval",
			(unsigned long long)KEPT / 2);
	memcpy(&record[all->written], kept(back), back->written * sizeof(*record));
	qsort(record, count, sizeof(*record), compare);
	for (; moved < count && record[moved].ts_ns < now_ns; moved++)
		*(struct tel_packets *)tel_put(r->stream) = record[moved];
	memmove(record, &record[moved], (count - moved) * sizeof(*record));
	all->written = count - moved;
	back->written = 0;
	return 0;
}

void records_fini(struct records *r) {
	struct err err;

	for (uint32_t d = 0; d < FLOWS_DIRECTIONS; d++)
		tel_close(&r->kept[d], &err);
}
