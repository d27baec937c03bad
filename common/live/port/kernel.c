// SPDX-License-Identifier: BSD-3-Clause
#include "common/live/port/kernel.h"

#include "common/base/mem.h"
#include "common/base/pkt.h"
#include "common/net/super_frame.h"
#include "common/net/wire_put.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5 // Linux 6.2
#endif
#define RX_FRAMES 8 // read at a time: what they bring stays in the cache until it is cut
#define FRAME_MAX (8u * 65536u) // the kernel's largest, BIG TCP
#define ROOM_BYTES (16 << 20) // of the socket, for what arrives while another process has the CPU
#define FLOWS_MAX 8 // to whose packets others are joined, at a time

struct rx_frame {
	struct virtio_net_hdr vnet;
	struct iovec part[2];
	uint8_t *bytes; // with room for a tag before it
	uint8_t control[CMSG_SPACE(sizeof(struct tpacket_auxdata))
		+ CMSG_SPACE(sizeof(struct timespec))] __attribute__((aligned(8)));
};

struct tx_frame {
	struct virtio_net_hdr vnet;
	uint8_t header[SUPER_FRAME_HEADER]; // of a joined one
	uint16_t first, last, packets; // of the burst
	uint32_t payload;
};

struct kernel {
	int fd;
	bool joins, keeps_sums;
	struct wire_mac mac;
	struct rte_mempool *pool;
	uint32_t room; // bytes of its buffers
	struct kernel_count in, out;
	uint64_t no_mbuf, tx_errors;

	// Received frames, of which `next` is being cut.
	struct rx_frame rx[RX_FRAMES];
	struct mmsghdr rx_message[RX_FRAMES];
	uint32_t frames, next;
	uint64_t read_ns, read_utc_ns; // when they were read
	struct super_frame super; // the frame being cut; size 0: it is one packet
	uint32_t offset; // into its payload
	uint64_t arrival_ns; // of its next packet
	uint8_t *memory;

	// A burst on its way out.
	struct joint joint[KERNEL_BURST_MAX];
	uint16_t behind[KERNEL_BURST_MAX]; // the next packet in the same frame
	struct tx_frame tx[KERNEL_BURST_MAX];
	struct mmsghdr tx_message[KERNEL_BURST_MAX];
	struct iovec tx_part[3 * KERNEL_BURST_MAX];
	struct tx_frame *open[FLOWS_MAX]; // others may be joined to them
	uint32_t opens;
};

static void set_up_reception(struct kernel *k) {
	for (uint32_t i = 0; i < RX_FRAMES; i++) {
		struct rx_frame *f = &k->rx[i];

		f->bytes = k->memory + i * (FRAME_MAX + RTE_CACHE_LINE_SIZE) + WIRE_TAG;
		f->part[0] = (struct iovec){&f->vnet, sizeof(f->vnet)};
		f->part[1] = (struct iovec){f->bytes, FRAME_MAX};
		k->rx_message[i].msg_hdr.msg_iov = f->part;
		k->rx_message[i].msg_hdr.msg_iovlen = 2;
		k->rx_message[i].msg_hdr.msg_control = f->control;
	}
}

static int set(int fd, int level, int name, int value) {
	return setsockopt(fd, level, name, &value, sizeof(value));
}

// The kernel's limits hold for users that may not pass over them.
static void make_room(int fd) {
	if (set(fd, SOL_SOCKET, SO_RCVBUFFORCE, ROOM_BYTES) < 0)
		set(fd, SOL_SOCKET, SO_RCVBUF, ROOM_BYTES);
	if (set(fd, SOL_SOCKET, SO_SNDBUFFORCE, ROOM_BYTES) < 0)
		set(fd, SOL_SOCKET, SO_SNDBUF, ROOM_BYTES);
}

static int bind_to(struct kernel *k, const char *iface) {
	struct sockaddr_ll at = {.sll_family = AF_PACKET,
		.sll_protocol = __builtin_bswap16(ETH_P_ALL),
		.sll_ifindex = (int)if_nametoindex(iface)};
	struct packet_mreq all = {.mr_ifindex = at.sll_ifindex, .mr_type = PACKET_MR_PROMISC};
	socklen_t size = sizeof(at);

	if (set(k->fd, SOL_PACKET, PACKET_VNET_HDR, 1) < 0
		|| set(k->fd, SOL_PACKET, PACKET_AUXDATA, 1) < 0
		|| set(k->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, 1) < 0
		|| set(k->fd, SOL_SOCKET, SO_TIMESTAMPNS, 1) < 0
		|| setsockopt(k->fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof(all)) < 0
		|| bind(k->fd, (struct sockaddr *)(void *)&at, sizeof(at)) < 0
		|| getsockname(k->fd, (struct sockaddr *)(void *)&at, &size) < 0)
		return -errno;
	memcpy(k->mac.b, at.sll_addr, sizeof(k->mac.b));
	return 0;
}

