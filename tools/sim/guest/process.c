// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/guest/process.h"

#include "tools/sim/guest/initramfs.h"
#include "tools/sim/guest/kernel.h"
#include "tools/sim/guest/message.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHM "/dev/shm"
#define FREE_FILES 8 // depth of nftw's open folders
#define MACHINE "x86_64"
#define PARAMS_SIZE 3072 // of COMMAND_LINE_SIZE, which is 4096 (arch/um/include/asm/setup.h)

// Our own two files lie beside the program: weir-sim, guest/init, guest/shim.so.
static int find_files(struct guest_folder *f, struct err *err) {
	char place[400];
	ssize_t n = readlink("/proc/self/exe", place, sizeof(place) - 1);

	place[n < 0 ? 0 : n] = '\0';
	char *slash = strrchr(place, '/');
	if (slash != NULL)
		*slash = '\0';
	snprintf(f->shim, sizeof(f->shim), "%s/guest/libguest-shim.so", place);
	snprintf(f->init, sizeof(f->init), "%s/guest/guest-init", place);
	if (access(f->shim, R_OK) == 0 && access(f->init, R_OK) == 0)
		return 0;
	return err_set(err, -ENOENT,
		"stack: linux needs %s and %s, and one is not there; build them: "
		"ninja -C build",
		f->init, f->shim);
}

static int check_machine(struct err *err) {
	struct utsname host;

	if (uname(&host) == 0 && strcmp(host.machine, MACHINE) == 0)
		return 0;
	return err_set(err, -ENOTSUP, "stack: linux runs on " MACHINE " only, and this is %s",
		host.machine);
}

// User Mode Linux runs its processes under ptrace.
static int check_ptrace(struct err *err) {
	pid_t pid = fork();
	int status = 0;

	if (pid == 0)
		_exit(ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0 ? 0 : 1);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return err_set(err, -errno, "guests: %s", strerror(errno));
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	return err_set(err, -EPERM,
		"stack: linux runs guests under ptrace, which this system "
		"forbids (in a container: --cap-add=SYS_PTRACE)");
}

static int check_shm(uint64_t bytes, struct err *err) {
	struct statvfs st;

	if (statvfs(SHM, &st) < 0)
		return err_set(err, -errno, SHM ": %s", strerror(errno));
	if ((st.f_flag & ST_NOEXEC) != 0)
		return err_set(err, -EPERM,
			"stack: linux keeps the guests' memory in " SHM
			", which is mounted noexec; run: mount -o remount,exec " SHM);
	uint64_t room = (uint64_t)st.f_bavail * st.f_frsize;
	if (room < bytes)
		return err_set(err, -ENOSPC,
			"stack: linux needs %llu MB in " SHM " for its guests, and "
			"%llu MB are free; use fewer hosts or less memory, or a larger " SHM,
			(unsigned long long)(bytes >> 20), (unsigned long long)(room >> 20));
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int what, struct FTW *place) {
	return what == FTW_DP ? rmdir(path) : unlink(path);
}

// Makes a folder and locks it. The kernel unlocks it when this process ends, however it ends: a
// folder that is not locked has no owner. Another run may take it for that before it is locked, and
// remove it: then a new one is made.
static int make_locked(struct guest_folder *f, struct err *err) {
	struct stat st;

	for (;;) {
		snprintf(f->path, sizeof(f->path), SHM "/weir-guests-XXXXXX");
		if (mkdtemp(f->path) == NULL) {
			f->path[0] = '\0';
			return err_set(err, -errno, SHM ": %s", strerror(errno));
		}
		f->lock_fd = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (f->lock_fd < 0 && errno == ENOENT)
			continue;
		if (f->lock_fd < 0 || flock(f->lock_fd, LOCK_EX) < 0 || fstat(f->lock_fd, &st) < 0)
			return err_set(err, -errno, "%s: %s", f->path, strerror(errno));
		if (st.st_nlink > 0)
			return 0;
		close(f->lock_fd);
		f->lock_fd = -1;
	}
}

