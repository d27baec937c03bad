// SPDX-License-Identifier: BSD-3-Clause
// Statistics and control through rte_telemetry, as far as both live programs do it the same way.
//
// Handlers run on rte_telemetry's threads. They ask the lcore and wait; it never waits for them.
// An answer with an `error` has one sentence in it.
#pragma once
#include "base_dpdk.h"

#include "err.h"

#include <rte_telemetry.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// One question at a time in a process. Who asks has the box to itself from begin to end, fills in the
// question before control_wait and reads the answer after it; the lcore looks between bursts
// whether one is posted.
struct control_box {
	_Atomic bool posted;
};

// `who` ("the switch") is for the sentences. -EAGAIN: it does not run (`runs` is false), or never
// answered the question before.
int control_begin(struct control_box *box, bool runs, const char *who, struct err *err);
// 0, or -ETIMEDOUT after 5 s.
int control_wait(struct control_box *box, const char *who, struct err *err);
void control_end(void);

// The lcore's side.
static inline bool control_posted(const struct control_box *box) {
	return atomic_load_explicit(&box->posted, memory_order_acquire);
}
static inline void control_answered(struct control_box *box) {
	atomic_store_explicit(&box->posted, false, memory_order_release);
}

struct control_command {
	const char *command; // "/weir/info"
	telemetry_cb handler;
	const char *help;
};
int control_register(const struct control_command *commands, size_t n, struct err *err);

// rte_telemetry leaves out what does not fit into an answer's 16 KB. A long list comes in parts of so many
// dictionaries, or strings: "/weir/links,24" has what is from the 25th on, and /weir/info how many there are.
#define CONTROL_DICTS 24
#define CONTROL_STRINGS 96
// The first of the part that is asked for.
uint32_t control_first(const char *params);

// What answers are made of.
int control_error(struct rte_tel_data *d, const struct err *err);
int control_ok(struct rte_tel_data *d);
void control_u64(struct rte_tel_data *d, const char *name, uint64_t value);
// As text: rte_telemetry has no fractions.
void control_f64(struct rte_tel_data *d, const char *name, double value);
// A dictionary under a name, in which rte_telemetry takes letters, digits, '_' and '/' only:
// "forward.link" is called "forward/link". (Version 22.11 prints no arrays of dictionaries.)
void control_named(struct rte_tel_data *d, const char *name, struct rte_tel_data *one);