int kernel_open(struct kernel **kernel, const char *iface, bool joins, struct rte_mempool *pool,
	struct err *err) {
	struct kernel *k = mem_map(sizeof(*k));
	int rc;

	*kernel = k;
	if (k == NULL)
		return err_set(err, -ENOMEM, "no memory for a port at %s", iface);
	k->joins = joins;
	k->pool = pool;
	k->room = rte_pktmbuf_data_room_size(pool) - RTE_PKTMBUF_HEADROOM;
	k->memory = mem_map(RX_FRAMES * (FRAME_MAX + RTE_CACHE_LINE_SIZE));
	k->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (k->memory == NULL || k->fd < 0)
		return err_set(err, -ENOMEM, "no memory for a port at %s", iface);
	set_up_reception(k);
	make_room(k->fd);
	if ((rc = bind_to(k, iface)) < 0)
		return err_set(err, rc, "interface %s cannot be a port: %s", iface, strerror(-rc));
	return 0;
}

void kernel_close(struct kernel *k) {
	if (k == NULL)
		return;
	if (k->fd >= 0)
		close(k->fd);
	mem_unmap(k->memory, RX_FRAMES * (FRAME_MAX + RTE_CACHE_LINE_SIZE));
	mem_unmap(k, sizeof(*k));
}

int kernel_socket(const struct kernel *k) {
	return k->fd;
}

struct wire_mac kernel_mac(const struct kernel *k) {
	return k->mac;
}

bool kernel_joins(const struct kernel *k) {
	return k->joins;
}

void kernel_keep_sums(struct kernel *k) {
	k->keeps_sums = true;
}

void kernel_stats(const struct kernel *k, struct rte_eth_stats *stats) {
	stats->ipackets = k->in.packets;
	stats->ibytes = k->in.bytes;
	stats->opackets = k->out.packets;
	stats->obytes = k->out.bytes;
	stats->rx_nombuf = k->no_mbuf;
	stats->oerrors = k->tx_errors;
}

struct kernel_count kernel_received(const struct kernel *k) {
	return k->in;
}

struct kernel_count kernel_sent(const struct kernel *k) {
	return k->out;
}

static uint64_t utc_ns(const struct timespec *t) {
	return (uint64_t)t->tv_sec * NS_PER_S + (uint64_t)t->tv_nsec;
}

static bool read_frames(struct kernel *k, uint64_t now_ns) {
	struct timespec utc;
	int n;

	for (uint32_t i = 0; i < RX_FRAMES; i++)
		k->rx_message[i].msg_hdr.msg_controllen = sizeof(k->rx[i].control);
	n = recvmmsg(k->fd, k->rx_message, RX_FRAMES, MSG_DONTWAIT, NULL);
	k->next = 0;
	k->frames = n > 0 ? (uint32_t)n : 0;
	if (n <= 0)
		return false;
	clock_gettime(CLOCK_REALTIME, &utc);
	k->read_ns = now_ns;
	k->read_utc_ns = utc_ns(&utc);
	return true;
}

// The frame's first bytes, with the VLAN tag that the kernel has taken out of it.
static uint8_t *with_tag(uint8_t *bytes, uint32_t *len, const struct tpacket_auxdata *aux) {
	uint16_t type = WIRE_ETHERTYPE_VLAN;

	if ((aux->tp_status & TP_STATUS_VLAN_VALID) == 0)
		return bytes;
	if ((aux->tp_status & TP_STATUS_VLAN_TPID_VALID) != 0)
		type = aux->tp_vlan_tpid;
	memmove(bytes - WIRE_TAG, bytes, 12);
	wire_put16(wire_put16(bytes - WIRE_TAG + 12, type), aux->tp_vlan_tci);
	*len += WIRE_TAG;
	return bytes - WIRE_TAG;
}

// Whether the frame is what the kernel says of it: not a tunnel's, where it means what is inside.
static bool is_cut(const struct kernel *k, const struct virtio_net_hdr *vnet, uint32_t l4) {
	uint8_t type = vnet->gso_type & (uint8_t)~VIRTIO_NET_HDR_GSO_ECN;
	bool tcp = type == VIRTIO_NET_HDR_GSO_TCPV4 || type == VIRTIO_NET_HDR_GSO_TCPV6;

	return (tcp || type == VIRTIO_NET_HDR_GSO_UDP_L4) && tcp == k->super.tcp
		&& l4 == vnet->csum_start && k->super.header + vnet->gso_size <= k->room;
}

