// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/guest/calendar.h"

#include "common/base/u64.h"
#include "tools/sim/guest/socket.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum op { ACK, START, REQUEST, WAIT, GET, UPDATE, RUN, FREE_UNTIL, GET_TOD, BROADCAST };

struct calendar_message {
	uint32_t op, seq;
	uint64_t time_ns;
};
static_assert(sizeof(struct calendar_message) == 16, "as on the wire");

#define PAGE_VERSION 2
#define GUEST_ID 1 // its place among the page's clients; 0 is ours
#define CAN_SHARE 1u // client.capa
#define WANTS_RUN 1u // client.flags
#define FOREVER_NS (UINT64_C(1) << 62) // what a guest asks for that has nothing to do
#define TIME_OF_DAY_NS UINT64_C(1000000000000000000) // 2001-09-09, for every run

struct calendar_page {
	uint32_t version, len;
	uint64_t free_until_ns, now_ns;
	uint16_t running, clients;
	char pad[4096 - 28];
	struct {
		uint32_t capa, flags;
		uint64_t request_ns, name;
		char pad[104];
	} client[2];
};
static_assert(offsetof(struct calendar_page, client) == 4096, "as the kernel has it");
static_assert(sizeof(struct calendar_page) == 4096 + 2 * 128, "as the kernel has it");

int calendar_open(struct calendar *c, const char *path, struct err *err) {
	*c = (struct calendar){
		.listener = -1, .fd = -1, .shared = getenv("WEIR_GUEST_MESSAGES") == NULL};
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
	struct calendar_message ack = {.op = ACK, .seq = m->seq, .time_ns = GUEST_ID};
	int fds[2] = {memfd_create("weir-calendar", MFD_CLOEXEC), -1};
	int rc = -ENOMEM;

	fds[1] = memfd_create("weir-log", MFD_CLOEXEC);
	if (fds[0] >= 0 && fds[1] >= 0 && ftruncate(fds[0], sizeof(*c->page)) == 0) {
		void *at =
			mmap(NULL, sizeof(*c->page), PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);

		if (at != MAP_FAILED) {
			c->page = at;
			c->page->version = PAGE_VERSION;
			c->page->len = sizeof(*c->page);
			c->page->running = GUEST_ID;
			c->page->clients = 2;
			rc = socket_send(c->fd, &ack, sizeof(ack), fds, 2);
		}
	}
	for (int i = 0; i < 2; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
	}
	return rc;
}

// Whether the guest has taken the page; an older kernel does not know it.
static bool has_page(const struct calendar *c) {
	return c->page != NULL
		&& (__atomic_load_n(&c->page->client[GUEST_ID].capa, __ATOMIC_ACQUIRE) & CAN_SHARE)
		!= 0;
}

void calendar_refresh(struct calendar *c) {
	if (!has_page(c))
		return;
	c->requested = (c->page->client[GUEST_ID].flags & WANTS_RUN) != 0;
	c->request_ns = c->page->client[GUEST_ID].request_ns;
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

uint64_t calendar_now(const struct calendar *c) {
	return has_page(c) ? c->page->now_ns : c->now_ns;
}

void calendar_close(struct calendar *c) {
	if (c->page != NULL)
		munmap(c->page, sizeof(*c->page));
	if (c->fd >= 0)
		close(c->fd);
	if (c->listener >= 0)
		close(c->listener);
	*c = (struct calendar){.listener = -1, .fd = -1};
}
