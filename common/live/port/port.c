// SPDX-License-Identifier: BSD-3-Clause
#include "common/live/port/port.h"

#include "common/live/base/quiesce.h"
#include "common/live/port/frame.h"
#include "common/live/port/iface.h"
#include "common/live/port/memif.h"
#include "common/live/port/removal.h"
#include "common/run/run.h"

#include <errno.h>
#include <rte_bus.h>
#include <rte_dev.h>
#include <stdlib.h>
#include <string.h>

#define SERVER_TRIES 100
#define SERVER_RETRY_US 100000
#define RECONNECT_NS (500 * NS_PER_MS)
#define HANDSHAKE_NS (5 * NS_PER_S) // its messages wait for the lcores of both programs
#define MEMIF_RING_BITS 10 // the driver's default
#define MEMIF_RING_BITS_MAX 14
#define AF_XDP_RING 2048 // the driver's fill queue is twice that

// Frames in one of a memif's rings.
static uint64_t memif_ring(const struct live_dev *dev) {
	const char *rsize = strstr(dev->text, "rsize=");
	int bits = rsize == NULL ? MEMIF_RING_BITS : atoi(rsize + strlen("rsize="));

	return UINT64_C(1) << (bits < 0 || bits > MEMIF_RING_BITS_MAX ? MEMIF_RING_BITS_MAX : bits);
}

uint64_t port_own_buffers(const struct live_dev *dev, uint64_t burst) {
	uint64_t own = 4 * burst + PORT_POOL_CACHE;

	if (live_dev_is(dev, "net_af_xdp"))
		return own + 4 * AF_XDP_RING;
	if (dev->zero_copy)
		return own + 2 * memif_ring(dev);
	// net_ring and NICs hold an mbuf per descriptor; the other devices copy frames.
	if (dev->pci || live_dev_is(dev, "net_ring"))
		return own + 2 * PORT_DESCRIPTORS;
	return own;
}

static int probe(struct port *p, const struct eal *eal, struct err *err) {
	char reason[256], args[1024];
	long mark = eal_log_mark(eal);
	int rc, saved;

	if (memif_args(&p->dev, args, sizeof(args)) < 0
		|| frame_args(&p->dev, args, sizeof(args)) < 0)
		return config_err(
			p->dev.node, -E2BIG, err, "dev: '%.60s...' is too long", p->dev.text);
	if ((rc = iface_check(&p->dev, err)) < 0)
		return rc;
	saved = eal_hush(eal);
	rc = p->dev.pci ? 0 : rte_dev_probe(args);
	eal_unhush(saved);
	if (rc < 0) {
		eal_log_reason(eal, mark, reason, sizeof(reason));
		return config_err(p->dev.node, -ENODEV, err, "dev: '%s' did not start: %s%s",
			p->dev.name, reason,
			strstr(reason, "failed to parse device") != NULL
				? "; DPDK has no such driver (it has net_memif, net_af_packet, ...)"
				: "");
	}
	if (rte_eth_dev_get_port_by_name(p->dev.name, &p->id) < 0) {
		const char *more = "";

		if (!p->dev.pci)
			snprintf(reason, sizeof(reason), "its driver made none of that name");
		else if (eal_log_device(eal, p->dev.name, reason, sizeof(reason)))
			more = "; weir doctor checks cards";
		else
			iface_pci_state(&p->dev, reason, sizeof(reason));
		return config_err(p->dev.node, -ENODEV, err, "dev: DPDK has no port '%s': %s%s",
			p->dev.name, reason, more);
	}
	return 0;
}

// Turns off pause frames: otherwise frames would queue at the peer instead of here. A setting made
// with ethtool is lost when a DPDK driver takes the device over.
static void no_pause_frames(const struct port *p) {
	struct rte_eth_fc_conf fc = {0};

	if (rte_eth_dev_flow_ctrl_get(p->id, &fc) < 0 || fc.mode == RTE_ETH_FC_NONE)
		return;
	fc.mode = RTE_ETH_FC_NONE;
	rte_eth_dev_flow_ctrl_set(p->id, &fc);
}

