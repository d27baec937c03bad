// SPDX-License-Identifier: BSD-3-Clause
// Interactive media: a frame clock, and an encoder whose bitrate follows what the transport
// permits.
//
//	frame k    is written at start + (k + 1) / fps, whatever became of those before
//	target     fraction * permitted, between min and max; `initial` while nothing is known;
//	           with `backlog`: goodput + (backlog * goodput - unacked) / 1 s, from `initial` on
//	bitrate   += (target - bitrate) (1 - exp(-1 / (fps reaction)))    the encoder's delay
//	size       bitrate / (8 fps) * x * key
//	x          1 + Laplace's law of scale `spread`, between 0.1 and 10
//	key        without `key_every`: 1; else key_size for each key_every-th frame from the first
//	           on and less than 1 for the others, so that their mean is 1
//
// Permitted is what the congestion control lets the flow send: its window per smoothed round trip,
// and not more than its pacing rate if it has one (source.h). A fraction below 1 leaves room for
// frames of more than the mean size and for what has queued at the sender.
//
// `backlog` is for an application that knows nothing of its transport, such as a live broadcast
// over a library of its own: it sees what it wrote and what was acknowledged. Goodput is the EWMA
// of what is acknowledged between frames, with a time constant of 1 s. On a path whose round trip
// is shorter than `backlog` the bitrate rises to `max`, or until as much is unacknowledged.
//
// Between `pause` and `resume`, times since the flow's start, no frame is written; the encoder then
// goes on with the bitrate that it had.
//
// Frames are transfers on one connection: the summary's completion times are those from when a
// frame is written until its last byte is acknowledged, a round trip where nothing queues.
//
// Sizes that vary by Laplace's law around the mean, a delay of the encoder and larger frames are
// those of the statistical model of RFC 8593, section 5. Where we differ: its delay is a wait
// between changes of the bitrate, and its larger frames follow a change; here the bitrate glides,
// and larger frames come at equal distances, as an encoder with a fixed group of pictures has them.
#include "common/base/portable_math.h"
#include "sender/source/source.h"

#include <assert.h>
#include <errno.h>
#include <math.h>

#define LEAST_PART 0.1 // of the mean size
#define MOST_PART 10.0

struct media {
	double fps, min_bps, max_bps, initial_bps, fraction, spread, key_size;
	uint64_t reaction_ns, backlog_ns, key_every, pause_ns, resume_ns;
};

struct media_state {
	double bitrate_bps; // 0: before the first frame
	uint64_t at_ns; // of the frame before, since the flow's start
	uint64_t paused_ns;
	uint64_t frame; // of the next
	double goodput_bps; // with `backlog`
	uint64_t acked_bytes; // when the frame before was drawn
};
static_assert(sizeof(struct media_state) <= SOURCE_STATE_BYTES, "fits");

static const struct param params[] = {
	{"fps", "30", "frames per second", UNIT_NONE, PARAM_F64(struct media, fps), 1, 1000},
	{"min", "150kbit", "lowest bitrate of the encoder", UNIT_RATE_BPS,
		PARAM_F64(struct media, min_bps), 1e3, 1e12},
	{"max", "1.5Mbit", "its highest; the same as min: a constant bitrate", UNIT_RATE_BPS,
		PARAM_F64(struct media, max_bps), 1e3, 1e12},
	{"initial", "300kbit", "its first, within min and max", UNIT_RATE_BPS,
		PARAM_F64(struct media, initial_bps), 1e3, 1e12},
	{"fraction", "0.8", "part of what the transport permits that the bitrate aims at",
		UNIT_NONE, PARAM_F64(struct media, fraction), 0.1, 1},
	{"reaction", "200ms", "time constant with which the bitrate follows; 0s: at once",
		UNIT_TIME_NS, PARAM_U64(struct media, reaction_ns), 0, 6e10},
	{"backlog", "0s",
		"unacknowledged payload that the bitrate aims at, as time at the goodput; 0s: it "
		"follows what the transport permits",
		UNIT_TIME_NS, PARAM_U64(struct media, backlog_ns), 0, 6e10},
	{"spread", "0.15", "scale of Laplace's law of frame sizes, of the mean; 0: all alike",
		UNIT_NONE, PARAM_F64(struct media, spread), 0, 1},
	{"key_every", "0", "a key frame in so many; 0: none", UNIT_NONE,
		PARAM_U64(struct media, key_every), 0, 1e6},
	{"key_size", "5", "size of a key frame in those of another", UNIT_NONE,
		PARAM_F64(struct media, key_size), 1, 1000},
	{"pause", "0s", "no frame from this time after the flow's start on; 0s: never",
		UNIT_TIME_NS, PARAM_U64(struct media, pause_ns), 0, 1e15},
	{"resume", "0s", "until this time", UNIT_TIME_NS, PARAM_U64(struct media, resume_ns), 0,
		1e15},
	PARAM_END,
};

