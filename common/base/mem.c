// SPDX-License-Identifier: BSD-3-Clause
#include "common/base/mem.h"

#include <sys/mman.h>

#define LARGE_PAGE ((size_t)2 << 20)

void *mem_map(size_t bytes) {
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	if (bytes >= LARGE_PAGE)
		(void)madvise(p, bytes, MADV_HUGEPAGE); // a wish: slower without, not wrong
	return p;
}

void mem_unmap(void *p, size_t bytes) {
	if (p != NULL)
		(void)munmap(p, bytes);
}
