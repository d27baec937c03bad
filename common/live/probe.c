// SPDX-License-Identifier: BSD-3-Clause
#include "common/live/probe.h"

#include <fcntl.h>
#include <rte_ethdev.h>
#include <stdio.h>
#include <unistd.h>

#define PKT_KERNEL_NS 10000
#define STAT_SIZE 32768 // the lines of CPUs come first in /proc/stat

void watch_probe_init(struct watch_probe *p, const struct live_process *process, uint32_t ports,
	uint64_t pkt_ns) {
	p->watch->cpu = process->lcore[p->index];
	p->watch->several = process->lcores > 1;
	p->watch->ports = ports;
	for (uint32_t i = 0; i < ports; i++) {
		p->watch->port_name[i] = p->port[i]->name;
		if (p->port[i]->dev.iface[0] != '\0')
			pkt_ns = PKT_KERNEL_NS;
	}
	watch_lcore_init(p->lcore, ports, pkt_ns, process->late_ns);
	p->stat_fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
	p->sched_fd = p->status_fd = -1;
}

void watch_probe_fini(struct watch_probe *p) {
	if (p->stat_fd >= 0)
		close(p->stat_fd);
	if (p->sched_fd >= 0)
		close(p->sched_fd);
	if (p->status_fd >= 0)
		close(p->status_fd);
	p->stat_fd = p->sched_fd = p->status_fd = -1;
}

// A file of /proc from its beginning; "" if there is none.
static const char *reread(int fd, char *text, size_t size) {
	ssize_t got = fd < 0 ? 0 : pread(fd, text, size - 1, 0);

	text[got > 0 ? got : 0] = '\0';
	return text;
}

static int open_task(int tid, const char *file) {
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/%s", tid, file);
	return open(path, O_RDONLY | O_CLOEXEC);
}

// The thread is known once it runs.
static void find_thread(struct watch_probe *p) {
	int tid = atomic_load(&p->lcore->tid);

	if (p->sched_fd >= 0 || tid == 0)
		return;
	p->sched_fd = open_task(tid, "schedstat");
	p->status_fd = open_task(tid, "status");
}

// A worst that came after the sample is for the next one.
static void begin_again(_Atomic uint64_t *max, uint64_t sampled) {
	atomic_compare_exchange_strong(max, &sampled, 0);
}

// What a port has lost is its lcore's, if one receives there. Of several, each has what its queue lost; what
// the driver counts for none of them is the port's.
static uint64_t count_missed(struct watch_probe *p, uint32_t i, const struct rte_eth_stats *stats) {
	uint16_t queues = p->port[i]->rx_queues;
	uint64_t *port_missed = &p->sample.port_missed[i], known = 0;

	if (queues <= 1)
		return p->other[i] ? 0 : stats->imissed;
	for (uint16_t q = 0; q < queues && q < RTE_ETHDEV_QUEUE_STAT_CNTRS; q++)
		known += stats->q_errors[q];
	if (!p->other[i])
		*port_missed = time_max(*port_missed, time_since(stats->imissed, known));
	return p->queue[i] >= 0 ? stats->q_errors[p->queue[i]] : 0;
}

void watch_probe_sample(struct watch_probe *p, bool last) {
	struct watch_sample *s = &p->sample;
	struct watch_lcore *l = p->lcore;
	static char text[STAT_SIZE];

	if (p->index == 0)
		clock_watch(p->clock);
	find_thread(p);
	s->clock_offset_ns = p->index == 0 ? p->clock->offset_ns : 0;
	s->waited_ns = watch_parse_waited(reread(p->sched_fd, text, sizeof(text)));
	p->preempted = watch_parse_preempted(reread(p->status_fd, text, sizeof(text)));
	s->steal_ns = watch_parse_steal(reread(p->stat_fd, text, sizeof(text)), p->watch->cpu,
		(uint64_t)sysconf(_SC_CLK_TCK));
	if (!p->watch->begun) {
		p->begun_waited_ns = s->waited_ns;
		p->begun_steal_ns = s->steal_ns;
		p->begun_preempted = p->preempted;
	}
	watch_shown(l, &s->count);
	uint64_t missed = s->count.not_taken, no_buffer = 0;
	for (uint32_t i = 0; i < p->watch->ports; i++) {
		struct rte_eth_stats stats = {0};

		rte_eth_stats_get(p->port[i]->id, &stats);
		missed += count_missed(p, i, &stats);
		no_buffer += p->other[i] ? 0 : stats.rx_nombuf;
		s->waiting_max[i] = atomic_load(&l->waiting_max[i]);
		s->port_up[i] = atomic_load_explicit(&p->port[i]->up, memory_order_relaxed);
	}
	// A driver may fail to say, or begin anew.
	s->missed = time_max(s->missed, missed);
	p->no_buffer = time_max(p->no_buffer, no_buffer);
	s->count.no_buffer += p->no_buffer;
	s->stall_max_ns = atomic_load(&l->stall_max_ns);
	s->stall_at_ns = atomic_load(&l->stall_at_ns);
	s->late_max_ns = atomic_load(&l->late_max_ns);
	// The worst of a stretch are taken with it.
	if (watch_add(p->watch, s, last)) {
		begin_again(&l->stall_max_ns, s->stall_max_ns);
		begin_again(&l->late_max_ns, s->late_max_ns);
		for (uint32_t i = 0; i < p->watch->ports; i++)
			begin_again(&l->waiting_max[i], s->waiting_max[i]);
	}
}

void watch_host_json(const struct watch_probe *p, const char *prefix, struct json *j) {
	const struct watch_lcore *l = p->lcore;
	char name[32];

	snprintf(name, sizeof(name), "%shost", prefix);
	json_object(j, name);
	// As the lcore saw it: turns that took longer than their work.
	json_u64(j, "stalls", l->count.stalls);
	json_u64(j, "stalled_ns", l->count.stalled_ns);
	json_u64(j, "stall_p50_ns", hist_quantile(&l->stall, 0.5));
	json_u64(j, "stall_max_ns", l->stall.max);
	// How late a packet would leave if the lcore had nothing else to do.
	json_u64(j, "floor_p50_ns", watch_floor_ns(l, 0.5));
	json_u64(j, "floor_p99_ns", watch_floor_ns(l, 0.99));
	// As the kernel counted: ready to run while another thread ran; a CPU without its core.
	json_u64(j, "waited_ns", p->sample.waited_ns - p->begun_waited_ns);
	json_u64(j, "steal_ns", p->sample.steal_ns - p->begun_steal_ns);
	json_u64(j, "preempted", p->preempted - p->begun_preempted);
	json_close(j, '}');
}

void watch_probe_json(const struct watch_probe *p, const char *prefix, struct json *j) {
	const struct clock *c = p->clock;
	char name[32];

	watch_host_json(p, prefix, j);
	snprintf(name, sizeof(name), "%sclock", prefix);
	json_object(j, name);
	json_u64(j, "anchors", c->anchors);
	json_u64(j, "anchors_refused", c->refused);
	json_f64(j, "offset_ns", (double)c->offset_ns);
	json_f64(j, "offset_max_ns", (double)c->offset_max_ns);
	json_f64(j, "error_ppm", clock_error_ppm(c));
	json_f64(j, "drift_ppm", clock_drift_ppm(c));
	json_close(j, '}');
}

void watch_stream_json(struct json *j, const char *name, const struct tel *t) {
	if (t->head == 0)
		return;
	json_object(j, name);
	json_u64(j, "records", t->head - tel_lost(t));
	json_u64(j, "lost", tel_lost(t));
	json_close(j, '}');
}
