// SPDX-License-Identifier: BSD-3-Clause
// What weir-sim lacks in a browser: each is refused with a sentence, or does nothing.
#include "common/base/mem.h"
#include "common/live/port/iface.h"
#include "common/pcap/codec.h"
#include "common/run/run.h"
#include "sender/cc/plugin.h"
#include "sender/cc/python.h"
#include "sender/group/group.h"
#include "tools/sim/guest/guests.h"
#include "tools/sim/run/cpu_clock.h"

#include <emscripten.h>
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEAP_BYTES (UINT64_C(2) << 30) // MAXIMUM_MEMORY of build.py

// Memory. What lies behind the end of the heap was never used: it is zero, and costs nothing until
// it is written. Nothing is given back before the run ends, and with it the program's memory.

void *mem_map(uint64_t bytes) {
	void *p = bytes > HEAP_BYTES / 2 ? (void *)-1 : sbrk((intptr_t)((bytes + 63) / 64 * 64));

	return p == (void *)-1 ? NULL : p;
}

void mem_unmap(void *p, size_t bytes) {
}

int mem_check(uint64_t bytes, const char *what, struct err *err) {
	if (bytes <= HEAP_BYTES / 10 * 9)
		return 0;
	return err_set(err, -ENOMEM, "%s need %.0f MB, and a browser gives %.0f MB", what,
		(double)bytes / 1e6, (double)HEAP_BYTES / 1e6);
}

double cpu_clock_s(void) {
	return (double)NAN;
}

// Between two steps of a run, the worker gets its messages.
int sched_yield(void) {
	emscripten_sleep(0);
	return 0;
}

int sched_getaffinity(pid_t process, size_t size, cpu_set_t *set) {
	errno = ENOSYS;
	return -1;
}

int __sched_cpucount(size_t size, const cpu_set_t *set) {
	return 1;
}

// Of the C library

int prctl(int option, ...) {
	errno = ENOSYS;
	return -1;
}

ssize_t copy_file_range(
	int from, off_t *from_at, int to, off_t *to_at, size_t count, unsigned int flags) {
	errno = ENOSYS;
	return -1;
}

void *reallocarray(void *p, size_t count, size_t size) {
	size_t bytes;

	if (!__builtin_mul_overflow(count, size, &bytes))
		return realloc(p, bytes);
	errno = ENOMEM;
	return NULL;
}

// Guests

int guests_init(struct guests **out, const struct guests_env *env, struct err *err) {
	struct config_node *flows = config_get(config_root(env->run->config), "flows");
	const struct config_node *node = groups_guest(env->groups, flows);

	return node == NULL ? 0
			    : config_err(node, -EINVAL, err,
				    "flows: Linux kernels do not run in a browser: weir run");
}

struct node *guests_node(struct guests *gs, enum flows_direction side, struct node *host) {
	return host;
}

bool guests_random(const struct guests *gs) {
	return false;
}

int guests_check(struct guests *gs, struct err *err) {
	return 0;
}

int guests_boot(struct guests *gs, struct err *err) {
	return 0;
}

void guests_keep_logs(const struct guests *gs, const char *run_folder) {
}

void guests_summary(const struct guests *gs, struct json *j, double seconds) {
}

void guests_faults(const struct guests *gs, struct facts *verdict) {
}

bool guests_send_any(const struct guests *gs) {
	return false;
}

void guests_dropped(struct guests *gs, const struct pkt *p) {
}

void guests_interval(struct guests *gs, struct tel *tel, uint64_t now_ns) {
}

void guests_measure(struct guests *gs) {
}

void guests_free(struct guests *gs) {
}

// Controls from elsewhere

int cc_plugin_load(const char *path, const struct cc_ops **ops, struct err *err) {
	return err_set(err, -EINVAL, "plug-ins do not run in a browser: weir run");
}

void cc_plugin_limit(void) {
}

int cc_plugin_config(const struct cc_ops *ops, void *config, struct err *err) {
	return 0;
}

int cc_python_open(const char *text, struct cc_python *control, struct err *err) {
	return err_set(err, -EINVAL, "controls in Python do not run in a browser: weir run");
}

// Compressed captures

int codec_open(struct codec **codec, const char *name, const uint8_t *magic, size_t size,
	struct err *err) {
	const uint8_t gzip[] = {0x1f, 0x8b}, zstd[] = {0x28, 0xb5, 0x2f, 0xfd};

	*codec = NULL;
	if ((size < sizeof(gzip) || memcmp(magic, gzip, sizeof(gzip)) != 0)
		&& (size < sizeof(zstd) || memcmp(magic, zstd, sizeof(zstd)) != 0))
		return 0;
	return err_set(err, -EINVAL, "%s: is compressed, which is not read in a browser", name);
}

void codec_close(struct codec *codec) {
}

int64_t codec_read(struct codec *codec, const uint8_t **from, const uint8_t *from_end, uint8_t *to,
	size_t room, struct err *err) {
	return 0;
}

bool codec_complete(const struct codec *codec) {
	return true;
}
