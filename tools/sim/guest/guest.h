// SPDX-License-Identifier: BSD-3-Clause
// A Linux guest as a host of virtual time: an unmodified kernel in User Mode Linux, whose clock and
// network card are ours.
//
//	packets that leave a path -> inbox -> card -> kernel
//	                          -> card -> outbox -> packets that enter a path
//
// A guest is run through a window like any other host, on the packets that arrive in it. Its
// processor is infinitely fast: all that it does at a time happens at that time, but for 256 ns per
// clock that a process reads. Its card sends one frame after the other, at its rate, and gives a
// frame's memory back when it has left: small queues in the kernel's TCP depend on that. Frames
// wait in the card without bound, those for which the kernel has no buffer.
//
// All its times are the run's. Its own clock is ahead by GUEST_EPOCH_NS, in which it boots.
#pragma once
#include "common/base/pkt.h"
#include "tools/sim/frame.h"
#include "tools/sim/guest/calendar.h"
#include "tools/sim/guest/card.h"
#include "tools/sim/guest/message.h"
#include "tools/sim/guest/process.h"
#include "tools/sim/guest/program.h"
#include "tools/sim/guest/vhost.h"

#include <sys/types.h>

#define GUEST_EPOCH_NS (10 * UINT64_C(1000000000))

// What a guest's card is connected to.
struct guest_wire {
	// A frame that the guest sends: the packet for it, with all that paths need; NULL: it is
	// thrown away.
	struct pkt *(*packet)(void *ctx, uint32_t guest, const uint8_t *frame, uint32_t size);
	// The frame of a packet for the guest, at most FRAME_ROOM bytes into `frame`; its
	// size.
	uint32_t (*frame)(void *ctx, uint32_t guest, const struct pkt *p, uint8_t *frame);
	void *ctx;
};

struct guest_count {
	uint64_t tx; // frames that left its card; card.h has the others
	uint64_t other; // frames that no path is for
};

struct guest {
	uint32_t index;
	pid_t pid; // 0: not started
	int cpu; // of its processes; -1: any
	uint64_t epoch_ns; // its clock less the run's; 0 while it boots
	bool ready; // its program has said so
	struct calendar calendar;
	struct vhost net;
	struct card *card; // of the calendar's page
	struct guest_wire wire;
	struct pkt_list inbox; // in the order of their arrival
	struct pkt_list delivered; // from the inbox, to be freed by the owner
	struct pkt_list outbox; // frames that leave the card, in the order of time
	struct sample *sample; // what its program has reported, to be emptied by the owner
	uint32_t nb_samples, room_samples;
	uint64_t ready_clock_ns, ready_ns; // its program's clock, and ours, when it was ready
	struct guest_count count;
	struct guest_program program;
	struct guest_shortage shortage; // as its program has last reported it
	char trouble[256]; // what its program complains about; "": nothing
	uint64_t end_ns; // of the window
	bool resumed; // it runs; weir-sim waits for it
	int rc; // of guest_finish
	struct err err;
};

// Listens at the guest's sockets in the folder; guest_process may then start it.
int guest_open(struct guest *g, uint32_t index, const struct guest_folder *f, const uint8_t mac[6],
	struct err *err);
// Lets it boot until its program is ready, and sets that program's clock. -ETIMEDOUT, -EPIPE, ...
// and a sentence.
int guest_boot(struct guest *g, const struct guest_folder *f, struct err *err);
// Runs it up to `end_ns`, exclusive, beside other guests: all begin, then all are waited for.
void guest_begin(struct guest *g, uint64_t end_ns);
int guest_finish(struct guest *g, const struct guest_folder *f, struct err *err);
// When it has something to do of itself; NEVER_NS: only a packet can wake it.
uint64_t guest_next_ns(const struct guest *g);
// Ends it. Its packets are the owner's.
void guest_close(struct guest *g);
