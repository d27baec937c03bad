// SPDX-License-Identifier: BSD-3-Clause
#include "switch/capture.h"

#include "common/base/likely.h"
#include "common/base/mem.h"
#include "common/config/live.h"
#include "common/pcap/pcapng.h"
#include "switch/capture_ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define POINT_NONE UINT32_MAX
#define COMMENT_MAX 160
// Kept until they are written; memory counts as far as it is used. When there are more, they are written early,
// and the order of times is broken there.
#define KEPT_PACKETS ((size_t)1 << 20)
#define KEPT_BYTES ((size_t)256 << 20)
#define LATE_NS (250 * NS_PER_MS) // live: how long after its time a packet may come here
#define PASSAGES ((size_t)1 << 20) // packets of a path whose way is known: far more than are inside

// What has happened to a packet so far on its path.
struct passage {
	uint64_t queue_ns;
	uint32_t id;
	bool queued;
	uint8_t marked_by; // stage, counted from 1; 0: none
};

// Interfaces of a path; POINT_NONE: not captured.
struct points {
	uint32_t in, out, drop;
	enum pcapng_direction in_direction, out_direction;
	struct passage *passage;
};

// What paths show their packets to; with a ring, in a thread of its own.
struct tap {
	struct path_tap tap; // first: what a path gives back
	struct capture *capture;
	struct capture_ring *ring; // NULL: none
};

struct kept {
	struct capture_record record;
	size_t at; // of its bytes
	uint32_t order;
};

struct capture {
	struct capture_ring ring[LIVE_LCORES_MAX]; // first: aligned to cache lines
	struct capture_env env;
	struct pcapng file;
	const char *name;
	char program[32];
	struct points points[PATHS_MAX]; // of a path: its producer's
	struct tap tap[LIVE_LCORES_MAX];
	struct kept *kept;
	uint8_t *bytes;
	size_t count, used;
	uint64_t newest_ns;
};

int capture_check(const char *file, bool force, struct err *err) {
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
		unlink(file);
	return 0;
}

static int by_time(const void *a, const void *b) {
	const struct kept *x = a, *y = b;

	if (x->record.ts_ns != y->record.ts_ns)
		return x->record.ts_ns < y->record.ts_ns ? -1 : 1;
	return x->order < y->order ? -1 : 1;
}

static void comment(
	const struct capture *c, const struct capture_record *r, char text[COMMENT_MAX]) {
	const struct path *path = &c->env.paths->path[r->path];
	size_t used = (size_t)snprintf(text, COMMENT_MAX, "flow %u", r->flow_id);

	if (r->dropped_by > 0)
		used += (size_t)snprintf(text + used, COMMENT_MAX - used, ", dropped at %s: %s",
			path->stage[r->dropped_by - 1].name,
			drop_reason_name((enum drop_reason)r->reason));
	if (r->queued)
		used += (size_t)snprintf(text + used, COMMENT_MAX - used, ", queue %llu.%06llu ms",
			(unsigned long long)(r->queue_ns / NS_PER_MS),
			(unsigned long long)(r->queue_ns % NS_PER_MS));
	if (r->marked_by > 0)
		snprintf(text + used, COMMENT_MAX - used, ", CE marked at %s",
			path->stage[r->marked_by - 1].name);
}

static void write_kept(struct capture *c, const struct kept *k) {
	const struct capture_record *r = &k->record;
	char text[COMMENT_MAX];

	comment(c, r, text);
	pcapng_write(&c->file,
		&(struct pcapng_packet){
			.ts_ns = c->env.epoch_ns + r->ts_ns,
			.data = c->bytes + k->at,
			.captured = r->captured,
			.length = r->length,
			.interface = r->interface,
			.direction = (enum pcapng_direction)r->direction,
			.has_id = true,
			.id = r->id,
			.lost = r->lost,
			.comment = text,
		});
}

