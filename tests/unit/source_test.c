// SPDX-License-Identifier: BSD-3-Clause
// Schedules against theory: times between arrivals and sizes are drawn from the distributions that
// the config names. p-values at fixed seeds (statistics.h). Means from the definitions: the file's
// by hand, from its lines.
#include "sender/group/group.h"
#include "sender/source/sizes.h"
#include "sender/source/source.h"
#include "statistics.h"

#include <string.h>
#include <unistd.h>

#define DRAWS 20000

struct read_source {
	struct config *config;
	struct groups groups;
	const struct source_ops *ops;
	const void *cfg;
	struct rng rng;
	_Alignas(8) uint8_t state[SOURCE_STATE_BYTES];
};

static int read_group(struct read_source *s, const char *source, struct err *err) {
	char text[1024];

	memset(s, 0, sizeof(*s));
	snprintf(text, sizeof(text), "flows: [{%scount: 8, source: %s}]",
		strstr(source, "stack:") == NULL ? "cc: fixed, " : "", source);
	s->config = config_parse("test", text, strlen(text), err);
	ck_assert_ptr_nonnull(s->config);
	int rc = groups_init(&s->groups, config_get(config_root(s->config), "flows"), err);
	if (rc < 0) {
		config_free(s->config);
		return rc;
	}
	s->ops = s->groups.group[0].source;
	s->cfg = s->groups.group[0].source_config;
	rng_init(&s->rng, 7, "flows.0.source");
	return 0;
}

static void open_source(struct read_source *s, const char *source) {
	struct err err = {""};

	ck_assert_msg(read_group(s, source, &err) == 0, "%s", err.msg);
}

static void close_source(struct read_source *s) {
	groups_fini(&s->groups);
	config_free(s->config);
}

static void draws(struct read_source *s, double *gap_ns, double *bytes) {
	const struct source_seen seen = {0};

	for (size_t i = 0; i < DRAWS; i++) {
		struct transfer t = {0};

		s->ops->next(s->cfg, s->state, &s->rng, &seen, &t);
		gap_ns[i] = (double)t.gap_ns;
		bytes[i] = (double)t.bytes;
	}
}

static double gap_ns[DRAWS], bytes[DRAWS];

static double exponential_cdf(double x, const void *mean) {
	return 1 - exp(-x / *(const double *)mean);
}

// Pr(X > x) = (m / x)^shape.
struct pareto {
	double m, shape;
};

static double pareto_cdf(double x, const void *ctx) {
	const struct pareto *p = ctx;

	return x < p->m ? 0 : 1 - pow(p->m / x, p->shape);
}

// Of web-search.cdf, typed in again from the paper: packets of 1460 B.
static const double web_packets[][2] = {{1, 0}, {6, 0.15}, {13, 0.2}, {19, 0.3}, {33, 0.4},
	{53, 0.53}, {133, 0.6}, {667, 0.7}, {1333, 0.8}, {3333, 0.9}, {6667, 0.97}, {20000, 1}};
static const double mining_packets[][2] = {{1, 0.5}, {2, 0.6}, {3, 0.7}, {7, 0.8}, {267, 0.9},
	{2107, 0.95}, {66667, 0.99}, {666667, 1}};

struct polygon {
	const double (*point)[2];
	size_t points;
};

static double polygon_cdf(double x, const void *ctx) {
	const struct polygon *p = ctx;
	double packets = x / 1460;

	if (packets < p->point[0][0])
		return 0;
	for (size_t i = 1; i < p->points; i++) {
		const double *a = p->point[i - 1], *b = p->point[i];

		if (packets < b[0])
			return a[1] + (b[1] - a[1]) * (packets - a[0]) / (b[0] - a[0]);
	}
	return 1;
}

// Sizes are rounded up: the jump is a byte wide.
static double polygon_below(double x, const void *ctx) {
	return polygon_cdf(x - 1, ctx);
}

TEST(arrivals_are_a_poisson_process) {
	struct read_source s;
	double mean = 2e6, variance = 0;
	uint64_t count[12] = {0};
	double chance[12], now = 0;

	open_source(&s, "{poisson: {interval: 2ms, sizes: {mean: 1kB}}}");
	draws(&s, gap_ns, bytes);
	// The number of arrivals in each 8 ms is a Poisson number of mean 4.
	for (size_t i = 0, window = 0, n = 0; i < DRAWS; i++) {
		now += gap_ns[i];
		for (; now >= 8e6 * (double)(window + 1); window++, n = 0)
			count[n < 11 ? n : 11]++;
		n++;
	}
	chance[11] = 1;
	for (int k = 0; k < 11; k++) {
		chance[k] = exp(-4 + k * log(4) - lgamma(k + 1));
		chance[11] -= chance[k];
	}
	ck_assert_double_gt(bins_p(count, chance, 12), P_LEAST);
	for (size_t i = 1; i < DRAWS; i++)
		variance += (gap_ns[i] - mean) * (gap_ns[i - 1] - mean) / mean / mean / DRAWS;
	ck_assert_double_gt(normal_p(variance * sqrt(DRAWS)), P_LEAST); // gaps are uncorrelated
	ck_assert_double_gt(
		ks_test(gap_ns, DRAWS, exponential_cdf, exponential_cdf, &mean), P_LEAST);
	for (size_t i = 0; i < DRAWS; i++)
		ck_assert_double_eq(bytes[i], 1000);
	close_source(&s);
}

