// SPDX-License-Identifier: BSD-3-Clause
#include "common/config/numbers.h"

#include "common/config/text_file.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define NUMBERS_FIRST 4096u
#define NUMBERS_MAX (1u << 24)

static int value_order(const void *pa, const void *pb) {
	double a = *(const double *)pa, b = *(const double *)pb;

	return (a > b) - (a < b);
}

static int read_values(struct numbers *n, struct text_file *f, struct err *err) {
	uint32_t room = 0;
	char word[64], *end;
	int rc;

	while ((rc = text_file_word(f, word, sizeof(word), err)) == 1) {
		if (n->count == room) {
			room = room > 0 ? 2 * room : NUMBERS_FIRST;
			double *value = room > NUMBERS_MAX
				? NULL
				: realloc(n->value, room * sizeof(*value));

			if (value == NULL)
				return text_file_err(f, -ENOMEM, "too many numbers", err);
			n->value = value;
		}
		double v = strtod(word, &end);
		if (*end != '\0' || !isfinite(v))
			return text_file_err(f, -EINVAL, "not a number", err);
		n->value[n->count++] = v;
	}
	if (rc == 0 && n->count == 0)
		return text_file_err(f, -EINVAL, "no number in it", err);
	if (rc == 0)
		qsort(n->value, n->count, sizeof(*n->value), value_order);
	return rc;
}

int numbers_read(struct numbers *n, struct config_node *map, struct err *err) {
	const struct config_file *file;
	struct text_file f;
	struct err why;
	int rc = config_read_file(map, "file", &file, err);

	if (rc < 0)
		return rc;
	text_file_begin(&f, file);
	rc = read_values(n, &f, &why);
	return rc == 0 ? 0 : config_err(file->named, rc, err, "file: %s", why.msg);
}

void numbers_fini(struct numbers *n) {
	free(n->value);
	*n = (struct numbers){0};
}
