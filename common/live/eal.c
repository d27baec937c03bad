// SPDX-License-Identifier: BSD-3-Clause
#include "common/live/eal.h"

#include "common/live/intr.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define EAL_ARGS_MAX 64
#define LOCK "weir.lock" // in the runtime folder
#define EAL_OWN_BYTES (UINT64_C(48) << 20) // rings, ethdev tables, heap overhead

// What goes to rte_eal_init: pointers into `text` or to strings that live as long as the process.
struct eal_argv {
	char *argv[EAL_ARGS_MAX];
	int argc;
	char text[2048];
	size_t used;
	int user_argc;
	char **user_argv;
	bool full;
};

static void arg_add(struct eal_argv *a, const char *text) {
	size_t len = strlen(text) + 1;

	if (a->argc + 1 >= EAL_ARGS_MAX || a->used + len > sizeof(a->text)) {
		a->full = true;
		return;
	}
	memcpy(a->text + a->used, text, len);
	a->argv[a->argc++] = a->text + a->used;
	a->used += len;
}

// Did the user give this option (or one it cannot be combined with) after "--"?
static bool user_gave(const struct eal_argv *a, const char *option) {
	size_t len = strlen(option);

	for (int i = 0; i < a->user_argc; i++) {
		const char *arg = a->user_argv[i];

		if (strncmp(arg, option, len) == 0
			&& (arg[len] == '\0' || arg[len] == '=' || option[1] != '-'))
			return true;
	}
	return false;
}

// Bytes of free hugepages of all sizes.
static uint64_t hugepages_free(void) {
	const char *root = "/sys/kernel/mm/hugepages";
	DIR *dir = opendir(root);
	struct dirent *entry;
	uint64_t bytes = 0;

	if (dir == NULL)
		return 0;
	while ((entry = readdir(dir)) != NULL) {
		unsigned long long kb, pages = 0;
		char path[512];
		FILE *f;

		if (sscanf(entry->d_name, "hugepages-%llukB", &kb) != 1)
			continue;
		snprintf(path, sizeof(path), "%s/%s/free_hugepages", root, entry->d_name);
		if ((f = fopen(path, "re")) == NULL)
			continue;
		if (fscanf(f, "%llu", &pages) == 1)
			bytes += (uint64_t)(pages * kb * 1024);
		fclose(f);
	}
	closedir(dir);
	return bytes;
}

static int choose_memory(struct eal *e, const struct eal_args *args, struct err *err) {
	uint64_t free_bytes = hugepages_free();

	e->memory_bytes = args->memory_bytes + EAL_OWN_BYTES;
	if (args->process->hugepages == LIVE_HUGEPAGES_YES && free_bytes < e->memory_bytes)
		return err_set(err, -ENOMEM,
			"hugepages: %.0f MB are needed and %.0f MB are free; reserve %llu of 2 MB "
			"(echo %llu > /proc/sys/vm/nr_hugepages) or set hugepages: auto",
			(double)e->memory_bytes / 1e6, (double)free_bytes / 1e6,
			(unsigned long long)(e->memory_bytes >> 21) + 1,
			(unsigned long long)(e->memory_bytes >> 21) + 1);
	e->hugepages = args->process->hugepages != LIVE_HUGEPAGES_NO
		&& free_bytes >= e->memory_bytes && geteuid() == 0;
	for (uint32_t i = 0; !e->hugepages && i < args->devs; i++) {
		if (args->dev[i]->zero_copy)
			return config_err(args->dev[i]->node, -ENOMEM, err,
				"dev: zero-copy=yes of a memif needs hugepages: %.0f MB are needed and "
				"%.0f MB are free",
				(double)e->memory_bytes / 1e6, (double)free_bytes / 1e6);
	}
	if (!e->hugepages && !args->process->force)
		return live_memory_check(e->memory_bytes, "the packet pools", err);
	return 0;
}

// One lcore's id is its CPU's number where ids reach that far; several are counted from 0.
static void add_lcores(struct eal_argv *a, const struct live_process *process) {
	char text[LIVE_LCORES_MAX * 12];
	size_t used = 0;

	if (process->lcores == 1 && process->lcore[0] < RTE_MAX_LCORE)
		snprintf(text, sizeof(text), "%u", process->lcore[0]);
	else
		for (uint32_t i = 0; i < process->lcores; i++)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%u@%u",
				i > 0 ? "," : "", i, process->lcore[i]);
	arg_add(a, "--lcores");
	arg_add(a, text);
}

