// SPDX-License-Identifier: BSD-3-Clause
// The load of `weir bench live`: on one lcore, sends frames from its first port as fast as the port
// takes them, and receives and frees all frames on all ports. It is on both sides of the measured
// program.
//
// Frames are UDP from 198.18.0.1 to 198.19.0.1, of one size or the simple IMIX: 7 of 64 bytes, 4 of
// 570 and 1 of 1514, FCS not counted. Flows differ in the source port; each sends a frame in its
// turn. A frame costs only an allocation and a copy of its headers, because the load must not be
// slower than the measured program. With a rate, bursts are spaced accordingly; the rate includes
// FCS, preamble and gap. After a pause, late bursts are sent at once, up to a millisecond's worth.
//
// Runs until SIGINT or SIGTERM. Its counters are read through DPDK's telemetry socket.
#include <rte_cycles.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_udp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BURST 32
#define DESCRIPTORS 1024
#define BUFFERS 8191
#define PORTS_MAX 2
#define FRAME_MIN 60
#define FRAME_MAX 1514
#define WIRE_BYTES 24 // FCS, preamble and gap
#define GBIT_MAX 1000
#define FLOWS_MAX 65536 // source ports
#define SERVER_TRIES 100
#define SERVER_RETRY_MS 100

static const uint16_t imix[] = {64, 570, 64, 64, 1514, 64, 570, 64, 570, 64, 570, 64};

struct headers {
	struct rte_ether_hdr ether;
	struct rte_ipv4_hdr ip;
	struct rte_udp_hdr udp;
} __rte_packed __rte_aligned(2);

static volatile sig_atomic_t stop;

static void on_signal(int number) {
	stop = number;
}

static void __attribute__((noreturn, format(printf, 1, 2))) die(const char *format, ...) {
	va_list args;

	fputs("weir-live-load: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

struct frame {
	uint16_t bytes;
	struct headers headers;
};

// The frames, sent cyclically, and their rate; 0: as fast as possible.
struct load {
	struct frame frame[RTE_DIM(imix)];
	unsigned frames, next;
	unsigned long flows, flow;
	double gbit;
	uint64_t due; // TSC of the next burst
};

static void add_frame(struct load *l, uint16_t bytes) {
	struct frame *f = &l->frame[l->frames++];
	uint16_t ip_bytes = (uint16_t)(bytes - sizeof(struct rte_ether_hdr));
	uint16_t udp_bytes = (uint16_t)(ip_bytes - sizeof(struct rte_ipv4_hdr));

	f->bytes = bytes;
	f->headers = (struct headers){
		.ether = {.dst_addr = {{2, 0, 0, 0, 0, 2}},
			.src_addr = {{2, 0, 0, 0, 0, 1}},
			.ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV4)},
		.ip = {.version_ihl = RTE_IPV4_VHL_DEF,
			.total_length = rte_cpu_to_be_16(ip_bytes),
			.time_to_live = 64,
			.next_proto_id = IPPROTO_UDP,
			.src_addr = RTE_BE32(RTE_IPV4(198, 18, 0, 1)),
			.dst_addr = RTE_BE32(RTE_IPV4(198, 19, 0, 1))},
		.udp = {.src_port = RTE_BE16(9),
			.dst_port = RTE_BE16(9),
			.dgram_len = rte_cpu_to_be_16(udp_bytes)},
	};
	f->headers.ip.hdr_checksum = rte_ipv4_cksum(&f->headers.ip);
}

static uint16_t port_open(const char *dev, struct rte_mempool *pool) {
	struct rte_eth_conf conf = {.rxmode = {.mq_mode = RTE_ETH_MQ_RX_NONE}};
	uint16_t rx = DESCRIPTORS, tx = DESCRIPTORS, id;
	char name[64];
	int rc;

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(dev, ","), dev);
	if (rte_dev_probe(dev) < 0 || rte_eth_dev_get_port_by_name(name, &id) < 0)
		die("'%s' did not start", dev);
	if ((rc = rte_eth_dev_configure(id, 1, 1, &conf)) < 0
		|| (rc = rte_eth_dev_adjust_nb_rx_tx_desc(id, &rx, &tx)) < 0
		|| (rc = rte_eth_rx_queue_setup(id, 0, rx, rte_socket_id(), NULL, pool)) < 0
		|| (rc = rte_eth_tx_queue_setup(id, 0, tx, rte_socket_id(), NULL)) < 0)
		die("'%s' did not start: %s", dev, rte_strerror(-rc));
	// A memif client waits for its server.
	for (int tries = SERVER_TRIES; (rc = rte_eth_dev_start(id)) < 0 && tries > 0 && !stop;
		tries--)
		rte_delay_us_sleep(SERVER_RETRY_MS * 1000);
	if (rc < 0)
		die("'%s' did not start: %s", dev, rte_strerror(-rc));
	rte_eth_promiscuous_enable(id);
	return id;
}

