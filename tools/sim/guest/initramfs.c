// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/guest/initramfs.h"

#include "tools/sim/guest/kernel.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FOLDER 0040755u
#define PROGRAM 0100755u
#define PLAIN 0100644u
#define CHARACTERS 0020600u // a character device

// An entry: a header of 13 numbers of eight hexadecimal digits, the name, the content, each padded
// to four bytes.
static void entry(FILE *out, uint32_t inode, const char *name, uint32_t mode, uint32_t major,
	uint32_t minor, const void *bytes, size_t size) {
	static const char zeros[4];
	size_t head = 110 + strlen(name) + 1;

	fprintf(out, "070701%08x%08x%08x%08x%08x%08x%08zx%08x%08x%08x%08x%08zx%08x", inode, mode,
		0u, 0u, 1u, 0u, size, 0u, 0u, major, minor, strlen(name) + 1, 0u);
	fwrite(name, 1, strlen(name) + 1, out);
	fwrite(zeros, 1, (4 - head % 4) % 4, out);
	if (size > 0)
		fwrite(bytes, 1, size, out);
	fwrite(zeros, 1, (4 - size % 4) % 4, out);
}

static void *read_whole(const char *path, size_t *size) {
	FILE *in = fopen(path, "rb");
	char *bytes = NULL;
	long end;

	if (in == NULL)
		return NULL;
	if (fseek(in, 0, SEEK_END) == 0 && (end = ftell(in)) > 0 && fseek(in, 0, SEEK_SET) == 0
		&& (bytes = malloc((size_t)end)) != NULL) {
		*size = fread(bytes, 1, (size_t)end, in);
		if (*size != (size_t)end) {
			free(bytes);
			bytes = NULL;
		}
	}
	fclose(in);
	return bytes;
}

// modules/NAME.ko; an inode further.
static int modules(FILE *out, uint32_t inode, const struct kernel *k, struct err *err) {
	const char *rest = k->modules;
	char name[64], path[640], inside[96];

	if (rest[0] != '\0')
		entry(out, inode++, "modules", FOLDER, 0, 0, NULL, 0);
	while (kernel_next_word(&rest, name, sizeof(name))) {
		size_t size = 0;

		snprintf(path, sizeof(path), "%s/%s.ko", k->folder, name);
		snprintf(inside, sizeof(inside), "modules/%s.ko", name);
		void *bytes = read_whole(path, &size);
		if (bytes == NULL)
			return err_set(err, -EIO, "%s: cannot be read", path);
		entry(out, inode++, inside, PLAIN, 0, 0, bytes, size);
		free(bytes);
	}
	return 0;
}

int initramfs_write(const char *path, const char *init, const struct kernel *k, const void *config,
	size_t config_bytes, struct err *err) {
	size_t size = 0;
	void *program = read_whole(init, &size);
	FILE *out;
	int failed, rc;

	if (program == NULL)
		return err_set(err, -EIO, "%s: cannot be read", init);
	if ((out = fopen(path, "wb")) == NULL) {
		free(program);
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	}
	entry(out, 1, "dev", FOLDER, 0, 0, NULL, 0);
	entry(out, 2, "dev/console", CHARACTERS, 5, 1, NULL, 0);
	entry(out, 3, "init", PROGRAM, 0, 0, program, size);
	entry(out, 4, "config", PLAIN, 0, 0, config, config_bytes);
	rc = modules(out, 5, k, err);
	entry(out, 0, "TRAILER!!!", 0, 0, 0, NULL, 0);
	failed = ferror(out);
	free(program);
	if (fclose(out) != 0 || (failed && rc == 0))
		return err_set(err, -ENOSPC, "%s: cannot be written", path);
	return rc;
}
