// SPDX-License-Identifier: BSD-3-Clause
// A file of its own, as tools/web has another: a browser has no such clock.
#pragma once

// Returns the seconds of processor time that this process and its children took; NaN: no clock
// counts them.
double cpu_clock_s(void);
