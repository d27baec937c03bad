// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/run/offline.h"

#include "common/base/likely.h"
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "common/base/u64.h"
#include "common/net/clear.h"
#include "common/net/corrupt.h"
#include "common/net/headers.h"
#include "common/net/wire.h"
#include "switch/path/switch_config.h"
#include "tools/sim/run/fields.h"
#include "tools/sim/run/sim.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BURST 64
#define RING_RECORDS 16384
#define CHUNK_BYTES ((size_t)4 << 20)
#define SPARE_BYTES (UINT64_C(256) << 20) // that the machine keeps
#define HEADERS_BYTES 192 // Ethernet, IPv4 and TCP with all of their options, and VLAN tags
#define FLUSH_PKTS 65536 // of a path, between two flushes of the capture

// What a packet carries besides struct pkt: behind it are the bytes that were captured.
struct held {
	uint32_t captured, length;
	uint32_t order;
	uint32_t hosts;
};
static_assert(sizeof(struct held) <= sizeof(((struct pkt *)0)->user), "fits into a packet");
static_assert(
	((size_t)1 << (OFFLINE_ORDERS - 1)) >= sizeof(struct pkt) + 262144, "as libpcap allows");

static inline const struct held *held(const struct pkt *p) {
	return (const struct held *)(const void *)p->user;
}

static inline uint8_t *held_bytes(struct pkt *p) {
	return (uint8_t *)p + sizeof(*p);
}

bool offline_wanted(struct config *c) {
	struct config_node *paths = config_get(config_root(c), "paths");

	for (size_t i = 0;
		paths != NULL && config_kind(paths) == CONFIG_MAP && i < config_count(paths); i++) {
		struct config_node *path = config_at(paths, i);
		struct config_node *first =
			config_kind(path) == CONFIG_LIST && config_count(path) > 0
			? config_at(path, 0)
			: NULL;

		if (first != NULL && config_kind(first) == CONFIG_MAP
			&& config_get(first, "source") != NULL)
			return true;
	}
	return false;
}

static uint8_t *fresh_memory(struct offline *o, size_t bytes) {
	if (o->fresh_bytes < bytes) {
		void **chunk = realloc(o->chunk, (o->chunks + 1) * sizeof(*chunk));
		struct err why;

		if (chunk == NULL)
			return NULL;
		o->chunk = chunk;
		o->fresh =
			mem_check(SPARE_BYTES, "packets", &why) < 0 ? NULL : mem_map(CHUNK_BYTES);
		o->fresh_bytes = 0;
		if (o->fresh == NULL)
			return NULL;
		o->chunk[o->chunks++] = o->fresh;
		o->fresh_bytes = CHUNK_BYTES;
	}
	o->fresh += bytes;
	o->fresh_bytes -= bytes;
	return o->fresh - bytes;
}

// A packet with room for so many bytes behind it.
static struct pkt *packet_get(struct offline *o, uint32_t captured) {
	uint32_t order = 6;

	while (((size_t)1 << order) < sizeof(struct pkt) + captured)
		order++;
	struct pkt *p = pkt_list_pop(&o->free[order]);

	if (p == NULL)
		p = (struct pkt *)(void *)fresh_memory(o, (size_t)1 << order);
	if (p != NULL)
		*(struct held *)(void *)p->user = (struct held){.order = order};
	return p;
}

static void packet_put(struct offline *o, struct pkt *p) {
	pkt_list_push(&o->free[held(p)->order], p);
}

static void free_packets(void *ctx, struct pkt_list *drops) {
	struct pkt *p;

	while ((p = pkt_list_pop(drops)) != NULL)
		packet_put(ctx, p);
}

static struct pkt *copy_packet(void *ctx, const struct pkt *p) {
	struct offline *o = ctx;
	struct pkt *copy = packet_get(o, held(p)->captured);

	if (copy == NULL) {
		o->no_memory++;
		return NULL;
	}
	memcpy(copy, p, sizeof(*p) + held(p)->captured); // of one size, so their order is the same
	return copy;
}

