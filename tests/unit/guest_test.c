// SPDX-License-Identifier: BSD-3-Clause
// A guest's clock and card, with this test as the guest's kernel: messages as Linux sends them
// (include/uapi/linux/um_timetravel.h, arch/um/drivers/vhost_user.h) and a split virtqueue (virtio
// 1.1, section 2.6).
#include "common/base/ns.h"
#include "test.h"
#include "tools/sim/guest/calendar.h"
#include "tools/sim/guest/message.h"
#include "tools/sim/guest/page.h"
#include "tools/sim/guest/socket.h"
#include "tools/sim/guest/vhost.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/weir-guest-test-XXXXXX";

// A test runs in a process of its own, and makes the folder when it needs it.
static void path_of(const char *name, char path[static 108]) {
	if (strstr(folder, "XXXXXX") != NULL)
		ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, 108, "%s/%s", folder, name);
}

static void remove_folder(const char *name) {
	char path[108];

	path_of(name, path);
	unlink(path);
	rmdir(folder);
	memcpy(folder + strlen(folder) - 6, "XXXXXX", 6);
}

static int connect_to(const char *path) {
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	ck_assert_uint_lt(strlen(path), sizeof(at.sun_path));
	memcpy(at.sun_path, path, strlen(path));
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

static void send_all(int fd, const void *bytes, size_t size, const int *passed) {
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {0};
	struct iovec v = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = size};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};

	if (passed != NULL) {
		m.msg_control = control.bytes;
		m.msg_controllen = sizeof(control.bytes);
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);

		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), passed, sizeof(int));
	}
	ck_assert_int_eq(sendmsg(fd, &m, 0), (ssize_t)size);
}

// The calendar.

struct tt {
	uint32_t op, seq;
	uint64_t ns;
};
enum { ACK, START, REQUEST, WAIT, GET, UPDATE, RUN, FREE_UNTIL, GET_TOD };

static struct tt heard(int fd) {
	struct tt m;

	ck_assert_int_eq(recv(fd, &m, sizeof(m), MSG_DONTWAIT), sizeof(m));
	return m;
}

