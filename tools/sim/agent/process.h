// SPDX-License-Identifier: BSD-3-Clause
// The Python process: one for all controls of a run. It is started here, or is the parent that
// started this program and gave it both pipes and the memory (WEIR_AGENT).
#pragma once
#include "tools/sim/agent/page.h"

// Starts it, or finds the parent; *stop is not 0 from when the run is to end. The page; NULL with a
// sentence.
struct agent_page *agent_start(const volatile int *stop, char *error, size_t error_size);
// Asks what the page says and waits for the answer. False with a sentence: there is none.
bool agent_ask(struct agent_page *page, char *error, size_t error_size);
// Puts the caller's thread and the process on one CPU, where none of them waits long for the other:
// a CPU that sleeps takes several times as long to wake up as a call takes.
void agent_pin(struct agent_page *page);
// Says that the run is over, to a process that may be gone.
void agent_end(struct agent_page *page);
