// SPDX-License-Identifier: BSD-3-Clause
#include "tools/pcap/findings.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

// Adds a sentence that begins with "3 of 1000 packets "; `of` 0: without it. None if there is
// nothing to count.
__attribute__((format(printf, 6, 7))) static void add(struct findings *f, enum finding_cause cause,
	uint64_t count, uint64_t of, const char *what, const char *format, ...) {
	struct finding *new = &f->finding[f->count];
	size_t used = 0;
	va_list ap;

	if (count == 0)
		return;
	f->count++;
	new->cause = cause;
	new->count = count;
	new->of = of;
	if (what != NULL)
		used = (size_t)snprintf(new->sentence, sizeof(new->sentence),
			"%" PRIu64 " of %" PRIu64 " %s ", count, of, what);
	va_start(ap, format);
	vsnprintf(new->sentence + used, sizeof(new->sentence) - used, format, ap);
	va_end(ap);
}

static void of_time(const struct analysis *a, struct findings *f) {
	const struct order *o = &a->order;
	uint64_t packets = a->track.count.packets + a->copied;

	add(f, FINDING_CLOCK, o->steps, 0, NULL,
		"the clock was set back %" PRIu64
		" times, by up to %.3f s: times go on from there, and "
		"none is taken across it",
		o->steps, (double)o->step_max_ns / 1e9);
	add(f, FINDING_BACKWARDS, a->track.count.backwards, packets, "packets",
		"are later in the file than could be put into order: sort it by time (reordercap)");
	add(f, FINDING_REORDERED, o->moved, packets, "packets",
		"were later in the file than their times, and were put into order");
	add(f, FINDING_NO_TIME, a->parts.read.no_time, a->parts.read.packets, "packets",
		"have no time: that of the packet before was taken");
}

static void of_packets(const struct analysis *a, struct findings *f) {
	uint64_t read = a->parts.read.packets;

	if (a->track.count.packets == 0)
		add(f, FINDING_NO_TCP, 1, 0, NULL,
			"none of %" PRIu64 " packets is TCP that can be read", read);
	add(f, FINDING_MALFORMED, a->decoded.what[DECODE_MALFORMED], read, "packets",
		"are malformed, and count for no flow");
	add(f, FINDING_TRUNCATED, a->decoded.what[DECODE_TRUNCATED], read, "packets",
		"are cut off before the end of the TCP header, and count for no flow");
	add(f, FINDING_OPTIONS, a->options_cut, read, "packets",
		"are cut off within TCP's options: SACK, timestamps or the window's scale may be missing");
	add(f, FINDING_FRAGMENTS, a->decoded.what[DECODE_FRAGMENT], read, "packets",
		"are IP fragments, which are not put together");
	add(f, FINDING_LINK_TYPE, a->decoded.what[DECODE_LINK_TYPE], read, "packets",
		"are of a link type that is not read");
}

static void of_connections(const struct analysis *a, struct findings *f) {
	const struct track_count *c = &a->track.count;

	add(f, FINDING_BEGUN, c->begun_before, c->connections, "connections",
		"had begun before the capture: their windows' scale and options are not known");
	add(f, FINDING_ONE_SIDED, c->one_sided, c->connections, "connections",
		"are seen in one direction only: there is no RTT, and losses are not told from reordering");
	add(f, FINDING_MIDDLE, c->middle, c->connections, "connections",
		"were captured between both ends: RTT, bytes in flight and losses are of a part of the path");
	add(f, FINDING_UNCAPTURED, c->uncaptured_flows, c->flows, "flows",
		"have data that was acknowledged but not captured: segments sent, losses and RTT lack it");
	add(f, FINDING_UNTRACKED, a->track.pool.refused, 0, NULL,
		"%" PRIu64 " segments were forgotten before their ACK, for want of memory",
		a->track.pool.refused);
	add(f, FINDING_EVICTED, c->ended[TEL_EVICTED], c->connections, "connections",
		"were ended to make room: raise --connections");
}

void findings_make(const struct analysis *a, struct findings *f) {
	f->count = 0;
	of_packets(a, f);
	of_time(a, f);
	of_connections(a, f);
}

void findings_write(const struct findings *f, struct json *j) {
	static const char *const names[] = {
#define FINDING_NAME_(constant, name) name,
		FINDINGS_VALUES(FINDING_NAME_)};

	json_array(j, "verdicts");
	for (uint32_t i = 0; i < f->count; i++) {
		const struct finding *one = &f->finding[i];

		json_object(j, NULL);
		json_text(j, "cause", names[one->cause]);
		json_u64(j, "count", one->count);
		if (one->of > 0)
			json_u64(j, "of", one->of);
		else
			json_null(j, "of");
		json_text(j, "sentence", one->sentence);
		json_close(j, '}');
	}
	json_close(j, ']');
}

void findings_verdict(const struct analysis *a, const struct findings *f, char *text, size_t size) {
	size_t used = 0;

	snprintf(text, size, "ok");
	for (uint32_t i = 0; i < a->notes && i < ANALYSIS_NOTES_MAX && used < size; i++)
		used += (size_t)snprintf(
			text + used, size - used, "%s%s", used > 0 ? "; " : "", a->note[i]);
	for (uint32_t i = 0; i < f->count && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s%s", used > 0 ? "; " : "",
			f->finding[i].sentence);
}