static int configure(struct port *p, struct rte_mempool *pool) {
	struct rte_eth_conf conf = {.rxmode = {.mq_mode = RTE_ETH_MQ_RX_NONE}};
	uint16_t rx = PORT_DESCRIPTORS, tx = PORT_DESCRIPTORS;
	struct rte_eth_dev_info info;
	int rc, socket = rte_eth_dev_socket_id(p->id);

	if (p->dev.pci) {
		conf.rxmode.mtu = (uint32_t)p->dev.mtu;
		stamp_ask(&p->stamp, p->id, p->lead_ns > 0, &conf);
	}
	if (p->rx_queues > 1 && rte_eth_dev_info_get(p->id, &info) == 0)
		conf.rx_adv_conf.rss_conf.rss_hf = info.flow_type_rss_offloads
			& (RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP);
	if (conf.rx_adv_conf.rss_conf.rss_hf != 0)
		conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
	p->no_rss = p->dev.pci && p->rx_queues > 1 && conf.rxmode.mq_mode == RTE_ETH_MQ_RX_NONE;
	if ((rc = rte_eth_dev_configure(p->id, p->rx_queues, p->tx_queues, &conf)) < 0)
		return rc;
	// Drivers that report no limits do not change the numbers.
	if ((rc = rte_eth_dev_adjust_nb_rx_tx_desc(p->id, &rx, &tx)) < 0)
		return rc;
	unsigned int where = socket < 0 ? rte_socket_id() : (unsigned int)socket;
	for (uint16_t q = 0; q < p->rx_queues; q++) {
		if ((rc = rte_eth_rx_queue_setup(p->id, q, rx, where, NULL, pool)) < 0)
			return rc;
	}
	for (uint16_t q = 0; q < p->tx_queues; q++) {
		if ((rc = rte_eth_tx_queue_setup(p->id, q, tx, where, NULL)) < 0)
			return rc;
	}
	if ((rc = rte_eth_dev_start(p->id)) < 0)
		return rc;
	no_pause_frames(p);
	stamp_start(&p->stamp, p->id);
	if (!p->stamp.tx)
		p->lead_ns = 0;
	// Some virtual devices do not support this: they receive all frames anyway.
	rte_eth_promiscuous_enable(p->id);
	return 0;
}

static int check_limits(struct port *p, struct err *err) {
	struct rte_eth_dev_info info;

	p->rx_queues += p->rx_queues == 0;
	p->tx_queues += p->tx_queues == 0;
	if (rte_eth_dev_info_get(p->id, &info) < 0)
		return 0;
	if (p->dev.pci && p->dev.mtu > info.max_mtu)
		return config_err(p->dev.node, -ENOTSUP, err,
			"dev: '%s' carries packets of at most %u bytes, and live.mtu is %llu",
			p->dev.name, info.max_mtu, (unsigned long long)p->dev.mtu);
	if (p->rx_queues <= info.max_rx_queues && p->tx_queues <= info.max_tx_queues)
		return 0;
	return config_err(p->dev.node, -ENOTSUP, err,
		"dev: '%s' has %u receive and %u transmit queues, and %u and %u are asked for",
		p->dev.name, info.max_rx_queues, info.max_tx_queues, p->rx_queues, p->tx_queues);
}

static bool link_up(const struct port *p) {
	struct rte_eth_link link = {0};

	if (p->dev.iface[0] != '\0')
		return iface_is_up(&p->dev);
	return rte_eth_link_get_nowait(p->id, &link) < 0 || link.link_status == RTE_ETH_LINK_UP;
}

// Starts the port. A memif client waits here until its server is there.
static int start(struct port *p, struct rte_mempool *pool, const struct eal *eal) {
	int rc, saved;

	for (int tries = p->client ? SERVER_TRIES : 1;;) {
		saved = eal_hush(eal);
		rc = configure(p, pool);
		eal_unhush(saved);
		if (rc == 0 || --tries == 0 || run_stop)
			return rc;
		rte_delay_us_sleep(SERVER_RETRY_US);
	}
}

static void name_peer(struct port *p) {
	const struct live_dev *dev = &p->dev;
	bool iface = dev->iface[0] != '\0';

	snprintf(p->peer, sizeof(p->peer), "%s %s, port %s,",
		p->memif	   ? "the program at the other end of"
			: iface	   ? "the kernel behind interface"
			: dev->pci ? "the network behind card"
				   : "the receiver of device",
		iface ? dev->iface : dev->name, p->name);
}

