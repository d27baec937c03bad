// SPDX-License-Identifier: BSD-3-Clause
// A congestion control of Linux as one of Weir's: what the kernel's TCP does around one
// (tcp_input.c, tcp_output.c, tcp_cong.c), from the measurements of weir/cc.h. Compiled with the
// control's file, whose licence the plug-in then has.
//
//	kernel                                        here
//	tcp_ack: pkts_acked, in_ack_event             on_sample
//	tcp_notify_skb_loss_event, rate_sample.lost   on_packet (BBRv3's kernels)
//	tcp_enter_recovery, tcp_enter_cwr, ssthresh   on_loss
//	tcp_enter_loss                                on_rto
//	tcp_undo_cwnd_reduction                       on_spurious
//	end of the episode; cong_control, cong_avoid  on_ack
//	CA_EVENT_TX_START, tcp_cwnd_restart           on_idle
//	tcp_cwnd_reduction (PRR), pacing, TSO         the transport
//
// Where it differs from the kernel
//   - The window of a flow that its application limits does not decay (tcp_cwnd_validate).
//   - Loss does not become Recovery if retransmissions are lost.
//   - rate_sample.is_ack_delayed is never set, nor are PLB and what is sent by BPF.
//   - No route has BBRv3's ecn_low, without which it does not answer ECN. In 54 networks of 10 to
//     200 Mbit/s its goodput is within 0.6 % of the patched kernel's where nothing is lost, and
//     within 3 % with 0.1 % of random loss. With 1 % it is 4 % lower in the mean: why is not known.
#include <weir/linux/module.h>

#define TICK_NS (NSEC_PER_SEC / HZ)
// ms: kernels' timestamps begin at random; LP takes both clocks for one.
#define PEER_CLOCK 0x9e3779b9u

__thread struct kernel_call kernel_call;
static const struct tcp_congestion_ops *control; // of the first file

int tcp_register_congestion_control(struct tcp_congestion_ops *ops) {
	if (ops->ssthresh == NULL || ops->undo_cwnd == NULL
		|| (ops->cong_avoid == NULL && ops->cong_control == NULL))
		return -EINVAL; // so does the kernel
	if (control == NULL)
		control = ops;
	return 0;
}

// A flow's state is where its connection is, which has more bytes than a state may have.
static struct tcp_sock *tcp_of(const void *state) {
	return *(struct tcp_sock *const *)state;
}

static void linux_open(void *state, const void *config, struct cc_flow *flow) {
	*(struct tcp_sock **)state = flow->memory;
}

static struct sock *enter(void *state, uint64_t now_ns) {
	struct tcp_sock *tp = tcp_of(state);

	kernel_call.now_ns = now_ns;
	kernel_call.draws = 0;
	tp->tcp_clock_cache = now_ns;
	tp->tcp_mstamp = now_ns / NSEC_PER_USEC;
	return &tp->inet_conn.sk;
}

// What a BPF program counts packets in flight from.
static void count_out(struct tcp_sock *tp, u32 packets_out, u32 in_flight) {
	u32 held = packets_out - min(tp->sacked_out, packets_out);

	kernel_call.packets_in_flight = in_flight;
	tp->packets_out = packets_out;
	tp->lost_out = held - min(held, in_flight);
	tp->retrans_out = in_flight - min(held, in_flight);
}

static const struct tcp_congestion_ops *ops_of(const struct sock *sk) {
	return inet_csk(sk)->icsk_ca_ops;
}

static void set_state(struct sock *sk, u8 ca_state) {
	if (ops_of(sk)->set_state != NULL)
		ops_of(sk)->set_state(sk, ca_state);
	inet_csk(sk)->icsk_ca_state = ca_state;
}

static void event(struct sock *sk, enum tcp_ca_event what) {
	if (ops_of(sk)->cwnd_event != NULL)
		ops_of(sk)->cwnd_event(sk, what);
}

// The window that the transport is to have, or to go to by PRR.
static void answer(const struct sock *sk, struct cc_out *out) {
	const struct tcp_sock *tp = tcp_sk(sk);
	bool own = ops_of(sk)->cong_control != NULL;
	u32 segs = !own && tcp_in_cwnd_reduction(sk) ? tp->snd_ssthresh : tp->snd_cwnd;

	out->cwnd_segs = max(min(segs, tp->snd_cwnd_clamp), 1u);
	out->pacing_bps = own ? (double)min(sk->sk_pacing_rate, sk->sk_max_pacing_rate) * 8 : 0;
}

