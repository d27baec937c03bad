// SPDX-License-Identifier: BSD-3-Clause
// Telemetry: fixed-size records in single-producer, single-consumer rings.
//
// One stream = one file = one producer = one record type (schema.h). A file is a 4 KiB header
// page followed by records; the ring in memory has the same header and the same records,
// used modulo its capacity. Nothing here blocks: a full ring drops the newest record, counts it,
// and writes a gap record as soon as there is room.
//
// The producer (data path) writes records with tel_put and publishes with tel_publish, once per
// burst. The consumer moves them to the file: in virtual time the same thread, which never loses
// any (tel_put drains a full ring itself); live a housekeeping thread calls tel_drain.
//
// Where several lcores produce one stream, each has a ring of its own and all rings are drained to
// one file (tel_join): each producer's records are in their order there, and the counters are sums.
//
// A slot holds a record or a gap record. A gap record is all zero but ts_ns == TEL_GAP (all ones)
// in its first eight bytes and the number of records lost there in the next eight. It needs room
// for itself and one record more, so that a ring that stays nearly full is not filled with gaps.
//
// The four counters of struct tel_counters are published together: a reader, at any moment and
// after a kill -9 at any instruction, gets a set for which
//
//	head == (written - gaps) + lost                     records + lost == produced
//	sum of the gap records in slots [0, written) <= lost
//
// and the difference in the second line was lost after the last slot. For this, each set is written
// to the next of eight places, and then the epoch, which selects the place, is increased: only the
// store of the epoch publishes. A reader reads the epoch, the place, and the epoch again; the set
// is valid if the epoch has increased by at most six, because beyond that the place may be being
// overwritten.
#pragma once
#include "common/base/err.h"
#include "common/base/fact.h"
#include "common/base/hist.h"
#include "common/base/likely.h"
#include "common/telemetry/schema.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEL_FIELD_(ctype, dtype, name, unit, meaning) ctype name;
#define TEL_SIZE_(ctype, dtype, name, unit, meaning) +sizeof(ctype)
// The rest of the last eight bytes is an explicit zero member, not padding: records are compared
// byte by byte.
#define TEL_STRUCT_(stream, STREAM)                                                                \
	struct tel_##stream {                                                                      \
		TEL_##STREAM(TEL_FIELD_, TEL_FIELD_) __extension__ uint8_t                         \
			room[-(0 TEL_##STREAM(TEL_SIZE_, TEL_SIZE_)) % 8];                         \
	};                                                                                         \
	static_assert(                                                                             \
		offsetof(struct tel_##stream, room) == (0 TEL_##STREAM(TEL_SIZE_, TEL_SIZE_)),     \
		"no padding in " #stream);
TEL_STREAMS(TEL_STRUCT_)
static_assert(sizeof(struct tel_packets) == 40, "two for each packet at level 3");

#define TEL_ENUM_(stream, STREAM) TEL_STREAM_##STREAM,
enum tel_stream { TEL_STREAMS(TEL_ENUM_) TEL_STREAM_COUNT };

#define TEL_CONSTANT_(constant, number, name, meaning) constant = number,
enum tel_packet_event { TEL_PACKET_EVENT_VALUES(TEL_CONSTANT_) };
enum tel_arrival { TEL_ARRIVAL_VALUES(TEL_CONSTANT_) };
enum tel_flow_event { TEL_FLOW_EVENT_VALUES(TEL_CONSTANT_) };
enum tel_ca_state { TEL_CA_STATE_VALUES(TEL_CONSTANT_) };
enum tel_event { TEL_EVENT_VALUES(TEL_CONSTANT_) };
enum tel_undo { TEL_UNDO_EIFEL = 1, TEL_UNDO_DSACK, TEL_UNDO_FRTO, TEL_UNDO_UNSENT };

#define TEL_OBSERVED 4 // numbers that one stage, discipline or congestion control observes
#define TEL_OBSERVERS_MAX 64
#define TEL_GAP UINT64_MAX
#define TEL_UNKNOWN(ctype) ((ctype)UINT64_MAX) // of a field that may be not known
#define TEL_NO_FLOW UINT32_MAX
#define TEL_HEADER_SIZE 4096
#define TEL_MAGIC "WEIRTEL1"

// Readers want this one: tools/src/weir/analysis/header.py and tools/sim/run/replay.c.
#define TEL_VERSION 3
#define TEL_ENDIAN 0x01020304u
#define TEL_SCHEMA_OFFSET 512
#define TEL_EPOCHS 8
#define TEL_EPOCH_CLOSED (1ull << 63) // of a closed file: more than any before, place 0

// In a ring: counts of all slots that the producer has published. In a file: counts of its slots;
// `lost` then includes records that a full disk refused.
struct tel_counters {
	uint64_t head; // records produced: calls of tel_put, lost ones included
	uint64_t written; // slots
	uint64_t gaps; // of these, gap records
	uint64_t lost; // records lost, with or without a gap record yet
};

// The first bytes of the header page, little endian; the JSON schema follows at schema_offset.
// In virtual time the page depends on nothing but the stream, the config and the seed.
// tests/tools checks that Python reads the same.
// Padding keeps producer and consumer apart.
struct tel_header {
	char magic[8];
	uint32_t endian; // TEL_ENDIAN
	uint16_t version; // TEL_VERSION
	uint16_t header_size; // TEL_HEADER_SIZE
	uint32_t record_size;
	uint32_t stream; // enum tel_stream
	uint64_t capacity; // records; 0: a file that grows, not a ring
	uint64_t tsc_hz; // 0 in virtual time
	uint64_t tsc_start; // 0 in virtual time
	uint64_t utc_start_ns; // UTC at ts_ns == 0; 0 in virtual time
	uint64_t seed;
	uint64_t config_hash; // xxh64 of the run folder's config.yaml
	char run_id[32]; // "" in virtual time
	uint32_t virtual_time; // 1 or 0
	uint32_t schema_offset; // TEL_SCHEMA_OFFSET
	uint32_t schema_size;
	uint32_t writer_pid; // 0 in virtual time
	// The counters, see above: the set of epoch e is at published[e % TEL_EPOCHS].
	_Alignas(64) struct { _Atomic uint64_t head, written, gaps, lost; } published[TEL_EPOCHS];
	_Atomic uint64_t epoch;
	_Atomic uint64_t closed; // 1: closed by the writer, complete
	_Alignas(64) _Atomic uint64_t tail; // slots consumed (consumer); a file: 0
};
static_assert(offsetof(struct tel_header, published) == 128, "as header.py reads it");
static_assert(offsetof(struct tel_header, epoch) == 384, "as header.py reads it");
static_assert(offsetof(struct tel_header, tail) == 448, "as header.py reads it");
static_assert(sizeof(struct tel_header) <= TEL_SCHEMA_OFFSET, "leaves room for the schema");

struct tel_observer {
	const char *name; // of the plug-in
	const char *observed[TEL_OBSERVED]; // names of its numbers, with their unit; NULL: unused
	enum tel_stream stream;
};

// Settings shared by all streams of a run.
struct tel_run {
	const char *dir; // run folder; NULL: only digest, no files
	bool virtual_time;
	uint64_t tsc_hz, tsc_start, utc_start_ns, seed, config_hash;
	char run_id[32];
	uint32_t level; // 0..3
	uint64_t sample_threshold; // level 2: flows with hash(flow) < threshold
	struct tel_observer observer[TEL_OBSERVERS_MAX];
	uint32_t observers;
};

// One stream's producer side and its drain. All zero: the stream is off, every call does nothing.
struct tel {
	// Producer. The counters are its private copies; after tel_close they are final.
	struct tel_header *ring; // NULL: the stream is off
	uint8_t *records;
	uint64_t mask; // capacity - 1
	uint64_t written, limit; // limit - written: slots known to be free; 0 while a gap is open
	uint64_t head, lost, gaps;
	uint64_t gap; // records lost since the last gap record
	uint64_t epoch;
	uint32_t record_size;
	bool lossless; // drain instead of losing
	uint8_t pad[64]; // the members below belong to the consumer
	uint64_t tail; // slots consumed
	struct tel_counters file; // as the file's header says
	uint64_t file_epoch;
	uint64_t digest_state[11]; // XXH64_state_t
	size_t map_size;
	struct tel *into; // this ring is drained to the file of `into`; NULL: to its own
	uint64_t lost_reported; // part of `lost` already reported to that file
	uint64_t joined_head, joined_lost,
		joined_kept; // of the rings that were drained to this file
	int fd; // file, -1 if none
	int direct_fd; // the same with O_DIRECT; -1 if not possible
	int io_errno; // first error of the drain, e.g. ENOSPC
	char path[640]; // of the file
};

// Opens stream `s` with a ring of `capacity` records (a power of two, 2 to 2^32) and, when run->dir
// is set, the file "<dir>/<name><suffix>.ring" ("packets.ring"; suffix "" or "-switch"). The ring
// is lossless in virtual time. 0 or -errno with a sentence; `t` is then off.
int tel_open(struct tel *t, enum tel_stream s, const struct tel_run *run, const char *suffix,
	uint64_t capacity, struct err *err);
// Opens another ring of the stream of `into`, for another producer, drained to the same file by the
// same consumer. To be closed before `into`, which has the totals of all rings once it is closed.
int tel_join(struct tel *t, struct tel *into, const struct tel_run *run, uint64_t capacity,
	struct err *err);
// In a process that was forked from the stream's, which writes no more: goes on in a copy of its
// file, in the folder of `run`. rc < 0: there is no such folder, and the stream loses its file.
// Returns rc, or -errno and a sentence.
int tel_branch(struct tel *t, const struct tel_run *run, int rc, struct err *err);
// Publishes and drains the rest, writes the final counters, closes. 0 or -errno of the first I/O
// error with a sentence: "packets.ring: No space left on device; 12 records were not written".
// The digest and the counters in `t` stay readable.
int tel_close(struct tel *t, struct err *err);
// Consumer side: moves published slots to the file and the digest, then updates the file's
// counters; returns the number of slots moved. Up to 256 KiB of a busy stream stay for the next
// drain. After an I/O error the file keeps its contents, and slots are still consumed and counted.
uint64_t tel_drain(struct tel *t);
// Records lost so far, final after tel_close: those without room in the ring, and those refused by
// a full disk.
uint64_t tel_lost(const struct tel *t);
// After tel_close: writes "packets.ring: 12 of 345 records were lost (No space left on device)".
// False: none was lost.
bool tel_fault(const struct tel *t, struct fact *fault);
// xxh64 over all slots drained so far, independent of the sizes of drains; 0: the stream is off, or
// may lose records.
uint64_t tel_digest(const struct tel *t);
// A consistent set of counters of a ring, for any thread.
struct tel_counters tel_published(const struct tel_header *ring);
const char *tel_stream_name(enum tel_stream s);
const char *tel_stream_summary(enum tel_stream s);
// A stream's fields, for lists. What an enumerated field's numbers are called; NULL: the field is a
// number.
struct tel_field {
	const char *name, *dtype, *unit, *meaning;
	size_t size;
	bool nullable; // all bits set: not known
};
struct tel_value {
	const char *name; // NULL after the last
	unsigned number;
};
size_t tel_field_count(enum tel_stream s);
const struct tel_field *tel_field(enum tel_stream s, size_t i);
const struct tel_value *tel_field_values(const struct tel_field *f);
uint32_t tel_record_size(enum tel_stream s);
// The schema as JSON text: {"stream": "...", "record_size": 32, "gap": "...", "fields": [{"name",
// "dtype", "offset", "unit", "meaning", "unknown": number if that says that it is not known,
// "values": {"name": number, ...} if its numbers have names}, ...], "observers": [{"number",
// "name", "observed": [...]}, ...]}, those of the stream. Writes at most `size` bytes with the
// closing NUL; returns the length of the whole text.
size_t tel_schema_json(const struct tel_run *run, enum tel_stream s, char *buf, size_t size);
// Adds the observer `name` and its values to the schema of a stream, before the stream is opened.
// Repeated calls have no effect.
void tel_observer(struct tel_run *run, enum tel_stream s, const char *name,
	const char *const observed[TEL_OBSERVED]);
// The observer's number in the schema, in order of addition; 2^32-1: none.
uint32_t tel_observer_number(const struct tel_run *run, enum tel_stream s, const char *name);
// Whether a flow is in the subset that level 2 records.
bool tel_flow_chosen(const struct tel_run *run, uint32_t flow_id);
// Whether this flow's packets and ACKs are recorded: level 3 all, level 2 the same subset in switch
// and sender, below none.
static inline bool tel_flow_sampled(const struct tel_run *run, uint32_t flow_id) {
	return run->level == 2 ? tel_flow_chosen(run, flow_id) : run->level > 2;
}

// Whether the stream is on; `t` may be NULL.
static inline bool tel_on(const struct tel *t) {
	return t != NULL && t->ring != NULL;
}

// The rare cases of tel_put and tel_publish.
void *tel_slot_slow(struct tel *t);
void tel_gap_slow(struct tel *t);

// A slot for the next record; NULL: the record is lost, or the stream is off. The caller fills all
// of the slot before the next tel_put or tel_publish; tel_publish makes it visible.
static inline void *tel_put(struct tel *t) {
	if (unlikely(t->written == t->limit))
		return t->ring == NULL ? NULL : tel_slot_slow(t);
	t->head++;
	return t->records + (t->written++ & t->mask) * t->record_size;
}

static inline void tel_publish(struct tel *t) {
	if (t->ring == NULL)
		return;
	if (unlikely(t->gap > 0))
		tel_gap_slow(t);
	// Releases, not relaxed: a reader that sees one of these also sees the epoch before it.
	uint64_t e = ++t->epoch;
	memory_order release = memory_order_release;
	atomic_store_explicit(&t->ring->published[e % TEL_EPOCHS].head, t->head, release);
	atomic_store_explicit(&t->ring->published[e % TEL_EPOCHS].written, t->written, release);
	atomic_store_explicit(&t->ring->published[e % TEL_EPOCHS].gaps, t->gaps, release);
	atomic_store_explicit(&t->ring->published[e % TEL_EPOCHS].lost, t->lost, release);
	atomic_store_explicit(&t->ring->epoch, e, release);
}
