// SPDX-License-Identifier: BSD-3-Clause
// What weir-sim, weir-switch and weir-sender share: the command line, the run's own parameters and
// the run folder.
//
// A main reads like this:
//
//	run_options(&opt, argc, argv, "weir-sim")   usage errors, --help, --version
//	run_load(&run, &opt, &err)                  config file, overrides, seed/duration/telemetry
//	... its own sections with config_params ...
//	config_unused(run.config)
//	if (opt.check) / (opt.print_config) / (opt.list) ...
//	run_create(&run, &opt, &err)                folder, config.yaml, manifest.json
//	... the experiment ...
//	run_end(&run, ...)                          summary.json, manifest.json with the verdict
//
//	return run_exit(PROGRAM, rc, &err)
//
// Exit status: 0 good, 1 failed, 2 bad usage or config; ended by SIGINT 130, by SIGTERM 143, by
// SIGHUP 129.
#pragma once
#include "common/base/fact.h"
#include "common/base/ns.h"
#include "common/config/config.h"
#include "common/run/stop.h"
#include "common/telemetry/telemetry.h"

#include <stdint.h>

#define RUN_OVERRIDES_MAX 256

enum run_capture { RUN_CAPTURE_PORT, RUN_CAPTURE_PATHS };

struct run_list; // list.h

struct run_options {
	const char *program; // "weir-sim"
	const char *config_path; // "-": standard input
	const char *overrides[RUN_OVERRIDES_MAX]; // -o, in order; --seed and --duration among them
	int override_count;
	const char *out_dir; // --out, NULL: "runs/<config name>-<UTC time>-<pid>"
	const char *list; // --list [KIND|NAME]: "" all; NULL: not asked
	const char *pcap; // --pcap FILE
	const char *replay; // --replay FILE (weir-sim only): an arrivals.ring
	uint32_t threads; // --threads N (weir-sim only): at most so many; 0: the default
	bool check, print_config, json, progress, force; // --progress: JSON lines on standard error
	bool trials; // --trials (weir-sim only)
	char **eal_argv; // after "--" (live programs only)
	int eal_argc;
	int argc;
	char **argv;
	char made[2][96]; // what overrides made of --seed and --duration point to: do not copy
};

// The config's top level, except the sections other code reads.
struct run {
	struct config *config;
	uint64_t seed;
	uint64_t duration_ns; // at most: see stop
	uint64_t warmup_ns; // figures of the summary start here; must be < duration
	struct stop stop; // virtual time only; live a rule is refused
	char title[PARAM_TEXT_SIZE];
	uint64_t telemetry_level; // 0..3
	uint64_t telemetry_interval_ns;
	double telemetry_sample; // share of flows at level 2
	bool telemetry_arrivals; // record what a replay needs
	bool telemetry_segments; // record each segment at its sender; virtual time
	int capture_points; // what a capture shows
	uint64_t capture_rotate_bytes; // of a file of it; 0: no bound
	char dir[512]; // run folder, once created
	char suffix[16]; // of this program's files: "" of weir-sim, else "-switch", "-sender"
	struct tel_run tel; // filled by run_create (clock fields: the caller, live)
	// Of a branch (NULL: it is none): its changes, a map of the config, its name, its trunk's
	// run_id, and when it left that.
	struct config_node *changes;
	const char *branch;
	char trunk_id[sizeof(((struct tel_run *)NULL)->run_id)];
	uint64_t branch_ns;
	bool unsampled; // it was said that telemetry level 2 records none of the flows
	// Private to run.c, folder.c and manifest.c.
	const struct run_options *options;
	struct run_options branch_options;
	char started_utc[32];
	bool wrote_config; // not the other live program
	int lock_fd; // of the run folder, -1: none; held while the run may write there
	int reserve_fd; // space for the files that run_end writes, -1: none
};

// Top-level keys: seed, duration, warmup, stop, title, paths, flows, telemetry, schedule, branches,
// live.
// Parses the command line. 0; 1: done, exit 0 (--help, --version were printed); -EINVAL.
int run_options(
	struct run_options *opt, int argc, char **argv, const char *program, struct err *err);
// For a program with options of its own: applies an option that all programs have. 0: a flag;
// 1: it has used the value, which may be NULL; -ENOENT: it is none of them; -EINVAL.
int run_option(struct run_options *opt, const char *name, const char *value, struct err *err);
// Prints the lines of --help: of one option, and of all that the program shares with others.
void run_print_option(const char *option, const char *argument, const char *help);
void run_print_options(const char *program);
#define RUN_EXIT_STATUS                                                                            \
	"\nExit status: 0 good, 1 failed, 2 bad usage or input, 129 after SIGHUP,\n"               \
	"130 after SIGINT, 143 after SIGTERM.\n\n"
