// SPDX-License-Identifier: BSD-3-Clause
#include "common/config/text_file.h"

#include <ctype.h>
#include <errno.h>

void text_file_begin(struct text_file *f, const struct config_file *file) {
	*f = (struct text_file){.at = file->text, .name = file->path, .line = 1};
}

int text_file_char(struct text_file *f) {
	if (*f->at == '#') {
		while (*f->at != '\n' && *f->at != '\0')
			f->at++;
	}
	if (*f->at == '\0')
		return TEXT_FILE_END;
	f->line += *f->at == '\n';
	return (unsigned char)*f->at++;
}

int text_file_word(struct text_file *f, char *word, size_t size, struct err *err) {
	size_t len = 0;
	int c = text_file_char(f);

	while (c != TEXT_FILE_END && isspace(c))
		c = text_file_char(f);
	for (; c != TEXT_FILE_END && !isspace(c); c = text_file_char(f)) {
		if (len + 1 == size)
			return text_file_err(f, -EINVAL, "a word that is too long", err);
		word[len++] = (char)c;
	}
	if (c == '\n') { // an error about the word names its line
		f->at--;
		f->line--;
	}
	word[len] = '\0';
	return len > 0;
}

int text_file_err(const struct text_file *f, int rc, const char *sentence, struct err *err) {
	return err_set(err, rc, "%s:%u: %s", f->name, f->line, sentence);
}
