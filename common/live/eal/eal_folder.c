// SPDX-License-Identifier: BSD-3-Clause
#include "common/live/eal/eal_folder.h"

#include "common/live/eal/eal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <rte_eal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define LOCK "weir.lock"
#define TELEMETRY "dpdk_telemetry.v2" // a second program's ends with ":1"
#define ANSWER_S 2

// The prefix that the EAL is started with: the config's, or the user's behind "--".
static const char *prefix_of(const struct eal_args *args) {
	static const char option[] = "--file-prefix";
	const char *prefix = args->process->prefix;

	for (int i = 0; i < args->user_argc; i++) {
		const char *arg = args->user_argv[i];

		if (strcmp(arg, "--in-memory") == 0 && prefix == args->process->prefix)
			prefix = "rte"; // DPDK's own
		if (strncmp(arg, option, strlen(option)) != 0)
			continue;
		if (arg[strlen(option)] == '=')
			prefix = arg + strlen(option) + 1;
		else if (i + 1 < args->user_argc)
			prefix = args->user_argv[i + 1];
	}
	return prefix;
}

int eal_folder_taken(const struct eal_args *args, struct err *err) {
	return err_set(err, -EBUSY,
		"another program runs with the prefix '%s'; give this one a prefix of its own "
		"(-o live.%s.prefix=NAME)",
		prefix_of(args), strstr(args->program, "sender") != NULL ? "sender" : "switch");
}

// As DPDK finds it, which has not started.
static int folder_of(const struct eal_args *args, char *path, size_t size) {
	const char *root = getenv("RUNTIME_DIRECTORY");

	if (root == NULL)
		root = geteuid() == 0 ? "/var/run" : getenv("XDG_RUNTIME_DIR");
	int n = snprintf(path, size, "%s/dpdk/%s", root != NULL ? root : "/tmp", prefix_of(args));
	return n < (int)size ? 0 : -ENAMETOOLONG;
}

// Whether a program listens at a socket. Its greeting is read: DPDK writes to a client that is
// gone, and dies of it.
static bool answers(const struct sockaddr_un *at) {
	struct timeval timeout = {.tv_sec = ANSWER_S};
	char greeting[1024];
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	bool connected;

	if (fd < 0)
		return false;
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)); // of connect, too
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	connected = connect(fd, (const struct sockaddr *)at, sizeof(*at)) == 0 || errno == EAGAIN;
	if (connected)
		(void)!recv(fd, greeting, sizeof(greeting), 0);
	close(fd);
	return connected;
}

int eal_folder_check(const struct eal_args *args, struct err *err) {
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	char folder[512];
	struct dirent *entry;
	DIR *dir = folder_of(args, folder, sizeof(folder)) == 0 ? opendir(folder) : NULL;
	bool taken = false;

	while (!taken && dir != NULL && (entry = readdir(dir)) != NULL) {
		int n = snprintf(at.sun_path, sizeof(at.sun_path), "%s/%s", folder, entry->d_name);

		taken = strncmp(entry->d_name, TELEMETRY, strlen(TELEMETRY)) == 0
			&& n < (int)sizeof(at.sun_path) && answers(&at);
	}
	if (dir != NULL)
		closedir(dir);
	return taken ? eal_folder_taken(args, err) : 0;
}

// Locks the file prefix, which the EAL does not do itself with --in-memory.
int eal_folder_lock(int *lock_fd, const struct eal_args *args, struct err *err) {
	const char *folder = rte_eal_get_runtime_dir();
	char path[512];
	struct stat st;

	if (folder[0] == '\0')
		return err_set(err, -ENOENT, "DPDK has no runtime folder");
	snprintf(path, sizeof(path), "%s/" LOCK, folder);
	for (;;) {
		int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

		if (fd < 0)
			return err_set(err, -errno, "%s: %s", path, strerror(errno));
		if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
			close(fd);
			return eal_folder_taken(args, err);
		}
		// A program that has just ended may have removed this file after it was opened
		// here.
		if (fstat(fd, &st) < 0 || st.st_nlink > 0) {
			*lock_fd = fd;
			return 0;
		}
		close(fd);
	}
}

void eal_folder_remove(void) {
	static const char *const names[] = {
		"config", "fbarray_", "hugepage_", "mp_socket", TELEMETRY, LOCK, NULL};
	const char *folder = rte_eal_get_runtime_dir();
	DIR *dir = opendir(folder);
	struct dirent *entry;

	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		for (size_t i = 0; names[i] != NULL; i++) {
			if (strncmp(entry->d_name, names[i], strlen(names[i])) == 0)
				unlinkat(dirfd(dir), entry->d_name, 0);
		}
	}
	if (dir != NULL)
		closedir(dir);
	rmdir(folder);
}
