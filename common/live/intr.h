// SPDX-License-Identifier: BSD-3-Clause
// DPDK's interrupt thread and the lcores take turns.
//
// A driver's handlers run in DPDK's own thread. That of memif unmaps the rings there when its peer
// goes, also while the lcore copies from them (DPDK 22.11 to 24.11): the process dies of it. So
// handlers run only while every lcore stands still between two bursts, and nothing else does then.
//
// The thread waits in epoll_wait() and handles what that returns until it calls it again. The
// programs have an epoll_wait() of their own, which the linker puts before the C library's: between
// a return with events and the next call it holds the lcores. A lcore looks every 256 turns
// whether it is wanted (one load), and stands still for as long as the handlers take, some 10 us.
// Nothing else in the process waits for events that way; intr_check() sees that the thread does.
//
// State of each lcore, with one holder at a time:
//
//	IDLE -> RUNS            lcore    intr_begin, nobody holds
//	RUNS -> IDLE            lcore    intr_end
//	RUNS -> WANTED          holder
//	WANTED -> STANDS        lcore    intr_pass, intr_end
//	STANDS -> RUNS          holder
//
// The holder goes on when all are in STANDS or IDLE, in which a lcore touches no port.
#pragma once
#include "common/base/err.h"

#include <stdbool.h>

// Does DPDK's interrupt thread wait where it can be held? After the EAL's start; -ENOTSUP.
int intr_check(struct err *err);
// A lcore begins and ends to receive and transmit; by the thread that calls it.
void intr_begin(void);
void intr_end(void);
// A lcore, between two bursts: stands still for who waits for that; true: something was handled.
bool intr_pass(void);
// Any other thread: all lcores stand still, and no handler runs, until the release. Not to be nested.
void intr_hold(void);
void intr_release(void);