// The bytes that came, with what the path changed.
static uint32_t frame(void *ctx, const struct path *path, const struct pkt *p, uint8_t *bytes,
	uint32_t room, uint32_t *length) {
	const struct held *h = held(p);

	memcpy(bytes, (const uint8_t *)p + sizeof(*p), h->captured);
	if (p->ecn != wire_ecn_any(bytes, h->captured))
		wire_set_ecn(bytes, h->captured, p->ecn);
	if ((p->flags & PKT_CLEARED) != 0)
		clear_frame(bytes, h->captured, p->flags);
	if ((p->flags & PKT_CORRUPT) != 0)
		corrupt_frame(bytes, h->captured, rng_mix(p->id));
	*length = h->length;
	return h->captured;
}

static uint32_t hosts(void *ctx, const struct pkt *p) {
	return held(p)->hosts;
}

static struct pkt_headers headers(void *ctx, const struct pkt *p) {
	return headers_read((const uint8_t *)p + sizeof(*p), held(p)->captured);
}

static int network_init(struct offline *o, struct err *err) {
	struct config_node *root = config_root(o->run->config);
	struct paths_env env = {
		.run_seed = o->run->seed,
		.mtu_bytes = SWITCH_MTU_BYTES,
		.owner = {.copy = copy_packet,
			.free = free_packets,
			.hosts = hosts,
			.headers = headers,
			.ctx = o},
		.tel_packets = &o->tel[TEL_STREAM_PACKETS],
		.tel_arrivals = &o->tel[TEL_STREAM_ARRIVALS],
		.tel_run = &o->run->tel,
	};
	int rc = paths_init(&o->paths, config_get(root, "paths"), &env, err);

	for (uint32_t i = 0; rc == 0 && i < o->paths.count; i++)
		o->reads_headers |= o->paths.path[i].reads_headers;
	if (rc == 0)
		rc = schedule_init(
			&o->schedule, config_get(root, "schedule"), &o->paths, NULL, err);
	return rc;
}

int offline_init(struct offline *o, struct run *run, struct err *err) {
	struct config_node *root = config_root(run->config);
	int rc;

	memset(o, 0, sizeof(*o));
	o->run = run;
	o->base_ns = NEVER_NS;
	o->next_interval_ns = run->telemetry_interval_ns;
	config_skip(config_get(root, "live"));
	if (run->stop.metrics != 0)
		return config_err(config_get(root, "stop"), -EINVAL, err,
			"stop: what it waits for are figures of flows, and this run has captures");
	if (run->telemetry_segments)
		return config_err(config_get(root, "telemetry"), -EINVAL, err,
			"segments: this run has captures and no flows; weir pcap analyze reads "
			"the segments of a capture");
	rc = network_init(o, err);
	for (uint32_t i = 0; rc == 0 && i < o->paths.count; i++) {
		if (o->paths.path[i].source == NULL)
			continue;
		rc = arrivals_open(&o->source[i], &o->paths.path[i], err);
		if (rc == 0 && !o->source[i].ended)
			o->base_ns = time_min(o->base_ns, o->source[i].stamp_ns);
	}
	if (rc < 0)
		offline_fini(o);
	return rc;
}

// Once for each file, though several paths read it.
static void pass_secrets(struct offline *o, struct arrivals *a) {
	const uint8_t *blocks;
	size_t size = arrivals_secrets(a, &blocks);

	for (struct arrivals *b = o->source; size > 0 && b < a; b++) {
		if (b->path != NULL && strcmp(b->file, a->file) == 0)
			return;
	}
	if (size > 0)
		capture_secrets(o->capture, blocks, size);
}

