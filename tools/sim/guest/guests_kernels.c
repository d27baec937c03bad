// SPDX-License-Identifier: BSD-3-Clause
// The kernels of a run's guests: which one each has, whether that offers what its group asks for,
// and its modules.
#include "tools/sim/guest/fields.h"
#include "tools/sim/guest/guests_private.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int check_control(const struct kernel *k, const struct stack *st, struct err *err) {
	if (k->controls[0] == '\0' || kernel_word(k->controls, st->cc))
		return 0;
	return err_set(err, -EINVAL, "cc: kernel '%s' has no '%.40s'; it has %.300s", k->name,
		st->cc, k->controls);
}

// The parameters of modules that are loaded; of what is built in the guest says it.
static int check_modules(const struct kernel *k, const struct stack *st, struct err *err) {
	for (uint32_t i = 0; i < st->modules; i++) {
		const char *rest = st->module[i].params;
		char one[STACK_PARAMS_SIZE];

		if (!kernel_word(k->modules, st->module[i].name))
			continue;
		while (kernel_next_word(&rest, one, sizeof(one))) {
			one[strcspn(one, "=")] = '\0';
			if (!kernel_module_has(k, st->module[i].name, one))
				return err_set(err, -EINVAL,
					"module: %s of kernel '%s' has no parameter '%.60s'",
					st->module[i].name, k->name, one);
		}
	}
	return 0;
}

static int check_quic(const struct kernel *k, const struct stack *st, struct err *err) {
	char path[600];

	if (st->quic == NULL)
		return 0;
	snprintf(path, sizeof(path), KERNEL_QUIC "/%s/weir-quic", k->folder, st->quic);
	return access(path, X_OK) == 0
		? 0
		: err_set(err, -ENOENT,
			"stack: quic: %s is not built; run: tools/weir guests add %s", st->quic,
			st->quic);
}

int guests_find_kernels(struct guests *gs, struct err *err) {
	for (uint32_t i = 0; i < gs->count; i++) {
		const struct stack *st = guests_stack(gs, i);
		int number = kernels_find(&gs->kernels, st->kernel, err), rc;

		if (number < 0)
			return number;
		gs->place[i].kernel = (uint32_t)number;
		if ((rc = check_control(&gs->kernels.kernel[number], st, err)) < 0
			|| (rc = check_modules(&gs->kernels.kernel[number], st, err)) < 0
			|| (rc = check_quic(&gs->kernels.kernel[number], st, err)) < 0)
			return rc;
	}
	return 0;
}

const struct kernel *guests_kernel(const struct guests *gs, uint32_t index) {
	return &gs->kernels.kernel[gs->place[index].kernel];
}

static void config_module(
	struct guest_config *config, const char *name, const char *params, bool built_in) {
	struct guest_module *m = &config->module[config->modules++];

	*m = (struct guest_module){.built_in = built_in};
	snprintf(m->name, sizeof(m->name), "%s", name);
	snprintf(m->params, sizeof(m->params), "%s", params);
}

static const char *params_of(const struct stack *st, const char *module) {
	for (uint32_t i = 0; i < st->modules; i++) {
		if (strcmp(st->module[i].name, module) == 0)
			return st->module[i].params;
	}
	return "";
}

void guests_config_modules(const struct guests *gs, uint32_t index, struct guest_config *config) {
	const struct kernel *k = guests_kernel(gs, index);
	const struct stack *st = guests_stack(gs, index);
	const char *rest = k->modules;
	char name[GUEST_TEXT];

	static_assert(GUEST_PARAMS == STACK_PARAMS_SIZE, "copied");
	while (config->modules < GUEST_LOADED && kernel_next_word(&rest, name, sizeof(name)))
		config_module(config, name, params_of(st, name), false);
	for (uint32_t i = 0; i < st->modules; i++) {
		if (!kernel_word(k->modules, st->module[i].name))
			config_module(config, st->module[i].name, st->module[i].params, true);
	}
}

static void write_guests(const struct guests *gs, uint32_t kernel, struct json *j) {
	json_array(j, "guests");
	for (uint32_t g = 0; g < gs->count; g++) {
		if (gs->place[g].kernel == kernel)
			json_u64(j, NULL, g);
	}
	json_close(j, ']');
}

void guests_kernels_summary(const struct guests *gs, struct json *j) {
	json_array(j, "kernels");
	for (uint32_t i = 0; i < gs->kernels.count; i++) {
		const struct kernel *k = &gs->kernels.kernel[i];

		json_object(j, NULL);
		KERNEL_FIELDS(FIELD_JSON)
		json_close(j, '}');
	}
	json_close(j, ']');
}
