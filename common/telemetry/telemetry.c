// SPDX-License-Identifier: BSD-3-Clause
// Telemetry rings and files. The protocol is in telemetry.h.
//
// The producer and the consumer share nothing but the header page: published, epoch and closed are
// the producer's, tail is the consumer's. The producer believes tail only as far as it makes sense,
// so a consumer gone mad costs records, never memory.
//
// A file is brought up to date in this order: records, one set of counters, the epoch. Killed in
// between, it still ends with a consistent set; bytes beyond it do not count.
//
// Live, what comes fast goes from the ring to the disk in whole blocks, past the page cache: that costs
// the thread a fifth of a copy, and no flusher takes CPU time later. A rest of less than a write is worth
// stays in the ring for the next drain. A ring that is nearly full when it is drained has come faster
// than the disk: then the page cache takes it.
#include "common/telemetry/telemetry.h"
#include "common/base/rng.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define XXH_STATIC_LINKING_ONLY // for the size of its state
#include <xxhash.h>

#define CAPACITY_MAX (1ull << 32)
#define CHUNK_BYTES (1u << 20) // frees slots early when a drain is long
#define DIRECT_BYTES (1u << 18) // least that is worth a write past the page cache
#define PAGE_BYTES 4096 // also the block that such writes are made of

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the format is little endian");
static_assert(sizeof(((struct tel *)NULL)->digest_state) == sizeof(XXH64_state_t), "XXH64 state");
static_assert(sizeof(((struct tel_header *)NULL)->published[0]) == sizeof(struct tel_counters),
	"one layout in memory and in the file");

struct value {
	const char *name; // NULL after the last
	unsigned number;
};

#define VALUE_ROW_(constant, number, name, meaning) {name, number},
#define VALUES_(enumeration, LIST)                                                                 \
	static const struct value values_##enumeration[] = {LIST(VALUE_ROW_){NULL, 0}};
TEL_ENUMS(VALUES_)

static const struct {
	const char *name;
	const struct value *values;
} enums[] = {
#define ENUM_ROW_(enumeration, LIST) {#enumeration, values_##enumeration},
	TEL_ENUMS(ENUM_ROW_)};

struct field {
	const char *name, *dtype, *unit, *meaning;
	size_t size;
};

#define FIELD_ROW_(ctype, dtype, name, unit, meaning) {#name, dtype, unit, meaning, sizeof(ctype)},
// Without padding a field's offset is the sum of the sizes before it.
#define FIELDS_(stream, STREAM)                                                                    \
	static const struct field fields_##stream[] = {TEL_##STREAM(FIELD_ROW_)};
TEL_STREAMS(FIELDS_)

