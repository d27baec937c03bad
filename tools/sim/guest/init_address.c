// SPDX-License-Identifier: BSD-3-Clause
// Addresses of the config's flows, in IPv4 or IPv6, and the guest's interface in IPv6.
#include "tools/sim/guest/init.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define SETTINGS "/proc/sys/net/ipv6/conf/"
#define PREFIX_BITS 96

// As linux/ipv6.h has it, which does not go together with netinet/in.h.
struct ipv6_address_request {
	struct in6_addr address;
	uint32_t prefix_bits;
	int index;
};

static struct in6_addr ipv6_of(uint32_t ip) {
	struct in6_addr a = {.s6_addr = {0x20, 0x01, 0x00, 0x02}};

	memcpy(a.s6_addr + 12, &ip, sizeof(ip));
	return a;
}

int address_family(void) {
	return config->ipv6 ? AF_INET6 : AF_INET;
}

int address_set_tos(int fd) {
	int tos = (int)config->tos;

	if (tos == 0)
		return 0;
	return config->ipv6 ? setsockopt(fd, IPPROTO_IPV6, IPV6_TCLASS, &tos, sizeof(tos))
			    : setsockopt(fd, IPPROTO_IP, IP_TOS, &tos, sizeof(tos));
}

struct address address_of(uint32_t ip, uint16_t port) {
	struct address a = {.size = sizeof(a.four)};

	if (config->ipv6) {
		a.size = sizeof(a.six);
		a.six.sin6_family = AF_INET6;
		a.six.sin6_port = htons(port);
		a.six.sin6_addr = ip == 0 ? in6addr_any : ipv6_of(ip);
	} else {
		a.four.sin_family = AF_INET;
		a.four.sin_port = htons(port);
		a.four.sin_addr.s_addr = ip;
	}
	return a;
}

// Nothing goes over the wire by itself: no address of the link's own, no question whether another
// host has ours, no router.
void ipv6_settings(const char *device) {
	static const struct {
		const char *name, *value;
	} settings[] = {{"addr_gen_mode", "1"}, {"accept_dad", "0"}, {"accept_ra", "0"}};
	char path[128];

	if (!config->ipv6 || access(SETTINGS, F_OK) != 0)
		return;
	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		snprintf(path, sizeof(path), SETTINGS "%s/%s", device, settings[i].name);
		write_file(path, settings[i].value);
	}
}

// The peer in the neighbour table.
static void set_neighbour(int index) {
	struct {
		struct nlmsghdr head;
		struct ndmsg what;
		struct rtattr ip_head;
		struct in6_addr ip;
		struct rtattr mac_head;
		uint8_t mac[8];
	} ask = {.head = {.nlmsg_len = sizeof(ask),
			 .nlmsg_type = RTM_NEWNEIGH,
			 .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE},
		.what = {.ndm_family = AF_INET6, .ndm_ifindex = index, .ndm_state = NUD_PERMANENT},
		.ip_head = {RTA_LENGTH(sizeof(struct in6_addr)), NDA_DST},
		.ip = ipv6_of(config->peer_ip),
		.mac_head = {RTA_LENGTH(6), NDA_LLADDR}};
	struct {
		struct nlmsghdr head;
		struct nlmsgerr said;
	} answer = {0};
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);

	memcpy(ask.mac, config->peer_mac, 6);
	if (fd < 0 || send(fd, &ask, sizeof(ask), 0) < 0 || recv(fd, &answer, sizeof(answer), 0) < 0
		|| answer.said.error != 0)
		fail("ip: ipv6: neighbour: %s",
			strerror(answer.said.error != 0 ? -answer.said.error : errno));
	close(fd);
}

void ipv6_set_interface(const char *device) {
	struct ipv6_address_request r = {
		ipv6_of(config->ip), PREFIX_BITS, (int)if_nametoindex(device)};
	int fd = socket(AF_INET6, SOCK_DGRAM, 0);

	if (fd < 0)
		fail("ip: ipv6: its kernel has no IPv6: build one by tools/weir guests build "
		     "--name more --config tools/src/weir/guests/more.config, "
		     "and write kernel: more");
	if (ioctl(fd, SIOCSIFADDR, &r) < 0)
		fail("ip: ipv6: address: %s", strerror(errno));
	close(fd);
	set_neighbour(r.index);
}