static int media_configure(void *config, struct config_node *node, struct err *err) {
	const struct media *m = config;

	if (m->max_bps < m->min_bps)
		return config_err(
			config_get(node, "max"), -EINVAL, err, "max: the bitrate is below min");
	if ((m->pause_ns > 0) != (m->resume_ns > 0) || m->resume_ns < m->pause_ns)
		return config_err(node, -EINVAL, err, "pause and resume: both, and pause first");
	return 0;
}

static double within(const struct media *m, double bps) {
	return fmin(fmax(bps, m->min_bps), m->max_bps);
}

static double by_permitted(const struct media *m, const struct source_seen *seen) {
	return seen->permitted_bps > 0 ? m->fraction * seen->permitted_bps : m->initial_bps;
}

static double by_backlog(
	const struct media *m, struct media_state *s, const struct source_seen *seen) {
	double acked_bps = (double)(seen->acked_bytes - s->acked_bytes) * 8 * m->fps;
	double unacked_bits = (double)(seen->written_bytes - seen->acked_bytes) * 8;

	s->acked_bytes = seen->acked_bytes;
	if (s->frame == 0)
		return s->goodput_bps = m->initial_bps;
	s->goodput_bps += (acked_bps - s->goodput_bps) / m->fps;
	return s->goodput_bps * (1 + (double)m->backlog_ns / 1e9) - unacked_bits;
}

static void follow(const struct media *m, struct media_state *s, const struct source_seen *seen) {
	double target_bps =
		within(m, m->backlog_ns > 0 ? by_backlog(m, s, seen) : by_permitted(m, seen));
	double part =
		m->reaction_ns > 0 ? 1 - portable_exp(-1e9 / m->fps / (double)m->reaction_ns) : 1;

	if (s->bitrate_bps <= 0)
		s->bitrate_bps = within(m, m->initial_bps);
	s->bitrate_bps += (target_bps - s->bitrate_bps) * part;
}

// Of mean 1.
static double varied(const struct media *m, struct rng *rng) {
	double u;

	if (m->spread <= 0)
		return 1;
	u = rng_unit(rng) - 0.5;
	u = 1 + m->spread * copysign(portable_log(1 - 2 * fabs(u)), u);
	return fmin(fmax(u, LEAST_PART), MOST_PART);
}

static double key(const struct media *m, uint64_t frame) {
	double others;

	if (m->key_every == 0)
		return 1;
	others = (double)m->key_every / ((double)m->key_every - 1 + m->key_size);
	return frame % m->key_every == 0 ? others * m->key_size : others;
}

// Since the flow's start.
static uint64_t frame_ns(const struct media *m, struct media_state *s) {
	uint64_t at_ns = (uint64_t)((double)(s->frame + 1) * 1e9 / m->fps) + s->paused_ns;

	if (s->paused_ns == 0 && m->pause_ns > 0 && at_ns >= m->pause_ns) {
		s->paused_ns = m->resume_ns > at_ns ? m->resume_ns - at_ns : 0;
		at_ns += s->paused_ns;
	}
	return at_ns;
}

static double frame_bytes(const struct media *m, const struct media_state *s, struct rng *rng) {
	double mean = s->bitrate_bps / m->fps / 8;

	return fmax(mean * varied(m, rng) * key(m, s->frame), 1);
}

static void media_next(const void *config, void *state, struct rng *rng,
	const struct source_seen *seen, struct transfer *t) {
	const struct media *m = config;
	struct media_state *s = state;
	uint64_t at_ns = frame_ns(m, s);

	follow(m, s, seen);
	t->gap_ns = at_ns - s->at_ns;
	t->bytes = (uint64_t)(frame_bytes(m, s, rng) + 0.5);
	s->at_ns = at_ns;
	s->frame++;
}

const struct source_ops source_media = {
	.name = "media",
	.summary =
		"interactive media: frames of an encoder that follows what the transport permits",
	.reference = "RFC 8593, section 5",
	.params = params,
	.config_size = sizeof(struct media),
	.kind = SOURCE_WRITES,
	.random = true,
	.configure = media_configure,
	.next = media_next,
};
