// SPDX-License-Identifier: BSD-3-Clause
#include "switch/stage/text_file.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

int text_file_open(struct text_file *f, const char *name, struct err *err) {
	*f = (struct text_file){.file = fopen(name, "re"), .name = name, .line = 1};
	return f->file != NULL ? 0 : err_set(err, -EINVAL, "%s: %s", name, strerror(errno));
}

int text_file_char(struct text_file *f) {
	int c = getc(f->file);

	if (c == '#') {
		while (c != '\n' && c != EOF)
			c = getc(f->file);
	}
	f->line += c == '\n';
	return c;
}

int text_file_word(struct text_file *f, char *word, size_t size, struct err *err) {
	size_t len = 0;
	int c = text_file_char(f);

	while (c != EOF && isspace(c))
		c = text_file_char(f);
	for (; c != EOF && !isspace(c); c = text_file_char(f)) {
		if (len + 1 == size)
			return text_file_err(f, -EINVAL, "a word that is too long", err);
		word[len++] = (char)c;
	}
	if (c == '\n') { // an error about the word names its line
		ungetc(c, f->file);
		f->line--;
	}
	word[len] = '\0';
	return len > 0;
}

int text_file_err(const struct text_file *f, int rc, const char *sentence, struct err *err) {
	return err_set(err, rc, "%s:%u: %s", f->name, f->line, sentence);
}

bool text_file_close(struct text_file *f) {
	bool good = ferror(f->file) == 0;

	fclose(f->file);
	return good;
}
