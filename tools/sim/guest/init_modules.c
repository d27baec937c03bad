// SPDX-License-Identifier: BSD-3-Clause
// The modules of a guest's kernel: loaded before its settings are made, so that a control that one
// of them brings can be one of these.
#include "tools/sim/guest/init.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CONTROLS "/proc/sys/net/ipv4/tcp_available_congestion_control"

static void load(const char *name, const char *params) {
	char path[GUEST_TEXT + 32];
	int fd;

	snprintf(path, sizeof(path), "/modules/%s.ko", name);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0
		|| syscall(SYS_finit_module, fd, params, 0) < 0)
		fail("module %s: %s", name, strerror(errno));
	close(fd);
}

// As the kernel writes it: numbers are decimal, a bool is Y or N.
static bool same_value(const char *given, const char *has) {
	char *end_given, *end_has;
	long long a = strtoll(given, &end_given, 0), b = strtoll(has, &end_has, 0);

	if (end_given != given && *end_given == '\0' && end_has != has && *end_has == '\0')
		return a == b;
	if (strcmp(has, "Y") == 0)
		return strchr("1yYtT", given[0]) != NULL || strcasecmp(given, "on") == 0;
	if (strcmp(has, "N") == 0)
		return strchr("0nNfF", given[0]) != NULL || strcasecmp(given, "off") == 0;
	return strcmp(given, has) == 0;
}

// What is built in has its parameters from the kernel's command line, which takes any name.
static void check_param(const char *module, const char *param, const char *value) {
	char path[2 * GUEST_PARAMS], has[GUEST_PARAMS];
	int fd;

	snprintf(path, sizeof(path), "/sys/module/%s/parameters/%s", module, param);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t size = fd < 0 ? -1 : read(fd, has, sizeof(has) - 1);
	if (size < 0)
		fail("module: the kernel has no parameter '%s' of '%s', loaded or built in", param,
			module);
	close(fd);
	has[size] = '\0';
	has[strcspn(has, "\n")] = '\0';
	if (!same_value(value, has))
		fail("module: the kernel did not take '%s' as '%s' of '%s', which is '%s'", value,
			param, module, has);
}

static void check_built_in(const struct guest_module *m) {
	char params[GUEST_PARAMS], *rest = params, *one;

	mkdir("/sys", 0755);
	if (mount("sysfs", "/sys", "sysfs", 0, NULL) < 0 && errno != EBUSY)
		fail("/sys: %s", strerror(errno));
	memcpy(params, m->params, sizeof(params));
	while ((one = strsep(&rest, " ")) != NULL) {
		char *value = strchr(one, '=');

		*value++ = '\0';
		check_param(m->name, one, value);
	}
}

void modules_load(void) {
	for (uint32_t i = 0; i < config->modules; i++) {
		const struct guest_module *m = &config->module[i];

		if (m->built_in)
			check_built_in(m);
		else
			load(m->name, m->params);
	}
}

void modules_ask(int n, char *const *names) {
	char controls[1024];
	int fd;

	for (int i = 0; i < n; i++)
		load(names[i], "");
	fd = open(CONTROLS, O_RDONLY);
	ssize_t size = fd < 0 ? -1 : read(fd, controls, sizeof(controls));
	if (size < 0)
		fail(CONTROLS ": %s", strerror(errno));
	printf("weir: controls %.*s\n", (int)size, controls);
	fflush(stdout);
	reboot(RB_POWER_OFF);
	fail("it cannot be switched off: %s", strerror(errno));
}
