// SPDX-License-Identifier: BSD-3-Clause
// Shared by the files of the program inside a guest.
#pragma once
#include "common/base/ns.h"
#include "tools/sim/guest/message.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern const struct guest_config *config;
extern int control; // the packet socket for messages; -1: not yet open

// Linux: include/net/tcp_states.h.
enum {
	ESTABLISHED = 1,
	FIN_WAIT1 = 4,
	FIN_WAIT2 = 5,
	CLOSE_WAIT = 8,
	LAST_ACK = 9,
	CLOSING = 11,
};

// The message under way: its frame begins at `eth`; the two bytes before it align what follows.
struct outgoing {
	uint8_t pad[2], eth[MESSAGE_ETH];
	struct message head;
	struct sample sample[SAMPLES_MAX];
};
extern struct outgoing out;

uint64_t clock_ns(void);
// The first end of an interval after `t`, in the run's time, as sim.c has them: a run measures from
// one to another.
uint64_t end_after_ns(uint64_t t);
// Sends `out` with the head and `bytes` of what follows it.
void send_message(uint32_t kind, uint32_t count, size_t bytes);
// Samples in the message under way: the next one; whether that was the last for which there is
// room; and off it goes.
struct sample *new_sample(void);
bool new_sample_full(void);
void send_samples(void);
// What TCP_INFO says of a connection.
struct tcp_info;
bool tcp_info_of(int fd, struct tcp_info *t);
void sample_of(struct sample *s, const struct tcp_info *t);
// Says what is wrong, and stops the guest.
__attribute__((noreturn, format(printf, 1, 2))) void fail(const char *format, ...);
void mount_proc(void);
void write_file(const char *path, const char *text);
// The file /config.
void *read_config(void);
// Settings, interface and message socket, as the config has them.
void set_up(void);
// Listens at the config's port; accept4 does not wait.
int open_listener(void);

// init_address.c: addresses of the config's IP version. `ip` is in network order, 0: any.
struct address {
	union {
		struct sockaddr any;
		struct sockaddr_in four;
		struct sockaddr_in6 six;
	};
	socklen_t size;
};
int address_family(void);
struct address address_of(uint32_t ip, uint16_t port);
// Gives a socket's packets the config's DSCP; < 0: errno says why not. ECN is the kernel's.
int address_set_tos(int fd);
// Of the interface: before it goes up, and after.
void ipv6_settings(const char *device);
void ipv6_set_interface(const char *device);

// A change of a file descriptor of the program (init_program.c) is to be served by program_serve.
void watch_program(int fd);

// init_memory.c: whether the kernel was short of memory.
void memory_report(void);

// init_modules.c: the kernel's modules.
void modules_load(void); // those of the config, with their parameters
// Loads modules of these names, prints the kernel's congestion controls and ends: the kernel has
// just been built.
__attribute__((noreturn)) void modules_ask(int n, char *const *names);

// init_program.c: a program of the host.
void program_prepare(void);
int program_deaths(void); // a file descriptor that can be read when processes have ended
uint64_t program_next_ns(void);
void program_due(uint64_t now_ns);
void program_serve(void);

// init_readers.c: threads that read.
struct reader_end {
	uint32_t flow; // as readers_start was told
	int error; // errno; 0: the peer's FIN
	uint64_t bytes; // that the connection has received
};
int readers_open(void); // a file descriptor that can be read when a connection has ended
bool reader_start(uint32_t flow, int fd); // false: this connection has none
struct reader_end reader_ended(void); // the next one
uint64_t reader_bytes(int fd); // that a connection's reader has read so far

// init_sockets.c: its connections.
int sockets_open(void); // a file descriptor that can be read when connections have ended
void sockets_sample(void);
void sockets_ended(void);