// The end of an episode: its window is the one that PRR went to.
static void end_reduction(struct sock *sk) {
	struct tcp_sock *tp = tcp_sk(sk);
	u8 before = inet_csk(sk)->icsk_ca_state;

	if (before != TCP_CA_CWR)
		set_state(sk, TCP_CA_Open);
	if (before != TCP_CA_Loss && ops_of(sk)->cong_control == NULL) {
		if (tp->snd_ssthresh < TCP_INFINITE_SSTHRESH && !tp->undone)
			tp->snd_cwnd = tp->snd_ssthresh;
		event(sk, CA_EVENT_COMPLETE_CWR);
	}
	if (before == TCP_CA_CWR)
		set_state(sk, TCP_CA_Open);
}

static void linux_init(void *state, const void *config, uint32_t mss_bytes, uint64_t rtt_ns,
	uint64_t now_ns, struct cc_out *out) {
	struct sock *sk = enter(state, now_ns);
	struct tcp_sock *tp = tcp_of(state);

	kernel_call.packets_in_flight = 0;
	kernel_call.rtt_min_us = (u32)(rtt_ns / NSEC_PER_USEC);
	sk->sk_max_pacing_rate = ~0ul;
	sk->sk_gso_max_size = GSO_LEGACY_MAX_SIZE;
	sk->sk_pacing_shift = 10;
	sk->sk_state = TCP_ESTABLISHED;
	tp->inet_conn.icsk_ca_ops = control;
	tp->delivered = 1; // the SYN
	tp->delivered_mstamp = tp->tcp_mstamp;
	tp->ecn_flags = TCP_ECN_OK;
	tp->lsndtime = tcp_jiffies32;
	tp->mss_cache = mss_bytes;
	tp->snd_cwnd = TCP_INIT_CWND;
	tp->snd_cwnd_clamp = ~0u;
	tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
	tp->srtt_us = (u32)(rtt_ns * 8 / NSEC_PER_USEC);
	if (control->init != NULL)
		control->init(sk);
	answer(sk, out);
}

static void linux_release(void *state, const void *config) {
	struct tcp_sock *tp = tcp_of(state);

	if (tp->inet_conn.icsk_ca_ops != NULL && control->release != NULL)
		control->release(&tp->inet_conn.sk);
	tp->inet_conn.icsk_ca_ops = NULL;
}

static u32 ack_flags(const struct cc_sample *s) {
	return (s->predicted ? 0 : CA_ACK_SLOWPATH) | (s->passed_segs > 0 ? CA_ACK_WIN_UPDATE : 0)
		| (s->ece ? CA_ACK_ECE : 0);
}

static void linux_on_sample(void *state, const void *config, const struct cc_sample *s) {
	struct sock *sk = enter(state, s->now_ns);
	const struct tcp_congestion_ops *ops = ops_of(sk);
	struct tcp_sock *tp = tcp_of(state);
	struct ack_sample sample = {
		.pkts_acked = s->passed_segs,
		.rtt_us = s->rtt_ns > 0 ? (s32)(s->rtt_ns / NSEC_PER_USEC) : -1,
		.in_flight = (u32)(s->delivered_segs - s->prior_delivered_segs) * tp->mss_cache,
	};

	kernel_call.max_packets_out = (u32)(s->nxt_segs - s->una_segs) + s->passed_segs;
	kernel_call.cwnd_limited = tp->is_cwnd_limited = s->cwnd_limited;
	kernel_call.ece = s->ece;
	kernel_call.rtt_min_us = (u32)(s->rtt_min_ns / NSEC_PER_USEC);
	tp->snd_una = (u32)s->una_segs * tp->mss_cache;
	tp->snd_nxt = (u32)s->nxt_segs * tp->mss_cache;
	tp->srtt_us = (u32)(s->srtt_ns * 8 / NSEC_PER_USEC);
	tp->inet_conn.rto_ticks = (u16)min(s->rto_ns / TICK_NS, (u64)U16_MAX);
	tp->sacked_out = s->sacked_segs;
	count_out(tp, (u32)(s->nxt_segs - s->una_segs), s->inflight_segs);
	tp->lost = (u32)s->lost_segs;
	if (tcp_in_cwnd_reduction(sk) && ops->cong_control == NULL && !tp->undone)
		tp->snd_cwnd = (u32)s->cwnd_segs; // PRR's
	if (!s->ack)
		return;
	if (tp->delivered == 1)
		tp->snd_cwnd = (u32)s->cwnd_segs; // 1 if the SYN was sent twice
	if (sk->sk_pacing_status == SK_PACING_NONE && s->host_paced)
		sk->sk_pacing_status = SK_PACING_FQ;
	if (tp->delivered != (u32)s->delivered_segs + 1)
		tp->delivered_mstamp = tp->tcp_mstamp;
	tp->delivered = (u32)s->delivered_segs + 1;
	tp->delivered_ce += s->ce_segs;
	tp->rx_opt.rcv_tsval = s->peer_tsval + PEER_CLOCK;
	tp->rx_opt.rcv_tsecr = s->peer_tsecr;
	if (ops->pkts_acked != NULL)
		ops->pkts_acked(sk, &sample);
	if (ops->in_ack_event != NULL)
		ops->in_ack_event(sk, ack_flags(s));
	if (s->ece)
		tp->prior_ssthresh = 0;
}

