// SPDX-License-Identifier: BSD-3-Clause
// Comes first in every file that includes DPDK: rte_cycles.h has a macro NS_PER_S of its own, an
// int, where ns.h has 64 bits.
#pragma once
#include <rte_cycles.h>

#undef NS_PER_S
#include "common/base/ns.h"
