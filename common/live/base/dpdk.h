// SPDX-License-Identifier: BSD-3-Clause
// To be included first in every file that includes DPDK: rte_cycles.h also defines NS_PER_S, as an
// int, where ns.h has 64 bits.
#pragma once
#include <rte_cycles.h>

#undef NS_PER_S
#include "common/base/ns.h"
