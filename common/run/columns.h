// SPDX-License-Identifier: BSD-3-Clause
// Text in the 80 columns of a terminal.
#pragma once
#include <stdio.h>

// A text and a line's end, words whole. The first line has `used` columns already, the others begin
// with `indent` spaces.
void columns_text(FILE *out, int used, int indent, const char *text);
// A name in its column, then a text about it.
void columns_named(FILE *out, int indent, int room, const char *name, const char *text);
