// SPDX-License-Identifier: BSD-3-Clause
#include "sender/group/control.h"

#include "common/run/run_list.h"
#include "sender/cc/plugin.h"
#include "sender/cc/python.h"
#include "sender/source/source.h"
#include "sender/transport.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct param outside[] = {
	CONFIG_NAMED_FILE_PARAMS("plugin", "a congestion control of yours, a shared object"),
	PARAM_END,
};

static const struct param in_python[] = {
	CONFIG_NAMED_FILE_PARAMS("python", "FILE:CLASS, only in virtual time; FILE is"),
	PARAM_END,
};

static struct run_listed listed(const struct cc_ops *o) {
	return (struct run_listed){.kind = "cc",
		.name = o->name,
		.alias = o->alias,
		.summary = o->summary,
		.reference = o->reference,
		.params = o->params,
		.observed = o->observed,
		.nb_observed = CC_OBSERVED,
		.modes = o->modes,
		.nb_modes = CC_MODES};
}

void controls_list(struct run_list *l) {
	const char *suffix = l->asked != NULL ? strrchr(l->asked, '.') : NULL;
	struct cc_python python = {0};
	struct run_listed e;

	for (const struct cc_ops *const *o = cc_all; *o != NULL; o++) {
		e = listed(*o);
		run_list_entry(l, &e);
	}
	if (suffix != NULL && strcmp(suffix, ".so") == 0)
		l->rc = cc_plugin_load(l->asked, &python.ops, &l->why);
	else if (suffix != NULL && strchr(suffix, ':') != NULL)
		l->rc = cc_python_open(l->asked, &python, &l->why);
	if (python.ops == NULL)
		return;
	e = listed(python.ops);
	run_list_plugin(l, &e);
}

// Writes what a preset sets into the config, where it shows and is read like anything else that was
// written there.
static void control_preset(const struct cc_ops *cc, struct config_node *params_node) {
	const struct config_node *at;

	if (cc->preset == NULL || config_kind(params_node) != CONFIG_MAP)
		return;
	at = config_get(params_node, cc->preset);
	if (at == NULL || config_text(at) == NULL)
		return;
	for (const struct cc_preset *s = cc->presets; s->name != NULL; s++) {
		if (strcmp(s->name, config_text(at)) != 0)
			continue;
		for (const char *const *set = s->set; *set != NULL; set += 2) {
			if (config_get(params_node, set[0]) == NULL)
				config_add(params_node, set[0], set[1]);
		}
	}
}

// A transport beside TCP has none.
static int control_transport(struct group *g, struct config_node *node, struct err *err) {
	struct config_node *at = config_get(node, "cc");

	if (at != NULL)
		return config_err(
			at, -EINVAL, err, "cc: source %s has none; leave it out", g->source->name);
	g->control = g->transport->name;
	if (g->name[0] == '\0')
		snprintf(g->name, sizeof(g->name), "%s", g->transport->name);
	return 0;
}

static struct config_name nth_control(size_t i) {
	return cc_all[i] != NULL ? (struct config_name){cc_all[i]->name, cc_all[i]->alias}
				 : (struct config_name){NULL, NULL};
}

// The control and its parameters, once it is known which it is.
static int control_config(struct group *g, struct config_node *params_node,
	const struct param *also, struct err *err) {
	g->control = g->cc->name;
	if (g->name[0] == '\0')
		snprintf(g->name, sizeof(g->name), "%s", g->control);
	control_preset(g->cc, params_node);
	return config_object(params_node, g->control, g->cc->params, also, g->cc->config_size,
		&g->cc_config, err);
}

// {plugin: ./mine.so, its parameters}
static int control_plugin(struct group *g, struct config_node *map, struct err *err) {
	const struct config_file *file;
	struct err why;
	int rc = config_read_file(map, "plugin", &file, err);

	if (rc < 0)
		return rc;
	if ((rc = cc_plugin_load(file->path, &g->cc, &why)) < 0)
		return config_err(file->named, rc, err, "%s", why.msg);
	*file->license = g->cc->license;
	if ((rc = control_config(g, map, outside, err)) < 0)
		return rc;
	if ((rc = cc_plugin_config(g->cc, g->cc_config, &why)) < 0)
		return config_err(map, rc, err, "%s", why.msg);
	return 0;
}

// {python: mine.py:MyControl, its parameters}
static int control_python(struct group *g, struct config_node *map, struct err *err) {
	struct config_node *named = config_get(map, "python");
	const char *text = config_text(named);
	const struct config_file *file;
	struct cc_python python;
	struct err why;
	int rc = 0;

	if (text == NULL)
		return config_err(named, -EINVAL, err, "python: FILE:CLASS is required");
	if (strchr(text, ':') != NULL) {
		if ((rc = config_read_part(map, "python", &file, err)) < 0)
			return rc;
		text = config_file_text(file, file->path);
	}
	if ((rc = cc_python_open(text, &python, &why)) < 0)
		return config_err(named, rc, err, "python: %s", why.msg);
	for (const char *const *path = python.imports; rc == 0 && *path != NULL; path++)
		rc = config_read_also(named, *path, err);
	g->cc = python.ops;
	return rc < 0 ? rc : control_config(g, map, in_python, err);
}

int group_control(struct group *g, struct config_node *node, struct err *err) {
	struct config_node *at = config_get(node, "cc"), *params_node;
	const char *name;
	size_t which;
	int rc;

	if (g->stack.guest)
		return 0;
	g->transport = g->source->transport;
	if (g->transport != NULL)
		return control_transport(g, node, err);
	if (at == NULL)
		return config_err(node, -EINVAL, err,
			"cc is required: the congestion control, e.g. cc: %s", cc_all[0]->name);
	if (config_kind(at) == CONFIG_MAP && config_get(at, "plugin") != NULL)
		return control_plugin(g, at, err);
	if (config_kind(at) == CONFIG_MAP && config_get(at, "python") != NULL)
		return control_python(g, at, err);
	rc = config_plugin(at, "cc", &name, &params_node, err);
	if (rc < 0)
		return rc;
	rc = config_registered(at, "cc", "a congestion control", nth_control, &which, err);
	if (rc < 0)
		return rc;
	g->cc = cc_all[which];
	return control_config(g, params_node, NULL, err);
}

int group_control_text(
	struct group *g, const char *value, struct config **config, struct err *err) {
	static const struct source_ops any_source;
	char *text;
	int length = asprintf(&text, "cc: %s", value);

	if (length < 0)
		return err_set(err, -ENOMEM, "no memory");
	*config = config_parse("cc", text, (size_t)length, err);
	free(text);
	*g = (struct group){.source = &any_source};
	return *config == NULL ? -EINVAL : group_control(g, config_root(*config), err);
}
