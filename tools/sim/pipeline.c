// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/pipeline.h"

#include "common/base/mem.h"
#include "tools/sim/pipe.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#define LAST_NS (NEVER_NS - 1)
#define KEPT_TRIALS 50 // what is faster is kept for the time of so many trials at least
#define KEPT_MAX NS_PER_S // longer only for that
#define IDLE_WAITS 50 // more than a busy lane has
static_assert(PIPE_BURST == SIDE_BURST, "a host makes as many packets before it gives them");

// What one thread runs.
struct lane {
	struct pipe pipe; // to the paths, from the other lane's host
	struct topology *topology;
	enum flows_direction direction; // of its paths
	struct node *enter; // the path, or the lists before several
	struct side *side;
	struct lane *other;
	struct pools *pools;
	struct pool pool[2]; // of the packets in the paths
	uint64_t delay_ns; // of the paths, the least until the next boundary
	uint64_t now_ns; // all before is done on the host
	_Alignas(64) _Atomic uint64_t done_ns; // the same, and what it sent is in its pipe
	_Alignas(64) _Atomic uint64_t rest_ns; // the boundary up to which all is done
	// Said while it waits: having taken `seen` packets it does nothing by itself before
	// idle_ns.
	_Atomic uint64_t idle_ns, seen;
};

enum { CALLER, OTHER, LANES };

// Whether one thread does the work of both, which is faster where little happens between two
// boundaries, or where the other's processor is busy or far away. What is not in use is tried now
// and then.
struct choice {
	bool alone, trial;
	uint64_t since_ns, work; // of this trial, or since the last one
	uint64_t keep_ns; // until the next trial
	uint64_t two_ns; // of all stretches on two
	double cost[2]; // wall-clock time per work of the last time, by `alone`
};

struct pipeline {
	struct lane lane[LANES];
	struct choice choice;
	struct pools pools; // of the other thread
	pthread_t thread;
	uint64_t stretches; // between boundaries
	bool begun;
	_Alignas(64) _Atomic uint64_t boundary_ns;
	_Atomic bool ends;
};

static inline uint64_t load(_Atomic uint64_t *at) {
	return atomic_load_explicit(at, memory_order_acquire);
}

static inline void store(_Atomic uint64_t *at, uint64_t value) {
	atomic_store_explicit(at, value, memory_order_release);
}

// Takes from the pipe to the paths what was sent by last_ns; a path may be further ahead than the
// host. False: there was nothing.
static bool fill_paths(struct lane *l, uint64_t last_ns) {
	struct pkt *pkts[NODE_PASS_MAX];
	uint32_t count, all = 0;

	do {
		count = pipe_ops.take(&l->pipe.node, last_ns, pkts, NODE_PASS_MAX);
		l->enter->ops->give(l->enter, pkts, count);
		all += count;
	} while (count == NODE_PASS_MAX);
	return all > 0;
}

// When a packet comes or the host does something by itself; limit_ns: not before.
static uint64_t next_event_ns(struct lane *l, uint64_t limit_ns) {
	uint64_t event_ns =
		time_min(pipe_next_ns(&l->pipe), topology_part_next_ns(l->topology, l->direction));
	struct node *host = &l->side->node;

	event_ns = time_min(event_ns, limit_ns);
	return time_min(event_ns, host->ops->next_event_ns(host, event_ns));
}

// Runs the host through a window that begins with its next event, as far as it may: what the other
// sends before known_ns is known. False: nothing happened in it.
static bool run_window(struct lane *l, uint64_t known_ns, uint64_t boundary_ns) {
	uint64_t limit_ns = time_min(known_ns + l->delay_ns, boundary_ns);
	const struct node_ops *ops = l->side->node.ops;
	uint64_t event_ns = time_max(next_event_ns(l, limit_ns), l->now_ns);
	struct err err;

	if (limit_ns <= l->now_ns)
		return false;
	l->now_ns = time_min(event_ns + ops->window_max_ns, limit_ns);
	fill_paths(l, l->now_ns - 1);
	topology_pass(l->topology, l->direction, known_ns, l->now_ns);
	ops->run_until(&l->side->node, l->now_ns - 1, &err);
	store(&l->done_ns, l->now_ns);
	return event_ns < limit_ns;
}

