// SPDX-License-Identifier: BSD-3-Clause
// manifest.json: what ran, with which versions, on which host, when, and how it ended. Private to
// run/.
#pragma once
#include "common/run/run.h"

// Writes it, or writes it again. verdict NULL: the run goes on, and exit_status is not read.
// 0 or -errno with a sentence.
int manifest_write(struct run *r, const char *verdict, int exit_status, struct err *err);
