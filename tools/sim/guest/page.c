// SPDX-License-Identifier: BSD-3-Clause
// Preloaded into a guest's kernel process: what the kernel asks of its calendar and its card is
// answered here, in the process, once weir-sim has set `on` in the page (page.h). Each message
// would cost four system calls and two context switches.
//
//	write of WAIT to the calendar       nothing
//	poll of it, for RUN                 the clock goes on to what is next: frames arrive, have
//	                                    left, or the kernel wants to run; weir-sim is active
//	                                    only when nothing is left before `end_ns`
//	sendmsg of a kick to the card       the card takes the frames
//	sendmsg of the rings' places        our own view of them is set up, too
//	poll, read                          RUN, and the card's acknowledgement
//	SIGIO, epoll_wait, read             of an interrupt: its handler is called, and reads the
//	                                    card's call
#include "tools/sim/guest/page.h"
#include "common/base/ns.h"
#include "tools/sim/guest/protocol.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <ucontext.h>
#include <unistd.h>

#define STREAMS 3

// Bytes that the kernel is about to read from a socket.
struct stream {
	int fd; // -1: not known yet
	uint32_t at, size;
	uint8_t bytes[2 * sizeof(struct ring_message)];
};

static struct calendar_page *page;
static struct stream calendar = {.fd = -1}, card = {.fd = -1}, calls = {.fd = -1};
static struct vhost rings; // as weir-sim has them while the kernel boots
static bool waits; // the kernel has said so
static bool interrupted; // its handler of SIGIO is running
static int added_fd = -1; // the last descriptor that epoll_wait was told of
static struct epoll_event added, called; // what it is to say of that, and of calls.fd
static void (*handler)(int, siginfo_t *, void *); // of SIGIO

// The first time, the card is where weir-sim has left it.
static bool on(void) {
	static bool begun;

	if (page == NULL || __atomic_load_n(&page->on, __ATOMIC_ACQUIRE) == 0)
		return false;
	for (uint32_t i = 0; !begun && i < VHOST_QUEUES; i++) {
		rings.ring[i].taken = page->ring[i].taken;
		rings.ring[i].given = page->ring[i].given;
	}
	begun = true;
	return true;
}

static void put(struct stream *s, const void *bytes, uint32_t size) {
	if (s->at == s->size)
		s->at = s->size = 0;
	assert(s->size + size <= sizeof(s->bytes)); // the kernel reads all before it asks again
	memcpy(s->bytes + s->size, bytes, size);
	s->size += size;
}

static void suspend(void) {
	__atomic_store_n(&page->active, PAGE_SIM, __ATOMIC_RELEASE);
	syscall(SYS_futex, &page->active, FUTEX_WAKE, 1, NULL, NULL, 0);
	while (__atomic_load_n(&page->active, __ATOMIC_ACQUIRE) == PAGE_SIM)
		syscall(SYS_futex, &page->active, FUTEX_WAIT, PAGE_SIM, NULL, NULL, 0);
}

// Its handler reads all calls that there are, and asks for the present time.
static void interrupt(uint32_t queues) {
	static siginfo_t info;
	static ucontext_t context; // looked at only for other signals

	for (uint32_t i = 0; i < VHOST_QUEUES; i++) {
		struct ring_message m = {
			{BACKEND_VRING_CALL, FLAG_VERSION, sizeof(m.state)}, {i, 0}};

		if ((queues & 1u << i) != 0)
			put(&calls, &m, sizeof(m));
	}
	interrupted = true;
	handler(SIGIO, &info, &context);
	interrupted = false;
}

static uint64_t asked_ns(void) {
	return (page->client[PAGE_GUEST].flags & PAGE_WANTS_RUN) == 0
		? NEVER_NS
		: page->client[PAGE_GUEST].request_ns;
}

static void wait_for_run(void) {
	struct calendar_message run = {.op = RUN};
	struct card *c = &page->card;

	do {
		uint64_t next_ns;

		while ((next_ns = time_min(asked_ns(), card_interrupt_ns(c))) >= page->end_ns
			|| rings.bad || card_is_stuck(c)) {
			page->waits = 1;
			page->bad = rings.bad;
			suspend();
			page->waits = 0;
		}
		page->now_ns = time_max(page->now_ns, next_ns);
		uint32_t queues = card_serve(c, &rings, page->now_ns);
		if (queues != 0)
			interrupt(queues);
	} while (asked_ns() > page->now_ns);
	c->runs++;
	page->free_until_ns = time_min(page->end_ns, card_interrupt_ns(c));
	waits = false;
	run.time_ns = page->now_ns;
	put(&calendar, &run, sizeof(run));
}

// The kernel has just written its time into the page.
static void kick(uint32_t queue) {
	const struct {
		struct header head;
		uint32_t value[2];
	} ack = {{VRING_KICK, FLAG_VERSION | FLAG_REPLY, sizeof(ack.value)}, {0, 0}};

	put(&card, &ack, sizeof(ack));
	while (queue == VHOST_TX && !card_transmit(&page->card, &rings, page->now_ns))
		suspend();
	page->free_until_ns = time_min(page->free_until_ns, card_completion_ns(&page->card));
}

