// SPDX-License-Identifier: BSD-3-Clause
// A workaround for DPDK's memif driver.
//
// The defects (DPDK 22.11 to 24.11):
//   - When the peer of a memif port disconnects, the driver's handler unmaps the rings in DPDK's
//     interrupt thread, even while an lcore copies from them: the process dies of SIGSEGV.
//   - When a client dies between its connect and the server's first message, the driver closes the
//     socket and leaves its handler registered; the interrupt thread then calls rte_panic (22.11).
//
// epoll_wait() and sendmsg() are replaced for the whole process, because the linker prefers the
// program's definitions to the C library's. The interrupt thread waits in epoll_wait() and handles
// the returned events before it calls it again: from a return with events to the next call it holds
// the lcores (quiesce.h), so that handlers run only while no lcore uses a port. In a thread that
// holds the lcores, sendmsg() to a disconnected peer succeeds; the disconnection is reported by an
// event. All other calls behave as the C library's. No other thread of the process waits in
// epoll_wait().
//
// This file can go when, without it, test_memif_clients_are_killed_in_the_middle_of_bursts and
// test_memif_client_dies_while_it_connects of tests/smoke/fault_test.py pass many times in a row.
#pragma once
#include "common/base/err.h"

// Checks that DPDK's interrupt thread waits in this program's epoll_wait: 0 or -ENOTSUP. Once the
// EAL has started.
int memif_intr_check(struct err *err);
