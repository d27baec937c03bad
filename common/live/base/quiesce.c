// SPDX-License-Identifier: BSD-3-Clause
#include "common/live/base/quiesce.h"

#include <assert.h>
#include <pthread.h>
#include <rte_pause.h>
#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>

#define WAIT_US 20
#define LCORES_MAX 32 // threads that have ever received or transmitted

enum state { IDLE, RUNS, WANTED, QUIESCED };

static _Atomic int states[LCORES_MAX]; // IDLE at first
static uint32_t lcores; // threads with a state
static _Thread_local _Atomic int *mine;
static pthread_mutex_t holder = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool holds; // this thread is the holder

void quiesce_begin(void) {
	pthread_mutex_lock(&holder);
	if (mine == NULL) {
		assert(lcores < LCORES_MAX);
		mine = &states[lcores++];
	}
	atomic_store(mine, RUNS);
	pthread_mutex_unlock(&holder);
}

bool quiesce_pass(void) {
	int now = atomic_load_explicit(mine, memory_order_relaxed);

	if (now == RUNS)
		return false;
	// A second holder may follow the first before this thread sees RUNS.
	while ((now = atomic_load(mine)) != RUNS) {
		if (now == WANTED)
			atomic_store(mine, QUIESCED);
		rte_pause();
	}
	return true;
}

void quiesce_end(void) {
	int runs = RUNS;

	while (!atomic_compare_exchange_strong(mine, &runs, IDLE)) {
		quiesce_pass();
		runs = RUNS;
	}
}

void quiesce_hold(void) {
	pthread_mutex_lock(&holder);
	holds = true;
	for (uint32_t i = 0; i < lcores; i++) {
		int runs = RUNS;

		atomic_compare_exchange_strong(&states[i], &runs, WANTED);
	}
	// An idle lcore stays idle, because quiesce_begin needs the lock.
	for (uint32_t i = 0; i < lcores; i++) {
		while (atomic_load(&states[i]) == WANTED)
			usleep(WAIT_US);
	}
}

void quiesce_release(void) {
	for (uint32_t i = 0; i < lcores; i++) {
		int quiesced = QUIESCED;

		atomic_compare_exchange_strong(&states[i], &quiesced, RUNS);
	}
	holds = false;
	pthread_mutex_unlock(&holder);
}

bool quiesce_holds(void) {
	return holds;
}
