// SPDX-License-Identifier: BSD-3-Clause
// A live run of the sender: DPDK up, ports open, the control thread beside the lcore, the summary.
#pragma once
#include "common/live/dpdk.h"

#include "common/live/probe.h"
#include "common/run/run.h"
#include "sender/live/lcore.h"

#include <pthread.h>

struct sender_app {
	struct run run;
	const struct run_options *opt;
	struct groups groups;
	struct live_plan plan;
	struct sender_live live[LIVE_LCORES_MAX];
	uint32_t lcores;
	struct port port[LIVE_ROLES]; // of all lcores
	struct eal eal;
	uint64_t rx_buffers, tx_buffers;
	double wall_s;
	struct watch watch[LIVE_LCORES_MAX];
	struct watch_probe probe[LIVE_LCORES_MAX]; // the control thread's
	bool began; // the experiment ran
	// Control thread.
	pthread_t control;
	cpu_set_t cpus; // where the process may run; the lcore's is left to the lcore
	_Atomic bool control_stop;
	bool ready; // and said so
};

// Everything up to the first SYN: the run folder is there, ports are open, the peer has answered ARP.
int sender_app_open(struct sender_app *app, struct err *err);
// Runs to the end and closes the telemetry; the first I/O error of its files.
int sender_app_run(struct sender_app *app, struct err *err);
// summary-sender.json; false if the ledger does not balance.
bool sender_app_summary(struct sender_app *app, FILE *out, const char *verdict);
void sender_app_close(struct sender_app *app);

// Registers the /weir/ commands with rte_telemetry (control.c).
int sender_control(struct sender_app *app, struct err *err);
