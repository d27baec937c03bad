// SPDX-License-Identifier: BSD-3-Clause
#include "common/run/columns.h"

#include <stdbool.h>
#include <string.h>

#define LINE_COLUMNS 79

void columns_text(FILE *out, int used, int indent, const char *text) {
	for (bool begun = false; *text != '\0'; begun = true) {
		int len = (int)strcspn(text, " ");

		if (begun && used + 1 + len > LINE_COLUMNS) {
			fprintf(out, "\n%*s", indent, "");
			used = indent;
		} else if (begun) {
			fputc(' ', out);
			used++;
		}
		fprintf(out, "%.*s", len, text);
		used += len;
		text += len;
		text += strspn(text, " ");
	}
	fputc('\n', out);
}

void columns_named(FILE *out, int indent, int room, const char *name, const char *text) {
	int used = fprintf(out, "%*s%-*s ", indent, "", room, name);

	columns_text(out, used, indent + room + 1, text);
}
