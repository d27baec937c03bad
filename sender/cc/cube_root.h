// SPDX-License-Identifier: BSD-3-Clause
// The cube root by Newton's method, in additions and divisions: the same bits with any libm.
#pragma once

// 0 for x <= 0. From above: falls until rounding stops it.
static inline double cube_root(double x) {
	double y = x > 1 ? x : 1, next = y;

	if (x <= 0)
		return 0;
	do {
		y = next;
		next = (2 * y + x / (y * y)) / 3;
	} while (next < y);
	return y;
}
