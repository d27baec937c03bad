// SPDX-License-Identifier: BSD-3-Clause
// Quiesces the lcores: they wait between two bursts while another thread changes ports.
//
// An lcore checks every 256 iterations whether a thread wants to hold it (one load), and then waits
// until it is released. One thread at a time holds the lcores: the control thread to reset a port,
// DPDK's interrupt thread while drivers' handlers run (memif_intr.h).
//
// State of each lcore:
//
//	IDLE -> RUNS            lcore    quiesce_begin, while no thread holds
//	RUNS -> IDLE            lcore    quiesce_end
//	RUNS -> WANTED          holder
//	WANTED -> QUIESCED      lcore    quiesce_pass, quiesce_end
//	QUIESCED -> RUNS        holder
//
// The holder goes on when all are in QUIESCED or IDLE, in which an lcore touches no port.
#pragma once
#include <stdbool.h>

// Called by an lcore's thread before its first and after its last burst.
void quiesce_begin(void);
void quiesce_end(void);
// Called by an lcore between two bursts: waits if a thread wants to hold it. True: it waited; ports
// may have changed.
bool quiesce_pass(void);
// Called by any other thread: holds all lcores until the release. Not to be nested.
void quiesce_hold(void);
void quiesce_release(void);
// Whether the calling thread holds the lcores.
bool quiesce_holds(void);
