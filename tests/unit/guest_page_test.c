// SPDX-License-Identifier: BSD-3-Clause
// What is preloaded into a guest's kernel process (page.c), with this test as the kernel and as
// weir-sim: it answers the kernel's calls of the C library, and nothing is written to the sockets.
#include "test.h"
#include "tools/sim/guest/page.h"
#include "tools/sim/guest/protocol.h"
#include "tools/sim/guest/vhost.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static struct calendar_page *page;
static struct {
	int (*connect)(int, const struct sockaddr *, socklen_t);
	ssize_t (*read)(int, void *, size_t);
	ssize_t (*write)(int, const void *, size_t);
	int (*poll)(struct pollfd *, nfds_t, int);
	ssize_t (*sendmsg)(int, const struct msghdr *, int);
	int (*epoll_ctl)(int, int, int, struct epoll_event *);
	int (*epoll_wait)(int, struct epoll_event *, int, int);
	int (*sigaction)(int, const struct sigaction *, struct sigaction *);
} shim;

static void load(const char *name, void *to) {
	static void *library;

	if (library == NULL)
		library = dlopen(GUEST_SHIM, RTLD_NOW | RTLD_LOCAL);
	ck_assert_msg(library != NULL, "%s", dlerror());
	*(void **)to = dlsym(library, name);
	ck_assert(*(void **)to != NULL);
}

static void open_shim(void) {
	int fd = memfd_create("page", 0);
	char number[16];

	ck_assert_int_eq(ftruncate(fd, sizeof(*page)), 0);
	page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ck_assert_ptr_ne(page, MAP_FAILED);
	snprintf(number, sizeof(number), "%d", fd);
	setenv("WEIR_GUEST_PAGE", number, 1);
	load("connect", &shim.connect);
	load("read", &shim.read);
	load("write", &shim.write);
	load("poll", &shim.poll);
	load("sendmsg", &shim.sendmsg);
	load("epoll_ctl", &shim.epoll_ctl);
	load("epoll_wait", &shim.epoll_wait);
	load("sigaction", &shim.sigaction);
	page->on = 1;
	page->active = PAGE_KERNEL;
}

// A socket that the kernel has connected to a path of that ending; weir-sim's end of it.
static int connected(const char *ending, int *sim) {
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(at.sun_path, sizeof(at.sun_path), "/tmp/weir-guest-page-%d.%s", (int)getpid(),
		ending);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0);
	ck_assert_int_eq(listen(listener, 1), 0);
	ck_assert_int_eq(shim.connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	*sim = accept(listener, NULL, NULL);
	unlink(at.sun_path);
	close(listener);
	return fd;
}

static bool silent(int fd) {
	char c;

	return recv(fd, &c, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && errno == EAGAIN;
}

static ssize_t send_request(int fd, uint32_t request, uint32_t queue) {
	struct ring_message m = {{request, FLAG_VERSION | FLAG_NEED_REPLY, 8}, {queue, 0}};
	struct iovec v = {.iov_base = &m, .iov_len = sizeof(m)};

	return shim.sendmsg(fd, &(struct msghdr){.msg_iov = &v, .msg_iovlen = 1}, 0);
}

#define GUEST_BASE 0x10000u // guest-physical address of the memory below
#define MEMORY 65536u
enum { DESC = 0, AVAIL = 0x1000, USED = 0x2000, BUFFER = 0x4000, RING = 4 };
static uint8_t *memory;

static void send_set(int fd, uint32_t request, const void *payload, uint32_t size, int passed) {
	struct {
		struct header head;
		uint8_t bytes[64];
	} m = {{request, FLAG_VERSION, size}, {0}};
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec v = {.iov_base = &m, .iov_len = sizeof(m.head) + size};
	struct msghdr h = {.msg_iov = &v, .msg_iovlen = 1};

	memcpy(m.bytes, payload, size);
	if (passed >= 0) {
		h.msg_control = control.bytes;
		h.msg_controllen = sizeof(control.bytes);
		*CMSG_FIRSTHDR(&h) =
			(struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&h)), &passed, sizeof(int));
	}
	ck_assert_int_eq(shim.sendmsg(fd, &h, 0), (ssize_t)v.iov_len);
}

// The kernel says where its transmit ring is, which weir-sim hears, too.
static void set_up_ring(int card, int sim) {
	int file = memfd_create("memory", 0);
	struct regions table = {.count = 1, .region[0] = {.guest = GUEST_BASE, .size = MEMORY}};
	struct ring_address at = {.index = VHOST_TX,
		.desc = GUEST_BASE + DESC,
		.avail = GUEST_BASE + AVAIL,
		.used = GUEST_BASE + USED};
	char heard[256];

	ck_assert_int_eq(ftruncate(file, MEMORY), 0);
	memory = mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	ck_assert_ptr_ne(memory, MAP_FAILED);
	send_set(card, SET_MEM_TABLE, &table, 8 + sizeof(table.region[0]), file);
	send_set(card, SET_VRING_NUM, &(struct ring_state){VHOST_TX, RING}, 8, -1);
	send_set(card, SET_VRING_ADDR, &at, sizeof(at), -1);
	while (recv(sim, heard, sizeof(heard), MSG_DONTWAIT) > 0)
		;
}

