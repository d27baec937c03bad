// SPDX-License-Identifier: BSD-3-Clause
// The life of a live program, the same for both: command line, config, DPDK, run folder, clock, telemetry,
// a control thread beside the lcores, the summary.
//
// A program supplies one struct live_program and has a struct live_app first in a struct of its own:
//
//	int main(int argc, char **argv) {
//		static struct switch_app app;
//		return live_main(&app.live, &switch_program, argc, argv);
//	}
#pragma once
#include "common/live/dpdk.h"

#include "common/live/eal.h"
#include "common/live/lcore.h"
#include "common/live/probe.h"
#include "common/run/run.h"

#include <pthread.h>

struct live_app;

// A stream that the program writes, from this telemetry level on.
struct live_stream {
	enum tel_stream stream;
	uint32_t level; // LIVE_ARRIVALS: as `telemetry.arrivals` says
	const char *suffix; // of its file, which the other program may write too
};
#define LIVE_ARRIVALS UINT32_MAX

struct live_program {
	const char *name; // "weir-switch"
	const char *self, *packets; // "switch", "packets": in sentences
	uint64_t pkt_ns; // more than an iteration takes per packet
	bool ready_when_open; // it can be talked to before the lcores run
	const struct lcore_ops *lcore;
	const struct live_stream *streams; // .level 0 ends them

	// --list: what it has of `kind`; false: there is no such kind.
	bool (*list)(struct run_list *l, const char *kind);
	const char *kinds; // "aqm, stage, run"
	// Reads every section of the config that concerns it. Then `process` is known.
	int (*configure)(struct live_app *app, struct err *err);
	// How much memory its pools need and its devices, for the EAL.
	int (*size)(struct live_app *app, struct eal_args *args, struct err *err);
	// Pools, ports, what lcores have of each other; app->lcore and app->port are filled in.
	int (*open)(struct live_app *app, struct err *err);
	// Records in a stream's ring, of an lcore.
	uint64_t (*ring_records)(
		const struct live_app *app, uint32_t lcore, enum tel_stream stream);
	// Finds the other side, once the control thread runs; on an error no run folder stays (may be NULL).
	int (*connect)(struct live_app *app, struct err *err);
	// The last thing before the lcores run; the streams are open (may be NULL).
	int (*begin)(struct live_app *app, struct err *err);
	void (*finish)(struct live_app *app); // when all have ended (may be NULL)
	// Control thread: the rest of a progress line, from ", \"utilisation\"" on; every half second.
	void (*progress)(struct live_app *app, FILE *out);
	// Control thread: ten seconds have gone by.
	void (*waits)(struct live_app *app);
	// The outcome of a run that began: "ok", a sentence in `text`, or an error and its sentence.
	int (*outcome)(struct live_app *app, const char **verdict, char text[WATCH_SENTENCE_SIZE],
		struct err *err);
	// Its part of the summary; false: the ledger does not balance.
	bool (*summary)(struct live_app *app, struct json *j);
	// After the summary is written, for other programs' sake (may be NULL).
	void (*linger)(struct live_app *app);
	void (*close)(struct live_app *app); // after ports are closed, before DPDK ends
	void (*unconfigure)(struct live_app *app);
};

struct live_app {
	const struct live_program *program;
	struct run_options opt;
	struct run run;
	const struct live_process *process; // of the program's plan
	struct eal eal;
	struct port port[LIVE_PORTS_MAX]; // of all lcores
	uint32_t ports;
	struct lcore *lcore[LIVE_LCORES_MAX];
	uint32_t lcores;
	double wall_s;
	// The control thread's.
	struct watch watch[LIVE_LCORES_MAX];
	struct watch_probe probe[LIVE_LCORES_MAX];
	pthread_t control;
	bool control_running, ready;
	cpu_set_t cpus; // where the process may run; the lcores' are left to them
	_Atomic bool control_stop;
	_Atomic bool recording; // the streams are open
};

int live_main(struct live_app *app, const struct live_program *program, int argc, char **argv);

// Asks an lcore and waits for its answer, within 5 s. Between control_begin and control_end.
int live_ask(struct live_app *app, uint32_t lcore, int request, struct err *err);
// The same of all of them, one after the other.
int live_ask_all(struct live_app *app, int request, struct err *err);

// The moment when the first lcore, or the last one, was at.
uint64_t live_start_ns(const struct live_app *app); // the end of a run that never began
uint64_t live_end_ns(const struct live_app *app);

// What /weir/info and an lcore of /weir/lcores begin with (NULL: no memory), and /weir/stop.
void live_control_info(struct live_app *app, struct rte_tel_data *d);
struct rte_tel_data *live_control_lcore(struct live_app *app, uint32_t lcore);
int live_control_stop(struct live_app *app, struct rte_tel_data *d);

// Parts of a summary: faults of ports and streams; an lcore's load.
void live_faults_json(struct live_app *app, struct json *j);
void live_lcore_json(const struct live_app *app, uint32_t lcore, struct json *j);
