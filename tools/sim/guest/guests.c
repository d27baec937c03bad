// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/guest/fields.h"
#include "tools/sim/guest/guests_private.h"

#include "common/base/mem.h"
#include "common/base/rng.h"
#include "common/net/address.h"
#include "common/net/flow_addr.h"
#include "common/net/wire.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static_assert(POOL_FRAMES + 2 * GUESTS_MAX <= POOLS_MAX, "two numbers each");

#define AHEAD_NS (100 * NS_PER_US) // by which a sample precedes the end of its interval
// In a window: opened, closed, one per interval; these end with windows, few AHEAD_NS apart.
#define SAMPLES_PER_FLOW 8
#define POOL_LEAST 4096
#define OVERHEAD_BYTES (24 * 1024 * 1024) // of a guest in /dev/shm, besides its memory

static const uint8_t sender_mac[6] = {2, 0, 0, 0, 0, 1}, receiver_mac[6] = {2, 0, 0, 0, 0, 2};

static const struct stack *side_of(const struct group *g, bool sender) {
	return sender ? &g->stack : &g->peer;
}

uint32_t guests_of_side(const struct group *g, bool sender) {
	const struct stack *st = side_of(g, sender);

	return !st->guest ? 0 : (uint32_t)(st->hosts < g->count ? st->hosts : g->count);
}

static uint32_t count_guests(const struct groups *groups) {
	uint32_t n = 0;

	for (uint32_t i = 0; i < groups->count; i++)
		n += guests_of_side(&groups->group[i], true)
			+ guests_of_side(&groups->group[i], false);
	return n;
}

// Gives the groups' flows to their guests, the senders first.
static void place_flows(struct guests *gs) {
	const struct groups *groups = gs->env.groups;
	uint16_t next = 0;

	for (int sender = 1; sender >= 0; sender--) {
		for (uint32_t i = 0; i < groups->count; i++) {
			const struct group *g = &groups->group[i];
			uint32_t hosts = guests_of_side(g, sender != 0);

			for (uint32_t k = 0; k < g->count; k++)
				gs->of_flow[sender][g->first + k] =
					(uint16_t)(hosts == 0 ? NO_GUEST : next + k % hosts);
			for (uint32_t k = 0; k < hosts; k++, next++)
				gs->place[next] = (struct guests_place){
					.sender = sender != 0,
					.group = (uint16_t)i,
					.shard = k,
					.flows = (uint32_t)((g->count + hosts - 1 - k) / hosts),
				};
		}
	}
}

// A kernel alone has no other packets but TCP's; in a group with a program it may have to answer
// it.
static bool sends_any(const struct guests *gs, uint32_t guest) {
	const struct group *g = &gs->env.groups->group[gs->place[guest].group];

	return g->stack.run[0] != '\0' || g->peer.run[0] != '\0';
}

static int get_memory(struct guests *gs, struct err *err) {
	int rc = 0;

	gs->pool = calloc(gs->count, sizeof(*gs->pool));
	gs->guest = calloc(gs->count, sizeof(*gs->guest));
	gs->place = calloc(gs->count, sizeof(*gs->place));
	gs->ip_flows = calloc(gs->count, sizeof(*gs->ip_flows));
	for (int i = 0; i < 2; i++)
		gs->of_flow[i] = calloc(gs->env.groups->flows, sizeof(uint16_t));
	gs->back = calloc(2 * (size_t)gs->env.groups->flows, sizeof(*gs->back));
	guests_side(gs, true)->host->back = gs->back;
	if (gs->pool == NULL || gs->guest == NULL || gs->place == NULL || gs->back == NULL
		|| gs->ip_flows == NULL || gs->of_flow[0] == NULL || gs->of_flow[1] == NULL)
		return err_set(err, -ENOMEM, "no memory for %u guests", gs->count);
	place_flows(gs);
	for (uint32_t i = 0; rc == 0 && i < gs->count; i++) {
		struct guest *g = &gs->guest[i];

		g->calendar.listener = g->calendar.fd = g->calendar.page_fd = -1;
		g->net.listener = g->net.fd = g->net.call_fd = -1;
		rc = pool_init(gs->env.pools, &gs->pool[i], guests_pool_of(gs, i), FRAME_PKT_SIZE,
			2 * gs->env.pipe_segs + POOL_LEAST, err);
		if (rc == 0 && sends_any(gs, i))
			rc = ip_flows_init(&gs->ip_flows[i], err);
	}
	return rc;
}

