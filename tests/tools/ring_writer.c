// SPDX-License-Identifier: BSD-3-Clause
// Writes N records of a stream as the programs do, for the tests of the Python reader. SIGTERM ends
// it early and in good order; it may be killed at any time.
//
//	ring_writer [OPTION]... --dir DIR
//
// Field k of record i holds (i * 31 + k), as far as its type goes; the first field, ts_ns, holds i.
// tests/tools/analysis/test_ring.py computes the same. Prints the totals as JSON.
#include "common/telemetry/telemetry.h"

#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct options {
	enum tel_stream stream;
	uint64_t records;
	uint64_t rate; // records per second, 0: as fast as it goes
	uint64_t burst; // records per publish
	uint64_t capacity;
	bool layout, bench;
	struct tel_run run;
};

static volatile sig_atomic_t stop;

static void on_signal(int number) {
	stop = 1;
}

static uint64_t clock_ns(void) {
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#define FILL_FIELD_(ctype, dtype, name, unit, meaning)                                             \
	r->name = (ctype)(k == 0 ? i : i * 31 + k);                                                \
	k++;
#define FILL_(stream, STREAM)                                                                      \
	static void fill_##stream(void *slot, uint64_t i) {                                        \
		struct tel_##stream *r = slot;                                                     \
		uint64_t k = 0;                                                                    \
		*r = (struct tel_##stream){0};                                                     \
		TEL_##STREAM(FILL_FIELD_, FILL_FIELD_)                                             \
	}
TEL_STREAMS(FILL_)

#define FILL_ROW_(stream, STREAM) fill_##stream,
static void (*const fill[])(void *slot, uint64_t i) = {TEL_STREAMS(FILL_ROW_)};

// What the compiler made of the records: "stream field offset size" lines.
#define LAYOUT_FIELD_(ctype, dtype, name, unit, meaning)                                           \
	printf("%s %s %zu %zu\n", stream, #name, (size_t)((char *)&r.name - (char *)&r),           \
		sizeof(r.name));
#define LAYOUT_(name, NAME)                                                                        \
	{                                                                                          \
		const char *stream = #name;                                                        \
		struct tel_##name r;                                                               \
		TEL_##NAME(LAYOUT_FIELD_, LAYOUT_FIELD_)                                           \
			printf("%s - %zu 0\n", stream, sizeof(r));                                 \
	}
static void print_layout(void) {
	TEL_STREAMS(LAYOUT_)
}

struct housekeeping {
	struct tel *t;
	_Atomic bool stop;
};

static void *housekeep(void *arg) {
	struct housekeeping *h = arg;

	while (!atomic_load(&h->stop)) {
		if (tel_drain(h->t) == 0)
			nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
	}
	return NULL;
}

static void produce(struct tel *t, const struct options *o) {
	uint64_t start_ns = clock_ns();

	for (uint64_t i = 0; i < o->records && !stop; i++) {
		void *slot = tel_put(t);
		if (slot != NULL)
			fill[o->stream](slot, i);
		if ((i + 1) % o->burst != 0)
			continue;
		tel_publish(t);
		double due_ns = o->rate > 0 ? (double)i * 1e9 / (double)o->rate : 0;
		while (o->rate > 0 && (double)(clock_ns() - start_ns) < due_ns)
			nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
	}
	tel_publish(t);
}

// The producer alone: the drain runs between the timed pieces. The best of the pieces, because the
// machine is shared.
static void bench(struct tel *t, const struct options *o) {
	double best_put_ns = 1e9, best_drain_ns = 1e9;

	for (uint64_t done = 0; done < o->records; done += o->capacity) {
		uint64_t start_ns = clock_ns();
		for (uint64_t i = 0; i < o->capacity; i++) {
			struct tel_packets *p = tel_put(t);
			*p = (struct tel_packets){.ts_ns = i, .pkt_id = (uint32_t)i, .event = 1};
			if ((i + 1) % o->burst == 0)
				tel_publish(t);
		}
		tel_publish(t);
		uint64_t put_ns = clock_ns();
		tel_drain(t);
		double put_each = (double)(put_ns - start_ns) / (double)o->capacity;
		double drain_each = (double)(clock_ns() - put_ns) / (double)o->capacity;
		best_put_ns = put_each < best_put_ns ? put_each : best_put_ns;
		best_drain_ns = drain_each < best_drain_ns ? drain_each : best_drain_ns;
	}
	printf("put and publish %.2f ns/record, drain %.2f ns/record\n", best_put_ns,
		best_drain_ns);
}

static int parse(struct options *o, int argc, char **argv) {
	static const struct option known[] = {{"stream", 1, NULL, 's'}, {"records", 1, NULL, 'n'},
		{"rate", 1, NULL, 'r'}, {"burst", 1, NULL, 'b'}, {"capacity", 1, NULL, 'c'},
		{"dir", 1, NULL, 'd'}, {"virtual", 0, NULL, 'v'}, {"layout", 0, NULL, 'l'},
		{"bench", 0, NULL, 'B'}, {NULL, 0, NULL, 0}};

	for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
		switch (c) {
		case 's':
			while (o->stream < TEL_STREAM_COUNT
				&& strcmp(optarg, tel_stream_name(o->stream)) != 0)
				o->stream++;
			break;
		case 'n':
			o->records = strtoull(optarg, NULL, 0);
			break;
		case 'r':
			o->rate = strtoull(optarg, NULL, 0);
			break;
		case 'b':
			o->burst = strtoull(optarg, NULL, 0);
			break;
		case 'c':
			o->capacity = strtoull(optarg, NULL, 0);
			break;
		case 'd':
			o->run.dir = optarg;
			break;
		case 'v':
			o->run.virtual_time = true;
			break;
		case 'l':
			o->layout = true;
			break;
		case 'B':
			o->bench = true;
			break;
		default:
			return -1;
		}
	}
	return o->stream < TEL_STREAM_COUNT && o->burst > 0 && optind == argc ? 0 : -1;
}

