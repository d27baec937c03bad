// SPDX-License-Identifier: BSD-3-Clause
// Large tables: zeroed, page-aligned, in 2 MB pages where the kernel has them.
//
// A table of packets or flows is read in random order, so with 4 kB pages most reads miss the TLB
// too.
// Memory is only reserved: a page is allocated by its first write.
#pragma once
#include "common/base/err.h"

#include <stddef.h>
#include <stdint.h>

// NULL: not enough memory. To be freed with mem_unmap and the same size.
void *mem_map(uint64_t bytes);
void mem_unmap(void *p, size_t bytes); // NULL is allowed
// -ENOMEM if the machine has less memory left. `what` names the consumer for the sentence.
int mem_check(uint64_t bytes, const char *what, struct err *err);