// Does what can be done now. False: nothing happened.
static bool run_once(struct lane *l, uint64_t boundary_ns) {
	uint64_t known_ns = load(&l->other->done_ns);

	return time_min(known_ns + l->delay_ns, boundary_ns) > l->now_ns
		? run_window(l, known_ns, boundary_ns)
		: fill_paths(l, LAST_NS);
}

// Where neither has anything to do, they would come to the next event by steps of a round trip. But
// if the other has taken all that was sent to it, it sends nothing before its next event, or before
// this host's next event has had an effect there. False: nothing happened.
static bool run_idle(struct lane *l, uint64_t boundary_ns) {
	struct lane *other = l->other;
	bool all_taken = load(&other->seen) == other->pipe.made.next;
	uint64_t others_ns = load(&other->idle_ns);
	uint64_t event_ns = next_event_ns(l, boundary_ns); // knows what was sent before others_ns

	store(&l->idle_ns, event_ns);
	store(&l->seen, l->pipe.got);
	if (!all_taken)
		return false;
	return run_window(l, time_min(others_ns, event_ns + other->delay_ns), boundary_ns);
}

// Both hosts are at the boundary: the paths get all that the other one has sent.
static void rest(struct lane *l, uint64_t boundary_ns) {
	fill_paths(l, LAST_NS);
	topology_pass(l->topology, l->direction, boundary_ns, boundary_ns);
}

// Runs a lane up to the boundary, at which its paths have all that the other host has sent.
static void run_lane(struct lane *l, uint64_t boundary_ns) {
	uint32_t waits = 0;
	bool others_done;

	do {
		others_done = load(&l->other->done_ns) == boundary_ns;
		if (run_once(l, boundary_ns) || (waits > IDLE_WAITS && run_idle(l, boundary_ns)))
			waits = 0;
		else
			pipe_wait(&waits);
	} while (!others_done || l->now_ns < boundary_ns);
	rest(l, boundary_ns);
	store(&l->rest_ns, boundary_ns);
}

static void *thread_main(void *arg) {
	struct pipeline *p = arg;
	uint64_t rest_ns = 0;
	uint32_t waits = 0;

	while (!atomic_load_explicit(&p->ends, memory_order_acquire)) {
		uint64_t boundary_ns = load(&p->boundary_ns);

		if (boundary_ns == rest_ns) {
			pipe_wait(&waits);
			continue;
		}
		run_lane(&p->lane[OTHER], boundary_ns);
		rest_ns = boundary_ns;
		waits = 0;
	}
	return NULL;
}

// The other lane waits for this one's room: without a thread of its own, it makes some.
static void fill_itself(struct pipeline *p, bool itself) {
	for (uint32_t i = 0; i < LANES; i++)
		p->lane[i].pipe.waits_ctx = itself ? &p->lane[i] : p->lane[i].other;
}

static void run_alone(struct pipeline *p, uint64_t boundary_ns) {
	struct lane *caller = &p->lane[CALLER], *other = &p->lane[OTHER];

	do {
		bool moved = false;

		while (run_once(caller, boundary_ns))
			moved = true;
		while (run_once(other, boundary_ns))
			moved = true;
		if (!moved) {
			run_idle(caller, boundary_ns);
			run_idle(other, boundary_ns);
		}
	} while (caller->now_ns < boundary_ns || other->now_ns < boundary_ns);
	rest(caller, boundary_ns);
	rest(other, boundary_ns);
}

static void run_both(struct pipeline *p, uint64_t boundary_ns) {
	uint32_t waits = 0;

	store(&p->boundary_ns, boundary_ns);
	run_lane(&p->lane[CALLER], boundary_ns);
	while (load(&p->lane[OTHER].rest_ns) != boundary_ns)
		pipe_wait(&waits);
}

