// SPDX-License-Identifier: BSD-3-Clause
#include "common/base/mem.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

#define LARGE_PAGE ((size_t)2 << 20)

void *mem_map(uint64_t bytes) {
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	if (bytes >= LARGE_PAGE)
		(void)madvise(p, bytes, MADV_HUGEPAGE); // optional: only faster
	return p;
}

void mem_unmap(void *p, size_t bytes) {
	if (p != NULL)
		(void)munmap(p, bytes);
}

static uint64_t available_bytes(void) {
	unsigned long long kb = 0;
	char line[128];
	FILE *f = fopen("/proc/meminfo", "re");

	if (f == NULL)
		return UINT64_MAX;
	while (fgets(line, sizeof(line), f) != NULL) {
		if (sscanf(line, "MemAvailable: %llu kB", &kb) == 1)
			break;
	}
	fclose(f);
	return kb == 0 ? UINT64_MAX : (uint64_t)kb * 1024;
}

int mem_check(uint64_t bytes, const char *what, struct err *err) {
	uint64_t available = available_bytes();

	if (bytes <= available / 10 * 9)
		return 0;
	return err_set(err, -ENOMEM, "%s need %.0f MB, and %.0f MB are available", what,
		(double)bytes / 1e6, (double)available / 1e6);
}
