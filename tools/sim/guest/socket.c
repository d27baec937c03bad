// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/guest/socket.h"

#include "common/run/run.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SLICE_MS 200 // after which run_stop is looked at
#define WAITED_MAX 4 // descriptors

static _Thread_local pid_t watched;

void socket_watch(pid_t pid) {
	watched = pid;
}

static bool watched_ended(void) {
	siginfo_t info = {0};

	return watched > 0 && waitid(P_PID, (id_t)watched, &info, WEXITED | WNOHANG | WNOWAIT) == 0
		&& info.si_pid == watched;
}

int socket_wait_s(void) {
	const char *text = getenv("WEIR_GUEST_WATCHDOG_S");
	int s = text == NULL ? 0 : atoi(text);

	return s > 0 ? s : SOCKET_WAIT_S;
}

int socket_listen(const char *path, struct err *err) {
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd;

	if (strlen(path) >= sizeof(at.sun_path))
		return err_set(err, -ENAMETOOLONG, "%s: too long for a socket", path);
	memcpy(at.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, 4) < 0) {
		int error = errno;

		if (fd >= 0)
			close(fd);
		return err_set(err, -error, "%s: %s", path, strerror(error));
	}
	return fd;
}

int socket_accept(int listener) {
	return accept4(listener, NULL, NULL, SOCK_CLOEXEC);
}

int socket_wait(const int *fds, int nb_fds) {
	struct pollfd p[WAITED_MAX];
	int slices = socket_wait_s() * 1000 / SLICE_MS;

	for (int i = 0; i < nb_fds; i++)
		p[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
	for (; slices > 0 && !run_stop; slices--) {
		int n = poll(p, (nfds_t)nb_fds, SLICE_MS), ready = 0;

		for (int i = 0; n > 0 && i < nb_fds; i++)
			ready |= p[i].revents != 0 ? 1 << i : 0;
		if (n > 0)
			return ready;
		if (watched_ended())
			return -EPIPE;
	}
	return run_stop ? -EINTR : -ETIMEDOUT;
}

static long futex(const uint32_t *word, int op, uint32_t value, const struct timespec *slice) {
	return syscall(SYS_futex, word, op, value, slice, NULL, 0);
}

int socket_wait_word(const uint32_t *word, uint32_t value) {
	const struct timespec slice = {.tv_nsec = SLICE_MS * 1000000L};
	int slices = 0;

	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == value) {
		if (run_stop)
			return -EINTR;
		if (futex(word, FUTEX_WAIT, value, &slice) == 0 || errno != ETIMEDOUT)
			continue;
		if (watched_ended())
			return -EPIPE;
		if (++slices >= socket_wait_s() * 1000 / SLICE_MS)
			return -ETIMEDOUT;
	}
	return 0;
}

void socket_wake_word(uint32_t *word) {
	futex(word, FUTEX_WAKE, 1, NULL);
}

int socket_send(int fd, const void *bytes, size_t size, const int *fds, int nb_fds) {
	union {
		char bytes[CMSG_SPACE(WAITED_MAX * sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec v = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = size};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};

	if (nb_fds > 0) {
		m.msg_control = control.bytes;
		m.msg_controllen = CMSG_SPACE((size_t)nb_fds * sizeof(int));
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);

		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN((size_t)nb_fds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, (size_t)nb_fds * sizeof(int));
	}
	for (;;) {
		ssize_t n = sendmsg(fd, &m, MSG_NOSIGNAL);

		if (n == (ssize_t)size)
			return 0;
		if (n < 0 && errno != EINTR)
			return errno == ECONNRESET ? -EPIPE : -errno;
		if (n >= 0)
			return -EPIPE; // messages are far smaller than a socket's buffer
	}
}

static void take_descriptors(struct msghdr *m, int *fds, int nb_fds) {
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
		int n = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int)), fd;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (int i = 0; i < n; i++) {
			memcpy(&fd, CMSG_DATA(c) + (size_t)i * sizeof(int), sizeof(int));
			if (i < nb_fds && fds[i] < 0)
				fds[i] = fd;
			else
				close(fd);
		}
	}
}

int socket_receive(int fd, void *bytes, size_t size, int *fds, int nb_fds) {
	union {
		char bytes[CMSG_SPACE(WAITED_MAX * sizeof(int))];
		struct cmsghdr align;
	} control;
	size_t got = 0;

	for (int i = 0; i < nb_fds; i++)
		fds[i] = -1;
	while (got < size) {
		struct iovec v = {.iov_base = (char *)bytes + got, .iov_len = size - got};
		struct msghdr m = {.msg_iov = &v,
			.msg_iovlen = 1,
			.msg_control = control.bytes,
			.msg_controllen = sizeof(control.bytes)};
		ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

		if (n == 0 || (n < 0 && errno == ECONNRESET))
			return -EPIPE;
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		if (n > 0) {
			take_descriptors(&m, fds, nb_fds);
			got += (size_t)n;
		} else {
			int rc = socket_wait(&fd, 1);

			if (rc < 0)
				return rc;
		}
	}
	return 0;
}

int socket_peek(int fd, void *bytes, size_t size) {
	for (;;) {
		ssize_t n = recv(fd, bytes, size, MSG_PEEK | MSG_DONTWAIT);

		if (n == (ssize_t)size)
			return 0;
		if (n == 0 || (n < 0 && errno == ECONNRESET))
			return -EPIPE;
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		int rc = socket_wait(&fd, 1);
		if (rc < 0)
			return rc;
	}
}
