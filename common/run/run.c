// SPDX-License-Identifier: BSD-3-Clause
// The run's own parameters and the run folder.
//
// Here, and nowhere else below main, is the wall clock read: for names and for the manifest.
#include "common/run/run.h"

#include "common/base/rng.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>
#include <yaml.h>

#define DAY_NS 86400e9
#define LOCK_NAME ".weir-lock"
#define RESERVE_BYTES (128u << 10) // a summary of many groups and links, and a manifest
#ifndef DPDK_VERSION
#define DPDK_VERSION "none"
#endif

static const struct param run_params[] = {
	{"seed", "1", "of all random stages", UNIT_NONE, PARAM_U64(struct run, seed), 0, 0x1p64},
	{"duration", "30s", "of the experiment", UNIT_TIME_NS, PARAM_U64(struct run, duration_ns),
		1e3, DAY_NS},
	{"warmup", "0s", "left out of the summary's figures", UNIT_TIME_NS,
		PARAM_U64(struct run, warmup_ns), 0, DAY_NS},
	{"title", "", "one line for reports", UNIT_NONE, PARAM_TEXT(struct run, title)},
	PARAM_END,
};
static const char *const run_sections[] = {
	"stop", "paths", "flows", "telemetry", "schedule", "live", NULL};

static const struct param telemetry_params[] = {
	{"level", "1", "0 summaries, 1 events and intervals, 2 some flows, 3 everything", UNIT_NONE,
		PARAM_U64(struct run, telemetry_level), 0, 3},
	{"interval", "100ms", "of the interval stream", UNIT_TIME_NS,
		PARAM_U64(struct run, telemetry_interval_ns), 1e4, DAY_NS},
	{"sample", "1%", "share of flows at level 2", UNIT_RATIO,
		PARAM_F64(struct run, telemetry_sample), 0, 1},
	{"arrivals", "no", "record what enters each path, for `weir replay`", UNIT_NONE,
		PARAM_BOOL(struct run, telemetry_arrivals)},
	PARAM_END,
};

void run_list_run(struct run_list *l) {
	run_list_plugin(l, "run", "run", "the top level of the config", run_params, NULL, 0);
	if (!l->as_json) {
		for (const char *const *name = run_sections; *name != NULL; name++)
			fprintf(l->out, "%s%s", name == run_sections ? "    sections: " : ", ",
				*name);
		fputc('\n', l->out);
	}
	run_list_plugin(l, "run", "telemetry", "what is recorded", telemetry_params, NULL, 0);
	run_list_plugin(l, "run", "stop", "ends a run in virtual time before its duration",
		stop_params, NULL, 0);
}

static int load_params(struct run *r, struct err *err) {
	struct config_node *root = config_root(r->config);
	int rc = config_params(root, NULL, run_params, run_sections, r, err);

	if (rc < 0)
		return rc;
	if (r->warmup_ns >= r->duration_ns) {
		const struct config_node *warmup = config_get(root, "warmup");
		return config_err(warmup, -EINVAL, err,
			"warmup: %s leaves nothing of the duration, %s", config_text(warmup),
			config_text(config_get(root, "duration")));
	}
	rc = stop_init(&r->stop, root, r->warmup_ns, err);
	if (rc < 0)
		return rc;
	if (r->stop.metric != STOP_NONE && strcmp(r->options->program, "weir-sim") != 0)
		return config_err(config_get(root, "stop"), -EINVAL, err,
			"stop: only virtual time can end early; -o stop.metric=none runs the whole "
			"duration");
	return config_params(
		config_section(root, "telemetry"), "telemetry", telemetry_params, NULL, r, err);
}

int run_load(struct run *r, const struct run_options *opt, struct err *err) {
	const char *dash = strchr(opt->program, '-');
	int rc;

	memset(r, 0, sizeof(*r));
	r->options = opt;
	r->lock_fd = r->reserve_fd = -1;
	if (strcmp(opt->program, "weir-sim") != 0 && dash != NULL)
		snprintf(r->suffix, sizeof(r->suffix), "%s", dash);
	r->config = config_load(opt->config_path, err);
	if (r->config == NULL)
		return -EINVAL;
	for (int i = 0; i < opt->override_count; i++) {
		if ((rc = config_override(r->config, opt->overrides[i], err)) < 0)
			return rc;
	}
	return load_params(r, err);
}

