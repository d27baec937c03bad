# SPDX-License-Identifier: BSD-3-Clause
"""summary.json as types: what each kind of run writes. The JSON schema is made from them.

What is not known is None (null), what a run does not have is absent (UNSET). Names end in their
unit: _ns, _s, _bps (bits per second), _bytes, _pkts, _segs; a share is 0 to 1. The numbers'
definitions are those of `weir list --json` (`number`), and of tools/docs/reference/numbers.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from weir.base import foreign
from weir.base.errors import UserError

VERSION = 1  # a summary's `schema`: raised with what a reader has to be changed for

Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Seed = Annotated[int, Meta(ge=0)]  # of 64 bits
Number = Annotated[float, Meta(ge=0, le=1e30)]
Signed = Annotated[float, Meta(ge=-1e30, le=1e30)]
Share = Annotated[float, Meta(ge=0, le=1 + 1e-9)]
Cdf = list[tuple[Number, Share]]  # (upper end of a bucket, share of the samples up to it)
Absent = UnsetType


class Section(Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A part of a summary; what it does not name is an error."""


class Fact(Section):
    """What a reader must know beside the figures: a cause, what is known of it, and a sentence."""

    cause: str
    sentence: str
    program: str | Absent = UNSET  # of two that are shown as one
    host: str | Absent = UNSET  # of several
    port: str | Absent = UNSET
    path: str | Absent = UNSET
    cpu: Count | Absent = UNSET
    count: Number | Absent = UNSET  # packets, frames or records
    of: Number | Absent | None = UNSET  # of how many; None: that says nothing
    from_s: Signed | Absent = UNSET
    to_s: Signed | Absent = UNSET
    bad_s: Number | Absent = UNSET  # for how long in that time
    down_s: Number | Absent = UNSET
    worst_s: Number | Absent = UNSET
    worst_at_s: Signed | Absent = UNSET
    busy: Number | Absent = UNSET
    late_pkts: Count | Absent = UNSET
    waiting_max: Count | Absent = UNSET
    guest: Count | Absent = UNSET
    group: Count | Absent = UNSET
    # Of a guest's kernel, by /proc/net/netstat.
    tcp_memory_pressures: Count | Absent = UNSET
    prune_called: Count | Absent = UNSET
    rcv_pruned: Count | Absent = UNSET


class Why(Section):
    """Why no queue stood at a link."""

    cause: str
    sentence: str
    link: str
    utilisation: Share | None
    dropped_elsewhere: Share | Absent = UNSET  # by stages other than links
    bottleneck: str | Absent = UNSET  # another stage, which was busier
    bottleneck_used: Share | Absent = UNSET
    dropped: Share | Absent = UNSET  # by the link's own queue
    marked: Share | Absent = UNSET


class Limits(Section):
    """What keeps the flows from sending more at the end: how many flows have each limit."""

    cause: str  # the most frequent one
    sentence: str
    flows: Count
    not_begun: Count
    connecting: Count
    ended: Count
    failed: Count  # gave up after timeouts; in older runs, those that were reset too
    no_data: Count
    receive_window: Count
    cwnd: Count
    pacing: Count
    udp: Count
    reset: Count | Absent = UNSET
    reset_by_program: Count | Absent = UNSET  # of a program of the host, in a guest


class Packets(Section):
    """A number of packets and their bytes."""

    pkts: Count
    bytes: Count


class PathLedger(Section, rename={"entered": "in"}):
    """in + duplicated = out + inside + drops by reason."""

    balanced: bool
    entered: Packets
    duplicated: Packets
    out: Packets
    inside: Packets
    drops: dict[str, Packets]


class Hosts(Section):
    """Packets that each side sent and received, and those with a wrong checksum."""

    sender_tx: Count
    sender_rx: Count
    receiver_tx: Count
    receiver_rx: Count
    receiver_checksum_errors: Count
    sender_checksum_errors: Count


class PathsLedger(Section):
    """The account of each path."""

    balanced: bool
    paths: dict[str, PathLedger]


class SimulationLedger(PathsLedger):
    """Every packet of a simulation."""

    hosts: Hosts
    inside: Count  # in paths and on their way to hosts


