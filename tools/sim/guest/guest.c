// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/guest/guest.h"

#include "common/base/ns.h"
#include "tools/sim/guest/page.h"
#include "tools/sim/guest/socket.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static_assert(CARD_FRAME == FRAME_ROOM, "guest_wire writes there");

int guest_open(struct guest *g, uint32_t index, const struct guest_folder *f, const uint8_t mac[6],
	struct err *err) {
	char time[108], card[108];
	int rc;

	memset(g, 0, sizeof(*g));
	g->index = index;
	g->net = (struct vhost){.listener = -1, .fd = -1, .call_fd = -1};
	guest_path(f, index, "time", time);
	guest_path(f, index, "card", card);
	if ((rc = calendar_open(&g->calendar, time, err)) < 0)
		return rc;
	g->card = &g->calendar.page->card;
	return vhost_open(&g->net, card, mac, err);
}

// The guest's clock at a time of the run.
static uint64_t own(const struct guest *g, uint64_t run_ns) {
	return run_ns + g->epoch_ns;
}

static void hear_samples(struct guest *g, const uint8_t *bytes, uint32_t n, uint64_t now_ns) {
	if (g->nb_samples + n > g->room_samples) {
		snprintf(g->trouble, sizeof(g->trouble),
			"its program reports more in a window than there is room for");
		return;
	}
	memcpy(g->sample + g->nb_samples, bytes, n * sizeof(struct sample));
	for (uint32_t i = 0; i < n; i++)
		g->sample[g->nb_samples++].clock_ns = now_ns;
}

// A message of the program inside.
static void hear(struct guest *g, const struct card_frame *f) {
	struct message m;
	const uint8_t *frame = f->bytes;
	uint32_t at = MESSAGE_ETH + sizeof(m), size = f->size;
	uint64_t now_ns = f->time_ns - g->epoch_ns;

	if (size < at)
		return;
	memcpy(&m, frame + MESSAGE_ETH, sizeof(m));
	if (m.kind == MESSAGE_READY) {
		g->ready = true;
		g->ready_clock_ns = m.clock_ns;
		g->ready_ns = f->time_ns;
	} else if (m.kind == MESSAGE_BAD) {
		uint32_t n = m.count < sizeof(g->trouble) - 1 ? m.count : sizeof(g->trouble) - 1;

		n = n < size - at ? n : size - at;
		memcpy(g->trouble, frame + at, n);
		g->trouble[n] = '\0';
	} else if (m.kind == MESSAGE_SAMPLES && m.count <= SAMPLES_MAX
		&& size >= at + m.count * sizeof(struct sample)) {
		hear_samples(g, frame + at, m.count, now_ns);
	} else if (m.kind == MESSAGE_OUTPUT && m.count <= size - at) {
		program_output(&g->program, frame + at, m.count, g->trouble, sizeof(g->trouble));
	} else if (m.kind == MESSAGE_MEMORY && size >= at + sizeof(g->shortage)) {
		memcpy(&g->shortage, frame + at, sizeof(g->shortage));
	} else if (m.kind == MESSAGE_ENDED) {
		program_ended(&g->program, (int)m.count, now_ns, g->trouble, sizeof(g->trouble));
	}
}

// Takes what the guest has sent.
static void collect(struct guest *g) {
	struct card *c = g->card;

	for (uint32_t i = 0; i < c->nb_out; i++) {
		const struct card_frame *f = &c->out[i];
		struct pkt *p;

		if (card_is_message(f)) {
			hear(g, f);
		} else if ((p = g->wire.packet(g->wire.ctx, g->index, f->bytes, f->size)) == NULL) {
			g->count.other++;
		} else {
			p->arrival_ns = f->time_ns - g->epoch_ns;
			pkt_list_push(&g->outbox, p);
			g->count.tx++;
		}
	}
	c->nb_out = 0;
}

// The guest may go on up to the end of the window, or up to the first frame that there is no room
// for in its card.
static void supply(struct guest *g) {
	struct card *c = g->card;

	for (; g->inbox.head != NULL && c->nb_in < CARD_IN; c->nb_in++) {
		struct card_frame *f = &c->in[(c->first_in + c->nb_in) % CARD_IN];

		f->time_ns = own(g, g->inbox.head->arrival_ns);
		f->size = g->wire.frame(g->wire.ctx, g->index, g->inbox.head, f->bytes);
		pkt_list_push(&g->delivered, pkt_list_pop(&g->inbox));
	}
	g->calendar.page->end_ns = own(g, g->end_ns);
	if (g->inbox.head != NULL)
		g->calendar.page->end_ns =
			time_min(own(g, g->end_ns), own(g, g->inbox.head->arrival_ns));
}

// Its clock when it has something to do next.
static uint64_t due_ns(const struct guest *g) {
	uint64_t asked_ns = g->calendar.requested ? g->calendar.request_ns : NEVER_NS;

	return time_min(asked_ns, card_interrupt_ns(g->card));
}

