// SPDX-License-Identifier: BSD-3-Clause
#include "common/base/rng.h"
#include "common/telemetry/telemetry.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

// A folder of its own for each test's files.
struct folder {
	char dir[64], path[128];
};

static struct folder folder_make(const char *name) {
	struct folder f = {"/tmp/weir-telemetry-XXXXXX", ""};

	ck_assert_ptr_nonnull(mkdtemp(f.dir));
	snprintf(f.path, sizeof(f.path), "%s/%s", f.dir, name);
	return f;
}

static void folder_remove(const struct folder *f) {
	unlink(f->path);
	ck_assert_int_eq(rmdir(f->dir), 0);
}

static uint8_t *read_whole(const char *path, size_t *size) {
	struct stat st;
	int fd = open(path, O_RDONLY);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fstat(fd, &st), 0);
	*size = (size_t)st.st_size;
	uint8_t *buf = aligned_alloc(64, (*size + 63) / 64 * 64);
	ck_assert_int_eq(read(fd, buf, *size), st.st_size);
	close(fd);
	return buf;
}

static void put(struct tel *t, uint64_t ts_ns) {
	struct tel_packets *p = tel_put(t);

	if (p != NULL)
		*p = (struct tel_packets){.ts_ns = ts_ns, .flow_id = (uint32_t)(ts_ns * 7)};
}

static void check_counters(struct tel_counters c) {
	ck_assert_uint_eq(c.head, c.written - c.gaps + c.lost);
}

// Every record carries its number as its time: walks a file and says how many were there. What is
// missing must be exactly what the gap records say.
static uint64_t check_file(const char *path, uint64_t produced) {
	size_t size;
	uint8_t *bytes = read_whole(path, &size);
	const struct tel_header *h = (const struct tel_header *)(const void *)bytes;
	struct tel_counters c = tel_published(h);
	uint64_t next = 0, records = 0, gaps = 0, gap_before = 0;

	check_counters(c);
	ck_assert_uint_eq(c.head, produced);
	ck_assert_uint_eq(size, TEL_HEADER_SIZE + c.written * h->record_size);
	for (uint64_t i = 0; i < c.written; i++) {
		uint64_t word[2];
		memcpy(word, bytes + TEL_HEADER_SIZE + i * h->record_size, sizeof(word));
		if (word[0] == TEL_GAP) {
			ck_assert_uint_gt(word[1], 0);
			ck_assert_uint_eq(gap_before, 0);
			next += word[1];
			gaps++;
			gap_before = 1;
			continue;
		}
		ck_assert_uint_eq(word[0], next);
		next++;
		records++;
		gap_before = 0;
	}
	ck_assert_uint_eq(gaps, c.gaps);
	ck_assert_uint_eq(records + c.lost, produced);
	ck_assert_uint_le(next, produced);
	free(bytes);
	return records;
}

TEST(stream_that_is_off_does_nothing) {
	struct tel t = {0};

	ck_assert_ptr_null(tel_put(&t));
	tel_publish(&t);
	ck_assert_uint_eq(tel_drain(&t), 0);
	ck_assert_uint_eq(tel_digest(&t), 0);
	ck_assert_int_eq(tel_close(&t, NULL), 0);
	ck_assert_uint_eq(t.head, 0);
}

TEST(schema_fits_the_header_page) {
	char text[TEL_HEADER_SIZE], small[16];
	struct tel_run run = {0};

	for (enum tel_stream s = 0; s < TEL_STREAM_COUNT; s++) {
		size_t len = tel_schema_json(&run, s, text, sizeof(text));
		ck_assert_uint_lt(len, TEL_HEADER_SIZE - TEL_SCHEMA_OFFSET);
		ck_assert_uint_eq(len, strlen(text));
		ck_assert_uint_eq(tel_schema_json(&run, s, small, sizeof(small)), len);
		ck_assert_uint_eq(strlen(small), sizeof(small) - 1);
		ck_assert_ptr_nonnull(strstr(text, tel_stream_name(s)));
	}
	// A number with all bits set says that a field is not known, where it may be not known.
	tel_schema_json(&run, TEL_STREAM_INTERVAL, text, sizeof(text));
	ck_assert_ptr_nonnull(
		strstr(strstr(text, "\"lost_segs\""), "\"unknown\":18446744073709551615"));
	ck_assert_ptr_nonnull(
		strstr(strstr(text, "\"cwnd_reductions\""), "\"unknown\":4294967295"));
	ck_assert_uint_eq(TEL_UNKNOWN(uint16_t), 65535);
	ck_assert_str_eq(tel_stream_name(TEL_STREAM_PACKETS), "packets");
	ck_assert_uint_eq(tel_record_size(TEL_STREAM_CC), sizeof(struct tel_cc));
}

