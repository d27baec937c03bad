// SPDX-License-Identifier: BSD-3-Clause
#include "sender/cc/python.h"

#include "common/run/run.h"
#include "sender/cc/outcome.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define OBJECT "weir-python.so"

typedef bool opener(const char *text, void (*failed)(const char *sentence),
	const volatile int *stop, struct cc_python *control, char *error, size_t error_size);

static void on_failure(const char *sentence) {
	cc_fail("%s", sentence);
}

// In the folder of the running program. NULL: there is none.
static opener *find(void) {
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - sizeof(OBJECT));
	void *object, *symbol;
	opener *found = NULL;

	if (n <= 0)
		return NULL;
	path[n] = '\0';
	strcpy(strrchr(path, '/') + 1, OBJECT);
	object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	symbol = object != NULL ? dlsym(object, "weir_python_open") : NULL;
	memcpy(&found, &symbol, sizeof(found));
	return found;
}

int cc_python_open(const char *text, struct cc_python *control, struct err *err) {
	opener *open_class = find();
	char why[sizeof(err->msg)];

	if (open_class == NULL)
		return err_set(err, -EINVAL,
			"controls in Python are for virtual time (weir run without --live)");
	if (!open_class(text, on_failure, &run_stop, control, why, sizeof(why)))
		return err_set(err, -EINVAL, "%s", why);
	return 0;
}
