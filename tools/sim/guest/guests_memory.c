// SPDX-License-Identifier: BSD-3-Clause
// The memory of a run's guests, and the settings that Linux derives from it.
//
// A kernel sizes its TCP by its memory: in 128 MB tcp_rmem ends at 908 kB, where any ordinary host
// has 6 MB. A guest has the settings of a host of 16 GB, and as much memory as its connections can
// fill:
//
//	memory = 128 MB + min(4 * bytes that the network can hold,
//	                      flows * (tcp_rmem + tcp_wmem) maxima)
//
// 4: a sender keeps up to two windows (tcp_sndbuf_expand), and a kernel's buffers are up to twice
// what they hold. Pages that a guest does not touch cost the host nothing. A `memory:` in which
// these buffers would be under pressure is refused.
#include "common/base/fact.h"
#include "tools/sim/guest/guests_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define BASE_BYTES (128 * UINT64_C(1048576))
#define KERNEL_BYTES (48 * UINT64_C(1048576)) // of the memory, not for TCP
#define PAGE_BYTES 4096
#define HELD 4

// Linux: net/ipv4/tcp.c, tcp_init(), of a host with 16 GB.
static const struct guest_sysctl host[] = {
	{"net/ipv4/tcp_rmem", "4096 131072 6291456"},
	{"net/ipv4/tcp_wmem", "4096 16384 4194304"},
	{"net/ipv4/tcp_max_tw_buckets", "65536"},
	{"net/ipv4/tcp_max_orphans", "65536"},
	{"net/ipv4/tcp_max_syn_backlog", "1024"},
};
#define HOST_SYSCTLS (sizeof(host) / sizeof(host[0]))
static_assert(GUEST_SYSCTLS >= STACK_SYSCTLS + HOST_SYSCTLS + 1, "and tcp_mem");

// The third number of a buffer's setting, which is the group's if it has one.
static uint64_t buffer_max(const struct stack *st, size_t which) {
	const char *value = host[which].value;
	unsigned long long most = 0;

	for (uint32_t i = 0; i < st->sysctls; i++) {
		if (strcmp(st->sysctl[i].name, host[which].name) == 0)
			value = st->sysctl[i].value;
	}
	return sscanf(value, "%*u %*u %llu", &most) == 1 ? most : 0;
}

// What its connections can fill.
static uint64_t buffers_bytes(const struct guests *gs, uint32_t index) {
	const struct stack *st = guests_stack(gs, index);
	uint64_t held = HELD * gs->env.pipe_segs * FRAME_ROOM,
		 most = gs->place[index].flows * (buffer_max(st, 0) + buffer_max(st, 1));

	return time_min(held, most);
}

uint64_t guests_memory_bytes(const struct guests *gs, uint32_t index) {
	const struct stack *st = guests_stack(gs, index);

	return st->memory_bytes > 0 ? st->memory_bytes : BASE_BYTES + buffers_bytes(gs, index);
}

static uint64_t tcp_bytes(uint64_t memory_bytes) {
	return memory_bytes - time_min(KERNEL_BYTES, memory_bytes / 2);
}

int guests_memory_check(const struct guests *gs, struct err *err) {
	for (uint32_t i = 0; i < gs->count; i++) {
		const struct guests_place *at = &gs->place[i];
		uint64_t memory = guests_memory_bytes(gs, i), filled = buffers_bytes(gs, i),
			 tcp = filled / 3 * 4, needed = tcp + time_min(KERNEL_BYTES, tcp);

		if (tcp_bytes(memory) / 4 * 3 >= filled)
			continue;
		return err_set(err, -EINVAL,
			"memory: %llu MB for a guest of group %u (%s) is too little: its "
			"connections (%u) can fill %llu MB of the kernel's buffers on these paths, "
			"and %llu MB are needed; or lower tcp_rmem and tcp_wmem",
			(unsigned long long)(memory / 1000000), at->group,
			at->sender ? "stack" : "peer", at->flows,
			(unsigned long long)(filled / 1000000),
			(unsigned long long)(needed / 1000000 + 1));
	}
	return 0;
}

// Below the first of tcp_mem's three numbers memory bounds nothing, from the second on the kernel
// counts it as pressure: as both are the same, no bound is silent.
void guests_config_memory(const struct guests *gs, uint32_t index, struct guest_config *config) {
	uint64_t all = guests_memory_bytes(gs, index), pages = tcp_bytes(all) / PAGE_BYTES,
		 much = pages / 4 * 3;
	struct guest_sysctl *last = &config->sysctl[HOST_SYSCTLS];

	memcpy(config->sysctl, host, sizeof(host));
	snprintf(last->name, sizeof(last->name), "net/ipv4/tcp_mem");
	snprintf(last->value, sizeof(last->value), "%llu %llu %llu", (unsigned long long)much,
		(unsigned long long)much, (unsigned long long)pages);
	config->sysctls = HOST_SYSCTLS + 1;
}

static void say(const struct guests *gs, uint32_t index, struct facts *verdict) {
	const struct guest_shortage *s = &gs->guest[index].shortage;
	const struct guests_place *at = &gs->place[index];
	struct fact f;

	fact_set(&f, "guest_memory",
		"guest %u (%s of group %u) was short of memory for its buffers, as an ordinary "
		"host is not: TCPMemoryPressures %llu, PruneCalled %llu, RcvPruned %llu; "
		"raise memory or tcp_rmem",
		index, at->sender ? "stack" : "peer", at->group, (unsigned long long)s->pressures,
		(unsigned long long)s->prunes, (unsigned long long)s->pruned);
	fact_number(&f, "guest", index);
	fact_number(&f, "group", at->group);
	fact_number(&f, "tcp_memory_pressures", (double)s->pressures);
	fact_number(&f, "prune_called", (double)s->prunes);
	fact_number(&f, "rcv_pruned", (double)s->pruned);
	facts_add(verdict, &f);
}

void guests_faults(const struct guests *gs, struct facts *verdict) {
	for (uint32_t i = 0; gs != NULL && i < gs->count; i++) {
		const struct guest_shortage *s = &gs->guest[i].shortage;

		if (s->pressures + s->prunes + s->pruned > 0)
			say(gs, i, verdict);
	}
}