// Removes what killed runs have left.
static void remove_stale(void) {
	glob_t found;

	if (glob(SHM "/weir-guests-*", GLOB_NOSORT, NULL, &found) != 0)
		return;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		const char *path = found.gl_pathv[i];
		int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		if (fd < 0)
			continue;
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			nftw(path, remove_one, FREE_FILES, FTW_DEPTH | FTW_PHYS);
		close(fd);
	}
	globfree(&found);
}

int guest_folder_check(struct guest_folder *f, uint64_t bytes, struct err *err) {
	int rc;

	memset(f, 0, sizeof(*f));
	f->lock_fd = -1;
	if ((rc = check_machine(err)) < 0)
		return rc;
	remove_stale();
	if ((rc = find_files(f, err)) < 0 || (rc = check_ptrace(err)) < 0)
		return rc;
	return check_shm(bytes, err);
}

int guest_folder_make(struct guest_folder *f, uint64_t bytes, struct err *err) {
	int rc = guest_folder_check(f, bytes, err);

	if (rc < 0)
		return rc;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	return make_locked(f, err);
}

void guest_folder_remove(struct guest_folder *f) {
	if (f->path[0] == '\0')
		return;
	nftw(f->path, remove_one, FREE_FILES, FTW_DEPTH | FTW_PHYS);
	f->path[0] = '\0';
	if (f->lock_fd >= 0)
		close(f->lock_fd);
	f->lock_fd = -1;
}

void guest_path(
	const struct guest_folder *f, uint32_t index, const char *suffix, char path[static 108]) {
	snprintf(path, 108, "%s/%u.%s", f->path, index, suffix);
}

// Parameters of what is built in: NAME.PARAM=VALUE, which the kernel has before it begins what they
// are of. The guest looks whether it took them (init_modules.c).
static int built_in_params(
	const struct guest_start *s, char text[static PARAMS_SIZE], struct err *err) {
	const struct guest_config *config = s->config;
	size_t n = 0;

	text[0] = '\0';
	for (uint32_t i = 0; i < config->modules; i++) {
		const char *rest = config->module[i].params;
		char one[GUEST_PARAMS];

		while (config->module[i].built_in && kernel_next_word(&rest, one, sizeof(one))) {
			n += (size_t)snprintf(text + n, PARAMS_SIZE - n, "%s%s.%s",
				n > 0 ? " " : "", config->module[i].name, one);
			if (n >= PARAMS_SIZE)
				return err_set(err, -E2BIG,
					"module: the parameters of what is built into a kernel "
					"have at most %d characters, with the "
					"names of their modules",
					PARAMS_SIZE - 1);
		}
	}
	return 0;
}

