// SPDX-License-Identifier: BSD-3-Clause
#include "switch/live/source.h"

#include "common/base/u64.h"
#include "common/live/port/frame.h"
#include "switch/live/app.h"
#include "switch/path/fields.h"

#include <string.h>
#include <unistd.h>

#define WAIT_US 200 // for room in the ring
#define FILL_WAITS 10000 // for the ring to be full before the run begins
#define HEADERS 128u // the longest that are looked at

int switch_sources_open(
	struct switch_source *source, struct paths *paths, uint64_t mtu, struct err *err) {
	uint64_t base_ns = NEVER_NS;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < paths->count; i++) {
		struct arrivals *a = &source[i].arrivals;

		if (paths->path[i].source == NULL)
			continue;
		rc = arrivals_open(a, &paths->path[i], err);
		a->frame_max = frame_room(mtu);
		// A live capture has too little of a frame for anything to be decrypted.
		a->reader.keep_secrets = false;
		if (rc == 0 && !a->ended)
			base_ns = time_min(base_ns, a->stamp_ns);
	}
	for (uint32_t i = 0; i < paths->count; i++)
		source[i].base_ns = base_ns;
	return rc;
}

// Makes a frame of what was captured.
static void write_frame(struct switch_source *s, struct rte_mbuf *m, const struct pkt *p) {
	const struct arrivals *a = &s->arrivals;
	uint32_t length = p->size_bytes - WIRE_FCS;
	uint32_t captured = a->captured < length ? a->captured : length;
	uint32_t zeros = (length < HEADERS ? HEADERS : length) - captured;
	uint8_t *data = rte_pktmbuf_mtod(m, uint8_t *);

	memcpy(data, a->data, captured);
	memset(data + captured, 0, zeros);
	m->data_len = (uint16_t)length;
	m->pkt_len = length;
	port_pkt(m)->arrival_ns = p->arrival_ns;
	port_pkt(m)->flow_id = p->flow_id;
	s->padded += a->captured < a->length;
}

// Puts the next frames into the ring, which has room for them, each at once: of a pipe the next one
// may take long.
// False: there is no memory for them now.
static bool read_ahead(struct switch_source *s) {
	struct rte_mbuf *m[SOURCE_BURST];
	uint32_t n = 0;

	if (rte_pktmbuf_alloc_bulk(s->pool, m, SOURCE_BURST) != 0)
		return false;
	while (n < SOURCE_BURST && !s->arrivals.ended && s->rc == 0) {
		struct pkt p;

		if (arrivals_packet(&s->arrivals, s->base_ns, &p)) {
			write_frame(s, m[n], &p);
			n += lcore_ring_put(&s->ring, &m[n], 1);
		}
		s->rc = arrivals_next(&s->arrivals, &s->err);
	}
	if (n < SOURCE_BURST)
		rte_pktmbuf_free_bulk(m + n, SOURCE_BURST - n);
	return true;
}

static void *thread_main(void *arg) {
	struct switch_source *s = arg;

	if (CPU_COUNT(&s->cpus) > 0)
		pthread_setaffinity_np(pthread_self(), sizeof(s->cpus), &s->cpus);
	while (!s->arrivals.ended && s->rc == 0) {
		if (rte_ring_free_count(s->ring.ring) < SOURCE_BURST || !read_ahead(s))
			usleep(WAIT_US);
	}
	atomic_store(&s->read, true);
	return NULL;
}

int switch_sources_start(struct live_app *live, struct err *err) {
	struct switch_app *app = switch_app(live);
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < app->paths.count; i++) {
		struct switch_source *s = &app->source[i];

		if (s->arrivals.path == NULL)
			continue;
		s->cpus = live->cpus;
		s->pool = app->lcore->pool;
		if ((rc = lcore_ring_init(&s->ring, SOURCE_FRAMES, err)) < 0)
			return rc;
		rc = -pthread_create(&s->thread, NULL, thread_main, s);
		if (rc < 0)
			return err_set(
				err, rc, "a thread for %s: %s", s->arrivals.file, strerror(-rc));
		s->running = true;
		for (int k = 0; k < FILL_WAITS && !atomic_load(&s->read)
			&& rte_ring_free_count(s->ring.ring) >= SOURCE_BURST;
			k++)
			usleep(WAIT_US);
	}
	return rc;
}

