// SPDX-License-Identifier: BSD-3-Clause
// What a congestion control from outside may say: of itself, and to the transport.
//
// The input is the plug-in's sizes, members and parameters. What is refused says so in one line;
// what is taken has parameters that lie in its config and take any text. The rest is its answers,
// any that the rules of common/weir/cc.h allow, to a flow whose peer acknowledges or loses what was
// sent. After each event the flow's state is counted again from its records (check_host.h).
#include "fuzz.h"

#include "../unit/check_host.h"
#include "common/base/param.h"
#include "common/config/config.h"
#include "sender/cc/plugin.h"

#include <math.h>

#define PARAMS 4
#define TEXT 16
#define EVENTS_MAX 400 // of one input

static struct input in;

// ---- Its answers ----

static double any_double(void) {
	uint8_t how = in_u8(&in);

	return ldexp(1 + in_u8(&in) / 256., how < 240 ? how % 64 : (how - 248) * 128);
}

// As plugin.c lets them through.
static void answer(struct cc_out *out) {
	if ((in_u8(&in) & 1) != 0)
		out->cwnd_segs = fmax(1, any_double());
	if ((in_u8(&in) & 1) != 0)
		out->pacing_bps = (in_u8(&in) & 1) != 0 ? any_double() : 0;
	cc_bound(out);
}

static double given_window(const void *config) {
	return 10;
}

static void init(void *state, const void *config, uint32_t mss_bytes, uint64_t rtt_ns,
	uint64_t now_ns, struct cc_out *out) {
	out->cwnd_segs = 10;
	answer(out);
}

static void on_ack(void *state, const void *config, const struct cc_ack *ack, struct cc_out *out) {
	answer(out);
}

static void on_loss(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	answer(out);
}

static void on_spurious(void *state, const void *config, uint64_t now_ns, struct cc_out *out) {
	answer(out);
}

static void on_idle(
	void *state, const void *config, uint64_t now_ns, uint64_t idle_ns, struct cc_out *out) {
	answer(out);
}

static double ssthresh(const void *state, const void *config) {
	return any_double() - 1;
}

static const struct cc_ops control = {.name = "hostile",
	.state_size = 8,
	.given_window = given_window,
	.init = init,
	.on_ack = on_ack,
	.on_loss = on_loss,
	.on_rto = on_loss,
	.on_spurious = on_spurious,
	.on_idle = on_idle,
	.ssthresh = ssthresh};

// ---- What it says of itself ----

static const char *any_text(char *text) {
	static const char *const known[] = {"1", "0", "yes", "tail", "10ms", "1BDP", "-1", "1e999"};
	uint8_t how = in_u8(&in);

	if (how < 200)
		return known[how % 8];
	if (how < 210)
		return NULL;
	for (int i = 0; i < TEXT - 1; i++)
		text[i] = (char)in_u8(&in);
	text[TEXT - 1] = '\0';
	return text;
}

static void describe(void) {
	static const char *const choices[] = {"tail", "head", NULL};
	static const double bounds[] = {0, 1, -1, HUGE_VAL, 1e9, 1e300};
	char name[TEXT], def[PARAMS][TEXT], set[TEXT];
	struct param table[PARAMS + 1] = {0};
	uint16_t without = in_u16(&in);
	struct cc_ops ops = control;
	struct err err = {""};
	size_t count = 0;

	ops.name = (without & 1) != 0 ? any_text(name) : "mine";
	ops.summary = (without & 2) != 0 ? NULL : "a control";
	ops.params = (without & 4) != 0 ? NULL : table;
	ops.on_rto = (without & 8) != 0 ? NULL : on_loss;
	ops.preset = (without & 16) != 0 ? "preset" : NULL;
	ops.observed[0] = (without & 32) != 0 ? "number" : NULL;
	ops.config_size = in_u8(&in);
	ops.state_size = (without & 64) != 0 ? in_u16(&in) : 8;
	for (int i = 0; i < PARAMS && (in_u8(&in) & 3) != 0; i++)
		table[i] = (struct param){.name = i % 2 == 0 ? "a" : "b",
			.type = in_u8(&in) % 9,
			.offset = (size_t)(int64_t)(int16_t)in_u16(&in),
			.unit = in_u8(&in) % 8,
			.min = bounds[in_u8(&in) % 6],
			.max = bounds[in_u8(&in) % 6],
			.help = (in_u8(&in) & 15) == 0 ? NULL : "help",
			.choices = (in_u8(&in) & 15) == 0 ? NULL : choices,
			.def = any_text(def[i])};
	struct cc_plugin plugin = {CC_ABI, sizeof(struct cc_ops), sizeof(struct cc_ack),
		sizeof(struct cc_loss), sizeof(struct cc_out), sizeof(struct param),
		(without & 128) != 0 ? NULL : &ops};
	if ((without & 256) != 0)
		plugin.ack_size = in_u8(&in);
	if (cc_plugin_check(&plugin, &count, &err) < 0) {
		NEED(err.msg[0] != '\0' && strchr(err.msg, '\n') == NULL);
		return;
	}
	NEED(count <= PARAMS);
	// Exactly as large as it says, so that the sanitizer sees a parameter beyond it.
	void *config = malloc(ops.config_size);
	NEED(config != NULL && param_defaults(table, config, &err) == 0);
	for (size_t i = 0; i < count; i++) {
		const char *text = any_text(set);
		char shown[2 * PARAM_TEXT_SIZE];

		bool set_to = text != NULL && param_set(&table[i], config, text, &err) == 0;
		NEED(text == NULL || set_to || err.msg[0] != '\0');
		if (set_to || table[i].def != NULL)
			param_get(&table[i], config, shown, sizeof(shown));
	}
	free(config);
}

