// SPDX-License-Identifier: BSD-3-Clause
// Feeds every file of the given folders to a fuzz target: the corpus as a test of any build.
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INPUT_BYTES_MAX (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *path) {
	FILE *in = fopen(path, "rb");
	// Exactly as large as the input, so that a sanitizer sees one byte too many.
	uint8_t *buffer = malloc(INPUT_BYTES_MAX), *exact = NULL;
	int failed = 1;

	if (in != NULL && buffer != NULL) {
		size_t size = fread(buffer, 1, INPUT_BYTES_MAX, in);
		exact = malloc(size > 0 ? size : 1);
		if (exact != NULL && ferror(in) == 0) {
			memcpy(exact, buffer, size);
			failed = LLVMFuzzerTestOneInput(exact, size);
		}
	}
	if (failed != 0)
		fprintf(stderr, "%s: failed: %s\n", path, strerror(errno));
	free(exact);
	free(buffer);
	if (in != NULL)
		fclose(in);
	return failed;
}

// Replays a folder; returns how many files, or -1.
static int replay_folder(const char *path) {
	char file[4096];
	int count = 0;
	DIR *dir = opendir(path);

	if (dir == NULL) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return -1;
	}
	for (struct dirent *e; (e = readdir(dir)) != NULL && count >= 0;) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(file, sizeof(file), "%s/%s", path, e->d_name);
		count = replay(file) == 0 ? count + 1 : -1;
	}
	closedir(dir);
	return count;
}

int main(int argc, char **argv) {
	int total = 0;

	for (int i = 1; i < argc; i++) {
		int count = replay_folder(argv[i]);
		if (count < 0)
			return 1;
		total += count;
	}
	printf("%d inputs\n", total);
	return total > 0 ? 0 : 1; // a corpus that got lost is no success
}
