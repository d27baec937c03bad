// SPDX-License-Identifier: BSD-3-Clause
// Guests on threads: a guest is always run by the same one, and its processes and that thread share
// a CPU, where handing over between them is far cheaper than across two.
#include "tools/sim/guest/guests_private.h"

#include <sched.h>

static void run_share(struct guests *gs, uint32_t number) {
	for (uint32_t i = number; i < gs->count; i += gs->threads) {
		struct guest *g = &gs->guest[i];

		if (((gs->place[i].sender ? 2 : 1) & gs->sides) != 0 && g->rc == 0)
			g->rc = guest_run(g, &gs->folder, gs->window_end_ns, &g->err);
	}
}

static void *work(void *arg) {
	const struct guests_thread *t = arg;
	struct guests *gs = t->of;
	uint64_t done = 0;

	pthread_mutex_lock(&gs->lock);
	for (;;) {
		while (gs->order == done && !gs->end)
			pthread_cond_wait(&gs->ordered, &gs->lock);
		if (gs->end)
			break;
		done = gs->order;
		pthread_mutex_unlock(&gs->lock);
		run_share(gs, t->number);
		pthread_mutex_lock(&gs->lock);
		if (--gs->busy == 0)
			pthread_cond_signal(&gs->carried_out);
	}
	pthread_mutex_unlock(&gs->lock);
	return NULL;
}

// Is there anything for the guests of a thread to do in the window?
static bool due(const struct guests *gs, uint32_t number) {
	for (uint32_t i = number; i < gs->count; i += gs->threads) {
		const struct guest *g = &gs->guest[i];

		if (((gs->place[i].sender ? 2 : 1) & gs->sides) != 0
			&& (g->inbox.head != NULL || guest_next_ns(g) < gs->window_end_ns))
			return true;
	}
	return false;
}

void guests_run_sides(struct guests *gs, int sides, uint64_t end_ns) {
	uint32_t others = 0;

	gs->sides = sides;
	gs->window_end_ns = end_ns;
	for (uint32_t i = 1; i < gs->threads; i++)
		others += due(gs, i) ? 1 : 0;
	if (others > 0) {
		pthread_mutex_lock(&gs->lock);
		gs->order++;
		gs->busy = gs->threads - 1;
		pthread_cond_broadcast(&gs->ordered);
		pthread_mutex_unlock(&gs->lock);
	}
	run_share(gs, 0);
	if (others > 0) {
		pthread_mutex_lock(&gs->lock);
		while (gs->busy > 0)
			pthread_cond_wait(&gs->carried_out, &gs->lock);
		pthread_mutex_unlock(&gs->lock);
	}
}

static void pin(pthread_t id, int cpu) {
	cpu_set_t cpus;

	if (cpu < 0)
		return;
	CPU_ZERO(&cpus);
	CPU_SET((size_t)cpu, &cpus);
	pthread_setaffinity_np(id, sizeof(cpus), &cpus);
}

// The first thread is the caller's. One that cannot be started leaves its guests to fewer threads.
void guests_start_threads(struct guests *gs) {
	pthread_mutex_init(&gs->lock, NULL);
	pthread_cond_init(&gs->ordered, NULL);
	pthread_cond_init(&gs->carried_out, NULL);
	pin(pthread_self(), guests_cpu(0));
	for (uint32_t i = 1; i < gs->threads; i++) {
		struct guests_thread *t = &gs->thread[i];

		*t = (struct guests_thread){.of = gs, .number = i};
		if (pthread_create(&t->id, NULL, work, t) != 0) {
			gs->threads = i;
			break;
		}
		t->started = true;
		pin(t->id, guests_cpu(i));
	}
}

void guests_end_threads(struct guests *gs) {
	pthread_mutex_lock(&gs->lock);
	gs->end = true;
	pthread_cond_broadcast(&gs->ordered);
	pthread_mutex_unlock(&gs->lock);
	for (uint32_t i = 1; i < gs->threads; i++) {
		if (gs->thread[i].started)
			pthread_join(gs->thread[i].id, NULL);
		gs->thread[i].started = false;
	}
}

int guests_cpu(uint32_t number) {
	static cpu_set_t allowed;
	static bool known;
	uint32_t n = 0;

	if (!known && sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		return -1;
	known = true;
	number %= (uint32_t)CPU_COUNT(&allowed);
	for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET(cpu, &allowed) && n++ == number)
			return (int)cpu;
	}
	return -1;
}

uint32_t guests_cpus(void) {
	cpu_set_t allowed;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		return 1;
	return (uint32_t)CPU_COUNT(&allowed);
}
