// SPDX-License-Identifier: BSD-3-Clause
// Loss from a file, packet by packet: a text of digits, 0 passes and 1 is lost, with blanks,
// newlines and comments (from "#" to the end of the line) where one likes. At the end it begins
// again (`repeat: yes`), or nothing more is lost. Recorded losses, and those that another program
// made, are repeated exactly.
#include "common/config/text_file.h"
#include "switch/stage/loss.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#define TRACE_WORDS_FIRST 1024

struct loss_file {
	struct loss_stage loss;
	bool repeat;

	uint64_t *bits;
	uint64_t pkts, next;
};

static const struct param params[] = {
	{"repeat", "yes", "after the last digit, begin again", UNIT_NONE,
		PARAM_BOOL(struct loss_file, repeat)},
	LOSS_UNIT_PARAMS(struct loss_file),
	PARAM_END,
};

static const struct param also[] = {
	CONFIG_FILE_PARAMS("of the digits 0, it passes, and 1, it is lost, packet by packet"),
	PARAM_END,
};

// Room for one more bit.
static bool trace_room(struct loss_file *t, uint64_t *words) {
	uint64_t more = *words > 0 ? 2 * *words : TRACE_WORDS_FIRST;
	uint64_t *bits;

	if (t->pkts < 64 * *words)
		return true;
	bits = realloc(t->bits, more * sizeof(*bits));
	if (bits == NULL)
		return false;
	for (uint64_t i = *words; i < more; i++)
		bits[i] = 0;
	t->bits = bits;
	*words = more;
	return true;
}

static int trace_read(struct loss_file *t, struct text_file *f, struct err *err) {
	uint64_t words = 0;
	int c;

	while ((c = text_file_char(f)) != TEXT_FILE_END) {
		if (isspace(c))
			continue;
		if (c != '0' && c != '1')
			return text_file_err(f, -EINVAL, "only 0, 1, blanks and comments", err);
		if (!trace_room(t, &words))
			return text_file_err(f, -ENOMEM, "no memory for so many packets", err);
		t->bits[t->pkts / 64] |= (uint64_t)(c == '1') << (t->pkts % 64);
		t->pkts++;
	}
	return t->pkts > 0 ? 0 : text_file_err(f, -EINVAL, "no packet in it", err);
}

static int trace_configure(void *self, struct config_node *node, struct err *err) {
	const struct config_file *file;
	struct text_file f;
	struct err why;
	int rc = config_read_file(node, "file", &file, err);

	if (rc < 0)
		return rc;
	text_file_begin(&f, file);
	rc = trace_read(self, &f, &why);
	return rc == 0 ? 0 : config_err(file->named, rc, err, "file: %s", why.msg);
}

static int trace_init(void *self, const struct stage_env *env, struct err *err) {
	struct loss_file *t = self;

	loss_begin(&t->loss, env);
	return 0;
}

static void trace_fini(void *self) {
	struct loss_file *t = self;

	free(t->bits);
}

static bool trace_lost(void *self) {
	struct loss_file *t = self;

	if (t->next == t->pkts) {
		if (!t->repeat)
			return false;
		t->next = 0;
	}
	bool lost = (t->bits[t->next / 64] >> (t->next % 64) & 1) != 0;

	t->next++;
	return lost;
}

static void trace_push(void *self, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	loss_push_all(self, pkts, n, drops, trace_lost);
}

const struct stage_ops stage_loss_trace = {
	.name = "loss_trace",
	.summary = "a file that says which packets are lost",
	.params = params,
	.state_size = sizeof(struct loss_file),
	.init = trace_init,
	.fini = trace_fini,
	.push = trace_push,
	.pop = instant_pop,
	.next_ns = instant_next_ns,
	.backlog = instant_backlog,
	.config = &(const struct stage_config){.also = also, .configure = trace_configure},
	.needs = &(const struct stage_needs){.flows = loss_flows},
};