static void mark_lost(struct sock *sk, const struct cc_packet *p) {
	struct tcp_sock *tp = tcp_sk(sk);
	const struct sk_buff skb = {{
		.seq = (u32)p->number * tp->mss_cache,
		.end_seq = (u32)(p->number + 1) * tp->mss_cache,
		.tx = {.delivered_mstamp = 1,
			.in_flight = p->inflight_segs,
			.lost = (u32)p->lost_segs,
			.is_app_limited = p->app_limited},
	}};

	tp->lost++;
	ops_of(sk)->skb_marked_lost(sk, &skb);
}

// Only for a control that asks for each lost segment: what these kernels keep of segments.
static void linux_on_packet(void *state, const void *config, const struct cc_packet *p) {
	struct tcp_sock *tp = tcp_of(state);
	bool newer = p->sent_ns > tp->newest_sent_ns
		|| (p->sent_ns == tp->newest_sent_ns && p->number > tp->newest);

	if (p->event == CC_PACKET_SENT && !p->retransmission) {
		tp->app_limited_at_end = p->app_limited;
	} else if (p->event == CC_PACKET_SENT && p->probe) {
		tp->tlp_end = (u32)(p->number + 1) * tp->mss_cache;
		tp->tlp_orig_data_app_limited = tp->app_limited_at_end;
	} else if (p->event == CC_PACKET_LOST) {
		mark_lost(enter(state, p->now_ns), p);
	} else if (p->event == CC_PACKET_ACKED && newer) {
		tp->newest_sent_ns = p->sent_ns;
		tp->newest = p->number;
		tp->newest_in_flight = p->inflight_segs;
		tp->newest_lost = (u32)p->lost_segs;
	}
}

// tcp_update_pacing_rate. Only slow start reads it: CUBIC's HyStart.
static void update_pacing_rate(struct sock *sk, u32 packets_out) {
	struct tcp_sock *tp = tcp_sk(sk);
	u64 rate = (u64)tp->mss_cache * (USEC_PER_SEC / 100 << 3);

	if (!tcp_in_slow_start(tp) || tp->srtt_us == 0)
		return;
	rate *= tp->snd_cwnd < tp->snd_ssthresh / 2 ? 200 : 120;
	rate *= max(tp->snd_cwnd, packets_out);
	sk->sk_pacing_rate = rate / tp->srtt_us;
}

static void control_by_rate(struct sock *sk, const struct cc_ack *ack) {
	const struct tcp_sock *tp = tcp_sk(sk);
	bool known = tp->newest_sent_ns > 0;
	const struct rate_sample rs = {
		.prior_delivered = (u32)ack->prior_delivered_segs + 1,
		.delivered = ack->acked_segs > 0
			? (s32)(ack->delivered_segs - ack->prior_delivered_segs)
			: -1,
		.interval_us = ack->interval_ns > 0 ? (long)(ack->interval_ns / NSEC_PER_USEC) : -1,
		.rtt_us = ack->rtt_ns > 0 ? (long)(ack->rtt_ns / NSEC_PER_USEC) : -1,
		.losses = (int)ack->lost_segs,
		.acked_sacked = ack->acked_segs,
		.prior_in_flight = ack->prior_inflight_segs,
		.is_app_limited = ack->app_limited,
		.prior_lost = known ? tp->newest_lost : 0,
		.lost = known ? (s32)(tp->lost - tp->newest_lost) : 0,
		.tx_in_flight = known ? tp->newest_in_flight : 0,
		.is_acking_tlp_retrans_seq = tp->tlp_end > 0 && tp->snd_una == tp->tlp_end,
		.is_ece = kernel_call.ece,
	};

#ifdef KERNEL_CONTROL_SEES_ACK
	ops_of(sk)->cong_control(sk, tp->snd_una, 0, &rs);
#else
	ops_of(sk)->cong_control(sk, &rs);
#endif
}

