// SPDX-License-Identifier: BSD-3-Clause
// Statistics and control through rte_telemetry, as far as both live programs do it the same way.
//
// Handlers run on rte_telemetry's threads. They ask the lcore and wait; it never waits for them.
// An answer with an `error` has one sentence in it.
#pragma once
#include "common/live/dpdk.h"

#include "common/base/err.h"

#include <rte_telemetry.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// One question at a time in a process. Who asks has all boxes to itself from begin to end, fills in a
// question between control_free and control_wait and reads the answer after that; the lcore looks
// between bursts whether one is posted.
struct control_box {
	_Atomic bool open; // somebody looks
	_Atomic bool posted;
};

void control_begin(void);
// `who` ("the switch") is for the sentences. -EAGAIN: it does not run, or never answered the question
// before.
int control_free(const struct control_box *box, const char *who, struct err *err);
// 0; -EAGAIN: it has ended; -ETIMEDOUT after 5 s.
int control_wait(struct control_box *box, const char *who, struct err *err);
void control_end(void);

// The lcore's side: from now on it looks, or does no more.
static inline void control_open(struct control_box *box, bool open) {
	atomic_store(&box->open, open);
}
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
//
// A dictionary for control_named; NULL: no memory.
struct rte_tel_data *control_dict(void);
int control_error(struct rte_tel_data *d, const struct err *err);
int control_ok(struct rte_tel_data *d);
void control_u64(struct rte_tel_data *d, const char *name, uint64_t value);
// As text: rte_telemetry has no fractions.
void control_f64(struct rte_tel_data *d, const char *name, double value);
// A dictionary under a name, in which rte_telemetry takes letters, digits, '_' and '/' only:
// "forward.link" is called "forward/link". (Version 22.11 prints no arrays of dictionaries.)
void control_named(struct rte_tel_data *d, const char *name, struct rte_tel_data *one);
