// SPDX-License-Identifier: BSD-3-Clause
// One character of UTF-8 (RFC 3629).
#pragma once
#include <stddef.h>
#include <stdint.h>

// Length in bytes of the first character of a NUL-terminated text; 0: it is invalid (truncated,
// overlong, a surrogate or beyond U+10FFFF).
static inline size_t utf8_read(const char *text, uint32_t *character) {
	const unsigned char *s = (const unsigned char *)text;
	static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc0 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	uint32_t c = n == 1 ? s[0] : s[0] & (0x7fu >> n);

	if (n == 0 || s[0] > 0xf7)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3fu);
	}
	if (c < smallest[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	*character = c;
	return n;
}
