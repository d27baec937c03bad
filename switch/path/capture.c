// SPDX-License-Identifier: BSD-3-Clause
#include "switch/path/capture.h"

#include "common/base/mem.h"
#include "common/pcap/writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define POINT_NONE UINT32_MAX
#define PASSAGES ((size_t)1 << 20) // packets of a path whose way is known: far more than are inside

#define PASSAGES_FOLD 12 // so that the highest bits of a number count, too

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
	bool sender_only; // only packets at the sender's port
	struct passage *passage;
};

// What paths show their packets to; with a ring, in a thread of its own.
struct tap {
	struct path_tap tap; // first: what a path gives back
	struct capture *capture;
	uint32_t ring;
};

struct capture {
	struct pcap_writer writer; // first: aligned to cache lines
	struct capture_env env;
	struct points points[PATHS_MAX]; // of a path: its producer's
	struct tap tap[LIVE_LCORES_MAX];
};

// What is known of a packet besides its flow.
static void comment(const void *ctx, const struct pcap_record *r, char *text, size_t size) {
	const struct capture *c = ctx;
	const struct path *path = &c->env.paths->path[r->path];
	size_t used = 0;

	if (r->dropped_by > 0)
		used = (size_t)snprintf(text, size, ", dropped at %s: %s",
			path->stage[r->dropped_by - 1].name,
			drop_reason_name((enum drop_reason)r->reason));
	if (r->queued)
		used += (size_t)snprintf(text + used, size - used, ", queue %llu.%06llu ms",
			(unsigned long long)(r->queue_ns / NS_PER_MS),
			(unsigned long long)(r->queue_ns % NS_PER_MS));
	if (r->marked_by > 0)
		snprintf(text + used, size - used, ", CE marked at %s",
			path->stage[r->marked_by - 1].name);
}

void capture_reached(
	struct capture *c, uint32_t ring, struct path *const *paths, uint32_t n, uint64_t now_ns) {
	if (c == NULL)
		return;
	for (uint32_t i = 0; i < n;
		i++) // a stage's own time is earlier than that at which the packet leaves the path
		now_ns = time_min(
			now_ns, time_since(path_next_ns(paths[i]), path_min_delay_ns(paths[i])));
	pcap_writer_reached(&c->writer, ring, now_ns);
}

void capture_secrets(struct capture *c, const uint8_t *blocks, size_t size) {
	if (c != NULL)
		pcapng_secrets(&c->writer.file, blocks, size);
}

void capture_drain(struct capture *c) {
	if (c != NULL)
		pcap_writer_drain(&c->writer);
}

void capture_flush(struct capture *c, uint64_t now_ns) {
	if (c != NULL)
		pcap_writer_flush(&c->writer, now_ns);
}

// Where the way of a packet is noted: far from that of its copy, whose number has another high bit.
static struct passage *passage_at(struct capture *c, const struct path *path, const struct pkt *p) {
	return &c->points[path->index].passage[(p->id ^ p->id >> PASSAGES_FOLD) % PASSAGES];
}

static struct passage *passage_of(struct capture *c, const struct path *path, const struct pkt *p) {
	struct passage *way = passage_at(c, path, p);

	return way->id == p->id ? way : NULL;
}

