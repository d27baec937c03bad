// SPDX-License-Identifier: BSD-3-Clause
// When a guest's card sends, receives and interrupts: the frames that weir-sim hands to it, those
// that it hands back, and between them the rings of its driver (vhost.h).
//
// It is run where the guest's clock is: by page.c in the guest's process, by weir-sim where
// messages pass (guest.c). All that it knows lies in memory of both, and all its times are the
// guest's.
#pragma once
#include "tools/sim/guest/vhost.h"

#define CARD_FRAME 1536 // bytes that there is room for
#define CARD_IN 4096u // frames that have arrived or will; they wait for the kernel's buffers
#define CARD_OUT 1024u // frames that weir-sim has not taken yet

struct card_frame {
	uint64_t time_ns; // in: it arrives; out: it has left, a message: it was sent
	uint32_t size;
	uint8_t bytes[CARD_FRAME];
};

struct card {
	uint64_t rate_bps; // 0: infinite
	uint64_t free_ns; // when the last frame has left
	uint64_t coalesce_ns; // least time between two interrupts; 0: each frame has one
	uint64_t quiet_ns; // no interrupt before
	struct {
		uint64_t left_ns;
		uint16_t head;
	} sent[VHOST_RING_MAX]; // not given back yet
	uint32_t first, nb_sent;
	uint64_t rx, interrupts, runs; // frames and interrupts of the kernel, times that it was run
	uint64_t last_ns, last_rx; // when it was served last
	uint32_t stuck; // times that it was at this time without taking a frame that waits
	uint32_t first_in, nb_in, nb_out;
	struct card_frame in[CARD_IN], out[CARD_OUT]; // `in` goes round, `out` begins at 0
};

// When it interrupts next, for frames that have left it or arrived; and for what has left it, which
// is all that the guest itself causes. NEVER_NS: not by itself.
uint64_t card_interrupt_ns(const struct card *c);
uint64_t card_completion_ns(const struct card *c);
// Takes and gives what is due at this time; the queues whose interrupts the driver wants, a bit
// each. A guest that does not take its frames is stuck.
uint32_t card_serve(struct card *c, struct vhost *v, uint64_t now_ns);
bool card_is_stuck(const struct card *c);
// Takes what the guest transmits now. False: `out` is full, and there is more.
bool card_transmit(struct card *c, struct vhost *v, uint64_t now_ns);
// A message to weir-sim (message.h), which takes no time.
bool card_is_message(const struct card_frame *f);
