// SPDX-License-Identifier: BSD-3-Clause
// The one timer of a sending connection that waits for ACKs: the retransmission timeout (RFC 6298),
// the tail loss probe and RACK's wait for reordering (RFC 8985), probes of a closed window (RFC
// 9293 section 3.8.6.1).
#include "common/base/jiffies.h"
#include "sender/endpoint/endpoint.h"
#include "sender/tcp/flow.h"
#include "sender/tcp/path_mtu.h"

#define TLP_MAX_ACK_DELAY_NS (200 * NS_PER_MS) // RFC 8985 section 7.2, worst delayed ACK
#define PROBES_MAX 30 // the interval doubles no more often
#define HEAR_NS_MAX (50 * NS_PER_MS) // a timeout waits this long at most for ACKs not yet read

// rto_max bounds the backoff, not the timeout itself: that is above what was measured, whatever the
// path's length.
static uint64_t backed_off_ns(const struct group *g, const struct flow *f, uint32_t doublings) {
	uint64_t rto = f->rtt.rto_ns;

	if (likely(doublings == 0))
		return rto;
	for (uint32_t i = 0; i < doublings && rto < g->rto_max_ns; i++)
		rto *= 2;
	return time_max(time_min(rto, g->rto_max_ns), f->rtt.rto_ns);
}

__attribute__((noinline)) static void arm_now(struct endpoint *e, struct flow *f) {
	endpoint_arm(e, &f->rtx, f->rtx_deadline_ns);
}

static inline void arm_until(
	struct endpoint *e, struct flow *f, uint64_t deadline_ns, uint64_t now_ns) {
	// A sample by SACK may have shortened the timeout to before now.
	f->rtx_deadline_ns = time_max(deadline_ns, now_ns);
	if (!f->rtx.armed || f->rtx_deadline_ns < f->rtx.t.expires_ns)
		arm_now(e, f);
}

__attribute__((noinline)) static void arm_any(struct endpoint *e, struct flow *f, uint64_t now_ns) {
	const struct group *g = flow_group(e, f);
	uint64_t rto = backed_off_ns(g, f, f->backoff);

	if (f->rtx_kind == RTX_PERSIST && f->una < f->nxt) {
		f->rtx_kind = RTX_NONE; // the window has opened
		f->probes = 0;
	}
	if (f->rtx_kind == RTX_NONE)
		f->rtx_base_ns = now_ns;
	if (f->state == FLOW_SYN_SENT) {
		f->rtx_kind = RTX_RTO;
		f->rtx_deadline_ns =
			jiffies_timer_ns(g->tick_ns, now_ns, handshake_timeout_ns(e, f, rto));
	} else if (f->una == f->nxt) {
		// Data waits, and neither an ACK nor the pacer will send it: the peer's window is
		// closed.
		bool closed = flow_unsent(f) && !f->pace.armed;

		f->rtx_kind = closed ? RTX_PERSIST : RTX_NONE;
		f->rtx_deadline_ns = closed
			? jiffies_timer_ns(g->tick_ns, now_ns, backed_off_ns(g, f, f->probes))
			: NEVER_NS;
	} else if (f->rtx_kind != RTX_REO) {
		f->rtx_kind = RTX_RTO;
		f->rtx_deadline_ns = jiffies_timer_ns(g->tick_ns, f->rtx_base_ns, rto);
		if (g->tlp && f->sack_ok && f->ca == FLOW_CA_OPEN && f->sacked == 0
			&& f->tlp_end == 0 && f->backoff == 0 && f->rtt.srtt_ns > 0) {
			// Counted from the next pacing slot, as in Linux (tcp_pacing_delay).
			uint64_t pto = 2 * f->rtt.srtt_ns;

			if (f->nxt - f->una == 1)
				pto += TLP_MAX_ACK_DELAY_NS;
			else if (g->tick_ns > 0)
				pto += JIFFIES_TIMEOUT_MIN_NS;
			pto = jiffies_timer_ns(g->tick_ns, time_max(now_ns, f->next_send_ns), pto);

			// The probe replaces the timeout and is never later.
			f->rtx_kind = RTX_TLP;
			f->rtx_deadline_ns = time_min(pto, f->rtx_deadline_ns);
		}
	}
	if (f->rtx_kind != RTX_NONE)
		arm_until(e, f, f->rtx_deadline_ns, now_ns);
}

// An RTO counts from the last progress (rtx_base_ns), a probe from now (RFC 6298 section 5, RFC
// 8985 section 7.2).
void flow_arm_rtx(struct endpoint *e, struct flow *f, uint64_t now_ns) {
	const struct group *g = flow_group(e, f);

	// The usual case: the probe's time moves.
	if (likely(f->rtx_kind == RTX_TLP && f->nxt - f->una > 1 && f->ca == FLOW_CA_OPEN
		    && (f->sacked | f->tlp_end | f->backoff | g->tick_ns) == 0 && g->tlp))
		arm_until(e, f,
			time_min(time_max(now_ns, f->next_send_ns) + 2 * f->rtt.srtt_ns,
				f->rtx_base_ns + f->rtt.rto_ns),
			now_ns);
	else
		arm_any(e, f, now_ns);
}

