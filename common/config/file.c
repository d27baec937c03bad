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
			"digest: %s has the digest %s: it is another file; "
			"leave digest out to use it",
			f->path, digest);
	return 0;
}

// Reads a file; `at` is the place of an error, `key` what it begins with.
static int read_file(struct config_node *at, const char *key, const char *name,
	struct config_file **file, struct err *err) {
	struct config *c = at->doc;
	char path[PATH_SIZE];
	FILE *in = open_file(c, name, path);
	int rc;

	if (in == NULL)
		return config_err(
			at, -errno, err, "%s: %s: cannot be read: %s", key, path, strerror(errno));

	struct config_file *f = config_alloc(c, sizeof(*f));

	rc = read_whole(c, in, f);
	fclose(in);
	if (rc == -EFBIG)
		return config_err(at, rc, err, "%s: %s: larger than %u MiB", key, path,
			CONFIG_FILE_BYTES_MAX >> 20);
	if (rc < 0)
		return config_err(
			at, rc, err, "%s: %s: cannot be read: %s", key, path, strerror(-rc));
	f->path = config_copy(c, path, strlen(path));
	f->digest = XXH64(f->text, f->size, 0);
	f->copy = copy_name(c, name, f->digest);
	f->part = "";
	f->license = config_alloc(c, sizeof(*f->license));
	*file = f;
	return 0;
}

static void add_file(struct config *c, struct config_file *f) {
	f->next = c->files;
	c->files = f;
}

// `colon`: where the name of the file ends; NULL: it is all of the text.
static int read_value(struct config_node *map, const char *key, const char *colon,
	const struct config_file **file, struct err *err) {
	struct config_node *named = config_get(map, key);
	const char *name = named != NULL ? config_text(named) : NULL;
	struct config_file *f;
	int rc;

	if (name == NULL || name[0] == '\0')
		return config_err(named != NULL ? named : map, -EINVAL, err, "%s is required", key);
	if (colon != NULL)
		name = config_copy(map->doc, name, (size_t)(colon - name));
	if ((rc = read_file(named, key, name, &f, err)) < 0)
		return rc;
	if ((rc = check_digest(map, f, err)) < 0)
		return rc;
	f->named = named;
	f->part = colon != NULL ? colon : "";
	add_file(map->doc, f);
	*file = f;
	return 0;
}

int config_read_file(struct config_node *map, const char *key, const struct config_file **file,
	struct err *err) {
	return read_value(map, key, NULL, file, err);
}

int config_read_part(struct config_node *map, const char *key, const struct config_file **file,
	struct err *err) {
	const struct config_node *named = config_get(map, key);
	const char *text = named != NULL ? config_text(named) : NULL;

	return read_value(map, key, text != NULL ? strrchr(text, ':') : NULL, file, err);
}

int config_read_content(
	struct config_node *named, const char *key, struct param_file *content, struct err *err) {
	struct config_file *f;
	int rc = read_file(named, key, named->text, &f, err);

	if (rc < 0)
		return rc;
	f->named = named;
	add_file(named->doc, f);
	*content = (struct param_file){f->text, f->size};
	return 0;
}

int config_read_also(struct config_node *at, const char *path, struct err *err) {
	struct config_file *f;
	int rc = read_file(at, "file", path, &f, err);

	if (rc == 0)
		add_file(at->doc, f);
	return rc;
}

const char *config_file_text(const struct config_file *f, const char *path) {
	struct config *c = f->named->doc;
	size_t size = strlen(path) + strlen(f->part) + 1;
	char *text = config_alloc(c, size);

	snprintf(text, size, "%s%s", path, f->part);
	return text;
}

void config_use_copies(struct config *c) {
	for (const struct config_file *f = c->files; f != NULL; f = f->next) {
		if (f->named != NULL)
			f->named->text = config_file_text(f, f->copy);
	}
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

void config_use_absolute(struct config *c) {
	for (const struct config_file *f = c->files; f != NULL; f = f->next) {
		if (f->named == NULL)
			continue;
		f->named->text = config_file_text(f, f->path);
		config_absolute(f->named);
	}
}

const struct config_file *config_files(const struct config *c) {
	return c->files;
}
