// SPDX-License-Identifier: BSD-3-Clause
// A mark instead of a drop (RFC 3168).
#pragma once
#include "common/base/pkt.h"

// False: the packet is not ECN capable. A packet that carries CE already counts as marked, but not
// by this queue.
static inline bool aqm_mark(struct pkt *p) {
	if (p->ecn == ECN_NOT_ECT)
		return false;
	if (p->ecn != ECN_CE) {
		p->ecn = ECN_CE;
		p->flags |= PKT_MARKED;
	}
	return true;
}
