// SPDX-License-Identifier: BSD-3-Clause
// The sender as a live program (common/live/app/app.h).
#pragma once
#include "common/live/base/dpdk.h"

#include "common/live/app/app.h"
#include "sender/live/lcore.h"

struct sender_app {
	struct live_app live;
	struct groups groups;
	struct sender_config config;
	struct network_empty empty[GROUPS_MAX];
	struct sender_lcore lcore[LIVE_LCORES_MAX]; // live.lcores of them
	uint64_t rx_buffers, tx_buffers;
	_Atomic(struct pcap_writer *) capture; // NULL: none
};

static inline struct sender_app *sender_app(struct live_app *live) {
	return (struct sender_app *)(void *)live;
}

// The steps of struct live_program: pools and ports; ARP resolution of the next hop; hosts;
// clean-up.
void sender_size(struct live_app *live, struct eal_args *args);
int sender_open(struct live_app *live, struct err *err);
int sender_connect(struct live_app *live, struct err *err);
int sender_begin(struct live_app *live, struct err *err);
void sender_close(struct live_app *live);

// capture.c: opened before the lcores run; drained by the control thread; NULL is fine in all.
int sender_capture_open(struct sender_app *app, struct err *err);
void sender_capture_drain(struct live_app *live);
void sender_capture_free(struct sender_app *app);

bool sender_summary(struct live_app *live, struct json *j);

extern const struct control_command sender_commands[]; // control.c

// The sum of a published counter over all lcores.
static inline uint64_t sender_shown(const struct sender_app *app, enum sender_shown which) {
	uint64_t sum = 0;

	for (uint32_t k = 0; k < app->live.lcores; k++)
		sum += atomic_load_explicit(&app->lcore[k].shown[which], memory_order_relaxed);
	return sum;
}
