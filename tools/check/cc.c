// SPDX-License-Identifier: BSD-3-Clause
// What a congestion control does with measurements that no path should give it, for `weir check
// cc`: weir-check-cc VALUE, of `cc:` in a config, such as copa or {plugin: FILE.so, rmax: 1Gbit}.
//
// A control is called CALLS times in any order, with times, counts and rates that are 0, huge or
// between. Its config cannot be written, and behind its state begins a page that nobody may touch,
// so that a write outside its own memory ends the program (plugin.h), as do exit() and a call that
// does not return. The same calls are made three times: in one place, again, and with a state that
// moves to another place on the way, as a flow's may; each must answer the same bytes.
//
// Prints one line of JSON. `allocations`: of memory, in all calls; null: this build cannot count.
#include "common/base/json.h"
#include "common/base/ns.h"
#include "common/base/rng.h"
#include "common/config/config.h"
#include "common/run/run.h"
#include "sender/cc/outcome.h"
#include "sender/cc/plugin.h"
#include "sender/group/control.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

#define PROGRAM "weir-check-cc"
#define CALLS 300000
#define MSS_BYTES 1448
#define SEGS_MAX (1u << 24)
#define PLACES 2 // of a state that moves

// Of this thread, which calls the control; the one that watches it (plugin.c) allocates too.
static _Thread_local uint64_t allocations;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
#define COUNTS false
#elif defined(__has_feature)
#define COUNTS (!__has_feature(address_sanitizer) && !__has_feature(memory_sanitizer))
#else
#define COUNTS true
#endif

#if COUNTS
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);

void *malloc(size_t size) {
	allocations++;
	return __libc_malloc(size);
}

void *calloc(size_t n, size_t size) {
	allocations++;
	return __libc_calloc(n, size);
}

void *realloc(void *old, size_t size) {
	allocations++;
	return __libc_realloc(old, size);
}
#endif

struct bed {
	const struct cc_ops *ops;
	void *config; // read-only
	struct cc_flow *flow; // its service; NULL: it asks for none
	char *place[PLACES]; // of the state, each before a page that nobody may touch
	size_t config_room;
};

// What the calls build on: each ACK's values follow from the ones before where they must.
struct course {
	struct rng rng;
	uint64_t now_ns, delivered, rtt_min_ns;
	struct cc_out out;
	XXH64_state_t *answers;
};

static size_t page_room(size_t bytes) {
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (bytes + page) / page * page;
}

static void *pages(size_t bytes, struct err *err) {
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p != MAP_FAILED)
		return p;
	err_set(err, -ENOMEM, "no memory");
	return NULL;
}

// A state of `size` bytes that ends where nobody may write.
static char *guarded_state(size_t size, struct err *err) {
	size_t page = (size_t)sysconf(_SC_PAGESIZE), room = page_room(size);
	char *p = pages(room + page, err);

	if (p == NULL || mprotect(p + room, page, PROT_NONE) < 0)
		return NULL;
	return p + room - (size + 7) / 8 * 8;
}

static int bed_open(struct bed *b, const struct group *g, struct err *err) {
	const struct cc_ops *ops = g->cc;

	*b = (struct bed){.ops = ops, .config_room = page_room(ops->config_size)};
	b->config = pages(b->config_room, err);
	if (b->config == NULL)
		return -ENOMEM;
	memcpy(b->config, g->cc_config, ops->config_size);
	if (mprotect(b->config, b->config_room, PROT_READ) < 0)
		return err_set(err, -errno, "mprotect: %s", strerror(errno));
	if (ops->open != NULL) {
		b->flow = (void *)guarded_state(
			sizeof(struct cc_flow) + ops->memory_bytes + ops->shared_bytes, err);
		if (b->flow == NULL)
			return -ENOMEM;
	}
	for (int i = 0; i < PLACES; i++) {
		b->place[i] = guarded_state(ops->state_size + 8u * (unsigned)i, err);
		if (b->place[i] == NULL)
			return -ENOMEM;
	}
	return 0;
}

