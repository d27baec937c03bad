// SPDX-License-Identifier: BSD-3-Clause
// Public: what a congestion control of Linux (net/ipv4/tcp_*.c) includes and calls, as far as
// control.c gives it. Written from the interface; the algorithm's file is the kernel's, or yours.
//
// A flow has one struct tcp_sock with the control's own bytes (ICSK_CA_PRIV_SIZE). What only lasts
// for a call is in `kernel_call`, one per thread.
#pragma once
#include <weir/linux/language.h>

// Time. Ticks as of Debian's kernels; -DHZ=1000 for others.
#ifndef HZ
#define HZ 250
#endif
#define NSEC_PER_USEC 1000L
#define NSEC_PER_MSEC 1000000L
#define NSEC_PER_SEC 1000000000L
#define USEC_PER_MSEC 1000L
#define USEC_PER_SEC 1000000L
#define MSEC_PER_SEC 1000L
#define TCP_TS_HZ 1000

struct kernel_call {
	u64 now_ns;
	u32 packets_in_flight;
	u32 max_packets_out; // before this ACK: nothing has been sent since it was counted
	u32 rtt_min_us;
	u32 draws; // of get_random_u32 in this call
	bool cwnd_limited;
	bool ece; // this ACK echoes a mark
	bool enters_cwr; // the control has called tcp_enter_cwr
};
extern __thread struct kernel_call kernel_call __attribute__((tls_model("initial-exec")));

#define jiffies ((unsigned long)(HZ + kernel_call.now_ns / (NSEC_PER_SEC / HZ)))
#define tcp_jiffies32 ((u32)jiffies)
#define local_clock() (kernel_call.now_ns)
#define usecs_to_jiffies(us) ((unsigned long)DIV_ROUND_UP((u64)(us), USEC_PER_SEC / HZ))
#define msecs_to_jiffies(ms) ((unsigned long)DIV_ROUND_UP((u64)(ms)*HZ, MSEC_PER_SEC))
#define jiffies_to_usecs(ticks) ((u32)((ticks) * (USEC_PER_SEC / HZ)))
#define jiffies_to_msecs(ticks) ((u32)((ticks) * (MSEC_PER_SEC / HZ)))
#define time_after(a, b) ((long)((b) - (a)) < 0)
#define time_before(a, b) time_after(b, a)
#define time_after_eq(a, b) ((long)((a) - (b)) >= 0)
#define time_before_eq(a, b) time_after_eq(b, a)

// Memory of a flow's own, until its release().
#define GFP_NOWAIT 0
#define GFP_ATOMIC 0
#define GFP_KERNEL 0
#define __GFP_NOWARN 0
#define kcalloc(n, size, how) calloc(n, size)
#define kzalloc(size, how) calloc(1, size)
#define kfree(at) free(at)

// A module: what the file's macros list, control.c reads from sections of the object.
struct module;
#define THIS_MODULE ((struct module *)NULL)
struct kernel_param {
	const char *name;
	void *arg;
	size_t bytes;
	double most; // 0: a bool
	const struct kernel_param_ops *ops; // NULL: any value is legal
	int line; // of its file
};
struct kernel_param_ops {
	int (*set)(const char *text, const struct kernel_param *param);
	int (*get)(char *text, const struct kernel_param *param);
};
struct kernel_text {
	const char *name, *text;
};
typedef int kernel_init(void);
int param_set_uint_minmax(
	const char *text, const struct kernel_param *param, unsigned least, unsigned most);
#define param_set_uint NULL
#define param_set_int NULL
#define param_get_uint NULL
#define param_get_int NULL

// clang-format off
#define KERNEL_MOST_(variable)                                                                     \
	_Generic(variable, int: INT32_MAX, bool: 0, default: (double)(__typeof__(variable))~0ull)