TEST(sizes_are_exponential) {
	struct read_source s;
	double mean = 1e6;

	open_source(&s, "{poisson: {interval: 1ms, sizes: {law: exponential, mean: 1MB}}}");
	draws(&s, gap_ns, bytes);
	ck_assert_double_gt(
		ks_test(bytes, DRAWS, exponential_cdf, exponential_cdf, &mean), P_LEAST);
	close_source(&s);
}

// Mean 1 MB and shape 1.5: the smallest is a third of it.
TEST(sizes_are_pareto) {
	struct pareto p = {1e6 / 3, 1.5};
	struct read_source s;

	open_source(&s, "{poisson: {interval: 1ms, sizes: {law: pareto, mean: 1MB, shape: 1.5}}}");
	draws(&s, gap_ns, bytes);
	ck_assert_double_gt(ks_test(bytes, DRAWS, pareto_cdf, pareto_cdf, &p), P_LEAST);
	close_source(&s);
}

// The load is that of the distribution's mean: interval = 1.665 MB * 8 / 8 Gbit/s.
TEST(web_search_sizes_and_load) {
	struct polygon p = {web_packets, sizeof(web_packets) / sizeof(web_packets[0])};
	double packets = 0, mean;
	struct read_source s;

	for (size_t i = 1; i < p.points; i++)
		packets += (web_packets[i][1] - web_packets[i - 1][1])
			* (web_packets[i][0] + web_packets[i - 1][0]) / 2;
	mean = packets * 1460 * 8 / 8e9 * 1e9;
	ck_assert_double_eq_tol(packets * 1460, 1.6e6, 0.1e6); // the paper's mean
	open_source(
		&s, "{poisson: {load: 8Gbit, sizes: {law: file, file: " TRACES "web-search.cdf}}}");
	draws(&s, gap_ns, bytes);
	ck_assert_double_gt(ks_test(bytes, DRAWS, polygon_cdf, polygon_below, &p), P_LEAST);
	ck_assert_double_gt(
		ks_test(gap_ns, DRAWS, exponential_cdf, exponential_cdf, &mean), P_LEAST);
	close_source(&s);
}

// Half of the flows have exactly one packet.
TEST(data_mining_sizes) {
	struct polygon p = {mining_packets, sizeof(mining_packets) / sizeof(mining_packets[0])};
	struct read_source s;

	open_source(&s,
		"{poisson: {interval: 1s, sizes: {law: file, file: " TRACES "data-mining.cdf}}}");
	draws(&s, gap_ns, bytes);
	ck_assert_double_gt(ks_test(bytes, DRAWS, polygon_cdf, polygon_below, &p), P_LEAST);
	close_source(&s);
}

// Pauses of closed loops, and the times of bulk flows that come and go.
TEST(pauses_are_exponential) {
	static const char *const sources[] = {"{closed: {think: 3ms, sizes: {mean: 1kB}}}",
		"{request: {think: 3ms, sizes: {mean: 1kB}}}", "{on_off: {on: 5ms, off: 3ms}}"};
	double pause = 3e6, on = 5e6;

	for (size_t i = 0; i < 3; i++) {
		const struct source_seen seen = {0};
		struct read_source s;

		open_source(&s, sources[i]);
		for (size_t k = 0; k < DRAWS; k++) {
			struct transfer t = {0};

			s.ops->next(s.cfg, s.state, &s.rng, &seen, &t);
			gap_ns[k] = (double)t.gap_ns;
			bytes[k] = (double)t.on_ns;
			ck_assert_uint_eq(t.bytes, i == 2 ? SOURCE_ENDLESS : 1000);
		}
		ck_assert_double_gt(
			ks_test(gap_ns, DRAWS, exponential_cdf, exponential_cdf, &pause), P_LEAST);
		if (i == 2)
			ck_assert_double_gt(
				ks_test(bytes, DRAWS, exponential_cdf, exponential_cdf, &on),
				P_LEAST);
		close_source(&s);
	}
}

