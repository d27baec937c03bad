// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/run/replay.h"

#include "common/base/mem.h"
#include "common/base/u64.h"
#include "tools/sim/run/fields.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define BURST 64
#define RING_RECORDS 16384

static int map_file(struct replay *r, struct err *err) {
	int fd = open(r->name, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0) {
		int error = errno;

		if (fd >= 0)
			close(fd);
		return err_set(err, -EINVAL, "%s: %s", r->name, strerror(error));
	}
	r->map_size = (size_t)st.st_size;
	void *map = r->map_size < TEL_HEADER_SIZE
		? MAP_FAILED
		: mmap(NULL, r->map_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (map == MAP_FAILED)
		return err_set(err, -EINVAL, "%s: not a recording of arrivals", r->name);
	r->header = map;
	r->record = (const void *)((const char *)map + TEL_HEADER_SIZE);
	return 0;
}

// Checks that the file is a complete recording of arrivals.
static int check_header(struct replay *r, struct err *err) {
	const struct tel_header *h = r->header;

	bool telemetry =
		memcmp(h->magic, TEL_MAGIC, sizeof(h->magic)) == 0 && h->endian == TEL_ENDIAN;

	if (telemetry && h->version != TEL_VERSION)
		return err_set(err, -EINVAL, "%s: of format version %u; this program wants %u",
			r->name, h->version, TEL_VERSION);
	if (!telemetry || h->stream != TEL_STREAM_ARRIVALS
		|| h->record_size != sizeof(struct tel_arrivals) || h->capacity != 0)
		return err_set(err, -EINVAL, "%s: not a recording of arrivals", r->name);
	if (h->seed != r->run->seed)
		return err_set(err, -EINVAL, "%s: was recorded with seed %llu, the config has %llu",
			r->name, (unsigned long long)h->seed, (unsigned long long)r->run->seed);
	struct tel_counters c = tel_published(h);
	if (c.lost > 0)
		return err_set(err, -EIO,
			"%s: the recording has holes: %llu of %llu arrivals were lost; use a "
			"larger live.switch.ring_size",
			r->name, (unsigned long long)c.lost, (unsigned long long)c.head);
	if (atomic_load(&h->closed) == 0)
		return err_set(
			err, -EIO, "%s: the recording has no end: the program was killed", r->name);
	if (c.written > (r->map_size - TEL_HEADER_SIZE) / sizeof(struct tel_arrivals))
		return err_set(err, -EIO, "%s: truncated", r->name);
	r->records = c.written;
	return 0;
}

struct replay_pkt {
	struct pkt pkt;
	uint32_t hosts;
	struct pkt_headers headers;
};

static struct replay_pkt *recorded(struct pkt *p) {
	return (struct replay_pkt *)(void *)p;
}

static uint32_t hosts(void *ctx, const struct pkt *p) {
	return ((const struct replay_pkt *)(const void *)p)->hosts;
}

static struct pkt_headers headers(void *ctx, const struct pkt *p) {
	return ((const struct replay_pkt *)(const void *)p)->headers;
}

static struct pkt *packet_get(struct replay *r) {
	struct pkt *p = pkt_list_pop(&r->free);

	return p != NULL ? p : r->fresh < r->packets_max ? &r->base[r->fresh++].pkt : NULL;
}

static struct pkt *copy_packet(void *ctx, const struct pkt *p) {
	struct pkt *copy = packet_get(ctx);

	if (copy != NULL)
		*recorded(copy) = *(const struct replay_pkt *)(const void *)p;
	return copy;
}

static void free_packets(void *ctx, struct pkt_list *drops) {
	struct replay *r = ctx;

	pkt_list_join(&r->free, drops);
}

// Makes the paths as the recording program did.
static int make_paths(struct replay *r, struct err *err) {
	struct config_node *root = config_root(r->run->config);
	struct config_node *flows = config_get(root, "flows");
	struct groups groups = {0};
	int rc = switch_config_flows(&r->config, r->run->config, r->run->seed, 0, err);
	struct paths_env env = {
		.run_seed = r->run->seed,
		.mtu_bytes = live_frame_bytes(&r->config.process),
		.group_base_rtt_ns = r->config.group_base_rtt_ns,
		.base_rtts = &r->config.base_rtts,
		.group_route = r->config.group_route,
		.flows = flows,
		.hosts = &r->hosts,
		.groups = r->config.groups,
		.owner = {.copy = copy_packet,
			.free = free_packets,
			.hosts = hosts,
			.headers = headers,
			.ctx = r},
		.tel_packets = &r->packets,
		.tel_run = &r->run->tel,
	};

	if (rc == 0)
		rc = hosts_read(&r->hosts, root, flows, err);
	if (rc == 0 && r->header->virtual_time != 0) {
		rc = groups_init(&groups, flows, err);
		if (rc == 0) // without flows the packets were a capture's
			env.mtu_bytes =
				groups.count > 0 ? groups_mtu_bytes(&groups) : SWITCH_MTU_BYTES;
		groups_fini(&groups);
	}
	if (rc == 0)
		rc = paths_init(&r->paths, config_get(root, "paths"), &env, err);
	for (uint32_t i = 0; rc == 0 && i < r->paths.count; i++)
		config_skip(r->paths.path[i].source);
	for (uint32_t i = 0; rc == 0 && i < r->paths.count; i++)
		r->exit[i] = (struct stage_env){
			.tel_packets = r->header->virtual_time != 0 ? NULL : &r->packets,
			.tel_run = &r->run->tel,
			.link_index = path_last_link(&r->paths.path[i]),
			.path_index = (uint8_t)i,
			.stage_index = UINT8_MAX,
		};
	return rc;
}

int replay_init(struct replay *r, struct run *run, const char *file, struct err *err) {
	static const char *const elsewhere[] = {"live", "schedule", "branches"};
	int rc;

	memset(r, 0, sizeof(*r));
	r->run = run;
	r->name = file;
	for (size_t i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++)
		config_skip(config_get(config_root(run->config), elsewhere[i]));
	rc = map_file(r, err);
	if (rc == 0)
		rc = check_header(r, err);
	if (rc == 0)
		rc = make_paths(r, err);
	if (rc == 0 && r->records > 0) {
		uint64_t copies = 1;

		for (uint32_t i = 0; i < r->paths.count; i++)
			copies = max_u64(
				copies, path_capacity(&r->paths.path[i], SWITCH_MTU_BYTES).copies);
		r->packets_max = copies * r->records;
		r->base = mem_map(r->packets_max * sizeof(struct replay_pkt));
		if (r->base == NULL)
			rc = err_set(err, -ENOMEM, "%s: no memory for its packets", r->name);
	}
	if (rc < 0)
		replay_fini(r);
	return rc;
}

int replay_open(struct replay *r, struct err *err) {
	if (r->run->telemetry_level < 2)
		return 0;
	return tel_open(&r->packets, TEL_STREAM_PACKETS, &r->run->tel, "", RING_RECORDS, err);
}

// Takes the packets that have left the path by now_ns.
static void take(struct replay *r, struct path *p, uint64_t now_ns) {
	struct pkt *pkts[BURST];
	uint32_t n;

	do {
		n = path_pop(p, now_ns, pkts, BURST);
		for (uint32_t i = 0; i < n; i++) {
			stage_trace(
				&r->exit[p->index], TEL_DEPART, pkts[i], pkts[i]->arrival_ns, 0);
			pkt_list_push(&r->free, pkts[i]);
		}
	} while (n == BURST);
}

static int bad_record(
	const struct replay *r, const struct tel_arrivals *a, const char *why, struct err *err) {
	return err_set(err, -EIO, "%s: record %llu: %s", r->name,
		(unsigned long long)(a - r->record), why);
}

static int check_packet(const struct replay *r, const struct path *p, const struct tel_arrivals *a,
	uint32_t ahead, struct err *err) {
	if (a->pkt_id != p->next_id + ahead)
		return bad_record(r, a, "a packet before it is missing", err);
	if (a->size_bytes < 4 || a->ecn > ECN_CE)
		return bad_record(r, a, "not a packet", err);
	return 0;
}

static bool is_packet(const struct tel_arrivals *a) {
	return a->event == TEL_ARRIVED || a->event == TEL_HEADERS || a->event == TEL_ACK
		|| a->event == TEL_SACK;
}

// Takes a record of the next packet's headers; false: it is the packet.
static bool read_headers(struct replay_headers *h, const struct tel_arrivals *a) {
	switch (a->event) {
	case TEL_HEADERS:
		h->pkt_id = a->pkt_id;
		h->read = (struct pkt_headers){.seq = a->flow_id,
			.seq_count = a->size_bytes,
			.syn = a->delay_class != 0,
			.dscp = a->param};
		return true;
	case TEL_ACK:
		h->read.pure_ack = true;
		h->read.ack = a->flow_id;
		h->read.tsval = (uint32_t)a->value;
		h->read.timestamps = a->delay_class != 0;
		h->read.ace = a->param;
		return true;
	case TEL_SACK:
		if (h->read.sacks < PKT_SACKS)
			h->read.sack[h->read.sacks++] =
				(struct pkt_sack){a->flow_id, (uint32_t)a->value};
		return true;
	default:
		return false;
	}
}

// Pushes successive packets of one path, at most a burst; returns the number of records.
static int push_burst(
	struct replay *r, struct path *p, const struct tel_arrivals *a, struct err *err) {
	const struct tel_arrivals *end = r->record + r->records;
	struct replay_headers *h = &r->headers[p->index];
	struct pkt *pkts[BURST];
	uint32_t n = 0, records = 0;
	int rc;

	for (; n < BURST && a < end && is_packet(a) && a->path == p->index; a++, records++) {
		// Host numbers, TSval, the end of a SACK block.
		if (!(a->value >= 0 && a->value <= UINT32_MAX))
			return bad_record(r, a, "not a packet", err);
		if (read_headers(h, a))
			continue;
		if ((rc = check_packet(r, p, a, n, err)) < 0)
			return rc;
		pkts[n] = packet_get(r); // there is one per record at least
		*recorded(pkts[n]) = (struct replay_pkt){
			.pkt = {.arrival_ns = a->ts_ns,
				.flow_id = a->flow_id,
				.size_bytes = a->size_bytes,
				.ecn = a->ecn,
				.delay_class = a->delay_class},
			.hosts = (uint32_t)a->value,
		};
		if (h->pkt_id == a->pkt_id)
			recorded(pkts[n])->headers = h->read;
		n++;
	}
	path_push(p, pkts, n);
	r->now_ns = time_max(r->now_ns, p->last_arrival_ns);
	take(r, p, p->last_arrival_ns);
	tel_publish(&r->packets);
	r->arrivals += n;
	return (int)records;
}

// Processes a record, or a burst of them; returns their number, or a negative errno.
static int step(struct replay *r, const struct tel_arrivals *a, struct err *err) {
	struct path *p = a->path < r->paths.count ? &r->paths.path[a->path] : NULL;
	struct err why;

	if (p == NULL)
		return bad_record(r, a, "the config has no such path", err);
	if (is_packet(a))
		return push_burst(r, p, a, err);
	if (a->pkt_id != p->next_id)
		return bad_record(r, a, "a packet before it is missing", err);
	switch (a->event) {
	case TEL_CHANGED:
		if (path_set_recorded(p, a->flow_id, a->value, a->ts_ns, &why) < 0)
			return bad_record(r, a, why.msg, err);
		r->changes++;
		break;
	case TEL_END:
		take(r, p, a->ts_ns);
		path_serve(p, a->ts_ns);
		r->now_ns = time_max(r->now_ns, a->ts_ns);
		r->ends++;
		break;
	default:
		return bad_record(r, a, "neither a packet nor a change", err);
	}
	return 1;
}

int replay_run(struct replay *r, struct err *err) {
	for (uint64_t i = 0; i < r->records;) {
		int n = step(r, &r->record[i], err);

		if (n < 0)
			return n;
		if (run_stop)
			return err_set(err, -EINTR, "interrupted");
		i += (uint64_t)n;
	}
	if (r->ends != r->paths.count)
		return err_set(err, -EIO, "%s: the recording has no end", r->name);
	return 0;
}

int replay_close(struct replay *r, struct err *err) {
	return tel_close(&r->packets, err);
}

static void write_names(const struct path *p, struct json *j) {
	json_array(j, "stages");
	for (uint32_t k = 0; k < p->stages; k++)
		json_text(j, NULL, p->stage[k].name);
	json_close(j, ']');
}

// The names of the numbers in packets.ring, for `weir replay`.
static void write_stages(const struct replay *r, struct json *j) {
	json_array(j, "stages");
	for (uint32_t i = 0; i < r->paths.count; i++) {
		const struct path *p = &r->paths.path[i];

		json_object(j, NULL);
		STAGES_FIELDS(FIELD_JSON)
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void write_drop_reasons(struct json *j) {
	json_array(j, "drop_reasons");
	for (uint32_t i = 0; i < DROP_REASONS; i++)
		json_text(j, NULL, drop_reason_name((enum drop_reason)i));
	json_close(j, ']');
}

bool replay_summary(struct replay *r, FILE *out, const struct facts *verdict) {
	static struct tel tel[TEL_STREAM_COUNT];
	bool balanced = paths_balanced(&r->paths);
	struct json json, *j = &json;

	tel[TEL_STREAM_PACKETS] = r->packets;
	run_summary_begin(r->run, "replay", j, out);
	REPLAY_FIELDS(FIELD_JSON)
	json_end(j);
	return balanced;
}

void replay_fini(struct replay *r) {
	if (r->paths.count > 0)
		paths_fini(&r->paths);
	switch_config_free(&r->config);
	mem_unmap(r->base, r->packets_max * sizeof(struct replay_pkt));
	if (r->header != NULL)
		munmap((void *)(uintptr_t)r->header, r->map_size);
	r->header = NULL;
}
