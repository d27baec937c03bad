// SPDX-License-Identifier: BSD-3-Clause
// How a connection begins: which end opened it, SYNs in any order, what they agree on, and the
// handshake's round trips.
#include "common/base/likely.h"
#include "sender/tcp/accecn.h"
#include "tools/pcap/track.h"

// Which end opened the connection of which this is the first packet: the one that sends a SYN, or
// is sent a SYN-ACK; where there is neither, the one whose port is none of a service (below 1024,
// or below those that hosts choose from).
uint8_t track_client_of(const struct packet *p) {
	static const uint16_t services[] = {1024, 32768};
	uint8_t other = !p->from;

	if ((p->seg.flags & SEG_SYN) != 0)
		return (p->seg.flags & SEG_ACK) != 0 ? other : p->from;
	for (size_t i = 0; i < sizeof(services) / sizeof(services[0]); i++) {
		if ((p->key.port[0] < services[i]) != (p->key.port[1] < services[i]))
			return p->key.port[0] < services[i];
	}
	return p->from;
}

// A SYN on a connection that is there: sent again, seen behind the SYN-ACK that answers it (two
// taps, a mirror port), one of two that cross (RFC 9293 figure 8), or another connection of the
// same addresses and ports?
bool track_reused(const struct track_at *a) {
	const struct track_snd *snd = &a->f->snd[a->d], *other = &a->f->snd[!a->d];

	if ((a->p->seg.flags & (SEG_SYN | SEG_ACK)) != SEG_SYN)
		return false;
	if ((snd->flags & (DIR_SYN | DIR_SYN_ACKED)) != 0)
		return track_rare(a, a->d)->isn != a->p->seg.seq;
	// Both, or the other alone, have sent nothing but a SYN.
	if ((other->flags & (DIR_SYN | DIR_ANSWERED)) == DIR_SYN
		&& (snd->flags & (DIR_KNOWN | DIR_ACKED)) == 0)
		return false;
	return (snd->flags & DIR_KNOWN) != 0 || (other->flags & DIR_KNOWN) != 0;
}

// Windows are scaled only if both SYNs have the option (RFC 7323 section 2.2), and a SYN-ACK only
// if the SYN has it. Options that were not captured whole tell nothing.
static void agree_scale(struct track_at *a) {
	struct track_snd *own = &a->f->snd[a->d], *other = &a->f->snd[!a->d];
	const struct seg *s = &a->p->seg;
	bool both = (other->flags & DIR_SYN) != 0;

	own->options = s->options;
	if ((s->options & SEG_OPT_WSCALE) == 0 && a->p->options != DECODE_OPTIONS_WHOLE)
		return;
	if ((s->options & SEG_OPT_WSCALE) == 0
		|| (both && (other->options & SEG_OPT_WSCALE) == 0)) {
		own->wscale = other->wscale = 0;
		return;
	}
	own->wscale = s->wscale;
	if (both)
		other->wscale &= (uint8_t)~WSCALE_UNKNOWN;
	else if ((s->flags & SEG_ACK) == 0)
		own->wscale |= WSCALE_UNKNOWN; // until it is answered
}

// What SYN and SYN-ACK agree on: classic ECN, or AccECN, whose packets use the same flags as a
// counter.
static void agree_ecn(struct track_flow *f, const struct seg *s) {
	uint8_t ace = seg_ace(s);

	if ((s->flags & SEG_ACK) == 0) {
		f->ecn |= ace == 7	 ? TRACK_ECN_ASKED | TRACK_ECN_ASKED_ACCURATE
			: (ace & 3) == 3 ? TRACK_ECN_ASKED
					 : 0;
		return;
	}
	if ((f->ecn & TRACK_ECN_ASKED_ACCURATE) != 0 && accecn_of_syn_ack(ace) == ACCECN_ON)
		f->ecn = TRACK_ECN_ACCURATE;
	else if ((ace & 3) == 1)
		f->ecn = (uint8_t)((f->ecn & TRACK_ECN_ASKED) | TRACK_ECN_AGREED);
}

// The direction's first SYN or SYN-ACK, and what was seen of the other's.
static void meets_other(struct track_at *a) {
	struct track_snd *snd = &a->f->snd[a->d], *other = &a->f->snd[!a->d];
	const struct seg *s = &a->p->seg;

	if ((s->flags & SEG_ACK) == 0) {
		if ((other->flags & (DIR_SYN | DIR_ANSWERED)) == DIR_SYN
			&& (snd->flags & DIR_SYN_ACKED) == 0) {
			snd->flags |= DIR_CROSSED;
			other->flags |= DIR_CROSSED;
		}
	} else if ((other->flags & DIR_SYN) == 0) {
		track_rare(a, !a->d)->isn = s->ack - 1;
		other->flags |= DIR_SYN_ACKED;
	} else if (s->ack == track_rare(a, !a->d)->isn + 1
		&& other->packets == track_rare(a, !a->d)->syns) {
		track_refused(a);
	}
}

void track_syn(struct track_at *a) {
	struct track_snd *snd = &a->f->snd[a->d];
	struct track_rare *rare = track_rare(a, a->d);
	const struct seg *s = &a->p->seg;
	uint64_t *first_ns = &a->t->opening[a->place].handshake_ns[a->d];

	if ((snd->flags & DIR_SYN) == 0) {
		bool late = (snd->flags & (DIR_KNOWN | DIR_ACKED)) != 0;

		if (!late) // else `nxt` and `una` are known already
			snd->nxt = snd->una = s->seq + 1;
		snd->flags |= DIR_SYN | DIR_KNOWN | (late ? DIR_ANSWERED : 0);
		rare->isn = s->seq;
		agree_scale(a);
		a->f->dir[!a->d].mss_allowed = s->mss;
		*first_ns = late ? 0 : a->now_ns;
		agree_ecn(a->f, s);
		meets_other(a);
	} else if ((s->flags & SEG_ACK) != 0 && (snd->flags & DIR_CROSSED) != 0) {
		snd->flags &= (uint16_t)~DIR_CROSSED;
	} else {
		a->kind |= KIND_RETRANSMIT;
		if ((snd->flags & DIR_ANSWERED) == 0)
			*first_ns = NEVER_NS;
	}
	rare->syns++;
}

// The answer to a SYN or to a SYN-ACK: an RTT sample, unless what it answers was sent twice (Karn).
void track_handshake(struct track_at *a) {
	struct track_snd *sender = &a->f->snd[!a->d];
	uint64_t *ns = &a->t->opening[a->place].handshake_ns[!a->d];

	if (likely((sender->flags & (DIR_SYN | DIR_ANSWERED)) != DIR_SYN)
		|| (a->p->seg.flags & SEG_ACK) == 0
		|| a->p->seg.ack - track_rare(a, !a->d)->isn - 1 >= TRACK_SEQ_MAX)
		return;
	sender->flags |= DIR_ANSWERED;
	// A SYN-ACK may acknowledge what the SYN carried (RFC 7413); another ACK of data may answer
	// that.
	*ns = *ns == NEVER_NS
			|| ((a->p->seg.flags & SEG_SYN) == 0
				&& a->p->seg.ack != track_rare(a, !a->d)->isn + 1)
			|| *ns < a->t->step_ns
		? 0
		: time_since(a->now_ns, *ns);
	if (*ns > 0)
		rtt_sample(&a->f->dir[!a->d].rtt, *ns, *ns, TRACK_RTO_MIN_NS);
}
