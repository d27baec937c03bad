// SPDX-License-Identifier: BSD-3-Clause
// The writer of captures, byte by byte against the format, and as libpcap reads it.
#include "common/pcap/pcapng.h"

#include "test.h"

#include <errno.h>
#include <pcap/pcap.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define FRAME 60

static char dir[] = "/tmp/weir-pcapng-XXXXXX";
static char file[64], previous[64];
static struct pcapng w;
static struct err err;
static uint8_t frame[FRAME];

static void setup(void) {
	memset(dir + sizeof(dir) - 7, 'X', 6);
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(file, sizeof(file), "%s/a.pcapng", dir);
	snprintf(previous, sizeof(previous), "%s/a.1.pcapng", dir);
	for (int i = 0; i < FRAME; i++)
		frame[i] = (uint8_t)(i + 1);
}

static void teardown(void) {
	unlink(file);
	unlink(previous);
	rmdir(dir);
}

static size_t read_file(const char *path, uint8_t *bytes, size_t size) {
	FILE *f = fopen(path, "rb");

	ck_assert_ptr_nonnull(f);
	size_t n = fread(bytes, 1, size, f);
	ck_assert_uint_lt(n, size);
	fclose(f);
	return n;
}

static uint32_t word(const uint8_t *bytes, size_t at) {
	uint32_t v;

	memcpy(&v, bytes + at, sizeof(v));
	return v;
}

// The value of an option of the block at `at`, whose options begin `from` bytes further; NULL: it
// has none.
static const uint8_t *option(
	const uint8_t *bytes, size_t at, size_t from, uint16_t code, uint16_t *size) {
	size_t end = at + word(bytes, at + 4) - 4;

	for (size_t o = at + from; o + 4 <= end;) {
		uint16_t head[2];

		memcpy(head, bytes + o, sizeof(head));
		if (head[0] == 0)
			return NULL;
		*size = head[1];
		if (head[0] == code)
			return bytes + o + 4;
		o += 4 + ((head[1] + 3u) & ~3u);
	}
	return NULL;
}

// Every block says its length twice; how many there are of a type, and where the first is.
static uint32_t blocks(const uint8_t *bytes, size_t size, uint32_t type, size_t *first) {
	uint32_t n = 0;
	size_t at = 0;

	while (at < size) {
		uint32_t total = word(bytes, at + 4);

		ck_assert_uint_eq(total % 4, 0);
		ck_assert_uint_le(at + total, size);
		ck_assert_uint_eq(word(bytes, at + total - 4), total);
		if (word(bytes, at) == type && n++ == 0)
			*first = at;
		at += total;
	}
	return n;
}

TEST(a_packet_with_all_that_is_known_of_it) {
	static uint8_t bytes[4096];
	size_t at = 0, size;
	uint16_t length;

	ck_assert_int_eq(pcapng_open(&w, file, "weir-test 1", 0, &err), 0);
	ck_assert_uint_eq(pcapng_interface(&w, "forward in"), 0);
	ck_assert_uint_eq(pcapng_interface(&w, "forward drop"), 1);
	pcapng_write(&w,
		&(struct pcapng_packet){
			.ts_ns = UINT64_C(1700000000123456789),
			.data = frame,
			.captured = 54,
			.length = 1514,
			.interface = 1,
			.direction = PCAPNG_OUTBOUND,
			.has_id = true,
			.id = 77,
			.lost = 3,
			.comment = "flow 5, queue_full",
		});
	pcapng_lost(&w, 0, 9);
	ck_assert_int_eq(pcapng_close(&w, &err), 0);
	ck_assert_uint_eq(w.count.packets, 1);
	ck_assert_uint_eq(w.count.lost, 12);

	size = read_file(file, bytes, sizeof(bytes));
	ck_assert_uint_eq(w.count.bytes, size);
	ck_assert_uint_eq(blocks(bytes, size, 0x0a0d0d0a, &at), 1);
	ck_assert_uint_eq(at, 0);
	ck_assert_uint_eq(word(bytes, 8), 0x1a2b3c4d);
	ck_assert_mem_eq(option(bytes, at, 24, 4, &length), "weir-test 1", 11);
	ck_assert_uint_eq(blocks(bytes, size, 1, &at), 2);
	ck_assert_uint_eq(word(bytes, at + 8), 1);
	ck_assert_mem_eq(option(bytes, at, 16, 2, &length), "forward in", 10);
	ck_assert_uint_eq(length, 10);
	ck_assert_uint_eq(*option(bytes, at, 16, 9, &length), 9);

	ck_assert_uint_eq(blocks(bytes, size, 6, &at), 1);
	ck_assert_uint_eq(word(bytes, at + 8), 1);
	ck_assert_uint_eq((uint64_t)word(bytes, at + 12) << 32 | word(bytes, at + 16),
		UINT64_C(1700000000123456789));
	ck_assert_uint_eq(word(bytes, at + 20), 54);
	ck_assert_uint_eq(word(bytes, at + 24), 1514);
	ck_assert_mem_eq(bytes + at + 28, frame, 54);
	ck_assert_mem_eq(option(bytes, at, 28 + 56, 1, &length), "flow 5, queue_full", 18);
	ck_assert_uint_eq(length, 18);
	ck_assert_uint_eq(word(option(bytes, at, 28 + 56, 2, &length), 0), 2);
	ck_assert_uint_eq(word(option(bytes, at, 28 + 56, 4, &length), 0), 3);
	ck_assert_uint_eq(word(option(bytes, at, 28 + 56, 5, &length), 0), 77);

	// Statistics: the first interface lost nine and had none, the second lost three of four.
	ck_assert_uint_eq(blocks(bytes, size, 5, &at), 2);
	ck_assert_uint_eq(word(bytes, at + 8), 0);
	ck_assert_uint_eq(word(option(bytes, at, 20, 4, &length), 0), 9);
	ck_assert_uint_eq(word(option(bytes, at, 20, 5, &length), 0), 9);
	ck_assert_ptr_null(option(bytes, at, 20, 2, &length));
	at += word(bytes, at + 4);
	ck_assert_uint_eq(word(bytes, at + 8), 1);
	ck_assert_uint_eq(word(option(bytes, at, 20, 4, &length), 0), 4);
	ck_assert_uint_eq(word(option(bytes, at, 20, 5, &length), 0), 3);
}