void run_warn_unreached(const struct run *r, const struct config_node *node, const char *what) {
	struct err err;

	if (node == NULL)
		return;
	config_err(node, 0, &err, "%s is never reached: the run ends after %g s", what,
		(double)r->duration_ns / 1e9);
	fprintf(stderr, "%s: warning: %s\n", r->options->program, err.msg);
}

static void utc_text(time_t t, const char *format, char *text, size_t size) {
	struct tm tm;

	gmtime_r(&t, &tm);
	strftime(text, size, format, &tm);
}

// "<dir>/<before><name><suffix><after>" with the program's suffix before the name's last dot.
static int file_path(const struct run *r, const char *name, const char *before, const char *after,
	char *path, size_t size) {
	const char *dot = strrchr(name, '.');
	size_t stem = dot != NULL ? (size_t)(dot - name) : strlen(name);
	size_t suffix = strlen(r->suffix);
	bool has = stem >= suffix && strncmp(name + stem - suffix, r->suffix, suffix) == 0;
	int n = snprintf(path, size, "%s/%s%.*s%s%s%s", r->dir, before, (int)stem, name,
		has ? "" : r->suffix, name + stem, after);

	return n < (int)size ? 0 : -ENAMETOOLONG;
}

static int write_error(const char *path, int error, struct err *err) {
	return err_set(err, -error, "%s: cannot be written: %s", path, strerror(error));
}

static int file_begin(const struct run *r, const char *name, FILE **f, struct err *err) {
	char temporary[768], path[768];

	if (file_path(r, name, ".", ".tmp", temporary, sizeof(temporary)) < 0
		|| file_path(r, name, "", "", path, sizeof(path)) < 0)
		return write_error(name, ENAMETOOLONG, err);
	*f = fopen(temporary, "we");
	return *f != NULL ? 0 : write_error(path, errno, err);
}

// Closes f; 0 or what stopped its bytes from reaching the file.
static int close_error(FILE *f) {
	int error = 0;

	if (fflush(f) != 0)
		error = errno;
	else if (ferror(f) != 0) // at some write before, and errno is gone: ask again
		error = write(fileno(f), "", 1) < 0 ? errno : EIO;
	if (fclose(f) != 0 && error == 0)
		error = errno;
	return error;
}

static int file_end(const struct run *r, FILE *f, const char *name, struct err *err) {
	char temporary[768], path[768];
	int error = close_error(f);

	if (file_path(r, name, ".", ".tmp", temporary, sizeof(temporary)) < 0
		|| file_path(r, name, "", "", path, sizeof(path)) < 0)
		return write_error(name, ENAMETOOLONG, err);
	if (error == 0 && rename(temporary, path) < 0)
		error = errno;
	if (error == 0)
		return 0;
	unlink(temporary);
	return write_error(path, error, err);
}

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
	json_text(j, "clock", r->tel.virtual_time ? "virtual" : "real");
}

// verdict NULL: still running.
static int write_manifest(struct run *r, const char *verdict, int exit_status, struct err *err) {
	struct json j;
	char ended_utc[32];
	FILE *f = NULL;
	int rc = file_begin(r, "manifest.json", &f, err);

	if (rc < 0)
		return rc;
	json_begin(&j, f);
	write_run(&j, r);
	write_host(&j);
	write_versions(&j);
	json_text(&j, "started_utc", r->started_utc);
	if (verdict != NULL) {
		utc_text(time(NULL), "%Y-%m-%dT%H:%M:%SZ", ended_utc, sizeof(ended_utc));
		json_text(&j, "ended_utc", ended_utc);
		json_u64(&j, "exit", (uint64_t)exit_status);
	} else {
		json_null(&j, "ended_utc");
		json_null(&j, "exit");
	}
	json_text(&j, "verdict", verdict != NULL ? verdict : "running");
	json_end(&j);
	return file_end(r, f, "manifest.json", err);
}

