// SPDX-License-Identifier: BSD-3-Clause
// Any bytes as a capture: nothing is read outside it, every packet is counted once, every
// connection ends once, decryption secrets are whole blocks, and memory stays what it was.
#include "tools/pcap/analysis.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(x)                                                                                 \
	do {                                                                                       \
		if (!(x))                                                                          \
			abort();                                                                   \
	} while (0)

static struct analysis a;
static struct reader r;

static void read_secrets(const uint8_t *data, size_t size) {
	struct frame frames[READER_BATCH];
	struct err err;
	uint32_t block[3];
	size_t at;

	if (reader_open_memory(&r, "fuzz", data, size, &err) < 0)
		return;
	r.keep_secrets = true;
	while (reader_batch(&r, frames, READER_BATCH, &err) > 0)
		;
	for (at = 0; at < r.secrets.size; at += block[1]) {
		memcpy(block, r.secrets.bytes + at, sizeof(block));
		REQUIRE(block[0] == SECRETS_BLOCK && block[1] >= SECRETS_HEAD + 4);
	}
	REQUIRE(at == r.secrets.size);
	reader_close(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	static const struct tel_run run = {.level = 3};
	static struct tel tel[TEL_STREAM_COUNT];
	// Few and little, so that flows are evicted and segments forgotten.
	const struct track_limits limits = {
		.connections = 16,
		.sent_bytes = 1 << 14,
		.idle_ns = NS_PER_S,
		.interval_ns = 1000000,
		.level = 3,
	};
	struct err err;

	REQUIRE(analysis_init(&a, &limits, tel, &run, &err) == 0);
	points_init(&a.points, "");
	if (parts_init_memory(&a.parts, "fuzz", data, size, &err) == 0) {
		int rc = analysis_read(&a, NULL, NULL, &err);

		REQUIRE(rc == 0 || rc == -EINVAL); // compressed bytes that are damaged
	}
	REQUIRE(analysis_balanced(&a));
	REQUIRE(a.track.live == 0);
	for (uint32_t i = 0; i < a.track.groups; i++)
		REQUIRE(a.track.group[i].lost_segs <= a.track.group[i].retransmits);
	analysis_fini(&a);
	read_secrets(data, size);
	return 0;
}
