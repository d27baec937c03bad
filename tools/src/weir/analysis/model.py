# SPDX-License-Identifier: BSD-3-Clause
"""summary.json as types: what each kind of run writes. The JSON schema is made from them.

What is not known is None (null), what a run does not have is absent (UNSET). Names end in their
unit: _ns, _s, _bps (bits per second), _bytes, _pkts, _segs; a share is 0 to 1. The numbers'
definitions are those of `weir list --json` (`number`), and of tools/docs/reference/numbers.md.
"""

from __future__ import annotations

from datetime import datetime

import msgspec
from msgspec import UNSET, Struct

from weir.analysis import model_parts as parts
from weir.analysis.model_types import VERSION, Absent, Count, Number, Section, Seed, Share, Signed
from weir.base.errors import UserError
from weir.base.foreign import Json


class FileLicense(Struct):
    """The license of a file in the folder, as a plug-in says it."""

    file: str
    license: str


class Manifest(Struct, kw_only=True):
    """manifest.json (common/run/run_manifest.c); None or empty is what was not written."""

    program: str | None = None
    version: str | None = None
    commit: str | None = None
    title: str | None = None
    config: str | None = None  # its path, as it was given
    config_hash: str | None = None
    seed: Seed | None = None
    run_id: str | None = None
    command_line: list[str] = []
    command: str | None = None  # what the user typed, if tools/weir ran the program
    asked: str | None = None  # the digest by which a batch knows the run again
    branch: parts.Branch | None = None
    clock: str | None = None  # virtual or real
    host: dict[str, str | int] = {}
    versions: dict[str, str | int] = {}
    licenses: list[FileLicense] = []
    started_utc: datetime | None = None
    ended_utc: datetime | None = None
    exit: int | None = None
    verdict: str | None = None

    @property
    def made_by(self) -> str:
        """The program as its --version prints it."""
        return f"{self.program} {self.version} (commit {self.commit})"


class RunHost(Section):
    """A host of a live run, and its clock against the switch's, from frames that both captured."""

    role: str
    command: str | None
    balanced: bool | None
    verdict: str | None
    disciplined_by: str | None  # chrony, or the kernel that NTP or PTP steers
    clock_error_ns: Count | None  # as disciplined_by has it
    frames: Count | Absent = UNSET
    offset_utc_ns: Count | Absent | None = UNSET  # the middle of the run, by the switch's clock
    offset_ns: Signed | Absent | None = UNSET  # then; ahead is positive
    offset_error_ns: Number | Absent | None = UNSET
    drift_ppm: Signed | Absent | None = UNSET
    drift_error_ppm: Number | Absent | None = UNSET


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
    """The accounts of a live run's programs, or hosts; what the switch counted, if there is one."""

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
    paths: dict[str, parts.PathLedger] | Absent = UNSET


class Live(parts.AnyProgram, tag="live", kw_only=True):
    """A live run's programs as one (`weir run --live`)."""

    ledger: LiveLedger
    hosts: dict[str, RunHost] | Absent = UNSET


class ImportedGroup(Section):
    """Figures of flows that another program has measured."""

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


class Import(parts.Summary, tag="import"):
    """weir import: a result of flent or iperf3."""

    groups: list[ImportedGroup]


AnySummary = (
    parts.Simulation | parts.Offline | parts.Replay | parts.Switch | parts.Sender | Live
    | parts.Analysis | parts.Comparison | Import
)  # fmt: skip


def decode(text: bytes | str, place: str = "summary") -> AnySummary:
    """Returns a summary as its type. UserError: the first thing in it that is not as described."""
    try:
        made: AnySummary = msgspec.json.decode(text, type=AnySummary)
    except msgspec.MsgspecError as error:
        raise UserError(f"{place}: {error}", 1) from None
    return made


def schema() -> Json:
    """Returns a JSON Schema (draft 2020-12) of every kind of summary."""
    made = msgspec.json.schema(AnySummary)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"summary.json of weir, schema {VERSION}",
        **made,
    }
