// SPDX-License-Identifier: BSD-3-Clause
// What stages ask of a frame's headers.
#pragma once
#include "common/net/seg.h"

#include <stddef.h>

// Of a frame of which so many bytes are known, with up to two VLAN tags. What is not there, or not
// TCP in IP, is zero; any IP packet has its DSCP.
struct pkt_headers headers_read(const uint8_t *frame, size_t len);
// Fills in what a segment acknowledges, if it is an ACK and nothing else.
void headers_of_ack(struct pkt_headers *h, const struct seg *seg);