void capture_flush(struct capture *c, uint64_t now_ns) {
	size_t n = 0;

	if (c == NULL)
		return;
	qsort(c->kept, c->count, sizeof(*c->kept), by_time);
	for (; n < c->count && c->kept[n].record.ts_ns < now_ns; n++)
		write_kept(c, &c->kept[n]);
	c->count -= n;
	memmove(c->kept, c->kept + n, c->count * sizeof(*c->kept));
	for (size_t i = 0; i < c->count; i++)
		c->kept[i].order = (uint32_t)i;
	if (c->count == 0)
		c->used = 0;
}

// Room for one packet more, of `bytes` at most.
static struct kept *keep(struct capture *c, size_t bytes) {
	if (unlikely(c->count == KEPT_PACKETS || KEPT_BYTES - c->used < bytes))
		capture_flush(c, NEVER_NS);
	struct kept *k = &c->kept[c->count];

	k->at = c->used;
	k->order = (uint32_t)c->count++;
	return k;
}

static void ring_put(
	struct tap *t, struct capture_record *r, const struct path *path, const struct pkt *p) {
	struct capture_ring *ring = t->ring;
	const struct capture_env *env = &t->capture->env;
	struct capture_slot *slot = ring_slot(ring, r->interface);

	if (slot == NULL)
		return;
	r->lost = ring->lost[r->interface];
	ring->lost[r->interface] = 0;
	r->captured = env->frame(env->ctx, path, p, slot->bytes, CAPTURE_SNAP, &r->length);
	slot->record = *r;
	atomic_store_explicit(&ring->head,
		atomic_load_explicit(&ring->head, memory_order_relaxed) + 1, memory_order_release);
}

static void ring_drain(struct capture *c, struct capture_ring *r) {
	uint64_t head = atomic_load_explicit(&r->head, memory_order_acquire);
	uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);

	for (; tail < head; tail++) {
		const struct capture_slot *slot = &r->slot[tail & r->mask];
		struct kept *k = keep(c, CAPTURE_SNAP);

		k->record = slot->record;
		memcpy(c->bytes + k->at, slot->bytes, slot->record.captured);
		c->used += slot->record.captured;
		c->newest_ns = time_max(c->newest_ns, slot->record.ts_ns);
	}
	atomic_store_explicit(&r->tail, tail, memory_order_release);
}

void capture_drain(struct capture *c) {
	for (uint32_t i = 0; c != NULL && i < c->env.rings; i++)
		ring_drain(c, &c->ring[i]);
	if (c != NULL)
		capture_flush(c, time_since(c->newest_ns, LATE_NS));
}

static struct passage *passage_of(struct capture *c, const struct path *path, const struct pkt *p) {
	struct passage *way = &c->points[path->index].passage[p->id % PASSAGES];

	return way->id == p->id ? way : NULL;
}

static void show(struct tap *t, uint32_t interface, enum pcapng_direction direction,
	const struct path *path, const struct pkt *p, uint64_t ts_ns, uint8_t dropped_by) {
	struct capture *c = t->capture;
	const struct tel_run *tel = &c->env.run->tel;
	const struct passage *way;

	if (interface == POINT_NONE || (tel->level == 2 && !tel_flow_chosen(tel, p->flow_id)))
		return;
	way = passage_of(c, path, p);
	struct capture_record r = {
		.ts_ns = ts_ns,
		.id = (uint64_t)path->index << 32 | p->id,
		.queue_ns = way != NULL ? way->queue_ns : 0,
		.flow_id = p->flow_id,
		.interface = (uint8_t)interface,
		.direction = (uint8_t)direction,
		.path = path->index,
		.marked_by = way != NULL ? way->marked_by : 0,
		.dropped_by = dropped_by,
		.reason = p->drop_reason,
		.queued = way != NULL && way->queued,
	};
	if (t->ring != NULL) {
		ring_put(t, &r, path, p);
		return;
	}
	struct kept *k = keep(c, PCAPNG_CAPTURED_MAX);

	r.captured =
		c->env.frame(c->env.ctx, path, p, c->bytes + k->at, PCAPNG_CAPTURED_MAX, &r.length);
	c->used += r.captured;
	k->record = r;
}

