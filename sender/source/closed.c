// SPDX-License-Identifier: BSD-3-Clause
// Closed loops: each flow makes a pause after a transfer before it begins the next, so that the
// load falls when the network is slow.
//
//	closed    pause, transfer, pause, transfer ...: users who think between two pages. Each
//	          transfer opens a connection, or all of a flow's use one (`connection: keep`).
//	request   responses of a server over one connection: think, request, service, response.
//	          Completion counts from the request, so it includes the service time.
//	on_off    pause, then data without end for a time: bulk flows that come and go (Winstein and
//	          Balakrishnan, TCP ex Machina, SIGCOMM 2013)
//
// A flow begins with a pause. Pauses and times are exponential, unless `times: fixed`.
//
// **The request** is not a packet of its own. The sender of the data is the server. The ACK of a
// response's last byte leaves the client when it has the response; a request after a pause would
// leave the client that much later, and travel as long. So the server has the next request a pause
// after that ACK, and completion from there to the ACK of the response is the client's time from
// request to response.
//
// Where one connection is used, each transfer begins a segment of its own (workload.h), and the
// control decides what its window is after a pause (cc_ops.on_idle).
#include "sender/source/sizes.h"
#include "sender/source/source.h"

enum times_law { TIMES_EXPONENTIAL, TIMES_FIXED };

struct closed {
	uint64_t pause_ns; // mean
	uint64_t service_ns; // mean; of request
	uint64_t on_ns; // mean; of on_off
	int times; // enum times_law
	int connection; // 1: keep
	struct sizes sizes;
};

static const char *const times_names[] = {"exponential", "fixed", NULL};
static const char *const connection_names[] = {"new", "keep", NULL};

#define TIMES_ROW                                                                                  \
	{                                                                                          \
		"times", "exponential", "how times are distributed", UNIT_NONE,                    \
			PARAM_ENUM(struct closed, times, times_names)                              \
	}

static const struct param also[] = {SIZES_PARAM, PARAM_END};

static uint64_t draw_ns(const struct closed *c, struct rng *rng, uint64_t mean_ns) {
	if (c->times == TIMES_FIXED || mean_ns == 0)
		return mean_ns;
	return source_exponential_ns(rng, (double)mean_ns);
}

static int closed_configure(void *config, struct config_node *node, struct err *err) {
	struct closed *c = config;

	return sizes_read(&c->sizes, node, err);
}

static void closed_fini(void *config) {
	struct closed *c = config;

	sizes_fini(&c->sizes);
}

static void closed_next(const void *config, void *state, struct rng *rng,
	const struct source_seen *seen, struct transfer *t) {
	const struct closed *c = config;

	t->gap_ns = draw_ns(c, rng, c->pause_ns);
	t->service_ns = draw_ns(c, rng, c->service_ns);
	t->bytes = sizes_draw(&c->sizes, rng);
}

static void on_off_next(const void *config, void *state, struct rng *rng,
	const struct source_seen *seen, struct transfer *t) {
	const struct closed *c = config;

	t->gap_ns = draw_ns(c, rng, c->pause_ns);
	t->on_ns = draw_ns(c, rng, c->on_ns);
	t->bytes = SOURCE_ENDLESS;
}

static bool closed_keeps(const void *config) {
	const struct closed *c = config;

	return c->connection == 1;
}

static bool always_keeps(const void *config) {
	return true;
}

static const struct param closed_params[] = {
	{"think", "1s", "mean pause after a transfer", UNIT_TIME_NS,
		PARAM_U64(struct closed, pause_ns), 0, 1e14},
	{"connection", "new", "whether each transfer opens one, or a flow keeps its own", UNIT_NONE,
		PARAM_ENUM(struct closed, connection, connection_names)},
	TIMES_ROW,
	PARAM_END,
};

const struct source_ops source_closed = {
	.name = "closed",
	.summary = "each flow pauses after a transfer, then begins the next",
	.params = closed_params,
	.also = also,
	.config_size = sizeof(struct closed),
	.kind = SOURCE_PAUSES,
	.random = true,
	.configure = closed_configure,
	.fini = closed_fini,
	.next = closed_next,
	.keeps = closed_keeps,
};

static const struct param request_params[] = {
	{"think", "100ms", "mean time from a response to the next request", UNIT_TIME_NS,
		PARAM_U64(struct closed, pause_ns), 0, 1e14},
	{"service", "0s", "mean time from a request to its response", UNIT_TIME_NS,
		PARAM_U64(struct closed, service_ns), 0, 1e12},
	TIMES_ROW,
	PARAM_END,
};

const struct source_ops source_request = {
	.name = "request",
	.summary = "responses to requests, over one connection per flow",
	.params = request_params,
	.also = also,
	.config_size = sizeof(struct closed),
	.kind = SOURCE_PAUSES,
	.random = true,
	.configure = closed_configure,
	.fini = closed_fini,
	.next = closed_next,
	.keeps = always_keeps,
};

static const struct param on_off_params[] = {
	{"on", "1s", "mean time in which a flow has data to send", UNIT_TIME_NS,
		PARAM_U64(struct closed, on_ns), 1e3, 1e14},
	{"off", "1s", "mean time until it has some again", UNIT_TIME_NS,
		PARAM_U64(struct closed, pause_ns), 0, 1e14},
	TIMES_ROW,
	PARAM_END,
};

const struct source_ops source_on_off = {
	.name = "on_off",
	.summary = "data without end for a time, then none, each time on a new connection",
	.params = on_off_params,
	.config_size = sizeof(struct closed),
	.kind = SOURCE_PAUSES,
	.random = true,
	.next = on_off_next,
};