// Begins to cut the next frame: its first packet arrived when the kernel got it, or when the line
// was free.
static void begin_frame(struct kernel *k) {
	const struct rx_frame *f = &k->rx[k->next];
	struct msghdr *message = &k->rx_message[k->next].msg_hdr;
	uint32_t len = k->rx_message[k->next].msg_len;
	uint64_t waited_ns = 0;
	uint8_t *bytes = f->bytes;

	len -= len < sizeof(f->vnet) ? len : (uint32_t)sizeof(f->vnet);
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL; c = CMSG_NXTHDR(message, c)) {
		if (c->cmsg_level == SOL_PACKET && c->cmsg_type == PACKET_AUXDATA)
			bytes = with_tag(bytes, &len, (const void *)CMSG_DATA(c));
		else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS)
			waited_ns = time_since(k->read_utc_ns, utc_ns((const void *)CMSG_DATA(c)));
	}
	// The kernel counts from its first byte.
	if (!super_frame_read(&k->super, bytes, len, f->vnet.gso_size)
		|| !is_cut(k, &f->vnet, k->super.l4 + (uint32_t)(k->super.bytes - f->bytes)))
		k->super = (struct super_frame){.bytes = bytes, .len = len};
	k->super.cwr_first = (f->vnet.gso_type & VIRTIO_NET_HDR_GSO_ECN) != 0;
	k->arrival_ns = time_max(k->arrival_ns, time_since(k->read_ns, waited_ns));
	k->in.frames++;
}

// Writes the next packet into an mbuf. True: the frame's last.
static bool cut(struct kernel *k, struct rte_mbuf *m) {
	const struct super_frame *f = &k->super;
	uint8_t *packet = rte_pktmbuf_mtod(m, uint8_t *);
	const struct rx_frame *from = &k->rx[k->next];
	bool partial = (from->vnet.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) != 0;
	// Where its sum begins, seen from the packet's first byte.
	uint32_t len = f->len, l4 = from->vnet.csum_start + (uint32_t)(from->bytes - f->bytes), own;

	if (f->size > 0) {
		len = super_frame_cut(f, k->offset, packet);
		k->offset += f->size;
	} else {
		memcpy(packet, f->bytes, len < k->room ? len : k->room);
	}
	m->data_len = (uint16_t)(len < k->room ? len : k->room);
	m->pkt_len = m->data_len;
	if (partial && k->keeps_sums && len > KERNEL_SMALL_MAX
		&& super_frame_sum_at(packet, m->data_len, &own) > 0 && own == l4)
		m->ol_flags |= KERNEL_PARTIAL;
	else if (partial)
		super_frame_fill_sum_at(packet, m->data_len, l4, from->vnet.csum_offset);
	((struct pkt *)rte_mbuf_to_priv(m))->release_ns = k->arrival_ns;
	k->arrival_ns += (len + WIRE_FCS + WIRE_OVERHEAD) * 8 * NS_PER_S / KERNEL_LINE_BPS;
	k->in.packets++;
	k->in.bytes += len;
	return f->size == 0 || f->header + k->offset >= f->len;
}

// Of the frame being cut.
static uint32_t packets_left(const struct kernel *k) {
	const struct super_frame *f = &k->super;

	return f->size > 0 ? (f->len - f->header - k->offset + f->size - 1) / f->size : 1;
}

uint16_t kernel_rx(struct kernel *k, const struct clock *clock, struct rte_mbuf **m, uint16_t n) {
	uint64_t now_ns = clock_now(clock);
	uint16_t got = 0;

	while (got < n && (k->next < k->frames || read_frames(k, now_ns))) {
		if (k->super.bytes == NULL)
			begin_frame(k);
		if (k->arrival_ns > now_ns)
			break;
		if ((m[got] = rte_pktmbuf_alloc(k->pool)) == NULL) {
			k->no_mbuf += packets_left(k);
		} else if (!cut(k, m[got++])) {
			continue;
		}
		k->super.bytes = NULL;
		k->offset = 0;
		k->next++;
	}
	return got;
}

