// SPDX-License-Identifier: BSD-3-Clause
// The memory that weir-sim shares with a guest's kernel (its clock) and with what is preloaded into
// that (page.c).
#pragma once
#include "tools/sim/guest/card.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define PAGE_VERSION 2
#define PAGE_GUEST 1 // its place among the page's clients; 0 is ours
#define PAGE_CAN_SHARE 1u // client.capa
#define PAGE_WANTS_RUN 1u // client.flags

// The active side; the other one waits until the word changes (futex(2)).
enum page_side { PAGE_SIM, PAGE_KERNEL };

struct calendar_page {
	// As the kernel has it (Linux: include/uapi/linux/um_timetravel.h).
	uint32_t version, len;
	uint64_t free_until_ns, now_ns;
	uint16_t running, clients;
	char pad[4096 - 28];
	struct {
		uint32_t capa, flags;
		uint64_t request_ns, name;
		char pad[104];
	} client[2];
	// The rest is between weir-sim and page.c.
	uint32_t on; // weir-sim: the page replaces messages
	uint32_t active; // enum page_side
	uint32_t waits; // kernel: it waits to be run, rather than for room in `card.out`
	uint32_t bad; // kernel: it has rings that no driver would make
	uint64_t end_ns; // weir-sim: up to which time it may go on by itself
	struct {
		uint16_t taken, given;
	} ring[VHOST_QUEUES]; // weir-sim: where the card was when `on` was set
	struct card card;
};
#define PAGE_KERNEL_BYTES (4096 + 2 * 128)
static_assert(offsetof(struct calendar_page, client) == 4096, "as the kernel has it");
static_assert(offsetof(struct calendar_page, on) == PAGE_KERNEL_BYTES, "as the kernel has it");