// What a guest's end, or its silence, is for the user.
static int gone(struct guest *g, const struct guest_folder *f, int rc, struct err *err) {
	char last[256];

	collect(g);
	if (g->trouble[0] != '\0')
		return err_set(err, -EIO, "guest %u: %s", g->index, g->trouble);
	if (rc == -EINTR)
		return err_set(err, rc, "interrupted");
	guest_last_words(f, g->index, last, sizeof(last));
	if (rc == -ETIMEDOUT)
		return err_set(err, rc,
			"guest %u has not answered for %d s: a program in it may spin without a "
			"system call (WEIR_GUEST_WATCHDOG_S sets the time); it last printed: %s",
			g->index, socket_wait_s(), last);
	if (rc == -EPIPE)
		return err_set(err, rc, "guest %u has died; it last printed: %s", g->index, last);
	return err_set(err, rc, "guest %u: %s", g->index, strerror(-rc));
}

static int checked(const struct guest *g) {
	return g->net.bad || g->calendar.page->bad ? -EPROTO : g->trouble[0] != '\0' ? -EIO : 0;
}

// Serves the guest until it waits.
static int serve(struct guest *g) {
	while (!g->calendar.waits) {
		int fds[3] = {g->calendar.fd >= 0 ? g->calendar.fd : g->calendar.listener,
			g->net.fd >= 0 ? g->net.fd : g->net.listener, -1};
		int rc, ready = socket_wait(fds, 2);

		if (ready < 0)
			return ready;
		if ((ready & 2) != 0 && g->net.fd < 0) {
			vhost_accept(&g->net);
		} else if ((ready & 2) != 0) {
			if ((rc = vhost_serve(&g->net)) < 0)
				return rc;
			if (g->net.kicked) {
				while (g->net.kick_queue == VHOST_TX
					&& !card_transmit(
						g->card, &g->net, calendar_now(&g->calendar)))
					collect(g);
				rc = calendar_hurry(&g->calendar, card_completion_ns(g->card));
				if (rc < 0 || (rc = vhost_kicked(&g->net)) < 0)
					return rc;
			}
		} else if ((ready & 1) != 0 && g->calendar.fd < 0) {
			calendar_accept(&g->calendar);
		} else if ((rc = calendar_serve(&g->calendar)) < 0) {
			return rc;
		}
		if ((rc = checked(g)) < 0)
			return rc;
	}
	return 0;
}

// Interrupts the waiting guest, and serves it until it has taken the interrupt.
static int interrupt(struct guest *g, enum vhost_queue queue) {
	int rc = vhost_call(&g->net, queue);

	while (rc == 0) {
		int fds[2] = {g->net.call_fd, g->calendar.fd}, ready = socket_wait(fds, 2);

		if (ready < 0)
			return ready;
		if ((ready & 1) != 0)
			return vhost_called(&g->net);
		rc = calendar_serve(&g->calendar);
	}
	return rc;
}

uint64_t guest_next_ns(const struct guest *g) {
	uint64_t next_ns = g->calendar.requested ? g->calendar.request_ns : NEVER_NS;

	// Frames wait in the card over the end of a window only if it moderates interrupts.
	next_ns = time_min(next_ns,
		g->card->coalesce_ns > 0 ? card_interrupt_ns(g->card)
					 : card_completion_ns(g->card));
	return next_ns == NEVER_NS ? NEVER_NS : time_since(next_ns, g->epoch_ns);
}

// All that is due at one time: interrupts, then the guest runs. A guest that has not asked for that
// time must not run: it asks for none while an earlier interrupt is not served, in a system call
// that takes time with interrupts disabled; it sees what came when it serves that one.
static int run_once(struct guest *g, uint64_t now_ns, uint64_t end_ns) {
	int rc = 0;

	calendar_set(&g->calendar, now_ns);
	uint32_t queues = card_serve(g->card, &g->net, now_ns);
	if ((queues & 1u << VHOST_RX) != 0)
		rc = interrupt(g, VHOST_RX);
	if (rc == 0 && (queues & 1u << VHOST_TX) != 0)
		rc = interrupt(g, VHOST_TX);
	if (queues != 0)
		calendar_refresh(&g->calendar);
	if (rc < 0 || !g->calendar.requested || g->calendar.request_ns > now_ns)
		return rc;
	g->card->runs++;
	rc = calendar_run(&g->calendar, now_ns, time_min(end_ns, card_interrupt_ns(g->card)));
	return rc < 0 ? rc : serve(g);
}

// By messages: what wait_for_run does in the guest's process (page.c).
static int run_here(struct guest *g) {
	uint64_t end_ns = g->calendar.page->end_ns, next_ns;
	int rc = 0;

	guest_pin(g->cpu); // each message would wake the other side on another one
	while (rc == 0 && (next_ns = due_ns(g)) < end_ns && !card_is_stuck(g->card))
		rc = run_once(g, time_max(next_ns, g->calendar.now_ns), end_ns);
	return rc;
}

