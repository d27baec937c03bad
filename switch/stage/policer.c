// SPDX-License-Identifier: BSD-3-Clause
// A policer: token buckets colour each packet, and packets of a colour pass, are marked or are
// dropped. Nothing waits, so a policer takes throughput without adding delay.
//
// srtcm, the single rate three color marker (RFC 2697), color-blind. Bucket C holds up to `burst`
// bytes and E up to `excess`; both are full at the start. Tokens come at `rate`, into E when C is
// full.
//
//	a packet of B bytes is  green   if C >= B: C -= B
//	                        yellow  if E >= B: E -= B
//	                        red     otherwise
//
// With `excess: 0`, the default, this is the plain token bucket.
//
// trtcm, the two rate three color marker (RFC 2698), color-blind. C is filled at `rate` up to
// `burst`, P at `peak` up to `peak_burst`.
//
//	                        red     if P < B
//	                        yellow  if C < B: P -= B
//	                        green   otherwise: P -= B, C -= B
//
// `mark` sets CE, and drops packets that are not ECN capable, as the queue disciplines do (RFC
// 3168, 5). Policers met in the Internet drop what exceeds the rate (Flach et al., "An
// Internet-Wide Analysis of Traffic Policing", SIGCOMM 2016): `red: drop`, the default. B counts
// the IP packet, as in both RFCs; `framing` changes that.
//
// Exact: tokens are counted in 1 / (8 * 10^9) byte, of which `rate` come per nanosecond, in
// integers.
//
// Where we differ from the RFCs, and why: tokens come continuously and not byte by byte, so that a
// bucket has no clock of its own. Colors are neither read from a packet's DSCP nor written to it;
// hence no color-aware mode.
#include "common/base/u64.h"
#include "switch/serialiser/framing.h"
#include "switch/stage/instant.h"

#include <errno.h>

#define BYTE_TOKENS (8 * NS_PER_S)
#define BURST_MAX_BYTES 1e9 // * BYTE_TOKENS fits into 64 bits

__extension__ typedef unsigned __int128 policer_u128;

enum meter { METER_SRTCM, METER_TRTCM };
static const char *const meter_names[] = {"srtcm", "trtcm", NULL};
enum color { COLOR_GREEN, COLOR_YELLOW, COLOR_RED, COLORS };
enum action { ACTION_PASS, ACTION_MARK, ACTION_DROP };
static const char *const action_names[] = {"pass", "mark", "drop", NULL};

struct bucket {
	uint64_t tokens, max;
};

struct policer {
	struct instant pass;
	int meter;
	uint64_t rate_bps, peak_bps;
	uint64_t burst_bytes, excess_bytes, peak_burst_bytes;
	int action[COLORS];
	struct framing framing;

	uint64_t rate_in_use_bps, peak_in_use_bps; // until update() is called
	struct bucket committed, other; // C; E or P
	uint64_t filled_ns; // up to when tokens have come
	uint64_t pkts[COLORS];
};

static const struct param params[] = {
	{"meter", "srtcm", "one rate (RFC 2697) or two (RFC 2698)", UNIT_NONE,
		PARAM_ENUM(struct policer, meter, meter_names)},
	{"rate", NULL, "committed information rate", UNIT_RATE_BPS,
		PARAM_U64(struct policer, rate_bps), 1e3, 1e12, .live = true},
	// The burst of ns-3's TBF.
	{"burst", "125kB", "committed burst size", UNIT_BYTES,
		PARAM_U64(struct policer, burst_bytes), 0, BURST_MAX_BYTES},
	{"excess", "0B", "srtcm: excess burst size", UNIT_BYTES,
		PARAM_U64(struct policer, excess_bytes), 0, BURST_MAX_BYTES},
	{"peak", "0", "trtcm: peak information rate", UNIT_RATE_BPS,
		PARAM_U64(struct policer, peak_bps), 1e3, 1e12, .zero = true, .live = true},
	{"peak_burst", "125kB", "trtcm: peak burst size", UNIT_BYTES,
		PARAM_U64(struct policer, peak_burst_bytes), 0, BURST_MAX_BYTES},
	{"yellow", "pass", "what happens to yellow packets", UNIT_NONE,
		PARAM_ENUM(struct policer, action[COLOR_YELLOW], action_names)},
	{"red", "drop", "what happens to red packets", UNIT_NONE,
		PARAM_ENUM(struct policer, action[COLOR_RED], action_names)},
	FRAMING_PARAM(struct policer, framing, "ip", "what the size of a packet counts"),
	PARAM_END,
};

static const struct param also[] = {FRAMING_OVERHEAD_PARAM, PARAM_END};

static int policer_configure(void *self, struct config_node *node, struct err *err) {
	struct policer *s = self;

	return framing_configure(&s->framing, node, err);
}

