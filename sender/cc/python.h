// SPDX-License-Identifier: BSD-3-Clause
// Congestion controls in Python, in virtual time: weir-python.so beside the program speaks with
// them (tools/sim/agent).
#pragma once
#include "common/base/err.h"
#include "sender/cc/cc.h"

// The control that FILE:CLASS names; *ops lives as long as the program. -EINVAL and a sentence: the
// program has no Python, or the class is no control.
int cc_python_open(const char *text, const struct cc_ops **ops, struct err *err);
