// SPDX-License-Identifier: BSD-3-Clause
// The folder of a file prefix in DPDK's runtime folder: one program has it at a time, and leaves
// none behind.
#pragma once
#include "common/base/err.h"

struct eal_args;

// -EBUSY and the sentence for it.
int eal_folder_taken(const struct eal_args *args, struct err *err);
// Before the EAL starts: 0, or -EBUSY if a program answers there, one without this lock too. DPDK
// itself lets programs with --in-memory share a folder.
int eal_folder_check(const struct eal_args *args, struct err *err);
// Locks the folder, if there is one, until *fd is closed: 0 or -errno. `err` may be NULL.
int eal_folder_lock(int *fd, const struct eal_args *args, struct err *err);
// Removes it with all that DPDK has in it. The caller has the lock.
void eal_folder_remove(void);
