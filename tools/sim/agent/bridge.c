// SPDX-License-Identifier: BSD-3-Clause
// weir-python.so: congestion controls in Python, as struct cc_ops. A flow's measurements are summed
// up in its slot of the shared page until its interval ends, and Python's decision is read there.
//
// A control has no timer: an interval ends with the first ACK, loss or timeout at or after its end.
// Flows of a class that is called `together` end theirs at once, at the first such event of any of
// them at or after a multiple of `every`; each has its decision with its own next event.
#include "sender/cc/cc.h"
#include "sender/cc/python.h"
#include "tools/sim/agent/class.h"
#include "tools/sim/agent/process.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define ERROR_BYTES 1024
#define HASHED (2 * AGENT_SLOTS)

struct state {
	struct agent_slot *slot;
	const struct agent_class *class;
};

static struct agent_page *page; // NULL: no control is in Python
static struct agent_class classes[AGENT_CLASSES];
static char *opened[AGENT_CLASSES]; // what each was asked for as
static uint32_t nb_classes;
static uint32_t slot_of_state[HASHED]; // 1 + its number; 0: free
static void (*on_failure)(const char *sentence);
static bool broken;

// A control cannot return an error: the run is told to end, and until it does all stays as it is.
static void fail(const char *sentence) {
	if (!broken)
		on_failure(sentence);
	broken = true;
}

static struct agent_slot *slot_for(const void *state) {
	size_t at = ((uintptr_t)state >> 3) * 0x9e3779b97f4a7c15u % HASHED;

	while (slot_of_state[at] != 0) {
		struct agent_slot *slot = &page->slot_of[slot_of_state[at] - 1];

		if (slot->state == state)
			return slot;
		at = (at + 1) % HASHED;
	}
	if (page->slots == AGENT_SLOTS) {
		fail("there are more than 65536 flows with a control in Python");
		return page->slot_of;
	}
	slot_of_state[at] = ++page->slots;
	page->slot_of[page->slots - 1].state = state;
	return &page->slot_of[page->slots - 1];
}

// What can be said only at the end of an interval.
static void finish(struct agent_slot *s, uint64_t now_ns) {
	struct measurements *m = &s->m;

	m->now_ns = now_ns;
	m->interval_ns = now_ns - s->start_ns;
	m->rtt_mean_ns = m->rtt_samples > 0 ? s->rtt_sum_ns / (double)m->rtt_samples : 0;
	m->throughput_bps = m->interval_ns > 0
		? (double)(m->acked_segs * m->mss_bytes) * 8e9 / (double)m->interval_ns
		: 0;
}

static void begin_interval(struct agent_slot *s, uint64_t now_ns) {
	memset(&s->m, 0, sizeof(struct measurements_interval));
	s->rtt_sum_ns = 0;
	s->start_ns = now_ns;
}

static void ask(enum agent_call call, const struct state *st) {
	char sentence[ERROR_BYTES];

	if (broken)
		return;
	page->call = call;
	page->of = st->class->number;
	page->slot = (uint32_t)(st->slot - page->slot_of);
	if (!agent_ask(page, sentence, sizeof(sentence)))
		fail(sentence);
}

static void take(const struct agent_slot *s, struct cc_out *out) {
	out->cwnd_segs = s->decision.cwnd_segs;
	out->pacing_bps = s->decision.pacing_bps;
	cc_bound(out);
}

static void call(
	enum agent_call which, const struct state *st, uint64_t now_ns, struct cc_out *out) {
	st->slot->m.cwnd_segs = out->cwnd_segs;
	st->slot->m.pacing_bps = out->pacing_bps;
	finish(st->slot, now_ns);
	ask(which, st);
	if (!broken)
		take(st->slot, out);
	else if (which == AGENT_INIT)
		out->cwnd_segs = 1;
	if (which == AGENT_ACK)
		begin_interval(st->slot, now_ns);
}

static uint64_t length_ns(const struct state *st, uint64_t every) {
	return every == AGENT_EVERY_ACK	   ? 0
		: every == AGENT_EVERY_RTT ? st->slot->m.srtt_ns
					   : every;
}

static bool is_of(const struct agent_slot *s, const struct agent_class *c) {
	const struct state *st = s->state;

	return st->class == c;
}

static void step_all(const struct state *st, uint64_t every, uint64_t now_ns) {
	struct agent_class *c = &classes[st->class->number];

	if (now_ns < c->next_step_ns)
		return;
	for (uint32_t i = 0; i < page->slots; i++) {
		struct agent_slot *s = &page->slot_of[i];

		if (!is_of(s, c))
			continue;
		s->m.cwnd_segs = s->decision.cwnd_segs;
		s->m.pacing_bps = s->decision.pacing_bps;
		finish(s, now_ns);
	}
	ask(AGENT_ACK, st);
	for (uint32_t i = 0; i < page->slots; i++) {
		if (is_of(&page->slot_of[i], c))
			begin_interval(&page->slot_of[i], now_ns);
	}
	c->next_step_ns = every > AGENT_EVERY_RTT ? (now_ns / every + 1) * every
						  : now_ns + length_ns(st, every);
}

