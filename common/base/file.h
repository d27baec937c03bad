// SPDX-License-Identifier: BSD-3-Clause
// Files in a folder that somebody else may have made.
#pragma once
#include <stdio.h>
#include <unistd.h>

// A new file, for writing, in the place of what has its name: that may be a link to any file, which
// keeps what it has. NULL: errno says why.
static inline FILE *file_new(const char *path) {
	unlink(path);
	return fopen(path, "wxe");
}
