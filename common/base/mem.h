// SPDX-License-Identifier: BSD-3-Clause
// Large tables: zeroed, page-aligned, in 2 MB pages where the kernel has them.
//
// A table of packets or flows is read in no order, so with 4 kB pages most reads miss the TLB too.
// Memory is reserved, not used: a page counts when it is first written.
#pragma once
#include <stddef.h>

// NULL: the machine has no room. Give it back with mem_unmap and the same size.
void *mem_map(size_t bytes);
void mem_unmap(void *p, size_t bytes); // NULL is allowed
