// SPDX-License-Identifier: BSD-3-Clause
#include "common/pcap/writer.h"

#include "common/base/likely.h"
#include "common/base/mem.h"
#include "common/base/ns.h"
#include "common/pcap/fields.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// Kept until they are written; memory counts as far as it is used. When there are more, the older
// half is written early; what is older still and comes later is behind its time there, and counted.
#define KEPT_PACKETS ((size_t)1 << 20)
#define KEPT_BYTES ((size_t)256 << 20)
#define LATE_NS (250 * NS_PER_MS) // live: how far behind its producer's time a packet may be

struct pcap_kept {
	struct pcap_record record;
	size_t at; // of its bytes
	uint32_t order;
};

// Takes away the empty file that a trial has made; of a symbolic link, what it points to.
static void remove_made(const char *file) {
	char *made = realpath(file, NULL);

	if (made != NULL)
		unlink(made);
	free(made);
}

int pcap_writer_check(const char *file, bool force, struct err *err) {
	struct stat st;
	bool there = stat(file, &st) == 0;

	if (there && S_ISREG(st.st_mode) && !force)
		return err_set(err, -EINVAL,
			"--pcap %s: the file is there already: --force overwrites it", file);
	if (there && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return 0; // a pipe: opening it may wait for its reader
	int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0)
		return err_set(
			err, -EINVAL, "--pcap %s: cannot be written: %s", file, strerror(errno));
	close(fd);
	if (!there)
		remove_made(file);
	return 0;
}