// Reads the config file, applies the overrides and reads the run's own keys. *opt must outlive *r;
// run_free also after an error.
int run_load(struct run *r, const struct run_options *opt, struct err *err);
// The same of a config that is text; `name` stands in errors for its file.
int run_read(struct run *r, const struct run_options *opt, const char *name, const char *text,
	size_t size, struct err *err);
// Says one sentence on standard error, as a warning of the program.
__attribute__((format(printf, 2, 3))) void run_warn(const struct run *r, const char *fmt, ...);
// Says on standard error that the run ends before `what`, which the config has at this node; NULL:
// it does not. No error: a run may be made shorter on the command line, and the config.yaml of its
// folder must run again.
void run_warn_unreached(const struct run *r, const struct config_node *node, const char *what);
// Says on standard error that telemetry level 2 records none of these flows of the config, if it is
// so.
void run_warn_unsampled(struct run *r, uint32_t flows);
// --print-config: the resolved config on standard output, with the absolute paths of the files that
// it names.
void run_print_config(const struct run *r);
// Makes the folder (and its parents), writes config.yaml (resolved) and manifest.json: program,
// version, commit, seed, config_hash, run_id, command line, versions, host (name, kernel, cpu,
// cores, memory), clock ("virtual" or "real"), started_utc. A folder that already holds a run of
// the same program is refused (-EEXIST), with --force that run's files go first; one that a program
// still writes to is refused in any case. Both live programs may write to one folder: each has its
// own manifest-switch.json, manifest-sender.json and the like, and its own lock; the first one
// writes config.yaml. Disk space for what run_end writes is reserved here.
int run_create(struct run *r, const struct run_options *opt, bool virtual_time, struct err *err);
// In place of run_create, for a run without a folder: its telemetry goes into the digest alone.
int run_unrecorded(struct run *r, struct err *err);
// In a process that was forked, a branch of the run: leaves the run's folder as it is, and makes
// another one in it, branches/NAME, like run_create.
int run_branch(struct run *r, const char *name, uint64_t at_ns, struct config_node *changes,
	struct err *err);
// Writes the section `branch` of a summary or a manifest, of a branch.
void run_branch_json(const struct run *r, struct json *j);
// Takes away what run_create made, but for what the other live program has in it: nothing began.
void run_discard(struct run *r);
// Writes a program's summary; false: its ledger does not balance.
typedef bool run_summary_fn(void *of, FILE *out, const struct facts *verdict);
// Begins a summary: `schema`, the version of what tools/src/weir/analysis/model.py describes, its
// kind there, the program and the title.
#define RUN_SUMMARY_SCHEMA 1
void run_summary_begin(const struct run *r, const char *kind, struct json *j, FILE *out);
// Writes the section `telemetry`: of each stream that has any, the records in its file and those
// lost. `tel`: one of each stream.
void run_summary_telemetry(uint64_t level, const struct tel *tel, struct json *j);
// The end of a run, good or bad: summary.json ("summary-switch.json" live; NULL: nothing was
// measured; with --json also to standard output), the ledger, and manifest.json again with
// ended_utc, exit and verdict, which was "running" until then: the first fact of *verdict, "ok" if
// there is none. Others may use the folder from then on.
// rc and err say what went wrong so far, which then leads the facts. Returns rc or the first thing
// that goes wrong here. Writes nothing when no folder was created.
int run_end(struct run *r, run_summary_fn *summary, void *of, struct facts *verdict, int rc,
	struct err *err);
void run_free(struct run *r);
// "1.0.0", and the commit it was built from or "unknown".
const char *run_version(void);
const char *run_commit(void);
// The exit status of a main that ends with rc: 2 for what the user can change in the command or the
// config (-EINVAL, -ERANGE, -EEXIST: the folder holds a run, and -ENOMEM: it needs more memory than
// there is), 1 for other errors; 128 and the signal's number after run_stop, if it did no harm (0,
// -EINTR).
int run_status(int rc);
// -errno and a sentence if something that was printed did not arrive.
int run_flush(struct err *err);
// The end of a main: flushes standard output, prints an error as "program: message" on standard
// error and returns run_status.
int run_exit(const char *program, int rc, struct err *err);
// The signal's number, after SIGINT, SIGTERM or SIGHUP once run_catch_signals was called; a second
// one of a kind kills. SIGHUP stays ignored where it was (nohup). From then on a write to a pipe
// without a reader, or beyond the limit of a file's size, fails and ends nothing. If the
// environment's WEIR_RUNNER is the process id of the parent, its end is a SIGTERM.
extern volatile int run_stop;
void run_catch_signals(void);
// Adds the fact that the run was interrupted, if it was.
void run_interrupted(struct facts *verdict);
// Of standard input, output and error those that were closed: without this the next file that is
// opened would get what is written to them. run_options calls it.
void run_keep_streams(void);
// What is printed between the two goes to standard error: code that is not ours may print, and
// standard output has the program's own answer. Both may be called more than once.
void run_stdout_aside(void);
void run_stdout_back(void);
