// SPDX-License-Identifier: BSD-3-Clause
// What a reader of an analysis must know of the capture, because figures may be wrong or say less
// than they seem to.
#pragma once
#include "common/base/fact.h"
#include "tools/pcap/analysis.h"

// Adds them to *f: first what was noticed while the files were read.
void findings_make(const struct analysis *a, struct facts *f);
