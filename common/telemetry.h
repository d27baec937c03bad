// SPDX-License-Identifier: BSD-3-Clause
// Telemetry: fixed-size records in single-producer, single-consumer rings.
//
// One stream = one file = one producer = one record type (tel_schema.h). A file is a 4 KiB header
// page followed by records; the ring in shared memory has the same header and the same records,
// used modulo its capacity. Nothing here blocks: a full ring drops the newest record, counts it,
// and writes a gap record as soon as there is room, so records + lost == produced always holds.
//
// The producer (data path) writes records with tel_put and publishes with tel_publish, once per
// burst. The consumer moves them to the file: in virtual time the same thread, which never loses
// any (tel_put drains a full ring itself); live a housekeeping thread calls tel_drain.
//
// A gap record is a record of the stream with ts_ns == TEL_GAP (all ones) in its first eight bytes
// and the number of lost records in the next eight.
#pragma once
#include "err.h"
#include "hist.h"
#include "tel_schema.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEL_FIELD_(ctype, dtype, name, unit, meaning) ctype name;
#define TEL_STRUCT_(stream, STREAM, size)                                                          \
	struct tel_##stream {                                                                      \
		TEL_##STREAM(TEL_FIELD_)                                                           \
	};                                                                                         \
	static_assert(sizeof(struct tel_##stream) == (size), "record size of " #stream);
TEL_STREAMS(TEL_STRUCT_)

#define TEL_ENUM_(stream, STREAM, size) TEL_STREAM_##STREAM,
enum tel_stream { TEL_STREAMS(TEL_ENUM_) TEL_STREAM_COUNT };

enum tel_packet_event { TEL_ENQUEUE = 1, TEL_DEQUEUE, TEL_DROP, TEL_MARK, TEL_DEPART };
enum tel_flow_event { TEL_OPEN = 1, TEL_CLOSE, TEL_RESET, TEL_GAVE_UP, TEL_STILL_OPEN };
enum tel_ca_state { TEL_CA_OPEN, TEL_CA_RECOVERY, TEL_CA_LOSS };
enum tel_event {
	TEL_EV_REDUCTION = 1, // before, value: cwnd in segments; detail: 1 if by ECN
	TEL_EV_TIMEOUT, // before, value: cwnd in segments
	TEL_EV_RECOVERED, // value: cwnd in segments
	TEL_EV_SLOW_START_END, // value: cwnd in segments
	TEL_EV_CC_MODE, // before, value: the algorithm's mode
	TEL_EV_PARAM, // group: link; before, value: in the parameter's unit; detail: schedule entry
	TEL_EV_SPURIOUS, // a retransmission that was not needed (DSACK)
	TEL_EV_PORT, // live: group: port; value: 1 up, 0 down
};

#define TEL_GAP UINT64_MAX
#define TEL_NO_FLOW UINT32_MAX
#define TEL_HEADER_SIZE 4096
#define TEL_MAGIC "WEIRTEL1"

// The first bytes of the header page, little endian; the JSON schema follows at schema_offset.
// tests/tools checks that Python reads the same.
struct tel_header {
	char magic[8];
	uint32_t endian; // 0x01020304
	uint16_t version; // 1
	uint16_t header_size; // TEL_HEADER_SIZE
	uint32_t record_size;
	uint32_t stream; // enum tel_stream
	uint64_t capacity; // records; 0: a file that grows, not a ring
	uint64_t tsc_hz; // 0 in virtual time
	uint64_t tsc_start;
	uint64_t utc_start_ns; // UTC at ts_ns == 0; 0 in virtual time
	uint64_t seed;
	uint64_t config_hash; // xxh64 of the resolved config
	char run_id[32];
	uint32_t virtual_time; // 1 or 0
	uint32_t schema_offset;
	uint32_t schema_size;
	uint32_t writer_pid; // 0 in virtual time
	// Counters, each on a cache line of its own. A file holds head == its records + lost.
	_Alignas(64) _Atomic uint64_t head; // records produced, lost ones included (producer)
	_Alignas(64) _Atomic uint64_t tail; // slots consumed (consumer)
	_Alignas(64) _Atomic uint64_t written; // slots published (producer); a file: records in it
	_Alignas(64) _Atomic uint64_t lost; // records lost (producer)
};
static_assert(sizeof(struct tel_header) <= 1024, "leaves room for the schema");

// What all streams of a run share.
struct tel_run {
	const char *dir; // run folder; NULL: only digest, no files
	bool virtual_time;
	uint64_t tsc_hz, tsc_start, utc_start_ns, seed, config_hash;
	char run_id[32];
	uint32_t level; // 0..3
	uint64_t sample_threshold; // level 2: flows with hash(flow) < threshold
};

// One stream's producer side and its drain.
struct tel {
	struct tel_header *ring; // NULL: stream is off, tel_put does nothing
	uint8_t *records;
	uint64_t mask; // capacity - 1
	uint32_t record_size;
	uint64_t head, written, lost, gap; // producer's private copies; gap: lost, not yet reported
	uint64_t tail_seen;
	bool lossless; // drain instead of losing
	int fd; // file, -1 if none
	uint64_t file_records; // drained so far
	uint64_t file_gaps; // of these, gap records
	uint64_t digest_state[11]; // XXH64_state_t
	int io_errno; // first error of the drain, e.g. ENOSPC
	char path[256]; // of the file, for messages
	size_t map_size;
};

// Opens stream `s` with a ring of `capacity` (a power of two) records and, when run->dir is set,
// the file "<dir>/<name><suffix>.ring" ("packets.ring"; suffix "" or "-switch"). `shm_path` (may be
// NULL) backs the ring by that file instead of private memory, so that another process can be its
// consumer; then no file is written here.
int tel_open(struct tel *t, enum tel_stream s, const struct tel_run *run, const char *suffix,
	uint64_t capacity, const char *shm_path, struct err *err);
// Drains what is left, writes the final counters, closes. 0 or the first I/O error with a
// sentence (a full disk, ...).
int tel_close(struct tel *t, struct err *err);
// Moves published records to the file and the digest. Consumer side; returns records moved.
uint64_t tel_drain(struct tel *t);
// xxh64 over all records drained so far.
uint64_t tel_digest(const struct tel *t);
const char *tel_stream_name(enum tel_stream s);
uint32_t tel_record_size(enum tel_stream s);
// The schema as JSON text: {"stream": "...", "record_size": 32, "fields": [{"name", "dtype",
// "offset", "unit", "meaning"}, ...]}. Returns its length.
size_t tel_schema_json(enum tel_stream s, char *buf, size_t size);
// The same subset of flows in switch and sender (level 2).
bool tel_flow_sampled(const struct tel_run *run, uint32_t flow_id);

void *tel_slot_slow(struct tel *t);

// A slot for the next record, or NULL when it is lost (or the stream is off). The caller fills all
// of it; it becomes visible with tel_publish.
static inline void *tel_put(struct tel *t) {
	if (t->ring == NULL)
		return NULL;
	if (__builtin_expect(t->gap > 0 || t->written - t->tail_seen > t->mask, 0))
		return tel_slot_slow(t);
	t->head++;
	return t->records + (t->written++ & t->mask) * t->record_size;
}

static inline void tel_publish(struct tel *t) {
	if (t->ring == NULL)
		return;
	atomic_store_explicit(&t->ring->lost, t->lost, memory_order_relaxed);
	atomic_store_explicit(&t->ring->head, t->head, memory_order_relaxed);
	atomic_store_explicit(&t->ring->written, t->written, memory_order_release);
}
