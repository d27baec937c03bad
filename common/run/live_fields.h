// SPDX-License-Identifier: BSD-3-Clause
// The fields of both live programs' summaries (common/base/field.h).
#pragma once
#include "common/base/field.h"

// What both programs write before and behind their own parts.
#define LIVE_HEAD(V)                                                                               \
	V(SEED, seed, "", app->run.seed, "")                                                       \
	V(NUMBER, virtual_s, "s", (double)time_since(live_end_ns(app), start_ns) / 1e9, "")        \
	V(NUMBER, start_s, "s", (double)start_ns / 1e9,                                            \
		"when the program began, by the run's clock")                                      \
	V(NUMBER, warmup_s, "s", (double)app->run.warmup_ns / 1e9, "")                             \
	V(NUMBER, measured_from_s, "s", (double)app->lcore[0]->measured_ns / 1e9,                  \
		"when the warm-up ended, by the run's clock")                                      \
	V(NUMBER, wall_s, "s", app->wall_s, "")                                                    \
	V(PART, verdict, "", facts_json(verdict, j), "")
#define LIVE_FIELDS(V)                                                                             \
	LIVE_HEAD(V)                                                                               \
	V(PART, faults, "list[Fact]", , "")                                                        \
	V(PART, emulation, "Emulation", , "", .absent = "")

// How late packets left; `late`: a histogram.
#define LATE_FIELDS(V, packets, error)                                                             \
	V(COUNT, packets, "packet", late->total, "packets whose time of departure is known")       \
	V(COUNT, error##_p50_ns, "ns", late_quantile(late, 0.5),                                   \
		"how late half of them left at most", .null = "none left")                         \
	V(COUNT, error##_p99_ns, "ns", late_quantile(late, 0.99), "likewise, 99 %",                \
		.null = "none left")                                                               \
	V(COUNT, error##_p999_ns, "ns", late_quantile(late, 0.999), "likewise, 99.9 %",            \
		.null = "none left")                                                               \
	V(COUNT, error##_max_ns, "ns", late->total > 0 ? late->max : FIELD_UNKNOWN, "the latest",  \
		.null = "none left")
#define LATENESS_FIELDS(V) LATE_FIELDS(V, packets, delay_error)
#define PACING_LATENESS_FIELDS(V) LATE_FIELDS(V, paced_segs, pacing_error)

// Of an egress, or of several: frames that the port was given before their time.
#define EARLY_FIELDS(V, sum)                                                                       \
	V(COUNT, early, "packet", (sum)->early, "packets that left before their time")             \
	V(COUNT, scheduled, "packet", (sum)->scheduled,                                            \
		"packets that the card was to send at their time")

#define PORT_EMULATION_FIELDS(V)                                                                   \
	V(TEXT, port, "", e->port->name, "")                                                       \
	V(TEXT, path, "", p->path != NULL ? p->path->name : "", "")                                \
	V(PART, lateness, "", live_late_json(late, j), "")                                         \
	V(PART, undisturbed, "Lateness", live_undisturbed_json(&e->late, j),                       \
		"lateness of packets that neither a stall of the lcore nor a full port delayed")   \
	EARLY_FIELDS(V, e)                                                                         \
	V(SIGNED, rate_error_ppm, "ppm", ppm,                                                      \
		"slope of undisturbed packets' lateness over time, plus the clock's error_ppm",    \
		.null = "too few packets")

#define DELAY_EMULATION_FIELDS(V)                                                                  \
	V(PART, ports, "list[PortEmulation]", write_emulated(app, j), "")                          \
	V(PART, lateness, "", live_late_json(late, j), "")                                         \
	V(PART, undisturbed, "Lateness", live_undisturbed_json(&undisturbed, j), "")               \
	V(CDF, delay_error_undisturbed_cdf, "ns", &undisturbed, "")                                \
	V(CDF, delay_error_cdf, "ns", late, "")                                                    \
	EARLY_FIELDS(V, &sum)                                                                      \
	V(SIGNED, rate_error_ppm, "ppm", worst_ppm, "that of the port with the largest",           \
		.null = "too few packets")

#define PACING_EMULATION_PARTS(V)                                                                  \
	V(COUNT, pacing_early, "segment", sum.early, "paced segments that left before their time") \
	V(COUNT, pacing_scheduled, "segment", sum.scheduled,                                       \
		"paced segments that the card was to send at their time")                          \
	V(PART, pacing_undisturbed, "PacingLateness", write_undisturbed(&sum.undisturbed, j), "")  \
	V(CDF, pacing_error_cdf, "ns", &sum.all, "")                                               \
	V(CDF, pacing_error_undisturbed_cdf, "ns", &sum.undisturbed, "")                           \
	V(PART, pacing_rate, "PacingRate", write_pacing_rate(app, hosts, j), "")
