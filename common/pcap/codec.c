// SPDX-License-Identifier: BSD-3-Clause
#include "common/pcap/codec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#define GZIP_WINDOW (15 + 16) // the largest window; only gzip's header
#define WINDOW_LOG_MAX 27 // 128 MiB, what zstd itself decompresses without an option

struct codec {
	const char *name;
	ZSTD_DStream *zstd; // NULL: gzip
	z_stream gzip;
	bool complete;
};

int codec_open(struct codec **codec, const char *name, const uint8_t *magic, size_t size,
	struct err *err) {
	static const uint8_t zstd_magic[] = {0x28, 0xb5, 0x2f, 0xfd};
	bool zstd = size >= 4 && memcmp(magic, zstd_magic, 4) == 0;
	bool gzip = size >= 2 && magic[0] == 0x1f && magic[1] == 0x8b;

	*codec = NULL;
	if (!zstd && !gzip)
		return 0;
	struct codec *c = calloc(1, sizeof(*c));
	if (c == NULL)
		return err_set(err, -ENOMEM, "%s: no memory to decompress it", name);
	c->name = name;
	if (zstd) {
		c->zstd = ZSTD_createDStream();
		if (c->zstd != NULL)
			ZSTD_DCtx_setParameter(c->zstd, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
	}
	if (zstd ? c->zstd == NULL : inflateInit2(&c->gzip, GZIP_WINDOW) != Z_OK) {
		free(c);
		return err_set(err, -ENOMEM, "%s: no memory to decompress it", name);
	}
	*codec = c;
	return 0;
}

void codec_close(struct codec *codec) {
	if (codec == NULL)
		return;
	if (codec->zstd != NULL)
		ZSTD_freeDStream(codec->zstd);
	else
		inflateEnd(&codec->gzip);
	free(codec);
}

static int64_t read_zstd(struct codec *c, const uint8_t **from, const uint8_t *from_end,
	uint8_t *to, size_t room, struct err *err) {
	ZSTD_inBuffer in = {*from, (size_t)(from_end - *from), 0};
	ZSTD_outBuffer out = {to, room, 0};

	while (in.pos < in.size && out.pos < out.size) {
		size_t rc = ZSTD_decompressStream(c->zstd, &out, &in);

		if (ZSTD_isError(rc))
			return err_set(
				err, -EINVAL, "%s: zstd: %s", c->name, ZSTD_getErrorName(rc));
		c->complete = rc == 0;
	}
	// What is left inside comes with an input of nothing.
	while (!c->complete && out.pos < out.size) {
		size_t before = out.pos, rc = ZSTD_decompressStream(c->zstd, &out, &in);

		if (ZSTD_isError(rc))
			return err_set(
				err, -EINVAL, "%s: zstd: %s", c->name, ZSTD_getErrorName(rc));
		c->complete = rc == 0;
		if (out.pos == before)
			break;
	}
	*from += in.pos;
	return (int64_t)out.pos;
}

static int64_t read_gzip(struct codec *c, const uint8_t **from, const uint8_t *from_end,
	uint8_t *to, size_t room, struct err *err) {
	z_stream *z = &c->gzip;

	z->next_out = to;
	z->avail_out = (uInt)room;
	z->avail_in = (uInt)(from_end - *from);
	memcpy(&z->next_in, from, sizeof(*from)); // zlib does not write to it
	while (z->avail_out > 0) {
		if (c->complete) { // another member may follow
			if (z->avail_in == 0)
				break;
			inflateReset(z);
			c->complete = false;
		}
		int rc = inflate(z, Z_NO_FLUSH);

		c->complete = rc == Z_STREAM_END;
		if (rc == Z_BUF_ERROR || (rc == Z_OK && z->avail_in == 0))
			break;
		if (rc != Z_OK && rc != Z_STREAM_END)
			return err_set(err, -EINVAL, "%s: gzip: %s", c->name,
				z->msg != NULL ? z->msg : "damaged");
	}
	*from = from_end - z->avail_in;
	return (int64_t)(room - z->avail_out);
}

int64_t codec_read(struct codec *codec, const uint8_t **from, const uint8_t *from_end, uint8_t *to,
	size_t room, struct err *err) {
	return codec->zstd != NULL ? read_zstd(codec, from, from_end, to, room, err)
				   : read_gzip(codec, from, from_end, to, room, err);
}

bool codec_complete(const struct codec *codec) {
	return codec->complete;
}