static uint64_t wall_ns(void) {
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

// A stretch is over, up to which so much was done: on how many threads the next one goes.
static void choose(struct choice *c, uint64_t began_ns, uint64_t work) {
	uint64_t now_ns = wall_ns(), took_ns = now_ns - c->since_ns;

	c->two_ns += c->alone ? 0 : now_ns - began_ns;
	if (took_ns < (c->trial ? PIPELINE_TRIAL_NS : c->keep_ns))
		return;
	c->cost[c->alone] = (double)took_ns / (double)(work - c->work);
	if (!c->trial) {
		c->alone = !c->alone;
	} else if (c->cost[c->alone] < c->cost[!c->alone]) {
		c->keep_ns = KEPT_TRIALS * took_ns;
	} else {
		c->alone = !c->alone;
		c->keep_ns = time_max(time_min(2 * c->keep_ns, KEPT_MAX), KEPT_TRIALS * took_ns);
	}
	c->trial = !c->trial;
	c->since_ns = now_ns;
	c->work = work;
}

uint64_t pipeline_run(struct pipeline *p, uint64_t boundary_ns) {
	struct lane *caller = &p->lane[CALLER], *other = &p->lane[OTHER];
	uint64_t began_ns = wall_ns();

	for (uint32_t i = 0; i < LANES; i++) {
		struct lane *l = &p->lane[i];

		l->delay_ns = topology_delay_ns(l->topology, l->direction);
	}
	if (p->choice.alone)
		run_alone(p, boundary_ns);
	else
		run_both(p, boundary_ns);
	p->stretches++;
	choose(&p->choice, began_ns, p->stretches + caller->pipe.got + other->pipe.got);
	fill_itself(p, p->choice.alone);
	return boundary_ns;
}

// While the host waits for room in its pipe, the other may wait for room in this one.
static void waits(void *lane) {
	fill_paths(lane, LAST_NS);
}

// A lane with the host `side` and the paths of what comes to it, of direction d.
static void lane_init(
	struct lane *l, const struct pipeline_env *env, enum flows_direction d, struct side *side) {
	pipe_init(&l->pipe);
	l->topology = env->topology;
	l->direction = d;
	l->enter = env->side[d].to;
	l->side = side;
	l->pipe.refused = env->refused;
	l->pipe.refused_ctx = env->ctx;
}

// Memory of packets of direction d goes to the lane with their paths; what makes them does so in
// the pipe to it.
static void lane_connect(struct lane *l, const struct pipeline_env *env, enum flows_direction d) {
	struct pools *all = env->pools[FLOWS_FORWARD];

	for (uint32_t i = d; i < POOL_FRAMES; i += FLOWS_DIRECTIONS) {
		l->pool[i / 2] = *all->pool[i];
		all->pool[i] = &l->pool[i / 2];
		env->side[d].pool[i / 2] = &l->pipe.made;
	}
	l->pipe.taker = l->pools;
	l->pipe.waits = waits;
	l->pipe.waits_ctx = l->other;
	l->side->pools = l->pools;
	env->side[d].to = &l->pipe.node;
}

static void lanes_init(struct pipeline *p, const struct pipeline_env *env) {
	struct lane *caller = &p->lane[CALLER], *other = &p->lane[OTHER];

	lane_init(caller, env, FLOWS_REVERSE, &env->side[FLOWS_FORWARD]);
	lane_init(other, env, FLOWS_FORWARD, &env->side[FLOWS_REVERSE]);
	caller->other = other;
	other->other = caller;
	caller->pools = env->pools[FLOWS_REVERSE];
	other->pools = &p->pools;
	lane_connect(caller, env, FLOWS_REVERSE);
	lane_connect(other, env, FLOWS_FORWARD);
	memcpy(p->pools.pool, caller->pools->pool, sizeof(p->pools.pool));
	env->pools[FLOWS_FORWARD] = &p->pools;
}

int pipeline_begin(struct pipeline **pipeline, const struct pipeline_env *env, struct err *err) {
	struct pipeline *p = mem_map(sizeof(*p));

	if (p == NULL)
		return err_set(err, -ENOMEM, "no memory for a second thread");
	*pipeline = p;
	p->choice = (struct choice){.since_ns = wall_ns(), .keep_ns = PIPELINE_TRIAL_NS};
	lanes_init(p, env);
	if (pthread_create(&p->thread, NULL, thread_main, p) != 0)
		return err_set(err, -EAGAIN, "cannot begin a second thread");
	p->begun = true;
	return 0;
}

double pipeline_two_s(const struct pipeline *p) {
	return p != NULL ? (double)p->choice.two_ns / NS_PER_S : 0;
}

void pipeline_end(struct pipeline *p) {
	if (p == NULL)
		return;
	atomic_store_explicit(&p->ends, true, memory_order_release);
	if (p->begun)
		pthread_join(p->thread, NULL);
	mem_unmap(p, sizeof(*p));
}
