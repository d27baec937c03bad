// SPDX-License-Identifier: BSD-3-Clause
// --pcap: packets where they enter and leave paths or are dropped, as pcapng.
//
//	telemetry: {capture: port}    with hosts: the sender's port, both directions of all flows;
//	                              live: each port, what leaves its path and, between two ports,
//	                              what enters the other's; else: what leaves each path
//	telemetry: {capture: paths}   each path's arrivals, departures and drops, an interface each
//
// A comment has the flow and what is known of the packet: its time in queues, the stage that marked
// it, the stage that dropped it and why. The packet's number in its path is its epb_packetid at all
// interfaces. At telemetry level 2 the same flows are captured as are recorded, else all. Times are
// theoretical ones: when a packet arrived at the path, when it was due to leave, when it was
// dropped.
//
// One producer per thread that serves paths; paths are served ahead of one another, so that packets
// come out of order (common/pcap/writer.h).
#pragma once
#include "common/run/run.h"
#include "switch/path/path.h"

struct capture;

// Writes a packet's frame without FCS as it is now into `bytes`, at most `room` of it, its whole
// length into *length. Returns how many bytes it has written.
typedef uint32_t capture_frame_fn(void *ctx, const struct path *path, const struct pkt *p,
	uint8_t *bytes, uint32_t room, uint32_t *length);

struct capture_env {
	const struct run *run;
	struct paths *paths;
	// Whether a packet is at the sender's port as it enters the path, or as it leaves it. NULL:
	// there are no hosts.
	bool (*at_sender)(void *ctx, const struct path *path, const struct pkt *p, bool leaving);
	// Live, of each path by its index: the ports where its packets come in and leave. NULL:
	// none, or any of several.
	struct {
		const char *in, *out;
	} port[PATHS_MAX];
	uint64_t epoch_ns; // since 1970, when the run's time begins
	capture_frame_fn *frame;
	void *ctx; // for them
	// Producers that are other threads; 0: none, the writer's thread serves all paths.
	uint32_t rings;
	uint64_t ring_records; // of each, a power of two
};

// Before the first packet; with rings, capture_paths follows for each. On error nothing needs
// freeing.
int capture_open(
	struct capture **out, const char *file, const struct capture_env *env, struct err *err);
// Assigns paths to a ring's producer.
void capture_paths(struct capture *c, uint32_t ring, struct path *const *paths, uint32_t n);
// The ring's producer is at now_ns: all that its paths show from then on is of later times, but for
// packets that are due on them and late. NULL is fine here and below.
void capture_reached(
	struct capture *c, uint32_t ring, struct path *const *paths, uint32_t n, uint64_t now_ns);
// Decryption secrets of what the paths show from then on (common/pcap/secrets.h), copied.
void capture_secrets(struct capture *c, const uint8_t *blocks, size_t size);
// Empties the rings and writes what is old enough.
void capture_drain(struct capture *c);
// All paths were served up to now_ns: what they have shown before then is written.
void capture_flush(struct capture *c, uint64_t now_ns);
// Once the producers have ended. 0, or -errno and a sentence of the first write that failed.
// capture_summary has the counts until capture_free.
int capture_close(struct capture *c, struct err *err);
void capture_summary(const struct capture *c, struct json *j);
void capture_free(struct capture *c);
