// SPDX-License-Identifier: BSD-3-Clause
// Text files that a config names: "#" begins a comment that ends with its line.
#pragma once
#include "common/base/err.h"
#include "common/config/config.h"

struct text_file {
	const char *at; // the next character
	const char *name; // the file's
	uint32_t line; // of the character read last, from 1
};

#define TEXT_FILE_END (-1)

// At the start of a file that outlives it.
void text_file_begin(struct text_file *f, const struct config_file *file);
// The next character outside of comments, spaces and newlines among them; TEXT_FILE_END: there is
// none.
int text_file_char(struct text_file *f);
// The next word of at most size - 1 characters. 1: a word, 0: the end of the file, negative: an
// error, as below.
int text_file_word(struct text_file *f, char *word, size_t size, struct err *err);
// An error at the present line: sets "FILE:LINE: sentence" and returns rc.
int text_file_err(const struct text_file *f, int rc, const char *sentence, struct err *err);