static bool silent(int fd) {
	char c;

	return recv(fd, &c, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && errno == EAGAIN;
}

// Sends one message and has it served; its acknowledgement, where there must be one.
static uint64_t say(struct calendar *c, int fd, uint32_t op, uint64_t ns) {
	static uint32_t seq;
	struct tt m = {op, ++seq, ns}, ack;

	send_all(fd, &m, sizeof(m), NULL);
	ck_assert_int_eq(calendar_serve(c), 0);
	ack = heard(fd);
	ck_assert_uint_eq(ack.op, ACK);
	ck_assert_uint_eq(ack.seq, seq);
	return ack.ns;
}

static int open_calendar(struct calendar *c, bool shared) {
	struct err err;
	char path[108];
	int fd;

	path_of("time", path);
	ck_assert_int_eq(calendar_open(c, path, &err), 0);
	c->shared = shared;
	ck_assert(!calendar_accept(c));
	fd = connect_to(path);
	ck_assert(calendar_accept(c));
	return fd;
}

TEST(messages_are_acknowledged_and_carry_the_time) {
	struct calendar c;
	int fd = open_calendar(&c, false);

	say(&c, fd, START, 7);
	say(&c, fd, REQUEST, 1000);
	ck_assert(!c.waits);
	say(&c, fd, WAIT, UINT64_MAX);
	ck_assert(c.waits && c.requested);
	ck_assert_uint_eq(c.request_ns, 1000);
	calendar_set(&c, 400);
	ck_assert_uint_eq(say(&c, fd, GET, 0), 400);
	say(&c, fd, UPDATE, 600);
	ck_assert_uint_eq(calendar_now(&c), 600);
	say(&c, fd, REQUEST, (uint64_t)INT64_MAX); // it will sleep for ever
	ck_assert(!c.requested);
	ck_assert_uint_eq(say(&c, fd, GET_TOD, 0), say(&c, fd, GET_TOD, 0));
	close(fd);
	ck_assert_int_eq(calendar_serve(&c), -EPIPE);
	calendar_close(&c);
	remove_folder("time");
}

// Linux waits for FREE_UNTIL to be read before it goes on: the acknowledgement stands behind its
// own request.
TEST(an_order_is_served_until_it_is_acknowledged) {
	struct calendar c;
	int fd = open_calendar(&c, false);
	struct tt request = {REQUEST, 1, 3000}, ack = {ACK, 1, 0}; // both count from 1

	say(&c, fd, WAIT, 0);
	send_all(fd, &request, sizeof(request), NULL);
	send_all(fd, &ack, sizeof(ack), NULL);
	ck_assert_int_eq(calendar_run(&c, 1000, 2000), 0);
	struct tt first = heard(fd), second = heard(fd), third = heard(fd);
	ck_assert(first.op == FREE_UNTIL && first.ns == 2000);
	ck_assert(second.op == ACK && second.seq == 1);
	ck_assert(third.op == RUN && third.ns == 1000);
	ck_assert(!c.waits && silent(c.fd)); // all that the guest has said was read
	// Only an earlier time is news for a running guest.
	ck_assert_int_eq(calendar_hurry(&c, 2000), 0);
	ck_assert(silent(fd));
	close(fd);
	calendar_close(&c);
	remove_folder("time");
}

struct page {
	uint32_t version, len;
	uint64_t free_until, now;
	uint16_t running, clients;
};
struct client {
	uint32_t capa, flags;
	uint64_t req;
};

TEST(the_page_of_shared_memory_replaces_messages) {
	struct calendar c;
	int fd = open_calendar(&c, true), fds[2];
	struct tt m = {START, 1, 0};
	union {
		char bytes[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec v = {.iov_base = &m, .iov_len = sizeof(m)};
	struct msghdr h = {.msg_iov = &v,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes)};

	send_all(fd, &m, sizeof(m), NULL);
	ck_assert_int_eq(calendar_serve(&c), 0);
	ck_assert_int_eq(recvmsg(fd, &h, 0), sizeof(m));
	ck_assert(m.op == ACK && m.ns == 1); // our place among the clients
	memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&h)), sizeof(fds));
	char *at = mmap(NULL, 4096 + 256, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
	ck_assert_ptr_ne(at, MAP_FAILED);
	struct page *p = (struct page *)(void *)at;
	struct client *us = (struct client *)(void *)(at + 4096 + 128);
	ck_assert_uint_eq(p->version, 2);
	ck_assert_uint_eq(p->len, 4096 + 2 * 128);
	ck_assert(p->running == 1 && p->clients == 2);

	us->capa = 1;
	us->flags = 1;
	us->req = 5000;
	p->now = 4000;
	send_all(fd, &(struct tt){WAIT, 2, 0}, sizeof(struct tt), NULL);
	ck_assert_int_eq(calendar_serve(&c), 0);
	ck_assert(silent(fd)); // WAIT is not acknowledged
	ck_assert(c.waits && c.requested);
	ck_assert(c.request_ns == 5000 && c.now_ns == 4000);
	calendar_set(&c, 4500);
	ck_assert_uint_eq(p->now, 4500);
	us->req = 4500; // an interrupt came
	calendar_refresh(&c);
	ck_assert_uint_eq(c.request_ns, 4500);
	ck_assert_int_eq(calendar_run(&c, 4500, 9000), 0);
	m = heard(fd);
	ck_assert(m.op == RUN && m.ns == 4500);
	ck_assert(p->free_until == 9000 && p->now == 4500 && !c.requested);
	calendar_hurry(&c, 9500);
	ck_assert_uint_eq(p->free_until, 9000);
	calendar_hurry(&c, 8000);
	ck_assert_uint_eq(p->free_until, 8000);
	munmap(at, 4096 + 256);
	close(fds[0]);
	close(fds[1]);
	close(fd);
	calendar_close(&c);
	remove_folder("time");
}