// 0, `max`, or between, each power of two as likely.
static uint64_t any(struct rng *r, uint64_t max) {
	uint64_t draw = rng_u64(r), bits = draw >> 58;

	if (draw % 8 == 0)
		return draw % 16 == 0 ? 0 : max;
	draw = rng_u64(r) >> bits;
	return draw > max ? draw % (max + 1) : draw;
}

static bool coin(struct rng *r) {
	return (rng_u64(r) & 1) != 0;
}

static struct cc_ack any_ack(struct course *c) {
	struct rng *r = &c->rng;
	uint64_t rtt_ns = 1000 + any(r, 1000 * NS_PER_S), acked = any(r, SEGS_MAX);
	struct cc_ack a = {
		.now_ns = c->now_ns,
		.rtt_ns = coin(r) ? rtt_ns : 0,
		.srtt_ns = 1000 + any(r, 1000 * NS_PER_S),
		.rtt_min_ns = c->rtt_min_ns = time_min(c->rtt_min_ns, rtt_ns),
		.sent_ns = time_since(c->now_ns, rtt_ns),
		.tick_ns = coin(r) ? 0 : 4 * NS_PER_MS,
		.cwnd_at_send = 1 + (double)any(r, SEGS_MAX),
		.acked_segs = (uint32_t)acked,
		.passed_segs = (uint32_t)any(r, acked),
		.lost_segs = (uint32_t)any(r, SEGS_MAX),
		.ce_segs = (uint32_t)any(r, acked),
		.inflight_segs = (uint32_t)any(r, SEGS_MAX),
		.prior_inflight_segs = (uint32_t)any(r, SEGS_MAX),
		.prior_delivered_segs = any(r, c->delivered),
		.delivered_segs = c->delivered += acked,
		.delivery_bps = (double)any(r, UINT64_C(10000000000000)),
		.interval_ns = any(r, 1000 * NS_PER_S),
		.next_send_ns = c->now_ns + any(r, NS_PER_S),
	};

	a.app_limited = coin(r);
	a.lost_app_limited = coin(r);
	a.cwnd_limited = coin(r);
	a.host_paced = coin(r);
	a.in_sequence = coin(r);
	a.in_recovery = coin(r);
	a.in_loss = !a.in_recovery && coin(r);
	a.classic_ecn = coin(r);
	return a;
}

static struct cc_loss any_loss(struct course *c, bool timeout) {
	struct cc_loss l = {
		.now_ns = c->now_ns,
		.inflight_segs = (uint32_t)any(&c->rng, SEGS_MAX),
		.lost_segs = (uint32_t)any(&c->rng, SEGS_MAX),
	};

	l.ecn = !timeout && coin(&c->rng);
	l.classic_ecn = coin(&c->rng);
	l.repeated = timeout && coin(&c->rng);
	return l;
}

static void sample(const struct bed *b, char *state, struct course *c) {
	struct rng *r = &c->rng;
	uint64_t una = any(r, UINT64_MAX >> 1), outstanding = any(r, SEGS_MAX);
	struct cc_sample s = {
		.now_ns = c->now_ns,
		.una_segs = una,
		.nxt_segs = una + outstanding,
		.delivered_segs = c->delivered,
		.prior_delivered_segs = any(r, c->delivered),
		.lost_segs = any(r, UINT64_MAX),
		.rtt_ns = any(r, 1000 * NS_PER_S),
		.srtt_ns = any(r, 1000 * NS_PER_S),
		.rtt_min_ns = any(r, 1000 * NS_PER_S),
		.rto_ns = any(r, 1000 * NS_PER_S),
		.cwnd_segs = 1 + (double)any(r, SEGS_MAX),
		.passed_segs = (uint32_t)any(r, SEGS_MAX),
		.ce_segs = (uint32_t)any(r, SEGS_MAX),
		.sacked_segs = (uint32_t)any(r, outstanding),
		.inflight_segs = (uint32_t)any(r, SEGS_MAX),
		.peer_tsval = (uint32_t)any(r, UINT32_MAX),
		.peer_tsecr = (uint32_t)any(r, UINT32_MAX),
	};

	s.ack = coin(r);
	s.predicted = coin(r);
	s.ece = coin(r);
	s.cwnd_limited = coin(r);
	s.host_paced = coin(r);
	s.one_way = coin(r);
	s.one_way_ns = (int64_t)any(r, INT64_MAX) * (coin(r) ? 1 : -1);
	b->ops->on_sample(state, b->config, &s);
}

