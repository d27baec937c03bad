// SPDX-License-Identifier: BSD-3-Clause
// Shared by the files of the program inside a guest.
#pragma once
#include "tools/sim/guest/message.h"

#include <stdbool.h>
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
// Samples in the message under way: the next one; whether that was the last for which there is room; and off it goes.
struct sample *new_sample(void);
bool new_sample_full(void);
void send_samples(void);
// What TCP_INFO says of a connection.
struct tcp_info;
void sample_of(struct sample *s, const struct tcp_info *t);
// Says what is wrong, and stops the guest.
__attribute__((noreturn, format(printf, 1, 2))) void fail(const char *format, ...);
// The file /plan.
void *read_plan(void);
// Settings, interface and message socket, as the plan has them.
void set_up(void);
// A change of a file descriptor of the program (init_program.c) is to be served by program_serve.
void watch_program(int fd);

// init_program.c: a program of the host.
void program_prepare(void);
int program_deaths(void); // a file descriptor that can be read when processes have ended
uint64_t program_next_ns(void);
void program_due(uint64_t now_ns);
void program_serve(void);

// init_sockets.c: its connections.
int sockets_open(void); // a file descriptor that can be read when connections have ended
void sockets_sample(void);
void sockets_ended(void);
