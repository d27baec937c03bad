// SPDX-License-Identifier: BSD-3-Clause
// --pcap: lcores put what their paths show them into rings, the control thread writes it
// (switch/path/capture.h).
#include "switch/live/app.h"

#include "common/base/rng.h"
#include "common/net/clear.h"
#include "common/net/corrupt.h"
#include "common/net/wire.h"

#include <string.h>

#define RING_RECORDS (1u << 17)

static void flip_bit(uint8_t *bytes, size_t len, size_t bit) {
	if (bit / 8 < len)
		bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
}

static uint32_t frame(void *ctx, const struct path *path, const struct pkt *p, uint8_t *bytes,
	uint32_t room, uint32_t *length) {
	const struct packet_metadata *meta = (const struct packet_metadata *)(const void *)p->user;
	const uint8_t *data = meta->frame;
	uint32_t len = meta->len, captured;

	*length = len;
	if (meta->len == 0) {
		const struct rte_mbuf *m = port_mbuf_const(p);

		data = rte_pktmbuf_mtod(m, const uint8_t *);
		len = m->data_len;
		*length = m->pkt_len;
	}
	captured = len < room ? len : room;
	memcpy(bytes, data, captured);
	// As change_frame (departures.c) does with the frame once its port sends it.
	if (p->ecn != meta->ecn)
		wire_set_ecn(bytes, captured, p->ecn);
	if ((p->flags & PKT_CLEARED) != 0)
		clear_frame(bytes, captured, p->flags);
	if ((p->flags & PKT_CORRUPT) != 0)
		flip_bit(bytes, captured, corrupt_bit(data, len, rng_mix(p->id)));
	return captured;
}

static void name_ports(struct capture_env *env, const struct switch_config *config) {
	for (uint32_t i = 0; i < config->ports; i++) {
		const struct path *path = config->port[i].path;

		if (path == NULL)
			continue;
		env->port[path->index].out = config->port[i].common.name;
		if (config->ports == 2) // else it may come from any of the others
			env->port[path->index].in = config->port[1 - i].common.name;
	}
}

int switch_capture_open(struct live_app *live, struct err *err) {
	struct switch_app *app = switch_app(live);
	struct capture_env env = {
		.run = &live->run,
		.paths = &app->paths,
		.epoch_ns = live->run.tel.utc_start_ns,
		.frame = frame,
		.rings = live->lcores,
		.ring_records = RING_RECORDS,
	};
	struct capture *c;
	int rc;

	if (live->opt.pcap == NULL)
		return 0;
	name_ports(&env, &app->config);
	if ((rc = capture_open(&c, live->opt.pcap, &env, err)) < 0)
		return rc;
	for (uint32_t i = 0; i < live->lcores; i++)
		capture_paths(c, i, app->lcore[i].path, app->lcore[i].paths);
	for (uint32_t i = 0; i < live->lcores; i++)
		app->lcore[i].capture = c;
	atomic_store(&app->capture, c);
	return 0;
}

void switch_capture_drain(struct live_app *live) {
	capture_drain(atomic_load(&switch_app(live)->capture));
}
