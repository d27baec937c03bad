// SPDX-License-Identifier: BSD-3-Clause
// Text files of stages, read before the run: "#" begins a comment that ends with its line.
#pragma once
#include "common/base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct text_file {
	FILE *file;
	const char *name; // the caller's
	uint32_t line; // of the character read last, from 1
};

// 0 or a negative errno and a sentence that starts with the file's name.
int text_file_open(struct text_file *f, const char *name, struct err *err);
// The next character outside of comments, spaces and newlines among them; EOF: there is none.
int text_file_char(struct text_file *f);
// The next word of at most size - 1 characters. 1: a word, 0: the end of the file, negative: an error, as above.
int text_file_word(struct text_file *f, char *word, size_t size, struct err *err);
// An error at the present line: sets "FILE:LINE: sentence" and returns rc.
int text_file_err(const struct text_file *f, int rc, const char *sentence, struct err *err);
// False: not all of it could be read.
bool text_file_close(struct text_file *f);
