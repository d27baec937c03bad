// SPDX-License-Identifier: BSD-3-Clause
#include "tools/pcap/findings.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

// Adds a sentence that begins with "3 of 1000 packets "; `of` 0: without it. None if there is
// nothing to count.
__attribute__((format(printf, 6, 7))) static void add(struct facts *all, const char *cause,
	uint64_t count, uint64_t of, const char *what, const char *format, ...) {
	struct fact f;
	char text[FACT_SENTENCE];
	va_list ap;

	if (count == 0)
		return;
	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	if (what != NULL)
		fact_set(&f, cause, "%" PRIu64 " of %" PRIu64 " %s ", count, of, what);
	else
		fact_set(&f, cause, "%s", "");
	fact_more(&f, "%s", text);
	fact_number(&f, "count", (double)count);
	fact_number(&f, "of", of > 0 ? (double)of : (double)NAN);
	facts_add(all, &f);
}

static void of_time(const struct analysis *a, struct facts *f) {
	const struct order *o = &a->order;
	uint64_t packets = a->track.count.packets + a->copied;

	add(f, "clock_steps", o->steps, 0, NULL,
		"the clock was set back %" PRIu64
		" times, by up to %.3f s: times go on from there, and "
		"none is taken across it",
		o->steps, (double)o->step_max_ns / 1e9);
	add(f, "backwards", a->track.count.backwards, packets, "packets",
		"are later in the file than could be put into order: sort it by time (reordercap)");
	add(f, "reordered", o->moved, packets, "packets",
		"were later in the file than their times, and were put into order");
	add(f, "no_time", a->parts.read.no_time, a->parts.read.packets, "packets",
		"have no time: that of the packet before was taken");
}

static void of_packets(const struct analysis *a, struct facts *f) {
	uint64_t read = a->parts.read.packets;

	if (a->track.count.packets == 0)
		add(f, "no_tcp", 1, 0, NULL, "none of %" PRIu64 " packets is TCP that can be read",
			read);
	add(f, "malformed", a->decoded.what[DECODE_MALFORMED], read, "packets",
		"are malformed, and count for no flow");
	add(f, "truncated", a->decoded.what[DECODE_TRUNCATED], read, "packets",
		"are cut off before the end of the TCP header, and count for no flow");
	add(f, "options_cut", a->options_cut, read, "packets",
		"are cut off within TCP's options: SACK, timestamps or the "
		"window's scale may be missing");
	add(f, "fragments", a->decoded.what[DECODE_FRAGMENT], read, "packets",
		"are IP fragments, which are not put together");
	add(f, "link_type", a->decoded.what[DECODE_LINK_TYPE], read, "packets",
		"are of a link type that is not read");
}

static void of_connections(const struct analysis *a, struct facts *f) {
	const struct track_count *c = &a->track.count;

	add(f, "begun_before", c->begun_before, c->connections, "connections",
		"had begun before the capture: their windows' scale and options are not known");
	add(f, "one_sided", c->one_sided, c->connections, "connections",
		"are seen in one direction only: there is no RTT, "
		"and losses are not told from reordering");
	add(f, "middle", c->middle, c->connections, "connections",
		"were captured between both ends: RTT, bytes in flight and losses "
		"are of a part of the path");
	add(f, "uncaptured", c->uncaptured_flows, c->flows, "flows",
		"have data that was acknowledged but not captured: segments sent, "
		"losses and RTT lack it");
	add(f, "untracked", a->track.pool.refused, 0, NULL,
		"%" PRIu64 " segments were forgotten before their ACK, for want of memory",
		a->track.pool.refused);
	add(f, "evicted", c->ended[TEL_EVICTED], c->connections, "connections",
		"were ended to make room: raise --connections");
}

void findings_make(const struct analysis *a, struct facts *f) {
	for (uint32_t i = 0; i < a->notes && i < ANALYSIS_NOTES_MAX; i++)
		facts_say(f, "capture_cut", "%s", a->note[i]);
	of_packets(a, f);
	of_time(a, f);
	of_connections(a, f);
}