class SwitchLedger(PathsLedger):
    """received + replayed + copied + duplicated = transmitted + inside + drops by reason."""

    received: Count
    copied: Count
    duplicated: Count
    transmitted: Count
    inside: Count
    drops: dict[str, Count]
    replayed: Count | Absent = UNSET


class Ledger(Section):
    """Only whether it balances."""

    balanced: bool


class BetweenHosts(Section, rename={"source": "from"}):
    """Frames that left a host's port, and those that reached the port it is connected to.

    Where an Ethernet switch joins several ports, both are lists of names and `lost` is not known.
    """

    source: str
    to: str
    sent: Count
    received: Count
    lost: Count | None
    lost_at_least: Count | Absent = UNSET


class LiveLedger(Section):
    """Of a live run's programs, or hosts; what the switch counted, if there is one."""

    balanced: bool | None
    programs: dict[str, bool | None]  # None: it wrote no summary
    between_hosts: list[BetweenHosts] | Absent = UNSET
    received: Count | Absent = UNSET
    copied: Count | Absent = UNSET
    duplicated: Count | Absent = UNSET
    transmitted: Count | Absent = UNSET
    inside: Count | Absent = UNSET
    replayed: Count | Absent = UNSET
    drops: dict[str, Count] | Absent = UNSET
    paths: dict[str, PathLedger] | Absent = UNSET


class Link(Section):
    """A link in the measured time."""

    utilisation: Share | None
    queue_mean_pkts: Number
    queue_mean_bytes: Number
    queue_mean_ns: Number | None
    queue_max_pkts: Count
    sojourn_p50_ns: Number | None
    sojourn_p99_ns: Number | None
    sojourn_max_ns: Number | None
    out_pkts: Count
    out_bytes: Count
    drops: Count
    marks: Count
    rate_bps: Number
    rate_mean_bps: Number
    rate_min_bps: Number
    rate_max_bps: Number
    down_ns: Count
    sojourn_cdf: Cdf


class Transfers(Section):
    """Transfers of a schedule; the completion times are of those that began when measured."""

    begun: Count
    finished: Count
    failed: Count
    unfinished: Count
    waited: Count
    waiting: Count
    skipped: Count
    measured: Count
    completion_mean_ns: Number | Absent = UNSET
    completion_p50_ns: Number | Absent = UNSET
    completion_p95_ns: Number | Absent = UNSET
    completion_p99_ns: Number | Absent = UNSET
    slowdown_mean: Number | Absent = UNSET


class Probe(Section):
    """What probes found of the path."""

    flows: Count
    answered: Count
    rtt_min_ns: Number | Absent = UNSET
    dq_ns: Number | Absent = UNSET
    delta: Number | Absent = UNSET
    rate_bps: Number | Absent | None = UNSET
    size_bytes: Count | Absent = UNSET
    completion_ns: Number | Absent | None = UNSET


class BaseRtt(Section):
    """The base RTTs that were drawn for a group's flows."""

    distribution: str
    min_ns: Count
    median_ns: Count
    max_ns: Count


class Back(Section, kw_only=True):
    """What the side that was opened has sent."""

    cc: str | Absent = UNSET  # of a kernel
    goodput_bps: Number
    rtt_mean_ns: Number | None
    acked_bytes: Count
    sent_segs: Count
    retransmits: Count
    drops: Count | Absent = UNSET  # of older runs they were the group's
    rtx_overhead: Number | None


class Group(Section):
    """A group's flows in the measured time."""

    name: str
    cc: str
    flows: Count
    goodput_bps: Number
    jfi: Share | None
    rtt_mean_ns: Number | None
    acked_bytes: Count
    sent_segs: Count
    retransmits: Count
    lost_segs: Count | None
    drops: Count | None
    cwnd_reductions: Count | None
    timeouts: Count | None
    spurious: Count | None
    spurious_timeouts: Count | None
    spurious_recoveries: Count | None
    ecn_echoes: Count | None
    ce_segs: Count | None
    rtx_overhead: Number | None
    stack: str | Absent = UNSET  # "weir" or "linux", where one is a kernel
    peer: str | Absent = UNSET
    base_rtt: BaseRtt | Absent = UNSET
    back: Back | Absent = UNSET
    transfers: Transfers | Absent = UNSET
    probe: Probe | Absent = UNSET


