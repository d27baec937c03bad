// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/guest/kernel.h"

#include "common/config/config.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUILD_FIRST "run: tools/weir guests build"

// ~/.cache/weir/guests, as kernels.py has it.
static void find_cache(char *path, size_t size) {
	const char *named = getenv("WEIR_GUESTS"), *cache = getenv("XDG_CACHE_HOME"),
		   *home = getenv("HOME");

	if (named != NULL && named[0] != '\0') {
		char *whole = realpath(named, NULL); // guests begin in another folder

		snprintf(path, size, "%s", whole == NULL ? named : whole);
		free(whole);
	} else if (cache != NULL && cache[0] != '\0')
		snprintf(path, size, "%s/weir/guests", cache);
	else
		snprintf(path, size, "%s/.cache/weir/guests", home == NULL ? "" : home);
}

// The names of the kernels that there are.
static void list(const char *cache, char names[static CONFIG_NAMES_SIZE]) {
	struct dirent **found;
	int n = scandir(cache, &found, NULL, alphasort);

	names[0] = '\0';
	for (int i = 0; i < n; i++) {
		if (found[i]->d_type == DT_LNK)
			config_name_add(names, found[i]->d_name);
		free(found[i]);
	}
	if (n >= 0)
		free(found);
	if (names[0] == '\0')
		config_name_add(names, "none");
}

static int missing(const char *cache, const struct kernel *k, struct err *err) {
	char names[CONFIG_NAMES_SIZE];

	if (strcmp(k->name, KERNEL_CURRENT) == 0)
		return err_set(err, -ENOENT,
			"stack: linux needs a guest kernel, and "
			"%s/linux is not there; " BUILD_FIRST,
			k->folder);
	list(cache, names);
	return err_set(err, -ENOENT,
		"kernel: '%s' is not built; there is %s; " BUILD_FIRST
		" --name %s with its --source, --patch or --module",
		k->name, names, k->name);
}

#define TEXT(member)                                                                               \
	{ #member, offsetof(struct kernel, member), sizeof(((struct kernel *)NULL)->member) }
static const struct {
	const char *key;
	size_t at, size;
} texts[] = {
	TEXT(release), TEXT(package), TEXT(version), TEXT(options), TEXT(controls), TEXT(modules)};

static int read_texts(struct kernel *k, struct config_node *json, struct err *err) {
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct config_node *n = config_get(json, texts[i].key);
		const char *text = n == NULL ? "" : config_text(n);

		if (text == NULL || strlen(text) >= texts[i].size)
			return config_err(n, -EINVAL, err, "%s: a text below %zu bytes is wanted",
				texts[i].key, texts[i].size);
		memcpy((char *)k + texts[i].at, text, strlen(text) + 1);
	}
	return 0;
}

// JSON is YAML: it is read as a config is.
static int read_json(struct kernel *k, struct err *err) {
	char path[544];
	struct err why;
	struct config *json;
	int rc = -EINVAL;

	snprintf(path, sizeof(path), "%s/guest.json", k->folder);
	if ((json = config_load(path, &why)) != NULL)
		rc = read_texts(k, config_root(json), &why);
	config_free(json);
	if (rc < 0)
		return err_set(
			err, rc, "kernel: '%s' is damaged: %.380s; " BUILD_FIRST, k->name, why.msg);
	return 0;
}

static int find(struct kernel *k, const char *name, struct err *err) {
	char cache[440], program[544];

	find_cache(cache, sizeof(cache));
	snprintf(k->name, sizeof(k->name), "%s", name);
	snprintf(k->folder, sizeof(k->folder), "%s/%s", cache, k->name);
	snprintf(program, sizeof(program), "%s/linux", k->folder);
	if (access(program, X_OK) < 0)
		return missing(cache, k, err);
	return read_json(k, err);
}

int kernels_find(struct kernels *all, const char *name, struct err *err) {
	int rc;

	for (uint32_t i = 0; i < all->count; i++) {
		if (strcmp(all->kernel[i].name, name) == 0)
			return (int)i;
	}
	if (all->count == KERNELS_MAX)
		return err_set(
			err, -E2BIG, "kernel: a run has at most %d different ones", KERNELS_MAX);
	if ((rc = find(&all->kernel[all->count], name, err)) < 0)
		return rc;
	return (int)all->count++;
}

bool kernel_next_word(const char **words, char *word, size_t size) {
	size_t n;

	*words += strspn(*words, " ");
	n = strcspn(*words, " ");
	snprintf(word, size, "%.*s", (int)n, *words);
	*words += n;
	return n > 0;
}

bool kernel_word(const char *words, const char *word) {
	char each[64];

	while (kernel_next_word(&words, each, sizeof(each))) {
		if (strcmp(each, word) == 0)
			return true;
	}
	return false;
}

// A module says of each parameter "parmtype=NAME:TYPE".
bool kernel_module_has(const struct kernel *k, const char *module, const char *param) {
	char path[640], sought[128], bytes[4096];
	size_t kept = 0, n, length;
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s.ko", k->folder, module);
	length = (size_t)snprintf(sought, sizeof(sought), "parmtype=%.64s:", param);
	if ((file = fopen(path, "rb")) == NULL)
		return false;
	while (!found && (n = fread(bytes + kept, 1, sizeof(bytes) - kept, file)) > 0) {
		n += kept;
		found = memmem(bytes, n, sought, length) != NULL;
		kept = n < length ? n : length;
		memmove(bytes, bytes + n - kept, kept);
	}
	fclose(file);
	return found;
}