// "configs/two_flows.yaml" -> "runs/two_flows-20250131-120000-4711"
static int name_folder(struct run *r, time_t now, struct err *err) {
	const struct run_options *opt = r->options;
	const char *slash = strrchr(opt->config_path, '/');
	const char *stem = slash != NULL ? slash + 1 : opt->config_path;
	const char *dot = strrchr(stem, '.');
	int stem_len = dot != NULL && dot > stem ? (int)(dot - stem) : (int)strlen(stem);
	char utc[32];
	int n;

	if (strcmp(opt->config_path, "-") == 0) {
		stem = "stdin";
		stem_len = 5;
	}
	utc_text(now, "%Y%m%d-%H%M%S", utc, sizeof(utc));
	if (opt->out_dir != NULL)
		n = snprintf(r->dir, sizeof(r->dir), "%s", opt->out_dir);
	else
		n = snprintf(r->dir, sizeof(r->dir), "runs/%.*s-%s-%d", stem_len, stem, utc,
			(int)getpid());
	if (n == 0 || n >= (int)sizeof(r->dir)) {
		r->dir[0] = '\0';
		return err_set(
			err, -EINVAL, "--out: the name is %s", n == 0 ? "empty" : "too long");
	}
	return 0;
}

static int make_folder(struct run *r, struct err *err) {
	char path[sizeof(r->dir)];
	struct stat st;

	memcpy(path, r->dir, sizeof(path));
	for (char *slash = path + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
		*slash = '\0';
		mkdir(path, 0777); // what fails here fails below, with the reason
		*slash = '/';
	}
	if (mkdir(path, 0777) < 0 && errno != EEXIST)
		return err_set(err, -errno, "%s: cannot be created: %s", path, strerror(errno));
	if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
		return err_set(err, -ENOTDIR, "%s: cannot be created: a file has this name", path);
	return 0;
}

static void close_fd(int *fd) {
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static bool take_lock(int fd, off_t start, off_t len) {
	struct flock lock = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = start, .l_len = len};

	// Not every file system has locks.
	return fcntl(fd, F_OFD_SETLK, &lock) == 0 || (errno != EAGAIN && errno != EACCES);
}

// The first byte of the lock file stands for the files of the switch, the second for those of the
// sender; weir-sim has both. A lock is gone with its program, however that ends.
static int lock_folder(struct run *r, struct err *err) {
	bool switch_ = strcmp(r->suffix, "-sender") != 0,
	     sender = strcmp(r->suffix, "-switch") != 0;
	char path[sizeof(r->dir) + sizeof(LOCK_NAME)];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", r->dir, LOCK_NAME);
	do { // until it is not one that unlock_folder took away meanwhile
		close_fd(&r->lock_fd);
		r->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
		if (r->lock_fd < 0)
			return write_error(path, errno, err);
		if (!take_lock(r->lock_fd, switch_ ? 0 : 1, switch_ + sender))
			return err_set(err, -EEXIST,
				"%s: another run is writing there: choose another --out", r->dir);
	} while (fstat(r->lock_fd, &st) == 0 && st.st_nlink == 0);
	return 0;
}

// The last one takes the file away.
static void unlock_folder(struct run *r) {
	char path[sizeof(r->dir) + sizeof(LOCK_NAME)];

	snprintf(path, sizeof(path), "%s/%s", r->dir, LOCK_NAME);
	if (r->lock_fd >= 0 && take_lock(r->lock_fd, 0, 2))
		unlink(path);
	close_fd(&r->lock_fd);
	close_fd(&r->reserve_fd);
}

