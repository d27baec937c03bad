// SPDX-License-Identifier: BSD-3-Clause
#include "tools/pcap/analysis.h"

#include "common/base/likely.h"
#include "tools/pcap/fields.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PROGRESS_BATCHES 4096 // between two calls: a few times a second

static void note(void *of, const char *sentence) {
	struct analysis *a = of;

	if (a->notes < ANALYSIS_NOTES_MAX)
		snprintf(a->note[a->notes], sizeof(a->note[0]), "%s", sentence);
	a->notes++;
}

int analysis_init(struct analysis *a, const struct track_limits *limits, struct tel *tel,
	const struct tel_run *tel_run, struct err *err) {
	memset(a, 0, sizeof(*a));
	int rc = track_init(&a->track, limits, tel, tel_run, err);

	if (rc == 0 && (order_init(&a->order) < 0 || copies_init(&a->copies) < 0))
		rc = err_set(err, -ENOMEM, "no memory for packets on their way");
	if (rc < 0)
		analysis_fini(a);
	return rc;
}

int analysis_open(struct analysis *a, const char *const *files, uint32_t count,
	const char *interfaces, struct err *err) {
	points_init(&a->points, interfaces);
	a->files = count;
	int rc = parts_init(&a->parts, files, count, err);

	a->parts.note = note;
	a->parts.of = a;
	return rc;
}

// What has waited for its place goes to the tracker, unless it was seen at another point before.
static void drain(struct analysis *a, bool all) {
	uint32_t n;

	for (;;) {
		struct packet *packets = track_room(&a->track);
		uint32_t kept = 0;

		n = order_take(&a->order, packets, READER_BATCH, all);
		if (n == 0)
			return;
		copies_find(&a->copies, packets, n);
		for (uint32_t i = 0; i < n; i++) {
			struct point *point = &a->points.point[packets[i].point];

			if (unlikely(packets[i].copy >= COPY_OTHER)) {
				point->copies++;
				a->decoded.what[DECODE_TCP]--;
				a->copied++;
				if (packets[i].copy == COPY_REPEATED || point->dropped)
					continue;
			}
			if (unlikely(kept != i))
				packets[kept] = packets[i];
			track_fetch(&a->track, &packets[kept++]);
		}
		if (likely(kept > 0))
			track_packets(&a->track, kept);
	}
}

static void batch(struct analysis *a, const struct parts_batch *b, uint32_t n) {
	for (uint32_t i = 0; i < n; i++)
		prefetch(b->frames[i].data + 64);
	for (uint32_t i = 0; i < n; i++) {
		struct frame *f = &b->frames[i];
		struct packet *p = order_room(&a->order);
		uint16_t point = points_of(&a->points, b, f);

		if (unlikely(point == POINTS_NONE)) {
			a->other_interfaces++;
			continue;
		}
		f->ts_ns = order_time(&a->order, f->ts_ns);

		if (unlikely(decode_counted(f, p, &a->decoded) != DECODE_TCP))
			continue;
		a->options_cut += p->options == DECODE_OPTIONS_CUT;
		a->options_bad += p->options == DECODE_OPTIONS_BAD;
		a->points.point[point].packets++;
		p->point = point;
		order_add(&a->order);
	}
	drain(a, false);
}

int analysis_read(struct analysis *a, analysis_progress_fn *progress, void *of, struct err *err) {
	struct parts_batch b;
	bool more = true;
	int n = 0;

	for (uint64_t i = 1; more && (n = parts_read(&a->parts, &b, err)) > 0; i++) {
		batch(a, &b, (uint32_t)n);
		if (unlikely(i % PROGRESS_BATCHES == 0) && progress != NULL)
			more = progress(of, a);
	}
	drain(a, true);
	track_end(&a->track);
	parts_fini(&a->parts); // counts what is still open
	if (n >= 0 && more)
		n = points_check(&a->points, err);
	return n < 0 ? n : !more;
}

int analysis_found(const struct analysis *a, const char *file, int rc, struct err *err) {
	char why[256];

	if (rc < 0 || a->decoded.what[DECODE_TCP] > 0
		|| !decode_why_nothing(&a->decoded, why, sizeof(why)))
		return rc;
	return err_set(err, -EIO, "%s: no TCP found: %s", file, why);
}

