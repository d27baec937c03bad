// SPDX-License-Identifier: BSD-3-Clause
// Errors: functions return 0 or -errno and write one sentence for the user.
//
// The sentence starts with the place ("configs/x.yaml:12:9: ...") and says what to do.
// Only main prints it and exits.
#pragma once
#include <stdarg.h>
#include <stdio.h>

struct err {
	char msg[512];
};

// Writes the sentence, on one line even if quoted names contain newlines, and returns rc, so that a
// caller can `return err_set(...)`.
__attribute__((format(printf, 3, 4))) static inline int err_set(
	struct err *e, int rc, const char *fmt, ...) {
	va_list ap;

	if (e != NULL) {
		va_start(ap, fmt);
		vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
		va_end(ap);
		for (char *c = e->msg; *c != '\0'; c++) {
			if ((unsigned char)*c < ' ')
				*c = ' ';
		}
	}
	return rc;
}