TEST(more_observers_than_a_header_names_are_one_sentence) {
	static const char *const observed[TEL_OBSERVED] = {
		"the_first_number", "the_second_number", "the_third_number", "the_fourth_number"};
	static char name[40][8];
	struct tel_run run = {0};
	struct err err;
	struct tel t;

	for (uint32_t i = 0; i < 40; i++) {
		snprintf(name[i], sizeof(name[i]), "cc%u", i);
		tel_observer(&run, TEL_STREAM_CC, name[i], observed);
	}
	ck_assert_int_eq(tel_open(&t, TEL_STREAM_CC, &run, "", 64, &err), -E2BIG);
	ck_assert_str_eq(err.msg,
		"cc: what 40 congestion controls, disciplines and stages observe is more than a "
		"header names: use fewer of them in one run, or record less (telemetry: "
		"{level: 0})");
	ck_assert_int_eq(tel_open(&t, TEL_STREAM_INTERVAL, &run, "", 64, &err), 0);
	ck_assert_int_eq(tel_close(&t, NULL), 0);
}

// Random puts, publishes and drains on tiny rings, against the caller's own count of what tel_put
// took and refused.
TEST(interleavings_account_for_every_record) {
	struct folder f = folder_make("packets.ring");
	struct tel_run run = {.dir = f.dir, .level = 3};

	for (uint64_t seed = 1; seed <= 300; seed++) {
		struct rng rng;
		struct tel t;
		uint64_t produced = 0, refused = 0;
		rng_init(&rng, seed, "interleavings");
		uint64_t capacity = 2ull << rng_u64(&rng) % 6;
		ck_assert_int_eq(tel_open(&t, TEL_STREAM_PACKETS, &run, "", capacity, NULL), 0);
		for (int step = 0; step < 200; step++) {
			for (uint64_t n = rng_u64(&rng) % (capacity * 3 / 2); n > 0; n--) {
				struct tel_packets *p = tel_put(&t);
				refused += p == NULL;
				if (p != NULL)
					*p = (struct tel_packets){.ts_ns = produced};
				produced++;
			}
			if (rng_u64(&rng) % 4 > 0)
				tel_publish(&t);
			struct tel_counters c = tel_published(t.ring);
			check_counters(c);
			ck_assert_uint_le(c.written - t.tail, capacity);
			if (rng_u64(&rng) % 3 == 0) {
				uint64_t waiting = c.written - t.tail;
				ck_assert_uint_eq(tel_drain(&t), waiting);
				ck_assert_uint_eq(t.file.head, c.head);
			}
		}
		ck_assert_uint_eq(t.head, produced);
		ck_assert_int_eq(tel_close(&t, NULL), 0);
		ck_assert_uint_eq(t.lost, refused);
		ck_assert_uint_eq(check_file(f.path, produced), produced - refused);
	}
	folder_remove(&f);
}

// Two producers, one file: each one's records in their order, what either lost in the sums.
TEST(two_rings_are_drained_to_one_file) {
	struct folder f = folder_make("packets.ring");
	struct tel_run run = {.dir = f.dir};
	uint64_t next[2] = {0}, last[2] = {0}, gaps = 0;
	size_t size;
	struct tel t[2];

	ck_assert_int_eq(tel_open(&t[0], TEL_STREAM_PACKETS, &run, "", 64, NULL), 0);
	ck_assert_int_eq(tel_join(&t[1], &t[0], &run, 16, NULL), 0);
	for (uint64_t i = 0; i < 1000; i++) {
		struct tel *one = &t[i % 3 == 0];

		put(one, (uint64_t)(one - t) << 32 | ++next[one - t]);
		tel_publish(one);
		if (i % 10 == 0 && i / 100 != 5) // a hundred without a drain: both lose some
			tel_drain(one);
		if (i % 100 == 99) {
			tel_drain(&t[0]);
			tel_drain(&t[1]);
		}
	}
	ck_assert_uint_gt(t[0].lost, 0);
	ck_assert_uint_gt(t[1].lost, 0);
	uint64_t lost = t[0].lost + t[1].lost;
	ck_assert_int_eq(tel_close(&t[1], NULL), 0);
	ck_assert_int_eq(tel_close(&t[0], NULL), 0);
	ck_assert_uint_eq(t[0].head, 1000);
	ck_assert_uint_eq(tel_lost(&t[0]), lost);

	uint8_t *bytes = read_whole(f.path, &size);
	const struct tel_header *h = (const struct tel_header *)(const void *)bytes;
	struct tel_counters c = tel_published(h);

	check_counters(c);
	ck_assert_uint_eq(c.head, 1000);
	ck_assert_uint_eq(c.lost, lost);
	for (uint64_t i = 0; i < c.written; i++) {
		uint64_t word[2];

		memcpy(word, bytes + TEL_HEADER_SIZE + i * h->record_size, sizeof(word));
		if (word[0] == TEL_GAP) {
			gaps += word[1];
			continue;
		}
		ck_assert_uint_gt((uint32_t)word[0], last[word[0] >> 32]);
		last[word[0] >> 32] = (uint32_t)word[0];
	}
	ck_assert_uint_eq(gaps, lost);
	ck_assert_uint_eq(last[0] + last[1], 1000);
	free(bytes);
	folder_remove(&f);
}

