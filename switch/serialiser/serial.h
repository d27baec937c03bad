// SPDX-License-Identifier: BSD-3-Clause
// The time at which a frame's last bit leaves a wire of constant rate, exact in the long run.
//
// Times are whole nanoseconds plus a fraction of 2^-64 ns that is carried from frame to frame, so a
// busy wire's rate is off only by the rounding of ns per byte to 2^-40: below 1e-10 up to 1 Tbit/s.
#pragma once
#include "common/base/ns.h"

#define SERIAL_FRAC_BITS 40
#define SERIAL_FCS_BYTES 4u // counted by a frame's size and by its overhead

__extension__ typedef unsigned __int128 serial_u128;

// Time per byte in 2^-40 ns, rounded to nearest.
static inline uint64_t serial_byte_ns(uint64_t rate_bps) {
	serial_u128 scaled = (serial_u128)(8 * NS_PER_S) << SERIAL_FRAC_BITS;

	return (uint64_t)((scaled + rate_bps / 2) / rate_bps);
}

// A time on the wire: nanoseconds in the upper half, their fraction in the lower.
static inline serial_u128 serial_at(uint64_t t_ns) {
	return (serial_u128)t_ns << 64;
}

static inline uint64_t serial_ns(serial_u128 t) {
	return (uint64_t)(t >> 64);
}

// End of a frame of `bytes` on the wire.
static inline serial_u128 serial_end(serial_u128 start, uint64_t bytes, uint64_t byte_ns) {
	return start + ((serial_u128)bytes * byte_ns << (64 - SERIAL_FRAC_BITS));
}

// The part of a frame of `bytes` that is unsent at now_ns, as time: all of it if the frame has not
// begun.
static inline serial_u128 serial_unsent(
	serial_u128 end, uint64_t now_ns, uint64_t bytes, uint64_t byte_ns) {
	serial_u128 now = serial_at(now_ns), whole = serial_end(0, bytes, byte_ns);

	if (end <= now)
		return 0;
	return end - now < whole ? end - now : whole;
}

// The time for what took `t` at `was` per byte, at `is` per byte: exact to 2^-64 ns.
static inline serial_u128 serial_rescaled(serial_u128 t, uint64_t was, uint64_t is) {
	// t * is / was in two parts, each of which fits: the quotient is at most the frame's
	// bytes * 2^24.
	return t / was * is + t % was * is / was;
}

// The end of a frame of `bytes` on a wire whose time per byte changes from `was` to `is` at now_ns:
// the unsent part is sent at the new rate. A frame that has not begun by then keeps its start.
static inline serial_u128 serial_changed_end(
	serial_u128 end, uint64_t now_ns, uint64_t bytes, uint64_t was, uint64_t is) {
	serial_u128 left = serial_unsent(end, now_ns, bytes, was);

	return end - left + serial_rescaled(left, was, is);
}
