// SPDX-License-Identifier: BSD-3-Clause
// A block: type, total length, body, total length again; a multiple of 4 bytes, in the byte order
// of the machine, which the section header tells. An option: code, length, value padded to 4 bytes.
#include "common/pcap/pcapng.h"

#include "common/base/likely.h"
#include "common/base/u64.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BUFFER_BYTES ((size_t)1 << 20) // far more than a block
#define BLOCK_PIPE_MAX 2048u // a larger one goes alone, perhaps in parts
#define READER_MS 2000 // at the end, for one that has not read all
#define BLOCK_SECTION 0x0a0d0d0au
#define BLOCK_INTERFACE 1u
#define BLOCK_STATISTICS 5u
#define BLOCK_PACKET 6u
#define ORDER_MAGIC 0x1a2b3c4du
#define LINK_ETHERNET 1u
#define RESOLUTION_NS 9 // 10^-9 s
#define STATISTICS_BYTES 76u // head 20, four options of 12, their end, length

enum option {
	OPTION_END = 0,
	OPTION_COMMENT = 1,
	SECTION_PROGRAM = 4,
	INTERFACE_NAME = 2,
	INTERFACE_RESOLUTION = 9,
	PACKET_FLAGS = 2,
	PACKET_LOST = 4,
	PACKET_ID = 5,
	STATISTICS_START = 2,
	STATISTICS_END = 3,
	STATISTICS_RECEIVED = 4,
	STATISTICS_LOST = 5,
};

// A block that is made in memory: all of one but for the bytes of a packet.
struct block {
	uint8_t bytes[PCAPNG_COMMENT_MAX + 256];
	size_t size;
};

static void put(struct block *b, const void *bytes, size_t size) {
	size_t padded = (size + 3) & ~(size_t)3;

	assert(b->size + padded <= sizeof(b->bytes));
	memset(b->bytes + b->size, 0, padded);
	if (size > 0)
		memcpy(b->bytes + b->size, bytes, size);
	b->size += padded;
}

static void put32(struct block *b, uint32_t v) {
	put(b, &v, sizeof(v));
}

static void put_time(struct block *b, uint64_t ns) {
	put32(b, (uint32_t)(ns >> 32));
	put32(b, (uint32_t)ns);
}

static void put_option(struct block *b, enum option code, const void *value, size_t size) {
	uint16_t head[2] = {(uint16_t)code, (uint16_t)size};

	put(b, head, sizeof(head));
	put(b, value, size);
}

static void put_option_u64(struct block *b, enum option code, uint64_t value) {
	put_option(b, code, &value, sizeof(value));
}

static void put_option_time(struct block *b, enum option code, uint64_t ns) {
	uint32_t value[2] = {(uint32_t)(ns >> 32), (uint32_t)ns};

	put_option(b, code, value, sizeof(value));
}

// The file's last write failed after `written` bytes of the buffer: it ends with the last block
// that is whole, and the packets behind it are lost.
static void end_early(struct pcapng *w, size_t written, int error) {
	uint64_t packets = 0;
	size_t whole = 0, at = 0;
	uint32_t head[2];

	w->error = error;
	for (; at < w->used; at += head[1]) {
		memcpy(head, w->buffer + at, sizeof(head));
		if (at + head[1] <= written)
			whole = at + head[1];
		else
			packets += head[0] == BLOCK_PACKET;
	}
	w->count.packets -= packets;
	w->count.lost += packets;
	w->file_packets -= packets;
	w->count.bytes -= w->used - whole;
	w->used = 0;
	off_t end = w->regular ? lseek(w->fd, 0, SEEK_CUR) : -1;
	if (end >= 0)
		(void)!ftruncate(w->fd, end - (off_t)(written - whole));
}

// Waits until the file can be written; false: not in time.
static bool wait_for_reader(struct pcapng *w, int ms) {
	struct pollfd p = {.fd = w->fd, .events = POLLOUT};

	return ms > 0 && poll(&p, 1, ms) > 0;
}