// clang-format on
#define KERNEL_LISTED_(list, kind, name)                                                           \
	__attribute__((section(#list), used)) static const kind *const list##_##name
#define KERNEL_PARAM_(param, variable, checks)                                                     \
	static const struct kernel_param param_of_##param = {                                      \
		#param, &(variable), sizeof(variable), KERNEL_MOST_(variable), checks, __LINE__};  \
	KERNEL_LISTED_(kernel_params, struct kernel_param, param) = &param_of_##param
#define module_param(variable, type, mode) KERNEL_PARAM_(variable, variable, NULL)
#define module_param_named(param, variable, type, mode) KERNEL_PARAM_(param, variable, NULL)
#define module_param_cb(param, ops, variable, mode) KERNEL_PARAM_(param, *(variable), ops)
#define MODULE_PARM_DESC(param, words)                                                             \
	static const struct kernel_text help_of_##param = {#param, words};                         \
	KERNEL_LISTED_(kernel_helps, struct kernel_text, param) = &help_of_##param
#define KERNEL_MODULE_(what, words)                                                                \
	static const struct kernel_text what##_of_module = {#what, words};                         \
	KERNEL_LISTED_(kernel_modules, struct kernel_text, what) = &what##_of_module
#define MODULE_LICENSE(words) KERNEL_MODULE_(license, words)
#define MODULE_DESCRIPTION(words) KERNEL_MODULE_(description, words)
#define MODULE_AUTHOR(words) static_assert(1, "")
#define MODULE_VERSION(words) static_assert(1, "")
#define MODULE_ALIAS(words) static_assert(1, "")
#define module_init(function)                                                                      \
	__attribute__((section("kernel_inits"), used)) static kernel_init *const init_of_module =  \
		function
#define module_exit(function) static_assert(1, "")

// BPF sees no function of a control.
struct btf_id_set8 {
	u32 count;
};
struct btf_kfunc_id_set {
	struct module *owner;
	struct btf_id_set8 *set;
};
#define BTF_SET8_START(name) static struct btf_id_set8 name;
#define BTF_SET8_END(name)
#define BTF_KFUNCS_START(name) BTF_SET8_START(name)
#define BTF_KFUNCS_END(name)
#define BTF_ID_FLAGS(...)
#define BPF_PROG_TYPE_STRUCT_OPS 0
#define register_btf_kfunc_id_set(kind, set) ((void)(set), 0)
#define BPF_SOCK_OPS_BASE_RTT 0
#define tcp_call_bpf(sk, what, count, values) (-1)

// Random numbers: a hash of the time and of the flow's progress.
u32 get_random_u32(void);
void get_random_bytes(void *at, size_t size);
#define prandom_u32 get_random_u32
#define get_random_u32_below(end) ((u32)(((u64)get_random_u32() * (end)) >> 32))
#define prandom_u32_max get_random_u32_below

// The smallest or largest value of a window of time, by three candidates (Nichols).
struct minmax_sample {
	u32 t, v;
};
struct minmax {
	struct minmax_sample s[3];
};
static inline u32 minmax_get(const struct minmax *m) {
	return m->s[0].v;
}
static inline u32 minmax_reset(struct minmax *m, u32 t, u32 v) {
	m->s[2] = m->s[1] = m->s[0] = (struct minmax_sample){t, v};
	return v;
}
u32 minmax_running_max(struct minmax *m, u32 window, u32 t, u32 v);
u32 minmax_running_min(struct minmax *m, u32 window, u32 t, u32 v);

// The connection.
#define ICSK_CA_PRIV_SIZE (18 * sizeof(u64)) // BBRv3's kernels; others have 13
#define TCP_CA_NAME_MAX 16
#define TCP_INFINITE_SSTHRESH 0x7fffffff
#define TCP_INIT_CWND 10
#define GSO_LEGACY_MAX_SIZE 65536
#define GSO_MAX_SIZE GSO_LEGACY_MAX_SIZE // its name before 5.19
#define MAX_TCP_HEADER 192
enum { TCP_ESTABLISHED = 1, TCP_CLOSE = 7, TCP_LISTEN = 10 };
enum sk_pacing { SK_PACING_NONE, SK_PACING_NEEDED, SK_PACING_FQ };
enum tcp_ca_state { TCP_CA_Open, TCP_CA_Disorder, TCP_CA_CWR, TCP_CA_Recovery, TCP_CA_Loss };
#define TCPF_CA_Open (1 << TCP_CA_Open)
#define TCPF_CA_Disorder (1 << TCP_CA_Disorder)
#define TCPF_CA_CWR (1 << TCP_CA_CWR)
#define TCPF_CA_Recovery (1 << TCP_CA_Recovery)
#define TCPF_CA_Loss (1 << TCP_CA_Loss)
enum tcp_ca_event {
	CA_EVENT_TX_START,
	CA_EVENT_CWND_RESTART,
	CA_EVENT_COMPLETE_CWR,
	CA_EVENT_LOSS,
	CA_EVENT_ECN_NO_CE,
	CA_EVENT_ECN_IS_CE,
	CA_EVENT_TLP_RECOVERY,
};
enum tcp_ca_ack_event_flags {
	CA_ACK_SLOWPATH = 1,
	CA_ACK_WIN_UPDATE = 2,
	CA_ACK_ECE = 4,
};
enum { TCP_ECN_OK = 1, TCP_ECN_QUEUE_CWR = 2, TCP_ECN_DEMAND_CWR = 4, TCP_ECN_SEEN = 8 };
enum { TCP_ECN_LOW = 16, TCP_ECN_ECT_PERMANENT = 32 };
enum { TCP_CONG_NON_RESTRICTED = 1, TCP_CONG_NEEDS_ECN = 2, TCP_CONG_WANTS_CE_EVENTS = 4 };
enum { ICSK_ACK_TIMER = 2, ICSK_ACK_NOW = 8 };

struct sock {
	unsigned long sk_pacing_rate; // bytes per second, of payload
	unsigned long sk_max_pacing_rate;
	u32 sk_gso_max_size;
	u8 sk_pacing_status; // enum sk_pacing
	u8 sk_pacing_shift;
	u8 sk_state;
};

// A segment, as skb_marked_lost() sees it.
struct tcp_skb_cb {
	u32 seq, end_seq;
	u8 sacked;
	struct {
		u32 delivered_mstamp, in_flight, lost;
		bool is_app_limited;
	} tx;
};
struct sk_buff {
	struct tcp_skb_cb cb;
};
#define TCP_SKB_CB(skb) ((struct tcp_skb_cb *)&(skb)->cb)
#define tcp_skb_pcount(skb) 1
#define tcp_skb_tx_in_flight_is_suspicious(count, sacked, in_flight) ((count) > (in_flight))

struct inet_connection_sock {
	struct sock sk;
	u8 icsk_ca_state;
	struct {
		u8 pending;
	} icsk_ack;
	u16 rto_ticks;
	const struct tcp_congestion_ops *icsk_ca_ops;
};

// Sequence numbers begin with 0, and a segment has mss_cache bytes.
struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u64 tcp_mstamp, delivered_mstamp; // us
	u64 tcp_clock_cache, tcp_wstamp_ns;
	u32 snd_una, snd_nxt, rcv_nxt;
	u32 mss_cache;
	u32 srtt_us; // << 3
	u32 snd_cwnd, snd_cwnd_cnt, snd_cwnd_clamp, snd_ssthresh;
	u32 prior_cwnd, prior_ssthresh;
	u32 delivered, delivered_ce, lost, app_limited; // segments
	u32 sacked_out, packets_out;
	u32 lost_out, retrans_out; // their difference is exact, each of them not
	u32 lsndtime; // ticks
	struct {
		u32 rcv_tsval, rcv_tsecr;
	} rx_opt;
	u8 ecn_flags;
	u8 fast_ack_mode;
	bool is_cwnd_limited, is_sack_reneg, tlp_orig_data_app_limited;
	bool undone; // the reduction of this episode was
	bool app_limited_at_end; // the last new segment was
	// The newest segment that an ACK acknowledges, and what was so when it left.
	u64 newest_sent_ns, newest;
	u32 newest_in_flight, newest_lost;
	u32 tlp_end; // the segment after a tail loss probe that was sent before
	u64 priv[ICSK_CA_PRIV_SIZE / sizeof(u64)];
};

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
	u32 in_flight;
};

struct rate_sample {
	u64 prior_mstamp;
	u32 prior_lost, tx_in_flight;
	s32 lost;
	u32 prior_delivered, prior_delivered_ce;
	s32 delivered, delivered_ce;
	long interval_us;
	u32 snd_interval_us, rcv_interval_us;
	long rtt_us;
	int losses;
	u32 acked_sacked;
	u32 prior_in_flight;
	u32 last_end_seq;
	bool is_app_limited, is_retrans, is_ack_delayed, is_acking_tlp_retrans_seq, is_ece;
};

struct tcpvegas_info {
	u32 tcpv_enabled, tcpv_rttcnt, tcpv_rtt, tcpv_minrtt;
};
struct tcp_dctcp_info {
	u16 dctcp_enabled, dctcp_ce_state;
	u32 dctcp_alpha, dctcp_ab_ecn, dctcp_ab_tot;
};
struct tcp_bbr_info {
	u32 bbr_bw_lo, bbr_bw_hi, bbr_min_rtt, bbr_pacing_gain, bbr_cwnd_gain;
	u32 bbr_bw_hi_lsb, bbr_bw_hi_msb, bbr_bw_lo_lsb, bbr_bw_lo_msb;
	u8 bbr_mode, bbr_phase, bbr_version;
	u32 bbr_inflight_lo, bbr_inflight_hi, bbr_extra_acked;
};
enum tcp_bbr_phase {
	BBR_PHASE_INVALID,
	BBR_PHASE_STARTUP,
	BBR_PHASE_DRAIN,
	BBR_PHASE_PROBE_RTT,
	BBR_PHASE_PROBE_BW_UP,
	BBR_PHASE_PROBE_BW_DOWN,
	BBR_PHASE_PROBE_BW_CRUISE,
	BBR_PHASE_PROBE_BW_REFILL,
};
union tcp_cc_info {
	struct tcpvegas_info vegas;
	struct tcp_dctcp_info dctcp;
	struct tcp_bbr_info bbr;
};
enum { INET_DIAG_VEGASINFO = 3, INET_DIAG_DCTCPINFO = 9, INET_DIAG_BBRINFO = 16 };

struct tcp_congestion_ops {
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	void (*in_ack_event)(struct sock *sk, u32 flags);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 (*min_tso_segs)(struct sock *sk);
	u32 (*tso_segs)(struct sock *sk, unsigned mss_bytes); // BBRv3's kernels: in its place
	void (*skb_marked_lost)(struct sock *sk, const struct sk_buff *skb); // these, too
#ifdef KERNEL_CONTROL_SEES_ACK // from 6.10 on; the Makefile looks
	void (*cong_control)(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs);
#else
	void (*cong_control)(struct sock *sk, const struct rate_sample *rs);
#endif
	u32 (*undo_cwnd)(struct sock *sk);
	u32 (*sndbuf_expand)(struct sock *sk);
	size_t (*get_info)(struct sock *sk, u32 ext, int *attribute, union tcp_cc_info *info);
	char name[TCP_CA_NAME_MAX];
	struct module *owner;
	u32 flags;
};
int tcp_register_congestion_control(struct tcp_congestion_ops *ops);
#define tcp_unregister_congestion_control(ops) ((void)(ops))

#define tcp_sk(sk) ((struct tcp_sock *)(sk))
#define inet_csk(sk) ((struct inet_connection_sock *)(sk))
static inline void *inet_csk_ca(const struct sock *sk) {
	return tcp_sk(sk)->priv;
}
#define tcp_snd_cwnd(tp) ((tp)->snd_cwnd)
#define tcp_snd_cwnd_set(tp, segs) ((void)((tp)->snd_cwnd = (segs)))
#define tcp_packets_in_flight(tp) (kernel_call.packets_in_flight)
#define tcp_min_rtt(tp) (kernel_call.rtt_min_us)
#define tcp_stamp_us_delta(later, sooner) ((u32)max_t(s64, (s64)((later) - (sooner)), 0))
// The clock of the timestamps that the connection sends.
#define tcp_time_stamp(tp) ((u32)(kernel_call.now_ns / NSEC_PER_MSEC) + 1)
#define tcp_time_stamp_ts tcp_time_stamp
#define tcp_in_slow_start(tp) ((tp)->snd_cwnd < (tp)->snd_ssthresh)
#define tcp_in_initial_slowstart(tp) ((tp)->snd_ssthresh >= TCP_INFINITE_SSTHRESH)
static inline bool tcp_in_cwnd_reduction(const struct sock *sk) {
	return ((TCPF_CA_CWR | TCPF_CA_Recovery) & (1 << inet_csk(sk)->icsk_ca_state)) != 0;
}
static inline bool tcp_is_cwnd_limited(const struct sock *sk) {
	const struct tcp_sock *tp = tcp_sk(sk);

	return kernel_call.cwnd_limited
		|| (tcp_in_slow_start(tp) && tp->snd_cwnd < 2 * kernel_call.max_packets_out);
}
static inline u32 tcp_current_ssthresh(const struct sock *sk) {
	const struct tcp_sock *tp = tcp_sk(sk);

	return tcp_in_cwnd_reduction(sk)
		? tp->snd_ssthresh
		: max(tp->snd_ssthresh, (tp->snd_cwnd >> 1) + (tp->snd_cwnd >> 2));
}
u32 tcp_slow_start(struct tcp_sock *tp, u32 acked);
void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 window, u32 acked);
u32 tcp_reno_ssthresh(struct sock *sk);
u32 tcp_reno_undo_cwnd(struct sock *sk);
void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked);
#define tcp_enter_cwr(sk) ((void)(kernel_call.enters_cwr = true))

// What a control tells the kernel, and nothing here needs.
struct net {
	struct {
		u8 sysctl_tcp_min_tso_segs, sysctl_tcp_plb_enabled;
	} ipv4;
};
#define sock_net(sk) (&(struct net){{.sysctl_tcp_min_tso_segs = 2}})
#define NET_INC_STATS(net, counter) ((void)0)
#define NET_ADD_STATS(net, counter, n) ((void)0)
#define INET_ECN_dontxmit(sk) ((void)0)
#define __tcp_send_ack(...) ((void)0)
#define TCP_PLB_SCALE 8
struct tcp_plb_state {
	u32 pause_until;
};
#define tcp_plb_init(sk, plb) ((void)0)
#define tcp_plb_update_state(sk, plb, ratio) ((void)(ratio))
#define tcp_plb_check_rehash(sk, plb) ((void)0)
#define tcp_plb_update_state_upon_rto(sk, plb) ((void)0)
