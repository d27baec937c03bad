// SPDX-License-Identifier: BSD-3-Clause
// Shared by the files of the guests of a run.
#pragma once
#include "common/run/run.h"
#include "tools/sim/frame.h"
#include "tools/sim/guest/guests.h"
#include "tools/sim/guest/ip_flows.h"
#include "tools/sim/guest/kernel.h"
#include "tools/sim/side.h"

#define NO_GUEST UINT16_MAX

// What is known of a guest besides what it does.
struct guests_place {
	bool sender;
	uint16_t group;
	uint32_t shard; // of the group's hosts
	uint32_t flows;
	uint32_t kernel; // its number among the run's
};

// A side with guests: its host and they.
struct guests_node {
	struct node node;
	struct guests *of;
	bool sender;
	bool begun; // the packets of this window have been taken
};

struct guests {
	struct guests_env env;
	struct guests_node node[FLOWS_DIRECTIONS];
	host_output *sender_output; // what our sender's segments take without guests
	struct guest_folder folder;
	struct kernels kernels;
	struct guest *guest;
	struct pool *pool; // of each guest's frames
	struct guests_place *place;
	struct ip_flows *ip_flows; // of each guest
	uint32_t count;
	struct flow_count *back; // the sender's (host.h)
	uint16_t *of_flow[2]; // by side, receiver first: the flow's guest, or NO_GUEST
	struct pkt_list held[2]; // packets for our transport in this window
	int begun; // sides whose guests are to run: 1 receivers, 2 senders, 3 both
};

// guests_kernels.c: each guest's kernel, or a sentence: it is not there, or lacks what is asked
// for.
int guests_find_kernels(struct guests *gs, struct err *err);
const struct kernel *guests_kernel(const struct guests *gs, uint32_t index);
void guests_config_modules(const struct guests *gs, uint32_t index, struct guest_config *config);
// The list "kernels" of the summary.
void guests_kernels_summary(const struct guests *gs, struct json *j);
// guests_memory.c: a guest's memory, and the settings of an ordinary host, which depend on that.
uint64_t guests_memory_bytes(const struct guests *gs, uint32_t index);
// -EINVAL and a sentence: the config gives one less than its connections need.
int guests_memory_check(const struct guests *gs, struct err *err);
void guests_config_memory(const struct guests *gs, uint32_t index, struct guest_config *config);
// report.c: what a guest says of a connection, into the flow's counters and telemetry.
void guests_report(struct guests *gs, const struct sample *m);
// Counts of QUIC stacks' connections, at the end of an interval.
void guests_quic_flows(struct guests *gs, uint64_t now_ns);
uint32_t guests_flow_of_port(
	const struct guests *gs, uint32_t guest, uint32_t sender_ip, uint16_t sender_port);
// window.c
extern const struct node_ops guests_node_ops;
host_output guests_sender_output, guests_receiver_output; // ctx: the guests
static inline struct side *guests_side(struct guests *gs, bool sender) {
	return &gs->env.side[sender ? FLOWS_FORWARD : FLOWS_REVERSE];
}
static inline const struct stack *guests_stack(const struct guests *gs, uint32_t index) {
	const struct group *g = &gs->env.groups->group[gs->place[index].group];

	return gs->place[index].sender ? &g->stack : &g->peer;
}
// guests.c
uint32_t guests_of_side(const struct group *g, bool sender);
// packets.c: the packet of a guest's frame, and the frame of a packet for it.
uint8_t guests_pool_of(const struct guests *gs, uint32_t guest);
struct pkt *guests_packet(void *ctx, uint32_t guest, const uint8_t *frame, uint32_t size);
uint32_t guests_encode(void *ctx, uint32_t guest, const struct pkt *p, uint8_t *frame);
// A packet of an IP flow: enters the first path at its arrival_ns; has left the last one for the
// guest that is returned.
void guests_ip_sent(struct guests *gs, struct pkt *p);
uint32_t guests_ip_received(struct guests *gs, struct pkt *p);
