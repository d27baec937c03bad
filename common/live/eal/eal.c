// SPDX-License-Identifier: BSD-3-Clause
#include "common/live/eal/eal.h"

#include "common/base/file.h"
#include "common/base/mem.h"
#include "common/live/eal/eal_folder.h"
#include "common/live/eal/memif_intr.h"

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
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define EAL_ARGS_MAX 64
#define EAL_OWN_BYTES (UINT64_C(48) << 20) // rings, ethdev tables, heap overhead

// The argument vector for rte_eal_init; the pointers point into `text`.
struct eal_argv {
	char *argv[EAL_ARGS_MAX];
	int argc;
	char text[2048];
	size_t used;
	bool too_many;
};

__attribute__((format(printf, 2, 3))) static void arg_add(
	struct eal_argv *a, const char *fmt, ...) {
	size_t room = sizeof(a->text) - a->used;
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(a->text + a->used, room, fmt, ap);
	va_end(ap);
	a->too_many |= a->argc + 1 >= EAL_ARGS_MAX || (size_t)len >= room;
	if (a->too_many)
		return;
	a->argv[a->argc++] = a->text + a->used;
	a->used += (size_t)len + 1;
}

// Whether the user gave one of these options, separated by spaces, after "--".
static bool user_gave(const struct eal_args *args, const char *options) {
	for (int i = 0; i < args->user_argc; i++) {
		for (const char *o = options; *o != '\0'; o += strspn(o, " ")) {
			size_t len = strcspn(o, " ");
			const char *arg = args->user_argv[i];

			if (strncmp(arg, o, len) == 0
				&& (arg[len] == '\0' || arg[len] == '=' || o[1] != '-'))
				return true;
			o += len;
		}
	}
	return false;
}

// Free hugepages of all sizes, in bytes.
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

// Chooses hugepages for the pools if enough are free and the user may use them, and checks that
// ordinary memory suffices for the rest.
static int choose_memory(struct eal *e, const struct eal_args *args, struct err *err) {
	uint64_t free_bytes = hugepages_free(), pages;

	e->memory_bytes = args->pool_bytes + EAL_OWN_BYTES;
	pages = (e->memory_bytes >> 21) + 1;
	e->hugepages = args->process->hugepages != LIVE_HUGEPAGES_NO
		&& free_bytes >= e->memory_bytes && geteuid() == 0;
	if (args->process->hugepages == LIVE_HUGEPAGES_YES && free_bytes < e->memory_bytes)
		return err_set(err, -ENOMEM,
			"hugepages: %.0f MB are needed and %.0f MB are free; reserve %llu of 2 MB "
			"(echo %llu > /proc/sys/vm/nr_hugepages) or set hugepages: auto",
			(double)e->memory_bytes / 1e6, (double)free_bytes / 1e6,
			(unsigned long long)pages, (unsigned long long)pages);
	for (uint32_t i = 0; !e->hugepages && i < args->devs; i++) {
		if (args->dev[i]->zero_copy)
			return config_err(args->dev[i]->node, -ENOMEM, err,
				"dev: zero-copy=yes of a memif needs hugepages: "
				"%.0f MB are needed and %.0f MB are free",
				(double)e->memory_bytes / 1e6, (double)free_bytes / 1e6);
	}
	if (args->process->force)
		return 0;
	return mem_check(args->other_bytes + (e->hugepages ? 0 : e->memory_bytes), args->what, err);
}

// A single lcore's id is its CPU's number if that is a valid lcore id; several lcores are numbered
// from 0.
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
	arg_add(a, "%s", text);
}

static void build_args(struct eal_argv *a, const struct eal *e, const struct eal_args *args) {
	bool pci = false;

	arg_add(a, "%s", args->program);
	if (!user_gave(args, "-l --lcores -c"))
		add_lcores(a, args->process);
	if (!user_gave(args, "--file-prefix --in-memory")) {
		arg_add(a, "--file-prefix");
		arg_add(a, "%s", args->process->prefix);
	}
	for (uint32_t i = 0; i < args->devs; i++) {
		if (!args->dev[i]->pci)
			continue;
		pci = true;
		arg_add(a, "-a");
		arg_add(a, "%s", args->dev[i]->text);
	}
	if (!pci && !user_gave(args, "--no-pci -a"))
		arg_add(a, "--no-pci");
	if (!user_gave(args, "-m --socket-mem")) {
		arg_add(a, "-m");
		arg_add(a, "%llu", (unsigned long long)(e->memory_bytes >> 20) + 1);
	}
	// --in-memory needs no mounted hugetlbfs, and memif needs the memory's file descriptors.
	if (e->hugepages && !user_gave(args, "--in-memory --huge-dir"))
		arg_add(a, "--in-memory");
	if (e->hugepages && !user_gave(args, "--single-file-segments"))
		arg_add(a, "--single-file-segments");
	// --no-huge and --in-memory exclude each other.
	if (!e->hugepages && !user_gave(args, "--no-huge --in-memory --huge-dir"))
		arg_add(a, "--no-huge");
	for (int i = 0; i < args->user_argc; i++)
		arg_add(a, "%s", args->user_argv[i]);
}

static int failed(const struct eal *e, const struct eal_args *args, int code, struct err *err) {
	char reason[256];

	eal_log_reason(e, 0, reason, sizeof(reason));
	if (strstr(reason, "another primary") != NULL)
		return eal_folder_taken(args, err);
	// DPDK does not name the option that it rejects.
	if (strstr(reason, "command line") != NULL && args->user_argc > 0)
		return err_set(err, -EINVAL,
			"DPDK refuses its arguments, those after '--' (the first is '%s')",
			args->user_argv[0]);
	if (code == EACCES || code == EPERM)
		return err_set(err, -EACCES, "DPDK: %s (no permission? run as root)", reason);
	return err_set(
		err, -EIO, "DPDK did not start: %s", reason[0] ? reason : rte_strerror(code));
}

