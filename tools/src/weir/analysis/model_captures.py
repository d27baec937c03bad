# SPDX-License-Identifier: BSD-3-Clause
"""Parts of the summaries of captures, and of what was imported."""

from __future__ import annotations

from weir.analysis.model_parts import Count, Number, Section, Share


class Point(Section):
    """A place where packets were captured."""

    name: str
    read: bool
    tcp: Count
    copies: Count


class LinkType(Section):
    """Packets of a link type that is not read."""

    link_type: Count
    name: str
    packets: Count


class Captured(Section):
    """The capture that was analysed."""

    files: Count
    packets: Count
    bytes: Count
    start_utc_ns: Count | None
    duration_s: Number | None
    points: list[Point]
    connections: Count
    connections_max: Count
    flows: Count
    payload_bytes: Count
    ended: dict[str, Count]
    reordered: Count
    backwards: Count
    clock_steps: Count
    clock_step_max_ns: Count
    duplicates: Count
    recut: Count
    no_time: Count
    lengths_from_ip: Count
    tunnels: dict[str, Count]
    unread_link_types: list[LinkType]
    options_cut: Count
    options_bad: Count
    unknown_interface: Count
    other_blocks: Count
    untracked: Count
    sent_memory_bytes: Count
    rtt_samples: Count
    rtt_p50_ns: Count | None
    rtt_p99_ns: Count | None
    notes: list[str]


class CapturedGroup(Section):
    """Flows of a capture, as its packets show them."""

    name: str
    cc: None  # packets do not say it
    flows: Count
    goodput_bps: Number | None
    jfi: Share | None
    rtt_mean_ns: Number | None
    acked_bytes: Count
    sent_segs: Count
    retransmits: Count
    spurious: Count
    lost_segs: Count
    out_of_order: Count
    duplicates: Count
    cwnd_reductions: Count
    timeouts: Count


class ImportedGroup(Section):
    """What another program has measured of its flows."""

    name: str
    cc: str | None
    flows: Count
    goodput_bps: Number | None
    jfi: Share | None
    rtt_mean_ns: Number | None
    acked_bytes: Number | None
    sent_segs: Count | None
    retransmits: Number | None
    cwnd_reductions: Count | None


class CaptureLedger(Section):
    """Each packet that was read, by what became of it."""

    balanced: bool
    capture: dict[str, Count]


class CapturesLedger(Section):
    """The same of both sides."""

    balanced: bool
    captures: dict[str, dict[str, Count]]


class Matched(Section, rename={"entered": "in"}):
    """Packets of one capture found in another; delays above the least are queueing."""

    entered: Count
    matched: Count
    drops: Count
    not_judged: Count
    marks: Count
    reordered: Count
    ambiguous: Count
    delay_min_ns: Count | None
    delay_mean_ns: Number | None
    delay_p50_ns: Count | None
    delay_p99_ns: Count | None
    delay_max_ns: Count | None
    queue_mean_ns: Number | None
    sojourn_p50_ns: Count | None
    sojourn_p99_ns: Count | None
    sojourn_max_ns: Count | None


class MatchedFlow(Section):
    """The same of a flow."""

    src: str
    dst: str
    proto: str
    path: str
    packets: Count
    matched: Count
    drops: Count
    not_judged: Count
    marks: Count
    reordered: Count
    ambiguous: Count
    delay_min_ns: Count | None
    delay_mean_ns: Number | None
    delay_max_ns: Count | None


class Apart(Section):
    """Packets of several segments, and these."""

    packets: Count
    segments: Count