static int policer_check(const struct policer *s, uint64_t frame_bytes, struct err *err) {
	bool two = s->meter == METER_TRTCM;
	uint64_t largest = two ? s->peak_burst_bytes : max_u64(s->burst_bytes, s->excess_bytes);

	if (two && s->peak_bps < s->rate_bps)
		return err_set(err, -EINVAL,
			"peak: trtcm needs a peak rate that is not below the rate (RFC 2698, 2)");
	if (!two && s->peak_bps > 0)
		return err_set(err, -EINVAL, "peak: srtcm has one rate; trtcm has a peak rate");
	if (two && s->excess_bytes > 0)
		return err_set(err, -EINVAL, "excess: trtcm has none; srtcm has an excess burst");
	if (largest < frame_bytes)
		return err_set(err, -EINVAL,
			"%s: no packet of %u bytes, the largest, would ever pass",
			two ? "peak_burst" : "burst", (uint32_t)frame_bytes);
	return 0;
}

static struct bucket bucket_full(uint64_t bytes) {
	return (struct bucket){.tokens = bytes * BYTE_TOKENS, .max = bytes * BYTE_TOKENS};
}

static int policer_init(void *self, const struct stage_env *env, struct err *err) {
	struct policer *s = self;

	s->pass.env = env;
	s->rate_in_use_bps = s->rate_bps;
	s->peak_in_use_bps = s->peak_bps;
	s->committed = bucket_full(s->burst_bytes);
	s->other = bucket_full(s->meter == METER_TRTCM ? s->peak_burst_bytes : s->excess_bytes);
	return policer_check(s, framing_bytes(&s->framing, env->mtu_bytes), err);
}

// Puts tokens into a bucket; returns those that it has no room for.
static policer_u128 bucket_fill(struct bucket *b, policer_u128 tokens) {
	uint64_t room = b->max - b->tokens;

	if (tokens > room) {
		b->tokens = b->max;
		return tokens - room;
	}
	b->tokens += (uint64_t)tokens;
	return 0;
}

static void policer_fill(struct policer *s, uint64_t t_ns) {
	uint64_t ns = time_since(t_ns, s->filled_ns);
	policer_u128 left = bucket_fill(&s->committed, (policer_u128)s->rate_in_use_bps * ns);

	if (s->meter == METER_TRTCM)
		left = (policer_u128)s->peak_in_use_bps * ns;
	bucket_fill(&s->other, left);
	s->filled_ns = time_max(s->filled_ns, t_ns);
}

static bool bucket_take(struct bucket *b, uint64_t tokens) {
	if (b->tokens < tokens)
		return false;
	b->tokens -= tokens;
	return true;
}

static enum color policer_color(struct policer *s, const struct pkt *p) {
	uint64_t tokens = framing_bytes(&s->framing, p->size_bytes) * BYTE_TOKENS;

	policer_fill(s, p->arrival_ns);
	if (s->meter == METER_TRTCM) {
		if (!bucket_take(&s->other, tokens))
			return COLOR_RED;
		return bucket_take(&s->committed, tokens) ? COLOR_GREEN : COLOR_YELLOW;
	}
	if (bucket_take(&s->committed, tokens))
		return COLOR_GREEN;
	return bucket_take(&s->other, tokens) ? COLOR_YELLOW : COLOR_RED;
}

static void policer_take(struct policer *s, struct pkt *p, struct pkt_list *drops) {
	enum color color = policer_color(s, p);
	int action = s->action[color];

	s->pkts[color]++;
	if (action == ACTION_DROP || (action == ACTION_MARK && p->ecn == ECN_NOT_ECT)) {
		stage_drop(s->pass.env, drops, p, DROP_POLICED);
		return;
	}
	if (action == ACTION_MARK && p->ecn != ECN_CE) {
		p->ecn = ECN_CE;
		stage_trace(s->pass.env, TEL_MARK, p, p->arrival_ns, 0);
	}
	instant_pass(&s->pass, p);
}

static void policer_push(void *self, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	for (uint32_t i = 0; i < n; i++)
		policer_take(self, pkts[i], drops);
}

// Tokens after the last packet, and packets of the colors that are not green.
static const char *policer_observe(const void *self, double out[AQM_OBSERVED]) {
	const struct policer *s = self;

	out[0] = (double)s->committed.tokens / (double)BYTE_TOKENS;
	out[1] = (double)s->other.tokens / (double)BYTE_TOKENS;
	out[2] = (double)s->pkts[COLOR_YELLOW];
	out[3] = (double)s->pkts[COLOR_RED];
	return "policer";
}

static void policer_update(void *self, uint64_t now_ns) {
	struct policer *s = self;

	policer_fill(s, now_ns);
	s->rate_in_use_bps = s->rate_bps;
	s->peak_in_use_bps = s->peak_bps;
}

const struct stage_ops stage_policer = {
	.name = "policer",
	.summary = "token buckets that drop or mark what exceeds a rate",
	.reference = "RFC 2697, RFC 2698",
	.params = params,
	.state_size = sizeof(struct policer),
	.init = policer_init,
	.push = policer_push,
	.pop = instant_pop,
	.next_ns = instant_next_ns,
	.backlog = instant_backlog,
	.config =
		&(const struct stage_config){
			.also = also, .configure = policer_configure, .update = policer_update},
	.observer = &(const struct stage_observer){.names = {"committed_bytes", "other_bytes",
							   "yellow_pkts", "red_pkts"},
		.observe = policer_observe},
};
