// SPDX-License-Identifier: BSD-3-Clause
// A live run of the switch: DPDK up, ports open, the control thread beside the lcores, the summary.
#pragma once
#include "common/live/dpdk.h"

#include "common/live/probe.h"
#include "common/run/run.h"
#include "switch/live/lcore.h"

#include <pthread.h>

struct switch_app {
	struct run run;
	const struct run_options *opt;
	struct plan plan;
	struct paths paths;
	struct schedule schedule;
	struct switch_live live[LIVE_LCORES_MAX]; // plan.process.lcores of them
	struct eal eal;
	uint64_t port_buffers, buffers; // of the pool: the ports' own, and all
	uint64_t small; // frames that wait outside it
	double wall_s;
	struct watch watch[LIVE_LCORES_MAX];
	struct watch_probe probe[LIVE_LCORES_MAX]; // the control thread's
	// Control thread.
	pthread_t control;
	bool control_running;
	cpu_set_t cpus; // where the process may run; the lcores' are left to them
	_Atomic bool control_stop;
};

// Everything up to the first packet. On error switch_app_close cleans up.
int switch_app_open(struct switch_app *app, struct err *err);
// Runs to the end and closes the telemetry; the first I/O error of its files.
int switch_app_run(struct switch_app *app, struct err *err);
// summary-switch.json; false if the ledger does not balance.
// Was most of what came thrown away before any path? Then a sentence in `text`, with `before` before it.
bool switch_app_thrown(
	const struct switch_app *app, const char *before, char text[WATCH_SENTENCE_SIZE]);
bool switch_app_summary(struct switch_app *app, FILE *out, const char *verdict);
void switch_app_close(struct switch_app *app);

// Asks for something and waits until it is answered (within 5 s each): all lcores one after the other, or
// the one that has the path. Any other thread; `use` reads the answer while the mailbox is still held
// (may be NULL).
struct switch_question {
	enum switch_request request;
	struct path *path;
	uint32_t first;
	const char *key, *value;
};
int switch_ask(struct switch_live *all, const struct switch_question *q,
	void (*use)(const struct switch_mailbox *box, void *ctx), void *ctx, struct err *err);

// Registers the /weir/ commands with rte_telemetry (control.c).
int switch_control(struct switch_app *app, struct err *err);