TEST(gap_is_written_once_two_slots_are_free) {
	struct folder f = folder_make("packets.ring");
	struct tel_run run = {.dir = f.dir};
	struct tel t;

	ck_assert_int_eq(tel_open(&t, TEL_STREAM_PACKETS, &run, "", 4, NULL), 0);
	for (uint64_t i = 0; i < 7; i++)
		put(&t, i);
	tel_publish(&t);
	struct tel_counters c = tel_published(t.ring);
	ck_assert_uint_eq(c.written, 4);
	ck_assert_uint_eq(c.lost, 3);
	ck_assert_uint_eq(c.gaps, 0);
	atomic_store(&t.ring->tail, 1); // one slot: a gap record alone would only fill the ring
	put(&t, 7);
	tel_publish(&t);
	c = tel_published(t.ring);
	ck_assert_uint_eq(c.written, 4);
	ck_assert_uint_eq(c.lost, 4);
	atomic_store(&t.ring->tail, 2);
	tel_publish(&t); // no record needed to report the loss
	c = tel_published(t.ring);
	ck_assert_uint_eq(c.written, 5);
	ck_assert_uint_eq(c.gaps, 1);
	ck_assert_uint_eq(c.head, 8);
	put(&t, 8);
	tel_publish(&t);
	ck_assert_uint_eq(tel_published(t.ring).written, 6);
	tel_close(&t, NULL);
	folder_remove(&f);
}

TEST(virtual_time_loses_nothing_and_repeats_its_bytes) {
	struct folder f = folder_make("packets-switch.ring");
	uint8_t *first = NULL;
	size_t first_size = 0;

	// What differs between two runs must not show: clocks, run id, capacity, drains.
	for (uint64_t k = 1; k <= 4; k++) {
		struct tel_run run = {.dir = f.dir,
			.virtual_time = true,
			.tsc_hz = k,
			.tsc_start = k,
			.utc_start_ns = k,
			.seed = 5,
			.config_hash = 6};
		struct tel t;
		size_t size;
		snprintf(run.run_id, sizeof(run.run_id), "run %d", (int)k);
		ck_assert_int_eq(
			tel_open(&t, TEL_STREAM_PACKETS, &run, "-switch", 1ull << k, NULL), 0);
		for (uint64_t i = 0; i < 1000; i++) {
			put(&t, i);
			if (i % k == 0)
				tel_publish(&t);
			if (i % (k * k) == 0)
				tel_drain(&t);
		}
		ck_assert_int_eq(tel_close(&t, NULL), 0);
		ck_assert_uint_eq(t.lost, 0);
		ck_assert_uint_eq(check_file(f.path, 1000), 1000);
		uint8_t *bytes = read_whole(f.path, &size);
		ck_assert_uint_eq(
			tel_digest(&t), XXH64(bytes + TEL_HEADER_SIZE, size - TEL_HEADER_SIZE, 0));
		if (first == NULL) {
			first = bytes;
			first_size = size;
			continue;
		}
		ck_assert_uint_eq(size, first_size);
		ck_assert_mem_eq(bytes, first, size);
		free(bytes);
	}
	free(first);
	folder_remove(&f);
}

TEST(digest_needs_no_file) {
	struct tel_run run = {.virtual_time = true};
	struct tel_packets all[100];
	struct tel t;

	ck_assert_int_eq(tel_open(&t, TEL_STREAM_PACKETS, &run, "", 8, NULL), 0);
	ck_assert_uint_eq(tel_digest(&t), XXH64(all, 0, 0));
	for (uint32_t i = 0; i < 100; i++) {
		all[i] = (struct tel_packets){.ts_ns = i, .pkt_id = i};
		*(struct tel_packets *)tel_put(&t) = all[i];
	}
	ck_assert_int_eq(tel_close(&t, NULL), 0);
	ck_assert_uint_eq(tel_digest(&t), XXH64(all, sizeof(all), 0));
	ck_assert_ptr_null(tel_put(&t));
}

