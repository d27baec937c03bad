// SPDX-License-Identifier: BSD-3-Clause
// Windowed minimum or maximum (Kathleen Nichols' three-sample filter).
//
//	s[0]  the best sample of the window
//	s[1]  the best of those after s[0], taken no earlier than a quarter of the window after it
//	s[2]  the best of those after s[1], no earlier than half of the window after s[0]
//
// Times never decrease along s, values never improve. A sample at least as good as s[i] replaces
// every s[j], j >= i, because it is better and stays longer in the window. When s[0] has left the
// window the others move up. The successors are chosen a quarter and a half of the window later, so
// that one of them is still in the window when s[0] leaves it.
#include "common/base/minmax.h"

#include <stdbool.h>

static inline bool at_least_as_good(bool max, uint64_t a, uint64_t b) {
	return max ? a >= b : a <= b;
}

static inline uint64_t running(
	struct minmax *m, bool max, uint64_t window, struct minmax_sample x) {
	struct minmax_sample *s = m->s;

	if (at_least_as_good(max, x.v, s[0].v) || x.t - s[2].t > window)
		return minmax_reset(m, x.t, x.v);
	if (at_least_as_good(max, x.v, s[1].v))
		s[1] = s[2] = x;
	else if (at_least_as_good(max, x.v, s[2].v))
		s[2] = x;

	if (x.t - s[0].t > window) {
		// s[2] is in the window, or the filter would have been reset: two steps suffice.
		for (int step = 0; step < 2 && x.t - s[0].t > window; step++) {
			s[0] = s[1];
			s[1] = s[2];
			s[2] = x;
		}
	} else if (s[1].t == s[0].t && x.t - s[0].t > window / 4) {
		s[1] = s[2] = x;
	} else if (s[2].t == s[1].t && x.t - s[0].t > window / 2) {
		s[2] = x;
	}
	return s[0].v;
}

uint64_t minmax_reset(struct minmax *m, uint64_t t, uint64_t v) {
	m->s[0] = m->s[1] = m->s[2] = (struct minmax_sample){t, v};
	return v;
}

uint64_t minmax_running_min(struct minmax *m, uint64_t window, uint64_t t, uint64_t v) {
	return running(m, false, window, (struct minmax_sample){t, v});
}

uint64_t minmax_running_max(struct minmax *m, uint64_t window, uint64_t t, uint64_t v) {
	return running(m, true, window, (struct minmax_sample){t, v});
}