// Frames above the MTU of a kernel interface are not sent, and no driver says so.
static void read_mtu(struct port *p) {
	uint32_t mtu = iface_mtu(&p->dev);

	if (mtu > 0)
		atomic_store_explicit(&p->frame_max, mtu + WIRE_ETH, memory_order_relaxed);
}

// An interface instead of an ethdev.
static int make_kernel(struct port *p, bool joins, struct rte_mempool *pool, struct err *err) {
	int rc = iface_check(&p->dev, err);

	if (rc < 0)
		return rc;
	if (p->rx_queues > 1 || p->tx_queues > 1)
		return config_err(p->dev.node, -ENOTSUP, err,
			"dev: '%s' has one queue each way: more take net_af_packet", p->dev.name);
	if ((rc = kernel_open(&p->kernel, p->dev.iface, joins, pool, err)) < 0) {
		kernel_close(p->kernel);
		p->kernel = NULL;
		return rc;
	}
	p->sockets.count = 1;
	p->sockets.socket[0].fd = kernel_socket(p->kernel);
	p->mac = kernel_mac(p->kernel);
	p->lead_ns = 0;
	return 0;
}

static int make_ethdev(
	struct port *p, struct rte_mempool *pool, const struct eal *eal, struct err *err) {
	struct rte_ether_addr mac;
	char reason[256];
	long mark;
	int rc;

	if ((rc = probe(p, eal, err)) < 0)
		return rc;
	if ((rc = check_limits(p, err)) < 0)
		return rc;
	mark = eal_log_mark(eal);
	if ((rc = start(p, pool, eal)) < 0 && run_stop)
		return err_set(err, -EINTR, "port %s: interrupted before its peer came", p->name);
	if (rc < 0) {
		eal_log_reason(eal, mark, reason, sizeof(reason));
		return config_err(p->dev.node, rc, err, "dev: '%s' did not start: %s (%s)",
			p->dev.name, reason, strerror(-rc));
	}
	if (rte_eth_macaddr_get(p->id, &mac) == 0)
		memcpy(p->mac.b, mac.addr_bytes, sizeof(p->mac.b));
	return 0;
}

static int make(struct port *p, const struct live_port_common *config, struct rte_mempool *pool,
	const struct eal *eal, struct err *err) {
	const struct live_dev *dev = &config->dev;
	int rc;

	p->dev = *dev;
	p->memif = live_dev_is(dev, "net_memif");
	p->client = p->memif && strstr(dev->text, "role=server") == NULL;
	snprintf(p->name, sizeof(p->name), "%s", config->name);
	name_peer(p);
	p->dropped_before = iface_dropped(&p->dev);
	rc = dev->kernel ? make_kernel(p, config->offloads, pool, err)
			 : make_ethdev(p, pool, eal, err);
	if (rc < 0)
		return rc;
	p->open = p->started = true;
	if (p->dev.pci)
		removal_watch(p->dev.name, &p->removal);
	p->connected_ns = clock_mono_ns();
	read_mtu(p);
	p->ever_up = link_up(p);
	atomic_store(&p->up, p->ever_up);
	p->was_up = true;
	return 0;
}

int port_open(struct port *p, const struct live_port_common *config, struct rte_mempool *pool,
	const struct eal *eal, struct err *err) {
	int rc;

	sockets_note(&p->sockets);
	rc = make(p, config, pool, eal, err);
	sockets_note(NULL);
	return rc;
}

void port_close(struct port *p) {
	if (!p->open)
		return;
	p->open = p->started = false;
	if (p->dev.pci)
		removal_unwatch(p->dev.name, &p->removal);
	kernel_close(p->kernel);
	if (p->kernel != NULL)
		return;
	rte_eth_dev_stop(p->id);
	rte_eth_dev_close(p->id);
}

// Reconnects a memif client, which the driver does not do; closes the rest of the old connection
// first. A server that was there has time to answer.
static void reconnect(struct port *p) {
	uint64_t now_ns = clock_mono_ns();

	if (now_ns - p->connected_ns < (p->started ? HANDSHAKE_NS : RECONNECT_NS))
		return;
	p->connected_ns = now_ns;
	quiesce_hold();
	p->started = false;
	rte_eth_dev_stop(p->id);
	p->started = rte_eth_dev_start(p->id) == 0;
	quiesce_release();
}

