// SPDX-License-Identifier: BSD-3-Clause
// What paths read of a link beyond the stage's operations: its figures. All of them are exact in
// theoretical time, however late the link is served.
#pragma once
#include "switch/stage/stage.h"

__extension__ typedef unsigned __int128 link_u128;

extern const struct stage_ops stage_link;

// Everything a link did since its start; figures are differences of two of these.
struct link_totals {
	uint64_t at_ns;
	uint64_t out_pkts, out_bytes; // frames sent, FCS included, at the end of their transmission
	uint64_t dequeued; // packets the queue gave to the wire
	uint64_t sojourn_ns; // their times in the queue
	uint64_t drops, marks; // by the queue
	uint64_t queue_pkt_ns; // backlog integrated over time
	link_u128 queue_byte_ns;
	link_u128 capacity; // rate integrated over time, 1e-9 bit
	double wire_bits; // transmitted, overhead included; part of a frame counts
};

// Since `from` (both taken from the same link).
struct link_figures {
	double utilisation; // 0..1, of the rate that held
	double rate_mean_bps;
	double queue_mean_pkts, queue_mean_bytes; // averaged over time
	double sojourn_mean_ns; // averaged over packets
};

// Serves the queue up to now_ns without taking packets off the link.
void link_serve(void *link, uint64_t now_ns, struct pkt_list *drops);
// The link must have been served to now_ns.
struct link_totals link_totals(const void *link, uint64_t now_ns);
struct link_figures link_figures(const struct link_totals *from, const struct link_totals *to);

// Largest values since the last restart; a link keeps two, of the run and of the interval.
enum link_window { LINK_RUN, LINK_INTERVAL, LINK_WINDOWS };
struct link_peak {
	uint64_t queue_pkts;
	uint64_t sojourn_ns;
	uint64_t rate_min_bps, rate_max_bps; // LINK_RUN: of the rates that held for some time
	struct link_totals from; // totals at the restart
};
const struct link_peak *link_peak(void *link, enum link_window w);
// That of the run up to now_ns, with its rates.
const struct link_peak *link_run(void *link, uint64_t now_ns);
void link_restart(void *link, enum link_window w, uint64_t now_ns);
// Times in the queue since LINK_RUN was restarted.
const struct hist *link_sojourn(void *link);
// Packets in the queue, without the frame on the wire.
struct backlog link_queue(const void *link);
uint64_t link_rate_bps(const void *link);
// Its records go there from now on; before the first packet.
void link_stream(void *link, struct tel *packets);
const struct aqm_ops *link_aqm(const void *link);
// What its discipline observes, if it has `observe`.
void link_observe(const void *link, double out[AQM_OBSERVED]);