// All lengths modulo 4, with and without a comment.
TEST(libpcap_reads_it) {
	char why[PCAP_ERRBUF_SIZE], text[16];

	ck_assert_int_eq(pcapng_open(&w, file, "weir-test 1", 0, &err), 0);
	pcapng_interface(&w, "port");
	for (uint32_t i = 0; i < FRAME; i++) {
		snprintf(text, sizeof(text), "%.*s", (int)(i % 7), "abcdefg");
		pcapng_write(&w,
			&(struct pcapng_packet){.ts_ns = i * UINT64_C(1000000001),
				.data = frame,
				.captured = i,
				.length = i + 4,
				.comment = text});
	}
	ck_assert_int_eq(pcapng_close(&w, &err), 0);

	pcap_t *p = pcap_open_offline_with_tstamp_precision(file, PCAP_TSTAMP_PRECISION_NANO, why);
	struct pcap_pkthdr *h;
	const u_char *data;
	ck_assert_ptr_nonnull(p);
	ck_assert_int_eq(pcap_datalink(p), DLT_EN10MB);
	for (uint32_t i = 0; i < FRAME; i++) {
		ck_assert_int_eq(pcap_next_ex(p, &h, &data), 1);
		ck_assert_int_eq(h->ts.tv_sec, i);
		ck_assert_int_eq(h->ts.tv_usec, i);
		ck_assert_uint_eq(h->caplen, i);
		ck_assert_uint_eq(h->len, i + 4);
		ck_assert_mem_eq(data, frame, i);
	}
	ck_assert_int_eq(pcap_next_ex(p, &h, &data), PCAP_ERROR_BREAK);
	pcap_close(p);
}

TEST(a_capture_without_packets) {
	static uint8_t bytes[1024];
	size_t at, size;

	ck_assert_int_eq(pcapng_open(&w, file, "weir-test 1", 0, &err), 0);
	pcapng_interface(&w, "port");
	ck_assert_int_eq(pcapng_close(&w, &err), 0);
	size = read_file(file, bytes, sizeof(bytes));
	ck_assert_uint_eq(blocks(bytes, size, 1, &at), 1);
	ck_assert_uint_eq(blocks(bytes, size, 6, &at), 0);
	ck_assert_uint_eq(blocks(bytes, size, 5, &at), 1);
}

// Packets of one file, and the time of the first.
static uint32_t packets_in(const char *path, uint64_t *first_ns) {
	static uint8_t bytes[2 * PCAPNG_ROTATE_MIN];
	size_t at = 0, size = read_file(path, bytes, sizeof(bytes));
	uint32_t n = blocks(bytes, size, 6, &at);

	ck_assert_uint_le(size, PCAPNG_ROTATE_MIN);
	ck_assert_uint_eq(blocks(bytes, size, 0x0a0d0d0a, &(size_t){0}), 1);
	ck_assert_uint_eq(blocks(bytes, size, 5, &(size_t){0}), 1);
	*first_ns = (uint64_t)word(bytes, at + 12) << 32 | word(bytes, at + 16);
	return n;
}

static void fill_rotating(uint32_t captured) {
	ck_assert_int_eq(pcapng_open(&w, file, "weir-test 1", PCAPNG_ROTATE_MIN, &err), 0);
	pcapng_interface(&w, "port");
	for (uint32_t i = 0; i < 500; i++)
		pcapng_write(&w,
			&(struct pcapng_packet){
				.ts_ns = i, .data = frame, .captured = captured, .length = FRAME});
	ck_assert_int_eq(pcapng_close(&w, &err), 0);
}

