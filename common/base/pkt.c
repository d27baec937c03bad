// SPDX-License-Identifier: BSD-3-Clause
#include "common/base/pkt.h"

const char *drop_reason_name(enum drop_reason why) {
	static const char *const names[DROP_REASONS] = {"none", "queue_full", "aqm", "loss",
		"delay_full", "no_mbuf", "no_route", "tx", "malformed"};

	return names[why];
}