static void packet(const struct bed *b, char *state, struct course *c) {
	struct rng *r = &c->rng;
	struct cc_packet p = {
		.now_ns = c->now_ns,
		.number = any(r, UINT64_MAX >> 1),
		.sent_ns = time_since(c->now_ns, any(r, 1000 * NS_PER_S)),
		.delivered_segs = any(r, c->delivered),
		.lost_segs = any(r, UINT64_MAX >> 1),
		.inflight_segs = (uint32_t)any(r, SEGS_MAX),
		.bytes = (uint32_t)any(r, MSS_BYTES),
		.event = (enum cc_packet_event)(rng_u64(r) % 4),
	};

	p.retransmission = coin(r);
	p.probe = coin(r);
	p.app_limited = coin(r);
	b->ops->on_packet(state, b->config, &p);
}

// What a control says beside its window counts as an answer, too.
static XXH64_state_t *beside_answers;

static void any_timer(struct cc_flow *flow, uint64_t after_ns) {
	XXH64_update(beside_answers, &after_ns, sizeof(after_ns));
}

static void any_note(struct cc_flow *flow, uint32_t which, double before, double value) {
	XXH64_update(beside_answers, &value, sizeof(value));
}

static void open_flow(const struct bed *b, char *state, const struct course *c) {
	beside_answers = c->answers;
	memset(b->flow, 0, sizeof(*b->flow) + b->ops->memory_bytes + b->ops->shared_bytes);
	*b->flow = (struct cc_flow){.bytes = sizeof(*b->flow),
		.shared_flows = 1,
		.random = 1,
		.memory = b->flow + 1,
		.shared = (char *)(b->flow + 1) + b->ops->memory_bytes,
		.timer = any_timer,
		.note = any_note};
	b->ops->open(state, b->config, b->flow);
}

static void one_call(const struct bed *b, char *state, struct course *c) {
	const struct cc_ops *o = b->ops;
	uint64_t which = rng_u64(&c->rng) % 100;
	float observed[CC_OBSERVED] = {0};

	c->now_ns += any(&c->rng, which == 0 ? 1000 * NS_PER_S : NS_PER_MS);
	if (o->on_sample != NULL)
		sample(b, state, c);
	if (o->on_packet != NULL)
		packet(b, state, c);
	if (which < 10 && o->on_timer != NULL) {
		o->on_timer(state, b->config, c->now_ns, &c->out);
	} else if (which < 85) {
		struct cc_ack ack = any_ack(c);

		o->on_ack(state, b->config, &ack, &c->out);
	} else if (which < 94) {
		struct cc_loss loss = any_loss(c, which >= 91);

		(which >= 91 ? o->on_rto : o->on_loss)(state, b->config, &loss, &c->out);
	} else if (which < 97 && o->on_spurious != NULL) {
		o->on_spurious(state, b->config, c->now_ns, &c->out);
	} else if (o->on_idle != NULL) {
		o->on_idle(state, b->config, c->now_ns, any(&c->rng, 1000 * NS_PER_S), &c->out);
	}
	if (o->requests != NULL)
		(void)o->requests(state, b->config);
	if (o->observe != NULL)
		o->observe(state, b->config, observed);
	if (o->mode != NULL)
		(void)o->mode(state, b->config);
	if (o->ssthresh != NULL)
		(void)o->ssthresh(state, b->config);
	XXH64_update(c->answers, &c->out, sizeof(c->out));
	XXH64_update(c->answers, observed, sizeof(observed));
}