// Joins the i-th packet of the burst to a frame of its flow, or begins one with it.
static void place(struct kernel *k, uint16_t i, uint16_t *frames) {
	const struct joint *j = &k->joint[i];
	struct tx_frame *f;

	for (uint32_t o = 0; o < k->opens; o++) {
		f = k->open[o];
		if (!joint_same_flow(&k->joint[f->first], j))
			continue;
		if (joint_follows(&k->joint[f->first], &k->joint[f->last], j, f->payload)) {
			k->behind[f->last] = i;
			f->last = i;
			f->packets++;
			f->payload += j->payload;
			return;
		}
		k->open[o] = k->open[--k->opens];
		break;
	}
	f = &k->tx[(*frames)++];
	f->first = f->last = i;
	f->packets = 1;
	f->payload = j->payload;
	if (k->joins && j->joins)
		k->open[k->opens < FLOWS_MAX ? k->opens++ : i % FLOWS_MAX] = f;
}

// The vnet header of a packet that leaves alone.
static struct virtio_net_hdr describe_one(const struct rte_mbuf *m) {
	struct virtio_net_hdr vnet = {0};
	uint32_t l4, at;

	if ((m->ol_flags & KERNEL_PARTIAL) == 0)
		return vnet;
	at = super_frame_sum_at(rte_pktmbuf_mtod(m, const uint8_t *), m->data_len, &l4);
	if (at > 0) {
		vnet.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
		vnet.csum_start = (uint16_t)l4;
		vnet.csum_offset = (uint16_t)at;
	}
	return vnet;
}

static struct virtio_net_hdr describe_joined(const struct joint *first) {
	uint8_t type = first->tcp ? VIRTIO_NET_HDR_GSO_TCPV4 : VIRTIO_NET_HDR_GSO_UDP_L4;

	return (struct virtio_net_hdr){
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.gso_type = first->tcp && first->ipv6 ? VIRTIO_NET_HDR_GSO_TCPV6 : type,
		.hdr_len = (uint16_t)first->header,
		.gso_size = (uint16_t)first->payload,
		.csum_start = (uint16_t)first->l4,
		.csum_offset = first->tcp ? 16 : 6,
	};
}

// Describes a frame's bytes, from `part` on; returns the number of parts.
static size_t lay_out(
	struct kernel *k, struct tx_frame *f, struct rte_mbuf *const *m, struct iovec *part) {
	const struct joint *first = &k->joint[f->first];
	uint16_t i = f->first;
	size_t n = 0;

	part[n++] = (struct iovec){&f->vnet, sizeof(f->vnet)};
	if (f->packets == 1) {
		f->vnet = describe_one(m[i]);
		part[n++] = (struct iovec){rte_pktmbuf_mtod(m[i], void *), m[i]->data_len};
		return n;
	}
	f->vnet = describe_joined(first);
	part[n++] = (struct iovec){
		f->header, joint_header(first, &k->joint[f->last], f->payload, f->header)};
	for (uint16_t left = f->packets; left > 0; left--, i = k->behind[i])
		part[n++] = (struct iovec){
			rte_pktmbuf_mtod_offset(m[i], void *, first->header), k->joint[i].payload};
	return n;
}

// Counts a frame that the kernel took, or did not.
static void count_sent(
	struct kernel *k, const struct tx_frame *f, struct rte_mbuf *const *m, bool sent) {
	uint16_t i = f->first;

	if (!sent) {
		k->tx_errors += f->packets;
		return;
	}
	k->out.frames++;
	k->out.packets += f->packets;
	for (uint16_t left = f->packets; left > 0; left--, i = k->behind[i])
		k->out.bytes += m[i]->data_len;
}

uint16_t kernel_tx(struct kernel *k, struct rte_mbuf **m, uint16_t n) {
	struct iovec *part = k->tx_part;
	uint16_t frames = 0;

	k->opens = 0;
	for (uint16_t i = 0; i < n; i++) {
		if (k->joins)
			joint_read(&k->joint[i], rte_pktmbuf_mtod(m[i], const uint8_t *),
				m[i]->data_len, (m[i]->ol_flags & KERNEL_PARTIAL) != 0);
		place(k, i, &frames);
	}
	for (uint16_t i = 0; i < frames; i++) {
		struct msghdr *message = &k->tx_message[i].msg_hdr;

		message->msg_iov = part;
		message->msg_iovlen = lay_out(k, &k->tx[i], m, part);
		part += message->msg_iovlen;
	}
	for (uint16_t i = 0; i < frames;) {
		int sent = sendmmsg(
			k->fd, k->tx_message + i, (unsigned int)(frames - i), MSG_DONTWAIT);

		if (sent <= 0 && i == 0 && (errno == ENETDOWN || errno == ENXIO))
			return 0;
		for (int s = 0; s < sent; s++)
			count_sent(k, &k->tx[i++], m, true);
		if (sent <= 0)
			count_sent(k, &k->tx[i++], m, false);
	}
	rte_pktmbuf_free_bulk(m, n);
	return n;
}
