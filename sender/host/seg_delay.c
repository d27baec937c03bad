// SPDX-License-Identifier: BSD-3-Clause
#include "sender/host/seg_delay.h"

#include "common/base/mem.h"

#include <errno.h>

static uint64_t slots_for(uint64_t segs) {
	uint64_t slots = 1024;

	while (slots < segs)
		slots *= 2;
	return slots;
}

uint64_t seg_delay_bytes(uint64_t segs) {
	return slots_for(segs) * sizeof(struct delayed_seg);
}

int seg_delay_init(struct seg_delay *d, uint64_t delay_ns, uint64_t segs, struct err *err) {
	uint64_t bytes = seg_delay_bytes(segs);

	*d = (struct seg_delay){.delay_ns = delay_ns, .slots = (uint32_t)slots_for(segs)};
	if (slots_for(segs) <= UINT32_MAX)
		d->slot = mem_map(bytes);
	if (d->slot == NULL)
		return err_set(err, -ENOMEM, "no memory for %llu delayed segments (%.0f MB)",
			(unsigned long long)segs, (double)bytes / 1e6);
	return 0;
}

void seg_delay_fini(struct seg_delay *d) {
	if (d->slot != NULL)
		mem_unmap(d->slot, d->slots * sizeof(*d->slot));
	d->slot = NULL;
}