// Bytes to write at once from `at` on. A pipe that is not waited for takes PIPE_BUF bytes or none
// of them: whole blocks.
static size_t piece(const struct pcapng *w, size_t at) {
	size_t size = 0;
	uint32_t total;

	if (!w->no_wait)
		return w->used - at;
	do {
		memcpy(&total, w->buffer + at + size + 4, sizeof(total));
		size += total;
	} while (at + size < w->used && size + BLOCK_PIPE_MAX <= PIPE_BUF);
	return size;
}

// Writes the buffer's blocks, all of them unless pcapng_no_wait was called: then what the reader
// takes within `ms`.
static void write_out(struct pcapng *w, int ms) {
	size_t written = 0;

	while (w->error == 0 && written < w->used) {
		ssize_t n = write(w->fd, w->buffer + written, piece(w, written));

		if (n >= 0)
			written += (size_t)n;
		else if (errno == EAGAIN && !wait_for_reader(w, ms))
			break;
		else if (errno != EAGAIN && errno != EINTR)
			end_early(w, written, errno);
	}
	if (w->error != 0)
		return;
	w->used -= written;
	memmove(w->buffer, w->buffer + written, w->used);
}

// Room for a block of so many bytes, which write_bytes puts there; false: there is none.
static bool make_room(struct pcapng *w, size_t size) {
	if (w->used + size > w->room)
		write_out(w, 0);
	return w->error == 0 && w->used + size <= w->room;
}

static void write_bytes(struct pcapng *w, const void *bytes, size_t size) {
	if (size > 0)
		memcpy(w->buffer + w->used, bytes, size);
	w->used += size;
	w->file_bytes += size;
	w->count.bytes += size;
}

// Type and total length come first; `put` fills in the body behind them.
static void block_begin(struct block *b, uint32_t type) {
	b->size = 0;
	put32(b, type);
	put32(b, 0);
}

static void block_end(struct pcapng *w, struct block *b) {
	uint32_t total = (uint32_t)b->size + 4;

	memcpy(b->bytes + 4, &total, sizeof(total));
	put32(b, total);
	if (make_room(w, b->size))
		write_bytes(w, b->bytes, b->size);
}

static void write_section(struct pcapng *w) {
	int64_t unknown = -1; // length of the section
	uint16_t version[2] = {1, 0};
	struct block b;

	block_begin(&b, BLOCK_SECTION);
	put32(&b, ORDER_MAGIC);
	put(&b, version, sizeof(version));
	put(&b, &unknown, sizeof(unknown));
	put_option(&b, SECTION_PROGRAM, w->program, strlen(w->program));
	put_option(&b, OPTION_END, NULL, 0);
	block_end(w, &b);
}

static void write_interface(struct pcapng *w, const struct pcapng_interface *i) {
	uint8_t resolution = RESOLUTION_NS;
	struct block b;

	block_begin(&b, BLOCK_INTERFACE);
	put32(&b, LINK_ETHERNET); // and 16 bits reserved
	put32(&b, 0); // snap length: no limit
	put_option(&b, INTERFACE_NAME, i->name, strlen(i->name));
	put_option(&b, INTERFACE_RESOLUTION, &resolution, sizeof(resolution));
	put_option(&b, OPTION_END, NULL, 0);
	block_end(w, &b);
}

static void write_statistics(struct pcapng *w, uint32_t number) {
	const struct pcapng_interface *i = &w->interface[number];
	struct block b;

	block_begin(&b, BLOCK_STATISTICS);
	put32(&b, number);
	put_time(&b, i->last_ns);
	if (i->packets > 0) {
		put_option_time(&b, STATISTICS_START, i->first_ns);
		put_option_time(&b, STATISTICS_END, i->last_ns);
	}
	put_option_u64(&b, STATISTICS_RECEIVED, i->packets + i->lost);
	put_option_u64(&b, STATISTICS_LOST, i->lost);
	put_option(&b, OPTION_END, NULL, 0);
	block_end(w, &b);
}

