// SPDX-License-Identifier: BSD-3-Clause
// The lower bound in `weir bench live`: the minimal loop of a switch with a delay.
//
//	receive a burst from each port -> FIFO of the other
//	                               -> transmit packets that were in it for the delay
//
// One lcore, one reading of the TSC per iteration, bursts of 32. No packet is parsed, classified,
// counted or queued at a rate. Packets are weir-switch's: an mbuf, a line of private area, 2 KiB of
// data, from a stack of free ones. The FIFO is a ring of (packet, time), so that the next packets
// can be prefetched; with a delay each has left the cache when it is due.
//
// Ports such as net_null give packets as fast as they are polled. If packets were held for a fixed
// time, a short pause in transmission would return as a burst after each delay, and the order of
// the mbufs would be lost:
// that costs 50 % more. So the warm-up finds how many packets are in flight at the rate the loop
// reaches; then that many are held, and the mean delay is measured.
//
// Prints the processor time per packet as JSON.
#include <errno.h>
#include <inttypes.h>
#include <rte_cycles.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BURST 32
#define MORE 2 // packets that an iteration may transmit above a burst, to shorten a FIFO
#define AHEAD 24 // packets prefetched before they leave
#define ITERATIONS 256 // between checks of the end
#define DESCRIPTORS 1024
#define POOL_CACHE 512
#define SLACK 4096 // packets that are not in a FIFO: bursts, caches, descriptors
#define PRIVATE_BYTES 64
#define RATE_MAX_MPPS 60 // of both ports together; sizes the pool
#define ROUNDS 4 // of the warm-up
#define ROUND_S 50e-3

struct slot {
	struct rte_mbuf *m;
	uint64_t rx_tsc;
};

struct fifo {
	struct slot *ring;
	uint64_t mask, head, tail;
};

struct port {
	uint16_t id;
	struct fifo out; // packets that wait to leave by this port
	uint64_t sent, waited; // packets, and the sum of their ticks in the FIFO
};

struct floor {
	struct port port[2];
	uint64_t keep; // packets in each FIFO
	uint64_t refused; // packets that a port did not take, freed
};