static const struct {
	const char *name;
	const struct field *fields;
	size_t field_count;
	uint32_t record_size;
} streams[] = {
#define STREAM_ROW_(stream, STREAM)                                                                \
	{#stream, fields_##stream, sizeof(fields_##stream) / sizeof(fields_##stream[0]),           \
		sizeof(struct tel_##stream)},
	TEL_STREAMS(STREAM_ROW_)};

const char *tel_stream_name(enum tel_stream s) {
	return streams[s].name;
}

uint32_t tel_record_size(enum tel_stream s) {
	return streams[s].record_size;
}

__attribute__((format(printf, 4, 5))) static size_t append(
	char *buf, size_t size, size_t len, const char *fmt, ...) {
	va_list ap;

	va_start(ap, fmt);
	int n = vsnprintf(len < size ? buf + len : NULL, len < size ? size - len : 0, fmt, ap);
	va_end(ap);
	return len + (n > 0 ? (size_t)n : 0);
}

// The names of a field's numbers, if its unit is an enum.
static size_t append_values(char *buf, size_t size, size_t len, const char *unit) {
	for (size_t i = 0; i < sizeof(enums) / sizeof(enums[0]); i++) {
		if (strcmp(enums[i].name, unit) != 0)
			continue;
		for (const struct value *v = enums[i].values; v->name != NULL; v++)
			len = append(buf, size, len, "%s\"%s\": %u",
				v == enums[i].values ? ", \"values\": {" : ", ", v->name,
				v->number);
		return append(buf, size, len, "}");
	}
	return len;
}

uint32_t tel_observer_number(const struct tel_run *run, enum tel_stream s, const char *name) {
	uint32_t number = 0;

	for (uint32_t i = 0; run != NULL && i < run->observers; i++) {
		if (run->observer[i].stream != s)
			continue;
		if (strcmp(run->observer[i].name, name) == 0)
			return number;
		number++;
	}
	return UINT32_MAX;
}

void tel_observer(struct tel_run *run, enum tel_stream s, const char *name,
	const char *const observed[TEL_OBSERVED]) {
	if (observed[0] == NULL || tel_observer_number(run, s, name) != UINT32_MAX)
		return;
	assert(run->observers < TEL_OBSERVERS_MAX);
	struct tel_observer *o = &run->observer[run->observers++];
	*o = (struct tel_observer){.name = name, .stream = s};
	memcpy(o->observed, observed, sizeof(o->observed));
}

static size_t append_observers(
	char *buf, size_t size, size_t len, const struct tel_run *run, enum tel_stream s) {
	uint32_t number = 0;

	for (const struct tel_observer *o = run->observer; o < run->observer + run->observers;
		o++) {
		if (o->stream != s)
			continue;
		len = append(buf, size, len, "%s{\"number\": %u, \"name\": \"%s\", \"observed\": [",
			number == 0 ? "" : ", ", number, o->name);
		number++;
		for (uint32_t i = 0; i < TEL_OBSERVED && o->observed[i] != NULL; i++)
			len = append(
				buf, size, len, "%s\"%s\"", i == 0 ? "" : ", ", o->observed[i]);
		len = append(buf, size, len, "]}");
	}
	return len;
}

size_t tel_schema_json(const struct tel_run *run, enum tel_stream s, char *buf, size_t size) {
	size_t offset = 0;
	size_t len = append(buf, size, 0,
		"{\"stream\": \"%s\", \"record_size\": %u, "
		"\"gap\": \"ts_ns 2^64-1: the next 8 bytes count records lost here\", "
		"\"fields\": [",
		streams[s].name, streams[s].record_size);

	for (size_t i = 0; i < streams[s].field_count; i++) {
		const struct field *f = &streams[s].fields[i];
		len = append(buf, size, len,
			"%s{\"name\": \"%s\", \"dtype\": \"%s\", \"offset\": %zu, "
			"\"unit\": \"%s\", \"meaning\": \"%s\"",
			i == 0 ? "" : ", ", f->name, f->dtype, offset, f->unit, f->meaning);
		len = append_values(buf, size, len, f->unit);
		len = append(buf, size, len, "}");
		offset += f->size;
	}
	len = append(buf, size, len, "], \"observers\": [");
	len = append_observers(buf, size, len, run, s);
	return append(buf, size, len, "]}");
}

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

// Looks at the consumer's progress and closes an open gap if there is room.
static void refresh(struct tel *t) {
	uint64_t tail = atomic_load_explicit(&t->ring->tail, memory_order_acquire);
	uint64_t capacity = t->mask + 1, used = t->written - tail;
	uint64_t room = used < capacity ? capacity - used : 0;

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

// Bytes written; fewer than `size` with errno set.
static size_t write_all(int fd, const uint8_t *buf, size_t size, size_t offset) {
	size_t done = 0;

	while (done < size) {
		ssize_t n = pwrite(fd, buf + done, size - done, (off_t)(offset + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	return done;
}

static void file_put(struct tel *t, const void *buf, size_t size, size_t offset) {
	if (pwrite(t->fd, buf, size, (off_t)offset) != (ssize_t)size && t->io_errno == 0)
		t->io_errno = errno;
}

static void file_publish(struct tel *t, uint64_t epoch) {
	size_t place = offsetof(struct tel_header, published)
		+ epoch % TEL_EPOCHS * sizeof(struct tel_counters);

	file_put(t, &t->file, sizeof(t->file), place);
	file_put(t, &epoch, sizeof(epoch), offsetof(struct tel_header, epoch));
	t->file_epoch = epoch;
}

// Leaves the same bytes however often the file was published.
static void file_close(struct tel *t) {
	const uint8_t zero[(TEL_EPOCHS - 1) * sizeof(struct tel_counters)] = {0};
	const uint64_t closed = 1;
	size_t others = offsetof(struct tel_header, published) + sizeof(struct tel_counters);

	file_publish(t, (t->file_epoch / TEL_EPOCHS + 1) * TEL_EPOCHS);
	file_publish(t, TEL_EPOCH_CLOSED);
	file_put(t, zero, sizeof(zero), others);
	file_put(t, &closed, sizeof(closed), offsetof(struct tel_header, closed));
	if (close(t->fd) != 0 && t->io_errno == 0)
		t->io_errno = errno;
	t->fd = -1;
}

static uint64_t count_gaps(const struct tel *t, const uint8_t *records, uint64_t count) {
	uint64_t gaps = 0;

	for (uint64_t i = 0; i < count; i++) {
		uint64_t ts_ns;
		memcpy(&ts_ns, records + i * t->record_size, sizeof(ts_ns));
		gaps += ts_ns == TEL_GAP;
	}
	return gaps;
}

static void direct_close(struct tel *t) {
	if (t->direct_fd >= 0)
		close(t->direct_fd);
	t->direct_fd = -1;
}

// Appends slots to the file; what does not fit stays out, to a whole record, and is lost.
static void file_append(
	struct tel *t, const uint8_t *records, uint64_t count, bool has_gaps, bool direct) {
	size_t offset = TEL_HEADER_SIZE + t->file.written * t->record_size;
	size_t size = count * t->record_size, done = 0;
	uint64_t fit, gaps;

	if (t->fd < 0)
		return;
	if (t->io_errno == 0 && direct) {
		done = write_all(t->direct_fd, records, size, offset);
		if (done < size) // whatever it is, the page cache knows better
			direct_close(t);
	}
	if (t->io_errno == 0 && done < size) {
		done += write_all(t->fd, records + done, size - done, offset + done);
		if (done < size)
			t->io_errno = errno != 0 ? errno : EIO;
	}
	fit = done / t->record_size;
	gaps = has_gaps ? count_gaps(t, records, fit) : 0;
	t->file.written += fit;
	t->file.gaps += gaps;
	if (fit == count)
		return;
	t->file.lost += count - fit;
	if (has_gaps)
		t->file.lost -= count_gaps(t, records + fit * t->record_size, count - fit);
	if (done % t->record_size > 0
		&& ftruncate(t->fd, (off_t)(offset + fit * t->record_size)) != 0)
		t->io_errno = t->io_errno != 0 ? t->io_errno : errno;
}

// Of `count` slots in a row from the tail on, those that go to file f in one write.
static uint64_t portion(const struct tel *t, const struct tel *f, uint64_t count, bool *direct) {
	// So many records fill whole pages, and no fewer: a page is a power of two.
	uint64_t block = PAGE_BYTES / (t->record_size & -t->record_size);
	uint64_t over = f->file.written % block;

	*direct = false;
	if (f->direct_fd < 0 || count * t->record_size < DIRECT_BYTES || t->tail % block != over)
		return count;
	*direct = over == 0;
	return over > 0 ? block - over : count - count % block;
}

uint64_t tel_drain(struct tel *t) {
	if (t->ring == NULL || t->shared)
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
		file_append(f, records, count, now.gaps > 0, direct);
		t->tail += count;
		atomic_store_explicit(&t->ring->tail, t->tail, memory_order_release);
		left = direct && (now.written - t->tail) * t->record_size < DIRECT_BYTES;
	}
	if (f->fd >= 0 && (t->tail != first || now.lost != t->told)) {
		f->file.lost += now.lost - t->told;
		f->file.head = f->file.written - f->file.gaps + f->file.lost;
		file_publish(f, f->file_epoch + 1);
	}
	t->told = now.lost;
	return t->tail - first;
}

uint64_t tel_digest(const struct tel *t) {
	return !t->lossless ? 0
			    : XXH64_digest((const XXH64_state_t *)(const void *)t->digest_state);
}

static void header_fill(struct tel_header *h, enum tel_stream s, const struct tel_run *run) {
	char *schema = (char *)h + TEL_SCHEMA_OFFSET;

	memset(h, 0, TEL_HEADER_SIZE);
	memcpy(h->magic, TEL_MAGIC, sizeof(h->magic));
	h->endian = TEL_ENDIAN;
	h->version = TEL_VERSION;
	h->header_size = TEL_HEADER_SIZE;
	h->record_size = streams[s].record_size;
	h->stream = s;
	h->seed = run->seed;
	h->config_hash = run->config_hash;
	h->virtual_time = run->virtual_time;
	if (!run->virtual_time) {
		h->tsc_hz = run->tsc_hz;
		h->tsc_start = run->tsc_start;
		h->utc_start_ns = run->utc_start_ns;
		h->writer_pid = (uint32_t)getpid();
		memcpy(h->run_id, run->run_id, sizeof(h->run_id));
	}
	h->schema_offset = TEL_SCHEMA_OFFSET;
	h->schema_size =
		(uint32_t)tel_schema_json(run, s, schema, TEL_HEADER_SIZE - TEL_SCHEMA_OFFSET);
	assert(h->schema_size < TEL_HEADER_SIZE - TEL_SCHEMA_OFFSET);
}

static int open_path(const char *path, int flags, struct err *err) {
	unlink(path);
	int fd = open(path, O_CREAT | O_EXCL | O_CLOEXEC | flags, 0644);

	return fd >= 0 ? fd : err_set(err, -errno, "%s: %s", path, strerror(errno));
}

// The ring's memory, every page present: a page fault in the data path costs as much as a hundred
// records. A shared ring is made under another name and appears complete.
static int map_ring(struct tel *t, const char *shm_path, struct err *err) {
	int fd = -1, flags = MAP_PRIVATE | MAP_ANONYMOUS, rc = 0;

	if (shm_path != NULL) {
		flags = MAP_SHARED;
		fd = open_path(t->path, O_RDWR, err);
		if (fd < 0)
			return fd;
		// Reserves the space: a full tmpfs is an error here, not a SIGBUS later.
		rc = posix_fallocate(fd, 0, (off_t)t->map_size);
	}
	void *map = MAP_FAILED;
	if (rc == 0) {
		map = mmap(NULL, t->map_size, PROT_READ | PROT_WRITE, flags, fd, 0);
		rc = map == MAP_FAILED ? errno : 0;
	}
	if (fd >= 0)
		close(fd);
	if (rc != 0)
		return err_set(err, -rc, "%s: a ring of %zu bytes: %s",
			shm_path != NULL ? shm_path : t->path, t->map_size, strerror(rc));
	(void)madvise(map, t->map_size, MADV_HUGEPAGE); // a wish: spares writes of many pages work
	// Only a write makes pages ours, of a file too.
	for (size_t i = 0; i < t->map_size; i += PAGE_BYTES)
		((volatile uint8_t *)map)[i] = 0;
	t->ring = map;
	t->records = (uint8_t *)map + TEL_HEADER_SIZE;
	return 0;
}

static int open_file(struct tel *t, enum tel_stream s, const struct tel_run *run, struct err *err) {
	_Alignas(64) uint8_t page[TEL_HEADER_SIZE];

	header_fill((struct tel_header *)(void *)page, s, run);
	t->fd = open_path(t->path, O_WRONLY, err);
	if (t->fd < 0)
		return t->fd;
	if (!run->virtual_time)
		t->direct_fd = open(t->path, O_WRONLY | O_DIRECT | O_CLOEXEC);
	errno = 0;
	if (write_all(t->fd, page, sizeof(page), 0) == sizeof(page))
		return 0;
	return err_set(err, errno != 0 ? -errno : -EIO, "%s: %s", t->path,
		strerror(errno != 0 ? errno : EIO));
}

static int set_path(struct tel *t, enum tel_stream s, const struct tel_run *run, const char *suffix,
	const char *shm_path) {
	int n;

	if (shm_path != NULL)
		n = snprintf(t->path, sizeof(t->path), "%s.new", shm_path);
	else
		n = snprintf(t->path, sizeof(t->path), "%s%s%s%s.ring",
			run->dir == NULL ? "" : run->dir, run->dir == NULL ? "" : "/",
			streams[s].name, suffix);
	return n < (int)sizeof(t->path) ? 0 : -ENAMETOOLONG;
}

int tel_open(struct tel *t, enum tel_stream s, const struct tel_run *run, const char *suffix,
	uint64_t capacity, const char *shm_path, struct err *err) {
	int rc;

	memset(t, 0, sizeof(*t));
	t->fd = t->direct_fd = -1;
	if (capacity < 2 || capacity > CAPACITY_MAX || (capacity & (capacity - 1)) != 0)
		return err_set(err, -EINVAL,
			"%s%s: a ring of %llu records: must be a power of two, 2 to 2^32",
			streams[s].name, suffix, (unsigned long long)capacity);
	rc = set_path(t, s, run, suffix, shm_path);
	if (rc != 0)
		return err_set(err, rc, "%.400s...: %s", t->path, strerror(-rc));
	t->shared = shm_path != NULL;
	t->lossless = run->virtual_time && !t->shared;
	t->record_size = streams[s].record_size;
	t->mask = capacity - 1;
	t->limit = capacity;
	t->map_size = TEL_HEADER_SIZE + capacity * t->record_size;
	XXH64_reset((XXH64_state_t *)(void *)t->digest_state, 0);
	rc = map_ring(t, shm_path, err);
	if (rc != 0)
		goto fail;
	header_fill(t->ring, s, run);
	t->ring->capacity = capacity;
	if (t->shared && rename(t->path, shm_path) != 0) {
		rc = err_set(err, -errno, "%s: %s", shm_path, strerror(errno));
		goto fail;
	}
	if (t->shared)
		t->path[strlen(t->path) - strlen(".new")] = '\0';
	else if (run->dir != NULL)
		rc = open_file(t, s, run, err);
	if (rc == 0)
		return 0;
fail:
	if (t->shared)
		unlink(t->path);
	if (t->fd >= 0)
		close(t->fd);
	direct_close(t);
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

	assert(into->ring != NULL && !into->shared);
	ring_only.dir = NULL;
	rc = tel_open(t, (enum tel_stream)into->ring->stream, &ring_only, "", capacity, NULL, err);
	if (rc == 0)
		t->into = into;
	return rc;
}

int tel_close(struct tel *t, struct err *err) {
	if (t->ring == NULL)
		return 0;
	tel_publish(t);
	tel_drain(t);
	tel_publish(t); // now there is room for a gap record
	tel_drain(t);
	direct_close(t);
	if (t->fd >= 0)
		file_close(t);
	atomic_store_explicit(&t->ring->closed, 1, memory_order_release);
	munmap(t->ring, t->map_size);
	t->ring = NULL;
	t->limit = t->written; // tel_put takes the slow path, and stops there
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

bool tel_fault(const struct tel *t, char *text, size_t size) {
	if (tel_lost(t) == 0)
		return false;
	snprintf(text, size, "%s: %llu of %llu records were lost (%s)", base_name(t->path),
		(unsigned long long)tel_lost(t), (unsigned long long)t->head,
		t->io_errno != 0 ? strerror(t->io_errno) : "the ring was full");
	return true;
}
