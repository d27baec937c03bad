// SPDX-License-Identifier: BSD-3-Clause
#include "common/live/port/memif.h"

#include <errno.h>
#include <rte_eal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define SOCKET ",socket="

// Removes the socket of a server that was killed, on which no process listens. Not the socket of
// another port of this program: ports may share one. A server that has stopped, and that others
// wait for already, is not waited for.
static void remove_abandoned(const struct sockaddr_un *at) {
	static char ours[LIVE_PORTS_MAX][sizeof(at->sun_path)];
	static uint32_t known;
	struct stat st;
	int fd;

	for (uint32_t i = 0; i < known; i++) {
		if (strcmp(ours[i], at->sun_path) == 0)
			return;
	}
	memcpy(ours[known++ % LIVE_PORTS_MAX], at->sun_path, sizeof(at->sun_path));
	if (lstat(at->sun_path, &st) < 0 || !S_ISSOCK(st.st_mode))
		return;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	if (connect(fd, (const struct sockaddr *)at, sizeof(*at)) < 0 && errno == ECONNREFUSED)
		unlink(at->sun_path);
	close(fd);
}

int memif_args(const struct live_dev *dev, char *args, size_t size) {
	const char *run = rte_eal_get_runtime_dir(), *prefix = strrchr(run, '/');
	const char *socket = strstr(dev->text, SOCKET);
	const char *name = socket != NULL ? socket + strlen(SOCKET) : "memif";
	int before = (int)(socket != NULL ? socket - dev->text : (long)strlen(dev->text));
	int n, len = (int)strcspn(name, ",");
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	bool server = strstr(dev->text, "role=server") != NULL;

	if (!live_dev_is(dev, "net_memif") || strstr(dev->text, ",socket-abstract=") != NULL
		|| memchr(name, '/', (size_t)len) != NULL || prefix == NULL) {
		if (server && strstr(dev->text, ",socket-abstract=no") != NULL
			&& len < (int)sizeof(at.sun_path)) {
			memcpy(at.sun_path, name, (size_t)len);
			remove_abandoned(&at);
		}
		n = snprintf(args, size, "%s", dev->text);
		return n < (int)size ? 0 : -E2BIG;
	}
	n = snprintf(at.sun_path, sizeof(at.sun_path), "%.*s/%.*s.memif", (int)(prefix - run), run,
		len, name);
	if (n >= (int)sizeof(at.sun_path))
		return -E2BIG;
	if (server)
		remove_abandoned(&at);
	n = snprintf(args, size, "%.*s" SOCKET "%s,socket-abstract=no%s", before, dev->text,
		at.sun_path, socket != NULL ? name + len : "");
	return n < (int)size ? 0 : -E2BIG;
}
