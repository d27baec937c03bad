// SPDX-License-Identifier: BSD-3-Clause
#include "tools/sim/guest/guest.h"

#include "common/base/ns.h"
#include "common/net/seg.h"
#include "common/net/wire.h"
#include "tools/sim/guest/socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#define STUCK_MAX 64 // times a guest is run at one time without taking a frame that waits

int guest_open(struct guest *g, uint32_t index, const struct guest_folder *f, const uint8_t mac[6],
	struct err *err) {
	char time[108], card[108];
	int rc;

	memset(g, 0, sizeof(*g));
	g->index = index;
	g->net = (struct vhost){.listener = -1, .fd = -1, .call_fd = -1};
	guest_path(f, index, "time", time);
	guest_path(f, index, "card", card);
	rc = calendar_open(&g->calendar, time, err);
	return rc < 0 ? rc : vhost_open(&g->net, card, mac, err);
}

// What a guest's end, or its silence, is for the user.
static int gone(struct guest *g, const struct guest_folder *f, int rc, struct err *err) {
	char last[256];

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

// The guest's clock at a time of the run.
static uint64_t own(const struct guest *g, uint64_t run_ns) {
	return run_ns + g->epoch_ns;
}

static uint64_t next_left_ns(const struct guest_card *c) {
	return c->nb_sent == 0 ? NEVER_NS : c->sent[c->first].left_ns;
}

static uint64_t inbox_ns(const struct guest *g) {
	return g->inbox.head == NULL ? NEVER_NS : g->inbox.head->arrival_ns;
}

// When the card interrupts next, for frames that have left it or arrived.
static uint64_t interrupt_ns(const struct guest *g) {
	return time_max(time_min(inbox_ns(g), next_left_ns(&g->card)), g->card.quiet_ns);
}

// The same for what has left it, which is all that the guest itself causes.
static uint64_t completion_ns(const struct guest *g) {
	return time_max(next_left_ns(&g->card), g->card.quiet_ns);
}

static void hear_samples(struct guest *g, const uint8_t *bytes, uint32_t n) {
	uint64_t now_ns = calendar_now(&g->calendar) - g->epoch_ns;

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
static void hear(struct guest *g, const uint8_t *frame, uint32_t size) {
	struct message m;
	uint32_t at = MESSAGE_ETH + sizeof(m);

	if (size < at)
		return;
	memcpy(&m, frame + MESSAGE_ETH, sizeof(m));
	if (m.kind == MESSAGE_READY) {
		g->ready = true;
		g->ready_clock_ns = m.clock_ns;
		g->ready_ns = calendar_now(&g->calendar);
	} else if (m.kind == MESSAGE_BAD) {
		uint32_t n = m.count < sizeof(g->trouble) - 1 ? m.count : sizeof(g->trouble) - 1;

		n = n < size - at ? n : size - at;
		memcpy(g->trouble, frame + at, n);
		g->trouble[n] = '\0';
	} else if (m.kind == MESSAGE_SAMPLES && m.count <= SAMPLES_MAX
		&& size >= at + m.count * sizeof(struct sample)) {
		hear_samples(g, frame + at, m.count);
	} else if (m.kind == MESSAGE_OUTPUT && m.count <= size - at) {
		program_output(&g->program, frame + at, m.count, g->trouble, sizeof(g->trouble));
	} else if (m.kind == MESSAGE_MEMORY && size >= at + sizeof(g->shortage)) {
		memcpy(&g->shortage, frame + at, sizeof(g->shortage));
	} else if (m.kind == MESSAGE_ENDED) {
		program_ended(&g->program, (int)m.count, calendar_now(&g->calendar) - g->epoch_ns,
			g->trouble, sizeof(g->trouble));
	}
}

static bool is_message(const uint8_t *frame, uint32_t size) {
	return size >= WIRE_ETH && frame[12] == MESSAGE_ETHERTYPE >> 8
		&& frame[13] == (MESSAGE_ETHERTYPE & 0xff);
}

// The time in which the card sends a frame with its FCS, preamble and gap, rounded up.
static uint64_t send_ns(const struct guest_card *c, uint32_t size) {
	uint64_t bits = 8 * ((uint64_t)size + WIRE_FCS + WIRE_OVERHEAD);

	return c->rate_bps == 0 ? 0 : (bits * NS_PER_S + c->rate_bps - 1) / c->rate_bps;
}

// Takes what the guest transmits now.
static void transmit(struct guest *g) {
	uint64_t now_ns = calendar_now(&g->calendar) - g->epoch_ns;
	struct guest_card *c = &g->card;
	uint8_t frame[FRAME_ROOM];
	uint32_t size;
	uint16_t head;

	while ((size = vhost_transmitted(&g->net, frame, sizeof(frame), &head)) > 0) {
		struct pkt *p = NULL;

		if (is_message(frame, size))
			hear(g, frame, size);
		else if ((p = g->wire.packet(g->wire.ctx, g->index, frame, size)) == NULL)
			g->count.other++;
		c->free_ns = time_max(c->free_ns, now_ns);
		if (p != NULL) {
			c->free_ns += send_ns(c, size);
			p->arrival_ns = c->free_ns;
			pkt_list_push(&g->outbox, p);
			g->count.tx++;
		}
		uint32_t last = (c->first + c->nb_sent++) % VHOST_RING_MAX;
		c->sent[last].left_ns = c->free_ns;
		c->sent[last].head = head;
	}
}

static int checked(const struct guest *g) {
	return g->net.bad ? -EPROTO : g->trouble[0] != '\0' ? -EIO : 0;
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
				if (g->net.kick_queue == VHOST_TX)
					transmit(g);
				uint64_t due_ns = completion_ns(g);

				rc = due_ns == NEVER_NS
					? 0
					: calendar_hurry(&g->calendar, own(g, due_ns));
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

	g->count.interrupts++;
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

// Gives back what has left the card by now; true: something has.
static bool complete(struct guest *g, uint64_t now_ns) {
	struct guest_card *c = &g->card;
	bool some = false;

	for (; c->nb_sent > 0 && c->sent[c->first].left_ns <= now_ns; c->nb_sent--, some = true) {
		vhost_done(&g->net, c->sent[c->first].head);
		c->first = (c->first + 1) % VHOST_RING_MAX;
	}
	return some;
}

// Puts frames that have arrived by now into the guest's buffers, as many as there are; true: there
// were some.
static bool receive(struct guest *g, uint64_t now_ns) {
	uint8_t frame[FRAME_ROOM];
	bool some = false;

	while (g->inbox.head != NULL && g->inbox.head->arrival_ns <= now_ns) {
		uint32_t size = g->wire.frame(g->wire.ctx, g->index, g->inbox.head, frame);

		if (!vhost_receive(&g->net, frame, size))
			break;
		g->count.rx++;
		pkt_list_push(&g->delivered, pkt_list_pop(&g->inbox));
		some = true;
	}
	return some;
}

uint64_t guest_next_ns(const struct guest *g) {
	uint64_t asked = NEVER_NS;

	if (g->calendar.requested)
		asked = time_since(g->calendar.request_ns, g->epoch_ns);
	// Frames wait in the card over the end of a window only if it moderates interrupts.
	return time_min(asked, g->card.coalesce_ns > 0 ? interrupt_ns(g) : next_left_ns(&g->card));
}

// Interrupts the guest and lets it run, without messages. All frames that it makes available are of
// one time, since its clock stands still from the first of them until it waits.
static int resume(struct guest *g, uint64_t now_ns, uint64_t end_ns, uint32_t calls) {
	uint64_t until_ns = time_min(end_ns, interrupt_ns(g));
	int rc;

	if (calls == 0 && (!g->calendar.requested || g->calendar.request_ns > own(g, now_ns)))
		return 0;
	rc = calendar_resume(&g->calendar, own(g, now_ns), own(g, until_ns), calls);
	if (rc < 0)
		return rc;
	g->count.interrupts += (uint64_t)__builtin_popcount(calls);
	g->count.runs += calendar_ran(&g->calendar);
	if (calendar_kicked(&g->calendar))
		transmit(g);
	return checked(g);
}

// All that is due at one time: interrupts, then the guest runs, at most until `end_ns`. A guest
// that has not asked for that time must not run: it asks for none while an earlier interrupt is not
// served, in a system call that takes time with interrupts disabled; it sees what came when it
// serves that one.
static int run_once(struct guest *g, uint64_t now_ns, uint64_t end_ns) {
	bool quiet = now_ns < g->card.quiet_ns, sent, received;
	int rc = 0;

	calendar_set(&g->calendar, own(g, now_ns));
	sent = !quiet && complete(g, now_ns) && vhost_wants_call(&g->net, VHOST_TX);
	received = !quiet && receive(g, now_ns) && vhost_wants_call(&g->net, VHOST_RX);
	if (sent || received)
		g->card.quiet_ns = now_ns + g->card.coalesce_ns;
	if (calendar_uses_page(&g->calendar))
		return resume(g, now_ns, end_ns,
			(uint32_t)received << VHOST_RX | (uint32_t)sent << VHOST_TX);
	if (received)
		rc = interrupt(g, VHOST_RX);
	if (rc == 0 && sent)
		rc = interrupt(g, VHOST_TX);
	if (sent || received)
		calendar_refresh(&g->calendar);
	if (rc < 0 || !g->calendar.requested || g->calendar.request_ns > own(g, now_ns))
		return rc;
	uint64_t until_ns = time_min(end_ns, interrupt_ns(g));
	g->count.runs++;
	rc = calendar_run(&g->calendar, own(g, now_ns), own(g, until_ns));
	return rc < 0 ? rc : serve(g);
}

int guest_run(struct guest *g, const struct guest_folder *f, uint64_t end_ns, struct err *err) {
	uint32_t stuck = 0;
	uint64_t last_ns = NEVER_NS;

	socket_watch(g->pid);

	for (;;) {
		uint64_t now_ns = time_min(guest_next_ns(g), interrupt_ns(g));
		uint64_t delivered = g->count.rx;
		int rc;

		if (now_ns >= end_ns)
			return 0;
		now_ns = time_max(now_ns, time_since(g->calendar.now_ns, g->epoch_ns));
		if ((rc = run_once(g, now_ns, end_ns)) < 0)
			return gone(g, f, rc, err);
		stuck = now_ns == last_ns && delivered == g->count.rx ? stuck + 1 : 0;
		last_ns = now_ns;
		if (stuck > STUCK_MAX && inbox_ns(g) <= now_ns)
			return err_set(err, -EIO, "guest %u takes no frames: its memory is full",
				g->index);
	}
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
	if ((rc = guest_run(g, f, go_ns, err)) < 0)
		return rc;
	if (!g->ready)
		return not_ready(g, f, err);
	calendar_set(&g->calendar, go_ns);
	if (!deliver_go(g))
		return err_set(err, -EIO, "guest %u has no buffers", g->index);
	rc = interrupt(g, VHOST_RX);
	calendar_refresh(&g->calendar);
	bool by_page = calendar_leave_messages(&g->calendar);
	if (rc == 0)
		rc = calendar_run(&g->calendar, go_ns, GUEST_EPOCH_NS);
	if (rc == 0)
		rc = by_page ? calendar_await(&g->calendar) : serve(g);
	if (rc == 0 && by_page && calendar_kicked(&g->calendar))
		transmit(g);
	if (rc < 0)
		return gone(g, f, rc, err);
	if ((rc = guest_run(g, f, GUEST_EPOCH_NS, err)) < 0)
		return rc;
	g->epoch_ns = GUEST_EPOCH_NS;
	g->card.free_ns = g->card.quiet_ns = 0;
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
