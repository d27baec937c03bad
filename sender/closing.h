// SPDX-License-Identifier: BSD-3-Clause
// Connections that one side ends at a time of the config, beside those whose data has been sent:
//
//	flows:
//	  - {cc: cubic, stack: {weir: {reset_at: 2s}}}
//	  - {cc: cubic, peer: {weir: {close_at: 2s}}}
#pragma once
#include <stdint.h>

struct host;

// Arms the host's timer, if a group has such a time.
void closing_init(struct host *h);
void closing_timer(struct host *h, uint64_t now_ns);
