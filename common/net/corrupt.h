// SPDX-License-Identifier: BSD-3-Clause
// A frame with a flipped bit.
#pragma once
#include <stddef.h>
#include <stdint.h>

// Flips one bit of an Ethernet frame of which len bytes are there, chosen by the random number
// `draw`: one that the checksum of TCP, UDP or ICMP covers and that does not change how long the
// headers are. A checksum in one's complement catches every single bit (RFC 1071); it does not if
// UDP goes without one. Frames other than IP get theirs anywhere behind the Ethernet header.
void corrupt_frame(uint8_t *frame, size_t len, uint64_t draw);
// That bit, counted from the first one of the frame; SIZE_MAX: there is none.
size_t corrupt_bit(const uint8_t *frame, size_t len, uint64_t draw);