static void make_available(uint32_t size) {
	struct {
		uint64_t at;
		uint32_t len;
		uint16_t flags, next;
	} desc = {GUEST_BASE + BUFFER, 12 + size, 0, 0};
	uint16_t *avail = (uint16_t *)(void *)(memory + AVAIL);

	memcpy(memory + DESC, &desc, sizeof(desc));
	avail[2 + avail[1] % RING] = 0;
	avail[1]++;
}

TEST(a_kick_is_acknowledged_and_its_frames_are_taken) {
	int sim, other, card, calendar;
	struct header h;
	uint64_t value = 1;

	open_shim();
	page->on = 0; // while it boots
	card = connected("card", &sim);
	calendar = connected("time", &other);
	set_up_ring(card, sim);
	for (int i = 0; i < 2; i++) // of which weir-sim has taken two frames, and given one back
		make_available(60);
	page->ring[VHOST_TX].taken = 2;
	page->ring[VHOST_TX].given = 1;
	page->on = 1;
	page->card.rate_bps = 1000000000;
	page->now_ns = 1000;
	page->free_until_ns = 90000;
	make_available(976); // 8 us at 1 Gbit/s
	for (uint32_t queue = VHOST_RX; queue <= VHOST_TX; queue++) {
		struct pollfd p[2] = {{card, POLLIN, 0}, {calendar, POLLIN, 0}};

		ck_assert_int_eq(send_request(card, VRING_KICK, queue), 20);
		ck_assert_int_eq(shim.poll(p, 2, 0), 1);
		ck_assert(p[0].revents == POLLIN && p[1].revents == 0);
		ck_assert_int_eq(shim.read(card, &h, sizeof(h)), sizeof(h));
		ck_assert(h.request == VRING_KICK && h.size == sizeof(value));
		ck_assert_uint_eq(h.flags, FLAG_VERSION | FLAG_REPLY);
		ck_assert_int_eq(shim.read(card, &value, sizeof(value)), sizeof(value));
		ck_assert_uint_eq(value, 0);
		// New receive buffers are no news; the clock stops when the frame has left.
		ck_assert_uint_eq(page->card.nb_out, queue == VHOST_TX);
		ck_assert_uint_eq(page->free_until_ns, queue == VHOST_TX ? 9000 : 90000);
	}
	ck_assert(page->card.out[0].time_ns == 9000 && page->card.out[0].size == 976);
	page->free_until_ns = 900; // it may not go on so far anyway
	send_request(card, VRING_KICK, VHOST_TX);
	ck_assert_uint_eq(page->free_until_ns, 900);
	ck_assert(silent(sim));
	page->on = 0; // as while it boots
	send_request(card, VRING_KICK, VHOST_TX);
	ck_assert(!silent(sim));
	shim.write(calendar, &(struct calendar_message){WAIT, 1, 0}, 16);
	ck_assert(!silent(other));
}

// The first byte of register xmm0, in its place of the extended state.
static uint8_t xmm0(long (*trace)(int, pid_t, void *, void *), pid_t pid, int write) {
	static uint8_t state[4096];
	struct iovec v = {state, sizeof(state)};

	ck_assert_int_eq(trace(PTRACE_GETREGSET, pid, (void *)NT_X86_XSTATE, &v), 0);
	if (write >= 0) {
		state[160] = (uint8_t)write;
		state[512] |= 2; // XSTATE_BV: SSE is not in its initial state
		ck_assert_int_eq(trace(PTRACE_SETREGSET, pid, (void *)NT_X86_XSTATE, &v), 0);
	}
	return state[160];
}

static long host_trace(int request, pid_t pid, void *address, void *data) {
	return syscall(SYS_ptrace, request, pid, address, data);
}

