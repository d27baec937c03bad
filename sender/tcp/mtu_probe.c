// SPDX-License-Identifier: BSD-3-Clause
// Packetization layer path MTU discovery (RFC 4821): where no router says that packets are too
// large, their size is found by sending some.
//
//	black hole   four timeouts in a row: segments of 1024 bytes; each one more halves them
//	search       low has arrived, high is the most that may; probe (low + high) / 2
//	             it arrives: low = probe;  three are lost: high = probe - 1
//	             ends at high - low < 8
//	raise        segments of `low`, and of the window as many fewer
//
// The constants are Linux's (tcp_base_mss, tcp_probe_threshold, tcp_retries1).
//
// Where we differ from Linux, and why
//   - A probe carries the last bytes that were acknowledged, and a D-SACK (RFC 2883) reports its
//     arrival; there it is new data. Its loss needs no repair and cannot be taken for congestion.
//     Without SACK there is no search.
//   - Three lost probes mean that the size is too large, as in RFC 8899 section 5.1.2; in Linux
//     one.
//   - A search that has ended is not repeated after ten minutes. As there, a black hole begins
//     another.
//   - Linux scales the window of any control. Here that of one which keeps its own is as before, in
//     segments.
#include "sender/endpoint/endpoint.h"
#include "sender/tcp/loss.h"
#include "sender/tcp/path_mtu.h"

#define BASE 1024
#define LEAST MSS_MIN
#define TIMEOUTS 3 // after so many
#define THRESHOLD 8
#define TRIES 3

static void search_from(struct flow *f, uint32_t low, uint32_t high) {
	f->search = (struct mtu_search){.low = low, .high = high};
	f->searches = f->sack_ok && high > low;
	if (f->searches)
		f->rtx_end = UINT64_MAX; // each ACK is looked at
}

void mtu_probe_open(struct endpoint *e, struct flow *f) {
	uint32_t high = f->payload;

	if (flow_group(e, f)->mtu_probing != MTU_PROBING_ALWAYS || high <= BASE)
		return;
	f->payload = BASE;
	search_from(f, BASE, high);
}

void mtu_probe_timeout(struct endpoint *e, struct flow *f, uint64_t now_ns) {
	uint32_t high = f->search.high > f->payload ? f->search.high : f->payload;
	uint32_t low = f->payload > BASE ? BASE : f->payload / 2;

	if (flow_group(e, f)->mtu_probing == MTU_PROBING_OFF || f->timeouts <= TIMEOUTS
		|| low < LEAST)
		return;
	if (path_mtu_resize(e, f, low, true, PATH_MTU_BLACK_HOLE, now_ns))
		search_from(f, low, high);
}

static void raise_payload(struct endpoint *e, struct flow *f, uint64_t now_ns) {
	double scale = (double)f->payload / f->search.low;

	if (!path_mtu_resize(e, f, f->search.low, false, PATH_MTU_PROBED, now_ns))
		return;
	f->out.cwnd_segs = f->out.cwnd_segs * scale > 1 ? f->out.cwnd_segs * scale : 1;
	f->cwnd_segs = f->out.cwnd_segs;
}

static void send_probe(struct endpoint *e, struct flow *f, uint64_t now_ns) {
	struct mtu_search *m = &f->search;
	struct seg s;

	m->size = (m->low + m->high + 1) / 2;
	m->seq = f->iss + 1 + (uint32_t)f->una_bytes - m->size;
	m->behind = f->nxt;
	flow_header(f, &s, m->seq, (uint16_t)m->size, SEG_ACK, now_ns);
	f->count.sent_segs++;
	f->count.retransmits++;
	e->count.data_tx_segs++;
	endpoint_send(e, f->id, &s, ECN_NOT_ECT, now_ns);
}

static void lost(struct mtu_search *m) {
	if (++m->tries == TRIES) {
		m->high = m->size - 1;
		m->tries = 0;
	}
	m->size = 0;
}

void mtu_probe_ack(struct endpoint *e, struct flow *f, const struct seg *s, uint64_t now_ns) {
	struct mtu_search *m = &f->search;

	if (s->sack_count > 0 && mtu_probe_arrived(f, &s->sack[0])) {
		m->low = m->size;
		m->size = m->tries = 0;
	} else if (m->size > 0 && f->una > m->behind) {
		lost(m);
	}
	if (m->size > 0 || f->ca != FLOW_CA_OPEN || (f->sacked | f->lost) != 0)
		return;
	if (m->low > f->payload)
		raise_payload(e, f, now_ns);
	f->searches = m->high >= m->low + THRESHOLD;
	if (!f->searches)
		f->rtx_end = f->keep ? UINT64_MAX : f->nxt;
	else if (f->una_bytes > m->high && f->una < f->nxt)
		send_probe(e, f, now_ns);
}