// ---- A flow that it controls ----

static void output(void *ctx, uint32_t id, const struct seg *seg, uint32_t n, uint8_t ecn,
	uint64_t due_ns, bool paced) {
	NEED(n > 0);
}

static void acknowledge(const struct flow *f, struct host *host, uint64_t now_ns) {
	uint64_t index = f->una + in_u8(&in) % (f->nxt - f->una + 1);
	struct seg s = {.seq = f->rcv_nxt,
		.ack = flow_seq(f, index),
		.window = 65535,
		.flags = SEG_ACK,
		.options = SEG_OPT_TS,
		.tsval = flow_tsval(now_ns),
		.tsecr = flow_tsval(f->last_send_ns)};

	if (f->state == FLOW_SYN_SENT) {
		s.flags = SEG_SYN | SEG_ACK;
		s.seq = 1000;
		s.ack = f->iss + 1;
		s.options = SEG_OPT_MSS | SEG_OPT_WSCALE | SEG_OPT_SACK_OK | SEG_OPT_TS;
		s.mss = 1460;
		s.wscale = 7;
	} else if (index + 1 < f->nxt && (in_u8(&in) & 1) != 0) { // one is missing
		s.sack_count = 1;
		s.sack[0] = (struct seg_sack){flow_seq(f, index + 1), flow_seq(f, f->nxt)};
	}
	host_rx_flow(host, 0, &s, in_u8(&in) & 3, now_ns);
}

static void control_a_flow(void) {
	static const char *const pacings[] = {"cc", "srtt", "off"};
	static struct groups groups;
	static struct host host;
	struct host_env env = {.output = output,
		.start_ns = NS_PER_S,
		.virtual_time = true,
		.pipe_segs = 64,
		.flows = true};
	uint64_t now_ns = env.start_ns, next_ns;
	struct err err = {""};
	char text[128];

	snprintf(text, sizeof(text),
		"flows: [{cc: newreno, pacing: %s, source: {size: {bytes: 200kB}}}]",
		pacings[in_u8(&in) % 3]);
	struct config *config = config_parse("fuzz", text, strlen(text), &err);
	NEED(config != NULL);
	groups = (struct groups){0};
	host = (struct host){0};
	NEED(groups_init(&groups, config_get(config_root(config), "flows"), &err) == 0);
	groups.group[0].cc = &control;
	NEED(host_init(&host, &groups, &env, &err) == 0);
	for (int i = 0; i < EVENTS_MAX && in.at < in.end; i++) {
		uint8_t kind = in_u8(&in);

		next_ns = host_next_ns(&host, now_ns + 60 * NS_PER_S);
		if ((kind & 3) == 0 && next_ns < NEVER_NS)
			now_ns = time_max(now_ns, next_ns);
		else if ((kind & 3) == 1)
			now_ns += UINT64_C(1) << (kind >> 3);
		host_run(&host, now_ns);
		if ((kind & 3) >= 2
			&& (host.flow->state == FLOW_SYN_SENT || host.flow->state == FLOW_OPEN))
			acknowledge(host.flow, &host, now_ns);
		check_host(&host, now_ns);
	}
	host_fini(&host);
	groups_fini(&groups);
	config_free(config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	in = (struct input){data, data + size};
	describe();
	control_a_flow();
	return 0;
}
