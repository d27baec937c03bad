// SPDX-License-Identifier: BSD-3-Clause
// --trials: many runs in one process. Each line of standard input is a config, as JSON, which is
// YAML too; for each a line comes back on standard output: its summary, as in summary.json, or
// {"error": "the sentence"}. No folder is written, and no process is started.
//
// A run's telemetry goes into its digest and nowhere else: the digest is that of `weir-sim CONFIG`
// with the same config. Guests, captures and replays are refused.
#pragma once
#include "common/run/run.h"

// Reads configs until the end of standard input.
int trials(const struct run_options *opt, struct err *err);
