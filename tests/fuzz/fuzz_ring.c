// SPDX-License-Identifier: BSD-3-Clause
// Any bytes as a recording of arrivals (weir-sim --replay).
//
// The input is patches of a good header, {place, eight bytes}, up to the first place beyond the
// page, then records: a recording needs a header that is nearly right. What is refused, at the
// start or at a record, says so in one line; whatever was put through the paths balances their
// ledger.
#include "fuzz.h"

#include "tools/sim/run/replay.h"

#include <sys/mman.h>
#include <unistd.h>

static const char experiment[] =
	"paths:\n"
	"  forward:\n"
	"    - loss: {rate: 5%}\n"
	"    - link: {rate: 1Mbit, queue: {codel: {ecn: yes, limit: 20kB}}}\n"
	"    - delay: {delay: 10ms}\n"
	"  reverse:\n"
	"    - delay: {delay: 1ms}\n"
	"    - link: {rate: 10Mbit, queue: {fifo: {limit: 4kB}}}\n"
	"flows: [{cc: newreno, count: 2}]\n"
	"telemetry: {level: 3}\n";

static void need_sentence(const struct err *err) {
	NEED(err->msg[0] != '\0' && strchr(err->msg, '\n') == NULL);
}

// Writes the recording that the input describes to a file in memory; its descriptor.
static int recording(struct input *in) {
	_Alignas(64) uint8_t page[TEL_HEADER_SIZE] = {0};
	struct tel_header *h = (struct tel_header *)(void *)page;
	size_t count, place;
	int fd = memfd_create("arrivals.ring", 0);

	memcpy(h->magic, TEL_MAGIC, sizeof(h->magic));
	h->endian = TEL_ENDIAN;
	h->version = TEL_VERSION;
	h->header_size = TEL_HEADER_SIZE;
	h->record_size = sizeof(struct tel_arrivals);
	h->stream = TEL_STREAM_ARRIVALS;
	h->seed = 1;
	h->virtual_time = in_u8(in) & 1;
	atomic_store(&h->closed, 1);
	struct input patches = *in;
	while (in->at < in->end && (place = in_u16(in)) + 8 <= TEL_HEADER_SIZE)
		in_bytes(in, 8);
	count = (size_t)(in->end - in->at) / sizeof(struct tel_arrivals);
	atomic_store(&h->published[0].head, count);
	atomic_store(&h->published[0].written, count);
	while (patches.at < in->at && (place = in_u16(&patches)) + 8 <= TEL_HEADER_SIZE) {
		uint64_t value = in_bytes(&patches, 8);

		memcpy(page + place, &value, sizeof(value));
	}
	size_t size = (size_t)(in->end - in->at);
	NEED(fd >= 0 && write(fd, page, sizeof(page)) == (ssize_t)sizeof(page));
	NEED(write(fd, in->at, size) == (ssize_t)size);
	return fd;
}

static void replay(struct run *run, const char *file) {
	static struct replay r;
	struct err err = {""};
	FILE *out = fopen("/dev/null", "w");

	NEED(out != NULL);
	if (replay_init(&r, run, file, &err) < 0) {
		need_sentence(&err);
	} else {
		NEED(replay_open(&r, &err) == 0);
		if (replay_run(&r, &err) < 0)
			need_sentence(&err);
		NEED(replay_summary(&r, out, &(struct facts){0}));
		NEED(replay_close(&r, &err) == 0);
		replay_fini(&r);
	}
	fclose(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	struct input in = {data, data + size};
	const struct run_options options = {.program = "weir-sim"};
	struct run run = {.options = &options,
		.seed = 1,
		.telemetry_level = 3,
		.tel = {.virtual_time = true, .level = 3}};
	struct err err = {""};
	char file[64];
	int fd = recording(&in);

	run.config = config_parse("fuzz.yaml", experiment, sizeof(experiment) - 1, &err);
	NEED(run.config != NULL);
	snprintf(file, sizeof(file), "/proc/self/fd/%d", fd);
	replay(&run, file);
	config_free(run.config);
	close(fd);
	return 0;
}