static void sink(uint16_t port) {
	struct rte_mbuf *m[BURST];
	uint16_t n = rte_eth_rx_burst(port, 0, m, BURST);

	if (n > 0)
		rte_pktmbuf_free_bulk(m, n);
}

static void generate(struct load *l, uint16_t port, struct rte_mempool *pool) {
	struct rte_mbuf *m[BURST];
	uint64_t now = rte_rdtsc();
	double bits = 0;

	if (now < l->due || rte_pktmbuf_alloc_bulk(pool, m, BURST) < 0)
		return;
	for (int i = 0; i < BURST; i++) {
		const struct frame *f = &l->frame[l->next];

		l->next = l->next + 1 == l->frames ? 0 : l->next + 1;
		struct headers *headers = rte_pktmbuf_mtod(m[i], struct headers *);

		*headers = f->headers;
		if (l->flows > 1) {
			headers->udp.src_port = rte_cpu_to_be_16((uint16_t)l->flow);
			l->flow = l->flow + 1 == l->flows ? 0 : l->flow + 1;
		}
		m[i]->data_len = f->bytes;
		m[i]->pkt_len = f->bytes;
		bits += 8.0 * (f->bytes + WIRE_BYTES);
	}
	uint16_t took = rte_eth_tx_burst(port, 0, m, BURST);
	if (took < BURST)
		rte_pktmbuf_free_bulk(m + took, BURST - took);
	if (l->gbit > 0) {
		double hz = (double)rte_get_tsc_hz();

		l->due = RTE_MAX(l->due, now - (uint64_t)(hz / 1e3));
		l->due += (uint64_t)(bits / l->gbit / 1e9 * hz);
	}
}

static void __attribute__((noreturn)) usage(void) {
	fprintf(stderr,
		"usage: weir-live-load EAL-ARGUMENTS -- BYTES[/FLOWS][@GBIT]|imix[@GBIT]|sink DEV "
		"[DEV] (a frame has %d to %d bytes; at most %d flows)\n",
		FRAME_MIN, FRAME_MAX, FLOWS_MAX);
	exit(2);
}

// Parses the load. False: "sink", nothing is to be sent.
static bool parse(const char *text, struct load *l) {
	size_t word = strcspn(text, "/@");
	char *end;

	if (strcmp(text, "sink") == 0)
		return false;
	if (word == strlen("imix") && strncmp(text, "imix", word) == 0) {
		for (size_t i = 0; i < RTE_DIM(imix); i++)
			add_frame(l, imix[i]);
	} else {
		unsigned long value = strtoul(text, &end, 10);

		if (end != text + word || value < FRAME_MIN || value > FRAME_MAX)
			usage();
		add_frame(l, (uint16_t)value);
	}
	text += word;
	if (*text == '/') {
		l->flows = strtoul(text + 1, &end, 10);
		if (end == text + 1 || l->flows < 1 || l->flows > FLOWS_MAX)
			usage();
		text = end;
	}
	if (*text == '\0')
		return true;
	if (*text != '@')
		usage();
	l->gbit = strtod(text + 1, &end);
	if (*end != '\0' || !(l->gbit > 0 && l->gbit <= GBIT_MAX))
		usage();
	return true;
}

int main(int argc, char **argv) {
	struct rte_mempool *in, *out;
	uint16_t port[PORTS_MAX];
	int used = rte_eal_init(argc, argv), ports;
	struct load l = {0};
	bool sends;

	if (used < 0)
		die("DPDK did not start: %s", rte_strerror(rte_errno));
	argc -= used;
	argv += used;
	ports = argc - 2;
	if (ports < 1 || ports > PORTS_MAX)
		usage();
	sends = parse(argv[1], &l);
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	in = rte_pktmbuf_pool_create("in", BUFFERS, BURST, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
	out = rte_pktmbuf_pool_create("out", BUFFERS, BURST, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
	if (in == NULL || out == NULL)
		die("no memory for packets: %s", rte_strerror(rte_errno));
	for (int i = 0; i < ports; i++)
		port[i] = port_open(argv[2 + i], in);
	while (!stop) {
		for (int i = 0; i < ports; i++)
			sink(port[i]);
		if (sends)
			generate(&l, port[0], out);
	}
	for (int i = 0; i < ports; i++) {
		rte_eth_dev_stop(port[i]);
		rte_eth_dev_close(port[i]);
	}
	rte_eal_cleanup();
	return 0;
}