// What the preload does in a guest's process: is resumed, runs, asks for a time, waits.
static void *run_as_kernel(void *arg) {
	struct calendar_page *p = arg;

	while (__atomic_load_n(&p->active, __ATOMIC_ACQUIRE) != PAGE_KERNEL)
		sched_yield();
	p->now_ns = p->end_ns - 1;
	p->client[PAGE_GUEST].request_ns = 2 * p->end_ns;
	p->client[PAGE_GUEST].flags = PAGE_WANTS_RUN;
	__atomic_store_n(&p->active, PAGE_SIM, __ATOMIC_RELEASE);
	syscall(SYS_futex, &p->active, FUTEX_WAKE, 1, NULL, NULL, 0);
	return NULL;
}

TEST(sides_alternate_without_messages) {
	struct calendar c;
	int fd = open_calendar(&c, true);
	pthread_t kernel;

	ck_assert(!calendar_leave_messages(&c)); // it has not taken the page
	ck_assert(!calendar_uses_page(&c));
	c.page->client[PAGE_GUEST].capa = PAGE_CAN_SHARE;
	ck_assert(calendar_leave_messages(&c));
	ck_assert(calendar_uses_page(&c));
	c.page->active = PAGE_SIM; // it waits
	ck_assert_int_eq(calendar_await(&c), 0);
	for (uint64_t end_ns = 1000; end_ns <= 2000; end_ns += 1000) {
		pthread_create(&kernel, NULL, run_as_kernel, c.page);
		c.page->end_ns = end_ns;
		calendar_resume(&c);
		ck_assert_int_eq(calendar_await(&c), 0);
		pthread_join(kernel, NULL);
		ck_assert(c.waits && c.requested);
		ck_assert_uint_eq(c.request_ns, 2 * end_ns);
		ck_assert_uint_eq(c.now_ns, end_ns - 1);
	}
	ck_assert(silent(fd));
	close(fd);
	calendar_close(&c);
	remove_folder("time");
}

// A guest that dies never waits again.
TEST(the_end_of_a_guest_ends_the_wait_for_it) {
	struct calendar c;
	int fd = open_calendar(&c, true);
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	socket_watch(pid);
	c.page->client[PAGE_GUEST].capa = PAGE_CAN_SHARE;
	ck_assert(calendar_leave_messages(&c));
	calendar_resume(&c);
	ck_assert_int_eq(calendar_await(&c), -EPIPE);
	socket_watch(0);
	waitpid(pid, NULL, 0);
	close(fd);
	calendar_close(&c);
	remove_folder("time");
}

// The card.

#define GUEST_BASE 0x10000u // guest-physical address of the memory below
#define MEMORY 65536u
#define SKIP (4096u + 512u) // of the file: memory begins there, not at a page
enum { DESC = 0, AVAIL = 0x1000, USED = 0x2000, BUFFER = 0x4000, RING = 4 };
struct desc {
	uint64_t at;
	uint32_t len;
	uint16_t flags, next;
};
enum { NEXT = 1, WRITE = 2 };

struct driver {
	struct vhost v;
	int fd, file;
	uint8_t *memory;
};

static uint64_t request(struct driver *d, uint32_t kind, const void *bytes, uint32_t size,
	const int *passed, int rc) {
	struct {
		uint32_t kind, flags, size;
		uint8_t bytes[128];
	} m = {kind, 1 | 8, size, {0}};
	struct __attribute__((packed)) {
		uint32_t kind, flags, size;
		uint64_t value;
	} answer = {0};

	if (size > 0)
		memcpy(m.bytes, bytes, size);
	send_all(d->fd, &m, 12 + size, passed);
	ck_assert_int_eq(vhost_serve(&d->v), rc);
	if (rc == 0) {
		ck_assert_int_eq(
			recv(d->fd, &answer, sizeof(answer), MSG_DONTWAIT), sizeof(answer));
		ck_assert_uint_eq(answer.kind, kind);
		ck_assert_uint_eq(answer.flags, 1 | 4);
	}
	return answer.value;
}

