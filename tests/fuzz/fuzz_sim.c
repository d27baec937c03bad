// SPDX-License-Identifier: BSD-3-Clause
// Any text as an experiment: what loads is set up, runs for some milliseconds of virtual time and
// keeps its ledger; what does not says so in one line. fuzz_sim.dict has the names of keys and
// plug-ins.
#include "fuzz.h"

#include "common/base/units.h"
#include "tools/sim/run/sim.h"

#include <sys/mman.h>
#include <unistd.h>

#define RUN_NS (3 * NS_PER_MS)
#define FLOWS_MAX 64 // of one group: a million take a second to set up
#define DELAY_NS_MIN NS_PER_US // shorter lookahead costs time, see sim.h

static void need_sentence(const struct err *err) {
	NEED(err->msg[0] != '\0' && strchr(err->msg, '\n') == NULL);
}

// Is it quick to run? A scalar below `n` that is out of bounds says that it is not.
static bool small(struct config_node *n, const char *key) {
	double value;

	if (config_text(n) != NULL && key != NULL) {
		if (strcmp(key, "count") == 0 && unit_parse(config_text(n), UNIT_NONE, &value) == 0)
			return value <= FLOWS_MAX;
		if (strcmp(key, "interval") == 0
			&& unit_parse(config_text(n), UNIT_TIME_NS, &value) == 0)
			return value >= 1e5;
		if (strstr(key, "delay") != NULL
			&& unit_parse(config_text(n), UNIT_TIME_NS, &value) == 0)
			return value >= DELAY_NS_MIN || (value <= 0 && strcmp(key, "delay") == 0);
	}
	for (size_t i = 0; i < config_count(n); i++) {
		if (!small(config_at(n, i), config_kind(n) == CONFIG_MAP ? config_key(n, i) : key))
			return false;
	}
	return true;
}

static void run(struct run *run) {
	static struct sim sim;
	struct err err = {""};
	FILE *out = fopen("/dev/null", "w");

	NEED(out != NULL);
	run->tel.virtual_time = true;
	run->tel.seed = run->seed;
	run->tel.level = (uint32_t)run->telemetry_level;
	run->tel.sample_threshold = UINT64_MAX;
	if (sim_init(&sim, run, &err) < 0) {
		need_sentence(&err);
	} else {
		NEED(sim_open(&sim, NULL, &err) == 0);
		sim_run(&sim, time_min(run->duration_ns, RUN_NS));
		NEED(sim_close(&sim, &err) == 0);
		NEED(sim_summary(&sim, out, &(struct facts){0})); // the ledger is balanced
		sim_fini(&sim);
	}
	fclose(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	static const struct run_options options = {
		.program = "weir-sim", .config_path = "/proc/self/fd/100"};
	struct err err = {""};
	struct run r;
	struct config *config = config_parse("fuzz", (const char *)data, size, &err);
	bool runs = config != NULL && small(config_root(config), NULL);
	int fd = runs ? memfd_create("fuzz.yaml", 0) : -1;

	config_free(config);
	if (!runs)
		return 0;
	NEED(fd >= 0 && dup2(fd, 100) == 100 && write(100, data, size) == (ssize_t)size);
	close(fd);
	if (run_load(&r, &options, &err) == 0)
		run(&r);
	else
		need_sentence(&err);
	run_free(&r);
	close(100);
	return 0;
}
