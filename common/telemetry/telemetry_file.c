// SPDX-License-Identifier: BSD-3-Clause
// The file into which a ring is drained.
//
// A file is updated in this order: records, one set of counters, the epoch. If the process is
// killed in between, the file still has a consistent set of counters; bytes beyond it do not count.
#include "common/telemetry/telemetry_file.h"

#include "common/telemetry/telemetry_header.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sendfile.h>
#include <unistd.h>

static_assert(sizeof(((struct tel_header *)NULL)->published[0]) == sizeof(struct tel_counters),
	"one layout in memory and in the file");

// Returns the number of bytes written; if fewer than `size`, errno is set.
static size_t write_all(int fd, const uint8_t *buf, size_t size, size_t offset) {
	size_t done = 0;

	while (done < size) {
		ssize_t n = pwrite(fd, buf + done, size - done, (off_t)(offset + done));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	return done;
}

static void file_put(struct tel *t, const void *buf, size_t size, size_t offset) {
	if (pwrite(t->fd, buf, size, (off_t)offset) != (ssize_t)size && t->io_errno == 0)
		t->io_errno = errno;
}

void tel_file_publish(struct tel *t, uint64_t epoch) {
	size_t place = offsetof(struct tel_header, published)
		+ epoch % TEL_EPOCHS * sizeof(struct tel_counters);

	file_put(t, &t->file, sizeof(t->file), place);
	file_put(t, &epoch, sizeof(epoch), offsetof(struct tel_header, epoch));
	t->file_epoch = epoch;
}

void tel_file_close(struct tel *t) {
	const uint8_t zero[(TEL_EPOCHS - 1) * sizeof(struct tel_counters)] = {0};
	const uint64_t closed = 1;
	size_t others = offsetof(struct tel_header, published) + sizeof(struct tel_counters);

	tel_file_publish(t, (t->file_epoch / TEL_EPOCHS + 1) * TEL_EPOCHS);
	tel_file_publish(t, TEL_EPOCH_CLOSED);
	file_put(t, zero, sizeof(zero), others);
	file_put(t, &closed, sizeof(closed), offsetof(struct tel_header, closed));
	if (close(t->fd) != 0 && t->io_errno == 0)
		t->io_errno = errno;
	t->fd = -1;
}

static uint64_t count_gaps(const struct tel *t, const uint8_t *records, uint64_t count) {
	uint64_t gaps = 0;

	for (uint64_t i = 0; i < count; i++) {
		uint64_t ts_ns;
		memcpy(&ts_ns, records + i * t->record_size, sizeof(ts_ns));
		gaps += ts_ns == TEL_GAP;
	}
	return gaps;
}

void tel_direct_close(struct tel *t) {
	if (t->direct_fd >= 0)
		close(t->direct_fd);
	t->direct_fd = -1;
}

void tel_file_append(
	struct tel *t, const uint8_t *records, uint64_t count, bool has_gaps, bool direct) {
	size_t offset = TEL_HEADER_SIZE + t->file.written * t->record_size;
	size_t size = count * t->record_size, done = 0;
	uint64_t fit, gaps;

	if (t->fd < 0)
		return;
	if (t->io_errno == 0 && direct) {
		done = write_all(t->direct_fd, records, size, offset);
		if (done < size) // on any error continue through the page cache
			tel_direct_close(t);
	}
	if (t->io_errno == 0 && done < size) {
		done += write_all(t->fd, records + done, size - done, offset + done);
		if (done < size)
			t->io_errno = errno != 0 ? errno : EIO;
	}
	fit = done / t->record_size;
	gaps = has_gaps ? count_gaps(t, records, fit) : 0;
	t->file.written += fit;
	t->file.gaps += gaps;
	if (fit == count)
		return;
	t->file.lost += count - fit;
	if (has_gaps)
		t->file.lost -= count_gaps(t, records + fit * t->record_size, count - fit);
	if (done % t->record_size > 0
		&& ftruncate(t->fd, (off_t)(offset + fit * t->record_size)) != 0)
		t->io_errno = t->io_errno != 0 ? t->io_errno : errno;
}

// Makes a new file, replacing an older one. Returns the descriptor, or -errno with a sentence.
static int open_new(const char *path, struct err *err) {
	unlink(path);
	int fd = open(path, O_CREAT | O_EXCL | O_CLOEXEC | O_WRONLY, 0644);

	return fd >= 0 ? fd : err_set(err, -errno, "%s: %s", path, strerror(errno));
}

int tel_file_open(struct tel *t, enum tel_stream s, const struct tel_run *run, struct err *err) {
	_Alignas(64) uint8_t page[TEL_HEADER_SIZE];

	tel_header_fill((struct tel_header *)(void *)page, s, run);
	t->fd = open_new(t->path, err);
	if (t->fd < 0)
		return t->fd;
	if (!run->virtual_time)
		t->direct_fd = open(t->path, O_WRONLY | O_DIRECT | O_NOFOLLOW | O_CLOEXEC);
	errno = 0;
	if (write_all(t->fd, page, sizeof(page), 0) == sizeof(page))
		return 0;
	return err_set(err, errno != 0 ? -errno : -EIO, "%s: %s", t->path,
		strerror(errno != 0 ? errno : EIO));
}

int tel_file_copy(struct tel *t, const char *path, struct err *err) {
	off_t from = TEL_HEADER_SIZE, end = from + (off_t)(t->file.written * t->record_size);
	int fd = open(path, O_RDONLY | O_CLOEXEC), error = fd < 0 ? errno : 0;

	// Where the file system can, the copy shares the blocks.
	while (error == 0 && from < end) {
		off_t to = from;
		ssize_t n = copy_file_range(fd, &from, t->fd, &to, (size_t)(end - from), 0);

		if (n < 0 && lseek(t->fd, from, SEEK_SET) == from)
			n = sendfile(t->fd, fd, &from, (size_t)(end - from));
		if (n <= 0)
			error = n < 0 ? errno : EIO;
	}
	if (fd >= 0)
		close(fd);
	if (error != 0)
		return err_set(err, -error, "%s: cannot be copied to %s: %s", path, t->path,
			strerror(error));
	tel_file_publish(t, t->file_epoch);
	return 0;
}
