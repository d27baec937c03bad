// SPDX-License-Identifier: BSD-3-Clause
// Loss from a file, packet by packet: a text of digits, 0 passes and 1 is lost, with blanks, newlines and comments
// (from "#" to the end of the line) where one likes. At the end it begins again (`repeat: yes`), or nothing more is
// lost. Recorded losses, and those that another program made, are repeated exactly.
#include "switch/stage/loss.h"
#include "switch/stage/text_file.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#define TRACE_PKTS_MAX (UINT64_C(1) << 33) // 1 GiB
#define TRACE_WORDS_FIRST 1024

struct loss_file {
	struct loss_stage loss;
	char file[PARAM_TEXT_SIZE];
	bool repeat;

	uint64_t *bits;
	uint64_t pkts, next;
};

static const struct param params[] = {
	{"file", NULL, "of the digits 0, it passes, and 1, it is lost, packet by packet", UNIT_NONE,
		PARAM_TEXT(struct loss_file, file)},
	{"repeat", "yes", "after the last digit, begin again", UNIT_NONE,
		PARAM_BOOL(struct loss_file, repeat)},
	LOSS_UNIT_PARAMS(struct loss_file),
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

	while ((c = text_file_char(f)) != EOF) {
		if (isspace(c))
			continue;
		if (c != '0' && c != '1')
			return text_file_err(f, -EINVAL, "only 0, 1, blanks and comments", err);
		if (t->pkts == TRACE_PKTS_MAX || !trace_room(t, &words))
			return text_file_err(f, -ENOMEM, "no memory for so many packets", err);
		t->bits[t->pkts / 64] |= (uint64_t)(c == '1') << (t->pkts % 64);
		t->pkts++;
	}
	return t->pkts > 0 ? 0 : text_file_err(f, -EINVAL, "no packet in it", err);
}

static int trace_init(void *self, const struct stage_env *env, struct err *err) {
	struct loss_file *t = self;
	struct text_file f;
	struct err why;
	int rc = text_file_open(&f, t->file, &why);

	if (rc == 0) {
		rc = trace_read(t, &f, &why);
		if (!text_file_close(&f) && rc == 0)
			rc = err_set(&why, -EIO, "%s: cannot be read", t->file);
	}
	loss_begin(&t->loss, env);
	return rc == 0 ? 0 : err_set(err, rc, "file: %s", why.msg);
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
	.flows = loss_flows,
	.init = trace_init,
	.fini = trace_fini,
	.push = trace_push,
	.pop = instant_pop,
	.next_ns = instant_next_ns,
	.backlog = instant_backlog,
};
