// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/guest/calendar.h"

#include "common/base/u64.h"
#include "tools/sim/guest/page.h"
#include "tools/sim/guest/protocol.h"
#include "tools/sim/guest/socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define FOREVER_NS (UINT64_C(1) << 62) // what a guest asks for that has nothing to do
#define TIME_OF_DAY_NS UINT64_C(1000000000000000000) // 2001-09-09, for every run

// The page is there from the start: the guest's process inherits it.
static int open_page(struct calendar *c, struct err *err) {
	void *at = MAP_FAILED;

	c->page_fd = memfd_create("weir-calendar", MFD_CLOEXEC);
	if (c->page_fd >= 0 && ftruncate(c->page_fd, sizeof(*c->page)) == 0)
		at = mmap(
			NULL, sizeof(*c->page), PROT_READ | PROT_WRITE, MAP_SHARED, c->page_fd, 0);
	if (at == MAP_FAILED)
		return err_set(err, -errno, "guests: a page of memory: %s", strerror(errno));
	c->page = at;
	c->page->version = PAGE_VERSION;
	c->page->len = PAGE_KERNEL_BYTES;
	c->page->running = PAGE_GUEST;
	c->page->clients = 2;
	return 0;
}

int calendar_open(struct calendar *c, const char *path, struct err *err) {
	*c = (struct calendar){.listener = -1,
		.fd = -1,
		.page_fd = -1,
		.shared = getenv("WEIR_GUEST_MESSAGES") == NULL};
	int rc = open_page(c, err);

	if (rc < 0)
		return rc;
	c->listener = socket_listen(path, err);
	return c->listener < 0 ? c->listener : 0;
}

bool calendar_accept(struct calendar *c) {
	c->fd = socket_accept(c->listener);
	return c->fd >= 0;
}

static int answer(struct calendar *c, const struct calendar_message *m, uint64_t time_ns) {
	struct calendar_message ack = {.op = ACK, .seq = m->seq, .time_ns = time_ns};

	return socket_send(c->fd, &ack, sizeof(ack), NULL, 0);
}

// The answer to START carries the page, and a file for a log that nobody writes.
static int offer_page(struct calendar *c, const struct calendar_message *m) {
	struct calendar_message ack = {.op = ACK, .seq = m->seq, .time_ns = PAGE_GUEST};
	int fds[2] = {c->page_fd, memfd_create("weir-log", MFD_CLOEXEC)};
	int rc = fds[1] < 0 ? -errno : socket_send(c->fd, &ack, sizeof(ack), fds, 2);

	if (fds[1] >= 0)
		close(fds[1]);
	return rc;
}

// Whether the guest has taken the page; an older kernel does not know it.
static bool has_page(const struct calendar *c) {
	return c->page != NULL
		&& (__atomic_load_n(&c->page->client[PAGE_GUEST].capa, __ATOMIC_ACQUIRE)
			   & PAGE_CAN_SHARE)
		!= 0;
}

void calendar_refresh(struct calendar *c) {
	if (!has_page(c))
		return;
	c->requested = (c->page->client[PAGE_GUEST].flags & PAGE_WANTS_RUN) != 0;
	c->request_ns = c->page->client[PAGE_GUEST].request_ns;
	if (c->request_ns >= FOREVER_NS)
		c->requested = false;
}

int calendar_serve(struct calendar *c) {
	struct calendar_message m;
	int rc = socket_receive(c->fd, &m, sizeof(m), NULL, 0);

	if (rc < 0)
		return rc;
	switch ((enum op)m.op) {
	case START:
		return c->shared ? offer_page(c, &m) : answer(c, &m, 0);
	case WAIT:
		c->waits = true;
		if (!has_page(c))
			return answer(c, &m, 0);
		calendar_refresh(c);
		c->now_ns = c->page->now_ns;
		return 0;
	case REQUEST:
		c->requested = m.time_ns < FOREVER_NS;
		c->request_ns = m.time_ns;
		return answer(c, &m, 0);
	case GET:
		return answer(c, &m, c->now_ns);
	case UPDATE:
		c->now_ns = m.time_ns;
		return answer(c, &m, 0);
	case GET_TOD:
		return answer(c, &m, TIME_OF_DAY_NS);
	case ACK:
		return 0;
	case RUN:
	case FREE_UNTIL:
	case BROADCAST:
		break;
	}
	return -EPROTO;
}

static int send_op(struct calendar *c, enum op op, uint64_t time_ns) {
	struct calendar_message m = {.op = op, .seq = ++c->seq, .time_ns = time_ns};

	return socket_send(c->fd, &m, sizeof(m), NULL, 0);
}

void calendar_set(struct calendar *c, uint64_t now_ns) {
	c->now_ns = now_ns;
	if (has_page(c))
		c->page->now_ns = now_ns;
}

// Sends an order and serves the guest until it has acknowledged it.
static int order(struct calendar *c, enum op op, uint64_t time_ns) {
	uint32_t seq = c->seq + 1;
	int rc = send_op(c, op, time_ns);

	while (rc == 0) {
		struct calendar_message m;

		rc = socket_peek(c->fd, &m, sizeof(m));
		if (rc < 0)
			return rc;
		if (m.op == ACK && m.seq == seq)
			return calendar_serve(c);
		rc = calendar_serve(c);
	}
	return rc;
}

int calendar_run(struct calendar *c, uint64_t now_ns, uint64_t until_ns) {
	calendar_set(c, now_ns);
	c->waits = false;
	c->requested = false;
	if (has_page(c)) {
		c->page->free_until_ns = until_ns;
		return send_op(c, RUN, now_ns);
	}
	c->free_until_ns = until_ns;
	int rc = order(c, FREE_UNTIL, until_ns);
	return rc < 0 ? rc : send_op(c, RUN, now_ns);
}

int calendar_hurry(struct calendar *c, uint64_t until_ns) {
	if (has_page(c)) {
		if (until_ns < c->page->free_until_ns)
			c->page->free_until_ns = until_ns;
		return 0;
	}
	if (until_ns >= c->free_until_ns)
		return 0;
	c->free_until_ns = until_ns;
	return order(c, FREE_UNTIL, until_ns);
}

bool calendar_leave_messages(struct calendar *c) {
	if (!has_page(c))
		return false;
	c->page->active = PAGE_KERNEL;
	__atomic_store_n(&c->page->on, 1, __ATOMIC_RELEASE);
	return true;
}

bool calendar_uses_page(const struct calendar *c) {
	return c->page != NULL && c->page->on != 0;
}

int calendar_await(struct calendar *c) {
	int rc = socket_wait_word(&c->page->active, PAGE_KERNEL);

	if (rc < 0)
		return rc;
	c->waits = true;
	c->now_ns = c->page->now_ns;
	calendar_refresh(c);
	return 0;
}

void calendar_resume(struct calendar *c) {
	__atomic_store_n(&c->page->active, PAGE_KERNEL, __ATOMIC_RELEASE);
	socket_wake_word(&c->page->active);
}

uint64_t calendar_now(const struct calendar *c) {
	return has_page(c) ? c->page->now_ns : c->now_ns;
}

void calendar_close(struct calendar *c) {
	if (c->page != NULL)
		munmap(c->page, sizeof(*c->page));
	for (int *fd = (int[]){c->fd, c->listener, c->page_fd}, i = 0; i < 3; i++) {
		if (fd[i] >= 0)
			close(fd[i]);
	}
	*c = (struct calendar){.listener = -1, .fd = -1, .page_fd = -1};
}
