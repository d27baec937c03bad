// SPDX-License-Identifier: BSD-3-Clause
// The lower bound in `weir bench corescale`: moves the same packets as a simulation of the network
// through the same queues, does nothing else, and measures the time.
//
//	sender's line -> FIFO of 300 ms, served at 10 Gbit/s -> FIFO of 10 ms -> receiver's line
//	  -> FIFO of 10 ms -> sender's line ...
//
// Per data packet: a 64-byte packet is taken from a pool, written, queued, given its departure
// time, delayed by 10 ms, taken off, read, its receiver's cache line changed, and freed. Every
// second packet of a flow makes an ACK, a packet too, which waits 10 ms, changes its sender's cache
// line and lets two packets follow. That keeps the queue at its limit, and flows interleave by
// self-clocking. There is no transport, no timer, no loss and no telemetry: the additional cost of
// a simulator is its own work.
//
// It is optimised: time advances in windows as in weir-sim, so that each array is read while it is
// in the cache; the next packets and their flows' lines are prefetched; the packet freed last is
// used next; 2 MB pages.
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define FRAME_BYTES 1518 // 1448 of payload, headers, FCS
#define WIRE_BYTES 1538 // with preamble and gap
#define GBIT 10 // unless said
#define GBIT_MAX 400
#define BUFFER_BYTES_PER_GBIT UINT64_C(37500000)
#define DELAY_PS UINT64_C(10000000000) // each way
#define WINDOW_PS UINT64_C(250000000)
#define BATCH 16
#define AHEAD 24 // packets prefetched before they are popped

struct packet {
	struct packet *next;
	uint64_t time_ps; // departure or arrival
	uint32_t flow, size;
	uint64_t seq, echo_ps;
	uint64_t rest[3];
};
_Static_assert(sizeof(struct packet) == 64, "one cache line");

// A ring of pointers, so that later packets can be prefetched before the first has arrived in the
// cache.
struct fifo {
	struct packet **ring;
	uint64_t mask, head, tail;
};

// Hot state of one end of a flow.
struct end {
	uint64_t next, bytes, last_ps, packets;
	uint32_t pending, unused[7];
};
_Static_assert(sizeof(struct end) == 64, "one cache line");

struct floor {
	struct packet *free;
	struct fifo queue, wire, acks;
	struct end *sender, *receiver;
	uint64_t tx_ps; // of a packet
	uint64_t link_ps; // the last departure
	uint64_t sum; // of the data read, so that the compiler keeps the reads
};

static void *huge(size_t bytes) {
	const size_t page = 2u << 20;
	bytes = (bytes + page - 1) / page * page;
	void *p = aligned_alloc(page, bytes);

	if (p == NULL) {
		fprintf(stderr, "weir-floor: no memory for %zu bytes\n", bytes);
		exit(1);
	}
	madvise(p, bytes, MADV_HUGEPAGE);
	memset(p, 0, bytes);
	return p;
}

static inline struct packet *take(struct floor *f) {
	struct packet *p = f->free;

	f->free = p->next;
	__builtin_prefetch(f->free, 1);
	return p;
}

static inline void give(struct floor *f, struct packet *p) {
	p->next = f->free;
	f->free = p;
}

static inline void push(struct fifo *q, struct packet *p) {
	q->ring[q->tail++ & q->mask] = p;
}

static inline struct packet *pop(struct fifo *q) {
	__builtin_prefetch(q->ring[(q->head + AHEAD) & q->mask], 1);
	return q->ring[q->head++ & q->mask];
}

static void fifo_init(struct fifo *q, uint64_t packets) {
	q->mask = 1;
	while (q->mask < packets + AHEAD)
		q->mask *= 2;
	q->ring = huge(q->mask-- * sizeof(q->ring[0]));
}

static void send_data(struct floor *f, uint32_t flow, uint64_t now_ps) {
	struct end *s = &f->sender[flow];
	struct packet *p = take(f);

	*p = (struct packet){
		.time_ps = now_ps,
		.flow = flow,
		.size = FRAME_BYTES,
		.seq = s->next,
		.echo_ps = now_ps,
		.rest = {s->packets, s->bytes, s->last_ps},
	};
	s->next += 1448;
	s->packets++;
	push(&f->queue, p);
}

static void send_ack(struct floor *f, const struct packet *data, struct end *r) {
	struct packet *p = take(f);

	r->pending = 0;
	*p = (struct packet){
		.time_ps = data->time_ps + DELAY_PS,
		.flow = data->flow,
		.size = 84,
		.seq = r->next,
		.echo_ps = data->echo_ps,
		.rest = {r->packets, r->bytes, r->last_ps},
	};
	push(&f->acks, p);
}

static void receive_data(struct floor *f, const struct packet *p) {
	struct end *r = &f->receiver[p->flow];

	f->sum += p->rest[0] + p->rest[1] + p->rest[2];
	r->next = p->seq + 1448;
	r->bytes += p->size;
	r->packets++;
	r->last_ps = p->time_ps;
	if (++r->pending == 2)
		send_ack(f, p, r);
}

static void receive_ack(struct floor *f, const struct packet *p) {
	struct end *s = &f->sender[p->flow];

	f->sum += p->rest[0] + p->rest[1] + p->rest[2];
	s->bytes = p->seq;
	s->last_ps = p->time_ps - p->echo_ps;
	send_data(f, p->flow, p->time_ps);
	send_data(f, p->flow, p->time_ps);
}

static inline bool due(const struct fifo *q, uint64_t end_ps) {
	return q->head != q->tail && q->ring[q->head & q->mask]->time_ps < end_ps;
}