// The two newest files hold what follows the packets that were removed, without a hole; some packet
// length fills a file to the last byte.
TEST(rotation_bounds_the_size) {
	for (uint32_t captured = 0; captured <= FRAME; captured += 4) {
		uint64_t first_ns, previous_ns;

		fill_rotating(captured);
		uint32_t last = packets_in(file, &first_ns);
		uint32_t before = packets_in(previous, &previous_ns);
		ck_assert_uint_eq(w.count.packets, 500);
		ck_assert_uint_eq(w.count.removed, 500 - last - before);
		ck_assert_uint_gt(w.count.removed, 0);
		ck_assert_uint_eq(previous_ns, w.count.removed);
		ck_assert_uint_eq(first_ns, w.count.removed + before);
	}
}

TEST(what_cannot_be_written) {
	ck_assert_int_eq(pcapng_open(&w, "/dev/full", "weir-test 1", 0, &err), 0);
	pcapng_interface(&w, "port");
	pcapng_write(&w, &(struct pcapng_packet){.data = frame, .captured = FRAME, .length = 60});
	ck_assert_int_eq(pcapng_close(&w, &err), -ENOSPC);
	ck_assert_str_eq(err.msg, "No space left on device");
	ck_assert_int_eq(pcapng_open(&w, dir, "weir-test 1", 0, &err), -EISDIR);
	ck_assert_str_eq(err.msg, "Is a directory");
	ck_assert_int_eq(
		pcapng_open(&w, "/dev/null", "weir-test 1", PCAPNG_ROTATE_MIN, &err), -EINVAL);
	ck_assert_str_eq(err.msg, "only a file can be rotated");
}

static void write_packets(uint32_t packets, uint32_t captured) {
	static uint8_t data[2000];

	for (uint32_t i = 0; i < packets; i++)
		pcapng_write(&w,
			&(struct pcapng_packet){.ts_ns = i,
				.data = data,
				.captured = captured,
				.length = captured});
}

// Of 3000 blocks of 1032 bytes a disk of 2,000,000 takes 1937 and a part of the next. `blocks`
// fails on a part.
TEST(a_full_disk_ends_the_file_with_a_whole_packet) {
	static uint8_t bytes[3 << 20];
	struct rlimit limit = {2000000, 2000000};
	size_t at, size;

	ck_assert(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	ck_assert_int_eq(pcapng_open(&w, file, "weir-test 1", 0, &err), 0);
	pcapng_interface(&w, "port");
	write_packets(3000, 1000);
	ck_assert_int_eq(pcapng_close(&w, &err), -EFBIG);
	size = read_file(file, bytes, sizeof(bytes));
	ck_assert_uint_eq(blocks(bytes, size, 6, &at), w.count.packets);
	ck_assert_uint_eq(w.count.packets, (2000000 - at) / 1032);
	ck_assert_uint_eq(w.count.lost, 3000 - w.count.packets);
	ck_assert_uint_eq(w.count.bytes, size);
	ck_assert_str_eq(pcapng_error(&w), "File too large");
}

static int open_pipe(void) {
	char path[32];
	int fd[2];

	ck_assert_int_eq(pipe(fd), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd[1]);
	ck_assert_int_eq(pcapng_open(&w, path, "weir-test 1", 0, &err), 0);
	close(fd[1]);
	pcapng_interface(&w, "port");
	return fd[0];
}

TEST(a_reader_that_ends) {
	ck_assert(signal(SIGPIPE, SIG_IGN) != SIG_ERR);
	close(open_pipe());
	write_packets(5, 100);
	pcapng_flush(&w);
	write_packets(2, 100);
	ck_assert_str_eq(pcapng_error(&w), "its reader has ended");
	ck_assert_int_eq(pcapng_close(&w, &err), -EPIPE);
	ck_assert_uint_eq(w.count.packets, 0);
	ck_assert_uint_eq(w.count.bytes, 0);
	ck_assert_uint_eq(w.count.lost, 7);
}

// Live, nothing waits for it: what it did not take is lost, and what it takes is whole.
TEST(a_reader_that_stops_reading) {
	static uint8_t bytes[4 << 20];
	int fd = open_pipe();
	size_t at, size = 0;
	ssize_t n;

	pcapng_no_wait(&w);
	for (int i = 0; i < 30; i++) {
		write_packets(1000, 100);
		pcapng_flush(&w);
	}
	ck_assert_uint_gt(w.count.lost, 0);
	ck_assert_int_eq(pcapng_close(&w, &err), -ETIMEDOUT);
	ck_assert_str_eq(err.msg, "its reader does not read");
	while ((n = read(fd, bytes + size, sizeof(bytes) - size)) > 0)
		size += (size_t)n;
	close(fd);
	ck_assert_uint_eq(blocks(bytes, size, 6, &at), w.count.packets);
	ck_assert_uint_eq(w.count.packets + w.count.lost, 30000);
	ck_assert_uint_eq(w.count.bytes, size);
}

TEST_FIXTURE(setup, teardown)
