// SPDX-License-Identifier: BSD-3-Clause
#include "common/live/intr.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <rte_pause.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define CHECK_TRIES 2000
#define CHECK_RETRY_US 1000
#define WAIT_US 20
#define INTR_LCORES_MAX 32 // threads that ever received or transmitted

enum state { IDLE, RUNS, WANTED, STANDS };

static _Atomic int states[INTR_LCORES_MAX]; // IDLE at first
static uint32_t lcores; // that have one
static _Thread_local _Atomic int *mine;
static _Atomic bool waits; // a thread came to epoll_wait
static pthread_mutex_t holder = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local bool holds; // this thread is the holder

int epoll_wait(int fd, struct epoll_event *events, int max, int timeout_ms);
ssize_t sendmsg(int fd, const struct msghdr *msg, int flags);

int intr_check(struct err *err) {
	for (int i = 0; i < CHECK_TRIES; i++) {
		if (atomic_load(&waits))
			return 0;
		usleep(CHECK_RETRY_US);
	}
	return err_set(err, -ENOTSUP,
		"DPDK's interrupt thread does not wait in this program's epoll_wait: "
		"it was linked in a way that is not supported");
}

void intr_begin(void) {
	pthread_mutex_lock(&holder);
	if (mine == NULL) {
		assert(lcores < INTR_LCORES_MAX);
		mine = &states[lcores++];
	}
	atomic_store(mine, RUNS);
	pthread_mutex_unlock(&holder);
}

bool intr_pass(void) {
	int now = atomic_load_explicit(mine, memory_order_relaxed);

	if (now == RUNS)
		return false;
	// One holder may follow another without a look at RUNS between them.
	while ((now = atomic_load(mine)) != RUNS) {
		if (now == WANTED)
			atomic_store(mine, STANDS);
		rte_pause();
	}
	return true;
}

void intr_end(void) {
	int runs = RUNS;

	while (!atomic_compare_exchange_strong(mine, &runs, IDLE)) {
		intr_pass();
		runs = RUNS;
	}
}

void intr_hold(void) {
	pthread_mutex_lock(&holder);
	holds = true;
	for (uint32_t i = 0; i < lcores; i++) {
		int runs = RUNS;

		atomic_compare_exchange_strong(&states[i], &runs, WANTED);
	}
	// One that is idle stays so: intr_begin wants the lock.
	for (uint32_t i = 0; i < lcores; i++) {
		while (atomic_load(&states[i]) == WANTED)
			usleep(WAIT_US);
	}
}

void intr_release(void) {
	for (uint32_t i = 0; i < lcores; i++) {
		int stands = STANDS;

		atomic_compare_exchange_strong(&states[i], &stands, RUNS);
	}
	holds = false;
	pthread_mutex_unlock(&holder);
}

int epoll_wait(int fd, struct epoll_event *events, int max, int timeout_ms) {
	int n;

	atomic_store(&waits, true);
	for (;;) {
		if (holds)
			intr_release();
		n = epoll_pwait(fd, events, max, timeout_ms, NULL);
		if (n <= 0)
			return n;
		intr_hold();
		// Whoever held before may have settled it, and closed what it was about.
		n = epoll_pwait(fd, events, max, 0, NULL);
		if (n != 0 || timeout_ms >= 0)
			return n;
	}
}

// A handler's answer to a peer that is gone counts as sent: that it is gone comes as an event of
// its own. If a client dies between its connect and the server's first message, memif of 22.11 closes
// the socket and leaves its handler behind; the thread then calls rte_panic.
ssize_t sendmsg(int fd, const struct msghdr *msg, int flags) {
	struct mmsghdr one = {.msg_hdr = *msg};
	ssize_t size = 0;

	if (sendmmsg(fd, &one, 1, (unsigned int)flags) == 1)
		return (ssize_t)one.msg_len;
	if (!holds || (errno != EPIPE && errno != ECONNRESET))
		return -1;
	for (size_t i = 0; i < msg->msg_iovlen; i++)
		size += (ssize_t)msg->msg_iov[i].iov_len;
	return size;
}
