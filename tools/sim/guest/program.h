// SPDX-License-Identifier: BSD-3-Clause
// A program of the host that a guest runs (`run`), as weir-sim sees it: what it prints goes into a
// file of the run folder, what it writes into $WEIR_OUT into a folder there, and one that fails
// ends the run.
#pragma once
#include "common/base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json;

#define PROGRAM_OUTPUT_MAX (64u << 20) // bytes

struct guest_program {
	const char *run; // its command, as configured; NULL: the guest runs none
	FILE *output;
	char files[600]; // guest-INDEX in the run folder, which it sees as $WEIR_OUT
	uint64_t bytes; // printed
	uint64_t stop_ns; // it is told to end then; NEVER_NS
	uint64_t ended_ns;
	bool ended;
	bool no_port; // it said so: all ports of its group are in use
	int status; // as wait(2) has it
	char line[128]; // the last one that is not empty
	uint32_t length; // of the line under way
	char next[128];
};

// Opens guest-INDEX.out in the run folder, and makes the folder guest-INDEX. `run` is not copied.
int program_open(struct guest_program *p, const char *run, uint64_t stop_ns, uint32_t index,
	const char *run_folder, struct err *err);
// It has printed `n` bytes. False, and a sentence: more than a run folder should hold.
bool program_output(
	struct guest_program *p, const void *text, uint32_t n, char *trouble, size_t size);
// It has ended. False, and a sentence: with an error, before it was told to end.
bool program_ended(
	struct guest_program *p, int status, uint64_t now_ns, char *trouble, size_t size);
// {guest, group, side, run, output, files, status, ended_ns}: files is null if it has written none,
// status as a shell says it; the last two are null if it still ran.
void program_summary(
	const struct guest_program *p, uint32_t index, uint32_t group, bool sender, struct json *j);
// A folder without files is removed.
void program_close(struct guest_program *p);
