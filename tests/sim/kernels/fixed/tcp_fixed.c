// SPDX-License-Identifier: GPL-2.0
// A congestion control whose window is a parameter of its module: for tests of guests' modules.
#include <linux/module.h>
#include <net/tcp.h>

static unsigned int window = 10;
module_param(window, uint, 0444);

static u32 ssthresh(struct sock *sk) {
	return window;
}

static void keep(struct sock *sk, u32 ack, u32 acked) {
	tcp_snd_cwnd_set(tcp_sk(sk), window);
}

static u32 undo(struct sock *sk) {
	return window;
}

static struct tcp_congestion_ops fixed = {
	.ssthresh = ssthresh,
	.cong_avoid = keep,
	.undo_cwnd = undo,
	.owner = THIS_MODULE,
	.name = "fixed",
};

static int __init fixed_begin(void) {
	return tcp_register_congestion_control(&fixed);
}

static void __exit fixed_end(void) {
	tcp_unregister_congestion_control(&fixed);
}

module_init(fixed_begin);
module_exit(fixed_end);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A window that does not change");