#define EMULATION_FIELDS(V)                                                                        \
	LATENESS_FIELDS(V##_OPTIONAL)                                                              \
	DELAY_EMULATION_FIELDS(V##_OPTIONAL)                                                       \
	PACING_LATENESS_FIELDS(V##_OPTIONAL) PACING_EMULATION_PARTS(V##_OPTIONAL)

#define HOST_FIELDS(V)                                                                             \
	V(COUNT, stalls, "", l->count.stalls,                                                      \
		"iterations that took over 20 us more than twice their packets' usual time")       \
	V(COUNT, stalled_ns, "ns", l->count.stalled_ns, "time that these took")                    \
	V(COUNT, stall_p50_ns, "ns",                                                               \
		l->stall.total > 0 ? hist_quantile(&l->stall, 0.5) : FIELD_UNKNOWN,                \
		"half of the stalls took at most", .null = "there was none")                       \
	V(COUNT, stall_max_ns, "ns", l->stall.total > 0 ? l->stall.max : FIELD_UNKNOWN,            \
		"the longest", .null = "there was none")                                           \
	V(COUNT, floor_p50_ns, "ns", watch_floor_ns(l, 0.5),                                       \
		"half of the packets that come while the lcore is idle wait at "                   \
		"most this long for the next iteration")                                           \
	V(COUNT, floor_p99_ns, "ns", watch_floor_ns(l, 0.99), "likewise, 99 %")                    \
	V(COUNT, waited_ns, "ns", s->sample.waited_ns - s->begun_waited_ns,                        \
		"time in which the thread was ready and another one ran, as the kernel counts")    \
	V(COUNT, steal_ns, "ns", s->sample.steal_ns - s->begun_steal_ns,                           \
		"time in which the hypervisor ran something else, as the kernel counts")           \
	V(COUNT, preempted, "", s->preempted - s->begun_preempted,                                 \
		"times that the kernel took the CPU away from the thread")

#define CLOCK_FIELDS(V)                                                                            \
	V(COUNT, anchors, "", c->anchors, "comparisons of the TSC and CLOCK_MONOTONIC")            \
	V(COUNT, anchors_refused, "", c->refused, "comparisons that took too long to be used")     \
	V(SIGNED, offset_ns, "ns", (double)c->offset_ns,                                           \
		"the run's clock less CLOCK_MONOTONIC, at the last comparison")                    \
	V(SIGNED, offset_max_ns, "ns", (double)c->offset_max_ns,                                   \
		"the one of largest magnitude at any comparison")                                  \
	V(COUNT, error_max_ns, "ns", c->anchors > 0 ? clock_error_max_ns(c) : FIELD_UNKNOWN,       \
		"how far a time of the run may be from the kernel's",                              \
		.null = "all comparisons were refused")                                            \
	V(SIGNED, error_ppm, "ppm", clock_error_ppm(c),                                            \
		"mean difference of the run's clock's rate from CLOCK_MONOTONIC's",                \
		.null = "too few comparisons")                                                     \
	V(SIGNED, drift_ppm, "ppm", clock_drift_ppm(c),                                            \
		"the same of the TSC at the rate first measured, "                                 \
		"which one calibration would have left",                                           \
		.null = "too few comparisons")

#define PORT_FIELDS(V)                                                                             \
	V(TEXT, name, "", port->name, "")                                                          \
	V(TEXT, dev, "", port->dev.text, "")                                                       \
	V(TEXT, mac, "", mac, "")                                                                  \
	V(COUNT, driver_missed, "frame", port_counts_missed(port) ? stats.imissed : FIELD_UNKNOWN, \
		"frames not received for lack of room, as the driver and the kernel count",        \
		.null = "the driver does not count them")                                          \
	V(COUNT, driver_no_mbuf, "frame", stats.rx_nombuf,                                         \
		"frames not received for lack of a buffer")                                        \
	V(COUNT, driver_tx_errors, "frame", stats.oerrors, "frames taken but not sent")            \
	V(PART, kernel, "KernelPort", write_kernel(port, j), "", .absent = "")

#define KERNEL_PORT_FIELDS(V)                                                                      \
	V(FLAG, offloads, "", kernel_joins(port->kernel), "whether packets left joined")           \
	V(COUNT, frames_in, "", in.frames, "frames that the kernel handed over")                   \
	V(NUMBER, packets_per_frame_in, "packet", (double)in.packets / (double)in.frames,          \
		"packets in one of them, on average", .null = "there was none")                    \
	V(COUNT, frames_out, "", out.frames, "frames that the kernel took")                        \
	V(NUMBER, packets_per_frame_out, "packet", (double)out.packets / (double)out.frames,       \
		"packets in one of them, on average", .null = "there was none")

#define LCORE_FIELDS(V)                                                                            \
	V(COUNT, cpu, "", app->process->lcore[lcore], "")                                          \
	V(COUNT, iterations, "", load->iterations, "iterations of its loop")                       \
	V(COUNT, iteration_max_ns, "ns", load->iteration_max_ns, "the longest one")                \
	V(COUNT, quiesced, "", load->quiesced, "times that it stood still while a port was reset") \
	V(COUNT, quiesced_max_ns, "ns", load->quiesced_max_ns, "the longest time")                 \
	V(NUMBER, busy, "", (double)load->busy_ns / 1e9 / app->wall_s,                             \
		"share of the time in which it had work", .null = "the run took no time")          \
	V(COUNT, tsc_hz, "Hz", app->lcore[lcore]->clock.tsc_hz, "")
