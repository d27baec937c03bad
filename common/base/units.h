// SPDX-License-Identifier: BSD-3-Clause
// Numbers with units, as users write them: "20ms", "25Gbit", "1.5MiB", "0.01%", "64".
//
// Times: ns us ms s min h d w (bare 0 is allowed, any other bare number is not); also "minutes",
// "sec", "usecs" and the like, and sums such as "1h30m" and "1 h 30 min".
// Rates: bit kbit Mbit Gbit Tbit per second, powers of 1000 (bare 0 likewise); also "Mbps", "Mb/s",
// "Mbit/s", "mbit", "M" and the like: a lower-case b is a bit, and a capital B, a byte, is refused.
// Sizes: B kB MB GB TB (powers of 1000), KiB MiB GiB TiB (powers of 1024); a bare number is bytes;
// also "bytes", "KB".
// Ratios: "0.01%" or "0.0001".
// One space is allowed before the unit, and no other text. A decimal exponent
// ("1e-4", "1e6bit") is allowed; signs, hexadecimal, inf and nan are not.
#pragma once
#include "common/weir/param.h"

// 0 and *value, or -EINVAL when the text is not wholly a number of that unit.
int unit_parse(const char *text, enum unit unit, double *value);
// The shortest text with a unit that unit_parse reads back as the same value, with "100ms" before
// "0.1s":
// 2e7 ns -> "20ms", 1.5e9 bit/s -> "1.5Gbit", 1514 bytes -> "1514B". 32 bytes are enough.
void unit_format(double value, enum unit unit, char *text, size_t size);
// Whether a number has one of the other spellings of a unit, which unit_format() does not write.
bool unit_is_other(const char *text, enum unit unit);
// For error messages: "a time such as 20ms", "a rate such as 10Gbit", ...
const char *unit_example(enum unit unit);
// The i-th of the suffixes that a number of this unit may have, "" among them; NULL: there are no
// more.
const char *unit_suffix(enum unit unit, size_t i);
// What a number that has it is multiplied by.
double unit_factor(enum unit unit, size_t i);
