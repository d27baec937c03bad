// SPDX-License-Identifier: BSD-3-Clause
#include "sender/source/sizes.h"

#include "common/base/draw.h"
#include "common/config/text_file.h"

#include <errno.h>
#include <stdlib.h>

#define SIZE_BYTES_MAX 1e15
#define POINTS_FIRST 64

static const char *const law_names[] = {"fixed", "exponential", "pareto", "file", NULL};

const struct param sizes_params[] = {
	{"law", "fixed", "how they are distributed", UNIT_NONE,
		PARAM_ENUM(struct sizes, law, law_names)},
	{"mean", "100kB", "mean size; of law: file, the file says", UNIT_BYTES,
		PARAM_U64(struct sizes, mean_bytes), 1, 1e12},
	{"shape", "1.2", "pareto: exponent; 2 or less: no finite variance", UNIT_NONE,
		PARAM_F64(struct sizes, shape), 1.01, 100},
	PARAM_END,
};

const struct param sizes_file_params[] = {
	{"file", "",
		"law: file: the distribution function, lines of bytes and the part of the "
		"transfers up to them, relative to the config's folder",
		UNIT_NONE, PARAM_FILE},
	{"digest", "", "of the file, which is checked if it is given", UNIT_NONE, PARAM_SCALAR},
	PARAM_END,
};

// The next number of the file: 1, 0 at its end, or an error.
static int read_number(struct text_file *f, double *value, struct err *err) {
	char word[40], *end;
	int rc = text_file_word(f, word, sizeof(word), err);

	if (rc <= 0)
		return rc;
	*value = strtod(word, &end);
	if (*end != '\0' || !isfinite(*value))
		return text_file_err(f, -EINVAL, "a number is wanted", err);
	return 1;
}

static int check_point(
	const struct sizes *s, struct sizes_point p, struct text_file *f, struct err *err) {
	const struct sizes_point *before = s->points > 0 ? &s->point[s->points - 1] : NULL;

	if (p.bytes < 0 || p.bytes > SIZE_BYTES_MAX)
		return text_file_err(f, -ERANGE, "a size is not in [0, 1e15] bytes", err);
	if (p.p < 0 || p.p > 1)
		return text_file_err(f, -ERANGE, "a probability is not in [0, 1]", err);
	if (before != NULL && (p.bytes <= before->bytes || p.p < before->p))
		return text_file_err(
			f, -EINVAL, "sizes must rise and their probabilities not fall", err);
	return 0;
}

static int add_point(struct sizes *s, struct sizes_point p, uint32_t *room) {
	uint32_t more = *room > 0 ? 2 * *room : POINTS_FIRST;
	struct sizes_point *point;

	if (s->points == *room) {
		point = realloc(s->point, more * sizeof(*point));
		if (point == NULL)
			return -ENOMEM;
		s->point = point;
		*room = more;
	}
	s->point[s->points++] = p;
	return 0;
}

static int read_points(struct sizes *s, const struct config_file *file, struct err *err) {
	struct text_file f;
	uint32_t room = 0;
	int rc;

	text_file_begin(&f, file);
	for (;;) {
		struct sizes_point p;

		if ((rc = read_number(&f, &p.bytes, err)) <= 0)
			break;
		if ((rc = read_number(&f, &p.p, err)) == 0)
			return text_file_err(&f, -EINVAL, "a size without its probability", err);
		if (rc < 0 || (rc = check_point(s, p, &f, err)) < 0)
			return rc;
		if (add_point(s, p, &room) < 0)
			return text_file_err(&f, -ENOMEM, "no memory for so many lines", err);
	}
	if (rc == 0 && (s->points == 0 || s->point[s->points - 1].p < 1))
		return text_file_err(&f, -EINVAL, "the last probability must be 1", err);
	if (rc == 0 && s->point[s->points - 1].bytes < 1)
		return text_file_err(&f, -EINVAL, "no size is above 0", err);
	return rc;
}

int sizes_read(struct sizes *s, struct config_node *source, struct err *err) {
	struct config_node *node = config_section(source, "sizes");
	const struct config_file *file;
	struct err why;
	int rc = config_params(node, "sizes", sizes_params, sizes_file_params, s, err);

	if (rc < 0)
		return rc;
	if (s->law != SIZES_FILE)
		return config_get(node, "file") == NULL
			? 0
			: config_err(
				config_get(node, "file"), -EINVAL, err, "file: is for law: file");
	if ((rc = config_read_file(node, "file", &file, err)) < 0)
		return rc;
	rc = read_points(s, file, &why);
	return rc < 0 ? config_err(file->named, rc, err, "file: %s", why.msg) : 0;
}

void sizes_fini(struct sizes *s) {
	free(s->point);
	s->point = NULL;
	s->points = 0;
}

// The size up to which a part u of the transfers is.
static double file_quantile(const struct sizes *s, double u) {
	const struct sizes_point *p = s->point;
	uint32_t i = 0;

	while (p[i].p <= u && i + 1 < s->points)
		i++;
	if (i == 0)
		return p->bytes;
	return p[i - 1].bytes
		+ (p[i].bytes - p[i - 1].bytes) * (u - p[i - 1].p) / (p[i].p - p[i - 1].p);
}

uint64_t sizes_draw(const struct sizes *s, struct rng *rng) {
	double mean = (double)s->mean_bytes, bytes = mean;

	switch ((enum sizes_law)s->law) {
	case SIZES_FIXED:
		break;
	case SIZES_EXPONENTIAL:
		bytes = mean * quantile_exponential(rng_unit(rng));
		break;
	case SIZES_PARETO:
		bytes = mean * (s->shape - 1) / s->shape * quantile_pareto(rng_unit(rng), s->shape);
		break;
	case SIZES_FILE:
		bytes = file_quantile(s, rng_unit(rng));
		break;
	}
	return (uint64_t)fmin(fmax(ceil(bytes), 1), SIZE_BYTES_MAX);
}

double sizes_mean(const struct sizes *s) {
	double mean;

	if (s->law != SIZES_FILE)
		return (double)s->mean_bytes;
	mean = s->point[0].bytes * s->point[0].p;
	for (uint32_t i = 1; i < s->points; i++)
		mean += (s->point[i].bytes + s->point[i - 1].bytes) / 2
			* (s->point[i].p - s->point[i - 1].p);
	return mean;
}
