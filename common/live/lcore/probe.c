// SPDX-License-Identifier: BSD-3-Clause
#include "common/live/lcore/probe.h"

#include "common/base/u64.h"
#include "common/run/live_fields.h"

#include <fcntl.h>
#include <rte_ethdev.h>
#include <stdio.h>
#include <unistd.h>

#define PKT_KERNEL_NS 10000
#define STAT_SIZE 32768 // /proc/stat begins with the lines of the CPUs

void watch_probe_init(struct watch_probe *p, struct watch *watch, struct lcore *lcore,
	const struct live_process *process, uint64_t pkt_ns) {
	p->watch = watch;
	p->lcore = lcore;
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
	p->stat_fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
	p->sched_fd = p->status_fd = -1;
}

void watch_probe_fini(struct watch_probe *p) {
	int *const fds[] = {&p->stat_fd, &p->sched_fd, &p->status_fd};

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

static void find_thread(struct watch_probe *p) {
	int tid = atomic_load(&p->lcore->watch.tid);

	if (p->sched_fd >= 0 || tid == 0)
		return;
	p->sched_fd = open_task(tid, "schedstat");
	p->status_fd = open_task(tid, "status");
}

// Resets a maximum to 0, unless the lcore has raised it since the sample: then it belongs to the
// next sample.
static void reset_worst(_Atomic uint64_t *max, uint64_t sampled) {
	atomic_compare_exchange_strong(max, &sampled, 0);
}

// Assigns frames that a port lost on reception: with one receive queue, to the port's owner; with
// several, each queue's losses to its lcore, and losses that the driver counts for no queue to the
// port.
static uint64_t count_missed(struct watch_probe *p, uint32_t i, const struct rte_eth_stats *stats) {
	const struct lcore *l = p->lcore;
	uint16_t queues = l->port[i]->rx_queues;
	uint64_t *port_missed = &p->sample.port_missed[i], known = 0;

	if (queues <= 1)
		return l->owns_port[i] ? stats->imissed : 0;
	for (uint16_t q = 0; q < queues && q < RTE_ETHDEV_QUEUE_STAT_CNTRS; q++)
		known += stats->q_errors[q];
	if (l->owns_port[i])
		*port_missed = max_u64(*port_missed, time_since(stats->imissed, known));
	return l->rx_queue[i] >= 0 ? stats->q_errors[l->rx_queue[i]] : 0;
}

// Reads the kernel's counters of the lcore's thread and CPU. The thread is known once it runs.
static void sample_kernel(struct watch_probe *p) {
	char cpu[16];

	snprintf(cpu, sizeof(cpu), "\ncpu%u ", p->watch->cpu);
	find_thread(p);
	p->sample.waited_ns = proc_number(p->sched_fd, "", 2);
	p->sample.steal_ns =
		proc_number(p->stat_fd, cpu, 8) * (NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK));
	p->preempted = proc_number(p->status_fd, "\nnonvoluntary_ctxt_switches:", 1);
	if (p->watch->begun)
		return;
	p->begun_waited_ns = p->sample.waited_ns;
	p->begun_steal_ns = p->sample.steal_ns;
	p->begun_preempted = p->preempted;
}

void watch_probe_sample(struct watch_probe *p, bool last) {
	struct watch_lcore *w = &p->lcore->watch;
	struct watch_sample *s = &p->sample;

	if (p->lcore->index == 0) {
		clock_watch(&p->lcore->clock);
		s->clock_offset_ns = p->lcore->clock.offset_ns;
	}
	sample_kernel(p);
	watch_shown(w, &s->count);
	uint64_t missed = s->count.not_taken, no_buffer = 0;
	for (uint32_t i = 0; i < p->watch->ports; i++) {
		struct rte_eth_stats stats;

		port_stats(p->lcore->port[i], &stats);
		missed += count_missed(p, i, &stats);
		no_buffer += p->lcore->owns_port[i] ? stats.rx_nombuf : 0;
		s->waiting_max[i] = atomic_load(&w->waiting_max[i]);
		s->port_up[i] = atomic_load_explicit(&p->lcore->port[i]->up, memory_order_relaxed);
	}
	// A driver's call may fail, or its counters restart at 0.
	s->missed = max_u64(s->missed, missed);
	p->no_buffer = max_u64(p->no_buffer, no_buffer);
	s->count.no_buffer += p->no_buffer;
	s->stall_max_ns = atomic_load(&w->stall_max_ns);
	s->stall_at_ns = atomic_load(&w->stall_at_ns);
	s->late_max_ns = atomic_load(&w->late_max_ns);
	// The maxima belong to this sample: reset them for the next.
	if (watch_add(p->watch, s, last)) {
		reset_worst(&w->stall_max_ns, s->stall_max_ns);
		reset_worst(&w->late_max_ns, s->late_max_ns);
		for (uint32_t i = 0; i < p->watch->ports; i++)
			reset_worst(&w->waiting_max[i], s->waiting_max[i]);
	}
}

void watch_host_json(const struct watch_probe *p, const char *prefix, struct json *j) {
	const struct watch_lcore *l = &p->lcore->watch;
	char name[32];

	snprintf(name, sizeof(name), "%shost", prefix);
	json_object(j, name);
	HOST_FIELDS(FIELD_JSON)
	json_close(j, '}');
}

void watch_probe_json(const struct watch_probe *p, const char *prefix, struct json *j) {
	const struct clock *c = &p->lcore->clock;
	char name[32];

	watch_host_json(p, prefix, j);
	snprintf(name, sizeof(name), "%sclock", prefix);
	json_object(j, name);
	CLOCK_FIELDS(FIELD_JSON)
	json_close(j, '}');
}
