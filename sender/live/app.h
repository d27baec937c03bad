// SPDX-License-Identifier: BSD-3-Clause
// The sender as a live program (common/live/app.h).
#pragma once
#include "common/live/dpdk.h"

#include "common/live/app.h"
#include "sender/live/lcore.h"

struct sender_app {
	struct live_app live;
	struct groups groups;
	struct live_plan plan;
	struct sender_lcore lcore[LIVE_LCORES_MAX]; // live.lcores of them
	uint64_t rx_buffers, tx_buffers;
};

static inline struct sender_app *sender_app(struct live_app *live) {
	return (struct sender_app *)(void *)live;
}

// Pools and ports; then the peer has answered ARP; then the hosts are there; and their end.
int sender_size(struct live_app *live, struct eal_args *args, struct err *err);
int sender_open(struct live_app *live, struct err *err);
int sender_connect(struct live_app *live, struct err *err);
int sender_begin(struct live_app *live, struct err *err);
void sender_close(struct live_app *live);
uint64_t sender_ring_records(const struct live_app *live, uint32_t lcore, enum tel_stream stream);

bool sender_summary(struct live_app *live, struct json *j);

// Registers the /weir/ commands with rte_telemetry (control.c).
int sender_control(struct sender_app *app, struct err *err);
