// SPDX-License-Identifier: BSD-3-Clause
// Writes a guest's initramfs: a cpio archive ("newc", Linux:
// Documentation/driver-api/early-userspace/buffer-format.rst) with /dev/console, /init and /plan.
#pragma once
#include "common/base/err.h"

#include <stddef.h>

// `init` names the program's file. 0 or a negative errno and a sentence.
int initramfs_write(
	const char *path, const char *init, const void *plan, size_t plan_bytes, struct err *err);