static void linux_on_ack(
	void *state, const void *config, const struct cc_ack *ack, struct cc_out *out) {
	struct sock *sk = enter(state, ack->now_ns);
	struct tcp_sock *tp = tcp_of(state);
	u8 before = inet_csk(sk)->icsk_ca_state, open;

	count_out(tp, tp->packets_out, ack->inflight_segs);
	kernel_call.enters_cwr = false;
	if (ops_of(sk)->skb_marked_lost == NULL)
		tp->lost += ack->lost_segs;
	tp->app_limited = 0;
	tp->tcp_wstamp_ns = ack->next_send_ns;
	if (!ack->in_recovery && !ack->in_loss) {
		if (before > TCP_CA_Disorder)
			end_reduction(sk);
		open = tp->sacked_out > 0 ? TCP_CA_Disorder : TCP_CA_Open;
		if (inet_csk(sk)->icsk_ca_state != open)
			set_state(sk, open);
	}
	if (ack->acked_segs > 0 || ack->in_sequence) {
		if (ops_of(sk)->cong_control != NULL)
			control_by_rate(sk, ack);
		else if (!tcp_in_cwnd_reduction(sk) && ack->in_sequence)
			ops_of(sk)->cong_avoid(sk, tp->snd_una, ack->acked_segs);
		if (ops_of(sk)->cong_control == NULL)
			update_pacing_rate(sk, (tp->snd_nxt - tp->snd_una) / tp->mss_cache);
	}
	tp->newest_sent_ns = 0;
	answer(sk, out);
}

static uint32_t linux_requests(void *state, const void *config) {
	const struct tcp_sock *tp = tcp_of(state);

	return (tp->app_limited != 0 ? CC_REQUEST_APP_LIMITED : 0)
		| (kernel_call.enters_cwr ? CC_REQUEST_REDUCTION : 0);
}

static void linux_on_loss(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	struct sock *sk = enter(state, loss->now_ns);
	struct tcp_sock *tp = tcp_of(state);
	bool cwr = loss->ecn || loss->requested;

	if (inet_csk(sk)->icsk_ca_state > TCP_CA_Disorder)
		end_reduction(sk);
	tp->undone = false;
	tp->prior_ssthresh = cwr ? 0 : tcp_current_ssthresh(sk);
	tp->snd_cwnd_cnt = 0;
	tp->prior_cwnd = tp->snd_cwnd;
	if (loss->probe)
		event(sk, CA_EVENT_TLP_RECOVERY);
	tp->snd_ssthresh = ops_of(sk)->ssthresh(sk);
	set_state(sk, cwr || loss->probe ? TCP_CA_CWR : TCP_CA_Recovery);
	if (loss->probe && ops_of(sk)->cong_control != NULL)
		set_state(sk, TCP_CA_Open); // its episode is over at once (tcp_process_tlp_ack)
	tp->tlp_end = 0;
	answer(sk, out);
}

static void linux_on_rto(
	void *state, const void *config, const struct cc_loss *loss, struct cc_out *out) {
	struct sock *sk = enter(state, loss->now_ns);
	struct tcp_sock *tp = tcp_of(state);
	u8 before = inet_csk(sk)->icsk_ca_state;

	if (before <= TCP_CA_Disorder || (before == TCP_CA_Loss && !loss->repeated)) {
		tp->undone = false;
		tp->prior_ssthresh = tcp_current_ssthresh(sk);
		tp->prior_cwnd = tp->snd_cwnd;
		tp->snd_ssthresh = ops_of(sk)->ssthresh(sk);
		event(sk, CA_EVENT_LOSS);
	}
	tp->tlp_end = 0;
	tp->snd_cwnd = kernel_call.packets_in_flight + 1;
	tp->snd_cwnd_cnt = 0;
	set_state(sk, TCP_CA_Loss);
	answer(sk, out);
}