// A file without a name, so that a program that is killed leaves nothing: on a disk that telemetry has
// filled, its blocks become the summary's and the manifest's.
static int reserve_space(struct run *r, struct err *err) {
	int rc;

	r->reserve_fd = open(r->dir, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	if (r->reserve_fd < 0) // not every file system has such files
		return 0;
	rc = posix_fallocate(r->reserve_fd, 0, RESERVE_BYTES);
	return rc == ENOSPC || rc == EDQUOT
		? err_set(err, -rc, "%s: cannot be written: %s", r->dir, strerror(rc))
		: 0;
}

// Streams that only one of the live programs has, which need no suffix.
static const char *const live_rings[][4] = {
	{"-switch", "packets.ring", "arrivals.ring", "links.ring"},
	{"-sender", "cc.ring", "flows.ring", "interval.ring"},
};

// Takes away the run of the program with this suffix.
static void remove_run(const struct run *r, const char *suffix) {
	static const char *const names[] = {
#define RUN_RING_(stream, STREAM) #stream, ".ring",
		TEL_STREAMS(RUN_RING_) "summary", ".json"};
	char path[768];

	// Of two programs that find it, one takes it away.
	snprintf(path, sizeof(path), "%s/manifest%s.json", r->dir, suffix);
	if (unlink(path) < 0)
		return;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i += 2) {
		snprintf(path, sizeof(path), "%s/%s%s%s", r->dir, names[i], suffix, names[i + 1]);
		unlink(path);
	}
	for (size_t i = 0; i < sizeof(live_rings) / sizeof(live_rings[0]); i++) {
		for (size_t k = 1; strcmp(live_rings[i][0], suffix) == 0 && k < 4; k++) {
			snprintf(path, sizeof(path), "%s/%s", r->dir, live_rings[i][k]);
			unlink(path);
		}
	}
	snprintf(path, sizeof(path), "%s/config.yaml", r->dir);
	unlink(path);
}

static bool holds_run(const struct run *r, const char *suffix) {
	char path[768];

	snprintf(path, sizeof(path), "%s/manifest%s.json", r->dir, suffix);
	return access(path, F_OK) == 0;
}

// Refuses a folder with a run in it, or takes the run away. Of live programs the other one's stays: it
// may run, and they share a folder. weir-sim takes away none of theirs: it replays them.
static int clear_folder(struct run *r, struct err *err) {
	const char *const mine[] = {"", r->suffix};

	if (r->suffix[0] == '\0' && (holds_run(r, "-switch") || holds_run(r, "-sender")))
		return err_set(err, -EEXIST, "%s holds a live run: choose another --out", r->dir);
	for (size_t i = 0; i < sizeof(mine) / sizeof(mine[0]); i++) {
		if (!holds_run(r, mine[i]))
			continue;
		if (!r->options->force)
			return err_set(err, -EEXIST,
				"%s already holds a run: choose another --out or --force", r->dir);
		remove_run(r, mine[i]);
	}
	return 0;
}

// 1: written; 0: the other live program has written it. Never takes the place of a file: with
// `weir-sim config.yaml --out .` that would be the user's.
static int write_config(const struct run *r, const char *text, size_t size, struct err *err) {
	char path[768];

	snprintf(path, sizeof(path), "%s/config.yaml", r->dir);
	FILE *f = fopen(path, "wxe");
	if (f == NULL && errno == EEXIST && r->suffix[0] != '\0')
		return 0;
	if (f == NULL && errno == EEXIST)
		return err_set(err, -EEXIST, "%s is not of a run: choose another --out", path);
	if (f == NULL)
		return write_error(path, errno, err);
	fwrite(text, 1, size, f);
	int error = close_error(f);
	if (error == 0)
		return 1;
	unlink(path);
	return write_error(path, error, err);
}

// The hash of the config.yaml that the other live program wrote. Each resolves only what it reads, so that
// its own text would be another one when the run is repeated from that file.
static int hash_stored(struct run *r, struct err *err) {
	char path[768], part[4096];
	size_t n;

	snprintf(path, sizeof(path), "%s/config.yaml", r->dir);
	FILE *f = fopen(path, "re");
	XXH64_state_t *state = XXH64_createState();
	bool read = f != NULL && state != NULL;

	if (read) {
		XXH64_reset(state, 0);
		while ((n = fread(part, 1, sizeof(part), f)) > 0)
			XXH64_update(state, part, n);
		read = ferror(f) == 0;
		r->tel.config_hash = XXH64_digest(state);
	}
	int error = errno;
	XXH64_freeState(state);
	if (f != NULL)
		fclose(f);
	return read ? 0 : err_set(err, -error, "%s: cannot be read: %s", path, strerror(error));
}

// The first files of a run.
static int write_start(struct run *r, const char *text, size_t size, struct err *err) {
	int rc = write_config(r, text, size, err);

	r->wrote_config = rc == 1;
	if (rc == 0)
		rc = hash_stored(r, err);
	if (rc >= 0)
		rc = write_manifest(r, NULL, 0, err);
	return rc < 0 ? rc : reserve_space(r, err);
}

