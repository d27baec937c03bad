// SPDX-License-Identifier: BSD-3-Clause
// The modules of a guest's kernel: loaded before its settings are made, so that a control that one
// of them brings can be one of these.
#include "tools/sim/guest/init.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CONTROLS "/proc/sys/net/ipv4/tcp_available_congestion_control"

static void load(const char *name, const char *params) {
	char path[PLAN_TEXT + 32];
	int fd;

	snprintf(path, sizeof(path), "/modules/%s.ko", name);
	if ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0
		|| syscall(SYS_finit_module, fd, params, 0) < 0)
		fail("module %s: %s", name, strerror(errno));
	close(fd);
}

// What is built in has its parameters in /sys, if they can be set in a running kernel.
static void set_built_in(const struct plan_module *m) {
	char params[PLAN_PARAMS], path[2 * PLAN_PARAMS], *rest = params, *one;

	mkdir("/sys", 0755);
	if (mount("sysfs", "/sys", "sysfs", 0, NULL) < 0 && errno != EBUSY)
		fail("/sys: %s", strerror(errno));
	memcpy(params, m->params, sizeof(params));
	while ((one = strsep(&rest, " ")) != NULL) {
		char *value = strchr(one, '=');

		*value++ = '\0';
		snprintf(path, sizeof(path), "/sys/module/%s/parameters/%s", m->name, one);
		write_file(path, value);
	}
}

void modules_load(void) {
	for (uint32_t i = 0; i < plan->modules; i++) {
		const struct plan_module *m = &plan->module[i];

		if (m->built_in)
			set_built_in(m);
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
