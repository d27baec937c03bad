// SPDX-License-Identifier: BSD-3-Clause
#include "common/pcap/input.h"

#include "common/base/mem.h"
#include "common/pcap/codec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PACKED_BYTES ((size_t)128 << 10)

// More of the file itself; 0 at its end.
static int64_t read_file(struct input *in, uint8_t *to, size_t room, struct err *err) {
	ssize_t n;

	if (in->fd < 0)
		return 0;
	do {
		n = read(in->fd, to, room);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_set(err, -errno, "%s: cannot be read after %llu bytes: %s", in->name,
			(unsigned long long)in->packed_bytes, strerror(errno));
	in->packed_bytes += (uint64_t)n;
	return n;
}

static int64_t read_packed(struct input *in, uint8_t *to, size_t room, struct err *err) {
	for (;;) {
		if (in->packed_at == in->packed_end && !in->packed_ended) {
			int64_t n = read_file(in, in->packed, PACKED_BYTES, err);

			if (n < 0)
				return n;
			in->packed_at = 0;
			in->packed_end = (size_t)n;
			in->packed_ended = n == 0;
		}
		const uint8_t *from = in->packed + in->packed_at;
		int64_t n =
			codec_read(in->codec, &from, in->packed + in->packed_end, to, room, err);

		in->packed_at = (size_t)(from - in->packed);
		if (n != 0 || in->packed_ended)
			return n;
	}
}

// The buffer's first bytes were compressed ones.
static int start_codec(struct input *in, struct err *err) {
	size_t have = (size_t)(in->end - in->at);
	int rc = codec_open(&in->codec, in->name, in->at, have, err);

	if (rc < 0 || in->codec == NULL)
		return rc;
	size_t size = have > PACKED_BYTES ? have : PACKED_BYTES; // of memory: all of it
	in->packed = malloc(size);
	if (in->packed == NULL)
		return err_set(err, -ENOMEM, "%s: no memory to decompress it", in->name);
	memcpy(in->packed, in->at, have);
	in->packed_end = have;
	in->packed_ended = in->fd < 0;
	in->at = in->end = in->buffer;
	in->offset = 0;
	in->ended = false;
	return 0;
}

static int start(struct input *in, const char *name, struct err *err) {
	in->name = name;
	in->buffer = mem_map(INPUT_BYTES);
	in->at = in->end = in->buffer;
	return in->buffer != NULL ? 0 : err_set(err, -ENOMEM, "%s: no memory to read it", name);
}

int input_open(struct input *in, const char *path, struct err *err) {
	bool standard = strcmp(path, "-") == 0;
	int rc;

	*in = (struct input){.fd = -1};
	if ((rc = start(in, standard ? "standard input" : path, err)) < 0)
		return rc;
	in->fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	if (in->fd < 0)
		return err_set(err, -EINVAL, "%s: cannot be opened: %s", path, strerror(errno));
	(void)posix_fadvise(in->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	// No more than the magic number, or a compressed file would not fit into `packed`.
	while (rc == 0 && in->end - in->at < (ptrdiff_t)CODEC_MAGIC_BYTES && !in->ended) {
		size_t have = (size_t)(in->end - in->at);
		int64_t n = read_file(in, in->buffer + have, CODEC_MAGIC_BYTES - have, err);

		if (n < 0)
			return err_set(
				err, -EINVAL, "%s: cannot be read: %s", in->name, strerror(errno));
		in->end += n;
		in->offset += (uint64_t)n;
		in->ended = n == 0;
	}
	return start_codec(in, err);
}

int input_open_memory(
	struct input *in, const char *name, const void *bytes, size_t size, struct err *err) {
	int rc;

	*in = (struct input){.fd = -1};
	if ((rc = start(in, name, err)) < 0)
		return rc;
	if (size > INPUT_BYTES)
		return err_set(err, -EINVAL, "%s: more bytes than the buffer holds", name);
	memcpy(in->buffer, bytes, size);
	in->end = in->buffer + size;
	in->offset = size;
	in->packed_bytes = size;
	in->ended = true;
	return start_codec(in, err);
}

void input_close(struct input *in) {
	if (in->fd > STDIN_FILENO)
		close(in->fd);
	codec_close(in->codec);
	free(in->packed);
	mem_unmap(in->buffer, INPUT_BYTES);
	*in = (struct input){.fd = -1};
}

bool input_fill(struct input *in, size_t n, int *rc, struct err *err) {
	size_t have = (size_t)(in->end - in->at);

	*rc = 0;
	if (have >= n)
		return true;
	if (in->ended)
		return false;
	memmove(in->buffer, in->at, have);
	in->at = in->buffer;
	in->end = in->buffer + have;
	while (have < n) {
		uint8_t *to = in->buffer + have;
		size_t room = INPUT_BYTES - have;
		int64_t got = in->codec != NULL ? read_packed(in, to, room, err)
						: read_file(in, to, room, err);

		if (got <= 0) {
			in->ended = true;
			*rc = (int)got;
			return false;
		}
		have += (size_t)got;
		in->end += got;
		in->offset += (uint64_t)got;
	}
	return true;
}

bool input_skip(struct input *in, uint64_t n, int *rc, struct err *err) {
	*rc = 0;
	while (n > 0) {
		uint64_t have = (uint64_t)(in->end - in->at), part = n < have ? n : have;

		in->at += part;
		n -= part;
		if (n > 0 && !input_fill(in, 1, rc, err))
			return false;
	}
	return true;
}

bool input_cut(const struct input *in) {
	return in->codec != NULL && in->ended && !codec_complete(in->codec);
}

uint64_t input_file_bytes(const struct input *in) {
	return in->packed_bytes;
}
