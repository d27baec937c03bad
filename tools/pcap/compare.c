// SPDX-License-Identifier: BSD-3-Clause
#include "tools/pcap/compare.h"

#include "common/base/likely.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define FLOWS_WRITTEN 10000u
#define PROGRESS_PACKETS 65536

static const char *const side_names[] = {"ingress", "egress"};
static const char *const path_names[] = {"forward", "reverse"};

// Is `name` one of the names in a list with commas?
static bool listed(const char *list, const char *name) {
	size_t size = strlen(name);

	for (const char *at = list; (at = strstr(at, name)) != NULL; at += size) {
		if ((at == list || at[-1] == ',') && (at[size] == ',' || at[size] == '\0'))
			return true;
	}
	return false;
}

static void know_interfaces(struct compare_side *s) {
	for (; s->known < s->reader.interfaces; s->known++) {
		const char *name = s->reader.interface[s->known].name;

		s->read[s->known] = s->interfaces[0] == '\0'
			|| (name[0] != '\0' && listed(s->interfaces, name));
	}
}

// What is read of a batch: packets of the side's interfaces.
static void decode_batch(struct compare_side *s, const struct frame *frames, uint32_t n) {
	know_interfaces(s);
	s->at = s->count = 0;
	for (uint32_t i = 0; i < n; i++) {
		const struct frame *f = &frames[i];
		struct packet *p = &s->packet[s->count];

		if (f->interface < s->known ? !s->read[f->interface] : s->interfaces[0] != '\0') {
			s->skipped++;
			continue;
		}
		enum decode what = decode_frame(f, p);

		s->decoded[what]++;
		if (what != DECODE_TCP && what != DECODE_UDP)
			continue;
		s->backwards += p->ts_ns < s->last_ns;
		s->last_ns = p->ts_ns;
		s->count++;
	}
}

// Is each name of the side's list that of an interface?
static int check_interfaces(struct compare_side *s, const char *file, struct err *err) {
	char has[512] = "";
	size_t used = 0;

	for (uint32_t i = 0; i < s->known; i++) {
		const char *name = s->reader.interface[i].name;

		if (name[0] != '\0' && used < sizeof(has) - READER_NAME_MAX - 8)
			used += (size_t)snprintf(has + used, sizeof(has) - used, "%s'%s'",
				used > 0 ? ", " : "", name);
	}
	for (const char *at = s->interfaces; at[0] != '\0';) {
		int size = (int)strcspn(at, ",");
		bool found = false;

		for (uint32_t i = 0; i < s->known && !found; i++) {
			const char *name = s->reader.interface[i].name;

			found = strlen(name) == (size_t)size
				&& strncmp(name, at, (size_t)size) == 0;
		}
		if (!found)
			return err_set(err, -EINVAL, "%s: no interface is named '%.*s'; it has %s",
				file, size, at, used > 0 ? has : "none with a name");
		at += size + (at[size] == ',');
	}
	return 0;
}

int compare_open(struct compare *c, uint32_t side, const char *file, const char *interfaces,
	struct err *err) {
	struct compare_side *s = &c->side[side];
	struct frame frames[READER_BATCH];
	int n;

	s->interfaces = interfaces;
	n = reader_open(&s->reader, file, err);
	if (n == 0)
		n = reader_batch(&s->reader, frames, READER_BATCH, err);
	if (n < 0)
		return n;
	decode_batch(s, frames, (uint32_t)n);
	return check_interfaces(s, file, err);
}

// 1: the next packet is there; 0: the end.
static int next(struct compare *c, uint32_t side, struct err *err) {
	struct compare_side *s = &c->side[side];
	struct frame frames[READER_BATCH];

	while (s->at == s->count) {
		int n = reader_batch(&s->reader, frames, READER_BATCH, err);

		if (n <= 0)
			return n;
		decode_batch(s, frames, (uint32_t)n);
	}
	return 1;
}

int compare_read(struct compare *c, bool (*more)(void *of), void *of, struct err *err) {
	int there[2] = {1, 1};

	for (uint64_t n = 1; n % PROGRESS_PACKETS != 0 || more(of); n++) {
		for (uint32_t side = 0; side < 2; side++) {
			if (there[side] > 0 && (there[side] = next(c, side, err)) < 0)
				return there[side];
		}
		if (there[0] == 0 && there[1] == 0)
			break;
		struct compare_side *a = &c->side[0], *b = &c->side[1];
		uint32_t side = there[0] == 0
			|| (there[1] > 0 && b->packet[b->at].ts_ns < a->packet[a->at].ts_ns);

		match_packet(&c->match, side, &c->side[side].packet[c->side[side].at]);
		c->side[side].at++;
	}
	match_end(&c->match);
	return 0;
}

bool compare_balanced(const struct compare *c) {
	uint64_t in = 0, out = 0, packets = 0, read[2] = {0, 0};

	for (uint32_t side = 0; side < 2; side++) {
		const struct match_path *p = &c->match.path[side];

		in += p->in + p->matched; // a packet that was seen again is in both captures
		out += p->matched * 2 + p->lost + p->unjudged;
		packets += c->side[side].decoded[DECODE_TCP] + c->side[side].decoded[DECODE_UDP];
		read[side] = c->side[side].skipped;
		for (uint32_t i = 0; i < DECODE_COUNT; i++)
			read[side] += c->side[side].decoded[i];
	}
	return in == out && in == packets && read[0] == c->side[0].reader.count.packets
		&& read[1] == c->side[1].reader.count.packets;
}

