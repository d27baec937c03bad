// SPDX-License-Identifier: BSD-3-Clause
// The run folder, as run.h and folder.h describe it.
#include "common/run/run_folder.h"

#include "common/base/file.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#define LOCK_NAME ".weir-lock"
#define RESERVE_BYTES (128u << 10) // a summary of many groups and links, and a manifest

void folder_utc_text(time_t t, const char *format, char *text, size_t size) {
	struct tm tm;

	gmtime_r(&t, &tm);
	strftime(text, size, format, &tm);
}

// "<dir>/<before><name><suffix><after>" with the program's suffix before the name's last dot.
static int file_path(const struct run *r, const char *name, const char *before, const char *after,
	char *path, size_t size) {
	const char *dot = strrchr(name, '.');
	size_t stem = dot != NULL ? (size_t)(dot - name) : strlen(name);
	size_t suffix = strlen(r->suffix);
	bool has = stem >= suffix && strncmp(name + stem - suffix, r->suffix, suffix) == 0;
	int n = snprintf(path, size, "%s/%s%.*s%s%s%s", r->dir, before, (int)stem, name,
		has ? "" : r->suffix, name + stem, after);

	return n < (int)size ? 0 : -ENAMETOOLONG;
}

static int write_error(const char *path, int error, struct err *err) {
	return err_set(err, -error, "%s: cannot be written: %s", path, strerror(error));
}

int folder_file_begin(const struct run *r, const char *name, FILE **f, struct err *err) {
	char temporary[768], path[768];

	if (file_path(r, name, ".", ".tmp", temporary, sizeof(temporary)) < 0
		|| file_path(r, name, "", "", path, sizeof(path)) < 0)
		return write_error(name, ENAMETOOLONG, err);
	*f = file_new(temporary);
	return *f != NULL ? 0 : write_error(path, errno, err);
}

// Closes f; 0 or what stopped its bytes from reaching the file.
static int close_error(FILE *f) {
	int error = 0;

	if (fflush(f) != 0)
		error = errno;
	else if (ferror(f) != 0) // at some write before, and errno is gone: ask again
		error = write(fileno(f), "", 1) < 0 ? errno : EIO;
	if (fclose(f) != 0 && error == 0)
		error = errno;
	return error;
}

int folder_file_end(const struct run *r, FILE *f, const char *name, struct err *err) {
	char temporary[768], path[768];
	int error = close_error(f);

	if (file_path(r, name, ".", ".tmp", temporary, sizeof(temporary)) < 0
		|| file_path(r, name, "", "", path, sizeof(path)) < 0)
		return write_error(name, ENAMETOOLONG, err);
	if (error == 0 && rename(temporary, path) < 0)
		error = errno;
	if (error == 0)
		return 0;
	unlink(temporary);
	return write_error(path, error, err);
}

// "configs/two_flows.yaml" -> "runs/two_flows-20250131-120000-4711"
int folder_name(struct run *r, time_t now, struct err *err) {
	const struct run_options *opt = r->options;
	const char *slash = strrchr(opt->config_path, '/');
	const char *stem = slash != NULL ? slash + 1 : opt->config_path;
	const char *dot = strrchr(stem, '.');
	int stem_len = dot != NULL && dot > stem ? (int)(dot - stem) : (int)strlen(stem);
	char utc[32];
	int n;

	if (strcmp(opt->config_path, "-") == 0) {
		stem = "stdin";
		stem_len = 5;
	}
	folder_utc_text(now, "%Y%m%d-%H%M%S", utc, sizeof(utc));
	if (opt->out_dir != NULL)
		n = snprintf(r->dir, sizeof(r->dir), "%s", opt->out_dir);
	else
		n = snprintf(r->dir, sizeof(r->dir), "runs/%.*s-%s-%d", stem_len, stem, utc,
			(int)getpid());
	if (n == 0 || n >= (int)sizeof(r->dir)) {
		r->dir[0] = '\0';
		return err_set(
			err, -EINVAL, "--out: the name is %s", n == 0 ? "empty" : "too long");
	}
	return 0;
}

int folder_make(struct run *r, struct err *err) {
	char path[sizeof(r->dir)];
	struct stat st;
	int error = 0; // of the first of its parents that could not be made

	memcpy(path, r->dir, sizeof(path));
	for (char *slash = path + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
		*slash = '\0';
		if (mkdir(path, 0777) < 0 && errno != EEXIST && error == 0)
			error = errno;
		*slash = '/';
	}
	if (mkdir(path, 0777) < 0 && errno != EEXIST) {
		error = errno == ENOENT && error != 0 ? error : errno;
		return err_set(err, -error, "%s: cannot be created: %s%s", path, strerror(error),
			r->options->out_dir == NULL ? "; --out chooses another place" : "");
	}
	if (stat(path, &st) < 0 || !S_ISDIR(st.st_mode))
		return err_set(err, -ENOTDIR, "%s: cannot be created: a file has this name", path);
	return 0;
}