static void build_args(struct eal_argv *a, const struct eal *e, const struct eal_args *args) {
	bool pci = false;
	char text[160];

	arg_add(a, args->program);
	if (!user_gave(a, "-l") && !user_gave(a, "--lcores") && !user_gave(a, "-c"))
		add_lcores(a, args->process);
	if (!user_gave(a, "--file-prefix") && !user_gave(a, "--in-memory")) {
		arg_add(a, "--file-prefix");
		arg_add(a, args->process->prefix);
	}
	for (uint32_t i = 0; i < args->devs; i++) {
		if (!args->dev[i]->pci)
			continue;
		pci = true;
		arg_add(a, "-a");
		arg_add(a, args->dev[i]->text);
	}
	if (!pci && !user_gave(a, "--no-pci") && !user_gave(a, "-a"))
		arg_add(a, "--no-pci");
	if (!user_gave(a, "-m") && !user_gave(a, "--socket-mem")) {
		snprintf(text, sizeof(text), "%llu",
			(unsigned long long)(e->memory_bytes >> 20) + 1);
		arg_add(a, "-m");
		arg_add(a, text);
	}
	if (e->hugepages) {
		// Without a mounted hugetlbfs, and as memif wants it.
		if (!user_gave(a, "--in-memory") && !user_gave(a, "--huge-dir"))
			arg_add(a, "--in-memory");
		if (!user_gave(a, "--single-file-segments"))
			arg_add(a, "--single-file-segments");
	} else if (!user_gave(a, "--no-huge") && !user_gave(a, "--in-memory")
		&& !user_gave(a, "--huge-dir")) {
		// --no-huge and --in-memory exclude each other.
		arg_add(a, "--no-huge");
	}
	for (int i = 0; i < a->user_argc; i++)
		arg_add(a, a->user_argv[i]);
}

static int prefix_taken(const struct eal_args *args, struct err *err) {
	return err_set(err, -EBUSY,
		"another program runs with the prefix '%s'; give this one a prefix of its own "
		"(-o live.%s.prefix=NAME)",
		args->process->prefix,
		strstr(args->program, "sender") != NULL ? "sender" : "switch");
}

static int failed(const struct eal *e, const struct eal_args *args, int code, struct err *err) {
	char reason[256];

	eal_log_reason(e, 0, reason, sizeof(reason));
	if (strstr(reason, "another primary") != NULL)
		return prefix_taken(args, err);
	// It does not say which.
	if (strstr(reason, "command line") != NULL && args->user_argc > 0)
		return err_set(err, -EINVAL,
			"DPDK refuses its arguments, those after '--' (the first is '%s')",
			args->user_argv[0]);
	if (code == EACCES || code == EPERM)
		return err_set(err, -EACCES, "DPDK: %s (no permission? run as root)", reason);
	return err_set(
		err, -EIO, "DPDK did not start: %s", reason[0] ? reason : rte_strerror(code));
}

// What comes up with the EAL was named after "--" and not in the config, which guards its ports.
static int no_ports_yet(const struct eal_args *args, struct err *err) {
	char name[RTE_ETH_NAME_MAX_LEN] = "";
	uint16_t id = rte_eth_find_next(0);

	if (args->process->allow_nic || id >= RTE_MAX_ETHPORTS)
		return 0;
	rte_eth_dev_get_name_by_port(id, name);
	return err_set(err, -EINVAL,
		"DPDK brought up '%s', named after '--' (-a or --vdev); name it as a port's `dev` "
		"instead, or set live.allow_nic: yes if its network is yours",
		name);
}

// The EAL locks its prefix itself, but not with --in-memory.
static int lock_prefix(struct eal *e, const struct eal_args *args, struct err *err) {
	char path[512];
	struct stat st;

	snprintf(path, sizeof(path), "%s/" LOCK, rte_eal_get_runtime_dir());
	for (;;) {
		int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

		if (fd < 0)
			return err_set(err, -errno, "%s: %s", path, strerror(errno));
		if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
			close(fd);
			return prefix_taken(args, err);
		}
		// Or is it the file of a program that has just ended, and removed it?
		if (fstat(fd, &st) < 0 || st.st_nlink > 0) {
			e->lock_fd = fd;
			return 0;
		}
		close(fd);
	}
}

// What a program leaves in DPDK's runtime folder, and its folder there. Only who has the prefix's lock.
static void remove_runtime(void) {
	static const char *const names[] = {
		"config", "fbarray_", "hugepage_", "mp_socket", "dpdk_telemetry.v2", LOCK, NULL};
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

int eal_hush(const struct eal *e) {
	int saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);

	fflush(stderr);
	if (saved >= 0 && e->log_fd >= 0)
		dup2(e->log_fd, STDERR_FILENO);
	return saved;
}

void eal_unhush(int saved) {
	if (saved < 0)
		return;
	fflush(stderr);
	dup2(saved, STDERR_FILENO);
	close(saved);
}

// rte_eal_init permutes its argv, writes some errors to stderr itself, and to stdout its usage.
static int init_hushed(const struct eal *e, int argc, char **argv) {
	int saved = eal_hush(e), out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0), rc;
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	fflush(stdout);
	if (out >= 0 && null >= 0)
		dup2(null, STDOUT_FILENO);
	rc = rte_eal_init(argc, argv);
	fflush(stdout);
	if (out >= 0)
		dup2(out, STDOUT_FILENO);
	close(out);
	close(null);
	eal_unhush(saved);
	return rc;
}

