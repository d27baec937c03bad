// SPDX-License-Identifier: BSD-3-Clause
// Congestion controls from outside: a shared object whose source ends with CC_PLUGIN(ops).
//
// The transport calls a plug-in through functions of ours. They look at what it answers, and know
// during each call whose code is running: a crash or exit() there ends the program with a sentence,
// and so does a call that lasts 2 s after the run was to end (run_stop). An answer that is no
// window ends the run with one (outcome.h). What a plug-in prints goes to standard error.
#pragma once
#include "common/base/err.h"
#include "sender/cc/cc.h"

// *ops lives as long as the program. -EINVAL and a sentence: it is no shared object or no plug-in,
// is of another version, or its ops break the rules of common/weir/cc.h.
int cc_plugin_load(const char *path, const struct cc_ops **ops, struct err *err);
// Whether what it exports can be used, and the number of its parameters. -EINVAL and a sentence.
int cc_plugin_check(const struct cc_plugin *plugin, size_t *params, struct err *err);
// From now on each call must return within 2 s (at most 4), also if nothing ends the run.
void cc_plugin_limit(void);
// To be called for each config object of a plug-in's control, once its parameters have been read.
// -EINVAL and a sentence: the plug-in refuses them.
int cc_plugin_config(const struct cc_ops *ops, void *config, struct err *err);
