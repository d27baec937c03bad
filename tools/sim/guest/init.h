// SPDX-License-Identifier: BSD-3-Clause
// Shared by the files of the program inside a guest.
#pragma once
#include "tools/sim/guest/message.h"

#include <stddef.h>
#include <stdint.h>

#define NS_PER_S UINT64_C(1000000000)

extern const struct guest_plan *plan;
extern int control; // the packet socket for messages; -1: not yet open

// The message under way: its frame begins at `eth`; the two bytes before it align what follows.
struct outgoing {
	uint8_t pad[2], eth[MESSAGE_ETH];
	struct message head;
	struct sample sample[SAMPLES_MAX];
};
extern struct outgoing out;

uint64_t clock_ns(void);
// Sends `out` with the head and `bytes` of what follows it.
void send_message(uint32_t kind, uint32_t count, size_t bytes);
// Says what is wrong, and stops the guest.
__attribute__((noreturn, format(printf, 1, 2))) void fail(const char *format, ...);
// The file /plan.
void *read_plan(void);
// Settings, interface and message socket, as the plan has them.
void set_up(void);
