// SPDX-License-Identifier: BSD-3-Clause
#include "tools/pcap/compare.h"

#include "common/base/likely.h"
#include "tools/pcap/fields.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define FLOWS_WRITTEN 10000u
#define CUT_FLOWS (1u << 18)
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
	if (s->replaced != s->reader.replaced)
		s->known = 0;
	s->replaced = s->reader.replaced;
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
		enum decode what = decode_counted(f, p, &s->decoded);

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

static bool ends_with(const char *text, const char *end) {
	size_t size = strlen(text), most = strlen(end);

	return size > most && strcmp(text + size - most, end) == 0;
}

static void add_name(char *names, const char *name) {
	size_t used = strlen(names);

	snprintf(names + used, COMPARE_NAMES - used, "%s%s", used > 0 ? "," : "", name);
}

// As Weir names them: what enters the paths and what leaves them. Or there are just two.
static int choose_interfaces(struct compare *c, const struct reader *r, struct err *err) {
	uint32_t named[2] = {0, 0};

	for (uint32_t i = 0; i < r->interfaces; i++) {
		const char *name = r->interface[i].name;

		for (uint32_t side = 0; side < 2; side++) {
			if (!ends_with(name, side == 0 ? " in" : " out"))
				continue;
			named[side]++;
			add_name(c->names[side], name);
		}
	}
	bool pairs = named[0] > 0 && named[0] == named[1];
	for (uint32_t side = 0; side < 2; side++) {
		if (!pairs && r->interfaces == 2)
			snprintf(c->names[side], COMPARE_NAMES, "%s", r->interface[side].name);
		c->interfaces[side] = c->names[side];
	}
	if ((pairs || r->interfaces == 2) && c->names[0][0] != '\0' && c->names[1][0] != '\0')
		return 0;
	return err_set(err, -EINVAL,
		"%s: both sides are in one capture, of %u interfaces: --from and --to say which of "
		"them are which side, or a second capture is wanted",
		c->file[0], r->interfaces);
}

int compare_choose(struct compare *c, const char *const *files, uint32_t count, const char *from,
	const char *to, struct err *err) {
	struct reader *r = &c->side[0].reader;
	struct frame frames[READER_BATCH];

	if (count != 1 && count != 2)
		return err_set(err, -EINVAL,
			"compare wants two captures, or one of both sides, not %u: INGRESS EGRESS",
			count);
	c->file[0] = files[0];
	c->file[1] = files[count - 1];
	c->interfaces[0] = from;
	c->interfaces[1] = to;
	if (count == 2 || from[0] != '\0' || to[0] != '\0')
		return 0;
	if (strcmp(files[0], "-") == 0)
		return err_set(err, -EINVAL,
			"both sides of one capture are read from a file, not from '-'");
	int rc = reader_open(r, files[0], err);
	if (rc == 0)
		rc = reader_batch(r, frames, READER_BATCH, err);
	if (rc >= 0)
		rc = choose_interfaces(c, r, err);
	reader_close(r);
	memset(&c->side[0], 0, sizeof(c->side[0]));
	return rc;
}

int compare_open(struct compare *c, uint32_t side, struct err *err) {
	struct compare_side *s = &c->side[side];
	struct frame frames[READER_BATCH];
	int n;

	s->interfaces = c->interfaces[side];
	n = reader_open(&s->reader, c->file[side], err);
	if (n == 0)
		n = reader_batch(&s->reader, frames, READER_BATCH, err);
	if (n < 0)
		return n;
	decode_batch(s, frames, (uint32_t)n);
	return check_interfaces(s, c->file[side], err);
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

int compare_scan(struct compare *c, struct err *err) {
	struct stat st;
	int rc = cut_init(&c->cut, CUT_FLOWS, err);

	for (uint32_t side = 0; side < 2 && rc == 0; side++) {
		// A pipe cannot be read twice; that a file is missing is said when it is opened.
		if (stat(c->file[side], &st) < 0 || !S_ISREG(st.st_mode))
			return 0;
	}
	for (uint32_t side = 0; side < 2 && rc == 0; side++) {
		struct compare_side *s = &c->side[side];

		rc = compare_open(c, side, err);
		while (rc == 0 && (rc = next(c, side, err)) > 0) {
			for (; s->at < s->count; s->at++)
				cut_add(&c->cut, side, &s->packet[s->at]);
			rc = 0;
		}
		reader_close(&s->reader);
		memset(s, 0, sizeof(*s));
	}
	cut_decide(&c->cut);
	return rc;
}

void compare_close(struct compare *c) {
	for (uint32_t side = 0; side < 2; side++)
		reader_close(&c->side[side].reader);
	cut_fini(&c->cut);
}

static void give(struct compare *c, uint32_t side, const struct packet *p) {
	uint32_t unit = cut_unit(&c->cut, p);
	struct packet part;

	if (likely(unit == 0)) {
		match_packet(&c->match, side, p);
		return;
	}
	for (uint32_t n = 0; cut_part(p, unit, n, &part); n++) {
		c->side[side].apart += n == 1;
		c->side[side].parts += n > 0;
		match_packet(&c->match, side, &part);
	}
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

		give(c, side, &c->side[side].packet[c->side[side].at]);
		c->side[side].at++;
	}
	match_end(&c->match);
	return 0;
}