static void linux_on_spurious(
	void *state, const void *config, uint64_t now_ns, struct cc_out *out) {
	struct sock *sk = enter(state, now_ns);
	struct tcp_sock *tp = tcp_of(state);

	if (tp->prior_ssthresh > 0) {
		tp->snd_cwnd = ops_of(sk)->undo_cwnd(sk);
		tp->snd_ssthresh = max(tp->snd_ssthresh, tp->prior_ssthresh);
	}
	tp->undone = true;
	set_state(sk, TCP_CA_Open);
	answer(sk, out);
}

static void linux_on_idle(
	void *state, const void *config, uint64_t now_ns, uint64_t idle_ns, struct cc_out *out) {
	struct sock *sk = enter(state, now_ns);
	struct tcp_sock *tp = tcp_of(state);
	s32 over = (s32)min(idle_ns / TICK_NS, (u64)S32_MAX), rto = tp->inet_conn.rto_ticks;
	u32 restart = min(tp->snd_cwnd, (u32)TCP_INIT_CWND);

	tp->lsndtime = tcp_jiffies32 - (u32)over;
	if (over > rto && ops_of(sk)->cong_control == NULL) {
		event(sk, CA_EVENT_CWND_RESTART);
		tp->snd_ssthresh = tcp_current_ssthresh(sk);
		while ((over -= max(rto, 1)) > 0 && tp->snd_cwnd > restart)
			tp->snd_cwnd >>= 1;
		tp->snd_cwnd = max(tp->snd_cwnd, restart);
	}
	kernel_call.packets_in_flight = 0;
	tp->app_limited = max(tp->delivered, 1u);
	event(sk, CA_EVENT_TX_START);
	answer(sk, out);
}

static void linux_observe(const void *state, const void *config, float observed[CC_OBSERVED]) {
	const struct tcp_sock *tp = tcp_of(state);

	observed[0] = (float)tp->snd_ssthresh;
}

static const char *linux_configure(const void *config) {
	const char *why = module_configure(config);

	return control != NULL ? why
			       : "no struct tcp_congestion_ops in it has all that it needs: "
				 "ssthresh, undo_cwnd, and cong_avoid or cong_control";
}

static uint8_t linux_mode(const void *state, const void *config) {
	return tcp_of(state)->inet_conn.icsk_ca_state;
}

static double linux_ssthresh(const void *state, const void *config) {
	return tcp_of(state)->snd_ssthresh;
}

static double linux_given_window(const void *config) {
	return TCP_INIT_CWND;
}

#define MODES(V)                                                                                   \
	V(TCP_CA_Open, "open")                                                                     \
	V(TCP_CA_Disorder, "disorder")                                                             \
	V(TCP_CA_CWR, "cwr")                                                                       \
	V(TCP_CA_Recovery, "recovery")                                                             \
	V(TCP_CA_Loss, "loss")

static struct cc_ops linux_ops = {
	.name = KERNEL_PLUGIN,
	.state_size = sizeof(struct tcp_sock *),
	.memory_bytes = sizeof(struct tcp_sock),
	.ecn = true,
	.any_idle = true,
	.observed = {"ssthresh_segs"},
	.modes = {MODES(CC_MODE_TEXT)},
	.given_window = linux_given_window,
	.configure = linux_configure,
	.open = linux_open,
	.init = linux_init,
	.release = linux_release,
	.on_sample = linux_on_sample,
	.on_ack = linux_on_ack,
	.requests = linux_requests,
	.on_loss = linux_on_loss,
	.on_rto = linux_on_rto,
	.on_spurious = linux_on_spurious,
	.on_idle = linux_on_idle,
	.observe = linux_observe,
	.mode = linux_mode,
	.ssthresh = linux_ssthresh,
};
__attribute__((constructor)) static void load(void) {
	module_load(&linux_ops);
	if (control == NULL)
		return;
	linux_ops.prr = control->cong_control == NULL;
	linux_ops.on_packet = control->skb_marked_lost != NULL ? linux_on_packet : NULL;
	if ((control->flags & TCP_CONG_NEEDS_ECN) != 0) {
		linux_ops.codepoint = CC_ECN_ECT0;
		linux_ops.feedback = CC_FEEDBACK_DCTCP;
	}
}

CC_PLUGIN(linux_ops);