int guests_init(struct guests **out, const struct guests_env *env, struct err *err) {
	struct config_node *root = config_root(env->run->config),
			   *flows = config_get(root, "flows");
	uint32_t count = count_guests(env->groups);
	struct guests *gs;
	struct err why;
	int rc;

	if (count == 0)
		return 0;
	if (stop_uses(&env->run->stop, STOP_CWND_REDUCTIONS))
		return config_err(config_get(root, "stop"), -EINVAL, err,
			"stop: cwnd_reductions: a Linux kernel does not say how often it reduces "
			"its window; there is goodput, jfi, drops, share, "
			"delay");
	if (count > GUESTS_MAX)
		return config_err(flows, -ERANGE, err,
			"flows: %u guests; there may be %d: give less `hosts`", count, GUESTS_MAX);
	if (env->groups->flows > FLOW_ADDR_PORTS)
		return config_err(flows, -ERANGE, err, "flows: with stack: linux at most %u",
			FLOW_ADDR_PORTS);
	if ((gs = calloc(1, sizeof(*gs))) == NULL)
		return err_set(err, -ENOMEM, "no memory for %u guests", count);
	*out = gs;
	gs->env = *env;
	gs->count = count;
	for (uint32_t d = 0; d < FLOWS_DIRECTIONS; d++)
		gs->node[d] = (struct guests_node){
			.node.ops = &guests_node_ops, .of = gs, .sender = d == FLOWS_FORWARD};
	if ((rc = get_memory(gs, err)) < 0)
		return rc;
	if ((rc = guests_memory_check(gs, &why)) < 0)
		return config_err(flows, rc, err, "flows: %s", why.msg);
	return 0;
}

struct node *guests_node(struct guests *gs, enum flows_direction side, struct node *host) {
	struct host_env *env;

	if (gs == NULL)
		return host;
	env = &gs->env.side[side].host->env;
	if (side == FLOWS_FORWARD)
		gs->sender_output = env->output;
	env->output = side == FLOWS_FORWARD ? guests_sender_output : guests_receiver_output;
	env->ctx = gs;
	return &gs->node[side].node;
}

bool guests_random(const struct guests *gs) {
	return gs != NULL;
}

// The program of the host that the guest runs. One that answers is there from the start. A QUIC
// stack's needs no working directory, which would be part of what decides its run.
static void config_program(const struct guests *gs, uint32_t index, const struct group *g,
	const struct stack *st, struct guest_config *config) {
	bool sender = gs->place[index].sender;
	char peer[ADDRESS_HOST_SIZE];
	const char *from = st->run, *at;
	char *to = config->run, *end = config->run + GUEST_RUN;

	static_assert(GUEST_RUN > STACK_RUN_SIZE / 6 * 14 + 6, "each {peer} is 14 characters then");
	if (st->quic != NULL)
		to += snprintf(to, GUEST_RUN, "%sexec " GUEST_STACKS "/",
			st->quic_qlog ? "" : "unset WEIR_OUT; ");
	address_host_text(
		sender ? FLOW_ADDR_RECEIVER : FLOW_ADDR_SENDER, g->ip == GROUP_IPV6, peer);
	while ((at = strstr(from, "{peer}")) != NULL) {
		to += snprintf(to, (size_t)(end - to), "%.*s%s", (int)(at - from), from, peer);
		from = at + strlen("{peer}");
	}
	snprintf(to, (size_t)(end - to), "%s", from);
	config->run_ns = sender ? g->start_ns : 0;
	config->run_stop_ns = sender && g->stop_ns > 0 ? g->stop_ns : GUEST_NEVER;
	if (st->quic != NULL)
		snprintf(config->stacks, sizeof(config->stacks), KERNEL_QUIC,
			guests_kernel(gs, index)->folder);
	if (st->quic != NULL || getcwd(config->folder, sizeof(config->folder)) == NULL)
		snprintf(config->folder, sizeof(config->folder), "/");
}