void guest_begin(struct guest *g, uint64_t end_ns) {
	g->end_ns = end_ns;
	supply(g);
	g->resumed = calendar_uses_page(&g->calendar)
		&& (due_ns(g) < g->calendar.page->end_ns || g->calendar.page->waits == 0);
	if (g->resumed)
		calendar_resume(&g->calendar);
}

int guest_finish(struct guest *g, const struct guest_folder *f, struct err *err) {
	socket_watch(g->pid);
	for (;;) {
		uint64_t received = g->card->rx, limit_ns = g->calendar.page->end_ns;
		int rc = 0;

		if (g->resumed)
			rc = calendar_await(&g->calendar);
		else if (!calendar_uses_page(&g->calendar))
			rc = run_here(g);
		collect(g);
		if (rc < 0 || (rc = checked(g)) < 0)
			return gone(g, f, rc, err);
		bool waits = !calendar_uses_page(&g->calendar) || g->calendar.page->waits != 0;
		if (waits && limit_ns == own(g, g->end_ns) && due_ns(g) >= limit_ns)
			return 0;
		if (card_is_stuck(g->card)
			|| (waits && g->inbox.head != NULL && g->card->rx == received))
			return err_set(err, -EIO, "guest %u takes no frames: its memory is full",
				g->index);
		guest_begin(g, g->end_ns);
	}
}

static int run(struct guest *g, const struct guest_folder *f, uint64_t end_ns, struct err *err) {
	guest_begin(g, end_ns);
	return guest_finish(g, f, err);
}

// Puts the run's clock beside the guest's: what its program is to add, modulo 2^64, since the run
// begins later.
static bool deliver_go(struct guest *g) {
	struct {
		uint8_t pad[2], eth[MESSAGE_ETH];
		struct message head;
	} go = {.head = {.kind = MESSAGE_GO,
			.clock_ns = g->ready_ns - g->ready_clock_ns - GUEST_EPOCH_NS}};

	memcpy(go.eth, g->net.mac, sizeof(g->net.mac));
	memcpy(go.eth + 6, g->net.mac, sizeof(g->net.mac));
	go.eth[12] = MESSAGE_ETHERTYPE >> 8;
	go.eth[13] = MESSAGE_ETHERTYPE & 0xff;
	return vhost_receive(&g->net, go.eth, sizeof(go.eth) + sizeof(go.head));
}

static int not_ready(const struct guest *g, const struct guest_folder *f, struct err *err) {
	char last[256];

	guest_last_words(f, g->index, last, sizeof(last));
	return err_set(err, -EIO,
		"guest %u has booted, but its program has not begun; it last printed: %s", g->index,
		last);
}

int guest_boot(struct guest *g, const struct guest_folder *f, struct err *err) {
	uint64_t go_ns = GUEST_EPOCH_NS - NS_PER_MS;
	int rc;

	socket_watch(g->pid);
	if ((rc = serve(g)) < 0)
		return gone(g, f, rc, err);
	if ((rc = run(g, f, go_ns, err)) < 0)
		return rc;
	if (!g->ready)
		return not_ready(g, f, err);
	calendar_set(&g->calendar, go_ns);
	if (!deliver_go(g))
		return err_set(err, -EIO, "guest %u has no buffers", g->index);
	rc = interrupt(g, VHOST_RX);
	calendar_refresh(&g->calendar);
	for (uint32_t i = 0; i < VHOST_QUEUES; i++) {
		g->calendar.page->ring[i].taken = g->net.ring[i].taken;
		g->calendar.page->ring[i].given = g->net.ring[i].given;
	}
	g->calendar.page->end_ns = GUEST_EPOCH_NS;
	bool by_page = calendar_leave_messages(&g->calendar);
	if (rc == 0)
		rc = calendar_run(&g->calendar, go_ns, GUEST_EPOCH_NS);
	if (rc == 0)
		rc = by_page ? calendar_await(&g->calendar) : serve(g);
	if (rc < 0)
		return gone(g, f, rc, err);
	if ((rc = run(g, f, GUEST_EPOCH_NS, err)) < 0)
		return rc;
	g->epoch_ns = GUEST_EPOCH_NS;
	g->card->free_ns = g->card->quiet_ns = 0;
	g->card->rx = g->card->interrupts = g->card->runs = 0;
	g->count = (struct guest_count){0};
	return 0;
}

void guest_close(struct guest *g) {
	if (g->pid > 0)
		guest_kill(g->pid);
	g->pid = 0;
	calendar_close(&g->calendar);
	vhost_close(&g->net);
	program_close(&g->program);
	free(g->sample);
	g->sample = NULL;
}
