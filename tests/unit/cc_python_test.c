// SPDX-License-Identifier: BSD-3-Clause
#include "sender/cc/python.h"

#include "test.h"

// As in weir-sender: weir-python.so is beside weir-sim only.
TEST(a_program_without_python_says_so) {
	struct cc_python control;
	struct err err;

	ck_assert_int_lt(cc_python_open("mine.py:Mine", &control, &err), 0);
	ck_assert_str_eq(
		err.msg, "controls in Python are for virtual time (weir run without --live)");
}