static uint64_t video_bytes(struct read_source *s, const struct source_seen *seen) {
	struct transfer t = {0};

	s->ops->next(s->cfg, s->state, &s->rng, seen, &t);
	ck_assert_uint_eq(t.gap_ns, 2e9);
	return t.bytes;
}

// Segments of 2 s: bitrate * 0.25 s bytes. The estimates by hand, in Mbit/s.
TEST(video_follows_the_goodput) {
	struct read_source s;
	struct source_seen seen = {0};

	open_source(&s, "{video: {segment: 2s, ladder: 1Mbit 2Mbit 4Mbit, safety: 0.5}}");
	ck_assert_uint_eq(video_bytes(&s, &seen), 250000); // nothing is known
	seen = (struct source_seen){.now_ns = 2e9, .unfinished = 1};
	ck_assert_uint_eq(video_bytes(&s, &seen), 250000);
	// 1 MB in 1 s: 8, of which half is the highest bitrate.
	seen.last_bytes = 1000000;
	seen.last_ns = 1e9;
	seen.now_ns = 4e9;
	ck_assert_uint_eq(video_bytes(&s, &seen), 1000000);
	// In 2 s: 8 + (4 - 8) / 4 = 7.
	seen.last_ns = 2e9;
	seen.now_ns = 6e9;
	ck_assert_uint_eq(video_bytes(&s, &seen), 500000);
	// Segments wait, and 500 kB were acknowledged in 2 s: 2.
	seen.unfinished = 2;
	seen.acked_bytes = 500000;
	seen.now_ns = 8e9;
	ck_assert_uint_eq(video_bytes(&s, &seen), 250000);
	// They wait, but more is acknowledged: that is a backlog's, and the estimate does not rise.
	seen.acked_bytes = 3500000;
	seen.now_ns = 10e9;
	ck_assert_uint_eq(video_bytes(&s, &seen), 250000);
	// Nothing waits: 2 + (16 - 2) / 4 = 5.5.
	seen.unfinished = 1;
	seen.last_bytes = 2000000;
	seen.last_ns = 1e9;
	seen.now_ns = 12e9;
	ck_assert_uint_eq(video_bytes(&s, &seen), 500000);
	close_source(&s);
}

// Four frames a second: the bitrate in bits a second is 32 times a frame's bytes.
static uint64_t media_bytes(struct read_source *s, double permitted_bps, uint64_t period_ns) {
	const struct source_seen seen = {.permitted_bps = permitted_bps};
	struct transfer t = {0};

	s->ops->next(s->cfg, s->state, &s->rng, &seen, &t);
	ck_assert_uint_eq(t.gap_ns, period_ns);
	return t.bytes;
}

TEST(media_follows_what_is_permitted) {
	struct read_source s;

	open_source(&s,
		"{media: {fps: 4, min: 32kbit, max: 320kbit, initial: 64kbit, fraction: 0.5, "
		"reaction: 250ms, spread: 0}}");
	ck_assert_uint_eq(media_bytes(&s, 0, 250000000), 2000);
	// Half of 256 kbit/s is twice as much: 2000 + 2000 (1 - 1/e) = 3264.24.
	ck_assert_uint_eq(media_bytes(&s, 256000, 250000000), 3264);
	ck_assert_uint_eq(media_bytes(&s, 256000, 250000000), 3729); // 4000 - 735.76 / e
	for (int i = 0; i < 100; i++)
		media_bytes(&s, 1e9, 250000000);
	ck_assert_uint_eq(media_bytes(&s, 1e9, 250000000), 10000);
	for (int i = 0; i < 100; i++)
		media_bytes(&s, 1, 250000000);
	ck_assert_uint_eq(media_bytes(&s, 1, 250000000), 1000);
	close_source(&s);
}

// Of 32 kbit/s a frame has 1000 B in the mean: with a key frame in four, 7 times as large, 400 B.
TEST(media_follows_goodput_and_backlog) {
	struct source_seen seen = {0};
	struct transfer t = {0};
	struct read_source s;

	open_source(&s,
		"{media: {fps: 4, min: 32kbit, max: 320kbit, initial: 64kbit, reaction: 0s, "
		"spread: 0, backlog: 500ms}}");
	s.ops->next(s.cfg, s.state, &s.rng, &seen, &t);
	ck_assert_uint_eq(t.bytes, 2000);
	// 64 + (32 - 64) / 4 = 56 kbit/s of goodput, half of that may wait, and 8 kbit do.
	seen.written_bytes = 2000;
	seen.acked_bytes = 1000;
	s.ops->next(s.cfg, s.state, &s.rng, &seen, &t);
	ck_assert_uint_eq(t.bytes, 2375);
	// Nothing more is acknowledged and 72 kbit wait: the lowest.
	seen.written_bytes = 10000;
	s.ops->next(s.cfg, s.state, &s.rng, &seen, &t);
	ck_assert_uint_eq(t.bytes, 1000);
	close_source(&s);
}

