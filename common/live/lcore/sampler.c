// SPDX-License-Identifier: BSD-3-Clause
#include "common/live/lcore/sampler.h"

#include "common/base/u64.h"
#include "common/run/live_fields.h"

#include <fcntl.h>
#include <rte_ethdev.h>
#include <stdio.h>
#include <unistd.h>

#define PKT_KERNEL_NS 10000
#define STAT_SIZE 32768 // /proc/stat begins with the lines of the CPUs

void watch_sampler_init(struct watch_sampler *s, struct watch *watch, struct lcore *lcore,
	const struct live_process *process, uint64_t pkt_ns) {
	s->watch = watch;
	s->lcore = lcore;
	watch->cpu = process->lcore[lcore->index];
	watch->several = process->lcores > 1;
	watch->ports = lcore->ports;
	for (uint32_t i = 0; i < lcore->ports; i++) {
		watch->port_name[i] = lcore->port[i]->name;
		watch->port_peer[i] = lcore->port[i]->peer;
		if (lcore->port[i]->dev.iface[0] != '\0')
			pkt_ns = PKT_KERNEL_NS;
	}
	watch_lcore_init(&lcore->watch, lcore->ports, pkt_ns, process->late_ns);
	s->stat_fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
	s->sched_fd = s->status_fd = -1;
}

void watch_sampler_fini(struct watch_sampler *s) {
	int *const fds[] = {&s->stat_fd, &s->sched_fd, &s->status_fd};

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
}

// The i-th number after `name` in a file of /proc, read anew (watch_number); 0: there is none.
static uint64_t proc_number(int fd, const char *name, uint32_t i) {
	static char text[STAT_SIZE];
	ssize_t got = fd < 0 ? 0 : pread(fd, text, sizeof(text) - 1, 0);

	text[got > 0 ? got : 0] = '\0';
	return watch_number(text, name, i);
}

static int open_task(int tid, const char *file) {
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/%s", tid, file);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static void find_thread(struct watch_sampler *s) {
	int tid = atomic_load(&s->lcore->watch.tid);

	if (s->sched_fd >= 0 || tid == 0)
		return;
	s->sched_fd = open_task(tid, "schedstat");
	s->status_fd = open_task(tid, "status");
}

// Resets a maximum to 0, unless the lcore has raised it since the sample: then it belongs to the
// next sample.
static void reset_worst(_Atomic uint64_t *max, uint64_t sampled) {
	atomic_compare_exchange_strong(max, &sampled, 0);
}

// Assigns frames that a port lost on reception: with one receive queue, to the port's owner; with
// several, each queue's losses to its lcore, and losses that the driver counts for no queue to the
// port.
static uint64_t count_missed(
	struct watch_sampler *s, uint32_t i, const struct rte_eth_stats *stats) {
	const struct lcore *l = s->lcore;
	uint16_t queues = l->port[i]->rx_queues;
	uint64_t *port_missed = &s->sample.port_missed[i], known = 0;

	if (queues <= 1)
		return l->owns_port[i] ? stats->imissed : 0;
	for (uint16_t q = 0; q < queues && q < RTE_ETHDEV_QUEUE_STAT_CNTRS; q++)
		known += stats->q_errors[q];
	if (l->owns_port[i])
		*port_missed = max_u64(*port_missed, time_since(stats->imissed, known));
	return l->rx_queue[i] >= 0 ? stats->q_errors[l->rx_queue[i]] : 0;
}

// Reads the kernel's counters of the lcore's thread and CPU. The thread is known once it runs.
static void sample_kernel(struct watch_sampler *s) {
	char cpu[16];

	snprintf(cpu, sizeof(cpu), "\ncpu%u ", s->watch->cpu);
	find_thread(s);
	s->sample.waited_ns = proc_number(s->sched_fd, "", 2);
	s->sample.steal_ns =
		proc_number(s->stat_fd, cpu, 8) * (NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
	s->preempted = proc_number(s->status_fd, "\nnonvoluntary_ctxt_switches:", 1);
	if (s->watch->begun)
		return;
	s->begun_waited_ns = s->sample.waited_ns;
	s->begun_steal_ns = s->sample.steal_ns;
	s->begun_preempted = s->preempted;
}

void watch_sampler_sample(struct watch_sampler *s, bool last) {
	struct watch_lcore *w = &s->lcore->watch;
	struct watch_sample *now = &s->sample;

	if (s->lcore->index == 0) {
		clock_watch(&s->lcore->clock);
		now->clock_offset_ns = s->lcore->clock.offset_ns;
	}
	sample_kernel(s);
	watch_shown(w, &now->count);
	uint64_t missed = now->count.not_taken, no_buffer = 0;
	for (uint32_t i = 0; i < s->watch->ports; i++) {
		struct rte_eth_stats stats;

		port_stats(s->lcore->port[i], &stats);
		missed += count_missed(s, i, &stats);
		no_buffer += s->lcore->owns_port[i] ? stats.rx_nombuf : 0;
		now->waiting_max[i] = atomic_load(&w->waiting_max[i]);
		now->port_up[i] =
			atomic_load_explicit(&s->lcore->port[i]->up, memory_order_relaxed);
	}
	// A driver's call may fail, or its counters restart at 0.
	now->missed = max_u64(now->missed, missed);
	s->no_buffer = max_u64(s->no_buffer, no_buffer);
	now->count.no_buffer += s->no_buffer;
	now->stall_max_ns = atomic_load(&w->stall_max_ns);
	now->stall_at_ns = atomic_load(&w->stall_at_ns);
	now->late_max_ns = atomic_load(&w->late_max_ns);
	// The maxima belong to this sample: reset them for the next.
	if (watch_add(s->watch, now, last)) {
		reset_worst(&w->stall_max_ns, now->stall_max_ns);
		reset_worst(&w->late_max_ns, now->late_max_ns);
		for (uint32_t i = 0; i < s->watch->ports; i++)
			reset_worst(&w->waiting_max[i], now->waiting_max[i]);
	}
}

void watch_host_json(const struct watch_sampler *s, const char *prefix, struct json *j) {
	const struct watch_lcore *l = &s->lcore->watch;
	char name[32];

	snprintf(name, sizeof(name), "%shost", prefix);
	json_object(j, name);
	HOST_FIELDS(FIELD_JSON)
	json_close(j, '}');
}

void watch_sampler_json(const struct watch_sampler *s, const char *prefix, struct json *j) {
	const struct clock *c = &s->lcore->clock;
	char name[32];

	watch_host_json(s, prefix, j);
	snprintf(name, sizeof(name), "%sclock", prefix);
	json_object(j, name);
	CLOCK_FIELDS(FIELD_JSON)
	json_close(j, '}');
}
