// SPDX-License-Identifier: BSD-3-Clause
// The connections of a program that is not ours (`run`), as the kernel lists them (sock_diag(7)).
//
// A connection is known by the port of the side that opens it, which is one of the ports of the
// group's flows. Its TCP_INFO is read at each sample, and once more when it ends, which the kernel
// says by itself. Of a port that is used again the counters continue.
#include "tools/sim/guest/init.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_BYTES 16384

struct port {
	struct sample before; // counters of its connections that have ended
	bool open;
};

static struct port *ports;
static const struct guest_flow *first; // the flows follow one another, and so do their ports
static int lister = -1, endings = -1;

static int open_diag(uint32_t groups, int flags) {
	struct sockaddr_nl at = {.nl_family = AF_NETLINK, .nl_groups = groups};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | flags, NETLINK_SOCK_DIAG);

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		fail("run: sock_diag: %s", strerror(errno));
	return fd;
}

int sockets_open(void) {
	first = (const void *)(config + 1);
	ports = calloc(config->flows, sizeof(*ports));
	if (ports == NULL)
		fail("no memory for %u flows", config->flows);
	lister = open_diag(0, 0);
	endings = open_diag(
		1u << (SKNLGRP_INET_TCP_DESTROY - 1) | 1u << (SKNLGRP_INET6_TCP_DESTROY - 1),
		SOCK_NONBLOCK);
	return endings;
}

// Payload that the peer has acknowledged: the kernel also counts the SYN of the side that connects,
// and the FIN.
static uint64_t acked(const struct tcp_info *t, bool *fin) {
	uint64_t sent = t->tcpi_bytes_sent - t->tcpi_bytes_retrans;
	uint64_t syn = config->sender && t->tcpi_bytes_acked > 0, all = t->tcpi_bytes_acked - syn;

	*fin = all > sent;
	return *fin ? sent : all;
}

// What is known of a port's connections together.
static void add(struct sample *s, const struct sample *before) {
	s->bytes += before->bytes;
	s->back_bytes += before->back_bytes;
	s->data_segs_out += before->data_segs_out;
	s->total_retrans += before->total_retrans;
	s->delivered += before->delivered;
	s->delivered_ce += before->delivered_ce;
	s->dsacks += before->dsacks;
}

static void say(struct port *p, const struct sample *of, enum sample_event event) {
	struct sample *s = new_sample();

	*s = *of;
	s->flow = first[p - ports].flow;
	s->event = (uint8_t)event;
	s->error = event == SAMPLE_FAILED ? ECONNRESET : 0;
	if (config->sender)
		s->bytes++; // as if a SYN were counted
	if (new_sample_full())
		send_samples();
}

// A connection of the group, with its TCP_INFO. One that ends without the peer's acknowledgement of
// all has been reset.
static void take_connection(struct port *p, uint8_t state, const struct tcp_info *t, bool ended) {
	bool fin, peer_fin = state == CLOSE_WAIT || state == LAST_ACK || state == CLOSING;
	struct sample s = {0};

	sample_of(&s, t);
	s.bytes = acked(t, &fin);
	if (!p->open && ended && s.bytes == 0 && t->tcpi_bytes_received == 0)
		return; // it never was one
	if (!config->sender) {
		// An ended connection has no state; after an orderly end the peer's FIN has come.
		uint64_t fins = peer_fin || (ended && fin) ? 1 : 0;

		s.back_bytes = s.bytes;
		s.bytes = t->tcpi_bytes_received - (t->tcpi_bytes_received > 0 ? fins : 0);
	}
	add(&s, &p->before);
	if (config->sender && !p->open)
		say(p, &s, SAMPLE_OPENED);
	p->open = !ended;
	if (!config->sender)
		say(p, &s, SAMPLE_RECEIVED);
	else
		say(p, &s, !ended ? SAMPLE_NOW : fin ? SAMPLE_CLOSED : SAMPLE_FAILED);
	if (ended)
		p->before = s;
}

// A program may carry IPv4 by a socket of IPv6, which has the address as ::ffff:198.19.0.1.
static bool is_peers(const struct inet_diag_msg *d) {
	struct address peer = address_of(config->peer_ip, 0);
	struct in6_addr to;

	memcpy(&to, d->id.idiag_dst, sizeof(to));
	if (config->ipv6)
		return memcmp(&to, &peer.six.sin6_addr, sizeof(to)) == 0;
	return to.s6_addr32[d->idiag_family == AF_INET ? 0 : 3] == config->peer_ip
		&& (d->idiag_family == AF_INET || IN6_IS_ADDR_V4MAPPED(&to));
}

// The macros of netlink take no const.
static void take(struct nlmsghdr *n, bool ended) {
	struct inet_diag_msg *d = NLMSG_DATA(n);
	int left = (int)n->nlmsg_len - (int)NLMSG_LENGTH(sizeof(*d));
	struct tcp_info t = {0};
	bool known = false;

	if (left < 0 || !is_peers(d))
		return;
	uint32_t index =
		ntohs(config->sender ? d->id.idiag_sport : d->id.idiag_dport) - first->port;
	if (index >= config->flows)
		return;
	for (struct rtattr *a = (void *)(d + 1); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
		size_t size = RTA_PAYLOAD(a);

		if (a->rta_type != INET_DIAG_INFO)
			continue;
		memcpy(&t, RTA_DATA(a), size < sizeof(t) ? size : sizeof(t));
		known = true;
	}
	if (known)
		take_connection(&ports[index], d->idiag_state, &t, ended);
}

// Takes one datagram of answers; false: it is the last.
static bool take_all(char *bytes, ssize_t size, bool ended) {
	struct nlmsghdr *n = (void *)bytes;

	for (size_t left = (size_t)size; NLMSG_OK(n, left); n = NLMSG_NEXT(n, left)) {
		if (n->nlmsg_type == NLMSG_DONE || n->nlmsg_type == NLMSG_ERROR)
			return false;
		take(n, ended);
	}
	return true;
}

static void sample_family(uint8_t family) {
	static _Alignas(8) char answer[ANSWER_BYTES];
	struct {
		struct nlmsghdr head;
		struct inet_diag_req_v2 what;
	} ask = {.head = {.nlmsg_len = sizeof(ask),
			 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		.what = {.sdiag_family = family,
			.sdiag_protocol = IPPROTO_TCP,
			.idiag_ext = 1 << (INET_DIAG_INFO - 1),
			.idiag_states = 1u << ESTABLISHED | 1u << FIN_WAIT1 | 1u << FIN_WAIT2
				| 1u << CLOSE_WAIT | 1u << LAST_ACK | 1u << CLOSING}};
	ssize_t n;

	if (send(lister, &ask, sizeof(ask), 0) < 0)
		fail("run: sock_diag: %s", strerror(errno));
	while ((n = recv(lister, answer, sizeof(answer), 0)) > 0 && take_all(answer, n, false))
		;
}

void sockets_sample(void) {
	if (!config->ipv6)
		sample_family(AF_INET);
	sample_family(AF_INET6);
	send_samples();
}

void sockets_ended(void) {
	static _Alignas(8) char answer[ANSWER_BYTES];
	ssize_t n;

	while ((n = recv(endings, answer, sizeof(answer), MSG_DONTWAIT)) > 0)
		take_all(answer, n, true);
	send_samples();
}