static void config_settings(const struct guests *gs, uint32_t index, struct guest_config *config) {
	const struct guests_place *at = &gs->place[index];
	const struct group *g = &gs->env.groups->group[at->group];
	const struct stack *st = side_of(g, at->sender);
	const struct run *run = gs->env.run;

	*config = (struct guest_config){
		.sender = at->sender,
		.flows = at->flows,
		.ip = htonl(at->sender ? FLOW_ADDR_SENDER : FLOW_ADDR_RECEIVER),
		.peer_ip = htonl(at->sender ? FLOW_ADDR_RECEIVER : FLOW_ADDR_SENDER),
		.port = FLOW_ADDR_DST_PORT,
		.ipv6 = g->ip == GROUP_IPV6,
		.mtu = (uint16_t)(g->mss + g->ip_header + WIRE_TCP),
		.tos = (uint32_t)g->dscp << 2,
		.interval_ns = run->telemetry_interval_ns,
		.warmup_ns = run->warmup_ns,
		.duration_ns = run->duration_ns,
		.stop_over_ns = run->stop.metrics == 0 ? 0 : run->stop.over_ns,
	};
	config->pause_ns = st->pause_ns == 0 ? GUEST_NEVER : st->pause_ns;
	config->resume_ns = st->resume_ns == 0 ? GUEST_NEVER : st->resume_ns;
	config->close_ns = st->close_ns == 0 ? GUEST_NEVER : st->close_ns;
	config->close_by_reset = st->closing == STACK_RST;
	if (st->run[0] != '\0')
		config_program(gs, index, g, st, config);
	config->ahead_ns = time_min(AHEAD_NS, config->interval_ns / 2);
	memcpy(config->mac, at->sender ? sender_mac : receiver_mac, 6);
	memcpy(config->peer_mac, at->sender ? receiver_mac : sender_mac, 6);
	snprintf(config->cc, sizeof(config->cc), "%.60s", st->cc);
	snprintf(config->qdisc, sizeof(config->qdisc), "%.60s", st->qdisc);
	guests_config_memory(gs, index, config);
	for (uint32_t i = 0; i < st->sysctls; i++, config->sysctls++) {
		memcpy(config->sysctl[config->sysctls].name, st->sysctl[i].name, GUEST_TEXT);
		memcpy(config->sysctl[config->sysctls].value, st->sysctl[i].value, GUEST_TEXT);
	}
	guests_config_modules(gs, index, config);
}

// The config of a guest, to be freed; NULL: no memory.
static void *make_config(struct guests *gs, uint32_t index, size_t *bytes) {
	const struct guests_place *at = &gs->place[index];
	const struct group *g = &gs->env.groups->group[at->group];
	uint32_t hosts = guests_of_side(g, at->sender), n = 0;
	struct guest_config *config;

	static_assert(GUEST_TEXT == STACK_SYSCTL_SIZE, "copied");
	*bytes = sizeof(*config) + at->flows * sizeof(struct guest_flow);
	if ((config = calloc(1, *bytes)) == NULL)
		return NULL;
	config_settings(gs, index, config);
	for (uint32_t k = at->shard; k < g->count; k += hosts) {
		const struct flow *f = &guests_side(gs, true)->host->flow[g->first + k];

		((struct guest_flow *)(void *)(config + 1))[n++] = (struct guest_flow){
			.start_ns = f->start_ns,
			.stop_ns = f->stop_ns,
			.bytes = f->total_bytes,
			.flow = f->id,
			.port = flow_addr_port(f->id),
		};
	}
	return config;
}

