// SPDX-License-Identifier: BSD-3-Clause
// What keeps each flow from sending more, at this moment, and how many flows have it in common.
#include "sender/host/host.h"
#include "sender/source/source.h"
#include "sender/tcp/pacer.h"
#include "sender/tcp/send_buffer.h"

#include <assert.h>
#include <stdio.h>

enum limit_of_flow {
	NOT_BEGUN,
	CONNECTING,
	ENDED,
	GAVE_UP,
	RESET,
	RESET_BY_PROGRAM,
	NO_DATA,
	RECEIVE_WINDOW,
	SEND_BUFFER,
	CWND,
	PACING,
	UDP,
	LIMITS
};
static_assert(LIMITS + 1 <= FACT_MEMBERS, "all are written, and the number of flows");

// Its name, and what stands after "all 10 flows" and "the flow", or a number of them.
static const char *const limit_text[LIMITS][3] = {
	[NOT_BEGUN] = {"not_begun", "had not begun", "had not begun"},
	[CONNECTING] = {"connecting", "had no answer to their SYN", "had no answer to its SYN"},
	[ENDED] = {"ended", "had ended", "had ended"},
	[GAVE_UP] = {"failed", "had given up after timeouts", "had given up after timeouts"},
	[RESET] = {"reset", "had been reset", "had been reset"},
	[RESET_BY_PROGRAM] = {"reset_by_program", "had been reset by their programs",
		"had been reset by its program"},
	[NO_DATA] = {"no_data", "had sent all their data", "had sent all its data"},
	[RECEIVE_WINDOW] = {"receive_window", "were limited by their receive window",
		"was limited by its receive window"},
	[SEND_BUFFER] = {"send_buffer", "were limited by their send buffer",
		"was limited by its send buffer"},
	[CWND] = {"cwnd", "were limited by their congestion window",
		"was limited by its congestion window"},
	[PACING] = {"pacing", "were limited by their pacing rate",
		"was limited by its pacing rate"},
	[UDP] = {"udp", "sent at the constant rate of their datagrams",
		"sent at the constant rate of its datagrams"},
};

// A program of the host resets its connections when it ends with data under way (iperf3 -R).
static enum limit_of_flow failure(const struct host *h, const struct flow *f) {
	const struct group *g = flow_group(&h->endpoint, f);

	if (f->gave_up)
		return GAVE_UP;
	return g->stack.run[0] != '\0' || g->peer.run[0] != '\0' ? RESET_BY_PROGRAM : RESET;
}

// The order is that of flow_send: the congestion window, data, the buffers of both sides. A flow
// sends as soon as nothing of these forbids it, so that only its pacing rate remains.
static enum limit_of_flow flow_limit(const struct host *h, const struct flow *f) {
	uint64_t i = f->nxt;

	switch ((enum flow_state)f->state) {
	case FLOW_WAITING:
		return NOT_BEGUN;
	case FLOW_SYN_SENT:
		return CONNECTING;
	case FLOW_DONE:
		return ENDED;
	case FLOW_FAILED:
		return failure(h, f);
	case FLOW_OPEN:
		break;
	}
	if (flow_group(&h->endpoint, f)->transport != NULL)
		return UDP;
	if (f->cwnd_segs - flow_inflight(f) < 1)
		return CWND;
	if (i >= f->data_segs)
		return NO_DATA;
	if (send_buffer_lacks(f, i))
		return SEND_BUFFER;
	if (flow_offset(f, i) + flow_len(f, i) > f->wnd_bytes)
		return RECEIVE_WINDOW;
	return pacer_bps(flow_group(&h->endpoint, f), f) > 0 ? PACING : CWND;
}

bool host_limits(const struct host *const *hosts, uint32_t n, struct fact *limits) {
	uint64_t count[LIMITS] = {0}, flows = 0;
	uint32_t most = 0;
	bool all;

	for (uint32_t k = 0; k < n; k++) {
		for (uint32_t i = 0; i < hosts[k]->flows; i++)
			count[flow_limit(hosts[k], &hosts[k]->flow[i])]++;
		flows += hosts[k]->flows;
	}
	for (uint32_t i = 0; i < LIMITS; i++)
		most = count[i] > count[most] ? i : most;
	all = count[most] == flows;
	if (all && flows == 1)
		fact_set(limits, limit_text[most][0], "the flow %s", limit_text[most][2]);
	else if (all)
		fact_set(limits, limit_text[most][0], "all %llu flows %s",
			(unsigned long long)flows, limit_text[most][1]);
	else
		fact_set(limits, limit_text[most][0], "of %llu flows", (unsigned long long)flows);
	fact_number(limits, "flows", (double)flows);
	for (uint32_t i = 0, named = 0; i < LIMITS; i++) {
		fact_number(limits, limit_text[i][0], (double)count[i]);
		if (!all && count[i] > 0)
			fact_more(limits, "%s %llu %s", named++ > 0 ? "," : "",
				(unsigned long long)count[i], limit_text[i][1 + (count[i] == 1)]);
	}
	return flows > 0;
}