int offline_open(struct offline *o, const char *pcap, struct err *err) {
	paths_observers(&o->paths, &o->run->tel);
	for (uint32_t i = 0; i < TEL_STREAM_COUNT; i++) {
		bool wanted = (i == TEL_STREAM_PACKETS && o->run->telemetry_level >= 2)
			|| ((i == TEL_STREAM_LINKS || i == TEL_STREAM_EVENTS)
				&& o->run->telemetry_level >= 1)
			|| (i == TEL_STREAM_ARRIVALS && o->run->telemetry_arrivals);
		int rc = !wanted ? 0
				 : tel_open(&o->tel[i], (enum tel_stream)i, &o->run->tel, "",
					 RING_RECORDS, err);

		if (rc < 0)
			return rc;
	}
	if (pcap == NULL)
		return 0;
	return capture_open(&o->capture, pcap,
		&(struct capture_env){.run = o->run,
			.paths = &o->paths,
			.epoch_ns = o->base_ns == NEVER_NS ? 0 : o->base_ns,
			.frame = frame},
		err);
}

// What has left by now_ns.
static void take(struct offline *o, struct path *path, uint64_t now_ns) {
	struct pkt *pkts[BURST];
	uint32_t n;

	do {
		n = path_pop(path, now_ns, pkts, BURST);
		for (uint32_t i = 0; i < n; i++) {
			o->last_ns = time_max(o->last_ns, pkts[i]->arrival_ns);
			packet_put(o, pkts[i]);
		}
	} while (n == BURST);
}

// The present frame as a packet, if it can be one and there is memory for it.
static struct pkt *arrival(struct offline *o, struct arrivals *a) {
	uint32_t captured = a->captured;
	struct pkt come, *p;

	if (o->capture == NULL)
		captured = o->reads_headers ? (uint32_t)min_u64(captured, HEADERS_BYTES) : 0;
	if (!arrivals_packet(a, o->base_ns, &come))
		return NULL;
	p = packet_get(o, captured);
	if (p == NULL) {
		path_push_nothing(a->path, come.size_bytes);
		o->no_memory++;
		return NULL;
	}
	struct held h = {
		.captured = captured,
		.length = a->length,
		.order = held(p)->order,
		.hosts = arrivals_hosts(a->data, a->captured),
	};

	*p = come;
	memcpy(p->user, &h, sizeof(h));
	memcpy(held_bytes(p), a->data, captured);
	return p;
}

// All that arrives at a path before end_ns, and all that has left by then; at most FLUSH_PKTS
// arrivals, *end_ns then is the time of the next one.
static int feed(struct offline *o, struct arrivals *a, uint64_t *end_ns, struct err *err) {
	uint32_t total = 0;

	while (!a->ended && arrivals_ns(a, o->base_ns) < *end_ns) {
		struct pkt *pkts[BURST];
		uint32_t n = 0;

		while (n < BURST && !a->ended && arrivals_ns(a, o->base_ns) < *end_ns) {
			struct pkt *p = arrival(o, a);
			int rc = arrivals_next(a, err);

			n += p != NULL;
			if (p != NULL)
				pkts[n - 1] = p;
			if (rc < 0) {
				path_push(a->path, pkts, n);
				return rc;
			}
		}
		pass_secrets(o, a);
		path_push(a->path, pkts, n);
		o->last_ns = time_max(o->last_ns, a->path->last_arrival_ns);
		take(o, a->path, a->path->last_arrival_ns);
		total += n;
		if (total >= FLUSH_PKTS && !a->ended)
			*end_ns = time_min(*end_ns,
				time_max(arrivals_ns(a, o->base_ns), a->path->last_arrival_ns + 1));
	}
	return 0;
}

// As in sim.c.
static void end_interval(struct offline *o) {
	if (o->now_ns == o->interval_start_ns)
		return;
	paths_interval(&o->paths, &o->tel[TEL_STREAM_LINKS], &o->tel[TEL_STREAM_EVENTS], o->now_ns);
	o->interval_start_ns = o->now_ns;
}

static void at_boundary(struct offline *o) {
	uint64_t now_ns = o->now_ns;

	for (uint32_t i = 0; i < o->paths.count; i++)
		path_serve(&o->paths.path[i], now_ns);
	capture_flush(o->capture, now_ns);
	if (now_ns == o->next_interval_ns) {
		end_interval(o);
		o->next_interval_ns += o->run->telemetry_interval_ns;
	}
	if (!o->measuring && now_ns >= o->run->warmup_ns) {
		o->measuring = true;
		end_interval(o);
		paths_measure(&o->paths, now_ns);
	}
	if (now_ns >= schedule_next_ns(&o->schedule))
		schedule_apply(&o->schedule, now_ns, &o->tel[TEL_STREAM_EVENTS]);
	for (uint32_t i = 0; i < TEL_STREAM_COUNT; i++)
		tel_publish(&o->tel[i]);
}