// Rings of four, of both queues at the same place: only one is used in a test.
static void open_driver(struct driver *d, uint32_t queue) {
	static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};
	struct {
		uint32_t count, pad;
		uint64_t guest, size, user, offset;
	} table = {1, 0, GUEST_BASE, MEMORY, GUEST_BASE, SKIP};
	struct {
		uint32_t index, flags;
		uint64_t desc, used, avail, log;
	} address = {queue, 0, GUEST_BASE + DESC, GUEST_BASE + USED, GUEST_BASE + AVAIL, 0};
	uint64_t features, none = 0;
	struct err err;
	char path[108];

	path_of("card", path);
	ck_assert_int_eq(vhost_open(&d->v, path, mac, &err), 0);
	d->fd = connect_to(path);
	ck_assert(vhost_accept(&d->v));
	features = request(d, 1, NULL, 0, NULL, 0);
	ck_assert((features & UINT64_C(1) << 32) != 0 && (features & 1 << 5) != 0);
	ck_assert_uint_eq(features & 0x7f80, 0); // no offloads: TSO, UFO, ECN
	request(d, 3, &none, 0, NULL, 0);
	d->file = memfd_create("memory", 0);
	ck_assert_int_eq(ftruncate(d->file, SKIP + MEMORY), 0);
	d->memory =
		(uint8_t *)mmap(NULL, SKIP + MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, d->file, 0)
		+ SKIP;
	request(d, 5, &table, sizeof(table), &d->file, 0);
	request(d, 8, (uint32_t[]){queue, RING}, 8, NULL, 0);
	request(d, 9, &address, sizeof(address), NULL, 0);
}

static void close_driver(struct driver *d) {
	munmap(d->memory - SKIP, SKIP + MEMORY);
	close(d->file);
	close(d->fd);
	vhost_close(&d->v);
	remove_folder("card");
}

static void put_desc(
	struct driver *d, uint32_t i, uint32_t at, uint32_t len, uint16_t flags, uint16_t next) {
	((struct desc *)(void *)(d->memory + DESC))[i] =
		(struct desc){GUEST_BASE + at, len, flags, next};
}

static void make_available(struct driver *d, uint16_t head) {
	uint16_t *avail = (uint16_t *)(void *)(d->memory + AVAIL);

	avail[2 + avail[1] % RING] = head;
	avail[1]++;
}

static uint16_t nb_used(const struct driver *d) {
	return ((const uint16_t *)(const void *)(d->memory + USED))[1];
}

static const uint32_t *used(const struct driver *d, uint32_t i) {
	return (const uint32_t *)(const void *)(d->memory + USED + 4 + 8 * (i % RING));
}

TEST(a_transmitted_frame_is_all_buffers_behind_the_header) {
	struct driver d;
	uint8_t frame[2000];
	uint16_t head;

	open_driver(&d, VHOST_TX);
	ck_assert_uint_eq(vhost_transmitted(&d.v, frame, sizeof(frame), &head), 0);
	// The header and two bytes, then the rest; six times, so that both rings wrap.
	for (uint16_t n = 0; n < 6; n++) {
		for (uint32_t i = 0; i < 114; i++)
			d.memory[BUFFER + i] = (uint8_t)(i + n);
		put_desc(&d, 1, BUFFER, 50, 0, 0); // another frame's
		put_desc(&d, 2, BUFFER, 14, NEXT, 3);
		put_desc(&d, 3, BUFFER + 14, 100, 0, 1);
		make_available(&d, 2);
		ck_assert_uint_eq(vhost_transmitted(&d.v, frame, sizeof(frame), &head), 102);
		ck_assert_uint_eq(head, 2);
		ck_assert_int_eq(memcmp(frame, d.memory + BUFFER + 12, 102), 0);
		ck_assert_uint_eq(nb_used(&d), n);
		memset(d.memory + USED + 4, 0xff, 8 * RING);
		vhost_done(&d.v, head);
		ck_assert_uint_eq(nb_used(&d), n + 1);
		ck_assert_uint_eq(used(&d, n)[0], 2);
	}
	ck_assert(!d.v.bad);
	close_driver(&d);
}

