// SPDX-License-Identifier: BSD-3-Clause
// The processor's time that this process took, and its children: guests, agents.
#include "tools/sim/run/cpu_clock.h"

#include <glob.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

// Clock ticks of a process that runs and of those that it has waited for, as in proc(5).
static uint64_t ticks_of(int pid) {
	unsigned long long user, kernel, waited_user, waited_kernel;
	char path[64];
	FILE *file;
	int n;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if ((file = fopen(path, "r")) == NULL)
		return 0;
	n = fscanf(file,
		"%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu",
		&user, &kernel, &waited_user, &waited_kernel);
	fclose(file);
	return n == 4 ? user + kernel + waited_user + waited_kernel : 0;
}

// Of all that a process has started and that runs.
static uint64_t children_ticks(int pid) {
	uint64_t ticks = 0;
	char pattern[64];
	glob_t tasks;
	int child;

	snprintf(pattern, sizeof(pattern), "/proc/%d/task/*/children", pid);
	if (glob(pattern, 0, NULL, &tasks) != 0)
		return 0;
	for (size_t i = 0; i < tasks.gl_pathc; i++) {
		FILE *file = fopen(tasks.gl_pathv[i], "r");

		while (file != NULL && fscanf(file, "%d", &child) == 1)
			ticks += ticks_of(child) + children_ticks(child);
		if (file != NULL)
			fclose(file);
	}
	globfree(&tasks);
	return ticks;
}

static double seconds(const struct timeval *t) {
	return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

double cpu_clock_s(void) {
	struct timespec own;
	struct rusage ended;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
	getrusage(RUSAGE_CHILDREN, &ended);
	return (double)own.tv_sec + (double)own.tv_nsec / 1e9 + seconds(&ended.ru_utime)
		+ seconds(&ended.ru_stime)
		+ (double)children_ticks(getpid()) / (double)sysconf(_SC_CLK_TCK);
}
