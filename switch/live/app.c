// SPDX-License-Identifier: BSD-3-Clause
#include "switch/live/app.h"

#include <errno.h>
#include <math.h>
#include <rte_ethdev.h>
#include <rte_mempool.h>
#include <string.h>

#define STATIONS_MAX 4096
#define CACHE_BUFFERS 1024 // of the pool, in a lcore's own cache

// Frames in rings between lcores, and what each lcore but the first keeps for itself.
static uint64_t lcore_buffers(const struct plan *p) {
	uint64_t others = p->process.lcores - 1;

	return others * (p->process.lcores * p->handover + SWITCH_FRESH_MAX + CACHE_BUFFERS);
}

int switch_size(struct live_app *live, struct eal_args *args, struct err *err) {
	struct switch_app *app = switch_app(live);
	char sum[256];
	struct err why;

	for (uint32_t i = 0; i < app->plan.ports; i++) {
		const struct plan_port *p = &app->plan.port[i];

		args->dev[args->devs++] = &p->dev;
		app->port_buffers +=
			p->rx_queues * port_own_buffers(&p->dev, app->plan.process.burst);
		app->buffers += p->large;
		if (p->path != NULL)
			app->small += p->share;
	}
	app->port_buffers += lcore_buffers(&app->plan);
	app->buffers += app->port_buffers + SWITCH_FRESH_MAX;
	args->memory_bytes = pool_bytes(app->buffers);
	if (app->plan.process.force
		|| live_memory_check(args->memory_bytes + arena_bytes(app->small), "packets", &why)
			== 0)
		return 0;
	plan_text(&app->plan, app->port_buffers, sum, sizeof(sum));
	return err_set(err, -ENOMEM, "%s (%s; a larger min_packet or a smaller queue takes less)",
		why.msg, sum);
}

// Does a delay depend on whose packet it is, or does the telemetry say so?
static bool flows_matter(const struct switch_app *app) {
	bool any = app->live.run.telemetry_level >= 2 || app->live.run.telemetry_arrivals;

	for (uint32_t i = 0; i < app->paths.class_count; i++)
		any |= app->paths.class_extra_ns[i] > 0;
	return any;
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
	s->plan = &app->plan;
	s->pool = pool;
	s->burst = (uint32_t)app->plan.process.burst;
	s->patience_ns = app->plan.process.patience_ns;
	s->flows_matter = flows_matter(app);
	s->schedule_ns = NEVER_NS;
}

static int open_arena(struct switch_lcore *s, struct err *err) {
	uint64_t small = 0;

	for (uint32_t i = 0; i < s->lcore.ports; i++)
		small += s->port[i].path != NULL ? s->port[i].share : 0;
	if (small > 0 && !arena_init(&s->small, small))
		return err_set(err, -ENOMEM, "no memory for %llu small packets",
			(unsigned long long)small);
	return 0;
}

static int open_ports(struct switch_app *app, struct err *err) {
	struct rte_mempool *pool = app->lcore->pool;

	for (uint32_t i = 0; i < app->plan.ports; i++) {
		const struct plan_port *from = &app->plan.port[i];
		struct port *p = &app->live.port[i];
		int rc;

		p->lead_ns = from->lead_ns;
		p->rx_queues = (uint16_t)from->rx_queues;
		rc = port_open(p, &from->dev, from->name, pool, &app->live.eal, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int open_fabrics(struct switch_app *app, struct err *err) {
	uint32_t n = app->live.lcores;
	int rc = 0;

	for (uint32_t k = 0; rc == 0 && k < n; k++) {
		struct fabric *f = &app->lcore[k].fabric;

		rc = fabric_init(f, app->plan.ports, STATIONS_MAX, FABRIC_AGE_NS, err);
		for (uint32_t i = 0; rc == 0 && i < app->plan.fixed_count; i++)
			rc = fabric_add_static(
				f, app->plan.fixed[i].mac.b, app->plan.fixed[i].port, err);
	}
	for (uint32_t k = 0; rc == 0 && k < n * n; k++) {
		if (k / n != k % n)
			fabric_join(&app->lcore[k / n].fabric, &app->lcore[k % n].fabric);
	}
	return rc;
}

int switch_open(struct live_app *live, struct err *err) {
	struct switch_app *app = switch_app(live);
	struct rte_mempool *pool = pool_create("weir", app->buffers, err);
	int rc;

	if (pool == NULL)
		return -ENOMEM;
	live->lcores = app->plan.process.lcores;
	live->ports = app->plan.ports;
	paths_observers(&live->run.tel);
	for (uint32_t i = 0; i < live->lcores; i++)
		prepare(app, i, pool);
	if ((rc = switch_share(app->lcore, &app->paths, &app->schedule, err)) < 0)
		return rc;
	for (uint32_t i = 0; i < live->lcores; i++) {
		if ((rc = open_arena(&app->lcore[i], err)) < 0)
			return rc;
	}
	if ((rc = open_ports(app, err)) < 0)
		return rc;
	return open_fabrics(app, err);
}

void switch_close(struct live_app *live) {
	struct switch_app *app = switch_app(live);

	if (live->lcores > 0)
		switch_unshare(app->lcore);
	for (uint32_t i = 0; i < live->lcores; i++) {
		fabric_fini(&app->lcore[i].fabric);
		arena_fini(&app->lcore[i].small);
	}
}
