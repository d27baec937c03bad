// SPDX-License-Identifier: BSD-3-Clause
// A RemyCC: a control that a program has found, as a table of rules (Winstein and Balakrishnan,
// "TCP ex Machina", SIGCOMM 2013).
//
//	memory, of the packets acknowledged so far (section 4.1):
//	  send   mean time between their transmissions, ms     an eighth of each new one counts
//	  ack    mean time between their ACKs, ms               likewise
//	  ratio  RTT of the last one, over the smallest RTT
//
//	each ACK:  the rule whose box has the memory gives {multiple, increment, intersend}
//	           window = multiple window + increment
//	           at least intersend ms between two transmissions
//
// The table is a file with a rule per line, nine numbers each; the first rule that fits counts, and
// `#` begins a comment:
//
//	send from, to    ack from, to    ratio from, to    multiple    increment    intersend
//	0 16384          0 16384         0 1.5             1           1            0.1
//	0 16384          0 16384         1.5 16384         0.9         0            0.1
//
// What it takes from the interface: a parameter that is a file, what happens to each segment.
//
// Where it differs from the paper
//   - The paper's tables are written by its program in a form of their own (protocol buffers); this
//     is that of their printed text, without the tree.
//   - Windows are real numbers; the paper cuts them down to whole packets.
//   - A timeout sets the window to 1, and forgets the memory. The paper leaves that to TCP.
#include <weir/cc.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INITIAL_SEGS 1.0
#define NUMBERS 9
#define MEMORY 3
#define RULES_MAX 4096
#define GAIN 0.125

struct config {
	struct param_file table;
	double window_max_segs;
};

static const struct param params[] = {
	{"table", "", "the file with the rules", UNIT_NONE, PARAM_CONTENT(struct config, table)},
	{"max", "1000000", "largest window in segments", UNIT_NONE,
		PARAM_F64(struct config, window_max_segs), .min = 1, .max = 1e9},
	PARAM_END,
};

struct rule {
	double from[MEMORY], to[MEMORY];
	double multiple, increment, intersend_ms;
};

// Of all groups with these parameters.
static struct rule rules[RULES_MAX];
static size_t rule_count;
static char why[160];

enum memory { SEND, ACK, RATIO };
struct state {
	double memory[MEMORY], mss_bits;
	uint64_t sent_ns, acked_ns, rtt_min_ns; // of the last packet acknowledged
	uint32_t rule; // 1 and up; 0: none has been used
};

// Reads a line; 1: a rule, 0: nothing is in it, -1: it is none.
static int read_rule(const char *line, size_t length, struct rule *rule) {
	double numbers[NUMBERS];
	char text[512], *at = text, *end;
	size_t count = 0;

	if (length >= sizeof(text))
		return -1;
	memcpy(text, line, length);
	text[length] = '\0';
	text[strcspn(text, "#\r")] = '\0';
	for (double x = strtod(at, &end); end != at; at = end, x = strtod(at, &end)) {
		if (count == NUMBERS)
			return -1;
		numbers[count++] = x;
	}
	if (at[strspn(at, " \t")] != '\0' || (count != 0 && count != NUMBERS))
		return -1;
	if (count == 0)
		return 0;
	for (int i = 0; i < MEMORY; i++) {
		rule->from[i] = numbers[2 * i];
		rule->to[i] = numbers[2 * i + 1];
	}
	rule->multiple = numbers[6];
	rule->increment = numbers[7];
	rule->intersend_ms = numbers[8];
	return rule->multiple >= 0 && rule->intersend_ms > 0 ? 1 : -1;
}

static const char *configure(const void *config) {
	const struct config *cfg = config;
	const char *line = cfg->table.text;
	int number = 1;

	rule_count = 0;
	if (line == NULL)
		return "write table: and the name of the file with the rules";
	for (; *line != '\0'; number++) {
		size_t length = strcspn(line, "\n");
		int kind =
			rule_count < RULES_MAX ? read_rule(line, length, &rules[rule_count]) : -1;

		if (kind < 0) {
			snprintf(why, sizeof(why),
				"table: line %d is no rule of nine numbers with a multiple of 0 or "
				"more and an intersend above 0, or is one of more than %d",
				number, RULES_MAX);
			return why;
		}
		rule_count += (size_t)kind;
		line += length + (line[length] == '\n');
	}
	return rule_count > 0 ? NULL : "table: it has no rule";
}

