// SPDX-License-Identifier: BSD-3-Clause
// The TCP stacks of a group: Weir's own, or those of unmodified Linux kernels (virtual time only,
// tools/sim/guest/).
//
//	flows:
//	  - {count: 2, stack: {linux: {cc: cubic, qdisc: fq, sysctl: {tcp_ecn: 1}}}}
//	  - {count: 2, cc: copa, peer: {linux: {}}}
//	  - {count: 2, stack: {linux: {run: "iperf3 -c {peer}"}}, peer: {linux: {run: "iperf3 -s"}}}
//	  - {count: 1, stack: {quic: {ngtcp2: {cc: bbr}}}}
//
// `stack` is the sending side, `peer` the receiving one; without `peer` it is as `stack`.
#pragma once
#include "common/base/param.h"
#include "common/config/config.h"

#include <stdbool.h>
#include <stdint.h>

struct run_list;

#define STACK_SYSCTLS 16
#define STACK_HOSTS_MAX 64 // guests of one side of a group
#define STACK_SYSCTL_SIZE 64
#define STACK_RUN_SIZE 512
#define STACK_KERNEL_SIZE 32
#define STACK_MODULES 8 // whose parameters are set
#define STACK_PARAMS_SIZE 256
#define STACK_CURRENT "current" // the kernel unless one is named: Debian's

enum stack_closing { STACK_FIN, STACK_RST };

struct stack {
	bool guest; // a Linux kernel's; else ours
	char kernel[PARAM_TEXT_SIZE]; // its name (tools/weir guests list)
	char cc[PARAM_TEXT_SIZE], qdisc[PARAM_TEXT_SIZE];
	uint64_t hosts; // guests over which the flows are spread
	uint64_t memory_bytes; // of each; 0: by what its connections can fill
	uint64_t card_bps; // rate at which its card sends
	uint64_t coalesce_ns; // least time between two interrupts of its card
	uint64_t pause_ns, resume_ns; // between these the receiving program does not read; 0: never
	// When its program closes all connections; 0: never. Ours: a receiver's FIN.
	uint64_t close_ns;
	uint64_t reset_ns; // ours: when it resets all connections; 0: never
	int closing; // enum stack_closing
	struct {
		char name[STACK_SYSCTL_SIZE], value[STACK_SYSCTL_SIZE]; // "net/ipv4/tcp_ecn"
	} sysctl[STACK_SYSCTLS];
	uint32_t sysctls;
	struct {
		char name[STACK_SYSCTL_SIZE];
		char params[STACK_PARAMS_SIZE]; // "beta=600 hystart=0"
	} module[STACK_MODULES];
	uint32_t modules;
	char run[STACK_RUN_SIZE]; // a program of the host in place of ours, for the shell; "": none
	// A QUIC stack by name (quic.c), whose program is in the cache; NULL: none.
	const char *quic;
	const char *quic_control;
	int quic_cc; // its place among the stack's controls
	uint64_t quic_bytes, quic_transfers;
	bool quic_qlog;
};

// Reads the key `what` ("stack", "peer") of a group; without it *st stays as it is.
int stack_read(struct stack *st, struct config_node *group, const char *what, struct err *err);
// Whether the sending side goes with the group's other keys: its stagger and jitter, the name of
// its source.
int stack_fits(const struct stack *stack, uint64_t count, uint64_t spread_ns, const char *source,
	struct config_node *group, struct err *err);
// The stacks, for --list.
void stacks_list(struct run_list *l);

// quic.c: the stacks of `quic`, for --list; one of them, as read from the config; its command.
void quic_list(struct run_list *l);
int quic_read(struct stack *st, struct config_node *at, struct err *err);
void quic_run(struct stack *st, bool sends, uint64_t connections);
