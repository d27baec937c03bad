// SPDX-License-Identifier: BSD-3-Clause
// Statistics and control through rte_telemetry: the part that both live programs share.
//
// Handlers run on rte_telemetry's threads. They post a request to the lcore and wait for the
// answer; the lcore never waits for them. A failed command is answered with one sentence under
// "error".
#pragma once
#include "common/live/base/dpdk.h"

#include "common/base/err.h"

#include <rte_telemetry.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct live_app;

// A request to an lcore, which checks between bursts whether one is posted. One thread asks at a
// time: from control_begin to control_end it owns all boxes and the lcores' answers.
struct control_box {
	_Atomic bool open; // the lcore checks for requests
	_Atomic bool posted;
	int request; // from the program's enumeration
	uint32_t first; // of a list: the first item asked for
};

void control_begin(void);
void control_end(void);
// 0: a request may be posted. -EAGAIN: the lcore does not run, or has not answered the request
// before; then the caller may not write to data that the pending answer reads. `lcore` ("the
// switch") is its name in `err`.
int control_free(const struct control_box *box, const char *lcore, struct err *err);
// Posts a request and waits for the answer: 0; -EAGAIN as above; -ETIMEDOUT after 5 s.
int control_ask(
	struct control_box *box, int request, uint32_t first, const char *lcore, struct err *err);

// Called by the lcore: whether it checks for requests from now on.
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
	const char *name; // "/weir/info"
	const char *help;
	// Writes the answer into `d`, an empty dictionary. `params` is the text after the comma, or
	// "". False: there is no answer, and `err` has the reason. Called between control_begin and
	// control_end.
	bool (*answer)(
		struct live_app *app, const char *params, struct rte_tel_data *d, struct err *err);
};
// Registers `commands`, an array that ends with a name of NULL. Once per process.
int control_register(const struct control_command *commands, struct live_app *app, struct err *err);

// rte_telemetry cuts an answer off at 16 KB. A long list is therefore sent in parts of so many
// dictionaries, or strings: "/weir/links,24" begins with the 25th link; /weir/info has their
// number.
#define CONTROL_DICTS 24
#define CONTROL_STRINGS 96
// The index of the first item that `params` asks for.
uint32_t control_first(const char *params);

// Adds a dictionary to `d`. In its name rte_telemetry allows letters, digits, '_' and '/' only:
// "forward.link" becomes "forward/link", any other byte "_x" and two hexadecimal digits, so that no
// two names are one. (DPDK 22.11 prints no arrays of dictionaries.) NULL: no memory; nothing may be
// written into it.
struct rte_tel_data *control_dict(struct rte_tel_data *d, const char *name);
// Adds a text. rte_telemetry makes no JSON of bytes beyond ASCII and cuts a text off at 127: such
// bytes are written as in a URL (%C3%A9), and what is longer goes on under "name/2", "name/3".
void control_text(struct rte_tel_data *d, const char *name, const char *value);
// Writes as much of a text as `out` holds in that way; returns what is left of it.
const char *control_encode(const char *text, char *out, size_t size);
void control_u64(struct rte_tel_data *d, const char *name, uint64_t value);
// Adds a number as text, because rte_telemetry has no fractions.
void control_f64(struct rte_tel_data *d, const char *name, double value);
