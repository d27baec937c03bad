// SPDX-License-Identifier: BSD-3-Clause
// The switch as a live program (common/live/app.h).
#pragma once
#include "common/live/dpdk.h"

#include "common/live/app.h"
#include "switch/live/lcore.h"

struct switch_app {
	struct live_app live;
	struct plan plan;
	struct paths paths;
	struct schedule schedule;
	struct switch_lcore lcore[LIVE_LCORES_MAX]; // live.lcores of them
	uint64_t port_buffers, buffers; // of the pool: the ports' own, and all
	uint64_t small; // frames that wait outside it
	// Of the first link, at the progress line before and since.
	double progress_bits, progress_capacity, progress_utilisation;
};

static inline struct switch_app *switch_app(struct live_app *live) {
	return (struct switch_app *)(void *)live;
}

// DPDK, pool, ports and fabrics, and their end.
int switch_size(struct live_app *live, struct eal_args *args, struct err *err);
int switch_open(struct live_app *live, struct err *err);
void switch_close(struct live_app *live);

// Was most of what came thrown away before any path? Then a sentence in `text`, with `before` before it.
bool switch_thrown(
	const struct switch_app *app, const char *before, char text[WATCH_SENTENCE_SIZE]);
bool switch_summary(struct live_app *live, struct json *j);

// Asks for something and waits until it is answered (within 5 s each): all lcores one after the other, or
// the one that has the path. Any other thread; `use` reads the answer while the mailbox is still held
// (may be NULL).
struct switch_question {
	enum switch_request request;
	struct path *path;
	uint32_t first;
	const char *key, *value;
};
int switch_ask(struct switch_app *app, const struct switch_question *q,
	void (*use)(const struct switch_mailbox *box, void *ctx), void *ctx, struct err *err);

// Registers the /weir/ commands with rte_telemetry (control.c).
int switch_control(struct switch_app *app, struct err *err);
