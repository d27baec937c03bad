// SPDX-License-Identifier: BSD-3-Clause
// The processor's time that this process took.
#include "tools/sim/run/cpu_clock.h"

#include <time.h>

double cpu_clock_s(void) {
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
