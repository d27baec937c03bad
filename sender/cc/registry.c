// SPDX-License-Identifier: BSD-3-Clause
// The list of congestion controls.
#include "sender/cc/cc.h"

#include <string.h>

extern const struct cc_ops cc_bbr;
extern const struct cc_ops cc_bbr3;
extern const struct cc_ops cc_compound;
extern const struct cc_ops cc_copa;
extern const struct cc_ops cc_cubic;
extern const struct cc_ops cc_dctcp;
extern const struct cc_ops cc_fast;
extern const struct cc_ops cc_fixed;
extern const struct cc_ops cc_illinois;
extern const struct cc_ops cc_ledbat;
extern const struct cc_ops cc_lola;
extern const struct cc_ops cc_newreno;
extern const struct cc_ops cc_pcc;
extern const struct cc_ops cc_prague;
extern const struct cc_ops cc_swift;
extern const struct cc_ops cc_timely;
extern const struct cc_ops cc_vegas;
extern const struct cc_ops cc_vivace;
extern const struct cc_ops cc_westwood;

const struct cc_ops *const cc_all[] = {
	&cc_copa,
	&cc_cubic,
	&cc_bbr,
	&cc_bbr3,
	&cc_newreno,
	&cc_dctcp,
	&cc_prague,
	&cc_vegas,
	&cc_fast,
	&cc_lola,
	&cc_ledbat,
	&cc_westwood,
	&cc_illinois,
	&cc_compound,
	&cc_vivace,
	&cc_pcc,
	&cc_swift,
	&cc_timely,
	&cc_fixed,
	NULL,
};

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
