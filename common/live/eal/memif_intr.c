// SPDX-License-Identifier: BSD-3-Clause
#include "common/live/eal/memif_intr.h"

#include "common/live/base/quiesce.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define CHECK_TRIES 2000
#define CHECK_RETRY_US 1000

static _Atomic bool waits; // a thread has called epoll_wait

int epoll_wait(int fd, struct epoll_event *events, int max, int timeout_ms);
ssize_t sendmsg(int fd, const struct msghdr *msg, int flags);

int memif_intr_check(struct err *err) {
	for (int i = 0; i < CHECK_TRIES; i++) {
		if (atomic_load(&waits))
			return 0;
		usleep(CHECK_RETRY_US);
	}
	return err_set(err, -ENOTSUP,
		"DPDK's interrupt thread does not wait in this program's epoll_wait: "
		"it was linked in a way that is not supported");
}

int epoll_wait(int fd, struct epoll_event *events, int max, int timeout_ms) {
	int n;

	atomic_store(&waits, true);
	for (;;) {
		if (quiesce_holds())
			quiesce_release();
		n = epoll_pwait(fd, events, max, timeout_ms, NULL);
		if (n <= 0)
			return n;
		quiesce_hold();
		// The thread that held the lcores before may have handled the events and closed
		// their descriptors.
		n = epoll_pwait(fd, events, max, 0, NULL);
		if (n != 0 || timeout_ms >= 0)
			return n;
	}
}

ssize_t sendmsg(int fd, const struct msghdr *msg, int flags) {
	struct mmsghdr one = {.msg_hdr = *msg};
	ssize_t size = 0;

	if (sendmmsg(fd, &one, 1, (unsigned int)flags) == 1)
		return (ssize_t)one.msg_len;
	if (!quiesce_holds() || (errno != EPIPE && errno != ECONNRESET))
		return -1;
	for (size_t i = 0; i < msg->msg_iovlen; i++)
		size += (ssize_t)msg->msg_iov[i].iov_len;
	return size;
}