static double given_window(const void *config) {
	(void)config;
	return INITIAL_SEGS;
}

static void open_flow(void *state, const void *config, struct cc_flow *flow) {
	(void)state, (void)config, (void)flow;
}

static void init(void *state, const void *config, uint32_t mss_bytes, uint64_t rtt_ns,
	uint64_t now_ns, struct cc_out *out) {
	struct state *s = state;

	s->mss_bits = mss_bytes * 8;
	*out = (struct cc_out){.cwnd_segs = INITIAL_SEGS};
	(void)config, (void)rtt_ns, (void)now_ns;
}

static void on_packet(void *state, const void *config, const struct cc_packet *packet) {
	struct state *s = state;
	uint64_t rtt_ns = packet->now_ns - packet->sent_ns;

	if (packet->event != CC_PACKET_ACKED || packet->retransmission)
		return;
	if (s->rtt_min_ns == 0 || rtt_ns < s->rtt_min_ns)
		s->rtt_min_ns = rtt_ns > 0 ? rtt_ns : 1;
	if (s->acked_ns != 0 && packet->sent_ns >= s->sent_ns) {
		double send_ms = (double)(packet->sent_ns - s->sent_ns) / 1e6;
		double ack_ms = (double)(packet->now_ns - s->acked_ns) / 1e6;

		s->memory[SEND] += GAIN * (send_ms - s->memory[SEND]);
		s->memory[ACK] += GAIN * (ack_ms - s->memory[ACK]);
	}
	s->memory[RATIO] = (double)rtt_ns / (double)s->rtt_min_ns;
	s->sent_ns = packet->sent_ns;
	s->acked_ns = packet->now_ns;
	(void)config;
}

// The first rule whose box has the memory; NULL: none.
static const struct rule *rule_of(const struct state *s) {
	for (size_t i = 0; i < rule_count; i++) {
		int inside = 0;

		while (inside < MEMORY && s->memory[inside] >= rules[i].from[inside]
			&& s->memory[inside] < rules[i].to[inside])
			inside++;
		if (inside == MEMORY)
			return &rules[i];
	}
	return NULL;
}

static void on_ack(void *state, const void *config, const struct cc_ack *ack, struct cc_out *out) {
	const struct config *cfg = config;
	struct state *s = state;
	const struct rule *rule = rule_of(s);
	double segs;

	if (rule == NULL || ack->acked_segs == 0)
		return;
	s->rule = (uint32_t)(rule - rules) + 1;
	segs = rule->multiple * out->cwnd_segs + rule->increment;
	segs = segs < cfg->window_max_segs ? segs : cfg->window_max_segs;
	out->cwnd_segs = segs > 1 ? segs : 1;
	out->pacing_bps = s->mss_bits * 1e3 / rule->intersend_ms;
}

// A RemyCC answers delays, not losses.
static void on_loss(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	(void)state, (void)config, (void)loss, (void)out;
}

static void on_rto(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	struct state *s = state;

	*s = (struct state){.mss_bits = s->mss_bits, .rtt_min_ns = s->rtt_min_ns};
	out->cwnd_segs = 1;
	(void)config, (void)loss;
}

static void observe(const void *state, const void *config, float values[CC_OBSERVED]) {
	const struct state *s = state;

	values[0] = (float)s->memory[SEND];
	values[1] = (float)s->memory[ACK];
	values[2] = (float)s->memory[RATIO];
	values[3] = (float)s->rule;
	(void)config;
}

static const struct cc_ops ops = {
	.name = "remy",
	.summary = "RemyCC: a table of rules from a file (Winstein, Balakrishnan 2013)",
	.reference = "Winstein, Balakrishnan: TCP ex Machina (SIGCOMM 2013)",
	.params = params,
	.config_size = sizeof(struct config),
	.state_size = sizeof(struct state),
	.ack_each = true,
	.observed = {"send_ms", "ack_ms", "rtt_ratio", "rule"},
	.given_window = given_window,
	.init = init,
	.on_ack = on_ack,
	.on_loss = on_loss,
	.on_rto = on_rto,
	.observe = observe,
	.configure = configure,
	.open = open_flow,
	.on_packet = on_packet,
};

CC_PLUGIN(ops);