static void show(struct tap *t, uint32_t interface, enum pcapng_direction direction,
	const struct path *path, const struct pkt *p, uint64_t ts_ns, uint8_t dropped_by) {
	struct capture *c = t->capture;
	const struct tel_run *tel = &c->env.run->tel;
	const struct passage *way;

	if (interface == POINT_NONE || (tel->level == 2 && !tel_flow_chosen(tel, p->flow_id)))
		return;
	struct pcap_place place;
	if (!pcap_writer_place(&c->writer, t->ring, interface, &place))
		return;
	way = passage_of(c, path, p);
	*place.record = (struct pcap_record){
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
	place.record->captured =
		c->env.frame(c->env.ctx, path, p, place.bytes, place.room, &place.record->length);
	pcap_writer_put(&c->writer, t->ring, &place);
}

static bool at_sender(
	struct capture *c, const struct path *path, const struct pkt *p, bool leaving) {
	return c->env.at_sender(c->env.ctx, path, p, leaving);
}

static void arrived(
	struct path_tap *tap, const struct path *path, struct pkt *const *pkts, uint32_t n) {
	struct tap *t = (struct tap *)tap;
	struct points *at = &t->capture->points[path->index];

	for (uint32_t i = 0; i < n; i++) {
		*passage_at(t->capture, path, pkts[i]) = (struct passage){.id = pkts[i]->id};
		if (!at->sender_only || at_sender(t->capture, path, pkts[i], false))
			show(t, at->in, at->in_direction, path, pkts[i], pkts[i]->arrival_ns, 0);
	}
}

static void departed(
	struct path_tap *tap, const struct path *path, struct pkt *const *pkts, uint32_t n) {
	struct tap *t = (struct tap *)tap;
	const struct points *at = &t->capture->points[path->index];

	for (uint32_t i = 0; i < n; i++) {
		if (!at->sender_only || at_sender(t->capture, path, pkts[i], true))
			show(t, at->out, at->out_direction, path, pkts[i], pkts[i]->arrival_ns, 0);
	}
}

static void event(struct path_tap *tap, const struct stage_env *env, enum tel_packet_event what,
	const struct pkt *p, uint64_t ts_ns) {
	struct tap *t = (struct tap *)tap;
	const struct path *path = &t->capture->env.paths->path[env->path_index];
	struct passage *way = passage_of(t->capture, path, p);
	uint8_t stage = (uint8_t)(env->stage_index + 1);

	if (what == TEL_DUPLICATE) // its own way begins here
		*passage_at(t->capture, path, p) = (struct passage){.id = p->id};
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
	return pcapng_interface(&c->writer.file, name);
}

// The interface of that name, which several paths may have.
static uint32_t point_of(struct capture *c, const char *name) {
	struct pcapng *file = &c->writer.file;

	for (uint32_t i = 0; i < file->interfaces; i++) {
		if (strcmp(file->interface[i].name, name) == 0)
			return i;
	}
	return pcapng_interface(file, name);
}

static void add_points(struct capture *c) {
	bool all = c->env.run->capture_points == RUN_CAPTURE_PATHS;
	uint32_t sender = POINT_NONE;

	if (!all && c->env.at_sender != NULL)
		sender = pcapng_interface(&c->writer.file, "sender");
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
		} else if (c->env.at_sender == NULL) {
			const char *in = c->env.port[i].in, *out = c->env.port[i].out;

			if (in != NULL)
				at->in = point_of(c, in);
			at->out = point_of(c, out != NULL ? out : path->name);
			at->in_direction = PCAPNG_INBOUND;
			at->out_direction = PCAPNG_OUTBOUND;
		} else {
			at->in = at->out = sender;
			at->in_direction = PCAPNG_OUTBOUND;
			at->out_direction = PCAPNG_INBOUND;
			at->sender_only = true;
		}
	}
}

void capture_paths(struct capture *c, uint32_t ring, struct path *const *paths, uint32_t n) {
	for (uint32_t i = 0; i < n; i++)
		path_tap(paths[i], &c->tap[ring].tap);
}

static bool get_memory(struct capture *c) {
	bool ok = true;

	for (uint32_t i = 0; i < c->env.paths->count && ok; i++) {
		c->points[i].passage = mem_map(PASSAGES * sizeof(struct passage));
		ok = c->points[i].passage != NULL;
		if (ok && c->env.rings > 0) // an lcore must not wait for the kernel to find a page
			memset(c->points[i].passage, 0, PASSAGES * sizeof(struct passage));
	}
	return ok;
}

int capture_open(
	struct capture **out, const char *file, const struct capture_env *env, struct err *err) {
	struct capture *c = aligned_alloc(64, sizeof(*c));
	struct pcap_writer_env writer = {
		.run = env->run,
		.epoch_ns = env->epoch_ns,
		.rings = env->rings,
		.ring_records = env->ring_records,
		.comment = comment,
		.ctx = c,
	};
	int rc;

	if (c == NULL)
		return err_set(err, -ENOMEM, "--pcap: no memory");
	memset(c, 0, sizeof(*c));
	c->env = *env;
	for (uint32_t i = 0; i < LIVE_LCORES_MAX; i++)
		c->tap[i] = (struct tap){
			.tap = {.arrived = arrived, .departed = departed, .event = event},
			.capture = c,
			.ring = i,
		};
	if ((rc = pcap_writer_open(&c->writer, file, &writer, err)) < 0) {
		free(c);
		return rc;
	}
	if (!get_memory(c)) {
		capture_free(c);
		return err_set(err, -ENOMEM, "--pcap %s: no memory", file);
	}
	add_points(c);
	for (uint32_t i = 0; env->rings == 0 && i < env->paths->count; i++)
		path_tap(&env->paths->path[i], &c->tap[0].tap);
	*out = c;
	return 0;
}

int capture_close(struct capture *c, struct err *err) {
	return c == NULL ? 0 : pcap_writer_close(&c->writer, err);
}

void capture_summary(const struct capture *c, struct json *j) {
	if (c != NULL)
		pcap_writer_summary(&c->writer, j);
}

void capture_free(struct capture *c) {
	if (c == NULL)
		return;
	pcap_writer_free(&c->writer);
	for (uint32_t i = 0; i < c->env.paths->count; i++)
		mem_unmap(c->points[i].passage, PASSAGES * sizeof(struct passage));
	free(c);
}