// Refuses ports that the EAL already made: they were named after "--", past the checks on the
// config's ports.
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

// Calls rte_eal_init with stdout and stderr redirected: it writes some errors to stderr and its
// usage to stdout. It permutes argv.
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

// Refuses CPUs that this process may not use.
static int check_lcores(const struct live_process *process, struct err *err) {
	cpu_set_t allowed;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		return 0;
	for (uint32_t i = 0; i < process->lcores; i++) {
		if (!CPU_ISSET(process->lcore[i], &allowed))
			return config_err(config_at(process->lcores_node, i), -EINVAL, err,
				"lcores: CPU %u is not among the %d this process may use",
				process->lcore[i], CPU_COUNT(&allowed));
	}
	return 0;
}

// DPDK logs to an unnamed file until the run folder exists.
static int open_log(struct eal *e, struct err *err) {
	FILE *log;

	e->log_fd = memfd_create("dpdk-log", MFD_CLOEXEC);
	if (e->log_fd < 0 || (log = fdopen(dup(e->log_fd), "w")) == NULL)
		return err_set(err, -errno, "DPDK: its log: %s", strerror(errno));
	setvbuf(log, NULL, _IONBF, 0);
	rte_openlog_stream(log);
	return 0;
}

int eal_start(struct eal *e, const struct eal_args *args, struct err *err) {
	struct eal_argv a = {.argc = 0};
	struct err why;
	int rc;

	*e = (struct eal)EAL_NONE;
	e->umask = umask(S_IRWXG | S_IRWXO);
	if ((rc = check_lcores(args->process, err)) < 0)
		return rc;
	if ((rc = choose_memory(e, args, &why)) < 0)
		return err_set(err, rc, "%s (%s)", why.msg, args->sum);
	build_args(&a, e, args);
	if (a.too_many)
		return err_set(err, -E2BIG, "DPDK: too many arguments");
	for (int i = 1; i < a.argc; i++) {
		size_t used = strlen(e->args);

		snprintf(e->args + used, sizeof(e->args) - used, i > 1 ? " %s" : "%s", a.argv[i]);
	}
	if ((rc = eal_folder_check(args, err)) < 0 || (rc = open_log(e, err)) < 0)
		return rc;
	if (init_hushed(e, a.argc, a.argv) < 0) {
		rc = failed(e, args, rte_errno, err);
		if (rc != -EBUSY) // eal_stop removes what is left of it
			eal_folder_lock(&e->lock_fd, args, NULL);
		return rc;
	}
	e->started = true;
	if ((rc = eal_folder_lock(&e->lock_fd, args, err)) < 0)
		return rc;
	if ((rc = memif_intr_check(err)) < 0)
		return rc;
	if (rte_lcore_count() < args->process->lcores)
		return err_set(err, -EINVAL,
			"DPDK has %u lcores, named after '--' (-l or --lcores), "
			"and `lcores` names %u",
			rte_lcore_count(), args->process->lcores);
	return no_ports_yet(args, err);
}

void eal_usual_modes(const struct eal *e) {
	umask(e->umask);
}

void eal_stop(struct eal *e) {
	if (e->started)
		rte_eal_cleanup();
	e->started = false;
	if (e->lock_fd >= 0) {
		eal_folder_remove();
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
	FILE *f = file_new(path);

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

// The cause of a failure, from lines of the log, which it changes.
static bool reason_in(char *lines, char *text, size_t size) {
	// The first line with one of these words has the cause; later ones only repeat that
	// something failed.
	static const char *const words[] = {"another primary", "annot", "ouldn't", "ailed", "rror",
		"nvalid", "nable", "not ", "FATAL", NULL};
	char *line, *save = NULL;
	bool found = false;

	for (line = strtok_r(lines, "\n", &save); line != NULL;
		line = strtok_r(NULL, "\n", &save)) {
		const char *colon = strstr(line, ": ");

		if (strstr(line, "mp action") != NULL) // Weir is one process
			continue;
		for (int i = 0; words[i] != NULL; i++) {
			if (strstr(line, words[i]) == NULL || (found && i > 0))
				continue;
			// Skips "EAL: " or "function(): ".
			snprintf(text, size, "%s", colon != NULL ? colon + 2 : line);
			found = true;
			break;
		}
	}
	return found;
}

static char *log_read(const struct eal *e, long mark, char *buf, size_t size) {
	ssize_t n = e->log_fd >= 0 ? pread(e->log_fd, buf, size - 1, mark) : 0;

	buf[n > 0 ? n : 0] = '\0';
	return buf;
}

void eal_log_reason(const struct eal *e, long mark, char *text, size_t size) {
	char buf[8192];

	if (!reason_in(log_read(e, mark, buf, sizeof(buf)), text, size))
		snprintf(text, size, "unknown reason");
}

bool eal_log_device(const struct eal *e, const char *device, char *text, size_t size) {
	char buf[1 << 15], *line = strstr(log_read(e, 0, buf, sizeof(buf)), device), *next;

	if (line == NULL)
		return false;
	while (line > buf && line[-1] != '\n')
		line--;
	// What follows of the next device is not about this one.
	next = strchr(line, '\n');
	if (next != NULL && (next = strstr(next, "Probe PCI driver")) != NULL)
		*next = '\0';
	return reason_in(line, text, size);
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
