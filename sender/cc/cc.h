// SPDX-License-Identifier: BSD-3-Clause
// The congestion controls within Weir. Their interface is public: common/weir/cc.h.
#pragma once
#include "common/base/ns.h"
#include "common/weir/cc.h"

extern const struct cc_ops *const cc_all[]; // ends with NULL
const struct cc_ops *cc_find(const char *name);
