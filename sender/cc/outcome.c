// SPDX-License-Identifier: BSD-3-Clause
#include "sender/cc/outcome.h"

#include "common/run/run.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

static atomic_bool failed; // controls may be on several lcores
static struct err why;

void cc_fail(const char *fmt, ...) {
	va_list ap;

	if (atomic_exchange(&failed, true))
		return;
	va_start(ap, fmt);
	vsnprintf(why.msg, sizeof(why.msg), fmt, ap);
	va_end(ap);
	run_stop = SIGABRT;
}

int cc_outcome(struct err *err) {
	return failed ? err_set(err, -EIO, "%s", why.msg) : 0;
}
