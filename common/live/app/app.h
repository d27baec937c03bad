// SPDX-License-Identifier: BSD-3-Clause
// The part of a live program's main that both programs share: command line, config, DPDK, run
// folder, clock, telemetry, a control thread beside the lcores, the summary.
//
// A program supplies a struct live_program, and its own state begins with a struct live_app:
//
//	int main(int argc, char **argv) {
//		static struct switch_app app;
//		return live_main(&app.live, &switch_program, argc, argv);
//	}
#pragma once
#include "common/live/base/dpdk.h"

#include "common/live/eal/eal.h"
#include "common/live/lcore/lcore.h"
#include "common/live/lcore/sampler.h"
#include "common/run/run.h"

#include <pthread.h>
#include <sched.h>

struct live_app;

// A telemetry stream that the program writes, at this telemetry level and above.
struct live_stream {
	enum tel_stream stream;
	uint32_t level; // LIVE_ARRIVALS: as `telemetry.arrivals` says
	const char *suffix; // of its file; keeps the two programs' files apart in a common folder
	enum {
		LIVE_RING_SIZE,
		LIVE_FEW_RECORDS,
		LIVE_FLOW_RECORDS
	} ring; // size: the config's, a few, or as live_app.flows needs
};
#define LIVE_ARRIVALS UINT32_MAX

struct live_program {
	const char *name; // "weir-switch"
	const char *self, *packets; // "switch", "packets": in sentences
	uint64_t pkt_ns; // upper bound of an iteration's time per packet
	bool ready_when_open; // it answers requests before the lcores run
	const struct lcore_ops *lcore;
	const struct live_stream *streams; // .level 0 ends them
	const struct control_command *commands; // of rte_telemetry; .name NULL ends them

	void (*list)(struct run_list *l); // --list: the plug-ins it has
	const char *kinds; // the kinds that --list can show: "aqm, stage, run"
	// Reads every section of the config that concerns the program and sets app->process.
	int (*configure)(struct live_app *app, struct err *err);
	// Fills in the devices and the memory that the program needs from the EAL.
	void (*size)(struct live_app *app, struct eal_args *args);
	// Makes pools, ports and the rings between lcores; fills in app->lcore and app->port.
	int (*open)(struct live_app *app, struct err *err);
	// Finds the peer, once the control thread runs. On an error the run folder is removed. May
	// be NULL.
	int (*connect)(struct live_app *app, struct err *err);
	// Called last before the lcores run; the streams are open. May be NULL.
	int (*begin)(struct live_app *app, struct err *err);
	void (*drain)(struct live_app
			*app); // control thread: empties the program's own rings; may be NULL
	void (*finish)(struct live_app *app); // once all lcores have ended; may be NULL
	// Control thread, every half second: writes the rest of a progress line, from ",
	// \"utilisation\"" on.
	void (*progress)(struct live_app *app, FILE *out);
	// The outcome of a run that began, unless well: facts in *verdict, or an error
	// and its sentence.
	int (*outcome)(struct live_app *app, struct facts *verdict, struct err *err);
	// Writes the program's part of the summary. False: the packet counts do not add up.
	bool (*summary)(struct live_app *app, struct json *j);
	// Called after the summary is written: keeps the program alive for its peer as long as
	// needed. May be NULL.
	void (*linger)(struct live_app *app);
	// Frees all memory of the program, also after a failed `open`; ports are closed, DPDK still
	// runs.
	void (*close)(struct live_app *app);
};

struct live_app {
	const struct live_program *program;
	// Bits of the program's streams that this run does not have (1 << enum tel_stream).
	uint32_t without;
	struct run_options opt;
	struct run run;
	const struct live_process *process; // points into the program's plan
	struct eal eal;
	struct port port[LIVE_PORTS_MAX]; // of all lcores
	uint32_t ports;
	struct lcore *lcore[LIVE_LCORES_MAX];
	uint32_t lcores;
	double wall_s;
	const char *waits_for; // what begins the run, in a sentence; NULL: nothing
	uint64_t flows; // per lcore, at most; a LIVE_FLOW_RECORDS ring holds four records of each
	// Used by the control thread only.
	struct watch watch[LIVE_LCORES_MAX];
	struct watch_sampler sampler[LIVE_LCORES_MAX];
	pthread_t control;
	bool control_running, ready;
	cpu_set_t cpus; // on which the control thread may run; empty: not known
	_Atomic bool control_stop;
	_Atomic bool recording; // the streams are open
};

int live_main(struct live_app *app, const struct live_program *program, int argc, char **argv);

// control_ask for one lcore; for all lcores, one after the other; control_free for one lcore.
int live_ask(struct live_app *app, uint32_t lcore, int request, uint32_t first, struct err *err);
int live_ask_all(struct live_app *app, int request, uint32_t first, struct err *err);
int live_free(const struct live_app *app, uint32_t lcore, struct err *err);

// The time at which the run began; if it never began, the time at which it ended.
uint64_t live_start_ns(const struct live_app *app);
uint64_t live_end_ns(const struct live_app *app);

// Parts of answers, from the counters that lcores publish (common/watch/watch.h), so that no lcore
// has to be asked. The first begins /weir/info; false: the lcores do not run. The others add a
// dictionary to `d` for an lcore in /weir/lcores and for a port in /weir/ports; NULL: no memory,
// nothing may be written into it.
bool live_control_info(struct live_app *app, struct rte_tel_data *d, struct err *err);
struct rte_tel_data *live_control_lcore(
	struct live_app *app, uint32_t lcore, struct rte_tel_data *d);
struct rte_tel_data *live_control_port(
	const struct port *port, uint64_t now_ns, struct rte_tel_data *d);
// /weir/stop.
bool live_control_stop(
	struct live_app *app, const char *params, struct rte_tel_data *d, struct err *err);

// Writes the summary (summary.c). `of` is the struct live_app.
bool live_summary(void *of, FILE *out, const struct facts *verdict);
// Parts of the summary that both programs write, each into an open JSON object or array:
// sentences about faults of ports and streams, and about `no_mbuf` packets for which there was no
// buffer;
void live_faults_json(const struct live_app *app, uint64_t no_mbuf, struct json *j);
// a port's name, device and MAC address, and its driver's counters;
void live_port_json(struct port *port, struct json *j);
// how late packets or paced segments left; the same of packets as `undisturbed`;
void live_late_json(const struct hist *late, struct json *j);
void live_pacing_json(const struct hist *late, struct json *j);
void live_undisturbed_json(const struct hist *late, struct json *j);
// the load of an lcore.
void live_lcore_json(const struct live_app *app, uint32_t lcore, struct json *j);
