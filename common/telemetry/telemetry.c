// SPDX-License-Identifier: BSD-3-Clause
// Telemetry rings, from the producer to the file. The protocol is in telemetry.h.
//
// The producer and the consumer share only the header page: the producer writes published, epoch
// and closed, the consumer writes tail.
//
// Live, a busy stream is written to the disk in whole blocks with O_DIRECT: this costs the thread a
// fifth of a copy into the page cache, and no CPU time for writing back later. A rest smaller than
// DIRECT_BYTES stays in the ring for the next drain. If a ring is nearly full when it is drained,
// the disk is too slow: then the page cache is used.
#include "common/telemetry/telemetry.h"

#include "common/base/rng.h"
#include "common/telemetry/telemetry_file.h"
#include "common/telemetry/telemetry_header.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define XXH_STATIC_LINKING_ONLY // needed for sizeof(XXH64_state_t)
#include <xxhash.h>

#define CAPACITY_MAX (1ull << 32)
#define CHUNK_BYTES (1u << 20) // per step of a long drain, so that slots are freed early
#define DIRECT_BYTES (1u << 18) // minimum of an O_DIRECT write
#define PAGE_BYTES 4096 // also the block size of O_DIRECT writes

static_assert(sizeof(((struct tel *)NULL)->digest_state) == sizeof(XXH64_state_t), "XXH64 state");

// The first output of splitmix64 seeded with the flow.
static uint64_t flow_hash(uint32_t flow_id) {
	return rng_mix(flow_id + RNG_GOLDEN);
}

bool tel_flow_chosen(const struct tel_run *run, uint32_t flow_id) {
	return run->sample_threshold == UINT64_MAX || flow_hash(flow_id) < run->sample_threshold;
}

struct tel_counters tel_published(const struct tel_header *ring) {
	memory_order acquire = memory_order_acquire;
	uint64_t before, after;
	struct tel_counters c;

	do {
		before = atomic_load_explicit(&ring->epoch, acquire);
		uint64_t place = before % TEL_EPOCHS;
		c.head = atomic_load_explicit(&ring->published[place].head, acquire);
		c.written = atomic_load_explicit(&ring->published[place].written, acquire);
		c.gaps = atomic_load_explicit(&ring->published[place].gaps, acquire);
		c.lost = atomic_load_explicit(&ring->published[place].lost, acquire);
		after = atomic_load_explicit(&ring->epoch, memory_order_relaxed);
	} while (after - before > TEL_EPOCHS - 2);
	return c;
}

static uint8_t *slot_at(const struct tel *t, uint64_t index) {
	return t->records + (index & t->mask) * t->record_size;
}

// Reads the consumer's progress and closes an open gap if there is room.
static void refresh(struct tel *t) {
	uint64_t tail = atomic_load_explicit(&t->ring->tail, memory_order_acquire);
	uint64_t room = t->mask + 1 - (t->written - tail);

	if (t->gap > 0 && room >= 2) {
		const uint64_t gap[2] = {TEL_GAP, t->gap};
		uint8_t *slot = slot_at(t, t->written++);
		memset(slot, 0, t->record_size);
		memcpy(slot, gap, sizeof(gap));
		t->gaps++;
		t->gap = 0;
		room--;
	}
	t->limit = t->written + (t->gap > 0 ? 0 : room);
}

void *tel_slot_slow(struct tel *t) {
	refresh(t);
	if (t->written == t->limit && t->lossless) {
		tel_publish(t);
		tel_drain(t);
		refresh(t);
	}
	t->head++;
	if (t->written == t->limit) {
		t->lost++;
		t->gap++;
		t->limit = t->written;
		return NULL;
	}
	return slot_at(t, t->written++);
}

void tel_gap_slow(struct tel *t) {
	refresh(t);
}

static const char *base_name(const char *path) {
	const char *slash = strrchr(path, '/');

	return slash == NULL ? path : slash + 1;
}

