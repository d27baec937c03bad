// SPDX-License-Identifier: BSD-3-Clause
// Any messages of a guest's kernel to its card (vhost-user) and its clock (time travel), and any
// content of the memory in which the card's rings are.
//
// The input is one event after the other: a message, bytes written into the shared memory, a frame
// that arrives for the guest, or one taken from it. Whatever the guest does, no memory but its own
// is read or written, and the card and the clock answer or end the connection.
#include "fuzz.h"

#include "tools/sim/guest/calendar.h"
#include "tools/sim/guest/protocol.h"
#include "tools/sim/guest/socket.h"
#include "tools/sim/guest/vhost.h"

#include <stdbool.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define MEMORY_BYTES (4 * 4096)
#define PAYLOAD_MAX 80 // more than any message has
#define EVENTS_MAX 256

static uint8_t *memory; // the guest's
static int memory_fd = -1;

struct ends {
	int ours, guest;
};

static struct ends ends_open(void) {
	int fd[2];

	NEED(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) == 0);
	return (struct ends){fd[0], fd[1]};
}

// Whatever was answered has room for the next one.
static void drain(int fd) {
	char bytes[4096];

	while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
}

// A request with a payload of eight-byte words: small numbers, addresses in the memory, or any.
static bool card_message(struct input *in, struct vhost *v, int guest) {
	static const uint8_t requests[] = {GET_FEATURES, SET_FEATURES, SET_MEM_TABLE, SET_VRING_NUM,
		SET_VRING_ADDR, SET_VRING_BASE, SET_PROTOCOL_FEATURES, SET_VRING_ENABLE,
		SET_BACKEND_REQ_FD, GET_CONFIG, VRING_KICK, GET_PROTOCOL_FEATURES};
	struct {
		struct header head;
		uint8_t bytes[PAYLOAD_MAX];
	} m = {.head = {.flags = FLAG_VERSION}};
	uint8_t how = in_u8(in);

	m.head.request = how < 240 ? requests[how % sizeof(requests)] : in_u8(in);
	m.head.size = in_u8(in) % (PAYLOAD_MAX + 1);
	m.head.flags |= in_u8(in) & FLAG_NEED_REPLY;
	for (uint32_t at = 0; at + 4 <= m.head.size; at += 4) {
		uint32_t word = in_u8(in);

		word = word < 128    ? word
			: word < 240 ? (word - 128) * 64
				     : in_near(in, MEMORY_BYTES);
		memcpy(m.bytes + at, &word, sizeof(word));
	}
	const int fds[VHOST_REGIONS] = {memory_fd, memory_fd};
	NEED(socket_send(guest, &m, sizeof(m.head) + m.head.size, fds, how % 3) == 0);
	int rc = vhost_serve(v);
	drain(guest);
	return rc == 0;
}

// A good table of memory and rings in it, as a driver begins.
static void card_set_up(struct vhost *v, int guest) {
	struct {
		struct header head;
		struct {
			uint32_t count, pad;
			uint64_t guest, size, user, offset;
		} table;
	} __attribute__((packed))
	memory_table = {{SET_MEM_TABLE, FLAG_VERSION, sizeof(memory_table.table)},
		{.count = 1, .size = MEMORY_BYTES}};

	NEED(socket_send(guest, &memory_table, sizeof(memory_table), &memory_fd, 1) == 0);
	NEED(vhost_serve(v) == 0);
	for (uint32_t i = 0; i < VHOST_QUEUES; i++) {
		struct ring_message num = {
			{SET_VRING_NUM, FLAG_VERSION, sizeof(num.state)}, {i, 16}};
		struct {
			struct header head;
			uint32_t index, flags;
			uint64_t desc, used, avail, log;
		} __attribute__((packed)) at = {{SET_VRING_ADDR, FLAG_VERSION, 40}, .index = i,
			.desc = i * 4096, .used = i * 4096 + 512, .avail = i * 4096 + 1024};

		NEED(socket_send(guest, &num, sizeof(num), NULL, 0) == 0 && vhost_serve(v) == 0);
		NEED(socket_send(guest, &at, sizeof(at), NULL, 0) == 0 && vhost_serve(v) == 0);
	}
}

static void take_frames(struct vhost *v) {
	uint8_t frame[VHOST_FRAME_MAX + 100];
	uint16_t head;

	for (int i = 0; i < 4 && !v->bad; i++) {
		uint32_t size = vhost_transmitted(v, frame, sizeof(frame), &head);

		NEED(size <= sizeof(frame));
		if (size == 0)
			return;
		vhost_done(v, head);
	}
}

static void write_memory(struct input *in) {
	uint32_t at = in_u16(in) % MEMORY_BYTES, size = in_u8(in) % 64;

	for (uint32_t i = 0; i < size; i++)
		memory[(at + i) % MEMORY_BYTES] = in_u8(in);
}

static bool clock_message(struct input *in, struct calendar *c, int guest) {
	struct calendar_message m = {
		.op = in_u8(in) % 12, .seq = in_u8(in), .time_ns = in_bytes(in, 8)};

	NEED(socket_send(guest, &m, sizeof(m), NULL, 0) == 0);
	int rc = calendar_serve(c);
	drain(guest);
	calendar_refresh(c);
	return rc == 0;
}

static bool event(struct input *in, struct vhost *v, int card, struct calendar *c, int clock) {
	static const uint8_t frame[VHOST_FRAME_MAX] = {0};
	uint8_t kind = in_u8(in);

	switch (kind & 7) {
	case 0:
	case 1:
		return card_message(in, v, card);
	case 2:
		return clock_message(in, c, clock);
	case 3:
		vhost_receive(v, frame, in_u16(in) % (VHOST_FRAME_MAX + 2));
		break;
	case 4:
		take_frames(v);
		break;
	case 5:
		vhost_wants_call(v, kind >> 3 & 1);
		break;
	default:
		write_memory(in);
		break;
	}
	return !v->bad;
}

static void memory_open(void) {
	if (memory != NULL)
		return;
	memory_fd = memfd_create("guest", MFD_CLOEXEC);
	NEED(memory_fd >= 0 && ftruncate(memory_fd, MEMORY_BYTES) == 0);
	memory = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, memory_fd, 0);
	NEED(memory != MAP_FAILED);
}

// The number of the last of so many more descriptors: higher by those that have stayed open.
static int last_of_more(void) {
	int fds[16];

	for (int i = 0; i < 16; i++)
		NEED((fds[i] = dup(memory_fd)) >= 0);
	for (int i = 0; i < 16; i++)
		close(fds[i]);
	return fds[15];
}

// Whatever a guest sends, no descriptor of it stays.
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	memory_open();

	int last = last_of_more();
	struct input in = {data, data + size};
	struct ends card = ends_open(), clock = ends_open();
	struct vhost v = {.listener = -1, .fd = card.ours, .call_fd = -1};
	struct calendar c = {.listener = -1, .fd = clock.ours, .page_fd = -1};

	memset(memory, 0, MEMORY_BYTES);
	if ((in_u8(&in) & 3) != 0)
		card_set_up(&v, card.guest);
	for (int i = 0; i < EVENTS_MAX && in.at < in.end; i++) {
		if (!event(&in, &v, card.guest, &c, clock.guest))
			break;
	}
	vhost_close(&v);
	calendar_close(&c);
	close(card.guest);
	close(clock.guest);
	NEED(last_of_more() == last);
	return 0;
}
