// SPDX-License-Identifier: BSD-3-Clause
// What an ACK delivers, and what it shows to be lost: the scoreboard (loss.c), episodes of recovery
// (recovery.c), marks (marks.c), and the undoing of reductions that were not needed (spurious.c).
#pragma once
#include "sender/tcp/flow.h"

// loss.c: the effects of one ACK, filled in by the scoreboard.
struct delivery {
	uint64_t now_ns;
	uint32_t tsecr; // 0: no timestamp
	uint32_t acked; // newly delivered segments
	uint32_t passed; // segments that una passed
	uint32_t lost; // newly lost
	uint32_t prr; // delivered, for PRR: `acked`; without SACK by duplicate ACKs
	uint32_t ce; // segments that arrived with CE, as the ACK says
	enum cc_ce each; // and each of those that it acknowledges
	uint64_t prior_fack; // fack before this ACK
	// Transmission time of the oldest delivered segment if none that una passed was sent again
	// (Karn); 0: none.
	uint64_t oldest_ns;
	uint64_t echoed_ns; // of the oldest retransmission that the timestamp names; 0: none
	uint64_t newest_ns; // transmission time of the newest delivered segment; 0: none
	uint64_t newest_seg;
	bool newest_retrans;
	float newest_cwnd;
	// Rate sample.
	uint64_t prior_delivered, prior_ns, send_elapsed_ns;
	bool app_limited;
	bool lost_app_limited; // the last lost segment was sent so
	bool old; // a later ACK has overtaken this one
	bool dsack; // of a segment that was sent again
	bool reordered;
	bool advanced; // the cumulative ACK moved
	// The ACK says the same as the last one: a duplicate, if anything is in flight (RFC 5681
	// section 2).
	bool repeated;
	bool original; // a never retransmitted segment from before the episode was delivered
	bool all_duplicates; // all retransmissions of the episode have been reported as duplicates
};

void loss_cumulative(struct endpoint *e, struct flow *f, uint64_t una, struct delivery *d);
void loss_sack(struct flow *f, const struct seg *seg, struct delivery *d);
// Prefetches the records that loss_sack and loss_detect will read.
void loss_fetch(const struct flow *f, const struct seg *seg);
// RACK: marks lost segments; returns the time in ns until the next check, 0: none is needed.
uint64_t loss_detect(struct endpoint *e, struct flow *f, uint64_t now_ns, struct delivery *d);
void loss_mark(struct flow *f, uint64_t index, uint64_t now_ns);
void loss_mark_in(struct flow *f, uint64_t index, struct delivery *d); // by an ACK
// Payload that the peer has, as far as it said so: what it acknowledged, and whole segments beyond
// (of a peer without SACK one for each duplicate ACK). What arrives in an interval counts there,
// also if a hole before it is filled later.
uint64_t flow_delivered_bytes(const struct flow *f);
// Keeps what it says now as a lower bound: what is counted is about to change.
void flow_keep_delivered(struct flow *f);
// Forgets the reports of what has arrived above a hole; what they said was delivered stays so.
void flow_forget(struct flow *f);
void loss_on_timeout(struct flow *f, uint64_t now_ns);
void loss_retrans_push(struct flow *f, uint64_t index);
void loss_retrans_unlink(struct flow *f, uint64_t index);

// relost.c: the segments below rtx_hint that are lost and not yet retransmitted.
void relost_add(struct flow *f, uint64_t index);
void relost_remove(struct flow *f, uint64_t index); // it is one of them
uint64_t relost_first(const struct flow *f); // the lowest; there is one
// A lost segment does not wait to be sent again any more. Its record's links are free then.
static inline void loss_unsent_end(struct flow *f, uint64_t index) {
	f->unsent_lost--;
	if (index < f->rtx_hint)
		relost_remove(f, index);
}

// recovery.c
enum cause { CAUSE_LOSS, CAUSE_ECN, CAUSE_REQUEST, CAUSE_PROBE };
void recovery_enter(struct endpoint *e, struct flow *f, const struct delivery *d, enum cause cause);
// Ends an episode after an ACK, and begins another if there is a reason.
void recovery_update(struct endpoint *e, struct flow *f, const struct delivery *d, bool ece);
// Counts and records a reduction of the control's window, if there was one.
void recovery_reduced(struct endpoint *e, struct flow *f, double before, bool ecn, uint64_t now_ns);
// Does what the control has asked for. Whether an episode has begun: its window moves from the next
// ACK on.
__attribute__((cold)) bool recovery_take_requests(
	struct endpoint *e, struct flow *f, const struct delivery *d);

// marks.c
// Whether the ACK says that segments arrived with CE; d->ce: how many. The counter of AccECN is
// read from ACKs that bring something new and are not older than others: what an ACK that is passed
// over says, a later one says too.
bool flow_take_marks(struct endpoint *e, struct flow *f, const struct seg *seg, struct delivery *d);

// spurious.c
#define UNDO_NONE UINT64_MAX
// To be called when an episode begins, with a reduction that may be undone.
void spurious_start(struct flow *f, bool timeout, uint64_t now_ns);
void spurious_sent(struct flow *f, uint64_t now_ns); // a segment is retransmitted
// Processes a D-SACK block.
void spurious_duplicates(struct flow *f, const struct seg_sack *b, struct delivery *d);
// Undoes the reduction if this ACK proves it spurious.
void spurious_detect(struct endpoint *e, struct flow *f, struct delivery *d);
// RFC 5682 section 3.1 step 2b: whether two new segments are to be sent before retransmissions.
static inline bool spurious_new_first(const struct flow *f) {
	return f->frto == FRTO_NEW && f->nxt < f->recover + 2;
}

// sample.c: hands the control, if it takes them, measurements of the connection as it is now; of an
// ACK before anything follows from it, and else before a timer's losses or the end of a pause.
__attribute__((cold)) void sample_take(struct endpoint *e, struct flow *f, const struct seg *ack,
	const struct delivery *d, uint64_t rtt_ns, bool ece);
static inline void sample_ack(struct endpoint *e, struct flow *f, const struct seg *ack,
	const struct delivery *d, uint64_t rtt_ns, bool ece) {
	if (unlikely(f->sampled))
		sample_take(e, f, ack, d, rtt_ns, ece);
}
static inline void sample_now(struct endpoint *e, struct flow *f, uint64_t now_ns) {
	const struct delivery none = {.now_ns = now_ns};

	sample_ack(e, f, NULL, &none, 0, false);
}