struct rte_mbuf *switch_source_due(
	struct switch_source *s, uint64_t start_ns, uint64_t now_ns, uint64_t *due_ns) {
	if (s->next == s->nb_burst) {
		s->nb_burst = lcore_ring_take(&s->ring, s->burst, SOURCE_BURST);
		s->next = 0;
	}
	if (s->nb_burst == 0)
		return NULL;
	struct rte_mbuf *m = s->burst[s->next];

	*due_ns = start_ns + port_pkt(m)->arrival_ns;
	if (*due_ns > now_ns)
		return NULL;
	s->next++;
	if (*due_ns < s->served_ns) {
		s->late++;
		s->late_max_ns = time_max(s->late_max_ns, now_ns - *due_ns);
	}
	pkt_count_add(&s->pushed, 1, port_frame_bytes(m->pkt_len));
	return m;
}

bool switch_source_ended(const struct switch_source *s) {
	return atomic_load_explicit(&s->read, memory_order_acquire) && s->next == s->nb_burst
		&& lcore_ring_waiting(&s->ring) == 0;
}

void switch_sources_stop(struct switch_source *source) {
	for (uint32_t i = 0; i < PATHS_MAX; i++) {
		struct switch_source *s = &source[i];

		if (!s->running)
			continue;
		pthread_cancel(s->thread); // it may wait for a pipe
		pthread_join(s->thread, NULL);
		s->running = false;
		if (s->next < s->nb_burst || lcore_ring_waiting(&s->ring) > 0)
			s->arrivals.ended = false; // its last frames did not arrive
		rte_pktmbuf_free_bulk(s->burst + s->next, s->nb_burst - s->next);
		s->next = s->nb_burst;
		lcore_ring_clear(&s->ring);
		s->arrivals.count.packets = s->pushed.pkts;
		s->arrivals.count.bytes = s->pushed.bytes;
	}
}

void switch_sources_close(struct switch_source *source) {
	switch_sources_stop(source);
	for (uint32_t i = 0; i < PATHS_MAX; i++)
		arrivals_close(&source[i].arrivals);
}

bool switch_source_fault(const struct switch_source *s, struct fact *fault) {
	const struct arrivals *a = &s->arrivals;

	if (a->path == NULL)
		return false;
	if (s->late > 0) {
		fact_set(fault, "source_late",
			"%s: %llu packets of the capture came late, by up to %.3f ms: "
			"it was not read in time",
			a->path->name, (unsigned long long)s->late, (double)s->late_max_ns / 1e6);
		fact_number(fault, "count", (double)s->late);
		fact_number(fault, "worst_s", (double)s->late_max_ns / 1e9);
	} else if (a->count.too_long > 0) {
		fact_set(fault, "source_too_long",
			"%s: %llu packets of the capture were left out: "
			"they are longer than %u bytes",
			a->path->name, (unsigned long long)a->count.too_long,
			a->frame_max + WIRE_FCS);
		fact_number(fault, "count", (double)a->count.too_long);
	} else {
		return arrivals_fault(a, fault);
	}
	fact_text(fault, "path", a->path->name);
	return true;
}

int switch_sources_outcome(
	const struct switch_source *source, const struct run *run, struct err *err) {
	for (uint32_t i = 0; i < PATHS_MAX; i++) {
		const struct switch_source *s = &source[i];

		if (s->rc < 0)
			return err_set(err, s->rc, "%s", s->err.msg);
		if (!run_stop)
			run_warn_unreached(
				run, arrivals_unread(&s->arrivals), "source: the capture's end");
	}
	return 0;
}

void switch_sources_summary(const struct switch_source *source, struct json *j) {
	json_object(j, "sources");
	for (uint32_t i = 0; i < PATHS_MAX; i++) {
		const struct switch_source *s = &source[i];

		if (s->arrivals.path == NULL)
			continue;
		json_object(j, s->arrivals.path->name);
		arrivals_summary(&s->arrivals, j);
		LIVE_SOURCE_FIELDS(FIELD_JSON)
		json_close(j, '}');
	}
	json_close(j, '}');
}