static void write_ledger(const struct compare *c, struct json *j) {
	static const char *const names[] = {
#define NAME_(constant, name, meaning) name,
		DECODE_VALUES(NAME_)};

	json_object(j, "ledger");
	json_bool(j, "balanced", compare_balanced(c));
	json_object(j, "captures");
	for (uint32_t side = 0; side < 2; side++) {
		json_object(j, side_names[side]);
		json_u64(j, "read", c->side[side].reader.count.packets);
		for (uint32_t i = 0; i < DECODE_COUNT; i++)
			json_u64(j, names[i], c->side[side].decoded[i]);
		json_u64(j, "other_interfaces", c->side[side].skipped);
		json_close(j, '}');
	}
	json_close(j, '}');
	json_close(j, '}');
}

static void write_path(const struct match_path *p, struct json *j) {
	uint64_t least_ns = p->matched > 0 ? p->delay_min_ns : 0;

	json_u64(j, "in", p->in);
	json_u64(j, "matched", p->matched);
	json_u64(j, "drops", p->lost);
	json_u64(j, "not_judged", p->unjudged);
	json_u64(j, "marks", p->marked);
	json_u64(j, "reordered", p->reordered);
	json_u64(j, "ambiguous", p->ambiguous);
	json_u64(j, "delay_min_ns", least_ns);
	json_f64(j, "delay_mean_ns", hist_mean(&p->delay));
	json_u64(j, "delay_p50_ns", hist_quantile(&p->delay, 0.5));
	json_u64(j, "delay_p99_ns", hist_quantile(&p->delay, 0.99));
	json_u64(j, "delay_max_ns", p->delay.max);
	// What is above the least delay was spent in queues.
	json_f64(j, "queue_mean_ns", p->matched > 0 ? hist_mean(&p->delay) - (double)least_ns : 0);
	json_u64(j, "sojourn_p50_ns", time_since(hist_quantile(&p->delay, 0.5), least_ns));
	json_u64(j, "sojourn_p99_ns", time_since(hist_quantile(&p->delay, 0.99), least_ns));
	json_u64(j, "sojourn_max_ns", time_since(p->delay.max, least_ns));
}

static void write_flow(const struct match_flow *f, struct json *j) {
	char end[2][40];

	for (uint32_t i = 0; i < 2; i++) {
		const struct endpoint *e = &f->key.end[i ? !f->from : f->from];
		uint16_t port = f->key.port[i ? !f->from : f->from];

		if (endpoint_is_ipv4(e))
			snprintf(end[i], sizeof(end[i]), "%u.%u.%u.%u:%u",
				(uint32_t)(e->low >> 24 & 255), (uint32_t)(e->low >> 16 & 255),
				(uint32_t)(e->low >> 8 & 255), (uint32_t)(e->low & 255), port);
		else
			snprintf(end[i], sizeof(end[i]), "%016llx%016llx.%u",
				(unsigned long long)e->high, (unsigned long long)e->low, port);
	}
	json_object(j, NULL);
	json_text(j, "src", end[0]);
	json_text(j, "dst", end[1]);
	json_text(j, "proto", f->key.udp ? "udp" : "tcp");
	json_text(j, "path", path_names[f->side]);
	json_u64(j, "packets", f->seen);
	json_u64(j, "matched", f->matched);
	json_u64(j, "drops", f->lost);
	json_u64(j, "not_judged", f->unjudged);
	json_u64(j, "marks", f->marked);
	json_u64(j, "reordered", f->reordered);
	json_u64(j, "ambiguous", f->ambiguous);
	json_u64(j, "delay_min_ns", f->matched > 0 ? f->delay_min_ns : 0);
	json_u64(j, "delay_mean_ns", f->matched > 0 ? f->delay_sum_ns / f->matched : 0);
	json_u64(j, "delay_max_ns", f->delay_max_ns);
	json_close(j, '}');
}

void compare_summary(const struct compare *c, struct json *j) {
	const struct match *m = &c->match;

	write_ledger(c, j);
	json_object(j, "links");
	for (uint32_t side = 0; side < 2; side++) {
		json_object(j, path_names[side]);
		write_path(&m->path[side], j);
		json_close(j, '}');
	}
	json_close(j, '}');
	json_object(j, "backwards"); // times that are earlier than those of the packets before
	for (uint32_t side = 0; side < 2; side++)
		json_u64(j, side_names[side], c->side[side].backwards);
	json_close(j, '}');
	json_u64(j, "forgotten", m->forgotten);
	json_u64(j, "flows_seen", m->flows);
	json_array(j, "flows");
	for (uint32_t i = 0; i < m->flows && i < FLOWS_WRITTEN; i++)
		write_flow(&m->flow[i], j);
	json_close(j, ']');
}
