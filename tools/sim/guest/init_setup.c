// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/guest/init.h"

#include "common/run/stop.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <linux/tcp.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DEVICE "eth0"
#define WAIT_NS 10000

const struct guest_config *config;
int control = -1;
struct outgoing out;

uint64_t clock_ns(void) {
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

uint64_t end_after_ns(uint64_t t) {
	uint64_t end_ns = (t / config->interval_ns + 1) * config->interval_ns;

	if (t < config->warmup_ns)
		return time_min(end_ns, config->warmup_ns);
	if (t < config->duration_ns)
		end_ns = time_min(end_ns, config->duration_ns);
	if (config->stop_over_ns == 0)
		return end_ns;
	uint64_t tick = (t - config->warmup_ns) * STOP_TICKS / config->stop_over_ns, tick_ns;
	while ((tick_ns = stop_tick_ns(config->warmup_ns, config->stop_over_ns, tick)) <= t)
		tick++;
	return time_min(end_ns, tick_ns);
}

void send_message(uint32_t kind, uint32_t count, size_t bytes) {
	out.head.kind = kind;
	out.head.count = count;
	out.head.clock_ns = clock_ns();
	// A full card needs time until it has room.
	while (send(control, out.eth, MESSAGE_ETH + sizeof(out.head) + bytes, 0) < 0
		&& (errno == EINTR || errno == ENOBUFS))
		nanosleep(&(struct timespec){.tv_nsec = WAIT_NS}, NULL);
	out.head.count = 0;
}

struct sample *new_sample(void) {
	return &out.sample[out.head.count++];
}

bool new_sample_full(void) {
	return out.head.count == SAMPLES_MAX;
}

void send_samples(void) {
	if (out.head.count > 0)
		send_message(
			MESSAGE_SAMPLES, out.head.count, out.head.count * sizeof(struct sample));
}

bool tcp_info_of(int fd, struct tcp_info *t) {
	socklen_t size = sizeof(*t);

	memset(t, 0, sizeof(*t));
	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, t, &size) == 0;
}

void sample_of(struct sample *s, const struct tcp_info *t) {
	*s = (struct sample){
		.bytes = t->tcpi_bytes_acked,
		.delivery_Bps = t->tcpi_delivery_rate,
		.pacing_Bps = t->tcpi_pacing_rate,
		.srtt_us = t->tcpi_rtt,
		.rttvar_us = t->tcpi_rttvar,
		.min_rtt_us = t->tcpi_min_rtt,
		.cwnd = t->tcpi_snd_cwnd,
		.ssthresh = t->tcpi_snd_ssthresh,
		.unacked = t->tcpi_unacked,
		.sacked = t->tcpi_sacked,
		.lost = t->tcpi_lost,
		.retrans = t->tcpi_retrans,
		.data_segs_out = t->tcpi_data_segs_out,
		.total_retrans = t->tcpi_total_retrans,
		.delivered = t->tcpi_delivered,
		.delivered_ce = t->tcpi_delivered_ce,
		.dsacks = t->tcpi_dsack_dups,
		.ca_state = t->tcpi_ca_state,
		.app_limited = t->tcpi_delivery_rate_app_limited,
	};
}

void fail(const char *format, ...) {
	char text[512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	printf("weir: %s\n", text);
	if (control >= 0) {
		memcpy(out.sample, text, sizeof(text));
		send_message(MESSAGE_BAD, (uint32_t)strlen(text), sizeof(text));
	}
	if (config == NULL)
		reboot(RB_POWER_OFF);
	for (;;)
		pause();
}

void write_file(const char *path, const char *text) {
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		fail("%s = %s: %s", path, text, strerror(errno));
	close(fd);
}

void mount_proc(void) {
	mkdir("/proc", 0755);
	if (mount("proc", "/proc", "proc", 0, NULL) < 0)
		fail("/proc: %s", strerror(errno));
}

void *read_config(void) {
	int fd = open("/config", O_RDONLY);
	struct stat st;
	char *text;

	if (fd < 0 || fstat(fd, &st) < 0 || (text = malloc((size_t)st.st_size)) == NULL
		|| read(fd, text, (size_t)st.st_size) != st.st_size)
		fail("/config: %s", strerror(errno));
	close(fd);
	return text;
}

static void set_sysctls(void) {
	char path[2 * GUEST_TEXT];

	for (uint32_t i = 0; i < config->sysctls; i++) {
		snprintf(path, sizeof(path), "/proc/sys/%s", config->sysctl[i].name);
		write_file(path, config->sysctl[i].value);
	}
	if (config->cc[0] != '\0')
		write_file("/proc/sys/net/ipv4/tcp_congestion_control", config->cc);
}

static void set_address(struct sockaddr *to, uint32_t ip) {
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = ip};

	memcpy(to, &a, sizeof(a));
}

