// SPDX-License-Identifier: BSD-3-Clause
// What an ACK costs each congestion control, for `weir bench cc`: weir-cc [VALUE] [ACKS],
// where VALUE is what `cc:` is in a config: a name, or {plugin: FILE.so, KEY: VALUE}.
//
// The control runs in a closed loop without a transport: a link of 1 Gbit/s and 20 ms, one ACK per
// two segments, an RTT of what the window puts into its queue, a loss each time that this exceeds
// the buffer. So the states it goes through, and the branches it takes, are those of a flow. FLOWS
// flows take turns, as many as a busy lcore has, so that a control's state is not always in the
// nearest cache.
//
// Prints a line of JSON per control: bytes of state and ns per ACK. Without VALUE all of them; the
// loop's own cost is that of `fixed`, which ignores everything.
#include "sender/cc/cc.h"
#include "common/base/param.h"
#include "sender/group/control.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FLOWS 256
#define MSS_BYTES 1448
#define RATE_BPS 1e9
#define BASE_NS 20e6
#define SEG_NS (MSS_BYTES * 8e9 / RATE_BPS)
#define BUFFER_SEGS (BASE_NS / SEG_NS)
#define ACK_SEGS 2
#define CONFIG_BYTES_MAX 1024

struct bench_flow {
	_Alignas(64) char state[CC_STATE_MAX_BYTES];
	struct cc_out out;
	double now_ns, cwnd_before, srtt_ns;
	uint64_t delivered, lost_segs;
	uint64_t recover; // recover: no other loss before this much is delivered
};

static struct bench_flow flow[FLOWS];
static _Alignas(64) char config[CONFIG_BYTES_MAX];

// own: the control's parameters; NULL: the defaults.
static void start(const struct cc_ops *cc, const void *own) {
	struct err err = {""};

	memset(flow, 0, sizeof(flow));
	if (cc->config_size > sizeof(config)
		|| (own == NULL && param_defaults(cc->params, config, &err) < 0)) {
		fprintf(stderr, "weir-cc: %s: %s\n", cc->name, err.msg);
		exit(1);
	}
	if (own != NULL)
		memcpy(config, own, cc->config_size);
	for (int i = 0; i < FLOWS; i++) {
		flow[i].now_ns = 1e9;
		cc->init(flow[i].state, config, MSS_BYTES, (uint64_t)BASE_NS, 1000000000,
			&flow[i].out);
		flow[i].cwnd_before = flow[i].out.cwnd_segs;
	}
}

// What a control gets that asks for more than the ACK: of a connection with the same numbers.
static void sample(const struct cc_ops *cc, struct bench_flow *f, const struct cc_ack *ack) {
	struct cc_sample s = {
		.now_ns = ack->now_ns,
		.una_segs = ack->delivered_segs,
		.nxt_segs = ack->delivered_segs + ack->inflight_segs,
		.delivered_segs = ack->delivered_segs,
		.prior_delivered_segs = ack->prior_delivered_segs,
		.lost_segs = f->lost_segs,
		.rtt_ns = ack->rtt_ns,
		.srtt_ns = ack->srtt_ns,
		.rtt_min_ns = ack->rtt_min_ns,
		.rto_ns = ack->srtt_ns + 200000000,
		.cwnd_segs = f->out.cwnd_segs,
		.passed_segs = ACK_SEGS,
		.inflight_segs = ack->inflight_segs,
		.ack = true,
		.predicted = !ack->in_recovery,
		.cwnd_limited = true,
	};

	cc->on_sample(f->state, config, &s);
}