// Whether an answer is a window and a rate; of plug-ins, plugin.h says it.
static bool answered(const struct cc_out *out) {
	return isfinite(out->cwnd_segs) && out->cwnd_segs >= 1 && isfinite(out->pacing_bps)
		&& out->pacing_bps >= 0;
}

static bool faulty(const struct course *c, struct err *why) {
	if (cc_outcome(why) < 0)
		return true;
	if (answered(&c->out))
		return false;
	err_set(why, 0, "it answers {cwnd_segs: %g, pacing_bps: %g}", c->out.cwnd_segs,
		c->out.pacing_bps);
	return true;
}

// The digest of all answers, up to one that was none: `fault` then says which.
static uint64_t course(const struct bed *b, bool moves, uint64_t *calls, struct err *fault) {
	struct course c = {.now_ns = NS_PER_S, .rtt_min_ns = NEVER_NS, .out = {.cwnd_segs = 1}};
	char *state = b->place[0];

	rng_init(&c.rng, 1, "check");
	c.answers = XXH64_createState();
	if (c.answers == NULL)
		return 0;
	XXH64_reset(c.answers, 0);
	for (int i = 0; i < PLACES; i++)
		memset(b->place[i], 0, b->ops->state_size);
	allocations = 0;
	if (b->flow != NULL)
		open_flow(b, state, &c);
	b->ops->init(state, b->config, MSS_BYTES, 50 * NS_PER_MS, c.now_ns, &c.out);
	for (*calls = 0; *calls < CALLS && !faulty(&c, fault); (*calls)++) {
		if (moves && *calls % 97 == 0) {
			char *to = b->place[state == b->place[0]];

			memcpy(to, state, b->ops->state_size);
			memset(state, 0xa5, b->ops->state_size);
			state = to;
		}
		one_call(b, state, &c);
	}
	if (b->ops->release != NULL)
		b->ops->release(state, b->config);
	uint64_t digest = XXH64_digest(c.answers), counted = allocations;

	XXH64_freeState(c.answers);
	allocations = counted;
	return digest;
}

static void print(const struct bed *b, uint64_t calls, const char *fault, uint64_t counted,
	bool same, bool moved) {
	struct json j;

	json_begin(&j, stdout);
	json_text(&j, "name", b->ops->name);
	json_u64(&j, "calls", calls);
	if (fault[0] != '\0')
		json_text(&j, "fault", fault);
	else
		json_null(&j, "fault");
	if (COUNTS)
		json_u64(&j, "allocations", counted);
	else
		json_null(&j, "allocations");
	json_bool(&j, "same", same);
	json_bool(&j, "moved_same", moved);
	json_end(&j);
}

int main(int argc, char **argv) {
	uint64_t digest[3], calls = 0, counted = 0;
	struct err err, fault = {""};
	struct config *config = NULL;
	struct group g = {0};
	struct bed b;
	int rc = 2;

	if (argc != 2) {
		fprintf(stderr, "usage: " PROGRAM " NAME|{plugin: FILE.so, KEY: VALUE}\n");
		return 2;
	}
	if (group_control_text(&g, argv[1], &config, &err) < 0 || bed_open(&b, &g, &err) < 0) {
		fprintf(stderr, PROGRAM ": %s\n", err.msg);
		goto done;
	}
	run_stdout_aside();
	cc_plugin_limit();
	for (int i = 0; i < 3; i++) {
		digest[i] = course(&b, i == 2, &calls, &fault);
		counted += allocations;
	}
	run_stdout_back();
	print(&b, calls, fault.msg, counted, digest[0] == digest[1], digest[0] == digest[2]);
	rc = 0;
done:
	free(g.cc_config);
	config_free(config);
	return rc;
}