class Flows(Section):
    """Flows by their state at the end."""

    waiting: Count
    open: Count
    done: Count
    failed: Count


class Segments(Section):
    """All packets of the sender."""

    sent: Count
    received: Count
    unacceptable: Count
    refused: Count


class Receivers(Section):
    """What the receivers counted; `open` and `done` live only."""

    bytes: Count
    segs: Count
    acks: Count
    duplicate_segs: Count
    out_of_order_segs: Count
    ce_segs: Count
    ranges_refused: Count
    open: Count | Absent = UNSET
    done: Count | Absent = UNSET


class Records(Section):
    """Of a stream."""

    records: Count
    lost: Count


class Telemetry(Section):
    """What was recorded; a stream of two programs has theirs behind its name."""

    level: Annotated[int, Meta(ge=0, le=3)]
    streams: dict[str, Records]


class Capture(Section):
    """A capture that the run wrote."""

    file: str
    packets: Count
    bytes: Count
    lost: Count
    out_of_order: Count
    rotated_away: Count
    ended_by: str | None


class Measured(Section):
    """What the measured time cost."""

    wall_s: Number
    cpu_s: Number
    virtual_s: Number
    data_segs: Count


class Stop(Section):
    """How a stop rule ended the run."""

    metric: str
    change: Number
    over_s: Number
    moved: Number | None
    settled: bool
    at_s: Number


class Memory(Section):
    """The most that was in use at once; packets, at the ends of the run's steps."""

    packets_max: Count
    segments_max: Count


class Program(Section):
    """A program that ran in a guest."""

    guest: Count
    group: Count
    side: str
    run: str
    output: str
    files: str | None
    status: Count | None
    ended_ns: Count | None


class IpFlow(Section):
    """A direction of a 5-tuple of guests that is no flow of the config, in the measured time."""

    group: Count
    direction: str
    protocol: str
    src: str
    src_port: Count | None
    dst: str
    dst_port: Count | None
    flow_id: Count
    goodput_bps: Number
    sent_pkts: Count
    sent_bytes: Count
    received_pkts: Count
    received_bytes: Count
    drops: Count
    ce_pkts: Count
    delay_min_ns: Count | None
    delay_mean_ns: Count | None
    delay_max_ns: Count | None
    rtt_mean_ns: None
    retransmits: None
    cwnd_reductions: None


class Kernel(Section):
    """A kernel, and the numbers of the guests that ran it."""

    name: str
    release: str
    package: str
    version: str
    options: str
    guests: list[Count]


class Guests(Section):
    """Linux kernels among the hosts."""

    release: str | None  # and the next three: None if there are several kernels
    package: str | None
    version: str | None
    options: str | None
    count: Count
    tx_frames: Count
    rx_frames: Count
    other_frames: Count
    interrupts: Count
    runs: Count
    kernels: list[Kernel] | Absent = UNSET
    programs: list[Program] | Absent = UNSET


class Source(Section):
    """A capture that was a path's traffic; the last three live only."""

    pcap: str
    packets: Count
    bytes: Count
    filtered: Count
    reordered: Count
    step_back_max_ns: Count
    lengths_from_ip: Count
    oversize: Count
    too_long: Count
    not_ethernet: Count
    ended: bool
    padded: Count | Absent = UNSET
    late: Count | Absent = UNSET
    late_max_ns: Count | Absent = UNSET


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


class Stages(Section):
    """A path's stages, in order."""

    path: str
    stages: list[str]


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


class Manifest(Struct):
    """What readers of manifest.json take for granted."""

    started_utc: datetime | None = None


class Summary(Section, tag_field="kind"):
    """What all kinds have."""

    schema: Annotated[int, Meta(ge=VERSION, le=VERSION)]
    program: str
    version: str
    title: str
    wall_s: Number
    verdict: str | None  # the first of `verdicts`, or "ok"; null if nobody judged: what is imported
    verdicts: list[Fact]
    telemetry: Telemetry