static void close_fd(int *fd) {
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static bool take_lock(int fd, off_t start, off_t len) {
	struct flock lock = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = start, .l_len = len};

	// Not every file system has locks.
	return fcntl(fd, F_OFD_SETLK, &lock) == 0 || (errno != EAGAIN && errno != EACCES);
}

// The first byte of the lock file stands for the files of the switch, the second for those of the
// sender; weir-sim has both. A lock is gone with its program, however that ends.
int folder_lock(struct run *r, struct err *err) {
	bool switch_ = strcmp(r->suffix, "-sender") != 0,
	     sender = strcmp(r->suffix, "-switch") != 0;
	char path[sizeof(r->dir) + sizeof(LOCK_NAME)];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", r->dir, LOCK_NAME);
	do { // until it is not one that folder_unlock took away meanwhile
		close_fd(&r->lock_fd);
		r->lock_fd =
			open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
		if (r->lock_fd < 0 && errno == ELOOP)
			return err_set(err, -ELOOP, "%s: is a link: remove it", path);
		if (r->lock_fd < 0)
			return write_error(path, errno, err);
		if (!take_lock(r->lock_fd, switch_ ? 0 : 1, switch_ + sender)) {
			close_fd(&r->lock_fd);
			return err_set(err, -EEXIST,
				"%s: another run is writing there: choose another --out", r->dir);
		}
	} while (fstat(r->lock_fd, &st) == 0 && st.st_nlink == 0);
	return 0;
}

// The last one takes the file away.
void folder_unlock(struct run *r) {
	char path[sizeof(r->dir) + sizeof(LOCK_NAME)];

	snprintf(path, sizeof(path), "%s/%s", r->dir, LOCK_NAME);
	if (r->lock_fd >= 0 && take_lock(r->lock_fd, 0, 2))
		unlink(path);
	close_fd(&r->lock_fd);
	folder_release(r);
}

void folder_leave(struct run *r) {
	close_fd(&r->lock_fd);
	folder_release(r);
}

// A file without a name, so that a program that is killed leaves nothing: on a disk that telemetry
// has filled, its blocks become the summary's and the manifest's.
int folder_reserve(struct run *r, struct err *err) {
	int rc;

	r->reserve_fd = open(r->dir, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	if (r->reserve_fd < 0) // not every file system has such files
		return 0;
	rc = posix_fallocate(r->reserve_fd, 0, RESERVE_BYTES);
	return rc == ENOSPC || rc == EDQUOT
		? err_set(err, -rc, "%s: cannot be written: %s", r->dir, strerror(rc))
		: 0;
}

void folder_release(struct run *r) {
	close_fd(&r->reserve_fd);
}

// Streams that only one of the live programs has, which need no suffix.
static const char *const live_rings[][4] = {
	{"-switch", "packets.ring", "arrivals.ring", "links.ring"},
	{"-sender", "cc.ring", "flows.ring", "interval.ring"},
};

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at) {
	return remove(path);
}

// What guests wrote: guest-0.out, guest-0.log and the folder guest-0.
static bool is_guests(const char *dir, const char *name) {
	return strncmp(name, "guest-", 6) == 0 && isdigit((unsigned char)name[6]);
}

static bool is_branch(const char *dir, const char *name) {
	char path[1024];
	struct stat st;

	int length = snprintf(path, sizeof(path), "%s/%s/manifest.json", dir, name);
	return name[0] != '.' && length < (int)sizeof(path) && lstat(path, &st) == 0;
}

// Takes away the files and folders of `dir` that `is` chooses, unless its last part is a link.
static void remove_chosen(const char *dir, bool (*is)(const char *dir, const char *name)) {
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	char path[1024];

	for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
		if (!is(dir, e->d_name))
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
		nftw(path, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	}
	if (d != NULL)
		closedir(d);
}