void run_discard(struct run *r) {
	char path[768];

	if (r->dir[0] == '\0')
		return;
	snprintf(path, sizeof(path), "%s/manifest%s.json", r->dir, r->suffix);
	unlink(path);
	snprintf(path, sizeof(path), "%s/config.yaml", r->dir);
	if (r->wrote_config && !holds_run(r, "-switch") && !holds_run(r, "-sender"))
		unlink(path);
	unlock_folder(r);
	rmdir(r->dir); // if that was all
	r->dir[0] = '\0';
}

static void fill_tel(struct run *r, bool virtual_time, const char *text, size_t size) {
	struct {
		uint64_t config_hash, seed, ns, pid;
	} name = {XXH64(text, size, 0), r->seed, 0, 0};
	struct timespec now;

	if (!virtual_time) {
		clock_gettime(CLOCK_REALTIME, &now);
		name.ns = (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
		name.pid = (uint64_t)getpid();
	}
	r->tel.dir = r->dir;
	r->tel.virtual_time = virtual_time;
	r->tel.seed = r->seed;
	r->tel.config_hash = name.config_hash;
	r->tel.level = (uint32_t)r->telemetry_level;
	r->tel.sample_threshold = rng_threshold(r->telemetry_sample);
	snprintf(r->tel.run_id, sizeof(r->tel.run_id), "%016" PRIx64,
		(uint64_t)XXH64(&name, sizeof(name), 0));
}

int run_create(struct run *r, const struct run_options *opt, bool virtual_time, struct err *err) {
	time_t now = time(NULL);
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	int rc;

	assert(opt == r->options);
	if (f == NULL)
		return err_set(err, -ENOMEM, "out of memory");
	config_print(r->config, f);
	fclose(f);
	fill_tel(r, virtual_time, text, size);
	utc_text(now, "%Y-%m-%dT%H:%M:%SZ", r->started_utc, sizeof(r->started_utc));
	if ((rc = name_folder(r, now, err)) < 0 || (rc = make_folder(r, err)) < 0)
		goto out;
	if ((rc = lock_folder(r, err)) < 0) {
		close_fd(&r->lock_fd);
		goto out;
	}
	if ((rc = clear_folder(r, err)) < 0)
		unlock_folder(r);
	else if ((rc = write_start(r, text, size, err)) < 0)
		run_discard(r);
out:
	if (rc < 0)
		r->dir[0] = '\0'; // nothing for run_end to do
	free(text);
	return rc;
}

static int write_summary(struct run *r, run_summary_fn *summary, void *of, const char *verdict,
	bool *balanced, struct err *err) {
	FILE *f;
	int rc = file_begin(r, "summary.json", &f, err);

	if (rc < 0)
		return rc;
	*balanced = summary(of, f, verdict);
	rc = file_end(r, f, "summary.json", err);
	if (rc < 0 || !r->options->json)
		return rc;
	summary(of, stdout, verdict);
	return run_flush(err);
}

int run_end(struct run *r, run_summary_fn *summary, void *of, const char *verdict, int rc,
	struct err *err) {
	bool balanced = true;
	struct err late;
	int written = 0;

	if (r->dir[0] == '\0')
		return rc;
	close_fd(&r->reserve_fd);
	if (rc < 0)
		verdict = err->msg;
	if (summary != NULL)
		written = write_summary(r, summary, of, verdict, &balanced, &late);
	if (rc == 0 && written < 0)
		rc = err_set(err, written, "%s", late.msg);
	if (rc == 0 && !balanced)
		rc = err_set(err, -EIO, "the ledger does not balance: see %s/summary%s.json",
			r->dir, r->suffix);
	written = write_manifest(r, rc < 0 ? err->msg : verdict, run_status(rc), &late);
	if (rc == 0 && written < 0)
		rc = err_set(err, written, "%s", late.msg);
	unlock_folder(r);
	return rc;
}

void run_free(struct run *r) {
	unlock_folder(r);
	config_free(r->config);
	r->config = NULL;
}
