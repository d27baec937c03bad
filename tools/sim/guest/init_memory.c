// SPDX-License-Identifier: BSD-3-Clause
// What the kernel has had to do for want of memory (/proc/net/netstat): reported when it changes.
#include "tools/sim/guest/init.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const names[] = {"TCPMemoryPressures", "PruneCalled", "RcvPruned"};
static uint64_t reported[sizeof(names) / sizeof(names[0])];
static_assert(sizeof(reported) == sizeof(struct guest_shortage), "in this order");

static void count(const char *name, const char *value, uint64_t now[]) {
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(name, names[i]) == 0)
			now[i] = strtoull(value, NULL, 10);
	}
}

// A line of names and one of values: "TcpExt: A B\nTcpExt: 1 2\n".
static void parse(char *text, uint64_t now[]) {
	char *of_names = strsep(&text, "\n"), *of_values = strsep(&text, "\n"), *name, *value;

	while ((name = strsep(&of_names, " ")) != NULL && (value = strsep(&of_values, " ")) != NULL)
		count(name, value, now);
}

void memory_report(void) {
	static char text[16384];
	uint64_t now[sizeof(names) / sizeof(names[0])] = {0};
	int fd = open("/proc/net/netstat", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	close(fd);
	if (n <= 0)
		return;
	text[n] = '\0';
	parse(text, now);
	if (memcmp(now, reported, sizeof(now)) == 0)
		return;
	memcpy(reported, now, sizeof(now));
	memcpy(out.sample, now, sizeof(now));
	send_message(MESSAGE_MEMORY, 0, sizeof(now));
}