static void arrived(
	struct path_tap *tap, const struct path *path, struct pkt *const *pkts, uint32_t n) {
	struct tap *t = (struct tap *)tap;
	struct points *at = &t->capture->points[path->index];

	for (uint32_t i = 0; i < n; i++) {
		at->passage[pkts[i]->id % PASSAGES] = (struct passage){.id = pkts[i]->id};
		show(t, at->in, at->in_direction, path, pkts[i], pkts[i]->arrival_ns, 0);
	}
}

static void departed(
	struct path_tap *tap, const struct path *path, struct pkt *const *pkts, uint32_t n) {
	struct tap *t = (struct tap *)tap;
	const struct points *at = &t->capture->points[path->index];

	for (uint32_t i = 0; i < n; i++)
		show(t, at->out, at->out_direction, path, pkts[i], pkts[i]->arrival_ns, 0);
}

static void event(struct path_tap *tap, const struct stage_env *env, enum tel_packet_event what,
	const struct pkt *p, uint64_t ts_ns) {
	struct tap *t = (struct tap *)tap;
	const struct path *path = &t->capture->env.paths->path[env->path_index];
	struct passage *way = passage_of(t->capture, path, p);
	uint8_t stage = (uint8_t)(env->stage_index + 1);

	if (way != NULL && (what == TEL_DEQUEUE || (what == TEL_DROP && ts_ns > p->arrival_ns))) {
		way->queue_ns += time_since(ts_ns, p->arrival_ns);
		way->queued = true;
	}
	if (way != NULL && what == TEL_MARK)
		way->marked_by = stage;
	if (what == TEL_DROP)
		show(t, t->capture->points[path->index].drop, PCAPNG_ANY, path, p, ts_ns, stage);
}

static uint32_t add_point(struct capture *c, const struct path *path, const char *what) {
	char name[PCAPNG_NAME_MAX];

	snprintf(name, sizeof(name), "%s%s", path->name, what);
	return pcapng_interface(&c->file, name);
}

static void add_points(struct capture *c) {
	bool all = c->env.run->capture_points == RUN_CAPTURE_PATHS;
	uint32_t sender = POINT_NONE;

	if (!all && c->env.hosts)
		sender = pcapng_interface(&c->file, "sender");
	for (uint32_t i = 0; i < c->env.paths->count; i++) {
		struct path *path = &c->env.paths->path[i];
		struct points *at = &c->points[i];

		*at = (struct points){.in = POINT_NONE,
			.out = POINT_NONE,
			.drop = POINT_NONE,
			.passage = at->passage};
		if (all) {
			at->in = add_point(c, path, " in");
			at->out = add_point(c, path, " out");
			at->drop = add_point(c, path, " drop");
			at->in_direction = PCAPNG_INBOUND;
			at->out_direction = PCAPNG_OUTBOUND;
		} else if (!c->env.hosts) {
			at->out = add_point(c, path, "");
			at->out_direction = PCAPNG_OUTBOUND;
		} else if (strcmp(path->name, "forward") == 0) {
			at->in = sender;
			at->in_direction = PCAPNG_OUTBOUND;
		} else if (strcmp(path->name, "reverse") == 0) {
			at->out = sender;
			at->out_direction = PCAPNG_INBOUND;
		}
	}
}

void capture_paths(struct capture *c, uint32_t ring, struct path *const *paths, uint32_t n) {
	for (uint32_t i = 0; i < n; i++)
		path_tap(paths[i], &c->tap[ring].tap);
}