// The number of slots, of `count` contiguous ones from the tail on, for one write to file f.
static uint64_t portion(const struct tel *t, const struct tel *f, uint64_t count, bool *direct) {
	// The minimum number of records that fills whole pages, since a page is a power of two.
	uint64_t block = PAGE_BYTES / (t->record_size & -t->record_size);
	uint64_t over = f->file.written % block;

	*direct = false;
	if (f->direct_fd < 0 || count * t->record_size < DIRECT_BYTES || t->tail % block != over)
		return count;
	*direct = over == 0;
	return over > 0 ? block - over : count - count % block;
}

uint64_t tel_drain(struct tel *t) {
	if (t->ring == NULL)
		return 0;
	struct tel_counters now = tel_published(t->ring);
	uint64_t first = t->tail, chunk = CHUNK_BYTES / t->record_size;
	struct tel *f = t->into != NULL ? t->into : t;
	XXH64_state_t *digest = (XXH64_state_t *)(void *)f->digest_state;
	bool in_time = now.written - first <= t->mask - t->mask / 8, left = false, direct;

	while (t->tail != now.written && !left) {
		uint64_t to_wrap = t->mask + 1 - (t->tail & t->mask), count = now.written - t->tail;
		count = count < to_wrap ? count : to_wrap;
		count = count < chunk ? count : chunk;
		count = portion(t, f, count, &direct);
		direct &= in_time;
		const uint8_t *records = slot_at(t, t->tail);
		if (f->lossless)
			XXH64_update(digest, records, count * t->record_size);
		tel_file_append(f, records, count, now.gaps > 0, direct);
		t->tail += count;
		atomic_store_explicit(&t->ring->tail, t->tail, memory_order_release);
		left = direct && (now.written - t->tail) * t->record_size < DIRECT_BYTES;
	}
	if (f->fd >= 0 && (t->tail != first || now.lost != t->lost_reported)) {
		f->file.lost += now.lost - t->lost_reported;
		f->file.head = f->file.written - f->file.gaps + f->file.lost;
		tel_file_publish(f, f->file_epoch + 1);
	}
	t->lost_reported = now.lost;
	return t->tail - first;
}

uint64_t tel_digest(const struct tel *t) {
	return !t->lossless ? 0
			    : XXH64_digest((const XXH64_state_t *)(const void *)t->digest_state);
}

// Maps the ring. Live all its pages are present, because a page fault in the data path costs as
// much as a hundred records; a small run in virtual time touches few of them.
static int map_ring(struct tel *t, struct err *err) {
	void *map =
		mmap(NULL, t->map_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED)
		return err_set(err, -errno, "%s: a ring of %zu bytes: %s", t->path, t->map_size,
			strerror(errno));
	(void)madvise(map, t->map_size, MADV_HUGEPAGE); // optional: makes large writes cheaper
	// Pages are allocated only by a write.
	for (size_t i = 0; i < t->map_size && !t->lossless; i += PAGE_BYTES)
		((volatile uint8_t *)map)[i] = 0;
	t->ring = map;
	t->records = (uint8_t *)map + TEL_HEADER_SIZE;
	return 0;
}

static int set_path(
	struct tel *t, enum tel_stream s, const struct tel_run *run, const char *suffix) {
	int n = snprintf(t->path, sizeof(t->path), "%s%s%s%s.ring",
		run->dir == NULL ? "" : run->dir, run->dir == NULL ? "" : "/", tel_stream_name(s),
		suffix);

	return n < (int)sizeof(t->path) ? 0 : -ENAMETOOLONG;
}

