// SPDX-License-Identifier: BSD-3-Clause
// Public: what a congestion control of Linux includes that is a BPF program (struct_ops). It is
// compiled as the kernel's own files are, and no verifier sees it. It may call what they may, and
// these helpers; the compiler names any other one, such as those of maps.
#pragma once
// Programs have functions of these names themselves.
#define before kernel_before
#define fls64 kernel_fls64
#include <weir/linux/kernel.h>
#undef before
#undef fls64
#undef min
#undef max
#undef clamp
#undef min_not_zero
#undef div64_u64
#undef div64_ul
#undef tcp_packets_in_flight

#define SEC(name) __attribute__((used))
#define BPF_PROG(name, ...) name(__VA_ARGS__)
#define __ksym
#define __kconfig
#define __always_inline inline __attribute__((always_inline))
#define __uint(name, value) int(*name)[value]
#define __type(name, type) __typeof__(type) *name
#define BPF_CORE_READ(from, field) ((from)->field)
#define bpf_printk(...) (0)
#define bpf_ktime_get_ns() (kernel_call.now_ns)
#define bpf_jiffies64() ((u64)jiffies)
#define bpf_get_prandom_u32() get_random_u32()
// Acknowledgements of a receiver, which a control here never is.
#define bpf_tcp_send_ack(...) (0)

unsigned long CONFIG_HZ = HZ;

// Of its control the Makefile knows the name.
extern struct tcp_congestion_ops KERNEL_BPF_CONTROL;
static int kernel_bpf_init(void) {
	return tcp_register_congestion_control(&KERNEL_BPF_CONTROL);
}
module_init(kernel_bpf_init);