int compare_found(const struct compare *c, int rc, struct err *err) {
	char why[256];

	for (uint32_t side = 0; side < 2 && rc == 0; side++) {
		const struct decode_count *d = &c->side[side].decoded;

		if (d->what[DECODE_TCP] + d->what[DECODE_UDP] == 0
			&& decode_why_nothing(d, why, sizeof(why)))
			return err_set(
				err, -EIO, "%s: no TCP or UDP found: %s", c->file[side], why);
	}
	return 0;
}

bool compare_balanced(const struct compare *c) {
	uint64_t in = 0, out = 0, packets = 0, read[2] = {0, 0};

	for (uint32_t side = 0; side < 2; side++) {
		const struct match_path *p = &c->match.path[side];

		in += p->in + p->matched; // a packet that was seen again is in both captures
		out += p->matched * 2 + p->lost + p->unjudged;
		packets += c->side[side].decoded.what[DECODE_TCP]
			+ c->side[side].decoded.what[DECODE_UDP] + c->side[side].parts;
		read[side] = c->side[side].skipped + decode_total(&c->side[side].decoded);
	}
	return in == out && in == packets && read[0] == c->side[0].reader.count.packets
		&& read[1] == c->side[1].reader.count.packets;
}

static void write_reads(const struct compare *c, struct json *j) {
	json_object(j, "captures");
	for (uint32_t side = 0; side < 2; side++) {
		json_object(j, side_names[side]);
		json_u64(j, "read", c->side[side].reader.count.packets);
		decode_ledger(&c->side[side].decoded, j);
		json_u64(j, "other_interfaces", c->side[side].skipped);
		json_close(j, '}');
	}
	json_close(j, '}');
}

static void write_ledger(const struct compare *c, struct json *j) {
	json_object(j, "ledger");
	CAPTURES_LEDGER_FIELDS(FIELD_JSON)
	json_close(j, '}');
}

static void write_path(const struct match_path *p, struct json *j) {
	uint64_t p50_ns = hist_quantile(&p->delay, 0.5), p99_ns = hist_quantile(&p->delay, 0.99);
	uint64_t least_ns = p->delay_min_ns;
	bool known = p->matched > 0;

	MATCHED_FIELDS(FIELD_JSON)
}

static void write_flow(const struct match_flow *p, struct json *j) {
	bool known = p->matched > 0;
	char end[2][40];

	for (uint32_t i = 0; i < 2; i++) {
		const struct endpoint *e = &p->key.end[i ? !p->from : p->from];
		uint16_t port = p->key.port[i ? !p->from : p->from];

		if (endpoint_is_ipv4(e))
			snprintf(end[i], sizeof(end[i]), "%u.%u.%u.%u:%u",
				(uint32_t)(e->low >> 24 & 255), (uint32_t)(e->low >> 16 & 255),
				(uint32_t)(e->low >> 8 & 255), (uint32_t)(e->low & 255), port);
		else
			snprintf(end[i], sizeof(end[i]), "%016llx%016llx.%u",
				(unsigned long long)e->high, (unsigned long long)e->low, port);
	}
	json_object(j, NULL);
	MATCHED_FLOW_FIELDS(FIELD_JSON)
	json_close(j, '}');
}

static void write_paths(const struct match *m, struct json *j) {
	json_object(j, "links");
	for (uint32_t side = 0; side < 2; side++) {
		json_object(j, path_names[side]);
		write_path(&m->path[side], j);
		json_close(j, '}');
	}
	json_close(j, '}');
}

static void write_backwards(const struct compare *c, struct json *j) {
	json_object(j, "backwards");
	for (uint32_t side = 0; side < 2; side++)
		json_u64(j, side_names[side], c->side[side].backwards);
	json_close(j, '}');
}

static void write_apart(const struct compare *c, struct json *j) {
	json_object(j, "taken_apart");
	for (uint32_t side = 0; side < 2; side++) {
		json_object(j, side_names[side]);
		APART_FIELDS(FIELD_JSON)
		json_close(j, '}');
	}
	json_close(j, '}');
}

static void write_flows(const struct match *m, struct json *j) {
	json_array(j, "flows");
	for (uint32_t i = 0; i < m->flows && i < FLOWS_WRITTEN; i++)
		write_flow(&m->flow[i], j);
	json_close(j, ']');
}

void compare_summary(const struct compare *c, struct json *j) {
	const struct match *m = &c->match;

	COMPARISON_PARTS(FIELD_JSON)
}