static int by_place(const void *a, const void *b) {
	const struct pcap_kept *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

static int by_time(const void *a, const void *b) {
	const struct pcap_kept *x = a, *y = b;

	if (x->record.ts_ns != y->record.ts_ns)
		return x->record.ts_ns < y->record.ts_ns ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

static void write_kept(struct pcap_writer *w, const struct pcap_kept *k) {
	const struct pcap_record *r = &k->record;
	uint64_t written = w->file.count.packets;
	char text[PCAP_WRITER_COMMENT_MAX] = "";
	size_t used = 0;

	if (r->flow_id != PCAP_NO_FLOW)
		used = (size_t)snprintf(text, sizeof(text), "flow %u", r->flow_id);
	if (w->env.comment != NULL)
		w->env.comment(w->env.ctx, r, text + used, sizeof(text) - used);
	pcapng_write(&w->file,
		&(struct pcapng_packet){
			.ts_ns = w->env.epoch_ns + r->ts_ns,
			.data = w->bytes + k->at,
			.captured = r->captured,
			.length = r->length,
			.interface = r->interface,
			.direction = (enum pcapng_direction)r->direction,
			.has_id = r->id != PCAP_NO_ID,
			.id = r->id,
			.lost = r->lost,
			.comment = text,
		});
	if (w->file.count.packets > written && r->ts_ns < w->written_ns)
		w->out_of_order++;
	w->written_ns = time_max(w->written_ns, r->ts_ns);
}

// Gives the bytes of the packets that were written back: the others' go to the front.
static void reclaim(struct pcap_writer *w) {
	qsort(w->kept, w->count, sizeof(*w->kept), by_place);
	w->used = 0;
	for (size_t i = 0; i < w->count; i++) {
		struct pcap_kept *k = &w->kept[i];

		memmove(w->bytes + w->used, w->bytes + k->at, k->record.captured);
		k->at = w->used;
		w->used += k->record.captured;
	}
}

// Writes the packets from before now_ns, at most so many, the oldest first.
static void write_some(struct pcap_writer *w, uint64_t now_ns, size_t most) {
	size_t n = 0;

	qsort(w->kept, w->count, sizeof(*w->kept), by_time);
	for (; n < w->count && n < most && w->kept[n].record.ts_ns < now_ns; n++)
		write_kept(w, &w->kept[n]);
	w->count -= n;
	memmove(w->kept, w->kept + n, w->count * sizeof(*w->kept));
	for (size_t i = 0; i < w->count; i++)
		w->kept[i].order = (uint32_t)i;
	if (w->count == 0)
		w->used = 0;
}

// Once, when the capture cannot be written any more: the run goes on.
static void say_if_ended(struct pcap_writer *w) {
	if (w->said || pcapng_error(&w->file) == NULL)
		return;
	w->said = true;
	run_warn(w->env.run, "--pcap %s: %s: the capture ends here, the run goes on", w->name,
		pcapng_error(&w->file));
}

void pcap_writer_flush(struct pcap_writer *w, uint64_t now_ns) {
	write_some(w, now_ns, SIZE_MAX);
	if (w->env.rings
		> 0) // readers see it now, and a killed program's file ends with a whole packet
		pcapng_flush(&w->file);
	say_if_ended(w);
}

// Room for one packet more, of `bytes` at most.
static struct pcap_kept *keep(struct pcap_writer *w, size_t bytes) {
	if (unlikely(w->env.kept_bytes - w->used < bytes))
		reclaim(w);
	if (unlikely(w->count == KEPT_PACKETS || w->env.kept_bytes - w->used < bytes)) {
		write_some(w, NEVER_NS, w->count / 2 + 1);
		reclaim(w);
	}
	struct pcap_kept *k = &w->kept[w->count];

	k->at = w->used;
	k->order = (uint32_t)w->count++;
	return k;
}

bool pcap_writer_place(
	struct pcap_writer *w, uint32_t ring, uint32_t interface, struct pcap_place *place) {
	struct pcap_ring *r = &w->ring[ring];

	if (w->env.rings == 0) {
		struct pcap_kept *k = keep(w, PCAPNG_CAPTURED_MAX);

		*place = (struct pcap_place){&k->record, w->bytes + k->at, PCAPNG_CAPTURED_MAX, 0};
		return true;
	}
	uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);

	if (unlikely(head == r->limit)) {
		r->limit = atomic_load_explicit(&r->tail, memory_order_acquire) + r->mask + 1;
		if (head == r->limit) {
			r->lost[interface]++;
			return false;
		}
	}
	struct pcap_slot *slot = &r->slot[head & r->mask];

	*place = (struct pcap_place){
		&slot->record, slot->bytes, PCAP_WRITER_SNAP, r->lost[interface]};
	r->lost[interface] = 0;
	return true;
}

void pcap_writer_put(struct pcap_writer *w, uint32_t ring, const struct pcap_place *place) {
	struct pcap_ring *r = &w->ring[ring];

	place->record->lost = place->lost;
	if (w->env.rings == 0)
		w->used += place->record->captured;
	else
		atomic_store_explicit(&r->head,
			atomic_load_explicit(&r->head, memory_order_relaxed) + 1,
			memory_order_release);
}

static void ring_drain(struct pcap_writer *w, struct pcap_ring *r) {
	uint64_t head = atomic_load_explicit(&r->head, memory_order_acquire);
	uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);

	for (; tail < head; tail++) {
		const struct pcap_slot *slot = &r->slot[tail & r->mask];
		struct pcap_kept *k = keep(w, PCAP_WRITER_SNAP);

		k->record = slot->record;
		memcpy(w->bytes + k->at, slot->bytes, slot->record.captured);
		w->used += slot->record.captured;
	}
	atomic_store_explicit(&r->tail, tail, memory_order_release);
}

void pcap_writer_reached(struct pcap_writer *w, uint32_t ring, uint64_t now_ns) {
	atomic_store_explicit(&w->ring[ring].reached_ns, now_ns, memory_order_release);
}

void pcap_writer_drain(struct pcap_writer *w) {
	uint64_t all_ns = NEVER_NS;

	// The times first: what was put before them is in the rings.
	for (uint32_t i = 0; i < w->env.rings; i++)
		all_ns = time_min(
			all_ns, atomic_load_explicit(&w->ring[i].reached_ns, memory_order_acquire));
	for (uint32_t i = 0; i < w->env.rings; i++)
		ring_drain(w, &w->ring[i]);
	pcap_writer_flush(w, time_since(all_ns, LATE_NS));
}

