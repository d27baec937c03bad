# SPDX-License-Identifier: BSD-3-Clause
"""Counts what a data packet costs weir-sim: instructions, and misses of two simulated caches.

No neighbour disturbs these counts, and they are the same on any machine with this build. So they
are compared with those of the last release, which tools/bench/instructions.json keeps with the
compiler and the options that they depend on.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from weir.base import foreign, programs, units
from weir.base.errors import UserError
from weir.base.page import Column, Status, Table
from weir.bench import sim
from weir.bench.rounds import Result, Rounds

CONFIG = sim.SOURCES / "instructions.yaml"
KEPT = sim.SOURCES / "instructions.json"
CONTROLS = ("newreno", "cubic", "copa", "bbr")
LENGTHS_S = (1.0, 1.2)
CACHES = ("--cache-sim=yes", "--D1=49152,12,64", "--LL=2097152,16,64")
TOLERANCE = 0.02
COUNTED = {
    "instructions": r"I\s+refs",
    "l1_misses": "D1  misses",
    "l2_misses": "LLd misses",
}
BUILD_OPTIONS = ("buildtype", "b_ndebug", "b_pgo", "b_sanitize")
COLUMNS = (
    Column("control", "name"),
    Column("instructions", unit="{:.0f}".format),
    Column("misses of\n48 KiB", "l1_misses", "{:.2f}".format),
    Column("misses of\n2 MiB", "l2_misses", "{:.2f}".format),
    Column("instructions\nby the release's", "ratio", "{:.3f}".format),
)


class Counts(Struct):
    """The cost of a data packet."""

    instructions: float
    l1_misses: float
    l2_misses: float


class Kept(Struct):
    """The counts of a release, by control."""

    compiler: str
    options: dict[str, str]
    rows: dict[str, Counts]


class Row(Counts, kw_only=True):
    """A control's counts; the ratio is None where they are not comparable with the release's."""

    name: str
    ratio: float | None


class Instructions(Result):
    """The result of `weir bench instructions`."""

    compiler: str
    options: dict[str, str]
    rows: list[Row]
    why_not: str | None  # why they are not compared

    @property
    def failed(self) -> bool:
        return any(row.ratio is not None and row.ratio > 1 + TOLERANCE for row in self.rows)

    def medians(self) -> dict[str, float]:
        return {row.name: row.instructions for row in self.rows}

    def parts(self) -> Iterator[Table | Status | str]:
        """Yields the table and its notes."""
        yield Table(COLUMNS, self.rows)
        yield (
            "per data packet, its ACK included: 5000 flows through 10 Gbit/s and 20 ms, no losses;"
            f" {self.compiler}"
        )
        if self.why_not is not None:
            yield f"not compared with the last release: {self.why_not}"
        if self.failed:
            limit = units.percent(TOLERANCE, 0)
            yield Status("fail", f"a packet costs over {limit} more instructions than it did")


class Receivers(Struct):
    """The receivers of a run's summary."""

    segs: int


class Group(Struct):
    """A flow group of a run's summary."""

    retransmits: int


class Summary(Struct):
    """The part of weir-sim's summary that is read: older commits lack others."""

    receivers: Receivers
    groups: list[Group]


def parse(text: str) -> list[int]:
    """Returns the totals that cachegrind writes to standard error, in the order of COUNTED."""
    found = [re.search(rf"{name}: +([\d,]+)", text) for name in COUNTED.values()]
    if None in found:
        raise UserError("valgrind counted nothing", 1)
    return [int(one.group(1).replace(",", "")) for one in found if one is not None]


def run(control: str, length_s: float) -> tuple[list[int], int]:
    """Returns the totals of a run, and the data packets that arrived."""
    with tempfile.TemporaryDirectory(prefix="weir-bench-") as folder:
        out = Path(folder) / "run"
        argv = ["valgrind", "--tool=cachegrind", "--cachegrind-out-file=/dev/null", *CACHES]
        argv += [str(programs.find_program("sim")), str(CONFIG), "--out", str(out)]
        argv += ["--duration", f"{length_s}s", "-o", f"flows.0.cc={control}", "--threads", "1"]
        totals = parse(sim.child(argv)[1])
        summary = foreign.read_json(out / "summary.json", Summary)
    if any(group.retransmits for group in summary.groups):
        raise UserError(f"{control}: {CONFIG} has losses, which would be counted", 1)
    return totals, summary.receivers.segs


def count(control: str) -> Counts:
    """Returns what a data packet costs between the two lengths."""
    (before, few), (after, many) = (run(control, length) for length in LENGTHS_S)
    each = [(b - a) / (many - few) for a, b in zip(before, after, strict=True)]
    return Counts(*each)


def compiler() -> str:
    """Returns what weir-sim was compiled with, as the program itself says."""
    found = re.search(rb"(GCC: |clang version )[^\0]+", programs.find_program("sim").read_bytes())
    return found.group().decode() if found else "unknown"


def options() -> dict[str, str]:
    """Returns the options of the build that decide how many instructions there are."""
    file = programs.build_dir() / "meson-info/intro-buildoptions.json"
    values = {
        str(option["name"]): str(option["value"]).lower()
        for option in foreign.read_json(file, list[dict[str, object]])
    }
    return {name: values[name] for name in BUILD_OPTIONS if name in values}


def why_not(kept: Kept, compiled: str, built: Mapping[str, str]) -> str | None:
    """Returns why counts of this build say nothing beside the kept ones; None: they do."""
    if compiled != kept.compiler:
        return f"its counts are of {kept.compiler}, not of {compiled}"
    differs = [
        f"{name}={kept.options.get(name)}"
        for name in built
        if built[name] != kept.options.get(name)
    ]
    return f"its counts are of a build with {', '.join(differs)}" if differs else None


def measure(controls: Sequence[str], keep: bool, rounds: Rounds) -> Instructions:
    """Counts all controls; with `keep` the file has these counts from now on."""
    if shutil.which("valgrind") is None:
        raise UserError("instructions are counted by valgrind, which is not installed", 1)
    kept, compiled, built = foreign.read_json(KEPT, Kept), compiler(), options()
    why = why_not(kept, compiled, built)
    rows = []
    for control in controls:
        counts = count(control)
        release = kept.rows.get(control) if why is None else None
        ratio = counts.instructions / release.instructions if release is not None else None
        rows.append(Row(**msgspec.structs.asdict(counts), name=control, ratio=ratio))
        rounds.say(1, f"{control}: {counts.instructions:.0f} instructions per data packet")
    if keep:
        others = kept.rows if why is None else {}
        write(Kept(compiled, built, others | {row.name: counts_of(row) for row in rows}))
    return Instructions(compiled, built, rows, why)


def counts_of(row: Row) -> Counts:
    return Counts(*(round(getattr(row, name), 2) for name in COUNTED))


def write(kept: Kept) -> None:
    KEPT.write_text(json.dumps(msgspec.to_builtins(kept), indent=1) + "\n")
