// SPDX-License-Identifier: BSD-3-Clause
// Cards that are to be taken away while a program has them. The kernel asks the program for the
// card and waits, so that it works until it is closed.
#pragma once
#include <stdatomic.h>

// From now on sets *asked when the kernel asks for the device, a PCI address.
void removal_watch(const char *device, atomic_bool *asked);
void removal_unwatch(const char *device, atomic_bool *asked);