int main(int argc, char **argv) {
	struct options o = {.records = 1000, .burst = 32, .capacity = 4096};
	struct housekeeping house = {0};
	pthread_t thread;
	struct err err;
	struct tel t;

	o.run = (struct tel_run){.level = 3,
		.seed = 7,
		.config_hash = 0x123456789abcdef0u,
		.tsc_hz = 1000000000,
		.utc_start_ns = 1700000000000000000u,
		.run_id = "ring_writer"};
	if (parse(&o, argc, argv) != 0) {
		fprintf(stderr,
			"usage: ring_writer [--stream NAME] [--records N] [--rate N] "
			"[--burst N] [--capacity N] [--virtual] [--bench] [--layout] "
			"--dir DIR\n");
		return 2;
	}
	if (o.layout) {
		print_layout();
		return 0;
	}
	if (tel_open(&t, o.stream, &o.run, "", o.capacity, &err) != 0) {
		fprintf(stderr, "ring_writer: %s\n", err.msg);
		return 1;
	}
	if (o.bench) {
		bench(&t, &o);
		return tel_close(&t, NULL) != 0;
	}
	house.t = &t;
	signal(SIGTERM, on_signal);
	bool live = !o.run.virtual_time;
	if (live && pthread_create(&thread, NULL, housekeep, &house) != 0)
		return 1;
	produce(&t, &o);
	atomic_store(&house.stop, true);
	if (live)
		pthread_join(thread, NULL);
	int rc = tel_close(&t, &err);
	if (rc != 0)
		fprintf(stderr, "ring_writer: %s\n", err.msg);
	printf("{\"produced\": %" PRIu64 ", \"written\": %" PRIu64 ", \"gaps\": %" PRIu64
	       ", \"lost\": %" PRIu64 ", \"digest\": \"%016" PRIx64 "\"}\n",
		t.head, t.written, t.gaps, t.lost, tel_digest(&t));
	return rc != 0;
}
