// SPDX-License-Identifier: BSD-3-Clause
#include "tools/pcap/parts.h"

#include "common/base/ns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int open_at(struct parts *p, const char *path, uint32_t *slot, struct err *err) {
	uint32_t i = 0;

	while (i < PARTS_OPEN_MAX && p->open[i] != NULL && p->open[i]->path != NULL)
		i++;
	if (i == PARTS_OPEN_MAX)
		return err_set(err, -EINVAL,
			"%s: overlaps in time with %u other files, more than are read at once",
			path, PARTS_OPEN_MAX);
	if (p->open[i] == NULL)
		p->open[i] = calloc(1, sizeof(*p->open[i]));
	struct parts_open *o = p->open[i];

	if (o == NULL)
		return err_set(err, -ENOMEM, "%s: no memory to read it", path);
	int rc = reader_open(&o->reader, path, err);
	if (rc < 0)
		return rc;
	o->path = path;
	o->at = o->count = 0;
	*slot = i;
	return 0;
}

static void close_at(struct parts *p, struct parts_open *o) {
	const struct reader *r = &o->reader;

	p->bytes += input_file_bytes(&r->in);
	p->read.packets += r->count.packets;
	p->read.bytes += r->count.bytes;
	p->read.no_time += r->count.no_time;
	p->read.skipped_blocks += r->count.skipped_blocks;
	p->read.unknown_interface += r->count.unknown_interface;
	if (r->end != READER_WHOLE && r->end != READER_MORE && p->note != NULL)
		p->note(p->of, r->said);
	reader_close(&o->reader);
	o->path = NULL;
}

// Reads on if nothing is left. Packets that are there, or -errno.
static int fill(struct parts_open *o, struct err *err) {
	if (o->at == o->count) {
		int n = reader_batch(&o->reader, o->frames, READER_BATCH, err);

		if (n < 0)
			return n;
		o->at = 0;
		o->count = (uint32_t)n;
	}
	return (int)(o->count - o->at);
}

// When a file begins. It is closed again, so that hundreds may be parts of one capture; a pipe
// stays open.
static int peek(struct parts *p, struct part *part, struct err *err) {
	struct stat st;
	bool keep = p->count == 1 || stat(part->path, &st) != 0 || !S_ISREG(st.st_mode);
	uint32_t slot;
	int rc = open_at(p, part->path, &slot, err);

	part->first_ns = NEVER_NS;
	part->open = PARTS_OPEN_MAX;
	if (rc < 0)
		return rc;
	struct parts_open *o = p->open[slot];
	int n = fill(o, err);

	if (n > 0)
		part->first_ns = o->frames[0].ts_ns;
	if (keep) {
		part->open = slot;
	} else {
		reader_close(&o->reader);
		o->path = NULL;
	}
	return n < 0 ? n : 0;
}

static int by_first(const void *a, const void *b) {
	const struct part *one = a, *other = b;

	if (one->first_ns != other->first_ns)
		return one->first_ns < other->first_ns ? -1 : 1;
	return one->given < other->given ? -1 : 1;
}

int parts_init(struct parts *p, const char *const *files, uint32_t count, struct err *err) {
	int rc = 0;

	memset(p, 0, sizeof(*p));
	p->part = calloc(count, sizeof(*p->part));
	if (p->part == NULL)
		return err_set(err, -ENOMEM, "no memory for %u files", count);
	p->count = count;
	for (uint32_t i = 0; i < count && rc == 0; i++) {
		p->part[i].path = files[i];
		p->part[i].given = i;
		rc = peek(p, &p->part[i], err);
	}
	if (rc < 0) {
		parts_fini(p);
		return rc;
	}
	qsort(p->part, count, sizeof(*p->part), by_first);
	return 0;
}

int parts_init_memory(
	struct parts *p, const char *name, const void *bytes, size_t size, struct err *err) {
	memset(p, 0, sizeof(*p));
	p->open[0] = calloc(1, sizeof(*p->open[0]));
	if (p->open[0] == NULL)
		return err_set(err, -ENOMEM, "no memory to read it");
	int rc = reader_open_memory(&p->open[0]->reader, name, bytes, size, err);

	if (rc == 0)
		p->open[0]->path = name;
	else
		parts_fini(p);
	return rc;
}

void parts_fini(struct parts *p) {
	p->note = NULL;
	for (uint32_t i = 0; i < PARTS_OPEN_MAX && p->open[i] != NULL; i++) {
		if (p->open[i]->path != NULL)
			close_at(p, p->open[i]);
		free(p->open[i]);
		p->open[i] = NULL;
	}
	free(p->part);
	p->part = NULL;
}

// The open file whose next packet is the first of all; its time in *until is that of the second.
// NULL: none has one.
static int earliest(
	struct parts *p, struct parts_open **first, uint64_t *until_ns, struct err *err) {
	uint64_t least_ns = NEVER_NS;

	*first = NULL;
	*until_ns = NEVER_NS;
	for (uint32_t i = 0; i < PARTS_OPEN_MAX && p->open[i] != NULL; i++) {
		struct parts_open *o = p->open[i];
		int n = o->path != NULL ? fill(o, err) : 0;

		if (n < 0)
			return n;
		if (n == 0) {
			if (o->path != NULL)
				close_at(p, o);
			continue;
		}
		uint64_t ts_ns = o->frames[o->at].ts_ns;

		if (*first == NULL || ts_ns < least_ns) {
			*until_ns = *first == NULL ? *until_ns : least_ns;
			least_ns = ts_ns;
			*first = o;
		} else {
			*until_ns = time_min(*until_ns, ts_ns);
		}
	}
	return 0;
}

int parts_read(struct parts *p, struct parts_batch *batch, struct err *err) {
	struct parts_open *o;
	uint64_t until_ns;
	int rc;

	for (;;) {
		rc = earliest(p, &o, &until_ns, err);
		if (rc < 0)
			return rc;
		if (p->next == p->count)
			break;
		struct part *part = &p->part[p->next];
		if (o != NULL && o->frames[o->at].ts_ns < part->first_ns) {
			until_ns = time_min(until_ns, part->first_ns);
			break;
		}
		p->next++;
		if (part->open == PARTS_OPEN_MAX
			&& (rc = open_at(p, part->path, &part->open, err)) < 0)
			return rc;
	}
	if (o == NULL)
		return 0;
	uint32_t n = 1;
	while (o->at + n < o->count && o->frames[o->at + n].ts_ns <= until_ns)
		n++;
	*batch = (struct parts_batch){
		.frames = &o->frames[o->at],
		.reader = &o->reader,
		.path = o->path,
	};
	while (p->open[batch->slot] != o)
		batch->slot++;
	batch->first = o->reader.count.packets == o->count && o->at == 0;
	o->at += n;
	return (int)n;
}

uint64_t parts_packets(const struct parts *p) {
	uint64_t packets = p->read.packets;

	for (uint32_t i = 0; i < PARTS_OPEN_MAX && p->open[i] != NULL; i++) {
		if (p->open[i]->path != NULL)
			packets += p->open[i]->reader.count.packets;
	}
	return packets;
}

uint64_t parts_bytes(const struct parts *p) {
	uint64_t bytes = p->bytes;

	for (uint32_t i = 0; i < PARTS_OPEN_MAX && p->open[i] != NULL; i++) {
		if (p->open[i]->path != NULL)
			bytes += input_file_bytes(&p->open[i]->reader.in);
	}
	return bytes;
}