int tel_open(struct tel *t, enum tel_stream s, const struct tel_run *run, const char *suffix,
	uint64_t capacity, struct err *err) {
	int rc;

	memset(t, 0, sizeof(*t));
	t->fd = t->direct_fd = -1;
	if (capacity < 2 || capacity > CAPACITY_MAX || (capacity & (capacity - 1)) != 0)
		return err_set(err, -EINVAL,
			"%s%s: a ring of %llu records: must be a power of two, 2 to 2^32",
			tel_stream_name(s), suffix, (unsigned long long)capacity);
	if (tel_schema_json(run, s, NULL, 0) >= TEL_HEADER_SIZE - TEL_SCHEMA_OFFSET)
		return err_set(err, -E2BIG,
			"%s%s: what %u congestion controls, disciplines and stages observe is more "
			"than a header names: use fewer of them in one run, "
			"or record less (telemetry: {level: 0})",
			tel_stream_name(s), suffix, run->observers);
	rc = set_path(t, s, run, suffix);
	if (rc != 0)
		return err_set(err, rc, "%.400s...: %s", t->path, strerror(-rc));
	t->lossless = run->virtual_time;
	t->record_size = tel_record_size(s);
	t->mask = capacity - 1;
	t->limit = capacity;
	t->map_size = TEL_HEADER_SIZE + capacity * t->record_size;
	XXH64_reset((XXH64_state_t *)(void *)t->digest_state, 0);
	rc = map_ring(t, err);
	if (rc != 0)
		goto fail;
	tel_header_fill(t->ring, s, run);
	t->ring->capacity = capacity;
	if (run->dir != NULL)
		rc = tel_file_open(t, s, run, err);
	if (rc == 0)
		return 0;
fail:
	if (t->fd >= 0)
		close(t->fd);
	tel_direct_close(t);
	if (t->ring != NULL)
		munmap(t->ring, t->map_size);
	memset(t, 0, sizeof(*t));
	t->fd = t->direct_fd = -1;
	return rc;
}

int tel_join(struct tel *t, struct tel *into, const struct tel_run *run, uint64_t capacity,
	struct err *err) {
	struct tel_run ring_only = *run;
	int rc;

	assert(into->ring != NULL);
	ring_only.dir = NULL;
	rc = tel_open(t, (enum tel_stream)into->ring->stream, &ring_only, "", capacity, err);
	if (rc == 0)
		t->into = into;
	return rc;
}

int tel_branch(struct tel *t, const struct tel_run *run, int rc, struct err *err) {
	enum tel_stream s = (enum tel_stream)t->ring->stream;
	char path[sizeof(t->path)];

	assert(t->fd >= 0 && t->direct_fd < 0);
	close(t->fd);
	t->fd = -1;
	if (rc < 0)
		return rc;
	memcpy(path, t->path, sizeof(path));
	if (set_path(t, s, run, "") != 0)
		return err_set(
			err, -ENAMETOOLONG, "%.400s...: %s", t->path, strerror(ENAMETOOLONG));
	rc = tel_file_open(t, s, run, err);
	return rc < 0 ? rc : tel_file_copy(t, path, err);
}

int tel_close(struct tel *t, struct err *err) {
	if (t->ring == NULL)
		return 0;
	tel_publish(t);
	tel_drain(t);
	tel_publish(t); // with room for a gap record now
	tel_drain(t);
	tel_direct_close(t);
	if (t->fd >= 0)
		tel_file_close(t);
	atomic_store_explicit(&t->ring->closed, 1, memory_order_release);
	munmap(t->ring, t->map_size);
	t->ring = NULL;
	t->limit = t->written; // tel_put then takes the slow path, which returns NULL
	t->head += t->joined_head;
	t->lost += t->joined_lost;
	t->joined_kept += t->written - t->gaps;
	if (t->into != NULL) {
		t->into->joined_head += t->head;
		t->into->joined_lost += t->lost;
		t->into->joined_kept += t->joined_kept;
	}
	if (t->io_errno == 0)
		return 0;
	uint64_t missing = t->joined_kept - (t->file.written - t->file.gaps);
	return err_set(err, -t->io_errno, "%s: %s; %llu records were not written", t->path,
		strerror(t->io_errno), (unsigned long long)missing);
}

uint64_t tel_lost(const struct tel *t) {
	return t->file.lost > t->lost ? t->file.lost : t->lost;
}

bool tel_fault(const struct tel *t, struct fact *fault) {
	if (tel_lost(t) == 0)
		return false;
	fact_set(fault, "records_lost", "%s: %llu of %llu records were lost (%s)",
		base_name(t->path), (unsigned long long)tel_lost(t), (unsigned long long)t->head,
		t->io_errno != 0 ? strerror(t->io_errno) : "the ring was full");
	fact_number(fault, "count", (double)tel_lost(t));
	fact_number(fault, "of", (double)t->head);
	return true;
}