static bool get_memory(struct pcap_writer *w) {
	bool ok = true;

	for (uint32_t i = 0; i < w->env.rings && ok; i++) {
		struct pcap_ring *r = &w->ring[i];

		r->mask = w->env.ring_records - 1;
		r->limit = w->env.ring_records;
		r->slot = mem_map(w->env.ring_records * sizeof(*r->slot));
		ok = r->slot != NULL;
		if (ok) // an lcore must not wait for the kernel to find a page
			memset(r->slot, 0, w->env.ring_records * sizeof(*r->slot));
	}
	w->kept = mem_map(KEPT_PACKETS * sizeof(*w->kept));
	w->bytes = mem_map(w->env.kept_bytes);
	return ok && w->kept != NULL && w->bytes != NULL;
}

int pcap_writer_open(struct pcap_writer *w, const char *file, const struct pcap_writer_env *env,
	struct err *err) {
	struct err why;
	int rc = -ENOMEM;

	memset(w, 0, sizeof(*w));
	w->file.fd = -1;
	w->env = *env;
	if (w->env.kept_bytes == 0)
		w->env.kept_bytes = KEPT_BYTES;
	w->name = file;
	snprintf(
		w->program, sizeof(w->program), "%s %s", env->run->options->program, run_version());
	if (!get_memory(w))
		err_set(&why, rc, "no memory");
	else
		rc = pcapng_open(&w->file, file, w->program, env->run->capture_rotate_bytes, &why);
	if (rc == 0 && env->rings > 0)
		pcapng_no_wait(&w->file);
	if (rc == 0)
		return 0;
	pcap_writer_free(w);
	return err_set(err, rc, "--pcap %s: %s", file, why.msg);
}

static void warn_if_empty(const struct pcap_writer *w) {
	const struct run *run = w->env.run;

	if (w->file.count.packets > 0 || w->file.count.lost > 0 || run->unsampled)
		return;
	run_warn(run, "--pcap %s: no packet was captured%s", w->name,
		run->telemetry_level == 2
			? ": telemetry level 2 samples the flows, and packets of none of them came"
			: "");
}

int pcap_writer_close(struct pcap_writer *w, struct err *err) {
	struct err why;

	for (uint32_t i = 0; i < w->env.rings; i++)
		ring_drain(w, &w->ring[i]);
	pcap_writer_flush(w, NEVER_NS);
	for (uint32_t i = 0; i < w->env.rings; i++) {
		for (uint32_t k = 0; k < w->file.interfaces; k++)
			pcapng_lost(&w->file, k, w->ring[i].lost[k]);
	}
	int rc = pcapng_close(&w->file, &why);
	if (rc == 0)
		warn_if_empty(w);
	if (rc == -EPIPE || rc == -ETIMEDOUT) { // a pipe: the run is none the worse
		say_if_ended(w);
		rc = 0;
	}
	return rc < 0 ? err_set(err, rc, "--pcap %s: %s", w->name, why.msg) : 0;
}

void pcap_writer_summary(const struct pcap_writer *w, struct json *j) {
	json_object(j, "capture");
	CAPTURE_FIELDS(FIELD_JSON)
	json_close(j, '}');
}

void pcap_writer_free(struct pcap_writer *w) {
	if (w->file.fd >= 0)
		pcapng_close(&w->file, NULL);
	for (uint32_t i = 0; i < w->env.rings; i++)
		mem_unmap(w->ring[i].slot, w->env.ring_records * sizeof(struct pcap_slot));
	mem_unmap(w->kept, KEPT_PACKETS * sizeof(*w->kept));
	mem_unmap(w->bytes, w->env.kept_bytes);
}
