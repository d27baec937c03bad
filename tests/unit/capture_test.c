// SPDX-License-Identifier: BSD-3-Clause
// Captures of paths: what finds no room in an lcore's ring is counted, at the interface where it
// was lost.
#include "switch/path/capture.h"

#include "common/pcap/writer.h"
#include "common/run/run.h"
#include "switch_test.h"

#include <pcap/pcap.h>
#include <unistd.h>

#define PACKETS 10
#define RING 4

static const char text[] = "paths: {forward: [{delay: {delay: 1ms}}]}";

static uint32_t frame(void *ctx, const struct path *path, const struct pkt *p, uint8_t *bytes,
	uint32_t room, uint32_t *length) {
	ck_assert_uint_eq(room, PCAP_WRITER_SNAP);
	memset(bytes, (int)p->id, 60);
	*length = p->size_bytes - 4u;
	return 60;
}

// How many frames of a file begin with which byte.
static void count_frames(const char *file, uint32_t seen[PACKETS]) {
	char why[PCAP_ERRBUF_SIZE];
	struct pcap_pkthdr *h;
	const u_char *data;
	pcap_t *p = pcap_open_offline(file, why);

	ck_assert_msg(p != NULL, "%s", why);
	while (pcap_next_ex(p, &h, &data) == 1) {
		ck_assert_uint_eq(h->caplen, 60);
		ck_assert_uint_eq(h->len, 996);
		ck_assert_uint_lt(data[0], PACKETS);
		seen[data[0]]++;
	}
	pcap_close(p);
}

// Four find room, six do not; once the ring is empty two more do. Each departs, and is then lost
// too or not.
TEST(a_full_ring_counts_what_it_loses) {
	static struct run_options options = {.program = "weir-test"};
	static struct run run = {.options = &options, .capture_points = RUN_CAPTURE_PATHS};
	static struct paths ps;
	static struct pkt pkts[PACKETS + 2];
	uint32_t seen[PACKETS] = {0};
	char file[] = "/tmp/weir-capture-XXXXXX", summary[512] = "";
	struct pkt *arrived[PACKETS], *left[PACKETS + 2];
	struct capture *c;
	struct err err;
	struct json j;
	struct config *config = config_parse("test.yaml", text, strlen(text), &err);
	struct path *path = &ps.path[0];

	close(mkstemp(file));
	ck_assert_int_eq(paths_init(&ps, config_get(config_root(config), "paths"),
				 &(struct paths_env){.mtu_bytes = MTU}, &err),
		0);
	ck_assert_int_eq(capture_open(&c, file,
				 &(struct capture_env){.run = &run,
					 .paths = &ps,
					 .frame = frame,
					 .rings = 1,
					 .ring_records = RING},
				 &err),
		0);
	capture_paths(c, 0, &path, 1);
	for (uint32_t i = 0; i < PACKETS; i++) {
		arrived[i] = &pkts[i];
		pkts[i] = (struct pkt){.size_bytes = 1000, .arrival_ns = i};
	}
	path_push(path, arrived, PACKETS);
	capture_drain(c);
	ck_assert_uint_eq(path_pop(path, NS_PER_S, left, 3), 3);
	capture_drain(c);
	ck_assert_uint_eq(path_pop(path, NS_PER_S, left, PACKETS), PACKETS - 3);
	ck_assert_int_eq(capture_close(c, &err), 0);

	count_frames(file, seen);
	for (uint32_t i = 0; i < PACKETS; i++) // in: 0 to 3; out: 0 to 2, 3 to 6
		ck_assert_uint_eq(seen[i], (i < 4) + (i < 7));
	FILE *f = fmemopen(summary, sizeof(summary), "w");
	json_begin(&j, f);
	capture_summary(c, &j);
	json_end(&j);
	fclose(f);
	ck_assert_ptr_nonnull(strstr(summary, "\"packets\": 11"));
	ck_assert_ptr_nonnull(strstr(summary, "\"lost\": 9")); // six came, three left
	capture_free(c);
	paths_fini(&ps);
	config_free(config);
	unlink(file);
}
