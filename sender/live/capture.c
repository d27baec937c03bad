// SPDX-License-Identifier: BSD-3-Clause
// --pcap: what the ports carry, an interface each. The lcores put it into rings, the control thread
// writes it.
//
// A frame's time is when it is due to leave, or when it was taken from the port. At telemetry level
// 2 the same flows are captured as are recorded, else all frames.
#include "sender/live/app.h"

#include "common/net/wire_ip.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RING_RECORDS (1u << 17)

// The flow of the config that a frame belongs to, or FLOW_ADDR_NONE.
static uint32_t flow_of(const struct sender_port *p, const struct rte_mbuf *m, bool sent) {
	struct wire_info w;

	wire_read(rte_pktmbuf_mtod(m, const uint8_t *), m->data_len, &w);
	if (w.proto != WIRE_PROTO_TCP && w.proto != WIRE_PROTO_UDP)
		return FLOW_ADDR_NONE;
	if (sent)
		w.addr = wire_addr_back(&w.addr);
	return sender_flow_of(p, &w.addr);
}

void sender_capture_frame(struct sender_lcore *s, const struct sender_port *p,
	const struct rte_mbuf *m, enum pcapng_direction direction, uint64_t ts_ns) {
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	const struct tel_run *tel = &s->capture->env.run->tel;
	uint32_t flow = flow_of(p, m, direction == PCAPNG_OUTBOUND);
	struct pcap_place place;

	if (tel->level == 2 && (flow == FLOW_ADDR_NONE || !tel_flow_chosen(tel, flow)))
		return;
	uint32_t interface = (uint32_t)(p - s->port);
	if (!pcap_writer_place(s->capture, s->lcore.index, interface, &place))
		return;
	*place.record = (struct pcap_record){
		.ts_ns = ts_ns,
		.id = PCAP_NO_ID,
		.flow_id = flow == FLOW_ADDR_NONE ? PCAP_NO_FLOW : flow,
		.interface = (uint8_t)interface,
		.direction = (uint8_t)direction,
		.captured = m->data_len < place.room ? m->data_len : place.room,
		.length = m->pkt_len,
	};
	memcpy(place.bytes, frame, place.record->captured);
	pcap_writer_put(s->capture, s->lcore.index, &place);
}

int sender_capture_open(struct sender_app *app, struct err *err) {
	const struct live_app *live = &app->live;
	struct pcap_writer_env env = {
		.run = &live->run,
		.epoch_ns = live->run.tel.utc_start_ns,
		.rings = live->lcores,
		.ring_records = RING_RECORDS,
	};
	struct pcap_writer *w;
	int rc;

	if (live->opt.pcap == NULL)
		return 0;
	if ((w = aligned_alloc(64, sizeof(*w))) == NULL)
		return err_set(err, -ENOMEM, "--pcap: no memory");
	if ((rc = pcap_writer_open(w, live->opt.pcap, &env, err)) < 0) {
		free(w);
		return rc;
	}
	for (uint32_t i = 0; i < live->ports; i++)
		pcapng_interface(&w->file, app->config.port[i].common.name);
	for (uint32_t k = 0; k < live->lcores; k++)
		app->lcore[k].capture = w;
	atomic_store(&app->capture, w);
	return 0;
}

void sender_capture_drain(struct live_app *live) {
	struct pcap_writer *w = atomic_load(&sender_app(live)->capture);

	if (w != NULL)
		pcap_writer_drain(w);
}

void sender_capture_free(struct sender_app *app) {
	struct pcap_writer *w = app->capture;

	if (w == NULL)
		return;
	pcap_writer_free(w);
	free(w);
}