static void __attribute__((noreturn, format(printf, 1, 2))) die(const char *format, ...) {
	va_list args;

	fputs("weir-live-floor: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

static inline void receive(const struct port *in, struct fifo *q, uint64_t now) {
	struct rte_mbuf *m[BURST];
	uint16_t n = rte_eth_rx_burst(in->id, 0, m, BURST);

	for (uint16_t i = 0; i < n; i++)
		q->ring[q->tail++ & q->mask] = (struct slot){m[i], now};
}

static inline void transmit(struct floor *f, struct port *out, uint64_t now) {
	struct fifo *q = &out->out;
	struct rte_mbuf *m[BURST + MORE];
	uint16_t n = 0, took;

	while (n < BURST + MORE && q->tail - q->head > f->keep) {
		const struct rte_mbuf *next = q->ring[(q->head + AHEAD) & q->mask].m;
		const struct slot *first = &q->ring[q->head++ & q->mask];

		// The driver, or the code that frees the packet, reads and writes both lines.
		__builtin_prefetch(next, 1);
		__builtin_prefetch((const char *)next + RTE_CACHE_LINE_MIN_SIZE, 1);
		out->waited += now - first->rx_tsc;
		m[n++] = first->m;
	}
	if (n == 0)
		return;
	took = rte_eth_tx_burst(out->id, 0, m, n);
	out->sent += took;
	if (took < n) {
		f->refused += n - took;
		rte_pktmbuf_free_bulk(m + took, n - took);
	}
}

static inline void iterate(struct floor *f, uint64_t now) {
	receive(&f->port[0], &f->port[1].out, now);
	receive(&f->port[1], &f->port[0].out, now);
	transmit(f, &f->port[0], now);
	transmit(f, &f->port[1], now);
}

static double clock_s(clockid_t clock) {
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

// Runs for `seconds` of processor time, because a shared machine's wall-clock time includes other
// programs. Returns the time used.
static double run(struct floor *f, double seconds) {
	double begin_s = clock_s(CLOCK_THREAD_CPUTIME_ID), took_s;

	for (int i = 0; i < 2; i++)
		f->port[i].sent = f->port[i].waited = 0;
	f->refused = 0;
	do {
		for (int i = 0; i < ITERATIONS; i++)
			iterate(f, rte_rdtsc());
		took_s = clock_s(CLOCK_THREAD_CPUTIME_ID) - begin_s;
	} while (took_s < seconds);
	return took_s;
}

// Finds the number of packets in flight for the delay at the loop's rate, which itself depends on
// that number.
static void warm_up(struct floor *f, double delay_s, uint64_t room) {
	for (int i = 0; i < ROUNDS; i++) {
		double took_s = run(f, ROUND_S);
		double each = (double)(f->port[0].sent + f->port[1].sent) / took_s * delay_s / 2;

		if (i > 0) // in the first round no packet has left yet
			f->keep = each < (double)room ? (uint64_t)each : room;
	}
}

static void fifo_init(struct fifo *q, uint64_t packets) {
	q->mask = 1;
	while (q->mask < packets + AHEAD)
		q->mask *= 2;
	q->ring = rte_zmalloc("fifo", q->mask-- * sizeof(q->ring[0]), RTE_CACHE_LINE_SIZE);
	if (q->ring == NULL)
		die("no memory for a FIFO of %" PRIu64 " packets", packets);
}

static void port_init(struct port *p, const char *dev, struct rte_mempool *pool) {
	struct rte_eth_conf conf = {.rxmode = {.mq_mode = RTE_ETH_MQ_RX_NONE}};
	uint16_t rx = DESCRIPTORS, tx = DESCRIPTORS;
	char name[64];
	int rc;

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(dev, ","), dev);
	if (rte_dev_probe(dev) < 0 || rte_eth_dev_get_port_by_name(name, &p->id) < 0)
		die("'%s' did not start", dev);
	if ((rc = rte_eth_dev_configure(p->id, 1, 1, &conf)) < 0
		|| (rc = rte_eth_dev_adjust_nb_rx_tx_desc(p->id, &rx, &tx)) < 0
		|| (rc = rte_eth_rx_queue_setup(p->id, 0, rx, rte_socket_id(), NULL, pool)) < 0
		|| (rc = rte_eth_tx_queue_setup(p->id, 0, tx, rte_socket_id(), NULL)) < 0
		|| (rc = rte_eth_dev_start(p->id)) < 0)
		die("'%s' did not start: %s", dev, rte_strerror(-rc));
	rte_eth_promiscuous_enable(p->id);
}

static bool parse(const char *text, double min, double max, double *value) {
	char *end;

	errno = 0;
	*value = strtod(text, &end);
	return errno == 0 && end != text && *end == '\0' && *value >= min && *value <= max;
}

static void measure(struct floor *f, double seconds) {
	double hz = (double)rte_get_tsc_hz(), wall_s = clock_s(CLOCK_MONOTONIC);
	double cpu_s = run(f, seconds), pkts = (double)(f->port[0].sent + f->port[1].sent);
	double waited = (double)(f->port[0].waited + f->port[1].waited);

	wall_s = clock_s(CLOCK_MONOTONIC) - wall_s;
	if (pkts == 0)
		die("no packet was received");
	printf("{\"program\": \"weir-live-floor\", \"in_flight\": %" PRIu64
	       ", \"delay_mean_ms\": %.4f, \"wall_s\": %.6f, \"cpu_s\": %.6f, \"pkts\": %.0f, "
	       "\"refused\": %" PRIu64 ", \"mpps\": %.4f, \"ns_per_pkt\": %.4f, "
	       "\"cycles_per_pkt\": %.3f, \"tsc_hz\": %.0f}\n",
		2 * f->keep, waited / pkts / hz * 1e3, wall_s, cpu_s, pkts, f->refused,
		pkts / cpu_s / 1e6, cpu_s * 1e9 / pkts, cpu_s * hz / pkts, hz);
}

int main(int argc, char **argv) {
	static struct floor f;
	double delay_ms, seconds;
	int used = rte_eal_init(argc, argv);

	if (used < 0)
		die("DPDK did not start: %s", rte_strerror(rte_errno));
	argc -= used;
	argv += used;
	if (argc != 5 || !parse(argv[3], 0, 1000, &delay_ms)
		|| !parse(argv[4], 0.01, 3600, &seconds)) {
		fprintf(stderr,
			"usage: weir-live-floor EAL-ARGUMENTS -- DEV DEV DELAY-MS SECONDS "
			"(such as --in-memory --no-pci -l 1 -- net_null0 net_null1 10 5)\n");
		return 2;
	}
	uint64_t room = (uint64_t)(delay_ms * 1e3 * RATE_MAX_MPPS), all = room + SLACK;
	f.keep = room / 4;
	struct rte_mempool *pool =
		rte_pktmbuf_pool_create_by_ops("floor", (unsigned)all, POOL_CACHE, PRIVATE_BYTES,
			RTE_MBUF_DEFAULT_BUF_SIZE, (int)rte_socket_id(), "stack");
	if (pool == NULL)
		die("a pool of %" PRIu64 " packets: %s", all, rte_strerror(rte_errno));
	for (int i = 0; i < 2; i++) {
		fifo_init(&f.port[i].out, all);
		port_init(&f.port[i], argv[1 + i], pool);
	}
	warm_up(&f, delay_ms * 1e-3, room / 2);
	measure(&f, seconds);
	for (int i = 0; i < 2; i++) {
		rte_eth_dev_stop(f.port[i].id);
		rte_eth_dev_close(f.port[i].id);
	}
	rte_eal_cleanup();
	return 0;
}