// An ACK, loss or timeout has been added.
static void event(const struct state *st, const struct agent_config *config, uint64_t now_ns,
	struct cc_out *out) {
	uint64_t every = config->every;

	if (st->class->together) {
		step_all(st, every, now_ns);
		if (!broken)
			take(st->slot, out);
	} else if (now_ns >= st->slot->start_ns + length_ns(st, every)) {
		call(AGENT_ACK, st, now_ns, out);
	}
}

static void add_rtt(struct agent_slot *s, uint64_t rtt_ns) {
	struct measurements *m = &s->m;

	if (rtt_ns == 0)
		return;
	m->rtt_ns = rtt_ns;
	m->rtt_samples++;
	s->rtt_sum_ns += (double)rtt_ns;
	if (m->rtt_lowest_ns == 0 || rtt_ns < m->rtt_lowest_ns)
		m->rtt_lowest_ns = rtt_ns;
}

static void add_sums(struct measurements *m, const struct cc_ack *a) {
	m->acks++;
	m->acked_segs += a->acked_segs;
	m->passed_segs += a->passed_segs;
	m->lost_segs += a->lost_segs;
	m->ce_segs += a->ce_segs;
	m->app_limited |= a->app_limited;
	m->cwnd_limited |= a->cwnd_limited;
	m->in_sequence |= a->in_sequence;
}

static void keep_last(struct measurements *m, const struct cc_ack *a) {
	m->now_ns = a->now_ns;
	m->srtt_ns = a->srtt_ns;
	m->rtt_min_ns = a->rtt_min_ns;
	m->sent_ns = a->sent_ns;
	m->tick_ns = a->tick_ns;
	m->cwnd_at_send = a->cwnd_at_send;
	m->inflight_segs = a->inflight_segs;
	m->prior_inflight_segs = a->prior_inflight_segs;
	m->delivered_segs = a->delivered_segs;
	m->prior_delivered_segs = a->prior_delivered_segs;
	m->delivery_bps = a->delivery_bps;
	m->sample_ns = a->interval_ns;
	m->next_send_ns = a->next_send_ns;
	m->host_paced = a->host_paced;
	m->in_recovery = a->in_recovery;
	m->in_loss = a->in_loss;
	m->classic_ecn = a->classic_ecn;
}

static void on_ack(void *state, const void *config, const struct cc_ack *ack, struct cc_out *out) {
	const struct state *st = state;

	add_rtt(st->slot, ack->rtt_ns);
	add_sums(&st->slot->m, ack);
	keep_last(&st->slot->m, ack);
	event(st, config, ack->now_ns, out);
}

static void lost(const struct state *st, const struct agent_config *config, enum agent_call which,
	const struct cc_loss *loss, struct cc_out *out) {
	struct measurements *m = &st->slot->m;

	m->now_ns = loss->now_ns;
	m->inflight_segs = loss->inflight_segs;
	m->episode_lost_segs = loss->lost_segs;
	m->ecn = loss->ecn;
	m->classic_ecn = loss->classic_ecn;
	m->repeated = loss->repeated;
	if ((st->class->calls & 1u << which) != 0)
		call(which, st, loss->now_ns, out);
	else
		event(st, config, loss->now_ns, out);
}

static void on_loss(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	const struct state *st = state;

	st->slot->m.losses += !loss->ecn;
	st->slot->m.ecn_echoes += loss->ecn;
	lost(st, config, AGENT_LOSS, loss, out);
}

static void on_rto(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	const struct state *st = state;

	st->slot->m.timeouts++;
	lost(st, config, AGENT_RTO, loss, out);
}

static void on_spurious(void *state, const void *config, uint64_t now_ns, struct cc_out *out) {
	call(AGENT_SPURIOUS, state, now_ns, out);
}

static void on_idle(
	void *state, const void *config, uint64_t now_ns, uint64_t idle_ns, struct cc_out *out) {
	const struct state *st = state;

	st->slot->m.idle_ns = idle_ns;
	call(AGENT_IDLE, st, now_ns, out);
}

static void observe(const void *state, const void *config, float out[CC_OBSERVED]) {
	const struct state *st = state;

	for (size_t i = 0; i < CC_OBSERVED; i++)
		out[i] = (float)st->slot->decision.observed[i];
}

static uint8_t mode(const void *state, const void *config) {
	const struct state *st = state;

	return (uint8_t)st->slot->decision.mode;
}

static double ssthresh(const void *state, const void *config) {
	const struct state *st = state;

	return st->slot->decision.ssthresh_segs;
}

// Nothing says that a loss bounds the window of a control in Python.
static double given_window(const void *config) {
	return HUGE_VAL;
}