static bool get_memory(struct capture *c) {
	bool ok = true;

	for (uint32_t i = 0; i < c->env.rings; i++) {
		c->ring[i].mask = c->env.ring_records - 1;
		c->ring[i].limit = c->env.ring_records;
		c->ring[i].slot = mem_map(c->env.ring_records * sizeof(struct capture_slot));
		ok = ok && c->ring[i].slot != NULL;
		if (ok) // an lcore must not wait for the kernel to find a page
			memset(c->ring[i].slot, 0,
				c->env.ring_records * sizeof(struct capture_slot));
	}

	c->kept = mem_map(KEPT_PACKETS * sizeof(*c->kept));
	c->bytes = mem_map(KEPT_BYTES);
	for (uint32_t i = 0; i < c->env.paths->count; i++) {
		c->points[i].passage = mem_map(PASSAGES * sizeof(struct passage));
		ok = ok && c->points[i].passage != NULL;
		if (ok && c->env.rings > 0)
			memset(c->points[i].passage, 0, PASSAGES * sizeof(struct passage));
	}
	return ok && c->kept != NULL && c->bytes != NULL;
}

int capture_open(
	struct capture **out, const char *file, const struct capture_env *env, struct err *err) {
	struct capture *c = aligned_alloc(64, sizeof(*c));
	struct err why;
	int rc = -ENOMEM;

	if (c == NULL)
		return err_set(err, rc, "--pcap: no memory");
	memset(c, 0, sizeof(*c));
	c->env = *env;
	c->name = file;
	snprintf(
		c->program, sizeof(c->program), "%s %s", env->run->options->program, run_version());
	for (uint32_t i = 0; i < LIVE_LCORES_MAX; i++)
		c->tap[i] = (struct tap){
			.tap = {.arrived = arrived, .departed = departed, .event = event},
			.capture = c,
			.ring = env->rings > 0 ? &c->ring[i] : NULL,
		};
	if (!get_memory(c))
		err_set(&why, rc, "no memory");
	else
		rc = pcapng_open(&c->file, file, c->program, env->run->capture_rotate_bytes, &why);
	if (rc < 0) {
		err_set(err, rc, "--pcap %s: %s", file, why.msg);
		capture_free(c);
		return rc;
	}
	add_points(c);
	for (uint32_t i = 0; env->rings == 0 && i < env->paths->count; i++)
		path_tap(&env->paths->path[i], &c->tap[0].tap);
	*out = c;
	return 0;
}

int capture_close(struct capture *c, struct err *err) {
	struct err why;

	if (c == NULL)
		return 0;
	for (uint32_t i = 0; i < c->env.rings; i++)
		ring_drain(c, &c->ring[i]);
	capture_flush(c, NEVER_NS);
	for (uint32_t i = 0; i < c->env.rings * c->file.interfaces; i++)
		pcapng_lost(&c->file, i % c->file.interfaces,
			c->ring[i / c->file.interfaces].lost[i % c->file.interfaces]);
	int rc = pcapng_close(&c->file, &why);
	return rc < 0 ? err_set(err, rc, "--pcap %s: %s", c->name, why.msg) : 0;
}

void capture_summary(const struct capture *c, struct json *j) {
	if (c == NULL)
		return;
	json_object(j, "capture");
	json_text(j, "file", c->name);
	json_u64(j, "packets", c->file.count.packets);
	json_u64(j, "bytes", c->file.count.bytes);
	json_u64(j, "lost", c->file.count.lost);
	json_u64(j, "rotated_away", c->file.count.removed);
	json_close(j, '}');
}

void capture_free(struct capture *c) {
	if (c == NULL)
		return;
	if (c->file.file != NULL)
		pcapng_close(&c->file, NULL);
	for (uint32_t i = 0; i < c->env.paths->count; i++)
		mem_unmap(c->points[i].passage, PASSAGES * sizeof(struct passage));
	for (uint32_t i = 0; i < c->env.rings; i++)
		mem_unmap(c->ring[i].slot, c->env.ring_records * sizeof(struct capture_slot));
	mem_unmap(c->kept, KEPT_PACKETS * sizeof(*c->kept));
	mem_unmap(c->bytes, KEPT_BYTES);
	free(c);
}