// A run without a folder keeps nothing of its programs: their files go with the guests' own.
static int open_program(struct guests *gs, uint32_t index, const char *run,
	struct guest_config *config, struct err *err) {
	const char *dir = gs->env.run->dir[0] != '\0' ? gs->env.run->dir : gs->folder.path;
	struct guest_program *p = &gs->guest[index].program;
	int rc = program_open(p, run, config->run_stop_ns, index, dir, err);
	char *whole = rc < 0 ? NULL : realpath(p->files, NULL);

	if (whole != NULL)
		snprintf(config->files, sizeof(config->files), "%s", whole);
	free(whole);
	return rc;
}

// A guest and its programs share a CPU, where handing over between them is far cheaper than across
// two; -1: any.
static int cpu_of(uint32_t index) {
	cpu_set_t allowed;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		return -1;
	index %= (uint32_t)CPU_COUNT(&allowed);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (CPU_ISSET((size_t)cpu, &allowed) && index-- == 0)
			return cpu;
	}
	return -1;
}

static int start_one(struct guests *gs, uint32_t index, struct err *err) {
	const struct guests_place *at = &gs->place[index];
	const struct group *group = &gs->env.groups->group[at->group];
	const struct stack *st = side_of(group, at->sender);
	struct guest *g = &gs->guest[index];
	struct guest_start start = {.index = index,
		.memory_bytes = guests_memory_bytes(gs, index),
		.kernel = guests_kernel(gs, index),
		.cpu = cpu_of(index)};
	char name[32];
	struct rng rng;
	void *config;
	int rc = guest_open(g, index, &gs->folder, at->sender ? sender_mac : receiver_mac, err);

	if (rc < 0)
		return rc;
	g->cpu = start.cpu;
	g->wire = (struct guest_wire){guests_packet, guests_encode, gs};
	g->card->coalesce_ns = st->coalesce_ns;
	g->room_samples = SAMPLES_PER_FLOW * at->flows + SAMPLES_MAX;
	g->sample = calloc(g->room_samples, sizeof(*g->sample));
	config = make_config(gs, index, &start.config_bytes);
	if (config == NULL || g->sample == NULL) {
		free(config);
		return err_set(err, -ENOMEM, "no memory for guest %u", index);
	}
	rc = st->run[0] == '\0' ? 0 : open_program(gs, index, st->run, config, err);
	if (rc < 0) {
		free(config);
		return rc;
	}
	snprintf(name, sizeof(name), "guest.%u", index);
	rng_init(&rng, gs->env.run->seed, name);
	start.seed = rng_u64(&rng);
	start.page_fd = g->calendar.page_fd;
	start.config = config;
	g->pid = guest_process(&gs->folder, &start, err);
	free(config);
	return g->pid < 0 ? (int)g->pid : 0;
}

static uint64_t all_memory_bytes(const struct guests *gs) {
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < gs->count; i++)
		bytes += guests_memory_bytes(gs, i) + OVERHEAD_BYTES;
	return bytes;
}

int guests_check(struct guests *gs, struct err *err) {
	struct guest_folder folder;
	struct err why;

	if (gs == NULL
		|| (guests_find_kernels(gs, &why) == 0
			&& guest_folder_check(&folder, all_memory_bytes(gs), &why) == 0))
		return 0;
	return config_err(config_get(config_root(gs->env.run->config), "flows"), -EINVAL, err,
		"flows: %s", why.msg);
}

