// SPDX-License-Identifier: BSD-3-Clause
// The end of a run whose control, from outside, has failed: a control has nobody to return an error
// to.
#pragma once
#include "common/base/err.h"

// Ends the run (run_stop). The first sentence is the one that is said.
__attribute__((format(printf, 1, 2))) void cc_fail(const char *fmt, ...);
// Once the run has ended: -EIO and the sentence if a control has failed.
int cc_outcome(struct err *err);
