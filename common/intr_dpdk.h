// SPDX-License-Identifier: BSD-3-Clause
// DPDK's interrupt thread and the lcore take turns.
//
// A driver's handlers run in DPDK's own thread. That of memif unmaps the rings there when its peer
// goes, also while the lcore copies from them (DPDK 22.11 to 24.11): the process dies of it. So
// handlers run only while the lcore stands still between two bursts, and nothing else does then.
//
// The thread waits in epoll_wait() and handles what that returns until it calls it again. The
// programs have an epoll_wait() of their own, which the linker puts before the C library's: between
// a return with events and the next call it holds the lcore. The lcore looks every 256 turns
// whether it is wanted (one load), and stands still for as long as the handlers take, some 10 us.
// Nothing else in the process waits for events that way; intr_check() sees that the thread does.
//
// State of the lcore, with one holder at a time:
//
//	IDLE -> RUNS            lcore    intr_begin, nobody holds
//	RUNS -> IDLE            lcore    intr_end
//	RUNS -> WANTED          holder
//	WANTED -> STANDS        lcore    intr_pass, intr_end
//	STANDS -> RUNS          holder
//
// The holder goes on in STANDS and in IDLE, in which the lcore touches no port.
#pragma once
#include "err.h"

#include <stdbool.h>

// Does DPDK's interrupt thread wait where it can be held? After the EAL's start; -ENOTSUP.
int intr_check(struct err *err);
// The lcore begins and ends to receive and transmit.
void intr_begin(void);
void intr_end(void);
// Lcore, between two bursts: stands still for who waits for that; true: something was handled.
bool intr_pass(void);
// Any other thread: the lcore stands still, and no handler runs, until the release. Not to be nested.
void intr_hold(void);
void intr_release(void);