static void init(struct state *st, const struct agent_class *class, const void *config,
	uint32_t mss_bytes, uint64_t rtt_ns, uint64_t now_ns, struct cc_out *out) {
	struct agent_slot *s = slot_for(st);

	*st = (struct state){s, class};
	memset(&s->m, 0, sizeof(s->m));
	memset(&s->decision, 0, sizeof(s->decision));
	add_rtt(s, rtt_ns);
	s->m.srtt_ns = s->m.rtt_min_ns = rtt_ns;
	s->m.mss_bytes = mss_bytes;
	s->start_ns = now_ns;
	agent_class_values(class, config, page->params);
	if (page->cpu == 0)
		agent_pin(page);
	call(AGENT_INIT, st, now_ns, out);
	begin_interval(s, now_ns);
}

// init() is the one function that has neither a state nor a config that says whose it is.
#define INIT_OF(n)                                                                                 \
	static void init_##n(void *state, const void *config, uint32_t mss_bytes, uint64_t rtt_ns, \
		uint64_t now_ns, struct cc_out *out) {                                             \
		init(state, &classes[n], config, mss_bytes, rtt_ns, now_ns, out);                  \
	}
#define EACH_CLASS(V)                                                                              \
	V(0) V(1) V(2) V(3) V(4) V(5) V(6) V(7) V(8) V(9) V(10) V(11) V(12) V(13) V(14) V(15)
EACH_CLASS(INIT_OF)
#define INIT_NAME(n) init_##n,
static void (*const inits[])(void *, const void *, uint32_t, uint64_t, uint64_t,
	struct cc_out *) = {EACH_CLASS(INIT_NAME)};
static_assert(sizeof(inits) / sizeof(inits[0]) == AGENT_CLASSES, "one each");

static void give_functions(struct agent_class *c) {
	struct cc_ops *o = &c->ops;

	o->state_size = sizeof(struct state);
	o->rate = true;
	o->given_window = given_window;
	o->init = inits[c->number];
	o->on_ack = on_ack;
	o->on_loss = on_loss;
	o->on_rto = on_rto;
	o->on_spurious = (c->calls & 1u << AGENT_SPURIOUS) != 0 ? on_spurious : NULL;
	o->on_idle = (c->calls & 1u << AGENT_IDLE) != 0 ? on_idle : NULL;
	o->observe = o->observed[0] != NULL ? observe : NULL;
	o->mode = mode;
	o->ssthresh = c->has_ssthresh ? ssthresh : NULL;
}

static const struct agent_class *open_class(const char *text, char *error, size_t error_size) {
	struct agent_class *c = &classes[nb_classes];
	char *answer;

	c->number = nb_classes;
	page->call = AGENT_OPEN;
	snprintf(page->text, sizeof(page->text), "%s", text);
	if (!agent_ask(page, error, error_size))
		return NULL;
	answer = strndup(page->text, sizeof(page->text));
	opened[nb_classes] = strdup(text);
	if (answer == NULL || opened[nb_classes] == NULL) {
		snprintf(error, error_size, "no memory for %s", text);
		return NULL;
	}
	if (!agent_class_read(c, answer, error, error_size))
		return NULL;
	give_functions(c);
	nb_classes++;
	return c;
}

// The one that was opened as that, or is now.
static const struct agent_class *class_of(
	const char *text, const volatile int *stop, char *error, size_t error_size) {
	for (uint32_t i = 0; i < nb_classes; i++) {
		if (strcmp(opened[i], text) == 0)
			return &classes[i];
	}
	if (nb_classes == AGENT_CLASSES) {
		snprintf(error, error_size, "there are more than %d controls in Python",
			AGENT_CLASSES);
		return NULL;
	}
	if (page == NULL)
		page = agent_start(stop, error, error_size);
	return page != NULL ? open_class(text, error, error_size) : NULL;
}

// What weir-sim looks up in this object: the control that `text`, FILE:CLASS, names. It is good for
// the rest of the run, which `failed` is to end, and which is to end when *stop is not 0. False
// with a sentence.
bool weir_python_open(const char *text, void (*failed)(const char *sentence),
	const volatile int *stop, struct cc_python *control, char *error, size_t error_size);
bool weir_python_open(const char *text, void (*failed)(const char *sentence),
	const volatile int *stop, struct cc_python *control, char *error, size_t error_size) {
	const struct agent_class *c;

	on_failure = failed;
	c = class_of(text, stop, error, error_size);
	if (c != NULL)
		*control = (struct cc_python){&c->ops, c->imports};
	return c != NULL;
}

// The last interval of flows that are called together ends with the last event of any of them.
__attribute__((destructor)) static void end(void) {
	uint64_t now_ns = 0;

	if (page == NULL)
		return;
	for (uint32_t i = 0; i < page->slots; i++) {
		const struct agent_slot *s = &page->slot_of[i];

		now_ns = time_max(now_ns, time_max(s->m.now_ns, s->start_ns));
	}
	for (uint32_t i = 0; i < page->slots; i++)
		finish(&page->slot_of[i], now_ns);
	agent_end(page);
}
