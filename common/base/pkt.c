// SPDX-License-Identifier: BSD-3-Clause
#include "common/base/pkt.h"

const char *drop_reason_name(enum drop_reason why) {
#define NAME_(constant, number, name, meaning) [number] = name,
	static const char *const names[DROP_REASONS] = {DROP_REASON_VALUES(NAME_)};

	return names[why];
}
