// SPDX-License-Identifier: BSD-3-Clause
// The first program of a guest: sets up the interface, then opens connections when they are due and
// sends, or accepts and receives, and reports what the kernel says of them (TCP_INFO). If the
// config names a program of the host, that one sends and receives, and this one reports.
//
// It is linked statically and runs as process 1. It reads clocks rarely, because each reading takes
// 256 ns of the guest's time.
#include "tools/sim/guest/init.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define WRITE_BYTES (256 * 1024)
#define EVENTS 64
#define NONE UINT32_MAX
#define PORTS 65536

enum state { WAITING, CONNECTING, OPEN, FINISHING, ENDED };

struct flow {
	struct guest_flow config;
	uint64_t left; // bytes still to be written
	uint64_t received; // but what its reader is reading
	bool has_reader;
	int fd;
	enum state state;
};

static struct flow *flow;
static uint32_t by_port[PORTS]; // of the sender: its flow
static int ticks = -1, poller = -1, listener = -1;
static bool program; // the config names one of the host, which does all
static bool paused; // the receiver does not read
static uint64_t offset_ns; // the run's clock less ours
static uint64_t next_end_ns; // of an interval, in the run's time
static uint32_t begun; // flows before this one have been started, in the order of their start
static uint32_t *order;
static char zeros[WRITE_BYTES];

static int compare_starts(const void *a, const void *b) {
	const struct guest_flow *x = &flow[*(const uint32_t *)a].config,
				*y = &flow[*(const uint32_t *)b].config;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return x->flow < y->flow ? -1 : x->flow > y->flow;
}

static void take_config(const void *file) {
	const struct guest_flow *each;

	config = file;
	each = (const void *)(config + 1);
	program = config->run[0] != '\0';
	flow = calloc(config->flows + 1u, sizeof(*flow));
	order = calloc(config->flows + 1u, sizeof(*order));
	if (flow == NULL || order == NULL)
		fail("no memory for %u flows", config->flows);
	for (uint32_t i = 0; i < PORTS; i++)
		by_port[i] = NONE;
	for (uint32_t i = 0; i < config->flows; i++) {
		flow[i] = (struct flow){.config = each[i], .left = each[i].bytes, .fd = -1};
		order[i] = i;
		by_port[each[i].port] = i;
	}
	qsort(order, config->flows, sizeof(*order), compare_starts);
}

static void watch(int fd, uint32_t events, uint64_t what, int op) {
	struct epoll_event e = {.events = events, .data.u64 = what};

	if (epoll_ctl(poller, op, fd, &e) < 0)
		fail("epoll: %s", strerror(errno));
}

static void ask_kernel(const struct flow *f, struct sample *s) {
	struct tcp_info t;

	if (!tcp_info_of(f->fd, &t))
		return;
	// The kernel counts an acknowledged FIN as a byte.
	bool fin = f->state == FINISHING && t.tcpi_unacked == 0 && t.tcpi_notsent_bytes == 0;
	sample_of(s, &t);
	s->bytes -= fin;
}

// Adds a sample to the message under way, and sends that if it is full or asked for.
static void report(const struct flow *f, enum sample_event event, int error, bool at_once) {
	struct sample *s = new_sample();

	memset(s, 0, sizeof(*s));
	if (f->fd >= 0)
		ask_kernel(f, s);
	if (event == SAMPLE_RECEIVED)
		s->bytes = f->received + (f->has_reader ? reader_bytes(f->fd) : 0);
	s->flow = f->config.flow;
	s->event = (uint8_t)event;
	s->error = (uint8_t)error;
	if (at_once || new_sample_full())
		send_samples();
}

static void end_flow(struct flow *f, enum sample_event event, int error) {
	report(f, event, error, true);
	close(f->fd);
	f->fd = -1;
	f->state = ENDED;
}