// Moves the packets that the link sends before `end_ps` to the wire. Returns their number.
static uint64_t run_link(struct floor *f, uint64_t end_ps) {
	uint64_t done = 0;

	for (; f->queue.head != f->queue.tail && f->link_ps + f->tx_ps < end_ps; done++) {
		struct packet *p = pop(&f->queue);

		f->link_ps += f->tx_ps;
		p->time_ps = f->link_ps + DELAY_PS;
		push(&f->wire, p);
	}
	return done;
}

// Delivers the packets that reach the receivers before `end_ps`.
static void run_wire(struct floor *f, uint64_t end_ps) {
	struct packet *batch[BATCH];
	uint32_t n;

	do {
		for (n = 0; n < BATCH && due(&f->wire, end_ps); n++) {
			batch[n] = pop(&f->wire);
			__builtin_prefetch(&f->receiver[batch[n]->flow], 1);
		}
		for (uint32_t i = 0; i < n; i++) {
			receive_data(f, batch[i]);
			give(f, batch[i]);
		}
	} while (n == BATCH);
}

// Delivers the ACKs that arrive before `end_ps`.
static void run_acks(struct floor *f, uint64_t end_ps) {
	struct packet *batch[BATCH];
	uint32_t n;

	do {
		for (n = 0; n < BATCH && due(&f->acks, end_ps); n++) {
			batch[n] = pop(&f->acks);
			__builtin_prefetch(&f->sender[batch[n]->flow], 1);
		}
		for (uint32_t i = 0; i < n; i++) {
			receive_ack(f, batch[i]);
			give(f, batch[i]);
		}
	} while (n == BATCH);
}

static uint64_t run(struct floor *f, uint64_t packets, uint64_t *now_ps) {
	uint64_t done = 0;

	while (done < packets) {
		*now_ps += WINDOW_PS;
		done += run_link(f, *now_ps);
		run_wire(f, *now_ps);
		run_acks(f, *now_ps);
	}
	return done;
}

// Fills buffer and path with equally many packets of each flow, in random order.
static void fill(struct floor *f, uint32_t flows, uint64_t buffer_bytes) {
	// Half of the flows also have a packet at the receiver whose ACK waits for the next packet.
	uint64_t sent = buffer_bytes / FRAME_BYTES + 2 * DELAY_PS / f->tx_ps + flows / 2;
	uint64_t packets = sent + BATCH, rng = 1;
	struct packet *p = huge(packets * sizeof(*p));

	fifo_init(&f->queue, packets);
	fifo_init(&f->wire, packets);
	fifo_init(&f->acks, packets);
	f->sender = huge(flows * sizeof(*f->sender));
	f->receiver = huge(flows * sizeof(*f->receiver));
	for (uint64_t i = packets; i-- > 0;)
		give(f, &p[i]);
	for (uint64_t i = 0; i < sent; i++) {
		rng = rng * UINT64_C(6364136223846793005) + 1442695040888963407;
		send_data(f, (uint32_t)((rng >> 32) * flows >> 32), 0);
	}
}

static double clock_s(clockid_t clock) {
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool parse(const char *text, uint64_t min, uint64_t max, uint64_t *value) {
	char *end;

	errno = 0;
	*value = strtoull(text, &end, 10);
	return errno == 0 && end != text && *end == '\0' && *value >= min && *value <= max;
}

int main(int argc, char **argv) {
	static struct floor f;
	uint64_t flows, packets, gbit = GBIT, now_ps = 0;

	if (argc < 3 || argc > 4 || !parse(argv[1], 1, 1000000, &flows)
		|| !parse(argv[2], 1, UINT64_C(1000000000000), &packets)
		|| (argc == 4 && !parse(argv[3], 1, GBIT_MAX, &gbit))) {
		fprintf(stderr,
			"usage: weir-floor FLOWS PACKETS [GBIT] (1 to 1000000, 1 to 10^12, "
			"1 to %d)\n",
			GBIT_MAX);
		return 2;
	}
	const uint64_t buffer_bytes = gbit * BUFFER_BYTES_PER_GBIT;

	f.tx_ps = WIRE_BYTES * UINT64_C(8000) / gbit;
	fill(&f, (uint32_t)flows, buffer_bytes);
	run(&f, 4 * (buffer_bytes / FRAME_BYTES), &now_ps); // until the order is self-clocked
	uint64_t begin_ps = now_ps;
	double wall_s = clock_s(CLOCK_MONOTONIC), cpu_s = clock_s(CLOCK_PROCESS_CPUTIME_ID);
	uint64_t done = run(&f, packets, &now_ps);
	wall_s = clock_s(CLOCK_MONOTONIC) - wall_s;
	cpu_s = clock_s(CLOCK_PROCESS_CPUTIME_ID) - cpu_s;
	printf("{\"program\": \"weir-floor\", \"flows\": %" PRIu64 ", \"data_segs\": %" PRIu64
	       ", \"wall_s\": %.6f, \"cpu_s\": %.6f, \"virtual_s\": %.6f, "
	       "\"queue_fill\": %.4f, \"dropped\": 0, "
	       "\"acks\": %" PRIu64 ", \"sum\": %" PRIu64 "}\n",
		flows, done, wall_s, cpu_s, (double)(now_ps - begin_ps) / 1e12,
		(double)((f.queue.tail - f.queue.head) * FRAME_BYTES) / (double)buffer_bytes,
		f.acks.tail - f.acks.head, f.sum);
	return 0;
}
