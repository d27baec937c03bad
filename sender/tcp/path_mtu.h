// SPDX-License-Identifier: BSD-3-Clause
// The size of segments by the path's MTU: what routers report (path_mtu.c), what probes find
// (mtu_probe.c).
#pragma once
#include "sender/tcp/flow.h"

// A router has dropped the packet with this sequence number, as it was larger than `mtu`. The MTU
// of its smaller segments, which is not less than what is believed; 0: it goes on as before.
uint32_t flow_too_big(
	struct endpoint *e, struct flow *f, uint32_t seq, uint32_t mtu, uint64_t now_ns);
// The largest payload that fits into path_mtu.
uint32_t path_mtu_payload(const struct endpoint *e, const struct flow *f);

// Cuts what is not acknowledged into segments of `payload`; event detail `why`. `lost`: what is not
// SACKED is sent again. False: there is no memory for the records, and nothing was done.
bool path_mtu_resize(struct endpoint *e, struct flow *f, uint32_t payload, bool lost, uint32_t why,
	uint64_t now_ns);
enum path_mtu_why { PATH_MTU_ICMP, PATH_MTU_BLACK_HOLE, PATH_MTU_PROBED };

// mtu_probe.c
void mtu_probe_open(struct endpoint *e, struct flow *f); // the handshake is over
void mtu_probe_timeout(struct endpoint *e, struct flow *f, uint64_t now_ns);