int guests_boot(struct guests *gs, struct err *err) {
	int rc;

	if (gs == NULL)
		return 0;
	if ((rc = guests_find_kernels(gs, err)) < 0)
		return rc;
	rc = guest_folder_make(&gs->folder, all_memory_bytes(gs), err);
	for (uint32_t i = 0; rc == 0 && i < gs->count; i++)
		rc = start_one(gs, i, err);
	for (uint32_t i = 0; rc == 0 && i < gs->count; i++)
		rc = guest_boot(&gs->guest[i], &gs->folder, err);
	// What was sent before took no time.
	for (uint32_t i = 0; rc == 0 && i < gs->count; i++)
		gs->guest[i].card->rate_bps = guests_stack(gs, i)->card_bps;
	return rc;
}

void guests_keep_logs(const struct guests *gs, const char *run_folder) {
	for (uint32_t i = 0; gs != NULL && i < gs->count; i++)
		guest_keep_log(&gs->folder, i, run_folder);
}

static void programs_summary(const struct guests *gs, struct json *j) {
	bool some = false;

	for (uint32_t i = 0; i < gs->count; i++)
		some = some || gs->guest[i].program.run != NULL;
	if (!some)
		return;
	json_array(j, "programs");
	for (uint32_t i = 0; i < gs->count; i++) {
		if (gs->guest[i].program.run != NULL)
			program_summary(&gs->guest[i].program, i, gs->place[i].group,
				gs->place[i].sender, j);
	}
	json_close(j, ']');
}

bool guests_send_any(const struct guests *gs) {
	for (uint32_t i = 0; gs != NULL && i < gs->count; i++) {
		if (gs->ip_flows[i].flow != NULL)
			return true;
	}
	return false;
}

void guests_interval(struct guests *gs, struct tel *tel, uint64_t now_ns) {
	guests_quic_flows(gs, now_ns);
	for (uint32_t i = 0; gs != NULL && i < gs->count; i++)
		ip_flows_interval(
			&gs->ip_flows[i], tel, now_ns, gs->place[i].group, gs->place[i].sender);
}

void guests_measure(struct guests *gs) {
	for (uint32_t i = 0; gs != NULL && i < gs->count; i++)
		ip_flows_measure(&gs->ip_flows[i]);
}

static void write_ip_flows(const struct guests *gs, struct json *j, double seconds) {
	if (!guests_send_any(gs))
		return;
	json_array(j, "ip_flows");
	for (uint32_t i = 0; i < gs->count; i++)
		ip_flows_summary(
			&gs->ip_flows[i], j, gs->place[i].group, gs->place[i].sender, seconds);
	json_close(j, ']');
}

void guests_summary(const struct guests *gs, struct json *j, double seconds) {
	struct guest_count sum = {0};
	uint64_t rx = 0, interrupts = 0, runs = 0;

	if (gs == NULL)
		return;
	const struct kernel *only = gs->kernels.count == 1 ? &gs->kernels.kernel[0] : NULL;
	for (uint32_t i = 0; i < gs->count; i++) {
		const struct guest *g = &gs->guest[i];

		sum.tx += g->count.tx;
		sum.other += g->count.other;
		rx += g->card->rx;
		interrupts += g->card->interrupts;
		runs += g->card->runs;
	}
	write_ip_flows(gs, j, seconds);
	json_object(j, "guests");
	GUESTS_FIELDS(FIELD_JSON)
	json_close(j, '}');
}

void guests_free(struct guests *gs) {
	if (gs == NULL)
		return;
	for (uint32_t i = 0; gs->guest != NULL && i < gs->count; i++)
		guest_close(&gs->guest[i]);
	for (uint32_t i = 0; gs->ip_flows != NULL && i < gs->count; i++)
		ip_flows_fini(&gs->ip_flows[i]);
	guest_folder_remove(&gs->folder);
	for (int i = 0; i < 2; i++)
		free(gs->of_flow[i]);
	guests_side(gs, true)->host->back = NULL;
	free(gs->pool);
	free(gs->back);
	free(gs->place);
	free(gs->ip_flows);
	free(gs->guest);
	free(gs);
}