TEST(a_received_frame_has_a_header_and_needs_a_buffer) {
	struct driver d;
	uint8_t frame[60];

	memset(frame, 0xab, sizeof(frame));
	open_driver(&d, VHOST_RX);
	ck_assert(!vhost_receive(&d.v, frame, sizeof(frame)));
	put_desc(&d, 0, BUFFER, 12, NEXT | WRITE, 1);
	put_desc(&d, 1, BUFFER + 64, 1514, WRITE, 0);
	make_available(&d, 0);
	ck_assert(vhost_receive(&d.v, frame, sizeof(frame)));
	ck_assert_int_eq(memcmp(d.memory + BUFFER + 64, frame, sizeof(frame)), 0);
	ck_assert_int_eq(memcmp(d.memory + BUFFER, "\0\0\0\0\0\0\0\0\0\0\1\0", 12), 0);
	ck_assert(nb_used(&d) == 1 && used(&d, 0)[0] == 0 && used(&d, 0)[1] == 72);
	ck_assert(!vhost_receive(&d.v, frame, sizeof(frame)));
	ck_assert(!d.v.bad);
	ck_assert(vhost_wants_call(&d.v, VHOST_RX));
	((uint16_t *)(void *)(d.memory + AVAIL))[0] = 1; // VIRTQ_AVAIL_F_NO_INTERRUPT
	ck_assert(!vhost_wants_call(&d.v, VHOST_RX));
	close_driver(&d);
}

TEST(rings_that_no_driver_makes_end_the_guest) {
	struct driver d;
	uint8_t frame[60] = {0};
	uint16_t head;
	struct {
		uint32_t index, flags;
		uint64_t desc, used, avail, log;
	} outside = {VHOST_TX, 0, GUEST_BASE + MEMORY - 8, GUEST_BASE, GUEST_BASE, 0};

	open_driver(&d, VHOST_TX);
	put_desc(&d, 0, BUFFER, 20, NEXT, 0); // a loop
	make_available(&d, 0);
	ck_assert_uint_le(vhost_transmitted(&d.v, frame, sizeof(frame), &head), sizeof(frame));
	make_available(&d, RING); // no such descriptor
	ck_assert_uint_eq(vhost_transmitted(&d.v, frame, sizeof(frame), &head), 0);
	ck_assert(d.v.bad);
	d.v.bad = false;
	request(&d, 9, &outside, sizeof(outside), NULL, -EPROTO);
	close_driver(&d);

	open_driver(&d, VHOST_RX);
	put_desc(&d, 0, BUFFER, 1526, 0, 0); // not for writing
	make_available(&d, 0);
	vhost_receive(&d.v, frame, sizeof(frame));
	ck_assert(d.v.bad);
	close_driver(&d);

	open_driver(&d, VHOST_RX);
	put_desc(&d, 0, MEMORY - 16, 1526, WRITE, 0); // beyond the memory
	make_available(&d, 0);
	vhost_receive(&d.v, frame, sizeof(frame));
	ck_assert(d.v.bad);
	close_driver(&d);
}

static void transmit_one(struct driver *d, uint32_t size) {
	put_desc(d, 0, BUFFER, 12 + size, 0, 0);
	make_available(d, 0);
}