void port_poll_link(struct port *p) {
	if (!p->memif) {
		atomic_store_explicit(&p->up, link_up(p), memory_order_relaxed);
		read_mtu(p);
	} else if (p->client && !atomic_load_explicit(&p->up, memory_order_relaxed)) {
		reconnect(p);
	}
}

void port_handled(struct port *p) {
	if (p->memif)
		atomic_store_explicit(&p->up, link_up(p), memory_order_relaxed);
}

bool port_changed(struct port *p, uint64_t now_ns) {
	bool up = atomic_load_explicit(&p->up, memory_order_relaxed);

	p->ever_up |= up;
	if (up == p->was_up)
		return false;
	p->was_up = up;
	if (up && p->downs > 0)
		p->down_ns += now_ns - p->last_down_ns;
	if (!up && p->ever_up) {
		if (p->downs++ == 0)
			p->first_down_ns = now_ns;
		p->last_down_ns = now_ns;
	}
	return true;
}

bool port_counts_missed(const struct port *p) {
	// Cards, sockets and libpcap count them, a memif, ring or null loses none; of others
	// nothing is known.
	static const char *const counting[] = {"kernel", "net_af_packet", "net_af_xdp", "net_memif",
		"net_ring", "net_null", "net_pcap"};
	bool counts = p->dev.pci;

	for (size_t i = 0; i < sizeof(counting) / sizeof(counting[0]); i++)
		counts |= live_dev_is(&p->dev, counting[i]);
	return counts;
}

void port_stats(struct port *p, struct rte_eth_stats *stats) {
	uint64_t missed = 0;

	memset(stats, 0, sizeof(*stats));
	if (p->kernel != NULL)
		kernel_stats(p->kernel, stats);
	else
		rte_eth_stats_get(p->id, stats);
	if (p->sockets.count == 0)
		return;
	for (uint32_t i = 0; i < p->sockets.count; i++)
		missed += stats->q_errors[i] = sockets_missed(&p->sockets, i);
	if (live_dev_is(&p->dev, "net_af_packet") || p->kernel != NULL)
		missed += time_since(iface_dropped(&p->dev), p->dropped_before);
	stats->imissed = missed;
}

// Not all drivers count under `oerrors` what they took: some count what they refused, too.
uint64_t port_unsent(const struct port *p, uint64_t taken) {
	struct rte_eth_stats stats = {0};

	if (p->kernel != NULL) {
		kernel_stats(p->kernel, &stats);
		return stats.oerrors;
	}
	if (rte_eth_stats_get(p->id, &stats) < 0 || stats.opackets >= taken)
		return 0;
	return time_min(stats.oerrors, taken - stats.opackets);
}

bool port_fault(const struct port *p, uint64_t start_ns, uint64_t now_ns, struct fact *fault) {
	uint64_t down_ns = p->down_ns + (p->was_up ? 0 : now_ns - p->last_down_ns);
	char often[32] = "once";

	if (p->downs == 0)
		return false;
	if (p->downs > 1)
		snprintf(often, sizeof(often), "%llu times", (unsigned long long)p->downs);
	fact_set(fault, "port_down", "port %s went down %s, first at %.3f s, for %.3f s in all%s",
		p->name, often, (double)time_since(p->first_down_ns, start_ns) / 1e9,
		(double)down_ns / 1e9, p->was_up ? "" : ", and still is");
	fact_text(fault, "port", p->name);
	fact_number(fault, "count", (double)p->downs);
	fact_number(fault, "from_s", (double)time_since(p->first_down_ns, start_ns) / 1e9);
	fact_number(fault, "down_s", (double)down_ns / 1e9);
	return true;
}

bool port_removed(const struct port *p, struct fact *fault) {
	if (!atomic_load(&p->removal))
		return false;
	fact_set(fault, "port_removed",
		"port %s lost its card %s, which was taken away: the run ended", p->name,
		p->dev.name);
	return true;
}

void port_trace(const struct port *p, struct tel *events, uint32_t i, uint64_t now_ns) {
	struct tel_events *r = tel_put(events);

	if (r != NULL)
		*r = (struct tel_events){
			.ts_ns = now_ns,
			.value = p->was_up,
			.flow_id = TEL_NO_FLOW,
			.before = (float)!p->was_up,
			.event = TEL_EV_PORT,
			.group = (uint16_t)i,
		};
}
