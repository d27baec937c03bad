// SPDX-License-Identifier: BSD-3-Clause
// The memory that weir-sim shares with a guest's kernel (its clock) and with what is preloaded into
// that (page.c).
#pragma once
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
	uint32_t calls; // weir-sim: interrupts, a bit for each enum vhost_queue
	uint32_t kicked; // kernel: it has made frames available since it was resumed
	uint32_t ran; // kernel: it has run since then, having asked for a time up to now
	uint64_t until_ns; // weir-sim: up to which time it may go on by itself when it runs
};
#define PAGE_KERNEL_BYTES (4096 + 2 * 128)
static_assert(offsetof(struct calendar_page, client) == 4096, "as the kernel has it");
static_assert(offsetof(struct calendar_page, on) == PAGE_KERNEL_BYTES, "as the kernel has it");