int eal_start(struct eal *e, const struct eal_args *args, struct err *err) {
	struct eal_argv a = {.user_argc = args->user_argc, .user_argv = args->user_argv};
	char **argv;
	int rc;
	FILE *log;

	memset(e, 0, sizeof(*e));
	e->log_fd = e->lock_fd = -1;
	umask(S_IRWXG | S_IRWXO);
	if ((rc = live_lcores_check(args->process, err)) < 0)
		return rc;
	if ((rc = choose_memory(e, args, err)) < 0)
		return rc;
	build_args(&a, e, args);
	if (a.full)
		return err_set(err, -E2BIG, "DPDK: too many arguments");
	for (int i = 1; i < a.argc; i++) {
		size_t used = strlen(e->args);

		snprintf(e->args + used, sizeof(e->args) - used, i > 1 ? " %s" : "%s", a.argv[i]);
	}
	e->log_fd = memfd_create("dpdk-log", MFD_CLOEXEC);
	if (e->log_fd < 0 || (log = fdopen(dup(e->log_fd), "w")) == NULL)
		return err_set(err, -errno, "DPDK: its log: %s", strerror(errno));
	setvbuf(log, NULL, _IONBF, 0);
	rte_openlog_stream(log);
	argv = calloc((size_t)a.argc + 1, sizeof(*argv));
	if (argv == NULL)
		return err_set(err, -ENOMEM, "DPDK: out of memory");
	memcpy(argv, a.argv, (size_t)a.argc * sizeof(*argv));
	rc = init_hushed(e, a.argc, argv);
	free(argv);
	if (rc < 0)
		return failed(e, args, rte_errno, err);
	e->started = true;
	if ((rc = intr_check(err)) < 0)
		return rc;
	if (rte_lcore_count() < args->process->lcores)
		return err_set(err, -EINVAL,
			"DPDK has %u lcores, named after '--' (-l or --lcores), and `lcores` names %u",
			rte_lcore_count(), args->process->lcores);
	if ((rc = no_ports_yet(args, err)) < 0)
		return rc;
	return lock_prefix(e, args, err);
}

void eal_stop(struct eal *e) {
	if (e->started)
		rte_eal_cleanup();
	e->started = false;
	if (e->lock_fd >= 0) {
		remove_runtime();
		close(e->lock_fd);
	}
	e->lock_fd = -1;
	if (e->log_fd >= 0)
		close(e->log_fd);
	e->log_fd = -1;
}

int eal_log_to(struct eal *e, const char *path, struct err *err) {
	char buf[4096];
	off_t at = 0;
	ssize_t n;
	FILE *f = fopen(path, "we");

	if (f == NULL)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	setvbuf(f, NULL, _IOLBF, 0);
	fprintf(f, "%s %s\n", rte_version(), e->args);
	while ((n = pread(e->log_fd, buf, sizeof(buf), at)) > 0) {
		fwrite(buf, 1, (size_t)n, f);
		at += n;
	}
	rte_openlog_stream(f);
	return 0;
}

long eal_log_mark(const struct eal *e) {
	struct stat st;

	return e->log_fd >= 0 && fstat(e->log_fd, &st) == 0 ? (long)st.st_size : 0;
}

void eal_log_reason(const struct eal *e, long mark, char *text, size_t size) {
	// Later lines only repeat that something failed; the first that says so has the cause.
	static const char *const words[] = {"another primary", "annot", "ouldn't", "ailed", "rror",
		"nvalid", "nable", "not ", "FATAL", NULL};
	char buf[8192], *line, *save = NULL;
	ssize_t n = e->log_fd >= 0 ? pread(e->log_fd, buf, sizeof(buf) - 1, mark) : 0;
	bool found = false;

	snprintf(text, size, "unknown reason");
	if (n <= 0)
		return;
	buf[n] = '\0';
	for (line = strtok_r(buf, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
		const char *colon = strstr(line, ": ");

		if (strstr(line, "mp action") != NULL) // one process has none, and needs none
			continue;
		for (int i = 0; words[i] != NULL; i++) {
			if (strstr(line, words[i]) == NULL || (found && i > 0))
				continue;
			// Past "EAL: " or "function(): ".
			snprintf(text, size, "%s", colon != NULL ? colon + 2 : line);
			found = true;
			break;
		}
	}
}

void eal_run_lcores(int (*loop)(void *), void *const *arg, uint32_t n) {
	unsigned int id;
	uint32_t k = 1;

	RTE_LCORE_FOREACH_WORKER(id) {
		if (k < n)
			rte_eal_remote_launch(loop, arg[k++], id);
	}
	loop(arg[0]);
	rte_eal_mp_wait_lcore();
}
