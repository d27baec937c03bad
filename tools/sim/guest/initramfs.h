// SPDX-License-Identifier: BSD-3-Clause
// Writes a guest's initramfs: a cpio archive ("newc", Linux:
// Documentation/driver-api/early-userspace/buffer-format.rst) with /dev/console, /init, /config and
// the kernel's modules in /modules.
#pragma once
#include "common/base/err.h"

#include <stddef.h>

struct kernel;

// `init` names the program's file. 0 or a negative errno and a sentence.
int initramfs_write(const char *path, const char *init, const struct kernel *k, const void *config,
	size_t config_bytes, struct err *err);
