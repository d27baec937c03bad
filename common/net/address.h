// SPDX-License-Identifier: BSD-3-Clause
// MAC and IPv4 addresses as text, in the config and in summaries. An IPv4 address is in host byte
// order.
#pragma once
#include "common/net/wire.h"

#include <stdbool.h>
#include <stdint.h>

#define ADDRESS_MAC_SIZE 18 // of a text, with its end
#define ADDRESS_IP_SIZE 16
#define ADDRESS_HOST_SIZE 20

// "02:00:00:00:00:01"; false: it is not a MAC address.
bool address_mac(const char *text, struct wire_mac *mac);
// "198.18.0.1"; false: it is not an IPv4 address.
bool address_ip(const char *text, uint32_t *ip);
void address_mac_text(const struct wire_mac *mac, char text[static ADDRESS_MAC_SIZE]);
// The address of a host in IPv4, or in IPv6 (wire.h).
void address_host_text(uint32_t ip, bool ipv6, char text[static ADDRESS_HOST_SIZE]);
void address_ip_text(uint32_t ip, char text[static ADDRESS_IP_SIZE]);