// At 1 Gbit/s a frame of 976 bytes needs 8 us with FCS, preamble and gap.
TEST(frames_leave_the_card_one_after_the_other) {
	static struct card c;
	struct driver d;

	open_driver(&d, VHOST_TX);
	c.rate_bps = 1000000000;
	ck_assert(card_interrupt_ns(&c) == NEVER_NS && card_completion_ns(&c) == NEVER_NS);
	transmit_one(&d, 976);
	ck_assert(card_transmit(&c, &d.v, 10000));
	transmit_one(&d, 976);
	ck_assert(card_transmit(&c, &d.v, 11500));
	d.memory[BUFFER + 12 + 12] = MESSAGE_ETHERTYPE >> 8; // takes no time, and leaves in order
	d.memory[BUFFER + 12 + 13] = MESSAGE_ETHERTYPE & 0xff;
	transmit_one(&d, 100);
	ck_assert(card_transmit(&c, &d.v, 12000));
	ck_assert_uint_eq(c.nb_out, 3);
	ck_assert(c.out[0].time_ns == 18000 && c.out[1].time_ns == 26000);
	ck_assert(c.out[2].time_ns == 12000 && card_is_message(&c.out[2]));
	ck_assert(!card_is_message(&c.out[1]) && c.out[1].size == 976);
	ck_assert_uint_eq(card_interrupt_ns(&c), 18000);
	ck_assert_uint_eq(card_serve(&c, &d.v, 17999), 0);
	ck_assert_uint_eq(nb_used(&d), 0);
	ck_assert_uint_eq(card_serve(&c, &d.v, 18000), 1u << VHOST_TX);
	ck_assert_uint_eq(nb_used(&d), 1);
	ck_assert_uint_eq(card_serve(&c, &d.v, 26000), 1u << VHOST_TX);
	ck_assert_uint_eq(nb_used(&d), 3);
	ck_assert(card_completion_ns(&c) == NEVER_NS && c.interrupts == 2);
	c.nb_out = CARD_OUT - 1; // weir-sim has not taken the others
	transmit_one(&d, 60);
	transmit_one(&d, 60);
	ck_assert(!card_transmit(&c, &d.v, 30000));
	c.nb_out = 0;
	ck_assert(card_transmit(&c, &d.v, 30000));
	ck_assert_uint_eq(c.nb_out, 1);
	close_driver(&d);
}

TEST(frames_arrive_at_their_times_and_wait_for_buffers) {
	static struct card c = {.coalesce_ns = 50000};
	struct driver d;

	open_driver(&d, VHOST_RX);
	c.first_in = CARD_IN - 1; // they go round
	for (uint32_t i = 0; i < 3; i++, c.nb_in++) {
		struct card_frame *f = &c.in[(c.first_in + i) % CARD_IN];

		f->time_ns = 1000 * (i + 1);
		f->size = 60;
	}
	put_desc(&d, 0, BUFFER, 1526, WRITE, 0);
	make_available(&d, 0);
	ck_assert_uint_eq(card_interrupt_ns(&c), 1000);
	ck_assert_uint_eq(card_serve(&c, &d.v, 1000), 1u << VHOST_RX);
	ck_assert(c.rx == 1 && c.nb_in == 2 && c.first_in == 0);
	ck_assert_uint_eq(card_interrupt_ns(&c), 51000);
	ck_assert_uint_eq(card_serve(&c, &d.v, 2000), 0);
	for (uint32_t i = 0; i < 100; i++) { // no buffer
		ck_assert(card_is_stuck(&c) == (i > 65));
		ck_assert_uint_eq(card_serve(&c, &d.v, 51000), 0);
	}
	make_available(&d, 0);
	make_available(&d, 0);
	ck_assert_uint_eq(card_serve(&c, &d.v, 51000), 1u << VHOST_RX);
	ck_assert(c.rx == 3 && c.nb_in == 0 && !card_is_stuck(&c));
	ck_assert_uint_eq(card_interrupt_ns(&c), NEVER_NS);
	close_driver(&d);
}

TEST(an_interrupt_is_a_message_that_is_answered) {
	struct driver d;
	int pair[2];
	struct {
		uint32_t kind, flags, size, index, num;
	} call;
	uint32_t answer[5] = {4, 1 | 4, 8, 0, 0};

	open_driver(&d, VHOST_RX);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	request(&d, 21, NULL, 0, &pair[1], 0);
	close(pair[1]);
	ck_assert_int_eq(vhost_call(&d.v, VHOST_RX), 0);
	ck_assert_int_eq(recv(pair[0], &call, sizeof(call), MSG_DONTWAIT), sizeof(call));
	ck_assert(call.kind == 4 && call.flags == (1 | 8) && call.size == 8 && call.index == 0);
	send_all(pair[0], answer, sizeof(answer), NULL);
	ck_assert_int_eq(vhost_called(&d.v), 0);
	answer[3] = 1; // refused
	send_all(pair[0], answer, sizeof(answer), NULL);
	ck_assert_int_eq(vhost_called(&d.v), -EPROTO);
	close(pair[0]);
	close_driver(&d);
}
