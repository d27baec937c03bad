// SPDX-License-Identifier: BSD-3-Clause
#include "common/run/run_manifest.h"

#include "common/run/run_folder.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <xxhash.h>
#include <yaml.h>

#ifndef DPDK_VERSION
#define DPDK_VERSION "none"
#endif

static void cpu_name(char *text, size_t size) {
	char line[256];
	FILE *in = fopen("/proc/cpuinfo", "re");

	snprintf(text, size, "unknown");
	if (in == NULL)
		return;
	while (fgets(line, sizeof(line), in) != NULL) {
		char *colon = strstr(line, ": ");
		if (strncmp(line, "model name", 10) == 0 && colon != NULL) {
			colon[strcspn(colon, "\n")] = '\0';
			snprintf(text, size, "%s", colon + 2);
			break;
		}
	}
	fclose(in);
}

static void write_host(struct json *j) {
	char cpu[128], kernel[sizeof(struct utsname)];
	struct utsname u;

	cpu_name(cpu, sizeof(cpu));
	if (uname(&u) < 0)
		memset(&u, 0, sizeof(u));
	snprintf(kernel, sizeof(kernel), "%s %s", u.sysname, u.release);
	json_object(j, "host");
	json_text(j, "name", u.nodename);
	json_text(j, "kernel", kernel);
	json_text(j, "cpu", cpu);
	json_u64(j, "cores", (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
	json_u64(j, "memory_bytes",
		(uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE));
	json_close(j, '}');
}

// What it was built with; of the weir command that started it, what that runs on.
static void write_versions(struct json *j) {
	const char *tools = getenv("WEIR_VERSIONS"); // "python 3.11.2, numpy 2.4.6"

	json_object(j, "versions");
	json_text(j, "compiler", __VERSION__);
	json_text(j, "libyaml", yaml_get_version_string());
	json_u64(j, "xxhash", XXH_versionNumber());
	json_text(j, "dpdk", DPDK_VERSION);
	if (tools != NULL)
		json_text(j, "tools", tools);
	json_close(j, '}');
}

static void write_run(struct json *j, const struct run *r) {
	const struct run_options *opt = r->options;
	char hash[17];

	snprintf(hash, sizeof(hash), "%016" PRIx64, r->tel.config_hash);
	json_text(j, "program", opt->program);
	json_text(j, "version", run_version());
	json_text(j, "commit", run_commit());
	json_text(j, "title", r->title);
	json_text(j, "config", opt->config_path);
	json_text(j, "config_hash", hash);
	json_u64(j, "seed", r->seed);
	json_text(j, "run_id", r->tel.run_id);
	json_array(j, "command_line");
	for (int i = 0; i < opt->argc; i++)
		json_text(j, NULL, opt->argv[i]);
	json_close(j, ']');
	if (getenv("WEIR_COMMAND") != NULL) // tools/weir says what its user typed
		json_text(j, "command", getenv("WEIR_COMMAND"));
	if (getenv("WEIR_ASKED") != NULL) // and a sweep how it knows the run again
		json_text(j, "asked", getenv("WEIR_ASKED"));
	if (r->branch != NULL)
		run_branch_json(r, j);
	json_array(j, "licenses"); // of the folder's files that have one of their own
	for (const struct config_file *f = config_files(r->config); f != NULL; f = f->next) {
		if (*f->license != NULL) {
			json_object(j, NULL);
			json_text(j, "file", f->copy);
			json_text(j, "license", *f->license);
			json_close(j, '}');
		}
	}
	json_close(j, ']');
	json_text(j, "clock", r->tel.virtual_time ? "virtual" : "real");
}

int manifest_write(struct run *r, const char *verdict, int exit_status, struct err *err) {
	struct json j;
	char ended_utc[32];
	FILE *f = NULL;
	int rc = folder_file_begin(r, "manifest.json", &f, err);

	if (rc < 0)
		return rc;
	json_begin(&j, f);
	write_run(&j, r);
	write_host(&j);
	write_versions(&j);
	json_text(&j, "started_utc", r->started_utc);
	if (verdict != NULL) {
		folder_utc_text(time(NULL), "%Y-%m-%dT%H:%M:%SZ", ended_utc, sizeof(ended_utc));
		json_text(&j, "ended_utc", ended_utc);
		json_u64(&j, "exit", (uint64_t)exit_status);
	} else {
		json_null(&j, "ended_utc");
		json_null(&j, "exit");
	}
	json_text(&j, "verdict", verdict != NULL ? verdict : "running");
	json_end(&j);
	return folder_file_end(r, f, "manifest.json", err);
}
