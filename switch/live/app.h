// SPDX-License-Identifier: BSD-3-Clause
// The switch as a live program (common/live/app/app.h).
#pragma once
#include "common/live/base/dpdk.h"

#include "common/live/app/app.h"
#include "switch/live/lcore.h"
#include "switch/live/source.h"
#include "switch/path/capture.h"

#include <stdatomic.h>

struct switch_app {
	struct live_app live;
	struct switch_config config;
	struct paths paths;
	struct schedule schedule;
	struct switch_source source[PATHS_MAX]; // of path i; without arrivals.path: it has none
	struct switch_lcore lcore[LIVE_LCORES_MAX]; // live.lcores of them
	uint64_t port_buffers, buffers; // buffers of the pool: those that ports keep, and all
	uint64_t small; // frames that may wait outside the pool
	_Atomic(struct capture *) capture; // NULL: none
	// The first link's, at the progress line before.
	double progress_bits, progress_capacity;
};

static inline struct switch_app *switch_app(struct live_app *live) {
	return (struct switch_app *)(void *)live;
}

// The steps of struct live_program: sizes, pool and ports, fabrics, clean-up.
void switch_size(struct live_app *live, struct eal_args *args);
int switch_open(struct live_app *live, struct err *err);
int switch_begin(struct live_app *live, struct err *err);
void switch_close(struct live_app *live);

// capture.c. Called last before the lcores run; called by the control thread.
int switch_capture_open(struct live_app *live, struct err *err);
void switch_capture_drain(struct live_app *live);

// Whether most received packets were dropped before any path, or will be by their receivers for
// want of a checksum; then a sentence is written into `text`, after `before`.
bool switch_thrown(const struct switch_app *app, struct fact *fault);
bool switch_summary(struct live_app *live, struct json *j);

extern const struct control_command switch_commands[]; // control.c
// The sum over all lcores, in the first lcore's mailbox; valid between control_begin and
// control_end. NULL: err has the reason.
const struct switch_snapshot *switch_snapshot(struct switch_app *app, struct err *err);
