// SPDX-License-Identifier: BSD-3-Clause
// --pcap of every program: a capture that several threads fill, in order of time.
//
// One producer per thread and one writer. Live, the producer is an lcore: it puts what it sees into
// a ring, the first PCAP_WRITER_SNAP bytes of a frame, and counts what finds the ring full; the
// control thread empties the rings. In virtual time there is no ring, and the whole frame is kept.
//
// Packets come out of order of their times: the writer keeps them until pcap_writer_flush and
// writes them in order. Live it keeps those that are not older than what the slowest producer has
// reached, and a little longer.
#pragma once
#include "common/base/json.h"
#include "common/config/live.h"
#include "common/pcap/pcapng.h"
#include "common/run/run.h"

#include <stdatomic.h>

#define PCAP_WRITER_SNAP 128u
#define PCAP_WRITER_COMMENT_MAX 160

// What is known of a packet at an interface.
struct pcap_record {
	uint64_t ts_ns; // of the run
	uint64_t id; // the same wherever the same packet is seen; PCAP_NO_ID: not known
	uint64_t lost; // at this interface, since the packet before: the writer's
	uint32_t flow_id; // PCAP_NO_FLOW: of no flow
	uint32_t length, captured; // bytes of the frame without FCS, and of them in `bytes`
	uint8_t interface, direction; // enum pcapng_direction
	// For the program's comments.
	uint8_t path, marked_by, dropped_by, reason;
	bool queued;
	uint64_t queue_ns;
};
#define PCAP_NO_ID UINT64_MAX
#define PCAP_NO_FLOW UINT32_MAX

// Writes what else a comment says, which begins with the flow; at most `size` bytes with the
// closing zero.
typedef void pcap_comment_fn(const void *ctx, const struct pcap_record *r, char *text, size_t size);

struct pcap_writer_env {
	const struct run *run;
	uint64_t epoch_ns; // since 1970, when the run's time begins
	uint32_t rings; // producers that are other threads; 0: none, all is the writer's thread
	uint64_t ring_records; // of each, a power of two
	size_t kept_bytes; // at most, of packets that wait; 0: the usual
	pcap_comment_fn *comment; // NULL: none
	const void *ctx; // for it
};

struct pcap_slot {
	struct pcap_record record;
	uint8_t bytes[PCAP_WRITER_SNAP];
};

// Single producer, single consumer. A full ring drops the newest and counts it.
// Padding keeps the two apart.
struct pcap_ring {
	struct pcap_slot *slot;
	uint64_t mask, limit; // limit: the first position that may not be free
	// Packets lost since the last one of the interface that found room.
	uint64_t lost[PCAPNG_INTERFACES_MAX];
	_Alignas(64) _Atomic uint64_t head;
	_Atomic uint64_t reached_ns; // pcap_writer_reached
	_Alignas(64) _Atomic uint64_t tail;
};

struct pcap_kept;

struct pcap_writer {
	struct pcap_ring ring[LIVE_LCORES_MAX]; // first: aligned to cache lines
	struct pcap_writer_env env;
	struct pcapng file;
	const char *name;
	char program[32];
	struct pcap_kept *kept;
	uint8_t *bytes;
	size_t count, used;
	uint64_t written_ns, out_of_order; // the latest time written; packets written behind it
	bool said; // that it ended early
};

// Where a producer puts a packet: it fills in `record` but for `lost`, and at most `room` bytes.
struct pcap_place {
	struct pcap_record *record;
	uint8_t *bytes;
	uint32_t room;
	uint64_t lost; // goes into the record
};

// Can `file` become a capture? Without `force` none that is there is overwritten.
int pcap_writer_check(const char *file, bool force, struct err *err);
// Zeroes *w, which is aligned to 64 bytes; interfaces are added with pcapng_interface(&w->file,
// ...) before the first packet. On error nothing needs freeing.
int pcap_writer_open(struct pcap_writer *w, const char *file, const struct pcap_writer_env *env,
	struct err *err);
// A producer's next place; false: the packet is lost and counted. pcap_writer_put follows once it
// is filled in.
bool pcap_writer_place(
	struct pcap_writer *w, uint32_t ring, uint32_t interface, struct pcap_place *place);
void pcap_writer_put(struct pcap_writer *w, uint32_t ring, const struct pcap_place *place);
// The ring's producer is at now_ns: little comes from before. Until all have said so, none is
// written; one that stands still is waited for.
void pcap_writer_reached(struct pcap_writer *w, uint32_t ring, uint64_t now_ns);
// Empties the rings and writes what is old enough.
void pcap_writer_drain(struct pcap_writer *w);
// No packet from before now_ns comes any more: those are written.
void pcap_writer_flush(struct pcap_writer *w, uint64_t now_ns);
// Once the producers have ended. 0, or -errno and a sentence of the first write that failed; that a
// pipe's reader has ended is no error. What ended the capture early was said when it happened.
// pcap_writer_summary has the counts until pcap_writer_free.
int pcap_writer_close(struct pcap_writer *w, struct err *err);
void pcap_writer_summary(const struct pcap_writer *w, struct json *j);
void pcap_writer_free(struct pcap_writer *w); // its contents
