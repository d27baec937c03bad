// SPDX-License-Identifier: BSD-3-Clause
// Configs that live until the test's end or test_close.
#pragma once
#include "common/config/config.h"
#include "test.h"

#include <string.h>

static inline void test_free_config(void *config) {
	config_free(config);
}

static inline struct config *test_config(const char *name, const char *text, struct err *err) {
	struct config *config = config_parse(name, text, strlen(text), err);

	ck_assert_msg(config != NULL, "%s", err->msg);
	test_closes(test_free_config, config);
	return config;
}