TEST(media_has_key_frames_and_pauses) {
	struct read_source s;

	open_source(&s,
		"{media: {fps: 4, min: 32kbit, max: 32kbit, spread: 0, key_every: 4, "
		"key_size: 7, pause: 1500ms, resume: 4s}}");
	for (uint64_t i = 0; i < 12; i++)
		ck_assert_uint_eq(media_bytes(&s, 0, i == 5 ? 2750000000 : 250000000),
			i % 4 == 0 ? 2800 : 400);
	close_source(&s);
}

static double laplace_cdf(double x, const void *ctx) {
	double y = (x + 0.5) / 1000 - 1, scale = *(const double *)ctx;

	return y < 0 ? exp(y / scale) / 2 : 1 - exp(-y / scale) / 2;
}

static double laplace_below(double x, const void *ctx) {
	return laplace_cdf(x - 0.5, ctx);
}

TEST(media_sizes_vary_by_laplaces_law) {
	struct read_source s;
	double scale = 0.1;

	open_source(&s, "{media: {fps: 4, min: 32kbit, max: 32kbit, spread: 0.1}}");
	draws(&s, gap_ns, bytes);
	ck_assert_double_gt(ks_test(bytes, DRAWS, laplace_cdf, laplace_below, &scale), P_LEAST);
	close_source(&s);
}

TEST(wrong_sources_are_refused) {
	static const char *const bad[][2] = {
		{"{poisson: {}}", "either interval or load"},
		{"{poisson: {interval: 1s, load: 1Mbit}}", "either interval or load"},
		{"{poisson: {interval: 1s, sizes: {law: file}}}", "file is required"},
		{"{poisson: {interval: 1s, sizes: {file: x.cdf}}}", "file: is for law: file"},
		{"{poisson: {interval: 1s, sizes: {law: normal}}}", "law"},
		{"{poisson: {interval: 1s, sizes: {law: pareto, shape: 1}}}", "shape"},
		{"{poisson: {interval: 1s, size: 1kB}}", "unknown key 'size'"},
		{"{poisson: {interval: 99ns}}", "100 ns is the least"},
		{"{poisson: {load: 1Tbit, sizes: {mean: 10B}}}", "100 ns is the least"},
		{"{on_off: {sizes: {}}}", "unknown key 'sizes'"},
		{"{closed: {connection: old}}", "connection"},
		{"{media: {min: 2Mbit}}", "max: the bitrate is below min"},
		{"{media: {pause: 2s}}", "pause and resume: both, and pause first"},
		{"{media: {pause: 2s, resume: 1s}}", "pause and resume: both, and pause first"},
		{"{closed: {}}, stack: {linux: {cc: cubic}}", "bulk or size"},
		{"{poisson: {interval: 1s}}, stagger: 1s", "stagger: source poisson says when"},
		{"{poisson: {interval: 1s}}, jitter: 1s", "jitter: source poisson says when"},
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct read_source s;
		struct err err = {""};

		ck_assert_msg(read_group(&s, bad[i][0], &err) < 0, "%s", bad[i][0]);
		ck_assert_msg(strstr(err.msg, bad[i][1]) != NULL, "%s: %s", bad[i][0], err.msg);
	}
}

TEST(wrong_files_are_refused) {
	static const char *const bad[][2] = {
		{"", "the last probability must be 1"},
		{"100 0.5\n200 0.9\n", "the last probability must be 1"},
		{"100 0.5\n90 1\n", "must rise"},
		{"100 0.5\n200 0.4\n300 1\n", "must rise"},
		{"100 0.5\n200\n", "a size without its probability"},
		{"100 0.5\n200 1.1\n", "not in [0, 1]"},
		{"-1 0\n200 1\n", "not in [0, 1e15]"},
		{"100 nan\n", "a number is wanted"},
		{"1x 0\n", "a number is wanted"},
		{"0 1\n", "no size is above 0"},
	};
	char name[] = "/tmp/weir-sizes-XXXXXX", source[256];
	int fd = mkstemp(name);

	ck_assert_int_ge(fd, 0);
	snprintf(source, sizeof(source), "{poisson: {interval: 1s, sizes: {law: file, file: %s}}}",
		name);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct read_source s;
		struct err err = {""};
		FILE *f = fopen(name, "w");

		ck_assert_ptr_nonnull(f);
		fputs(bad[i][0], f);
		fclose(f);
		ck_assert_msg(read_group(&s, source, &err) < 0, "%s", bad[i][0]);
		ck_assert_msg(strstr(err.msg, bad[i][1]) != NULL, "%s: %s", bad[i][0], err.msg);
	}
	close(fd);
	remove(name);
}
