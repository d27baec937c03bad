// SPDX-License-Identifier: BSD-3-Clause
// The list of congestion controls.
#include "sender/cc/cc.h"

#include <string.h>

// In the order in which --list prints them.
#define CONTROLS(V)                                                                                \
	V(copa)                                                                                    \
	V(cubic)                                                                                   \
	V(bbr)                                                                                     \
	V(bbr3)                                                                                    \
	V(newreno)                                                                                 \
	V(dctcp)                                                                                   \
	V(prague)                                                                                  \
	V(vegas)                                                                                   \
	V(fast)                                                                                    \
	V(lola)                                                                                    \
	V(ledbat)                                                                                  \
	V(westwood)                                                                                \
	V(illinois)                                                                                \
	V(compound)                                                                                \
	V(vivace)                                                                                  \
	V(pcc)                                                                                     \
	V(swift)                                                                                   \
	V(timely)                                                                                  \
	V(fixed)

#define DECLARE(name) extern const struct cc_ops cc_##name;
CONTROLS(DECLARE)

#define ENTRY(name) &cc_##name,
const struct cc_ops *const cc_all[] = {CONTROLS(ENTRY) NULL};

const struct cc_ops *cc_find(const char *name) {
	for (size_t i = 0; cc_all[i] != NULL; i++) {
		const struct cc_ops *ops = cc_all[i];

		assert(ops->init && ops->on_ack && ops->on_loss && ops->on_rto);
		assert((ops->observe == NULL) == (ops->observed[0] == NULL));
		if (strcmp(ops->name, name) == 0)
			return ops;
	}
	return NULL;
}