TEST(what_a_stopped_child_has_is_not_written_again) {
	long (*trace)(int, pid_t, void *, void *);
	pid_t pid = fork();
	uint8_t state[4096];
	struct iovec v = {state, sizeof(state)};

	if (pid == 0) {
		host_trace(PTRACE_TRACEME, 0, NULL, NULL);
		for (;;)
			raise(SIGSTOP);
	}
	load("ptrace", &trace);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	ck_assert_uint_eq(xmm0(trace, pid, 7), 7); // another value is written
	ck_assert_uint_eq(xmm0(host_trace, pid, -1), 7);
	ck_assert_int_eq(trace(PTRACE_GETREGSET, pid, (void *)NT_X86_XSTATE, &v), 0);
	xmm0(host_trace, pid, 9); // behind its back
	ck_assert_int_eq(trace(PTRACE_SETREGSET, pid, (void *)NT_X86_XSTATE, &v), 0);
	ck_assert_uint_eq(xmm0(host_trace, pid, -1), 9);
	ck_assert_int_eq(trace(PTRACE_SYSCALL, pid, NULL, NULL), 0); // it may have changed
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	ck_assert_int_eq(trace(PTRACE_SETREGSET, pid, (void *)NT_X86_XSTATE, &v), 0);
	ck_assert_uint_eq(xmm0(host_trace, pid, -1), 7);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static uint32_t nb_calls, called_queues;
static int calls_fd, poller;

// What the kernel does when it is interrupted: reads all calls, and asks for the present time.
static void on_interrupt(int number, siginfo_t *info, void *context) {
	struct epoll_event e;

	ck_assert_int_eq(number, SIGIO);
	while (shim.epoll_wait(poller, &e, 1, 0) == 1) {
		struct header h;
		struct ring_state s;

		ck_assert_uint_eq(e.data.u64, 77);
		while (shim.read(calls_fd, &h, sizeof(h)) == sizeof(h)) {
			ck_assert(h.request == BACKEND_VRING_CALL && h.size == sizeof(s));
			ck_assert_uint_eq(h.flags, FLAG_VERSION); // it need not answer
			ck_assert_int_eq(shim.read(calls_fd, &s, sizeof(s)), sizeof(s));
			nb_calls++;
			called_queues |= 1u << s.index;
		}
		ck_assert_int_eq(errno, EAGAIN);
	}
	page->client[PAGE_GUEST].flags = PAGE_WANTS_RUN;
	page->client[PAGE_GUEST].request_ns = page->now_ns;
}

static void await_kernel(void) {
	while (__atomic_load_n(&page->active, __ATOMIC_ACQUIRE) != PAGE_SIM)
		sched_yield();
}

static void resume(uint64_t end_ns) {
	page->end_ns = end_ns;
	__atomic_store_n(&page->active, PAGE_KERNEL, __ATOMIC_RELEASE);
	syscall(SYS_futex, &page->active, FUTEX_WAKE, 1, NULL, NULL, 0);
}

// The kernel has asked for 3000 first. At 4000 and 5000 a frame has left.
static void *simulate(void *arg) {
	await_kernel();
	ck_assert_uint_eq(page->waits, 1);
	resume(3000); // too early
	await_kernel();
	resume(3001);
	await_kernel();
	resume(6000);
	return NULL;
}

TEST(the_kernel_waits_until_it_is_to_run) {
	struct sigaction take = {.sa_sigaction = on_interrupt, .sa_flags = SA_SIGINFO};
	struct calendar_message wait = {WAIT, 1, 0}, run;
	struct epoll_event e = {.events = EPOLLIN, .data.u64 = 77};
	int sim, other, pair[2], calendar, card;
	pthread_t thread;

	open_shim();
	card = connected("card", &other);
	calendar = connected("time", &sim);
	poller = epoll_create1(0);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	calls_fd = pair[0];
	ck_assert_int_eq(shim.epoll_ctl(poller, EPOLL_CTL_ADD, calls_fd, &e), 0);
	send_request(card, SET_BACKEND_REQ_FD, 0);
	ck_assert_int_eq(shim.sigaction(SIGIO, &take, NULL), 0);
	set_up_ring(card, other);
	page->card.nb_sent = 2;
	page->card.sent[0].left_ns = 4000;
	page->card.sent[1].left_ns = 5000;
	page->client[PAGE_GUEST].flags = PAGE_WANTS_RUN;
	page->client[PAGE_GUEST].request_ns = 3000;
	page->end_ns = 2000;
	pthread_create(&thread, NULL, simulate, NULL);
	for (uint64_t t_ns = 3000; t_ns <= 5000; t_ns += 1000) {
		struct pollfd p = {calendar, POLLIN, 0};

		nb_calls = called_queues = 0;
		ck_assert_int_eq(shim.write(calendar, &wait, sizeof(wait)), sizeof(wait));
		ck_assert_int_eq(shim.poll(&p, 1, -1), 1);
		ck_assert_int_eq(p.revents, POLLIN);
		ck_assert_int_eq(shim.read(calendar, &run, sizeof(run)), sizeof(run));
		ck_assert(run.op == RUN && run.time_ns == t_ns);
		ck_assert_int_eq(shim.poll(&p, 1, 0), 0); // it runs, and no message waits
		ck_assert(page->waits == 0 && page->card.runs == t_ns / 1000 - 2);
		// Up to the next frame that has left, or the end.
		ck_assert_uint_eq(page->free_until_ns,
			t_ns == 3000	       ? 3001
				: t_ns == 4000 ? 5000
					       : 6000);
		ck_assert_uint_eq(nb_calls, t_ns > 3000);
		ck_assert_uint_eq(called_queues, t_ns > 3000 ? 1u << VHOST_TX : 0);
		page->client[PAGE_GUEST].flags = 0; // as Linux does when it runs
	}
	pthread_join(thread, NULL);
	ck_assert(silent(sim) && silent(pair[1]));
	ck_assert_int_eq(write(pair[1], "x", 1), 1);
	ck_assert_int_eq(shim.epoll_wait(poller, &e, 1, 0), 1); // outside of an interrupt as ever
}