// A file limit in the middle of a record stands for a full disk; the real one is in tests/tools.
TEST(full_disk_keeps_counting) {
	struct folder f = folder_make("packets.ring");

	for (uint64_t virtual_time = 0; virtual_time < 2; virtual_time++) {
		struct tel_run run = {.dir = f.dir, .virtual_time = virtual_time > 0};
		struct rlimit limit;
		struct tel t;
		struct err err;
		char expected[256];
		struct fact fault;
		signal(SIGXFSZ, SIG_IGN);
		ck_assert_int_eq(tel_open(&t, TEL_STREAM_PACKETS, &run, "", 16, NULL), 0);
		ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
		limit.rlim_cur = TEL_HEADER_SIZE + 100 * sizeof(struct tel_packets) + 5;
		ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
		for (uint64_t i = 0; i < 1000; i++) {
			put(&t, i);
			tel_publish(&t);
			if (i % 20 == 0) // live: 16 of 20 find room
				tel_drain(&t);
		}
		ck_assert_int_eq(tel_close(&t, &err), -EFBIG);
		limit.rlim_cur = limit.rlim_max;
		ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
		uint64_t records = check_file(f.path, 1000);
		ck_assert_uint_ge(records, 90);
		ck_assert_uint_le(records, 100);
		snprintf(expected, sizeof(expected),
			"%s: File too large; %llu records were not written", f.path,
			(unsigned long long)(1000 - t.lost - records));
		ck_assert_str_eq(err.msg, expected);
		ck_assert_int_eq(t.lost == 0, run.virtual_time);
		ck_assert_uint_eq(tel_lost(&t), 1000 - records);
		ck_assert(tel_fault(&t, &fault));
		ck_assert_ptr_nonnull(
			strstr(fault.sentence, "of 1000 records were lost (File too"));
	}
	folder_remove(&f);
}

// More at once than a write past the page cache needs, in portions that begin and end anywhere,
// with a ring that is sometimes full and small drains in between.
static void busy_stream(enum tel_stream stream, const char *name) {
	struct folder f = folder_make(name);
	struct tel_run run = {.dir = f.dir};
	const uint64_t capacity = 1 << 14, size = tel_record_size(stream);
	uint64_t produced = 0;
	struct rng rng;
	struct tel t;

	rng_init(&rng, 7, "bursts");
	ck_assert_int_eq(tel_open(&t, stream, &run, "", capacity, NULL), 0);
	bool direct = t.direct_fd >= 0; // not on every file system
	for (uint32_t i = 0; i < 30; i++) {
		uint64_t n = rng_u64(&rng) % (i % 3 == 0 ? 100 : capacity + capacity / 8);
		for (uint64_t k = 0; k < n; k++)
			put(&t, produced++);
		tel_publish(&t);
		uint64_t waits = t.written - t.tail;
		uint64_t moved = tel_drain(&t);
		ck_assert_uint_ge(moved * size + (1 << 18), waits * size);
		check_counters(t.file);
		ck_assert_uint_eq(t.file.written, t.tail);
		ck_assert_uint_eq(t.file.lost, t.lost);
	}
	ck_assert(direct == (t.direct_fd >= 0)); // no such write was refused
	ck_assert_int_eq(tel_close(&t, NULL), 0);
	ck_assert_uint_gt(t.lost, 0);
	ck_assert_uint_eq(check_file(f.path, produced), produced - t.lost);
	folder_remove(&f);
}

TEST(busy_stream_reaches_its_file_whole) {
	busy_stream(TEL_STREAM_PACKETS, "packets.ring");
	busy_stream(TEL_STREAM_INTERVAL, "interval.ring"); // pages end within records
}

TEST(open_says_what_is_wrong) {
	struct tel_run run = {.dir = "/nonexistent"};
	struct err err;
	struct tel t;

	ck_assert_int_eq(tel_open(&t, TEL_STREAM_CC, &run, "", 8, &err), -ENOENT);
	ck_assert_str_eq(err.msg, "/nonexistent/cc.ring: No such file or directory");
	ck_assert_ptr_null(tel_put(&t));
	ck_assert_int_eq(tel_close(&t, NULL), 0);
	ck_assert_int_eq(tel_open(&t, TEL_STREAM_CC, &run, "-x", 12, &err), -EINVAL);
	ck_assert_str_eq(err.msg, "cc-x: a ring of 12 records: must be a power of two, 2 to 2^32");
	run.dir = "/dev";
	ck_assert_int_eq(tel_open(&t, TEL_STREAM_CC, &run, "", 1, &err), -EINVAL);
}

