// SPDX-License-Identifier: BSD-3-Clause
// The kernel's sockets behind a port: which they are, and what they lost. Drivers open them and do
// not show them, so they are noticed as the driver sets their options.
#pragma once
#include "common/config/live.h"

#include <stdatomic.h>

struct port_sockets {
	uint32_t count;
	struct port_socket {
		int fd;
		bool xdp; // AF_XDP, else AF_PACKET
		_Atomic uint64_t missed; // frames without room in its ring, as of the last reading
	} socket[LIVE_LCORES_MAX]; // a receive queue each, in the queues' order
};

// Until the next call, sockets that this process opens for a port are noted in `s`; NULL: in none.
void sockets_note(struct port_sockets *s);
// Frames that found no room in the i-th socket's ring since it was opened. May be called by several
// threads.
uint64_t sockets_missed(struct port_sockets *s, uint32_t i);
