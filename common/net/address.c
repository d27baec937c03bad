// SPDX-License-Identifier: BSD-3-Clause
#include "common/net/address.h"

#include <arpa/inet.h>
#include <stdio.h>

bool address_mac(const char *text, struct wire_mac *mac) {
	unsigned b[6];
	int end = 0;

	if (sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%n", &b[0], &b[1], &b[2], &b[3], &b[4], &b[5],
		    &end)
			!= 6
		|| text[end] != '\0')
		return false;
	for (int i = 0; i < 6; i++)
		mac->b[i] = (uint8_t)b[i];
	return true;
}

bool address_ip(const char *text, uint32_t *ip) {
	struct in_addr a;

	if (inet_pton(AF_INET, text, &a) != 1)
		return false;
	*ip = ntohl(a.s_addr);
	return true;
}

void address_mac_text(const struct wire_mac *mac, char text[static ADDRESS_MAC_SIZE]) {
	snprintf(text, ADDRESS_MAC_SIZE, "%02x:%02x:%02x:%02x:%02x:%02x", mac->b[0], mac->b[1],
		mac->b[2], mac->b[3], mac->b[4], mac->b[5]);
}

void address_ip_text(uint32_t ip, char text[static ADDRESS_IP_SIZE]) {
	snprintf(text, ADDRESS_IP_SIZE, "%u.%u.%u.%u", ip >> 24, ip >> 16 & 0xff, ip >> 8 & 0xff,
		ip & 0xff);
}

void address_host_text(uint32_t ip, bool ipv6, char text[static ADDRESS_HOST_SIZE]) {
	if (ipv6)
		snprintf(text, ADDRESS_HOST_SIZE, "2001:2::%x:%x", ip >> 16, ip & 0xffff);
	else
		address_ip_text(ip, text);
}