// "run.pcapng" -> "run.1.pcapng", "capture" -> "capture.1".
static int name_previous(struct pcapng *w, struct err *err) {
	const char *slash = strrchr(w->path, '/'), *dot = strrchr(w->path, '.');
	size_t stem = dot != NULL && dot > (slash != NULL ? slash + 1 : w->path)
		? (size_t)(dot - w->path)
		: strlen(w->path);
	int n = snprintf(
		w->previous, sizeof(w->previous), "%.*s.1%s", (int)stem, w->path, w->path + stem);

	return n < (int)sizeof(w->previous)
		? 0
		: err_set(err, -ENAMETOOLONG, "%s", strerror(ENAMETOOLONG));
}

static int open_file(struct pcapng *w) {
	struct stat st;

	w->fd = open(w->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (w->fd < 0)
		return -errno;
	w->regular = fstat(w->fd, &st) == 0 && S_ISREG(st.st_mode);
	w->file_bytes = w->file_packets = 0;
	return 0;
}

int pcapng_open(struct pcapng *w, const char *path, const char *program, uint64_t rotate_bytes,
	struct err *err) {
	int rc;

	memset(w, 0, sizeof(*w));
	w->fd = -1;
	w->path = path;
	w->program = program;
	w->rotate_bytes = rotate_bytes;
	if (rotate_bytes > 0 && (rc = name_previous(w, err)) < 0)
		return rc;
	w->room = BUFFER_BYTES;
	w->buffer = malloc(w->room);
	if (w->buffer == NULL)
		return err_set(err, -ENOMEM, "no memory to write it");
	rc = open_file(w);
	if (rc == 0 && (rotate_bytes == 0 || w->regular))
		return 0;
	if (w->fd >= 0)
		close(w->fd);
	free(w->buffer);
	w->buffer = NULL;
	w->fd = -1;
	return rc == 0 ? err_set(err, -EINVAL, "only a file can be rotated")
		       : err_set(err, rc, "%s", strerror(-rc));
}

void pcapng_no_wait(struct pcapng *w) {
	int flags = fcntl(w->fd, F_GETFL);

	if (!w->regular && flags >= 0)
		w->no_wait = fcntl(w->fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

uint32_t pcapng_interface(struct pcapng *w, const char *name) {
	assert(!w->begun && w->interfaces < PCAPNG_INTERFACES_MAX);
	struct pcapng_interface *i = &w->interface[w->interfaces];

	snprintf(i->name, sizeof(i->name), "%s", name);
	return w->interfaces++;
}

static void write_secrets(struct pcapng *w, const uint8_t *blocks, size_t size) {
	for (uint32_t total; size > 0; blocks += total, size -= total) {
		memcpy(&total, blocks + 4, sizeof(total));
		if (make_room(w, total))
			write_bytes(w, blocks, total);
	}
}

void pcapng_secrets(struct pcapng *w, const uint8_t *blocks, size_t size) {
	// One block may be larger than the buffer.
	uint8_t *buffer = size > w->room ? realloc(w->buffer, size) : w->buffer;

	if (buffer != NULL) {
		w->buffer = buffer;
		w->room = (size_t)max_u64(w->room, size);
	}
	if (buffer == NULL || secrets_add(&w->secrets, blocks, size) < 0)
		end_early(w, 0, ENOMEM);
	else if (w->begun)
		write_secrets(w, blocks, size);
}

static void begin_file(struct pcapng *w) {
	w->begun = true;
	write_section(w);
	write_secrets(w, w->secrets.bytes, w->secrets.size);
	for (uint32_t i = 0; i < w->interfaces; i++)
		write_interface(w, &w->interface[i]);
}

static void end_file(struct pcapng *w) {
	for (uint32_t i = 0; i < w->interfaces; i++)
		write_statistics(w, i);
	write_out(w, READER_MS);
	if (w->error == 0 && w->used > 0)
		end_early(w, 0, ETIMEDOUT);
	errno = EIO;
	if (close(w->fd) != 0 && w->error == 0)
		w->error = errno;
	w->fd = -1;
}

static void rotate(struct pcapng *w) {
	end_file(w);
	w->count.removed += w->previous_packets;
	w->previous_packets = w->file_packets;
	for (uint32_t i = 0; i < w->interfaces; i++) {
		struct pcapng_interface *f = &w->interface[i];

		f->packets = f->lost = f->first_ns = f->last_ns = 0;
	}
	if (w->error != 0)
		return;
	if (rename(w->path, w->previous) != 0)
		w->error = errno;
	else
		w->error = -open_file(w);
	if (w->error == 0)
		begin_file(w);
}

// Bytes of the statistics that a file ends with, at most.
static uint64_t end_bytes(const struct pcapng *w) {
	return (uint64_t)w->interfaces * STATISTICS_BYTES;
}

static void put_packet_options(struct block *b, const struct pcapng_packet *p) {
	size_t comment = p->comment != NULL ? strnlen(p->comment, PCAPNG_COMMENT_MAX - 1) : 0;
	uint32_t flags = (uint32_t)p->direction;

	if (comment > 0)
		put_option(b, OPTION_COMMENT, p->comment, comment);
	if (flags != 0)
		put_option(b, PACKET_FLAGS, &flags, sizeof(flags));
	if (p->lost > 0)
		put_option_u64(b, PACKET_LOST, p->lost);
	if (p->has_id)
		put_option_u64(b, PACKET_ID, p->id);
	if (b->size > 0)
		put_option(b, OPTION_END, NULL, 0);
}

void pcapng_write(struct pcapng *w, const struct pcapng_packet *p) {
	struct pcapng_interface *i = &w->interface[p->interface];
	static const uint8_t zeros[4];
	struct block head, tail;
	uint32_t captured = p->captured < PCAPNG_CAPTURED_MAX ? p->captured : PCAPNG_CAPTURED_MAX;
	uint32_t padding = -captured & 3;

	assert(p->interface < w->interfaces);
	if (!w->begun)
		begin_file(w);
	tail.size = 0;
	put_packet_options(&tail, p);
	uint32_t total = 32 + captured + padding + (uint32_t)tail.size;

	if (w->rotate_bytes > 0 && w->file_packets > 0
		&& w->file_bytes + total + end_bytes(w) > w->rotate_bytes)
		rotate(w);
	if (!make_room(w, total)) {
		pcapng_lost(w, p->interface, p->lost + 1);
		return;
	}
	put32(&tail, total);
	block_begin(&head, BLOCK_PACKET);
	memcpy(head.bytes + 4, &total, sizeof(total));
	put32(&head, p->interface);
	put_time(&head, p->ts_ns);
	put32(&head, captured);
	put32(&head, p->length);
	write_bytes(w, head.bytes, head.size);
	write_bytes(w, p->data, captured);
	write_bytes(w, zeros, padding);
	write_bytes(w, tail.bytes, tail.size);
	i->first_ns = i->packets == 0 ? p->ts_ns : i->first_ns;
	i->last_ns = max_u64(i->last_ns, p->ts_ns);
	i->packets++;
	i->lost += p->lost;
	w->file_packets++;
	w->count.packets++;
	w->count.lost += p->lost;
}

void pcapng_lost(struct pcapng *w, uint32_t interface, uint64_t packets) {
	w->interface[interface].lost += packets;
	w->count.lost += packets;
}

void pcapng_flush(struct pcapng *w) {
	write_out(w, 0);
}

const char *pcapng_error(const struct pcapng *w) {
	return w->error == 0		? NULL
		: w->error == EPIPE	? "its reader has ended"
		: w->error == ETIMEDOUT ? "its reader does not read"
					: strerror(w->error);
}

int pcapng_close(struct pcapng *w, struct err *err) {
	if (!w->begun && w->error == 0)
		begin_file(w);
	if (w->fd >= 0)
		end_file(w);
	secrets_free(&w->secrets);
	free(w->buffer);
	w->buffer = NULL;
	return w->error == 0 ? 0 : err_set(err, -w->error, "%s", pcapng_error(w));
}