class Simulation(Summary, tag="simulation"):
    """weir-sim: flows in virtual time."""

    seed: Seed
    digest: str
    seed_used: bool
    virtual_s: Number
    warmup_s: Number
    threads: Count
    measured: Measured | None
    ledger: SimulationLedger
    links: dict[str, Link]
    why: list[Why]
    groups: list[Group]
    jfi: Share | None
    flows: Flows
    segments: Segments
    receivers: Receivers
    memory: Memory
    limits: Limits | Absent = UNSET
    stop: Stop | Absent = UNSET
    ip_flows: list[IpFlow] | Absent = UNSET
    guests: Guests | Absent = UNSET
    capture: Capture | Absent = UNSET


class Offline(Summary, tag="offline"):
    """weir-sim: captures as the traffic of paths."""

    seed: Seed
    digest: str
    seed_used: bool
    virtual_s: Number
    warmup_s: Number
    sources: dict[str, Source]
    ledger: PathsLedger
    links: dict[str, Link]
    why: list[Why]
    capture: Capture | Absent = UNSET


class Replay(Summary, tag="replay"):
    """weir-sim --replay: what entered a live switch once more."""

    replay: str
    seed: Seed
    virtual_s: Number
    arrivals: Count
    changes: Count
    stages: list[Stages]
    drop_reasons: list[str]
    ledger: PathsLedger
    links: dict[str, Link]


class LiveProgram(Summary, kw_only=True):
    """What both live programs have."""

    seed: Seed
    virtual_s: Number
    start_s: Number
    warmup_s: Number
    measured_from_s: Number
    faults: list[Fact]
    emulation: Emulation | Absent = UNSET


class Switch(LiveProgram, tag="switch", kw_only=True):
    """weir-switch."""

    ledger: SwitchLedger
    links: dict[str, Link]
    why: list[Why]
    host: Host
    clock: Clock
    ports: list[SwitchPort]
    lcore: Lcore
    pool: Pool
    eal: str
    lcores: list[SwitchLcore] | Absent = UNSET
    sources: dict[str, Source] | Absent = UNSET
    capture: Capture | Absent = UNSET


class Sender(LiveProgram, tag="sender", kw_only=True):
    """weir-sender: the flows' side, their receivers', or both."""

    ledger: Ledger
    sender_ports: list[SenderPort]
    sender_host: Host
    sender_clock: Clock
    sender_lcore: SenderLcore
    sender_lcores: list[SenderLcores] | Absent = UNSET
    limits: Limits | Absent = UNSET
    groups: list[Group] | Absent = UNSET
    jfi: Share | Absent | None = UNSET
    flows: Flows | Absent = UNSET
    segments: Segments | Absent = UNSET
    receivers: Receivers | Absent = UNSET
    capture: Capture | Absent = UNSET


class RunHost(Section):
    """A host of a live run, and its clock against the switch's, from frames that both captured."""

    role: str
    command: str | None
    balanced: bool | None
    verdict: str | None
    disciplined_by: str | None  # chrony, or the kernel that NTP or PTP steers
    clock_error_ns: Count | None  # as that says
    frames: Count | Absent = UNSET
    offset_utc_ns: Count | Absent | None = UNSET  # the middle of the run, by the switch's clock
    offset_ns: Signed | Absent | None = UNSET  # then; ahead is positive
    offset_error_ns: Number | Absent | None = UNSET
    drift_ppm: Signed | Absent | None = UNSET
    drift_error_ppm: Number | Absent | None = UNSET


