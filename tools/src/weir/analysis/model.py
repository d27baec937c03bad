# SPDX-License-Identifier: BSD-3-Clause
"""summary.json as types: what each kind of run writes. The JSON schema is made from them.

What is not known is None (null), what a run does not have is absent (UNSET). Names end in their
unit: _ns, _s, _bps (bits per second), _bytes, _pkts, _segs; a share is 0 to 1. The numbers'
definitions are those of `weir list --json` (`number`), and of tools/docs/reference/numbers.md.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Struct

from weir.analysis.model_captures import (
    Apart,
    Capture,
    Captured,
    CapturedGroup,
    CaptureLedger,
    CapturesLedger,
    ImportedGroup,
    Matched,
    MatchedFlow,
)
from weir.analysis.model_live import (
    Clock,
    Emulation,
    Host,
    Lcore,
    Pool,
    SenderLcore,
    SenderLcores,
    SenderPort,
    Stages,
    SwitchLcore,
    SwitchPort,
)
from weir.analysis.model_parts import (
    Absent,
    Count,
    Fact,
    Flows,
    Group,
    Guests,
    IpFlow,
    Ledger,
    Limits,
    Link,
    LiveLedger,
    Measured,
    Memory,
    Number,
    PathsLedger,
    Receivers,
    Section,
    Seed,
    Segments,
    Share,
    Signed,
    SimulationLedger,
    Source,
    Stop,
    SwitchLedger,
    Telemetry,
    Why,
)
from weir.base.errors import UserError

VERSION = 1  # a summary's `schema`: raised with what a reader has to be changed for


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


def schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of every kind of summary."""
    made = msgspec.json.schema(AnySummary)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"summary.json of weir, schema {VERSION}",
        **made,
    }