static bool all_left(const struct offline *o) {
	for (uint32_t i = 0; i < o->paths.count; i++) {
		if ((o->source[i].path != NULL && !o->source[i].ended)
			|| path_backlog(&o->paths.path[i]).pkts > 0)
			return false;
	}
	return true;
}

// One step to the next boundary, or to where the capture's buffer is to be emptied.
static int step(struct offline *o, uint64_t until_ns, struct err *err) {
	uint64_t end_ns =
		time_min(until_ns, time_min(schedule_next_ns(&o->schedule), o->next_interval_ns));
	int rc = 0;

	if (!o->measuring)
		end_ns = time_min(end_ns, o->run->warmup_ns);
	for (uint32_t i = 0; rc == 0 && i < o->paths.count; i++) {
		if (o->source[i].path != NULL)
			rc = feed(o, &o->source[i], &end_ns, err);
	}
	if (rc < 0)
		return rc;
	for (uint32_t i = 0; i < o->paths.count; i++)
		take(o, &o->paths.path[i], end_ns - 1);
	o->ended = all_left(o);
	o->now_ns = o->ended ? o->last_ns : end_ns;
	return 0;
}

int offline_run(struct offline *o, uint64_t until_ns, struct err *err) {
	if (o->now_ns == 0)
		at_boundary(o);
	while (o->now_ns < until_ns && !o->ended) {
		int rc = step(o, until_ns, err);

		if (rc < 0)
			return rc;
		at_boundary(o);
	}
	return 0;
}

int offline_close(struct offline *o, struct err *err) {
	int rc = 0;

	end_interval(o);
	for (uint32_t i = 0; i < o->paths.count; i++)
		path_end(&o->paths.path[i], o->now_ns);
	rc = capture_close(o->capture, err);
	for (uint32_t i = 0; i < TEL_STREAM_COUNT; i++) {
		struct err one;
		int closed = o->tel[i].ring == NULL ? 0 : tel_close(&o->tel[i], &one);

		if (closed < 0 && rc == 0)
			rc = err_set(err, closed, "%s", one.msg);
	}
	if (rc == 0 && o->no_memory > 0)
		rc = err_set(err, -ENOSPC,
			"%llu packets were dropped because the memory for packets was full",
			(unsigned long long)o->no_memory);
	return rc;
}

static void write_sources(const struct offline *o, struct json *j) {
	json_object(j, "sources");
	for (uint32_t i = 0; i < o->paths.count; i++) {
		if (o->source[i].path == NULL)
			continue;
		json_object(j, o->source[i].path->name);
		arrivals_summary(&o->source[i], j);
		json_close(j, '}');
	}
	json_close(j, '}');
}

bool offline_summary(struct offline *o, FILE *out, const struct facts *verdict) {
	bool balanced = paths_balanced(&o->paths), random = paths_random(&o->paths);
	const struct run *run = o->run;
	const struct tel *tel = o->tel;
	uint64_t now_ns = o->now_ns;
	double wall_s = o->wall_s;
	struct json json, *j = &json;
	char digest[17];

	run_summary_begin(run, "offline", j, out);
	OFFLINE_FIELDS(FIELD_JSON)
	json_end(j);
	return balanced;
}

void offline_fini(struct offline *o) {
	capture_free(o->capture);
	for (uint32_t i = 0; i < PATHS_MAX; i++)
		arrivals_close(&o->source[i]);
	schedule_fini(&o->schedule);
	if (o->paths.count > 0)
		paths_fini(&o->paths);
	for (size_t i = 0; i < o->chunks; i++)
		mem_unmap(o->chunk[i], CHUNK_BYTES);
	free(o->chunk);
}
