// SPDX-License-Identifier: BSD-3-Clause
// Files that a config names, and their copies beside the config of a run folder.
#include "common/config/config.h"
#include "common/config/config_node.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#define COPY_PREFIX "file-"
#define PATH_SIZE 4096

static const char *base_name(const char *path) {
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

// `name` in the folder of the config; an absolute name stays. False: too long.
static bool beside(const struct config *c, const char *name, char path[static PATH_SIZE]) {
	const char *config = c->root->source;
	int folder = name[0] == '/' ? 0 : (int)(base_name(config) - config);
	int n = snprintf(path, PATH_SIZE, "%.*s%s", folder, config, name);

	return n < PATH_SIZE;
}

// What the copy is called: as the file, with a number if another file of the config has that name.
static const char *copy_name(struct config *c, const char *name, uint64_t digest) {
	const char *base = base_name(name);
	bool copied = strncmp(base, COPY_PREFIX, strlen(COPY_PREFIX)) == 0;
	size_t size = strlen(COPY_PREFIX) + strlen(base) + 24;
	char *as = config_alloc(c, size);
	uint32_t number = 1;

	snprintf(as, size, "%s%s", copied ? "" : COPY_PREFIX, base);
	for (const struct config_file *f = c->files; f != NULL;) {
		if (strcmp(f->copy, as) != 0 || f->digest == digest) {
			f = f->next;
			continue;
		}
		snprintf(as, size, "%s%u-%s", COPY_PREFIX, ++number,
			base + (copied ? strlen(COPY_PREFIX) : 0));
		f = c->files;
	}
	return as;
}

static int read_whole(struct config *c, FILE *in, struct config_file *f) {
	char *text = malloc(CONFIG_FILE_BYTES_MAX + 1);
	int rc = 0;

	if (text == NULL)
		return -ENOMEM;
	f->size = fread(text, 1, CONFIG_FILE_BYTES_MAX + 1, in);
	if (ferror(in))
		rc = -EIO;
	else if (f->size > CONFIG_FILE_BYTES_MAX)
		rc = -EFBIG;
	else
		f->text = config_copy(c, text, f->size);
	free(text);
	return rc;
}

// Opens the file, or the copy that a run has made of it: of two live programs that share a folder,
// the one that does not read the file may have written the config.
static FILE *open_file(const struct config *c, const char *name, char path[static PATH_SIZE]) {
	char name_of_copy[PATH_SIZE], copy[PATH_SIZE];
	FILE *in = NULL;

	if (!beside(c, name, path)) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	in = fopen(path, "re");
	if (in != NULL || errno != ENOENT)
		return in;
	snprintf(name_of_copy, sizeof(name_of_copy), "%s%s", COPY_PREFIX, base_name(name));
	if (beside(c, name_of_copy, copy) && (in = fopen(copy, "re")) != NULL)
		memcpy(path, copy, sizeof(copy));
	else
		errno = ENOENT;
	return in;
}

static int check_digest(struct config_node *map, const struct config_file *f, struct err *err) {
	struct config_node *wanted = config_get(map, "digest");
	char digest[24];

	snprintf(digest, sizeof(digest), "%016" PRIx64, f->digest);
	if (wanted == NULL)
		config_add(map, "digest", digest);
	else if (config_text(wanted) == NULL || strcmp(config_text(wanted), digest) != 0)
		return config_err(wanted, -EINVAL, err,
			"digest: %s has the digest %s: it is another file; leave digest out to use it",
			f->path, digest);
	return 0;
}

int config_read_file(struct config_node *map, const char *key, const struct config_file **file,
	struct err *err) {
	struct config_node *named = config_get(map, key);
	const char *name = named != NULL ? config_text(named) : NULL;
	char path[PATH_SIZE];
	struct config_file *f;
	int rc;

	if (name == NULL || name[0] == '\0')
		return config_err(named != NULL ? named : map, -EINVAL, err, "%s is required", key);

	FILE *in = open_file(map->doc, name, path);

	if (in == NULL)
		return config_err(named, -errno, err, "%s: %s: cannot be read: %s", key, path,
			strerror(errno));
	f = config_alloc(map->doc, sizeof(*f));
	rc = read_whole(map->doc, in, f);
	fclose(in);
	if (rc == -EFBIG)
		return config_err(named, rc, err, "%s: %s: larger than %u MiB", key, path,
			CONFIG_FILE_BYTES_MAX >> 20);
	if (rc < 0)
		return config_err(
			named, rc, err, "%s: %s: cannot be read: %s", key, path, strerror(-rc));
	f->path = config_copy(map->doc, path, strlen(path));
	f->digest = XXH64(f->text, f->size, 0);
	if ((rc = check_digest(map, f, err)) < 0)
		return rc;
	f->copy = copy_name(map->doc, name, f->digest);
	f->named = named;
	f->next = map->doc->files;
	map->doc->files = f;
	*file = f;
	return 0;
}

void config_use_copies(struct config *c) {
	for (const struct config_file *f = c->files; f != NULL; f = f->next)
		f->named->text = f->copy;
}

void config_absolute(struct config_node *named) {
	char folder[PATH_SIZE], *path;
	size_t size;

	if (named->text[0] == '/' || strcmp(named->text, "-") == 0
		|| getcwd(folder, sizeof(folder)) == NULL)
		return;
	size = strlen(folder) + strlen(named->text) + 2;
	path = config_alloc(named->doc, size);
	snprintf(path, size, "%s/%s", folder, named->text);
	named->text = path;
}

void config_beside(struct config_node *named) {
	char path[PATH_SIZE];

	if (!beside(named->doc, named->text, path))
		return;
	named->text = config_copy(named->doc, path, strlen(path));
	config_absolute(named);
}

void config_use_absolute(struct config *c) {
	for (const struct config_file *f = c->files; f != NULL; f = f->next) {
		f->named->text = f->path;
		config_absolute(f->named);
	}
}

const struct config_file *config_files(const struct config *c) {
	return c->files;
}