void guest_pin(int cpu) {
	cpu_set_t cpus;

	if (cpu < 0)
		return;
	CPU_ZERO(&cpus);
	CPU_SET((size_t)cpu, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
}

// What the kernel's command line may hold is the same in every run: it seeds the kernel's
// generator.
static void become(const struct guest_folder *f, const struct guest_start *s,
	char params[static PARAMS_SIZE]) {
	char memory[32], id[32], time[64], card[64], ram[64], seed[64], preload[544], home[80],
		temporary[80], page[32], log[108], program[544];
	char *const argv[] = {(char *)(uintptr_t) "linux", memory, id, time, card, ram,
		(char *)(uintptr_t) "root=/dev/ram0", (char *)(uintptr_t) "rdinit=/init",
		(char *)(uintptr_t) "con=null", (char *)(uintptr_t) "con0=null,fd:1",
		(char *)(uintptr_t) "console=tty0", (char *)(uintptr_t) "quiet",
		(char *)(uintptr_t) "norandmaps", (char *)(uintptr_t) "random.trust_bootloader=on",
		(char *)(uintptr_t) "panic=-1", params[0] == '\0' ? NULL : params, NULL};
	char *const environment[] = {preload, seed, home, temporary, page, NULL};
	int out, in;

	snprintf(memory, sizeof(memory), "mem=%lluM", (unsigned long long)(s->memory_bytes >> 20));
	snprintf(id, sizeof(id), "umid=weir%u", s->index);
	snprintf(time, sizeof(time), "time-travel=ext:%u:%u.time", s->index, s->index);
	snprintf(card, sizeof(card), "virtio_uml.device=%u.card:1", s->index);
	snprintf(ram, sizeof(ram), "initrd=%u.initramfs", s->index);
	snprintf(preload, sizeof(preload), "LD_PRELOAD=%s", f->shim);
	snprintf(seed, sizeof(seed), "WEIR_GUEST_SEED=%llu", (unsigned long long)s->seed);
	snprintf(home, sizeof(home), "HOME=%s", f->path);
	snprintf(temporary, sizeof(temporary), "TMPDIR=%s", f->path);
	snprintf(page, sizeof(page), "WEIR_GUEST_PAGE=%d", s->page_fd);
	guest_path(f, s->index, "log", log);
	out = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	in = open("/dev/null", O_RDONLY);
	guest_pin(s->cpu);
	if (out < 0 || in < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0
		|| fcntl(s->page_fd, F_SETFD, 0) < 0 || chdir(f->path) < 0
		|| personality(ADDR_NO_RANDOMIZE) < 0)
		_exit(126);
	snprintf(program, sizeof(program), "%s/linux", s->kernel->folder);
	execve(program, argv, environment);
	_exit(127);
}

pid_t guest_process(const struct guest_folder *f, const struct guest_start *s, struct err *err) {
	char path[108], params[PARAMS_SIZE];
	pid_t parent = getpid(), pid;
	int rc;

	guest_path(f, s->index, "initramfs", path);
	if ((rc = built_in_params(s, params, err)) < 0
		|| (rc = initramfs_write(path, f->init, s->kernel, s->config, s->config_bytes, err))
			< 0)
		return rc;
	pid = fork();
	if (pid == 0) {
		// It ends with weir-sim, however that ends, and a terminal's Ctrl-C is not for it.
		setsid();
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(125);
		signal(SIGINT, SIG_DFL);
		signal(SIGTERM, SIG_DFL);
		become(f, s, params);
	}
	return pid < 0 ? err_set(err, -errno, "guest %u: %s", s->index, strerror(errno)) : pid;
}

void guest_kill(pid_t pid) {
	kill(-pid, SIGKILL);
	kill(pid, SIGKILL);
	// Its children are ours when it is gone, and of its process group.
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	kill(-pid, SIGKILL);
	while (waitpid(-pid, NULL, 0) > 0 || errno == EINTR)
		;
}

void guest_last_words(const struct guest_folder *f, uint32_t index, char *text, size_t size) {
	char path[108], line[256];
	FILE *log;

	snprintf(text, size, "nothing");
	guest_path(f, index, "log", path);
	if ((log = fopen(path, "r")) == NULL)
		return;
	while (fgets(line, sizeof(line), log) != NULL) {
		size_t n = strcspn(line, "\r\n");

		line[n] = '\0';
		if (n > 0)
			snprintf(text, size, "%s", line);
		if (strstr(line, "panic") != NULL)
			break;
	}
	fclose(log);
}

void guest_keep_log(const struct guest_folder *f, uint32_t index, const char *run_folder) {
	char path[108], kept[600], bytes[4096];
	FILE *from, *to = NULL;
	size_t n;

	guest_path(f, index, "log", path);
	snprintf(kept, sizeof(kept), "%s/guest-%u.log", run_folder, index);
	unlink(kept); // of a run before, or a link
	if (f->path[0] == '\0' || (from = fopen(path, "r")) == NULL)
		return;
	while ((n = fread(bytes, 1, sizeof(bytes), from)) > 0) {
		if (to == NULL && (to = fopen(kept, "wx")) == NULL)
			break;
		fwrite(bytes, 1, n, to);
	}
	if (to != NULL)
		fclose(to);
	fclose(from);
}
