// SPDX-License-Identifier: BSD-3-Clause
// A guest's clock: the external time travel of User Mode Linux (Linux:
// include/uapi/linux/um_timetravel.h).
//
// The guest connects, asks for times at which it wants to run, and waits. It is then run at such a
// time, and may go on by itself until `free_until`. From 6.12 on all but START, GET_TOD, WAIT and
// RUN goes through a page of shared memory; before, each is a message and, but for an ACK, has an
// ACK.
//
// Once a guest with such a page has booted, not even WAIT and RUN are messages, nor what passes
// between its kernel and its card: of weir-sim and the guest one is active, and they alternate,
// once per window (page.h).
#pragma once
#include "common/base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct calendar_page;

struct calendar {
	int listener, fd; // -1: closed
	int page_fd; // of the page, which the guest's process inherits
	struct calendar_page *page; // a kernel before 6.12 does not take it
	bool waits; // the guest waits to be run
	bool requested; // it has asked for
	uint64_t request_ns; // this time
	uint64_t now_ns; // it was at this time last
	uint64_t free_until_ns; // messages: what it was told
	uint32_t seq;
	bool shared; // offer shared memory
};

// Listens at a socket in the working directory of the guest.
int calendar_open(struct calendar *c, const char *path, struct err *err);
// The guest has connected: takes its connection. False: not yet.
bool calendar_accept(struct calendar *c);
// Reads one message and answers it. 0, -EPIPE: the guest has closed its end; -EPROTO.
int calendar_serve(struct calendar *c);
// Looks for what a waiting guest has asked for since: an interrupt may have changed it.
void calendar_refresh(struct calendar *c);
// Lets the guest, which waits, run at `now_ns`, and by itself as long as its time is before
// `until_ns`.
int calendar_run(struct calendar *c, uint64_t now_ns, uint64_t until_ns);
// Sets the time at which a waiting guest is about to be interrupted.
void calendar_set(struct calendar *c, uint64_t now_ns);
// A running guest is not to go on by itself so far as it was told.
int calendar_hurry(struct calendar *c, uint64_t until_ns);
// The guest waits now, and calendar_run lets it run a last time; its next WAIT is no message, but
// resumes weir-sim.
// False: it has no page, and messages remain.
bool calendar_leave_messages(struct calendar *c);
bool calendar_uses_page(const struct calendar *c);
// Resumes the guest, which goes on by itself (page.c); and waits until it is done. 0 or as
// socket_wait.
void calendar_resume(struct calendar *c);
int calendar_await(struct calendar *c);
// Where a running guest's clock is.
uint64_t calendar_now(const struct calendar *c);
void calendar_close(struct calendar *c);