class Live(LiveProgram, tag="live", kw_only=True):
    """A live run's programs as one (`weir run --live`)."""

    ledger: LiveLedger
    hosts: dict[str, RunHost] | Absent = UNSET
    links: dict[str, Link] | Absent = UNSET
    why: list[Why] | Absent = UNSET
    host: Host | Absent = UNSET
    clock: Clock | Absent = UNSET
    ports: list[SwitchPort] | Absent = UNSET
    lcore: Lcore | Absent = UNSET
    lcores: list[SwitchLcore] | Absent = UNSET
    pool: Pool | Absent = UNSET
    eal: str | Absent = UNSET
    sources: dict[str, Source] | Absent = UNSET
    sender_ports: list[SenderPort] | Absent = UNSET
    sender_host: Host | Absent = UNSET
    sender_clock: Clock | Absent = UNSET
    sender_lcore: SenderLcore | Absent = UNSET
    sender_lcores: list[SenderLcores] | Absent = UNSET
    limits: Limits | Absent = UNSET
    groups: list[Group] | Absent = UNSET
    jfi: Share | Absent | None = UNSET
    flows: Flows | Absent = UNSET
    segments: Segments | Absent = UNSET
    receivers: Receivers | Absent = UNSET
    capture: Capture | Absent = UNSET


class Analysis(Summary, tag="analysis"):
    """weir-pcap analyze."""

    warmup_s: Number
    cpu_s: Number
    ledger: CaptureLedger
    capture: Captured
    groups: list[CapturedGroup]
    jfi: Share | None


class Comparison(Summary, tag="comparison"):
    """weir-pcap compare."""

    warmup_s: Number
    cpu_s: Number
    ledger: CapturesLedger
    links: dict[str, Matched]
    backwards: dict[str, Count]
    taken_apart: dict[str, Apart]
    forgotten: Count
    flows_seen: Count
    flows: list[MatchedFlow]


class Import(Summary, tag="import"):
    """weir import: a result of flent or iperf3."""

    groups: list[ImportedGroup]


AnySummary = Simulation | Offline | Replay | Switch | Sender | Live | Analysis | Comparison | Import


def decode(text: bytes | str, place: str = "summary") -> AnySummary:
    """A summary as its type. UserError: the first thing in it that is not as described."""
    try:
        made: AnySummary = msgspec.json.decode(text, type=AnySummary)
    except msgspec.MsgspecError as error:
        raise UserError(f"{place}: {error}", 1) from None
    return made


# Readers take each of their members for granted; the members of others are not in every version.
ROWS_MAX = 1000
WHOLE = (Fact, Packets, BetweenHosts, Records, Program, IpFlow)


@cache
def loose(kind: Any) -> Any:
    """The same type as any version may have written it, with unknown members and without known."""
    if isinstance(kind, type) and issubclass(kind, Struct):
        every = msgspec.structs.fields(kind)
        members: list[tuple[str, Any, Any]] = [
            (one.name, loose(one.type), msgspec.NODEFAULT)
            if one.required and kind in WHOLE
            else (one.name, loose(one.type) | UnsetType, UNSET)
            for one in every
        ]
        names = {one.name: one.encode_name for one in every}
        return msgspec.defstruct(kind.__name__, members, rename=names, kw_only=True)
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return Union[tuple(map(loose, inner))]  # noqa: UP007
    return origin[tuple(map(loose, inner))] if origin in (list, dict, tuple) else kind


def checked(summary: dict[str, Any], place: str) -> dict[str, Any]:
    """A summary of any version, as it is. UserError: a member that is known has another type."""
    named = {one.__struct_config__.tag: one for one in get_args(AnySummary)}
    kind = named.get(str(summary.get("kind", "simulation")))
    if kind is None:
        raise UserError(
            f"{place}: this version knows no summary of the kind '{summary['kind']}'", 1
        )
    foreign.check(summary, loose(kind), place)
    if long := next(too_long(summary, "members"), None):
        raise UserError(f"{place}: has more than {ROWS_MAX:,} {long}, the most that is read", 1)
    return summary


def too_long(value: object, name: str) -> Iterator[str]:
    """The names of lists and dicts that have more members than a page or a terminal has lines.

    Those of flows and distributions may have any number.
    """
    if isinstance(value, dict | list) and not name.endswith(("flows", "cdf")):
        if len(value) > ROWS_MAX:
            yield name
        each = value.items() if isinstance(value, dict) else ((name, one) for one in value)
        for inside, one in each:
            yield from too_long(one, inside)


def schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of every kind of summary."""
    made = msgspec.json.schema(AnySummary)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"summary.json of weir, schema {VERSION}",
        **made,
    }
