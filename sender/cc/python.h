// SPDX-License-Identifier: BSD-3-Clause
// Congestion controls in Python, in virtual time: weir-python.so beside the program speaks with
// them (tools/sim/agent).
#pragma once
#include "common/base/err.h"
#include "sender/cc/cc.h"

// The control that FILE:CLASS names, and the files beside it that it imports (up to a NULL); both
// live as long as the program. -EINVAL and a sentence: the program has no Python, or the class is
// no control.
struct cc_python {
	const struct cc_ops *ops;
	const char *const *imports;
};
int cc_python_open(const char *text, struct cc_python *control, struct err *err);
