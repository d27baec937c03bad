// SPDX-License-Identifier: BSD-3-Clause
// Starts DPDK's environment as the config says: with its lcores, physical devices only if named,
// hugepages if enough are free and ordinary memory otherwise. A failure is reported in one sentence
// for the user.
//
// DPDK's files and the ports' sockets are accessible to the user only: its runtime folder has mode
// 0700, and no other user may connect. The run folder has the modes that the user's umask gives, as
// that of a simulation has: a run as root is read by others.
//
// DPDK prints nothing to the terminal: until the run folder exists its log is an unnamed file, from
// which the reason of a failure is read; then it is <run folder>/<program>-dpdk.log.
#pragma once
#include "common/live/base/dpdk.h"

#include "common/base/err.h"
#include "common/config/live.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct eal_args {
	const char *program;
	const struct live_process *process;
	const struct live_dev *dev[LIVE_PORTS_MAX];
	uint32_t devs;
	uint64_t pool_bytes; // in hugepages if enough are free; EAL_OWN_BYTES are added
	uint64_t other_bytes; // ordinary memory that the program allocates later
	// For the error when memory is short: the consumer, in the plural ("5000 flows"), and the
	// items that add up to it ("forward 73k packets, ...").
	char what[32], sum[256];
	int user_argc; // after "--"
	char **user_argv;
};

struct eal {
	bool started;
	bool hugepages;
	mode_t umask; // the user's, until eal_usual_modes
	int log_fd; // unnamed log file; -1: none
	int lock_fd; // the file prefix's lock; -1: none
	uint64_t memory_bytes;
	char args[1024]; // as given to the EAL, for the summary
};
#define EAL_NONE                                                                                   \
	{ .log_fd = -1, .lock_fd = -1 } // before eal_start

int eal_start(struct eal *e, const struct eal_args *args, struct err *err);
// Once the ports are open: files get the modes of the user's umask again.
void eal_usual_modes(const struct eal *e);
// Ends DPDK and removes the prefix's folder in DPDK's runtime folder.
void eal_stop(struct eal *e);
// Runs a loop on n lcores, each with its own argument, the first of them on the calling thread.
// Returns when all have ended.
void eal_run_lcores(int (*loop)(void *), void *const *arg, uint32_t n);
// From now on DPDK logs to the file at `path`, into which its log so far is copied.
int eal_log_to(struct eal *e, const char *path, struct err *err);
// Between these two calls stderr is redirected to the log, because libraries such as libxdp print
// there.
int eal_hush(const struct eal *e);
void eal_unhush(int saved);
// The present position in the log; and the cause of a failure, from the messages after that
// position, without "EAL: ".
long eal_log_mark(const struct eal *e);
void eal_log_reason(const struct eal *e, long mark, char *text, size_t size);
// The cause of a PCI device's failure, as the EAL brought it up. False: the log has none.
bool eal_log_device(const struct eal *e, const char *device, char *text, size_t size);