// Takes away the run of the program with this suffix.
static void remove_run(const struct run *r, const char *suffix) {
	static const char *const names[] = {
#define RUN_RING_(stream, STREAM) #stream, ".ring",
		TEL_STREAMS(RUN_RING_) "summary", ".json"};
	// The config, and what tools/weir and its user said of this run.
	static const char *const about[] = {
		"config.yaml", "report.html", "labels.json", "measured.json"};
	char path[768];

	// Of two programs that find it, one takes it away.
	snprintf(path, sizeof(path), "%s/manifest%s.json", r->dir, suffix);
	if (unlink(path) < 0)
		return;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i += 2) {
		snprintf(path, sizeof(path), "%s/%s%s%s", r->dir, names[i], suffix, names[i + 1]);
		unlink(path);
	}
	for (size_t i = 0; i < sizeof(live_rings) / sizeof(live_rings[0]); i++) {
		for (size_t k = 1; strcmp(live_rings[i][0], suffix) == 0 && k < 4; k++) {
			snprintf(path, sizeof(path), "%s/%s", r->dir, live_rings[i][k]);
			unlink(path);
		}
	}
	for (size_t i = 0; i < sizeof(about) / sizeof(about[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", r->dir, about[i]);
		unlink(path);
	}
	if (suffix[0] != '\0')
		return;
	snprintf(path, sizeof(path), "%s/.", r->dir); // which may be a link: its user named it
	remove_chosen(path, is_guests);
	snprintf(path, sizeof(path), "%s/branches", r->dir);
	remove_chosen(path, is_branch);
	rmdir(path); // if that was all
}

bool folder_holds_run(const struct run *r, const char *suffix) {
	char path[768];

	snprintf(path, sizeof(path), "%s/manifest%s.json", r->dir, suffix);
	return access(path, F_OK) == 0;
}

// Refuses a folder with a run in it, or takes the run away. Of live programs the other one's stays:
// it may run, and they share a folder. weir-sim takes away none of theirs: it replays them.
int folder_clear(struct run *r, struct err *err) {
	const char *const mine[] = {"", r->suffix};

	if (r->suffix[0] == '\0'
		&& (folder_holds_run(r, "-switch") || folder_holds_run(r, "-sender")))
		return err_set(err, -EEXIST, "%s holds a live run: choose another --out", r->dir);
	for (size_t i = 0; i < sizeof(mine) / sizeof(mine[0]); i++) {
		if (!folder_holds_run(r, mine[i]))
			continue;
		if (!r->options->force)
			return err_set(err, -EEXIST,
				"%s already holds a run: choose another --out or --force", r->dir);
		remove_run(r, mine[i]);
	}
	return 0;
}

// Copies of the files that the config names. One with the same name is of an earlier run, or this
// very one.
int folder_write_files(const struct run *r, struct err *err) {
	char temporary[1024], path[1024];
	int error = 0;

	for (const struct config_file *file = config_files(r->config); file != NULL;
		file = file->next) {
		if (snprintf(path, sizeof(path), "%s/%s", r->dir, file->copy) >= (int)sizeof(path)
			|| snprintf(temporary, sizeof(temporary), "%s/.%s%s.tmp", r->dir,
				   file->copy, r->suffix)
				>= (int)sizeof(temporary))
			return write_error(file->copy, ENAMETOOLONG, err);
		FILE *f = file_new(temporary);
		if (f == NULL)
			return write_error(path, errno, err);
		fwrite(file->text, 1, file->size, f);
		error = close_error(f);
		if (error == 0 && rename(temporary, path) < 0)
			error = errno;
		if (error != 0) {
			unlink(temporary);
			return write_error(path, error, err);
		}
	}
	return 0;
}

void folder_remove_files(const struct run *r) {
	char path[768];

	for (const struct config_file *f = config_files(r->config); f != NULL; f = f->next) {
		snprintf(path, sizeof(path), "%s/%s", r->dir, f->copy);
		unlink(path);
	}
}

// 1: written; 0: the other live program has written it. Never takes the place of a file: with
// `weir-sim config.yaml --out .` that would be the user's.
int folder_write_config(const struct run *r, const char *text, size_t size, struct err *err) {
	char path[768];

	snprintf(path, sizeof(path), "%s/config.yaml", r->dir);
	FILE *f = fopen(path, "wxe");
	if (f == NULL && errno == EEXIST && r->suffix[0] != '\0')
		return 0;
	if (f == NULL && errno == EEXIST)
		return err_set(err, -EEXIST, "%s is not of a run: choose another --out", path);
	if (f == NULL)
		return write_error(path, errno, err);
	fwrite(text, 1, size, f);
	int error = close_error(f);
	if (error == 0)
		return 1;
	unlink(path);
	return write_error(path, error, err);
}

// The hash of the config.yaml that the other live program wrote. Each resolves only what it reads,
// so that its own text would be another one when the run is repeated from that file.
int folder_hash_config(struct run *r, struct err *err) {
	char path[768], part[4096];
	size_t n;

	snprintf(path, sizeof(path), "%s/config.yaml", r->dir);
	FILE *f = fopen(path, "re");
	XXH64_state_t *state = XXH64_createState();
	bool read = f != NULL && state != NULL;

	if (read) {
		XXH64_reset(state, 0);
		while ((n = fread(part, 1, sizeof(part), f)) > 0)
			XXH64_update(state, part, n);
		read = ferror(f) == 0;
		r->tel.config_hash = XXH64_digest(state);
	}
	int error = errno;
	XXH64_freeState(state);
	if (f != NULL)
		fclose(f);
	return read ? 0 : err_set(err, -error, "%s: cannot be read: %s", path, strerror(error));
}
