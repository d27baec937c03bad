// SPDX-License-Identifier: BSD-3-Clause
// Copies files for processes that a run forks: there are none.
#pragma once
#include <errno.h>
#include <sys/types.h>

static inline ssize_t sendfile(int to, int from, off_t *offset, size_t count) {
	errno = ENOSYS;
	return -1;
}
