// SPDX-License-Identifier: BSD-3-Clause
#include "cc_test.h"

TEST(says_the_same_whatever_happens) {
	struct cc_bench b;

	CC_OPEN(&b, "fixed", "cwnd", "12.5", "rate", "8Mbit");
	for (uint64_t i = 1; i < 100; i++) {
		cc_ack_n(&b, 1, i * MS, i * MS);
		cc_loss(&b, i * MS, 12, i % 2 == 0);
		cc_rto(&b, i * MS, 12);
		CWND_EQ(&b, 12.5);
		ck_assert_double_eq(b.out.pacing_bps, 8e6);
	}
}

TEST(is_not_paced_by_default) {
	struct cc_bench b;

	cc_open(&b, "fixed", NULL);
	CWND_EQ(&b, 10);
	ck_assert_double_eq(b.out.pacing_bps, 0);
}

TEST(follows_a_change_while_running) {
	struct cc_bench b;

	cc_open(&b, "fixed", NULL);
	ck_assert(param_find(b.ops->params, "cwnd")->live);
	ck_assert_int_eq(cc_set(&b, "cwnd", "20"), 0);
	ck_assert_int_eq(cc_set(&b, "rate", "1Gbit"), 0);
	cc_ack_n(&b, 1, MS, MS);
	CWND_EQ(&b, 20);
	ck_assert_double_eq(b.out.pacing_bps, 1e9);
}

TEST(refuses_what_cannot_be) {
	struct cc_bench b;

	cc_open(&b, "fixed", NULL);
	ck_assert_int_eq(cc_set(&b, "cwnd", "0"), -ERANGE);
	ck_assert_int_eq(cc_set(&b, "rate", "10"), -EINVAL);
	ck_assert_int_eq(cc_set(&b, "window", "10"), -ENOENT);
}

// It sets what there is, to what it may be.
static void check_preset(const struct cc_ops *ops, const struct cc_preset *s) {
	struct cc_bench b = {.ops = ops};

	ck_assert_int_eq(cc_set(&b, ops->preset, s->name), 0);
	for (const char *const *set = s->set; *set != NULL; set += 2)
		ck_assert_msg(
			cc_set(&b, set[0], set[1]) == 0, "%s: %s: %s", s->name, set[0], set[1]);
}

TEST(the_list_is_sound) {
	for (size_t i = 0; cc_all[i] != NULL; i++) {
		const struct cc_ops *ops = cc_all[i];

		ck_assert_ptr_eq(cc_find(ops->name), ops);
		ck_assert_uint_le(ops->state_size, CC_STATE_MAX_BYTES);
		ck_assert(ops->given_window != NULL);
		for (size_t p = 0; ops->params[p].name != NULL; p++) {
			ck_assert_ptr_nonnull(ops->params[p].help);
			ck_assert_uint_lt(ops->params[p].offset, ops->config_size);
			ck_assert_ptr_eq(
				param_find(ops->params, ops->params[p].name), &ops->params[p]);
		}
		ck_assert((ops->preset == NULL) == (ops->presets == NULL));
		for (const struct cc_preset *s = ops->presets; s != NULL && s->name != NULL; s++)
			check_preset(ops, s);
	}
	ck_assert_ptr_null(cc_find("tahoe"));
}
