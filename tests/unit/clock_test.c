// SPDX-License-Identifier: BSD-3-Clause
// The program's clock beside a kernel that is kept from its CPU while it is read.
#include "common/live/base/clock.h"

#include "test.h"

#include <math.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define AWAY_NS (50 * NS_PER_US)

static clockid_t late; // which clock's readings take AWAY_NS more, after the kernel gave the time
static unsigned reading, undisturbed; // of its readings one does not

static uint64_t kernel_ns(clockid_t id) {
	struct timespec ts;

	syscall(SYS_clock_gettime, id, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

// Takes the place of libc's in this program.
int clock_gettime(clockid_t id, struct timespec *ts) {
	bool away = id == late && reading++ != undisturbed;
	uint64_t end_ns = kernel_ns(CLOCK_MONOTONIC) + AWAY_NS;

	while (away && kernel_ns(CLOCK_MONOTONIC) < end_ns)
		;
	return (int)syscall(SYS_clock_gettime, id, ts);
}

// By how much UTC is ahead, read where the kernel kept the program away for the shortest time.
static int64_t utc_ahead_ns(void) {
	uint64_t shortest_ns = NEVER_NS;
	int64_t ahead_ns = 0;

	for (int i = 0; i < 64; i++) {
		uint64_t from_ns = kernel_ns(CLOCK_MONOTONIC), utc_ns = kernel_ns(CLOCK_REALTIME);
		uint64_t took_ns = kernel_ns(CLOCK_MONOTONIC) - from_ns;

		if (took_ns >= shortest_ns)
			continue;
		shortest_ns = took_ns;
		ahead_ns = (int64_t)(utc_ns - from_ns - took_ns / 2);
	}
	return ahead_ns;
}

// An anchor says the same moment on both clocks, whichever reading the program is kept from. UTC
// was read behind the readings of the TSC between which the anchor was sought: a run began by its
// stamps up to a stall before it did, and the bound of a clock between hosts was not true. A
// machine may keep the program from the one reading that this test leaves alone, too: no machine
// does so each time.
TEST(both_clocks_are_read_at_once) {
	static const clockid_t clocks[] = {CLOCK_REALTIME, CLOCK_MONOTONIC};
	int64_t ahead_ns = utc_ahead_ns();

	for (size_t i = 0; i < 2 * 32; i++) {
		int64_t off_ns = INT64_MAX;

		for (int try = 0; try < 8 && off_ns >= (int64_t)AWAY_NS / 2; try++) {
			late = clocks[i % 2];
			undisturbed = (unsigned)i / 2;
			reading = 0;
			struct clock_anchor a = clock_anchor();

			off_ns = llabs((int64_t)(a.utc_ns - a.mono_ns) - ahead_ns);
		}
		ck_assert_int_lt(off_ns, AWAY_NS / 2);
	}
}

TEST(rates_are_unknown_before_a_comparison) {
	const struct clock c = {.tsc_hz = NS_PER_S};

	ck_assert(isnan(clock_error_ppm(&c)));
	ck_assert(isnan(clock_drift_ppm(&c)));
}
