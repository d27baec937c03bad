// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/agent/class.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const every_words[] = {"ack", "rtt", NULL};
static const struct param every = {"every", "ack",
	"when the control is called: ack: at each ACK; rtt: once per smoothed round trip; "
	"or a time",
	UNIT_TIME_NS, PARAM_U64(struct agent_config, every), 1e3, 1e12, .choices = every_words};

// The next field of a line; "": there is none.
static char *field(char **line) {
	static char none[1];
	char *found = *line != NULL ? strsep(line, "\t") : NULL;

	return found != NULL ? found : none;
}

static int number(char **line) {
	return atoi(field(line));
}

static void read_class(struct agent_class *c, char *line) {
	struct cc_ops *o = &c->ops;

	o->name = field(&line);
	o->summary = field(&line);
	o->prr = number(&line);
	o->ecn = number(&line);
	o->answers_in_on_ack = number(&line);
	o->codepoint = (enum cc_ecn)number(&line);
	o->feedback = (enum cc_feedback)number(&line);
	o->ack_each = number(&line);
	o->any_idle = number(&line);
	c->has_ssthresh = number(&line);
	c->together = number(&line);
	c->calls = (uint32_t)number(&line);
}

static void read_names(const char **names, size_t most, char *line) {
	for (size_t i = 0; i < most && line != NULL; i++)
		names[i] = field(&line);
}

static bool read_choices(struct param *p, char *line) {
	const char **names = calloc(AGENT_PARAMS, sizeof(*names));

	p->choices = names;
	for (size_t i = 0; names != NULL && i + 1 < AGENT_PARAMS && line != NULL; i++)
		names[i] = field(&line);
	return names != NULL;
}

static double bound(const char *text) {
	return text[0] == '\0' ? HUGE_VAL : strtod(text, NULL);
}

static bool read_param(struct agent_class *c, char *line) {
	struct param *p = &c->params[1 + c->nb_params];
	const char *kind;

	if (c->nb_params == AGENT_PARAMS)
		return false;
	*p = (struct param){.name = field(&line)};
	p->offset =
		offsetof(struct agent_config, value) + c->nb_params++ * sizeof(union agent_value);
	kind = field(&line);
	p->def = field(&line);
	p->min = bound(field(&line));
	p->max = bound(field(&line));
	p->unit = (enum unit)number(&line);
	p->help = field(&line);
	p->type = kind[0] == 'f' ? PARAM_TYPE_F64
		: kind[0] == 'i' ? PARAM_TYPE_U64
		: kind[0] == 'b' ? PARAM_TYPE_BOOL
				 : PARAM_TYPE_ENUM;
	return p->type != PARAM_TYPE_ENUM || read_choices(p, line);
}

static void read_import(struct agent_class *c, char *line) {
	if (c->nb_imports < AGENT_IMPORTS)
		c->imports[c->nb_imports++] = field(&line);
}

bool agent_class_read(struct agent_class *c, char *answer, char *error, size_t error_size) {
	c->params[0] = every;
	for (char *line; (line = strsep(&answer, "\n")) != NULL;) {
		const char *what = field(&line);
		bool read = true;

		if (strcmp(what, "class") == 0)
			read_class(c, line);
		else if (strcmp(what, "observed") == 0)
			read_names(c->ops.observed, CC_OBSERVED, line);
		else if (strcmp(what, "modes") == 0)
			read_names(c->ops.modes, CC_MODES, line);
		else if (strcmp(what, "param") == 0)
			read = read_param(c, line);
		else if (strcmp(what, "import") == 0)
			read_import(c, line);
		if (!read) {
			snprintf(error, error_size, "%s has more than %d parameters", c->ops.name,
				AGENT_PARAMS);
			return false;
		}
	}
	c->ops.params = c->params;
	c->ops.config_size = sizeof(struct agent_config);
	return c->ops.name != NULL;
}

static double value(const struct param *p, const union agent_value *v) {
	switch (p->type) {
	case PARAM_TYPE_U64:
		return (double)v->whole;
	case PARAM_TYPE_BOOL:
		return v->yes;
	case PARAM_TYPE_ENUM:
		return v->choice;
	default:
		return v->number;
	}
}

void agent_class_values(
	const struct agent_class *c, const struct agent_config *config, double *values) {
	for (uint32_t i = 0; i < c->nb_params; i++)
		values[i] = value(&c->params[1 + i], &config->value[i]);
}
