// SPDX-License-Identifier: BSD-3-Clause
#include <weir/linux/module.h>

#include <stdio.h>

#define PARAMS_MAX 64
#define VALUE_CHARS 24

// What the file's macros have listed.
extern const struct kernel_param *const __start_kernel_params[] __attribute__((weak));
extern const struct kernel_param *const __stop_kernel_params[] __attribute__((weak));
extern const struct kernel_text *const __start_kernel_helps[] __attribute__((weak));
extern const struct kernel_text *const __stop_kernel_helps[] __attribute__((weak));
extern const struct kernel_text *const __start_kernel_modules[] __attribute__((weak));
extern const struct kernel_text *const __stop_kernel_modules[] __attribute__((weak));
extern kernel_init *const __start_kernel_inits[];
extern kernel_init *const __stop_kernel_inits[];

static const struct kernel_param *listed[PARAMS_MAX]; // in the order of their file
static size_t nb_params;
static struct param params[PARAMS_MAX + 1];
static char defaults[PARAMS_MAX][VALUE_CHARS];

static int call_init(void) {
	int rc = 0;

	for (kernel_init *const *f = __start_kernel_inits; rc >= 0 && f < __stop_kernel_inits; f++)
		rc = (*f)();
	return rc;
}

const char *module_configure(const void *config) {
	for (size_t i = 0; i < nb_params; i++) {
		const struct kernel_param *p = listed[i];
		const u64 *value = (const u64 *)config + i;
		char text[VALUE_CHARS];

		snprintf(text, sizeof(text), "%llu", (unsigned long long)*value);
		if (p->ops != NULL && p->ops->set != NULL && p->ops->set(text, p) < 0)
			return p->name;
		memcpy(p->arg, value, p->bytes); // of the lowest bytes
	}
	return call_init() < 0 ? "the module's init refuses them" : NULL;
}

static const char *text_of(const struct kernel_text *const *from,
	const struct kernel_text *const *to, const char *name, const char *otherwise) {
	for (; from < to; from++) {
		if (strcmp((*from)->name, name) == 0)
			return (*from)->text;
	}
	return otherwise;
}

static void describe(const struct kernel_param *p, size_t i) {
	u64 value = 0;

	memcpy(&value, p->arg, p->bytes);
	params[i] = (struct param){
		.name = p->name,
		.def = defaults[i],
		.help = text_of(__start_kernel_helps, __stop_kernel_helps, p->name, p->name),
		.type = p->most > 0 ? PARAM_TYPE_U64 : PARAM_TYPE_BOOL,
		.offset = i * sizeof(u64),
		.max = p->most,
	};
	snprintf(defaults[i], VALUE_CHARS,
		p->most > 0	? "%llu"
			: value ? "yes"
				: "no",
		(unsigned long long)value);
}

// The compiler may have turned the order round.
static void list_params(void) {
	for (const struct kernel_param *const *p = __start_kernel_params;
		p < __stop_kernel_params && nb_params < PARAMS_MAX; p++) {
		size_t i = nb_params++;

		for (; i > 0 && listed[i - 1]->line > (*p)->line; i--)
			listed[i] = listed[i - 1];
		listed[i] = *p;
	}
}

void module_load(struct cc_ops *ops) {
	list_params();
	for (size_t i = 0; i < nb_params; i++)
		describe(listed[i], i);
	call_init();
	ops->summary = text_of(__start_kernel_modules, __stop_kernel_modules, "description",
		"a congestion control of Linux");
	ops->license = text_of(__start_kernel_modules, __stop_kernel_modules, "license", "GPL");
	ops->params = params;
	ops->config_size = nb_params * sizeof(u64);
}
