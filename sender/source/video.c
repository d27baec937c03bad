// SPDX-License-Identifier: BSD-3-Clause
// A live video stream: one segment after another on one connection, at a bitrate that follows the
// measured goodput.
//
//	segment k   is written at start + (k + 1) * segment, when it has been encoded, whatever
//	            became of those before
//	size        bitrate * segment
//	bitrate     the highest of the ladder that is at most `safety` times the estimate; the
//	            lowest at first
//	estimate    EWMA, gain 1/4, of a sample per segment:
//	            payload / time from when the connection was free for it until it was
//	            acknowledged; or, if segments wait, what was acknowledged since the last
//	            decision, and the estimate is at most that
//
// So the flow is limited by its application as long as the network carries the ladder's last
// bitrate, and never sends more than that on average. This is adaptation by throughput as players
// do it (Jiang, Sekar and Zhang, FESTIVE, CoNEXT 2012), at the sender, where a live stream has its
// encoder. Completion of a segment, from when it is written until it is acknowledged, is the
// application's round trip, as that of the payload which Facebook's Live app sent once a second,
// with an encoder limited to 3 Mbit/s ("COPA congestion control for video performance", Facebook
// Engineering, 2019).
//
// Records in the stream `transfers`: bitrate = 8 size_bytes / gap_ns.
#include "sender/source/source.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define LADDER_MAX 16
#define GAIN 0.25

struct video {
	uint64_t segment_ns;
	double safety;
	char text[PARAM_TEXT_SIZE];
	double ladder_bps[LADDER_MAX];
	uint32_t rungs;
};

struct video_state {
	double estimate_bps; // 0: none yet
	uint64_t acked_bytes, decided_ns; // at the last decision
};
static_assert(sizeof(struct video_state) <= SOURCE_STATE_BYTES, "fits");

static const struct param params[] = {
	{"ladder", "250kbit 500kbit 1Mbit 1500kbit 2Mbit 3Mbit",
		"the bitrates, rising, separated by spaces; the last is the encoder's limit",
		UNIT_NONE, PARAM_TEXT(struct video, text)},
	{"segment", "1s", "length of a segment", UNIT_TIME_NS, PARAM_U64(struct video, segment_ns),
		1e7, 6e10},
	{"safety", "0.8", "part of the measured goodput that the bitrate may be", UNIT_NONE,
		PARAM_F64(struct video, safety), 0.1, 1},
	PARAM_END,
};

static int video_configure(void *config, struct config_node *node, struct err *err) {
	struct config_node *at = config_get(node, "ladder");
	struct video *v = config;
	char text[PARAM_TEXT_SIZE], *rest = NULL;

	memcpy(text, v->text, sizeof(text));
	for (char *word = strtok_r(text, " ", &rest); word != NULL;
		word = strtok_r(NULL, " ", &rest)) {
		double bps;

		if (v->rungs == LADDER_MAX)
			return config_err(
				at, -EINVAL, err, "ladder: more than %d bitrates", LADDER_MAX);
		if (unit_parse(word, UNIT_RATE_BPS, &bps) < 0 || bps < 1000 || bps > 1e12)
			return config_err(at, -EINVAL, err,
				"ladder: '%s' is not a bitrate in [1kbit, 1Tbit]", word);
		if (v->rungs > 0 && bps <= v->ladder_bps[v->rungs - 1])
			return config_err(at, -EINVAL, err, "ladder: '%s' does not rise", word);
		v->ladder_bps[v->rungs++] = bps;
	}
	return v->rungs > 0 ? 0 : config_err(at, -EINVAL, err, "ladder: no bitrate");
}

static void measure(struct video_state *s, const struct source_seen *seen) {
	double bps;

	if (seen->unfinished > 1) { // than the one just written
		if (seen->now_ns <= s->decided_ns)
			return;
		bps = (double)(seen->acked_bytes - s->acked_bytes) * 8e9
			/ (double)(seen->now_ns - s->decided_ns);
		s->estimate_bps = s->estimate_bps > 0 ? fmin(s->estimate_bps, bps) : bps;
		return;
	}
	if (seen->last_ns == 0)
		return;
	bps = (double)seen->last_bytes * 8e9 / (double)seen->last_ns;
	s->estimate_bps =
		s->estimate_bps > 0 ? s->estimate_bps + GAIN * (bps - s->estimate_bps) : bps;
}

static void video_next(const void *config, void *state, struct rng *rng,
	const struct source_seen *seen, struct transfer *t) {
	const struct video *v = config;
	struct video_state *s = state;
	uint32_t rung = 0;

	measure(s, seen);
	s->acked_bytes = seen->acked_bytes;
	s->decided_ns = seen->now_ns;
	while (rung + 1 < v->rungs && v->ladder_bps[rung + 1] <= v->safety * s->estimate_bps)
		rung++;
	t->gap_ns = v->segment_ns;
	t->bytes = (uint64_t)ceil(v->ladder_bps[rung] * (double)v->segment_ns / 8e9);
}

const struct source_ops source_video = {
	.name = "video",
	.summary = "live video in segments, at a bitrate that follows the goodput, "
		   "limited by its encoder",
	.reference = "Jiang, Sekar and Zhang, FESTIVE, CoNEXT 2012",
	.params = params,
	.config_size = sizeof(struct video),
	.kind = SOURCE_WRITES,
	.configure = video_configure,
	.next = video_next,
};
