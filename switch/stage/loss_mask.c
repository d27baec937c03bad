// SPDX-License-Identifier: BSD-3-Clause
// Loss by a mask of 64 bits that says exactly which packets die: bit 0, the lowest, is the first
// packet's, 1 is lost. After 64 packets the mask begins again (`repeat: yes`), or nothing more is
// lost. picoquic's tests state losses in this way (picoquictest/picoquictest_internal.h,
// loss_mask_data).
#include "switch/stage/loss.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#define MASK_BITS 64

struct mask {
	struct loss_stage loss;
	char text[PARAM_TEXT_SIZE];
	bool repeat;

	uint64_t bits;
	uint32_t next; // bit
};

static const struct param params[] = {
	{"mask", NULL, "hexadecimal, such as 0x8001: the first packet and the 16th are lost",
		UNIT_NONE, PARAM_TEXT(struct mask, text)},
	{"repeat", "yes", "after 64 packets, begin again", UNIT_NONE,
		PARAM_BOOL(struct mask, repeat)},
	LOSS_UNIT_PARAMS(struct mask),
	PARAM_END,
};

static int mask_init(void *self, const struct stage_env *env, struct err *err) {
	struct mask *m = self;
	const char *digits = m->text + 2;
	size_t n = 0;

	if (m->text[0] == '0' && (m->text[1] == 'x' || m->text[1] == 'X'))
		while (isxdigit((unsigned char)digits[n]))
			n++;
	if (n == 0 || n > MASK_BITS / 4 || digits[n] != '\0')
		return err_set(err, -EINVAL,
			"mask: '%s' is not 0x and up to 16 hexadecimal digits, such as 0x8001",
			m->text);
	m->bits = strtoull(digits, NULL, 16);
	loss_begin(&m->loss, env);
	return 0;
}

static bool mask_lost(void *self) {
	struct mask *m = self;
	bool lost = m->next < MASK_BITS && (m->bits >> m->next & 1) != 0;

	if (m->next < MASK_BITS)
		m->next++;
	if (m->repeat && m->next == MASK_BITS)
		m->next = 0;
	return lost;
}

static void mask_push(void *self, struct pkt *const *pkts, uint32_t n, struct pkt_list *drops) {
	loss_push_all(self, pkts, n, drops, mask_lost);
}

const struct stage_ops stage_loss_mask = {
	.name = "loss_mask",
	.summary = "64 bits that say which packets are lost",
	.params = params,
	.state_size = sizeof(struct mask),
	.init = mask_init,
	.push = mask_push,
	.pop = instant_pop,
	.next_ns = instant_next_ns,
	.backlog = instant_backlog,
	.needs = &(const struct stage_needs){.flows = loss_flows},
};