static void start_flow(struct flow *f) {
	struct address from = address_of(config->ip, f->config.port);
	struct address to = address_of(config->peer_ip, config->port);
	int one = 1, mss = f->config.mss;

	f->fd = socket(address_family(), SOCK_STREAM | SOCK_NONBLOCK, 0);
	if (f->fd < 0 || setsockopt(f->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0
		|| (mss > 0 && setsockopt(f->fd, IPPROTO_TCP, TCP_MAXSEG, &mss, sizeof(mss)) < 0)
		|| address_set_tos(f->fd) < 0 || bind(f->fd, &from.any, from.size) < 0)
		fail("flow %u: %s", f->config.flow, strerror(errno));
	f->state = CONNECTING;
	if (connect(f->fd, &to.any, to.size) < 0 && errno != EINPROGRESS)
		fail("flow %u: connect: %s", f->config.flow, strerror(errno));
	watch(f->fd, EPOLLOUT, (uint64_t)(f - flow), EPOLL_CTL_ADD);
}

// All is written: a FIN follows. The peer's FIN is the proof that everything has arrived, unless it
// was there before:
// then the end of the connection is, which is a change of its own (EPOLLET).
static void finish(struct flow *f) {
	shutdown(f->fd, SHUT_WR);
	f->state = FINISHING;
	watch(f->fd, EPOLLIN | EPOLLET, (uint64_t)(f - flow), EPOLL_CTL_MOD);
}

static bool all_acknowledged(const struct flow *f) {
	struct tcp_info t;

	return tcp_info_of(f->fd, &t) && t.tcpi_unacked == 0 && t.tcpi_notsent_bytes == 0;
}

static void write_flow(struct flow *f) {
	while (f->left > 0) {
		size_t n = f->left < WRITE_BYTES ? (size_t)f->left : WRITE_BYTES;
		ssize_t wrote = send(f->fd, zeros, n, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (wrote < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (wrote < 0) {
			end_flow(f, SAMPLE_FAILED, errno);
			return;
		}
		if (f->left != GUEST_ENDLESS)
			f->left -= (uint64_t)wrote;
	}
	finish(f);
}

static void serve_sender(struct flow *f, uint32_t events) {
	int error = 0;
	socklen_t size = sizeof(error);

	if ((events & (EPOLLERR | EPOLLHUP)) != 0)
		getsockopt(f->fd, SOL_SOCKET, SO_ERROR, &error, &size);
	if (error != 0) {
		end_flow(f, SAMPLE_FAILED, error);
		return;
	}
	if (f->state == CONNECTING) {
		f->state = OPEN;
		report(f, SAMPLE_OPENED, 0, true);
	}
	if (f->state == OPEN) {
		write_flow(f);
	} else if (f->state == FINISHING) {
		ssize_t n = recv(f->fd, zeros, WRITE_BYTES, MSG_DONTWAIT | MSG_TRUNC);

		if (n == 0 && all_acknowledged(f))
			end_flow(f, SAMPLE_CLOSED, 0);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			end_flow(f, SAMPLE_FAILED, errno);
	}
}

static void accept_flows(void) {
	struct address from;
	int fd;

	while (from.size = sizeof(from.six),
		(fd = accept4(listener, &from.any, &from.size, 0)) >= 0) {
		// The port is at the same place in both.
		uint32_t i = by_port[ntohs(from.four.sin_port)];

		if (i == NONE || flow[i].fd >= 0) {
			close(fd);
			continue;
		}
		flow[i].fd = fd;
		flow[i].state = OPEN;
		flow[i].has_reader = reader_start(i, fd);
		if (!flow[i].has_reader)
			watch(fd, paused ? 0 : EPOLLIN, i, EPOLL_CTL_ADD);
	}
}

static void end_receiver(struct flow *f, int error) {
	report(f, SAMPLE_RECEIVED, error, true);
	close(f->fd);
	f->fd = -1;
	f->state = ENDED;
}

static void end_of_reader(void) {
	struct reader_end end = reader_ended();
	struct flow *f = &flow[end.flow];

	f->has_reader = false;
	f->received += end.bytes;
	end_receiver(f, end.error);
}

// Reads and throws away; the kernel need not copy it. One call takes all that is there; what comes
// after it, the end too, is another event. Each call costs the host a few context switches.
static void serve_receiver(struct flow *f) {
	ssize_t n = recv(f->fd, NULL, 1 << 30, MSG_DONTWAIT | MSG_TRUNC);

	if (n > 0)
		f->received += (uint64_t)n;
	if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	end_receiver(f, n < 0 ? errno : 0);
}

// Between `pause` and `resume` nothing is read, and the window closes.
static void pause_reading(bool on) {
	paused = on;
	for (uint32_t i = 0; i < config->flows; i++) {
		if (flow[i].fd >= 0)
			watch(flow[i].fd, on ? 0 : EPOLLIN, i, EPOLL_CTL_MOD);
	}
}

// What `close_at` asks for. A receiver reads what is there, or its FIN would be a reset.
static void close_flow(struct flow *f) {
	struct linger at_once = {.l_onoff = 1};

	if (config->close_by_reset)
		setsockopt(f->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	if (config->sender && config->close_by_reset)
		end_flow(f, SAMPLE_FAILED, ECONNRESET);
	else if (config->sender && f->state == OPEN)
		finish(f);
	if (config->sender)
		return;
	serve_receiver(f);
	if (f->fd >= 0)
		end_receiver(f, 0);
}

static void sample_all(void) {
	enum sample_event event = config->sender ? SAMPLE_NOW : SAMPLE_RECEIVED;

	if (program) {
		sockets_sample();
		sync();
		return;
	}
	for (uint32_t i = 0; i < config->flows; i++) {
		if (flow[i].state == OPEN || flow[i].state == FINISHING)
			report(&flow[i], event, 0, false);
	}
	send_samples();
}

// What the config has beside flows, in the order in which it is done at one time.
enum { EVENT_PAUSE, EVENT_RESUME, EVENT_CLOSE, EVENTS_OF_CONFIG };
static bool event_done[EVENTS_OF_CONFIG];

static uint64_t event_ns(uint32_t event) {
	if (event == EVENT_CLOSE)
		return config->close_ns;
	if (config->sender)
		return GUEST_NEVER;
	return event == EVENT_PAUSE ? config->pause_ns : config->resume_ns;
}

static uint64_t sample_ns(void) {
	return time_since(next_end_ns, config->ahead_ns);
}

// The next thing that is due, in the run's time.
static uint64_t next_ns(void) {
	uint64_t t = sample_ns();

	if (program)
		return program_next_ns() < t ? program_next_ns() : t;
	for (uint32_t i = 0; i < EVENTS_OF_CONFIG; i++) {
		if (!event_done[i] && event_ns(i) < t)
			t = event_ns(i);
	}
	if (!config->sender)
		return t;
	if (begun < config->flows && flow[order[begun]].config.start_ns < t)
		t = flow[order[begun]].config.start_ns;
	for (uint32_t i = 0; i < begun; i++) {
		const struct flow *f = &flow[order[i]];

		if (f->state == OPEN && f->config.stop_ns < t)
			t = f->config.stop_ns;
	}
	return t;
}

static void do_events(uint64_t now_ns) {
	for (uint32_t i = 0; i < EVENTS_OF_CONFIG; i++) {
		if (event_done[i] || event_ns(i) > now_ns)
			continue;
		event_done[i] = true;
		if (i != EVENT_CLOSE)
			pause_reading(i == EVENT_PAUSE);
		for (uint32_t k = 0; i == EVENT_CLOSE && k < config->flows; k++) {
			if (flow[k].fd >= 0)
				close_flow(&flow[k]);
		}
	}
}

static void set_timer(void) {
	uint64_t t = next_ns() - offset_ns;
	struct itimerspec at = {
		.it_value = {.tv_sec = (time_t)(t / NS_PER_S), .tv_nsec = (long)(t % NS_PER_S)}};

	if (timerfd_settime(ticks, TFD_TIMER_ABSTIME, &at, NULL) < 0)
		fail("timer: %s", strerror(errno));
}

static void do_due(void) {
	uint64_t expired, now_ns;

	if (read(ticks, &expired, sizeof(expired)) != sizeof(expired))
		return;
	now_ns = clock_ns() + offset_ns;
	if (program)
		program_due(now_ns);
	while (config->sender && !program && begun < config->flows
		&& flow[order[begun]].config.start_ns <= now_ns)
		start_flow(&flow[order[begun++]]);
	for (uint32_t i = 0; config->sender && i < begun; i++) {
		struct flow *f = &flow[order[i]];

		if (f->state == OPEN && f->config.stop_ns <= now_ns)
			finish(f);
	}
	do_events(now_ns);
	if (sample_ns() <= now_ns) {
		sample_all();
		memory_report();
		next_end_ns = end_after_ns(next_end_ns);
	}
	set_timer();
}

#define WATCH_CONTROL UINT64_MAX
#define WATCH_TICKS (UINT64_MAX - 1)
#define WATCH_LISTENER (UINT64_MAX - 2)
#define WATCH_PROGRAM (UINT64_MAX - 3)
#define WATCH_SOCKETS (UINT64_MAX - 4)
#define WATCH_READERS (UINT64_MAX - 5)

void watch_program(int fd) {
	watch(fd, EPOLLIN, WATCH_PROGRAM, EPOLL_CTL_ADD);
}

static void serve(const struct epoll_event *e) {
	struct flow *f = &flow[e->data.u64 & UINT32_MAX]; // if it is one

	if (e->data.u64 == WATCH_TICKS)
		do_due();
	else if (e->data.u64 == WATCH_LISTENER)
		accept_flows();
	else if (e->data.u64 == WATCH_PROGRAM)
		program_serve();
	else if (e->data.u64 == WATCH_SOCKETS)
		sockets_ended();
	else if (e->data.u64 == WATCH_READERS)
		end_of_reader();
	else if (f->fd >= 0 && config->sender)
		serve_sender(f, e->events);
	else if (f->fd >= 0)
		serve_receiver(f);
}

// Tells the run that all is set up, and learns its clock.
static void begin(void) {
	struct {
		uint8_t pad[2], eth[MESSAGE_ETH];
		struct message head;
	} go;

	send_message(MESSAGE_READY, 0, 0);
	do {
		if (recv(control, go.eth, sizeof(go.eth) + sizeof(go.head), 0) < 0)
			fail("packet socket: %s", strerror(errno));
	} while (go.head.kind != MESSAGE_GO);
	offset_ns = go.head.clock_ns;
	next_end_ns = end_after_ns(0);
	set_timer();
}

int main(int argc, char **argv) {
	struct epoll_event event[EVENTS];

	mount_proc();
	if (argc > 1 && strcmp(argv[1], "ask") == 0)
		modules_ask(argc - 2, argv + 2);
	take_config(read_config());
	set_up();
	poller = epoll_create1(0);
	ticks = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	if (poller < 0 || ticks < 0)
		fail("epoll, timer: %s", strerror(errno));
	watch(ticks, EPOLLIN, WATCH_TICKS, EPOLL_CTL_ADD);
	if (program) {
		program_prepare();
		watch_program(program_deaths());
		watch(sockets_open(), EPOLLIN, WATCH_SOCKETS, EPOLL_CTL_ADD);
	} else if (!config->sender) {
		watch(readers_open(), EPOLLIN, WATCH_READERS, EPOLL_CTL_ADD);
		listener = open_listener();
		watch(listener, EPOLLIN, WATCH_LISTENER, EPOLL_CTL_ADD);
	}
	begin();
	for (;;) {
		int n = epoll_wait(poller, event, EVENTS, -1);

		for (int i = 0; i < n; i++)
			serve(&event[i]);
	}
}
