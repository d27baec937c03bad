// SPDX-License-Identifier: BSD-3-Clause
// Starting DPDK's environment from what the config says: its lcores, no physical devices unless
// named, hugepages when enough are free and ordinary memory otherwise, and an error a user can read.
//
// What the process makes from then on is the user's own: folders are 0700 (the run's, DPDK's runtime
// folder), files in them 0600, and nobody else may connect to its sockets.
//
// Nothing DPDK prints reaches the terminal: until the run folder exists it goes to an unnamed
// file, from which the reason of a failure is taken; then to <run folder>/<program>-dpdk.log.
#pragma once
#include "common/live/dpdk.h"

#include "common/base/err.h"
#include "common/live/live.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct eal_args {
	const char *program;
	const struct live_process *process;
	const struct live_dev *dev[LIVE_PORTS_MAX];
	uint32_t devs;
	uint64_t memory_bytes; // what the pools need; the EAL's own is added
	int user_argc; // after "--"
	char **user_argv;
};

struct eal {
	bool started;
	bool hugepages;
	int log_fd; // unnamed log file, -1: none
	int lock_fd; // of the prefix, likewise
	uint64_t memory_bytes;
	char args[1024]; // as given to the EAL, for the summary
};
#define EAL_NONE                                                                                   \
	{ .log_fd = -1, .lock_fd = -1 } // before eal_start

int eal_start(struct eal *e, const struct eal_args *args, struct err *err);
// And takes away the prefix's folder in DPDK's runtime folder.
void eal_stop(struct eal *e);
// Runs a loop on n lcores at once, each with its argument; the first one's is the calling thread. Returns
// when all have ended.
void eal_run_lcores(int (*loop)(void *), void *const *arg, uint32_t n);
// From now on DPDK logs to this file, which begins with what it logged so far.
int eal_log_to(struct eal *e, const char *path, struct err *err);
// Between these two, what libraries print to stderr goes to the log as well (libxdp does).
int eal_hush(const struct eal *e);
void eal_unhush(int saved);
// Position in the log, and the last message after it without its "EAL: ": why a call failed.
long eal_log_mark(const struct eal *e);
void eal_log_reason(const struct eal *e, long mark, char *text, size_t size);
