# SPDX-License-Identifier: BSD-3-Clause
"""Parts that the summaries of several kinds of run have."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

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
