// SPDX-License-Identifier: BSD-3-Clause
// What a plug-in says of itself: its version, its ops, its table of parameters.
#include "common/base/param.h"
#include "sender/cc/plugin.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NAME_CHARS 31
#define PARAMS_MAX 128
#define MEMORY_BYTES_MAX (16 << 20)

static int version_fits(const struct cc_plugin *p, struct err *err) {
	const size_t bytes[] = {
		CC_OPS_BYTES_2, CC_OPS_BYTES_3, CC_OPS_BYTES_4, sizeof(struct cc_ops)};

	static_assert(CC_ABI == 5 && CC_ABI_OLDEST == 2, "one size for each version");

	if (p->abi < CC_ABI_OLDEST || p->abi > CC_ABI)
		return err_set(err, -EINVAL,
			"it was compiled for version %u of weir/cc.h, and this is version %d: "
			"compile it again",
			p->abi, CC_ABI);
	if (p->ops_size != bytes[p->abi - CC_ABI_OLDEST] || p->ack_size != sizeof(struct cc_ack)
		|| p->loss_size != sizeof(struct cc_loss) || p->out_size != sizeof(struct cc_out)
		|| p->param_size != sizeof(struct param))
		return err_set(err, -EINVAL,
			"its weir/cc.h says version %d, but the sizes of structures differ: "
			"compile it with the header of this Weir",
			CC_ABI);
	return p->ops == NULL ? err_set(err, -EINVAL, "its ops are NULL") : 0;
}

static bool name_fits(const char *name) {
	size_t i = 0;

	if (name == NULL || !islower((unsigned char)name[0]))
		return false;
	while (islower((unsigned char)name[i]) || isdigit((unsigned char)name[i]) || name[i] == '_')
		i++;
	return name[i] == '\0' && i <= NAME_CHARS;
}

static int ops_fit(const struct cc_ops *o, struct err *err) {
	static const struct {
		const char *name;
		size_t offset;
	} required[] = {{"summary", offsetof(struct cc_ops, summary)},
		{"params", offsetof(struct cc_ops, params)},
		{"given_window", offsetof(struct cc_ops, given_window)},
		{"init", offsetof(struct cc_ops, init)},
		{"on_ack", offsetof(struct cc_ops, on_ack)},
		{"on_loss", offsetof(struct cc_ops, on_loss)},
		{"on_rto", offsetof(struct cc_ops, on_rto)}};

	if (!name_fits(o->name))
		return err_set(err, -EINVAL,
			"its ops need a name of 1 to %d small letters, digits and _", NAME_CHARS);
	for (size_t i = 0; i < sizeof(required) / sizeof(required[0]); i++) {
		const void *member;

		memcpy(&member, (const char *)o + required[i].offset, sizeof(member));
		if (member == NULL)
			return err_set(err, -EINVAL, "its ops have no %s", required[i].name);
	}
	if (o->state_size > CC_STATE_MAX_BYTES)
		return err_set(err, -EINVAL, "its state has %zu bytes, and a flow has room for %d",
			o->state_size, CC_STATE_MAX_BYTES);
	if ((o->observe == NULL) != (o->observed[0] == NULL))
		return err_set(err, -EINVAL,
			"its ops need both or neither: observe, and the names in observed");
	if (o->open == NULL
		&& (o->memory_bytes > 0 || o->shared_bytes > 0 || o->on_timer != NULL
			|| o->on_packet != NULL))
		return err_set(err, -EINVAL,
			"its ops have memory, on_timer or on_packet, which need open");
	if (o->memory_bytes > MEMORY_BYTES_MAX || o->shared_bytes > MEMORY_BYTES_MAX)
		return err_set(err, -EINVAL, "it wants more than %d MiB of memory for a flow",
			MEMORY_BYTES_MAX >> 20);
	if ((o->shared_bytes > 0) != (o->shared_name != NULL))
		return err_set(
			err, -EINVAL, "its ops need both or neither: shared_bytes and shared_name");
	if ((o->preset == NULL) != (o->presets == NULL))
		return err_set(err, -EINVAL, "its ops need both or neither: preset and presets");
	return 0;
}

