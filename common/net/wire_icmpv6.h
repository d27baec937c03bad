// SPDX-License-Identifier: BSD-3-Clause
// What wire.h says of ICMP, of ICMPv6: for wire_arp_icmp.c.
#pragma once
#include "common/net/wire.h"

uint32_t wire_icmpv6_mtu(const uint8_t *frame, size_t len, const struct wire_info *info);
bool wire_icmpv6_echo(uint8_t *frame, size_t len, const struct wire_info *info);
