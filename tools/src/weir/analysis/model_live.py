# SPDX-License-Identifier: BSD-3-Clause
"""Parts of the summaries of live programs: emulation error, hosts, ports, lcores."""

from __future__ import annotations

from msgspec import UNSET

from weir.analysis.model_parts import Absent, Cdf, Count, Number, Section, Signed


class Lateness(Section):
    """How late packets left."""

    packets: Count
    delay_error_p50_ns: Count | None
    delay_error_p99_ns: Count | None
    delay_error_p999_ns: Count | None
    delay_error_max_ns: Count | None


class PortEmulation(Lateness):
    """How exact a port was."""

    port: str
    path: str
    undisturbed: Lateness
    early: Count
    scheduled: Count
    rate_error_ppm: Signed | None


class PacingLateness(Section):
    """How late paced segments left."""

    paced_segs: Count
    pacing_error_p50_ns: Count | None
    pacing_error_p99_ns: Count | None
    pacing_error_p999_ns: Count | None
    pacing_error_max_ns: Count | None


class PacingRate(Section):
    """By which part flows were off their pacing rates."""

    flows: Count
    p99: Number | None
    worst: Number | None
    undisturbed_p99: Number | None
    undisturbed_worst: Number | None


class Emulation(Section):
    """How exact a live run was: delays and rates of the switch, pacing of the sender."""

    ports: list[PortEmulation] | Absent = UNSET
    packets: Count | Absent = UNSET
    delay_error_p50_ns: Count | Absent | None = UNSET
    delay_error_p99_ns: Count | Absent | None = UNSET
    delay_error_p999_ns: Count | Absent | None = UNSET
    delay_error_max_ns: Count | Absent | None = UNSET
    undisturbed: Lateness | Absent = UNSET
    delay_error_undisturbed_cdf: Cdf | Absent = UNSET
    delay_error_cdf: Cdf | Absent = UNSET
    early: Count | Absent = UNSET
    scheduled: Count | Absent = UNSET
    rate_error_ppm: Signed | Absent | None = UNSET
    paced_segs: Count | Absent = UNSET
    pacing_error_p50_ns: Count | Absent | None = UNSET
    pacing_error_p99_ns: Count | Absent | None = UNSET
    pacing_error_p999_ns: Count | Absent | None = UNSET
    pacing_error_max_ns: Count | Absent | None = UNSET
    pacing_early: Count | Absent = UNSET
    pacing_scheduled: Count | Absent = UNSET
    pacing_undisturbed: PacingLateness | Absent = UNSET
    pacing_error_cdf: Cdf | Absent = UNSET
    pacing_error_undisturbed_cdf: Cdf | Absent = UNSET
    pacing_rate: PacingRate | Absent = UNSET


class Host(Section):
    """What the machine did to an lcore."""

    stalls: Count
    stalled_ns: Count
    stall_p50_ns: Count | None
    stall_max_ns: Count | None
    floor_p50_ns: Count
    floor_p99_ns: Count
    waited_ns: Count
    steal_ns: Count
    preempted: Count


class Clock(Section):
    """The TSC beside CLOCK_MONOTONIC."""

    anchors: Count
    anchors_refused: Count
    offset_ns: Signed
    offset_max_ns: Signed
    error_max_ns: Count | None  # of any time in UTC; not known if all anchors were refused
    error_ppm: Signed | None
    drift_ppm: Signed | None


class Port(Section):
    """A port as its driver and the kernel count.

    Missed are frames that were lost in front of the port; null where its driver does not count.
    """

    name: str
    dev: str
    mac: str
    driver_missed: Count | None
    driver_no_mbuf: Count
    driver_tx_errors: Count


class SwitchPort(Port):
    """A port of the switch; its path begins behind it."""

    path: str
    rx_timestamps: bool
    tx_timestamps: bool
    up: bool
    rx_pkts: Count
    rx_bytes: Count
    tx_pkts: Count
    tx_bytes: Count | None
    tx_dropped: Count
    tx_too_long: Count
    tx_unsent: Count


class SenderPort(Port):
    """A port of the sender; the handover's with several lcores only."""

    role: str
    ip: str
    rx_frames: Count
    rx_bytes: Count
    rx_tcp: Count
    rx_arp: Count
    rx_echo: Count
    rx_too_big: Count
    rx_other: Count
    rx_outside: Count
    rx_reset: Count
    rx_malformed: Count
    tx_wanted: Count
    tx_frames: Count
    tx_bytes: Count | None
    tx_dropped: Count
    tx_too_long: Count
    tx_unsent: Count
    no_mbuf: Count
    waiting: Count
    connections_refused: Count
    handed_over: Count | Absent = UNSET
    handover_dropped: Count | Absent = UNSET
    handover_waiting: Count | Absent = UNSET
    sent_through_another: Count | Absent = UNSET


class Lcore(Section):
    """An lcore's work."""

    cpu: Count
    iterations: Count
    iteration_max_ns: Count
    quiesced: Count
    quiesced_max_ns: Count
    busy: Number | None
    tsc_hz: Count


class Handover(Section):
    """Frames given to another lcore."""

    to_cpu: Count
    given: Count
    dropped: Count


class SwitchLcore(Lcore):
    """One of several."""

    received: Count
    host: Host
    ports: list[str]
    handover: list[Handover]


class SenderLcore(Lcore):
    """The first one, with what the process uses."""

    flows: Count
    hugepages: bool
    pool_bytes: Count
    eal: str


class SenderLcores(Lcore):
    """One of several."""

    flows: Count
    stalls: Count
    stalled_ns: Count
    stall_max_ns: Count | None


class Pool(Section):
    """The switch's buffers, and the packets that each path or port may have of them."""

    buffers: Count
    bytes: Count
    hugepages: bool
    quotas: dict[str, Count]
