// SPDX-License-Identifier: BSD-3-Clause
// A workaround for DPDK's memif driver, as those of memif_intr.h.
//
// The defect (DPDK 22.11 to 24.11): of a port with zero-copy=yes the driver gives its peer the
// descriptors of the EAL's own memory, and closes them when the peer leaves. Their numbers then are
// other files', which the next peer is given and which are closed when that one leaves; the port
// never comes back.
//
// rte_memseg_get_fd() is replaced for the whole process, because the linker prefers the program's
// definition to the EAL's: the driver, which alone calls it, gets a duplicate to give away and to
// close.
//
// This file can go when test_a_memif_without_copies_comes_back of tests/smoke/fault_test.py passes
// without it.
#include "common/live/base/dpdk.h"

#include <errno.h>
#include <fcntl.h>
#include <rte_memory.h>

int rte_memseg_get_fd(const struct rte_memseg *ms) {
	// The driver calls it from rte_memseg_walk, which has the lock of the memory.
	int fd = rte_memseg_get_fd_thread_unsafe(ms);
	int duplicate = fd < 0 ? fd : fcntl(fd, F_DUPFD_CLOEXEC, 3);

	return duplicate < 0 && fd >= 0 ? -errno : duplicate;
}