void analysis_fini(struct analysis *a) {
	parts_fini(&a->parts);
	copies_fini(&a->copies);
	order_fini(&a->order);
	track_fini(&a->track);
}

bool analysis_balanced(const struct analysis *a) {
	uint64_t sum = a->copied + a->other_interfaces + decode_total(&a->decoded), ended = 0;

	for (uint32_t i = 0; i <= TEL_HALF_OPEN; i++)
		ended += a->track.count.ended[i];
	return sum == a->parts.read.packets && a->decoded.what[DECODE_TCP] == a->track.count.packets
		&& ended == a->track.count.connections;
}

static void write_read(const struct analysis *a, struct json *j) {
	json_object(j, "capture");
	json_u64(j, "read", a->parts.read.packets);
	decode_ledger(&a->decoded, j);
	json_u64(j, "copies", a->copied);
	json_u64(j, "other_interfaces", a->other_interfaces);
	json_close(j, '}');
}

static void write_ledger(const struct analysis *a, struct json *j) {
	json_object(j, "ledger");
	CAPTURE_LEDGER_FIELDS(FIELD_JSON)
	json_close(j, '}');
}

// Where packets were captured, and how many of each place's were seen at another before.
static void write_points(const struct points *p, struct json *j) {
	char name[POINTS_NAME_MAX];

	json_array(j, "points");
	for (uint32_t i = 0; i < p->count; i++) {
		points_name(&p->point[i], name, sizeof(name));
		json_object(j, NULL);
		POINT_FIELDS(FIELD_JSON)
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void write_ended(const struct track_count *c, struct json *j) {
	static const struct {
		enum tel_flow_event event;
		const char *name;
	} names[] = {
#define EVENT_(constant, number, name, meaning) {constant, name},
		TEL_FLOW_EVENT_VALUES(EVENT_)};

	json_object(j, "ended");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (c->ended[names[i].event] > 0)
			json_u64(j, names[i].name, c->ended[names[i].event]);
	}
	json_close(j, '}');
}

static uint64_t duration_ns(const struct analysis *a) {
	return a->order.first_ns == NEVER_NS ? 0 : a->order.last_ns - a->order.first_ns;
}

static void write_notes(const struct analysis *a, struct json *j) {
	json_array(j, "notes");
	for (uint32_t i = 0; i < a->notes && i < ANALYSIS_NOTES_MAX; i++)
		json_text(j, NULL, a->note[i]);
	json_close(j, ']');
}

static void write_capture(const struct analysis *a, struct json *j) {
	const struct track *t = &a->track;
	const struct track_count *c = &t->count;
	bool some = a->order.first_ns != NEVER_NS;

	json_object(j, "capture");
	CAPTURED_FIELDS(FIELD_JSON)
	json_close(j, '}');
}

// Jain's fairness index of n flows.
static double jfi(double sum, double square_sum, uint64_t n) {
	return square_sum > 0 ? sum * sum / ((double)n * square_sum) : (double)NAN;
}

static void write_groups(const struct track *t, struct json *j, double measured_s) {
	json_array(j, "groups");
	for (uint32_t i = 0; i < t->groups; i++) {
		const struct track_group *g = &t->group[i];
		char name[32] = "other ports";

		if (g->port != 0)
			snprintf(name, sizeof(name), "port %u", g->port);
		json_object(j, NULL);
		CAPTURED_GROUP_FIELDS(FIELD_JSON)
		json_close(j, '}');
	}
	json_close(j, ']');
}

void analysis_summary(const struct analysis *a, struct json *j) {
	const struct track *t = &a->track;
	double sum = 0, square_sum = 0;
	double measured_s = (double)time_since(duration_ns(a), t->limits.warmup_ns) / 1e9;

	for (uint32_t i = 0; i < t->groups; i++) {
		sum += t->group[i].goodput_sum;
		square_sum += t->group[i].goodput_square_sum;
	}
	ANALYSIS_PARTS(FIELD_JSON)
}