// What the kernel says of its rings is for us as for weir-sim; descriptors are of its memory.
static void watch(const struct msghdr *m) {
	const struct header *h = m->msg_iov[0].iov_base;
	struct cmsghdr *passed = CMSG_FIRSTHDR(m);
	union payload p = {0};
	int fds[VHOST_REGIONS] = {-1, -1};

	if (h->request != SET_MEM_TABLE && h->request != SET_VRING_NUM
		&& h->request != SET_VRING_ADDR)
		return;
	memcpy(&p, h + 1, h->size < sizeof(p) ? h->size : sizeof(p));
	if (passed != NULL)
		memcpy(fds, CMSG_DATA(passed),
			time_min(passed->cmsg_len - CMSG_LEN(0), sizeof(fds)));
	if (vhost_set(&rings, h, &p, fds) < 0)
		rings.bad = true;
}

int connect(int fd, __CONST_SOCKADDR_ARG to, socklen_t size) {
	const char *path = ((const struct sockaddr_un *)(const void *)to.__sockaddr__)->sun_path;
	const char *dot = to.__sockaddr__->sa_family == AF_UNIX ? strchr(path, '.') : NULL;

	if (dot != NULL && strcmp(dot, ".time") == 0)
		calendar.fd = fd;
	else if (dot != NULL && strcmp(dot, ".card") == 0)
		card.fd = fd;
	return (int)syscall(SYS_connect, fd, to.__sockaddr__, size);
}

ssize_t write(int fd, const void *bytes, size_t size) {
	const struct calendar_message *m = bytes;

	if (fd == calendar.fd && size == sizeof(*m) && m->op == WAIT && on()) {
		waits = true;
		return sizeof(*m);
	}
	return syscall(SYS_write, fd, bytes, size);
}

ssize_t read(int fd, void *bytes, size_t size) {
	struct stream *const all[STREAMS] = {&calendar, &card, &calls};

	for (int i = 0; i < STREAMS; i++) {
		struct stream *s = all[i];
		uint32_t n = s->size - s->at;

		if (fd != s->fd || n == 0)
			continue;
		n = size < n ? (uint32_t)size : n;
		memcpy(bytes, s->bytes + s->at, n);
		s->at += n;
		return n;
	}
	if (interrupted && fd == calls.fd) {
		errno = EAGAIN;
		return -1;
	}
	return syscall(SYS_read, fd, bytes, size);
}

// Under another name here, since the libc's header says of poll that it only writes to `fds`.
int answer_poll(struct pollfd *fds, nfds_t n, int timeout) __asm__("poll");
int answer_poll(struct pollfd *fds, nfds_t n, int timeout) {
	if (n > 0 && fds[0].fd == calendar.fd && waits)
		wait_for_run();
	else if (n == 0 || fds[0].fd != card.fd || card.at == card.size)
		return (int)syscall(SYS_poll, fds, n, timeout);
	for (nfds_t i = 0; i < n; i++)
		fds[i].revents = i == 0 ? POLLIN : 0;
	return 1;
}

ssize_t sendmsg(int fd, const struct msghdr *m, int flags) {
	const struct ring_message *sent = m->msg_iov[0].iov_base;

	if (fd == card.fd && sent->head.request == SET_BACKEND_REQ_FD) {
		calls.fd = added_fd;
		called = added;
	}
	if (fd == card.fd && page != NULL)
		watch(m);
	if (fd == card.fd && sent->head.request == VRING_KICK && on()) {
		kick(sent->state.index);
		return (ssize_t)m->msg_iov[0].iov_len;
	}
	return syscall(SYS_sendmsg, fd, m, flags);
}

int epoll_ctl(int poller, int op, int fd, struct epoll_event *event) {
	if (op == EPOLL_CTL_ADD) {
		added = *event;
		added_fd = fd;
	}
	return (int)syscall(SYS_epoll_ctl, poller, op, fd, event);
}

int epoll_wait(int poller, struct epoll_event *events, int n, int timeout) {
	if (!interrupted)
		return (int)syscall(SYS_epoll_wait, poller, events, n, timeout);
	if (calls.at == calls.size)
		return 0;
	events[0] = (struct epoll_event){.events = EPOLLIN, .data = called.data};
	return 1;
}

int sigaction(int number, const struct sigaction *new, struct sigaction *old) {
	static int (*host)(int, const struct sigaction *, struct sigaction *);

	if (host == NULL)
		*(void **)&host = dlsym(RTLD_NEXT, "sigaction");
	if (number == SIGIO && new != NULL)
		handler = new->sa_sigaction;
	return host(number, new, old);
}

__attribute__((constructor)) static void open_page(void) {
	const char *fd = getenv("WEIR_GUEST_PAGE");
	void *at = fd == NULL
		? MAP_FAILED
		: mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, atoi(fd), 0);

	if (at == MAP_FAILED)
		return;
	page = at;
	close(atoi(fd));
}
