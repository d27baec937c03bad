// SPDX-License-Identifier: BSD-3-Clause
// What a congestion control of Linux calls.
#include <weir/linux/kernel.h>

u32 get_random_u32(void) {
	u64 x = kernel_call.now_ns + ((u64)kernel_call.packets_in_flight << 40)
		+ ((u64)kernel_call.draws++ << 56) + kernel_call.rtt_min_us;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9; // splitmix64
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
	return (u32)((x ^ (x >> 31)) >> 16);
}

void get_random_bytes(void *at, size_t size) {
	for (size_t i = 0; i < size; i++)
		((u8 *)at)[i] = (u8)get_random_u32();
}

// The best sample s[0], the best after it, and the best after that; each gives way as its quarter
// and half of the window have passed.
static u32 minmax_running(struct minmax *m, u32 window, u32 t, u32 v, bool most) {
	const struct minmax_sample x = {t, v};
	struct minmax_sample *s = m->s;
	u32 age;

	if ((most ? v >= s[0].v : v <= s[0].v) || t - s[2].t > window)
		return minmax_reset(m, t, v);
	if (most ? v >= s[1].v : v <= s[1].v)
		s[2] = s[1] = x;
	else if (most ? v >= s[2].v : v <= s[2].v)
		s[2] = x;
	age = t - s[0].t;
	if (age > window) {
		s[0] = s[1];
		s[1] = s[2];
		s[2] = x;
		if (t - s[0].t > window) {
			s[0] = s[1];
			s[1] = s[2];
		}
	} else if (s[1].t == s[0].t && age > window / 4) {
		s[2] = s[1] = x;
	} else if (s[2].t == s[1].t && age > window / 2) {
		s[2] = x;
	}
	return s[0].v;
}

u32 minmax_running_max(struct minmax *m, u32 window, u32 t, u32 v) {
	return minmax_running(m, window, t, v, true);
}

u32 minmax_running_min(struct minmax *m, u32 window, u32 t, u32 v) {
	return minmax_running(m, window, t, v, false);
}

// Reno's window, which other controls begin with.
u32 tcp_slow_start(struct tcp_sock *tp, u32 acked) {
	u32 cwnd = min(tp->snd_cwnd + acked, tp->snd_ssthresh);

	acked -= cwnd - tp->snd_cwnd;
	tp->snd_cwnd = min(cwnd, tp->snd_cwnd_clamp);
	return acked;
}

void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 window, u32 acked) {
	if (tp->snd_cwnd_cnt >= window) {
		tp->snd_cwnd_cnt = 0;
		tp->snd_cwnd++;
	}
	tp->snd_cwnd_cnt += acked;
	if (tp->snd_cwnd_cnt >= window) {
		tp->snd_cwnd += tp->snd_cwnd_cnt / window;
		tp->snd_cwnd_cnt %= window;
	}
	tp->snd_cwnd = min(tp->snd_cwnd, tp->snd_cwnd_clamp);
}

u32 tcp_reno_ssthresh(struct sock *sk) {
	return max(tcp_sk(sk)->snd_cwnd >> 1, 2u);
}

u32 tcp_reno_undo_cwnd(struct sock *sk) {
	return max(tcp_sk(sk)->snd_cwnd, tcp_sk(sk)->prior_cwnd);
}

void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked) {
	struct tcp_sock *tp = tcp_sk(sk);

	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp))
		acked = tcp_slow_start(tp, acked);
	if (acked > 0)
		tcp_cong_avoid_ai(tp, tp->snd_cwnd, acked);
}

int param_set_uint_minmax(
	const char *text, const struct kernel_param *param, unsigned least, unsigned most) {
	unsigned long value = strtoul(text, NULL, 0);

	return value < least || value > most ? -EINVAL : 0;
}
