// SPDX-License-Identifier: BSD-3-Clause
// Any text as changes through the switch's control socket (/weir/set), one a line. What is refused
// says so in one line; after what is taken the parameter has its value, and the paths, through
// which packets pass between two changes, balance their ledger.
#include "fuzz.h"

#include "common/config/config.h"
#include "switch/path/path.h"

#include <math.h>
#include <stdbool.h>

#define PACKETS 1024 // of one input

static const char experiment[] =
	"paths:\n"
	"  forward:\n"
	"    - loss: {rate: 5%}\n"
	"    - jitter: {mean: 1ms, spread: 1ms}\n"
	"    - link: {rate: 1Mbit, queue: {codel: {ecn: yes, limit: 20kB}}}\n"
	"    - delay: {delay: 10ms}\n"
	"  reverse:\n"
	"    - link: {rate: 10Mbit, queue: {fifo: {limit: 4kB}}}\n";

struct lab {
	struct config *config;
	struct paths paths;
	uint64_t now_ns;
	uint32_t sent;
	struct pkt packet[PACKETS];
};

static void gone(void *ctx, struct pkt_list *drops) {
}

// A packet enters each path, and what has passed through leaves.
static void pass(struct lab *l) {
	l->now_ns += NS_PER_MS;
	for (uint32_t i = 0; i < l->paths.count && l->sent < PACKETS; i++) {
		struct path *path = &l->paths.path[i];
		struct pkt *p = &l->packet[l->sent++], *left;

		*p = (struct pkt){.arrival_ns = l->now_ns, .size_bytes = 64 + l->sent % 1400};
		path_push(path, &p, 1);
		while (path_pop(path, l->now_ns, &left, 1) > 0)
			;
		NEED(path_balanced(path));
	}
}

static void change(struct lab *l, char *line) {
	double before, after;
	struct path_change c;
	struct err err = {""};

	if (paths_read_change(&l->paths, line, &c, &err) == 0
		&& path_set(c.path, c.key, c.value, l->now_ns, &before, &after, &err) == 0) {
		NEED(!isnan(after));
		pass(l);
	} else {
		NEED(err.msg[0] != '\0' && strchr(err.msg, '\n') == NULL);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	static const struct paths_env env = {
		.run_seed = 1, .mtu_bytes = 1518, .owner = {.free = gone}};
	static struct lab l;
	char *text = malloc(size + 1), *end;
	struct err err = {""};

	memset(&l, 0, sizeof(l));
	l.now_ns = NS_PER_S;
	l.config = config_parse("fuzz", experiment, sizeof(experiment) - 1, &err);
	NEED(text != NULL && l.config != NULL);
	NEED(paths_init(&l.paths, config_get(config_root(l.config), "paths"), &env, &err) == 0);
	memcpy(text, data, size);
	text[size] = '\0';
	for (char *line = text; line != NULL; line = end) {
		end = strchr(line, '\n');
		if (end != NULL)
			*end++ = '\0';
		change(&l, line);
	}
	paths_fini(&l.paths);
	config_free(l.config);
	free(text);
	return 0;
}