// Address, netmask and the peer's address in the neighbour table: nothing is asked over the wire.
static void set_interface(void) {
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct ifreq r = {.ifr_name = DEVICE};
	struct arpreq arp = {.arp_flags = ATF_PERM | ATF_COM, .arp_dev = DEVICE};

	r.ifr_mtu = config->mtu;
	if (fd < 0 || ioctl(fd, SIOCSIFMTU, &r) < 0)
		fail(DEVICE ": %s", strerror(errno));
	set_address(&r.ifr_addr, config->ip);
	if (ioctl(fd, SIOCSIFADDR, &r) < 0)
		fail(DEVICE ": address: %s", strerror(errno));
	set_address(&r.ifr_netmask, htonl(0xfffe0000));
	if (ioctl(fd, SIOCSIFNETMASK, &r) < 0)
		fail(DEVICE ": netmask: %s", strerror(errno));
	r.ifr_flags = IFF_UP | IFF_RUNNING;
	if (ioctl(fd, SIOCSIFFLAGS, &r) < 0)
		fail(DEVICE ": up: %s", strerror(errno));
	set_address(&arp.arp_pa, config->peer_ip);
	arp.arp_ha.sa_family = ARPHRD_ETHER;
	memcpy(arp.arp_ha.sa_data, config->peer_mac, 6);
	if (ioctl(fd, SIOCSARP, &arp) < 0)
		fail(DEVICE ": neighbour: %s", strerror(errno));
	close(fd);
}

// A program of the host may want an interface to itself; its connections have the ports of the
// group's flows.
static void set_for_program(void) {
	const struct guest_flow *first = (const void *)(config + 1);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct ifreq r = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	char range[32];

	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &r) < 0)
		fail("lo: up: %s", strerror(errno));
	close(fd);
	if (!config->sender)
		return;
	snprintf(range, sizeof(range), "%u %u", first->port, first->port + config->flows - 1);
	write_file("/proc/sys/net/ipv4/ip_local_port_range", range);
}

static void open_control(void) {
	struct sockaddr_ll at = {.sll_family = AF_PACKET,
		.sll_protocol = htons(MESSAGE_ETHERTYPE),
		.sll_ifindex = (int)if_nametoindex(DEVICE)};
	int one = 1;

	control = socket(AF_PACKET, SOCK_RAW, htons(MESSAGE_ETHERTYPE));
	if (control < 0
		|| setsockopt(control, SOL_PACKET, PACKET_QDISC_BYPASS, &one, sizeof(one)) < 0
		|| bind(control, (struct sockaddr *)&at, sizeof(at)) < 0)
		fail("packet socket: %s", strerror(errno));
	memcpy(out.eth, config->peer_mac, 6);
	memcpy(out.eth + 6, config->mac, 6);
	out.eth[12] = MESSAGE_ETHERTYPE >> 8;
	out.eth[13] = MESSAGE_ETHERTYPE & 0xff;
}

// The interface takes the queue discipline of the time when it goes up. Afterwards troubles can be
// reported.
void set_up(void) {
	write_file("/proc/sys/net/core/default_qdisc", config->qdisc);
	ipv6_settings(DEVICE);
	set_interface();
	open_control();
	if (config->ipv6)
		ipv6_set_interface(DEVICE);
	if (config->run[0] != '\0')
		set_for_program();
	modules_load();
	set_sysctls();
}

int open_listener(void) {
	struct address at = address_of(0, config->port);
	int one = 1, listener = socket(address_family(), SOCK_STREAM | SOCK_NONBLOCK, 0);

	if (listener < 0 || setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0
		|| address_set_tos(listener) < 0 || bind(listener, &at.any, at.size) < 0
		|| listen(listener, 65535) < 0)
		fail("port %u: %s", config->port, strerror(errno));
	return listener;
}
