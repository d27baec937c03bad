// SPDX-License-Identifier: BSD-3-Clause
// DPDK's drivers net_af_packet and net_af_xdp call setsockopt of this file: the program defines the
// function itself, and the dynamic linker prefers a program's function to the C library's. Two
// things need that.
//
// Fragments of IPv4 datagrams shall pass. net_af_packet joins a fanout group for each port, with
// one queue as well, and asks the kernel to reassemble datagrams for it
// (PACKET_FANOUT_FLAG_DEFRAG). No argument of the device turns that off. The kernel would then give
// the port whole datagrams, which are longer than a buffer or than the MTU of the port by which
// they leave. A socket cannot leave its group, and the flags of a group cannot change (packet(7)),
// so the flag is taken out of the driver's call. Without it, all fragments of a datagram still get
// to one queue: the kernel's hash of a fragment is that of its addresses.
//
// Frames that find no room in a socket's ring shall be counted. net_af_packet of DPDK 22.11 does
// not ask for that count, and net_af_xdp leaves those out that found the receive ring full.
#include "common/live/port/sockets.h"

#include <linux/if_packet.h>
#include <linux/if_xdp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FANOUT_TYPE_SHIFT 16 // the value: the group's number, then its type and flags

static struct port_sockets *noted;

void sockets_note(struct port_sockets *s) {
	noted = s;
}

static void note(int fd, bool xdp) {
	if (noted == NULL || noted->count == LIVE_LCORES_MAX)
		return;
	noted->socket[noted->count].fd = fd;
	noted->socket[noted->count++].xdp = xdp;
}

__attribute__((visibility("default"))) int setsockopt(
	int fd, int level, int name, const void *value, socklen_t size) {
	unsigned int fanout;

	if (level == SOL_XDP && name == XDP_RX_RING)
		note(fd, true);
	if (level == SOL_PACKET && name == PACKET_FANOUT && size == sizeof(fanout)) {
		note(fd, false);
		memcpy(&fanout, value, sizeof(fanout));
		fanout &= ~((unsigned int)PACKET_FANOUT_FLAG_DEFRAG << FANOUT_TYPE_SHIFT);
		value = &fanout;
	}
	return (int)syscall(SYS_setsockopt, fd, level, name, value, size);
}

// The kernel's count is since the socket was opened.
static void read_xdp(struct port_socket *s) {
	struct xdp_statistics seen = {0};
	socklen_t size = sizeof(seen);

	if (getsockopt(s->fd, SOL_XDP, XDP_STATISTICS, &seen, &size) == 0)
		atomic_store(&s->missed, seen.rx_dropped + seen.rx_ring_full);
}

// The kernel's count is since it was last read.
static void read_packet(struct port_socket *s) {
	struct tpacket_stats seen = {0};
	socklen_t size = sizeof(seen);

	if (getsockopt(s->fd, SOL_PACKET, PACKET_STATISTICS, &seen, &size) == 0)
		atomic_fetch_add(&s->missed, seen.tp_drops);
}

uint64_t sockets_missed(struct port_sockets *s, uint32_t i) {
	struct port_socket *socket = &s->socket[i];

	(socket->xdp ? read_xdp : read_packet)(socket);
	return atomic_load(&socket->missed);
}
