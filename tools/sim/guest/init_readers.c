// SPDX-License-Identifier: BSD-3-Clause
// Readers: threads, each of which throws away what one connection receives.
//
// A reader stays inside one system call for as long as the connection lasts (MSG_WAITALL). For each
// segment the kernel does what it does for a program that waits in recv(2) and reads at once, but
// nothing leaves the kernel: a system call in a guest costs the host two context switches and seven
// calls of ptrace(2) and wait(2).
#include "tools/sim/guest/init.h"

#include <errno.h>
#include <limits.h>
#include <linux/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define READERS_MAX 128 // each takes about 30 KB of the guest's memory
#define READ_BYTES (1 << 30)

struct reader {
	uint32_t flow;
	int fd;
};

static int ends[2] = {-1, -1}; // a pipe, of struct reader_end
static uint32_t readers;

static void *read_all(void *arg) {
	struct reader *r = arg;
	struct reader_end end = {.flow = r->flow};
	ssize_t n;

	while ((n = recv(r->fd, NULL, READ_BYTES, MSG_WAITALL | MSG_TRUNC)) > 0
		|| (n < 0 && errno == EINTR))
		end.bytes += n > 0 ? (uint64_t)n : 0;
	end.error = n < 0 ? errno : 0;
	free(r);
	if (write(ends[1], &end, sizeof(end)) != sizeof(end))
		fail("readers: %s", strerror(errno));
	return NULL;
}

int readers_open(void) {
	if (pipe(ends) < 0)
		fail("pipe: %s", strerror(errno));
	return ends[0];
}

// Nothing interrupts a reader.
static bool may_start(void) {
	return readers < READERS_MAX && config->pause_ns == GUEST_NEVER
		&& config->close_ns == GUEST_NEVER;
}

bool reader_start(uint32_t flow, int fd) {
	struct reader *r = may_start() ? malloc(sizeof(*r)) : NULL;
	pthread_attr_t attr;
	pthread_t id;

	if (r == NULL)
		return false;
	*r = (struct reader){.flow = flow, .fd = fd};
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, PTHREAD_STACK_MIN);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	bool started = pthread_create(&id, &attr, read_all, r) == 0;
	pthread_attr_destroy(&attr);
	if (!started)
		free(r);
	readers += started;
	return started;
}

struct reader_end reader_ended(void) {
	struct reader_end end;

	if (read(ends[0], &end, sizeof(end)) != sizeof(end))
		fail("readers: %s", strerror(errno));
	readers--;
	return end;
}

// As it reads at once, that is all that has been received. The kernel counts a FIN as a byte.
uint64_t reader_bytes(int fd) {
	struct tcp_info t;

	return !tcp_info_of(fd, &t) ? 0 : t.tcpi_bytes_received - (t.tcpi_state == CLOSE_WAIT);
}
