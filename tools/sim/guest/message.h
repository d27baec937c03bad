// SPDX-License-Identifier: BSD-3-Clause
// What weir-sim and the program inside a guest say to each other.
//
//	config    weir-sim -> guest   the file /config of its initramfs
//	READY   guest -> weir-sim   it has booted and set up its interface; the guest's clock
//	GO      weir-sim -> guest   the difference between the run's clock and the guest's
//	SAMPLES guest -> weir-sim   what the kernel says of its connections (TCP_INFO)
//	OUTPUT  guest -> weir-sim   what a program of the host has printed (`run`)
//	ENDED   guest -> weir-sim   that program has ended
//	MEMORY  guest -> weir-sim   its kernel was short of memory
//
// Messages are Ethernet frames of a type of their own. They pass no queue, no card and no path and
// take no time. Both sides run on one machine, so that structs travel as they are.
#pragma once
#include <assert.h>
#include <stdint.h>

#define MESSAGE_ETHERTYPE 0x88b5 // IEEE 802: local experiments
#define MESSAGE_ETH 14

enum message_kind {
	MESSAGE_READY = 1,
	MESSAGE_GO,
	MESSAGE_SAMPLES,
	MESSAGE_BAD,
	MESSAGE_OUTPUT,
	MESSAGE_ENDED,
	MESSAGE_MEMORY
};

struct message {
	uint32_t kind;
	// SAMPLES: how many follow; BAD, OUTPUT: bytes of the text that follows; ENDED: the status
	// of wait(2)
	uint32_t count;
	// READY, SAMPLES: the guest's; GO: what to add to the guest's to get the run's.
	uint64_t clock_ns;
};

enum sample_event { SAMPLE_NOW, SAMPLE_OPENED, SAMPLE_CLOSED, SAMPLE_FAILED, SAMPLE_RECEIVED };

// Of one connection; units as in the kernel's struct tcp_info, times in ns.
struct sample {
	uint64_t clock_ns; // the guest's, when the kernel was asked
	uint64_t bytes; // sender: acknowledged; RECEIVED: read
	uint64_t back_bytes; // RECEIVED, of a program: acknowledged of what this side has sent
	uint64_t delivery_Bps, pacing_Bps;
	uint32_t flow;
	uint32_t srtt_us, rttvar_us, min_rtt_us;
	uint32_t cwnd, ssthresh;
	uint32_t unacked, sacked, lost, retrans;
	uint32_t data_segs_out, total_retrans, delivered, delivered_ce, timeouts, dsacks;
	uint8_t event; // enum sample_event
	uint8_t ca_state;
	uint8_t app_limited;
	uint8_t error; // FAILED: errno
};
static_assert(sizeof(struct sample) == 112, "no padding");

// Of /proc/net/netstat, since the guest was booted.
struct guest_shortage {
	uint64_t pressures; // TCPMemoryPressures
	uint64_t prunes; // PruneCalled
	uint64_t pruned; // RcvPruned
};

#define SAMPLES_MAX 12 // in a frame

#define GUEST_TEXT 64
#define GUEST_SYSCTLS 24 // a group's, behind those of an ordinary host
#define GUEST_LOADED 32 // recipe.py: MODULES_MAX
#define GUEST_MODULES (GUEST_LOADED + 8) // and built in ones with parameters
#define GUEST_PARAMS 256
#define GUEST_RUN 1280
#define GUEST_STACKS "/tmp/weir-quic"
#define GUEST_ENDLESS UINT64_MAX
#define GUEST_NEVER UINT64_MAX

struct guest_sysctl {
	char name[GUEST_TEXT], value[GUEST_TEXT]; // "net/ipv4/tcp_ecn", "1"
};

// A module of the kernel: /modules/NAME.ko, or built in.
struct guest_module {
	char name[GUEST_TEXT];
	char params[GUEST_PARAMS]; // "a=1 b=2"
	uint32_t built_in;
};

struct guest_config {
	uint32_t sender; // else receiver
	uint32_t flows; // follow the struct
	uint32_t ip, peer_ip; // network order
	uint8_t mac[8], peer_mac[8]; // six bytes each
	uint16_t port; // of the receiver
	uint16_t mtu;
	uint32_t tos; // of its connections: DSCP * 4
	uint32_t sysctls;
	uint32_t ipv6; // its flows are of it; the addresses are the last 32 bits of 2001:2::/96
	uint64_t interval_ns, warmup_ns, duration_ns; // intervals end with these
	uint64_t stop_over_ns; // and with the ticks of a rule (stop.h); 0: there is none
	uint64_t ahead_ns; // by which a sample precedes the end of its interval
	uint64_t pause_ns, resume_ns; // receiver: reads nothing between these; GUEST_NEVER
	uint64_t close_ns; // all open connections are closed then; GUEST_NEVER
	uint64_t close_by_reset;
	uint64_t run_ns, run_stop_ns; // when `run` is started, and is sent SIGTERM; GUEST_NEVER
	char run[GUEST_RUN]; // a shell command, which does what this program would do; "": none
	char folder[GUEST_RUN]; // in which it begins
	char files[GUEST_RUN]; // the host's folder that it sees as $WEIR_OUT
	char stacks[GUEST_RUN]; // the host's folder that it sees as GUEST_STACKS; "": none
	char cc[GUEST_TEXT], qdisc[GUEST_TEXT];
	struct guest_sysctl sysctl[GUEST_SYSCTLS];
	struct guest_module module[GUEST_MODULES]; // in the order in which they are loaded
	uint32_t modules;
};

struct guest_flow {
	uint64_t start_ns, stop_ns; // the run's clock
	uint64_t bytes; // GUEST_ENDLESS
	uint32_t flow;
	uint16_t port; // of the sender
	uint16_t mss; // 0: the kernel's choice
};