// RFC 8985 section 7.3.
static void probe(struct endpoint *e, struct flow *f, uint64_t now_ns) {
	flow_send_probe(e, f, now_ns);
	f->tlp_end = f->nxt;
	f->rtx_kind = RTX_RTO;
	f->rtx_base_ns = now_ns;
	flow_arm_rtx(e, f, now_ns);
}

// Whether the peer has left too many timeouts or probes in a row unanswered; then the flow has
// ended.
static bool gave_up(struct endpoint *e, struct flow *f, uint64_t now_ns) {
	if (f->timeouts < flow_group(e, f)->retries)
		return false;
	flow_end(e, f, FLOW_FAILED, TEL_GAVE_UP, now_ns);
	return true;
}

static void timeout(struct endpoint *e, struct flow *f, uint64_t now_ns) {
	if (gave_up(e, f, now_ns))
		return;
	f->rtx_base_ns = now_ns;
	f->backoff++;
	if (f->state == FLOW_SYN_SENT) {
		f->timeouts++;
		handshake_syn(e, f, now_ns);
		return;
	}
	flow_enter_loss(e, f, now_ns);
	f->timeouts++;
	mtu_probe_timeout(e, f, now_ns);
	// Not limited by the window or the pacer.
	if (f->unsent_lost > 0)
		flow_transmit(e, f, flow_next_lost(f), now_ns, false, false, now_ns);
	flow_send(e, f, now_ns, now_ns);
	flow_arm_rtx(e, f, now_ns);
}

// Bytes of the next segment that fit into the window if not all do; 0: all fit, or the window is
// closed.
static uint32_t window_left(const struct flow *f) {
	if (flow_offset(f, f->nxt) + flow_len(f, f->nxt) <= f->wnd_bytes)
		return 0;
	return (uint32_t)(f->wnd_bytes - f->una_bytes);
}

// A segment without data below the window: its ACK carries the window (RFC 9293 section 3.8.6.1). A
// window that is open but has no room for a whole segment might stay so for ever: the probe fills
// it, as in Linux (tcp_write_wakeup). The scoreboard does not count the bytes of a probe: the next
// probe carries them again, and so does the whole segment once it fits.
static void persist(struct endpoint *e, struct flow *f, uint64_t now_ns) {
	uint32_t len = window_left(f);
	struct seg s;

	if (gave_up(e, f, now_ns))
		return;
	f->timeouts++;
	if (len > 0) {
		flow_header(f, &s, f->iss + 1 + (uint32_t)f->una_bytes, (uint16_t)len,
			SEG_ACK | SEG_PSH, now_ns);
		f->probe_end = max_u64(f->probe_end, f->wnd_bytes);
		f->count.sent_segs++;
		e->count.data_tx_segs++;
	} else {
		flow_header(f, &s, flow_seq_nxt(f) - 1, 0, SEG_ACK, now_ns);
	}
	if (f->probes < PROBES_MAX)
		f->probes++;
	endpoint_send(e, f->id, &s, ECN_NOT_ECT, now_ns);
	flow_arm_rtx(e, f, now_ns);
}

void flow_rtx_timer(struct endpoint *e, struct flow *f, uint64_t now_ns) {
	if (f->rtx_kind == RTX_NONE)
		return;
	if (now_ns < f->rtx_deadline_ns) { // the deadline moved while the timer waited
		endpoint_arm(e, &f->rtx, f->rtx_deadline_ns);
		return;
	}
	// After a stall of the loop, an ACK that arrived before the deadline may not have been
	// processed yet.
	if (f->rtx_deadline_ns > e->heard_ns && now_ns < f->rtx_deadline_ns + HEAR_NS_MAX) {
		endpoint_arm(e, &f->rtx, now_ns + 1);
		return;
	}
	switch ((enum flow_rtx)f->rtx_kind) {
	case RTX_NONE:
		break;
	case RTX_RTO:
		timeout(e, f, now_ns);
		break;
	case RTX_TLP:
		// In a late loop this timer may fire before the pacer's, which was due earlier.
		if (f->pace.armed && f->pace.t.expires_ns <= now_ns
			&& flow_send(e, f, now_ns, f->pace.t.expires_ns))
			flow_arm_rtx(e, f, now_ns);
		else
			probe(e, f, now_ns);
		break;
	case RTX_REO:
		flow_reorder_timer(e, f, now_ns);
		break;
	case RTX_PERSIST:
		persist(e, f, now_ns);
		break;
	}
}
