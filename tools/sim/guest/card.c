// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/guest/card.h"

#include "common/base/ns.h"
#include "common/net/seg.h"
#include "common/net/wire.h"
#include "tools/sim/guest/message.h"

#define STUCK_MAX 64

static uint64_t next_left_ns(const struct card *c) {
	return c->nb_sent == 0 ? NEVER_NS : c->sent[c->first].left_ns;
}

static uint64_t next_in_ns(const struct card *c) {
	return c->nb_in == 0 ? NEVER_NS : c->in[c->first_in].time_ns;
}

uint64_t card_interrupt_ns(const struct card *c) {
	return time_max(time_min(next_in_ns(c), next_left_ns(c)), c->quiet_ns);
}

uint64_t card_completion_ns(const struct card *c) {
	return time_max(next_left_ns(c), c->quiet_ns);
}

bool card_is_stuck(const struct card *c) {
	return c->stuck > STUCK_MAX && next_in_ns(c) <= c->last_ns;
}

bool card_is_message(const struct card_frame *f) {
	return f->size >= WIRE_ETH && f->bytes[12] == MESSAGE_ETHERTYPE >> 8
		&& f->bytes[13] == (MESSAGE_ETHERTYPE & 0xff);
}

// The time in which the card sends a frame with its FCS, preamble and gap, rounded up.
static uint64_t send_ns(const struct card *c, uint32_t size) {
	uint64_t bits = 8 * ((uint64_t)size + WIRE_FCS + WIRE_OVERHEAD);

	return c->rate_bps == 0 ? 0 : (bits * NS_PER_S + c->rate_bps - 1) / c->rate_bps;
}

bool card_transmit(struct card *c, struct vhost *v, uint64_t now_ns) {
	while (c->nb_out < CARD_OUT) {
		struct card_frame *f = &c->out[c->nb_out];
		uint16_t head;

		f->size = vhost_transmitted(v, f->bytes, sizeof(f->bytes), &head);
		if (f->size == 0)
			return true;
		c->nb_out++;
		c->free_ns = time_max(c->free_ns, now_ns);
		f->time_ns = now_ns;
		if (!card_is_message(f))
			f->time_ns = c->free_ns += send_ns(c, f->size);
		uint32_t last = (c->first + c->nb_sent++) % VHOST_RING_MAX;
		c->sent[last].left_ns = c->free_ns;
		c->sent[last].head = head;
	}
	return false;
}

// Gives back what has left the card by now; true: something has.
static bool complete(struct card *c, struct vhost *v, uint64_t now_ns) {
	bool some = false;

	for (; c->nb_sent > 0 && c->sent[c->first].left_ns <= now_ns; c->nb_sent--, some = true) {
		vhost_done(v, c->sent[c->first].head);
		c->first = (c->first + 1) % VHOST_RING_MAX;
	}
	return some;
}

// Puts frames that have arrived by now into the guest's buffers, as many as there are; true: there
// were some.
static bool receive(struct card *c, struct vhost *v, uint64_t now_ns) {
	uint64_t before = c->rx;

	for (; next_in_ns(c) <= now_ns; c->rx++) {
		const struct card_frame *f = &c->in[c->first_in];

		if (!vhost_receive(v, f->bytes, f->size))
			break;
		c->first_in = (c->first_in + 1) % CARD_IN;
		c->nb_in--;
	}
	return c->rx > before;
}

uint32_t card_serve(struct card *c, struct vhost *v, uint64_t now_ns) {
	bool quiet = now_ns < c->quiet_ns, sent, received;

	sent = !quiet && complete(c, v, now_ns) && vhost_wants_call(v, VHOST_TX);
	received = !quiet && receive(c, v, now_ns) && vhost_wants_call(v, VHOST_RX);
	if (sent || received)
		c->quiet_ns = now_ns + c->coalesce_ns;
	c->interrupts += (uint64_t)sent + received;
	c->stuck = now_ns == c->last_ns && c->rx == c->last_rx ? c->stuck + 1 : 0;
	c->last_ns = now_ns;
	c->last_rx = c->rx;
	return (uint32_t)received << VHOST_RX | (uint32_t)sent << VHOST_TX;
}