static void one_ack(const struct cc_ops *cc, struct bench_flow *f) {
	double window = f->out.cwnd_segs, paced = f->out.pacing_bps * BASE_NS / (MSS_BYTES * 8e9);
	double rtt_ns, gap_ns, segs = paced > 0 && paced < window ? paced : window;
	bool overflow = segs * SEG_NS > BASE_NS + BUFFER_SEGS * SEG_NS;
	struct cc_ack ack;

	rtt_ns = segs * SEG_NS > BASE_NS ? segs * SEG_NS : BASE_NS;
	rtt_ns = overflow ? BASE_NS + BUFFER_SEGS * SEG_NS : rtt_ns;
	gap_ns = ACK_SEGS * rtt_ns / (segs > ACK_SEGS ? segs : ACK_SEGS);
	f->now_ns += gap_ns;
	f->srtt_ns = f->srtt_ns > 0 ? f->srtt_ns + (rtt_ns - f->srtt_ns) / 8 : rtt_ns;
	f->delivered += ACK_SEGS;
	ack = (struct cc_ack){
		.now_ns = (uint64_t)f->now_ns,
		.rtt_ns = (uint64_t)rtt_ns,
		.srtt_ns = (uint64_t)f->srtt_ns,
		.rtt_min_ns = (uint64_t)BASE_NS,
		.sent_ns = (uint64_t)(f->now_ns - rtt_ns),
		.cwnd_at_send = f->cwnd_before,
		.acked_segs = ACK_SEGS,
		.inflight_segs = (uint32_t)segs,
		.prior_inflight_segs = (uint32_t)segs + ACK_SEGS,
		.delivered_segs = f->delivered,
		.prior_delivered_segs =
			f->delivered > (uint64_t)segs ? f->delivered - (uint64_t)segs : 0,
		.delivery_bps = segs * MSS_BYTES * 8e9 / rtt_ns,
		.interval_ns = (uint64_t)rtt_ns,
		.cwnd_limited = true,
		.in_sequence = true,
		.in_recovery = f->delivered < f->recover,
	};
	if (cc->on_sample != NULL)
		sample(cc, f, &ack);
	if (overflow && !ack.in_recovery) {
		struct cc_loss loss = {
			.now_ns = ack.now_ns, .inflight_segs = ack.inflight_segs, .lost_segs = 1};

		ack.lost_segs = 1;
		f->lost_segs++;
		ack.in_recovery = true;
		f->recover = f->delivered + (uint64_t)segs;
		cc->on_loss(f->state, config, &loss, &f->out);
	}
	f->cwnd_before += (f->out.cwnd_segs - f->cwnd_before) * ACK_SEGS / (segs + ACK_SEGS);
	cc->on_ack(f->state, config, &ack, &f->out);
	if (cc->requests != NULL)
		cc->requests(f->state, config);
}

static double measure(const struct cc_ops *cc, const void *own, uint64_t acks) {
	struct timespec from, to;

	start(cc, own);
	for (uint64_t i = 0; i < acks / 10; i++)
		one_ack(cc, &flow[i % FLOWS]);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
	for (uint64_t i = 0; i < acks; i++)
		one_ack(cc, &flow[i % FLOWS]);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
	return ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec))
		/ (double)acks;
}

static void print(const struct cc_ops *cc, const void *own, uint64_t acks) {
	printf("{\"name\": \"%s\", \"state_bytes\": %zu, \"ns\": %.3f}\n", cc->name, cc->state_size,
		measure(cc, own, acks));
}

int main(int argc, char **argv) {
	const char *only = argc > 1 && strcmp(argv[1], "-") != 0 ? argv[1] : NULL;
	uint64_t acks = argc > 2 ? strtoull(argv[2], NULL, 10) : 2000000;
	struct config *whole = NULL;
	struct group g = {0};
	struct err err = {""};
	int rc = 0;

	if (argc > 3 || acks == 0) {
		fprintf(stderr, "usage: weir-cc [NAME|{plugin: FILE.so, KEY: VALUE}|-] [ACKS]\n");
		return 2;
	}
	if (only != NULL && group_control_text(&g, only, &whole, &err) < 0) {
		fprintf(stderr, "weir-cc: %s\n", err.msg);
		rc = 2;
	} else if (only != NULL) {
		print(g.cc, g.cc_config, acks);
	}
	for (const struct cc_ops *const *cc = cc_all; only == NULL && *cc != NULL; cc++)
		print(*cc, NULL, acks);
	free(g.cc_config);
	config_free(whole);
	return rc;
}
