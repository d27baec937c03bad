// SPDX-License-Identifier: BSD-3-Clause
// The sections of all summaries, whichever program writes them.
#pragma once
#include "common/base/field.h"

#include <stdio.h>

extern const struct section summary_sections[];
extern const size_t summary_sections_count;
// Writes a module of Python: a class for each section.
void sections_python(FILE *out);
