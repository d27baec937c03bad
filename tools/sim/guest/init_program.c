// SPDX-License-Identifier: BSD-3-Clause
// The program of the host that a config may name, in place of the flows' own sender or receiver.
//
//	/host             the host's files as the user of weir-sim may read them; nothing there can
//	                  be written
//	/host/proc, ...   this kernel's own /proc, /sys and /dev; /tmp, /var/tmp and /run are
//	                  writable, and empty but for the folder in which the program begins
//	$WEIR_OUT         a folder of the run's, on the host: what is written there stays
//
// The kernel holds files of that folder back: they are written at the program's end, and with each
// sample.
//
// It is a command of the host's shell. What it prints, and how it ends, is sent to weir-sim. It is
// root, to open any port, but without CAP_SYS_ADMIN, with which it could mount the host's files
// anew, to be written.
#include "tools/sim/guest/init.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define HOST "/host"
#define OUT "/tmp/weir-out" // as the program sees it
#define FILES HOST OUT

static pid_t child; // 0: not started
static bool stopped;
static int output = -1, deaths = -1;

static void mount_new(const char *type, const char *path, unsigned long flags, bool required) {
	if (mount("none", path, type, flags, NULL) < 0 && required)
		fail("run: %s: %s", path, strerror(errno));
}

// Shows a folder of the host's, also below what is mounted over the host's /tmp.
static void show(const char *folder, const char *as, unsigned long flags) {
	char path[sizeof(HOST) + GUEST_RUN];

	snprintf(path, sizeof(path), "%s", as);
	for (char *slash = path; (slash = strchr(slash + 1, '/')) != NULL; *slash = '/') {
		*slash = '\0';
		mkdir(path, 0777);
	}
	mkdir(path, 0777);
	if (mount("none", path, "hostfs", MS_NOSUID | MS_NODEV | flags, folder) < 0)
		fail("run: %s: %s", folder, strerror(errno));
}

static void show_folders(void) {
	char folder[sizeof(HOST) + GUEST_RUN];

	show(config->files, FILES, 0);
	if (config->stacks[0] != '\0')
		show(config->stacks, HOST GUEST_STACKS, MS_RDONLY);
	snprintf(folder, sizeof(folder), HOST "%s", config->folder);
	if (access(folder, F_OK) < 0)
		show(config->folder, folder, MS_RDONLY);
}

void program_prepare(void) {
	sigset_t ends;

	mkdir(HOST, 0755);
	mount_new("hostfs", HOST, MS_RDONLY | MS_NOSUID | MS_NODEV, true);
	mount_new("proc", HOST "/proc", 0, true);
	mount_new("sysfs", HOST "/sys", 0, false);
	mount_new("devtmpfs", HOST "/dev", 0, true);
	mkdir(HOST "/dev/shm", 0777);
	mount_new("tmpfs", HOST "/dev/shm", 0, false);
	mkdir(HOST "/dev/pts", 0755);
	mount_new("devpts", HOST "/dev/pts", 0, false);
	if (symlink("/proc/self/fd", HOST "/dev/fd") < 0 && errno != EEXIST)
		fail("run: /dev/fd: %s", strerror(errno));
	mount_new("tmpfs", HOST "/tmp", 0, true);
	mount_new("tmpfs", HOST "/var/tmp", 0, false);
	mount_new("tmpfs", HOST "/run", 0, false);
	show_folders();
	sigemptyset(&ends);
	sigaddset(&ends, SIGCHLD);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	if ((deaths = signalfd(-1, &ends, SFD_NONBLOCK | SFD_CLOEXEC)) < 0)
		fail("run: signals: %s", strerror(errno));
}

// In the child.
__attribute__((noreturn)) static void become(int to) {
	char shell[] = "sh", option[] = "-c";
	char *const argv[] = {shell, option, (char *)(uintptr_t)config->run, NULL};
	char path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
	char home[] = "HOME=/tmp", temporary[] = "TMPDIR=/tmp", locale[] = "LANG=C.UTF-8";
	char out_folder[] = "WEIR_OUT=" OUT;
	// OpenSSL asks the processor for neither random numbers nor its cycle counter.
	char cpu[] = "OPENSSL_ia32cap=~0x4000000000000010:~0x40000";
	char *const environment[] = {path, home, temporary, locale, out_folder, cpu, NULL};
	sigset_t none;
	int in;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	if (chroot(HOST) < 0 || (chdir(config->folder) < 0 && chdir("/") < 0)
		|| (in = open("/dev/null", O_RDONLY)) < 0
		|| prctl(PR_CAPBSET_DROP, CAP_SYS_ADMIN, 0, 0, 0) < 0 || dup2(in, 0) < 0
		|| dup2(to, 1) < 0 || dup2(to, 2) < 0)
		_exit(126);
	for (int fd = 3; fd < 64; fd++)
		close(fd);
	execve("/bin/sh", argv, environment);
	dprintf(2, "/bin/sh: %s\n", strerror(errno));
	_exit(127);
}

static void start(void) {
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0 || fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0)
		fail("run: pipe: %s", strerror(errno));
	child = fork();
	if (child < 0)
		fail("run: %s", strerror(errno));
	if (child == 0)
		become(ends[1]);
	close(ends[1]);
	output = ends[0];
	watch_program(output);
}

uint64_t program_next_ns(void) {
	if (child == 0)
		return config->run_ns;
	return child > 0 && !stopped ? config->run_stop_ns : GUEST_NEVER;
}

void program_due(uint64_t now_ns) {
	if (child == 0 && config->run_ns <= now_ns)
		start();
	if (child > 0 && !stopped && config->run_stop_ns <= now_ns) {
		stopped = true;
		kill(-child, SIGTERM);
	}
}

// Sends on what it has printed; at its end all that is left.
static void forward(bool all) {
	ssize_t n = 0;

	while (output >= 0 && (n = read(output, out.sample, sizeof(out.sample))) > 0) {
		send_message(MESSAGE_OUTPUT, (uint32_t)n, (size_t)n);
		if (!all)
			return;
	}
	if (output >= 0 && (n == 0 || (errno != EAGAIN && errno != EINTR))) {
		close(output);
		output = -1;
	}
}

int program_deaths(void) {
	return deaths;
}

void program_serve(void) {
	struct signalfd_siginfo said;
	int status;
	pid_t pid;

	forward(false);
	if (read(deaths, &said, sizeof(said)) != sizeof(said))
		return;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid != child)
			continue;
		forward(true);
		sync();
		child = -1;
		send_message(MESSAGE_ENDED, (uint32_t)status, 0);
	}
}
