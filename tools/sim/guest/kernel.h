// SPDX-License-Identifier: BSD-3-Clause
// The kernels of a run's guests, as tools/src/weir/guests/kernels.py keeps them.
#pragma once
#include "common/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KERNEL_NAME_SIZE 32
#define KERNELS_MAX 8 // in a run
#define KERNEL_QUIC "%s/../quic" // QUIC stacks' programs (stacks.py), from a kernel's folder
#define KERNEL_CURRENT "current" // Debian's, unless a config names another one

struct kernel {
	char name[KERNEL_NAME_SIZE];
	char folder[512]; // which has linux, guest.json and MODULE.ko
	// Of guest.json; "": not known.
	char release[128], package[128], version[128], options[128];
	char controls[1024]; // congestion controls, with spaces between
	char modules[2048]; // in the order in which they are loaded, likewise
};

struct kernels {
	struct kernel kernel[KERNELS_MAX];
	uint32_t count;
};

// The number of the kernel with this name, which is found if it is not there yet. -ENOENT, -E2BIG,
// -EINVAL and a sentence.
int kernels_find(struct kernels *all, const char *name, struct err *err);
// Whether a word is among others with spaces between.
bool kernel_word(const char *words, const char *word);
// The next of them, whose place moves behind it; false: there are no more.
bool kernel_next_word(const char **words, char *word, size_t size);
// Whether the kernel's module NAME.ko has this parameter.
bool kernel_module_has(const struct kernel *k, const char *module, const char *param);