TEST(sampled_flows_nest) {
	struct tel_run run = {.level = 2, .sample_threshold = rng_threshold(0.1)};
	struct tel_run more = {.level = 2, .sample_threshold = rng_threshold(0.3)};
	struct tel_run all = {.level = 2, .sample_threshold = UINT64_MAX}, none = {.level = 2};
	struct tel_run level1 = {.level = 1, .sample_threshold = UINT64_MAX}, level3 = {.level = 3};
	uint32_t sampled = 0;

	for (uint32_t flow = 0; flow < 10000; flow++) {
		bool in = tel_flow_sampled(&run, flow);
		sampled += in;
		ck_assert(!in || tel_flow_sampled(&more, flow));
		ck_assert(tel_flow_sampled(&all, flow) && tel_flow_sampled(&level3, flow));
		ck_assert(!tel_flow_sampled(&none, flow) && !tel_flow_sampled(&level1, flow));
	}
	// 1000 expected with a standard deviation of 30: five of them either way.
	ck_assert_uint_ge(sampled, 850);
	ck_assert_uint_le(sampled, 1150);
}

struct watch {
	const struct tel_header *ring;
	_Atomic bool stop;
	_Atomic uint64_t sets;
	uint64_t bad;
};

static void *watch(void *arg) {
	struct watch *w = arg;
	struct tel_counters last = {0};

	while (!atomic_load(&w->stop)) {
		struct tel_counters c = tel_published(w->ring);
		w->bad += c.head != c.written - c.gaps + c.lost || c.head < last.head
			|| c.written < last.written || c.lost < last.lost;
		last = c;
		w->sets++;
	}
	return NULL;
}

TEST(counters_agree_while_the_producer_runs) {
	struct tel_run run = {.level = 3};
	struct tel t;
	pthread_t thread;

	ck_assert_int_eq(tel_open(&t, TEL_STREAM_PACKETS, &run, "", 64, NULL), 0);
	struct watch w = {.ring = t.ring};
	ck_assert_int_eq(pthread_create(&thread, NULL, watch, &w), 0);
	// The thread may get a CPU late.
	for (uint64_t i = 0; i < 2000000 || atomic_load(&w.sets) < 1000; i++) {
		put(&t, i);
		if (i % 3 == 0)
			tel_publish(&t);
		if (i % 100 == 0)
			tel_drain(&t);
	}
	atomic_store(&w.stop, true);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(w.bad, 0);
	ck_assert_int_eq(tel_close(&t, NULL), 0);
}

static void produce_until_killed(const char *dir) {
	struct tel_run run = {.level = 3, .dir = dir};
	struct tel t;

	if (tel_open(&t, TEL_STREAM_PACKETS, &run, "", 16, NULL) != 0)
		_exit(1);
	for (uint64_t i = 0;; i++) {
		put(&t, i);
		if (i % 3 == 0)
			tel_publish(&t);
		if (i % 40 == 0) // a consumer that sometimes catches up
			tel_drain(&t);
	}
}

// Kills the writer at whatever instruction it has reached.
TEST(killed_writer_leaves_counters_that_agree) {
	struct folder f = folder_make("packets.ring");

	for (uint64_t round = 0; round < 50; round++) {
		pid_t pid = fork();
		if (pid == 0)
			produce_until_killed(f.dir);
		struct stat st = {0};
		int fd = -1;
		while (fd < 0 || fstat(fd, &st) < 0 || st.st_size < TEL_HEADER_SIZE) {
			if (fd < 0)
				fd = open(f.path, O_RDONLY);
		}
		struct tel_header *h = mmap(NULL, TEL_HEADER_SIZE, PROT_READ, MAP_SHARED, fd, 0);
		ck_assert_ptr_ne(h, MAP_FAILED);
		while (tel_published(h).head < 1000 + round * 997)
			continue;
		kill(pid, SIGKILL);
		ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
		struct tel_counters c = tel_published(h);
		check_counters(c);
		ck_assert_uint_gt(c.lost, 0);
		ck_assert_uint_eq(atomic_load(&h->closed), 0);
		munmap(h, TEL_HEADER_SIZE);
		close(fd);
		unlink(f.path);
	}
	folder_remove(&f);
}
