// SPDX-License-Identifier: BSD-3-Clause
#include "switch/live/app.h"

#include "common/pcap/writer.h"

#include <errno.h>
#include <math.h>
#include <rte_ethdev.h>
#include <rte_mempool.h>
#include <string.h>

#define STATIONS_MAX 4096
#define CACHE_BUFFERS 1024 // in each lcore's mempool cache

// Buffers needed for rings between lcores and for the caches of all lcores but the first.
static uint64_t lcore_buffers(const struct switch_config *p) {
	uint64_t others = p->process.lcores - 1;

	return others
		* (p->process.lcores * p->process.handover + SWITCH_MBUF_CACHE + CACHE_BUFFERS);
}

void switch_size(struct live_app *live, struct eal_args *args) {
	struct switch_app *app = switch_app(live);
	int used;

	for (uint32_t i = 0; i < app->config.ports; i++) {
		const struct switch_config_port *p = &app->config.port[i];

		args->dev[args->devs++] = &p->common.dev;
		app->port_buffers +=
			p->rx_queues * port_own_buffers(&p->common.dev, app->config.process.burst);
		app->buffers += p->large_quota;
		if (p->path != NULL || app->config.routed)
			app->small += p->quota;
	}
	app->port_buffers += lcore_buffers(&app->config);
	for (uint32_t i = 0; i < app->paths.count; i++)
		app->port_buffers += app->paths.path[i].source != NULL ? SOURCE_BUFFERS : 0;
	app->buffers += app->port_buffers + SWITCH_MBUF_CACHE;
	args->pool_bytes = pool_bytes(app->buffers, app->config.process.mtu);
	args->other_bytes = arena_bytes(app->small);
	snprintf(args->what, sizeof(args->what), "packets");
	used = switch_config_text(&app->config, app->port_buffers, args->sum, sizeof(args->sum));
	snprintf(args->sum + used, sizeof(args->sum) - (size_t)used,
		"; a larger min_packet or a smaller queue takes less");
}

// Whether a stage depends on a packet's flow, or telemetry records it.
static bool flows_matter(const struct switch_app *app) {
	return app->config.routed || app->live.run.telemetry_level >= 2
		|| app->live.run.telemetry_arrivals || app->live.opt.pcap != NULL
		|| paths_flows(&app->paths);
}

static void prepare(struct switch_app *app, uint32_t index, struct rte_mempool *pool) {
	struct switch_lcore *s = &app->lcore[index];
	struct live_app *live = &app->live;

	live->lcore[index] = &s->lcore;
	lcore_init(&s->lcore, live->lcore, live->lcores, index, live->program->lcore);
	s->lcore.ports = live->ports;
	for (uint32_t i = 0; i < live->ports; i++)
		s->lcore.port[i] = &live->port[i];
	s->all = app->lcore;
	s->config = &app->config;
	s->pool = pool;
	s->burst = (uint32_t)app->config.process.burst;
	s->flows_matter = flows_matter(app);
	s->schedule_ns = NEVER_NS;
}

static int open_arena(struct switch_lcore *s, struct err *err) {
	uint64_t small = 0;

	for (uint32_t i = 0; i < s->lcore.ports; i++)
		small += s->port[i].path != NULL || s->routes != NULL ? s->port[i].quota : 0;
	if (small > 0 && !arena_init(&s->small, small))
		return err_set(err, -ENOMEM, "no memory for %llu small packets",
			(unsigned long long)small);
	return 0;
}

static int open_ports(struct switch_app *app, struct err *err) {
	struct rte_mempool *pool = app->lcore->pool;

	for (uint32_t i = 0; i < app->config.ports; i++) {
		const struct switch_config_port *from = &app->config.port[i];
		struct port *p = &app->live.port[i];
		int rc;

		p->lead_ns = from->common.lead_ns;
		app->lcore[from->lcore].gather.joins |= from->common.offloads != 0;
		p->rx_queues = (uint16_t)from->rx_queues;
		rc = port_open(p, &from->common, pool, &app->live.eal, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

// Partial sums are kept where no frame can get to a port of another kind, or into a capture.
static void keep_sums(struct live_app *live) {
	bool kernels = live->opt.pcap == NULL;

	for (uint32_t i = 0; i < live->ports; i++)
		kernels &= live->port[i].kernel != NULL;
	for (uint32_t i = 0; kernels && i < live->ports; i++)
		kernel_keep_sums(live->port[i].kernel);
}

static int open_fabrics(struct switch_app *app, struct err *err) {
	uint32_t n = app->live.lcores;
	int rc = 0;

	for (uint32_t k = 0; rc == 0 && k < n; k++) {
		struct fabric *f = &app->lcore[k].fabric;

		rc = fabric_init(f, app->config.ports, STATIONS_MAX, FABRIC_AGE_NS, err);
		for (uint32_t i = 0; rc == 0 && i < app->config.fixed_count; i++)
			rc = fabric_add_static(
				f, app->config.fixed[i].mac.b, app->config.fixed[i].port, err);
	}
	for (uint32_t k = 0; rc == 0 && k < n * n; k++) {
		if (k / n != k % n)
			fabric_join(&app->lcore[k / n].fabric, &app->lcore[k % n].fabric);
	}
	return rc;
}

// Paths with captures: one lcore has them all.
static void assign_sources(struct switch_app *app) {
	struct switch_lcore *s = app->lcore;

	for (uint32_t i = 0; i < s->lcore.ports; i++) {
		struct path *path = s->port[i].path;

		if (path == NULL || path->source == NULL)
			continue;
		s->port[i].source = &app->source[path->index];
		s->sources++;
	}
}

int switch_begin(struct live_app *live, struct err *err) {
	int rc = switch_capture_open(live, err);

	return rc < 0 ? rc : switch_sources_start(live, err);
}

int switch_open(struct live_app *live, struct err *err) {
	struct switch_app *app = switch_app(live);
	const struct run_options *opt = &live->opt;
	int rc = opt->pcap != NULL ? pcap_writer_check(opt->pcap, opt->force, err) : 0;

	if (rc < 0)
		return rc;
	bool sourced = false;

	for (uint32_t i = 0; i < app->paths.count; i++)
		sourced |= app->paths.path[i].source != NULL;
	struct rte_mempool *pool =
		pool_create("weir", app->buffers, app->config.process.mtu, sourced, err);
	if (pool == NULL)
		return -ENOMEM;
	live->lcores = app->config.process.lcores;
	live->ports = app->config.ports;
	paths_observers(&app->paths, &live->run.tel);
	for (uint32_t i = 0; i < live->lcores; i++)
		prepare(app, i, pool);
	if ((rc = switch_assign(app->lcore, &app->paths, &app->schedule, err)) < 0)
		return rc;
	for (uint32_t i = 0; i < live->lcores; i++) {
		if ((rc = open_arena(&app->lcore[i], err)) < 0)
			return rc;
	}
	assign_sources(app);
	if ((rc = open_ports(app, err)) < 0)
		return rc;
	keep_sums(live);
	return open_fabrics(app, err);
}

void switch_close(struct live_app *live) {
	struct switch_app *app = switch_app(live);

	if (live->lcores > 0)
		switch_unassign(app->lcore);
	for (uint32_t i = 0; i < live->lcores; i++) {
		fabric_fini(&app->lcore[i].fabric);
		arena_fini(&app->lcore[i].small);
	}
	switch_sources_close(app->source);
	capture_free(app->capture);
	schedule_fini(&app->schedule);
	if (app->paths.count > 0)
		paths_fini(&app->paths);
	switch_config_free(&app->config);
}