// Bytes of a parameter's field; 0: a type that a congestion control cannot have.
static size_t field_size(enum param_type type) {
	switch (type) {
	case PARAM_TYPE_U64:
	case PARAM_TYPE_F64:
		return 8;
	case PARAM_TYPE_BOOL:
		return sizeof(bool);
	case PARAM_TYPE_ENUM:
		return sizeof(int);
	case PARAM_TYPE_TEXT:
		return PARAM_TEXT_SIZE;
	case PARAM_TYPE_LIMIT:
		return sizeof(struct limit);
	case PARAM_TYPE_FILE:
		return sizeof(struct param_file);
	default:
		return 0;
	}
}

static size_t field_alignment(enum param_type type) {
	switch (type) {
	case PARAM_TYPE_TEXT:
		return 1;
	case PARAM_TYPE_LIMIT:
		return _Alignof(struct limit);
	case PARAM_TYPE_FILE:
		return _Alignof(struct param_file);
	default: // numbers: as large as they are
		return field_size(type);
	}
}

static int param_fits(const struct cc_ops *o, const struct param *p, struct err *err) {
	size_t size = field_size(p->type);

	if (size == 0 || p->of != NULL || (unsigned)p->unit > UNIT_RATIO)
		return err_set(err, -EINVAL, "parameter %s is of a %s that no control has", p->name,
			size == 0 || p->of != NULL ? "type" : "unit");
	if (p->offset > o->config_size || size > o->config_size - p->offset)
		return err_set(err, -EINVAL, "parameter %s lies behind the config of %zu bytes",
			p->name, o->config_size);
	if (p->offset % field_alignment(p->type) != 0)
		return err_set(err, -EINVAL,
			"parameter %s lies where no field of its type can: "
			"use PARAM_F64 and the like",
			p->name);
	if (p->help == NULL || (p->type == PARAM_TYPE_ENUM && p->choices == NULL))
		return err_set(err, -EINVAL, "parameter %s has no %s", p->name,
			p->help == NULL ? "help" : "choices");
	if (strcmp(p->name, "plugin") == 0 || strcmp(p->name, "digest") == 0)
		return err_set(err, -EINVAL, "parameter %s has a name that is Weir's own", p->name);
	return 0;
}

// Whether no parameter before it has bytes of its field: setting one would change the other.
static int param_is_apart(const struct param *params, size_t index, struct err *err) {
	const struct param *p = &params[index];

	for (const struct param *other = params; other < p; other++) {
		if (other->offset < p->offset + field_size(p->type)
			&& p->offset < other->offset + field_size(other->type))
			return err_set(err, -EINVAL,
				"parameters %s and %s share bytes of the config", other->name,
				p->name);
	}
	return 0;
}

// Whether the table's rows and defaults are legal.
static int params_fit(const struct cc_ops *o, size_t *count, struct err *err) {
	void *config = calloc(1, o->config_size + 1);
	int rc = config == NULL ? err_set(err, -ENOMEM, "no memory for its parameters") : 0;

	for (*count = 0; rc == 0 && o->params[*count].name != NULL; (*count)++) {
		if (*count == PARAMS_MAX)
			rc = err_set(err, -EINVAL,
				"more than %d parameters: the table ends with PARAM_END",
				PARAMS_MAX);
		else
			rc = param_fits(o, &o->params[*count], err);
		if (rc == 0)
			rc = param_is_apart(o->params, *count, err);
	}
	if (rc == 0)
		rc = param_defaults(o->params, config, err);
	free(config);
	return rc;
}

int cc_plugin_check(const struct cc_plugin *p, size_t *params, struct err *err) {
	struct cc_ops ops = {0}; // NULL what its version has not
	int rc = version_fits(p, err);

	if (rc < 0)
		return rc;
	memcpy(&ops, p->ops, p->ops_size);
	rc = ops_fit(&ops, err);
	return rc < 0 ? rc : params_fit(&ops, params, err);
}
