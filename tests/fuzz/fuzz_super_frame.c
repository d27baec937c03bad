// SPDX-License-Identifier: BSD-3-Clause
// Any bytes as a kernel's super-frame, behind two for the size of its packets: nothing is read or
// written outside of it and of its packets, and packets that are joined again have its payload.
#include "fuzz.h"

#include "common/net/super_frame.h"

// Reads a packet beside the one before it, each in memory that ends where it does.
static void check_packet(
	const uint8_t *before, uint32_t before_len, const uint8_t *packet, uint32_t len) {
	struct joint first, next;
	uint8_t header[SUPER_FRAME_HEADER];

	joint_read(&first, before, before_len, true);
	joint_read(&next, packet, len, false);
	next.joins |= next.payload > 0; // whatever its sum is
	if (!joint_same_flow(&first, &next) || !joint_follows(&first, &first, &next, first.payload))
		return;
	NEED(first.header <= before_len && next.header == first.header);
	NEED(joint_header(&first, &next, first.payload + next.payload, header) == first.header);
}

static void cut(const struct super_frame *f) {
	uint8_t *before = NULL;
	uint32_t before_len = 0, payload = 0;

	NEED(f->l4 < f->header && f->header < f->len);
	for (uint32_t offset = 0; f->header + offset < f->len; offset += f->size) {
		uint8_t *packet = malloc(f->header + f->size);
		uint32_t len = super_frame_cut(f, offset, packet);

		NEED(len > f->header && len <= f->header + f->size);
		NEED(memcmp(packet + f->header, f->bytes + f->header + offset, len - f->header)
			== 0);
		payload += len - f->header;
		packet = realloc(packet, len);
		if (before != NULL)
			check_packet(before, before_len, packet, len);
		super_frame_fill_sum(packet, len);
		free(before);
		before = packet;
		before_len = len;
	}
	free(before);
	NEED(f->header + payload == f->len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	struct super_frame f;
	uint8_t *frame;
	uint32_t l4;

	if (size < 2)
		return 0;
	frame = malloc(size - 1); // one of 0 bytes is NULL
	memcpy(frame, data + 2, size - 2);
	check_packet(frame, (uint32_t)size - 2, frame, (uint32_t)size - 2);
	if (super_frame_sum_at(frame, size - 2, &l4) > 0)
		super_frame_fill_sum(frame, size - 2);
	if (super_frame_read(&f, frame, (uint32_t)size - 2, data[0] | (uint32_t)data[1] << 8))
		cut(&f);
	free(frame);
	return 0;
}
