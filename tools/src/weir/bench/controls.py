# SPDX-License-Identifier: BSD-3-Clause
"""Measures an ACK of each congestion control: instructions, time and state.

weir-cc runs each in a closed loop; the loop's own cost, that of `fixed`, is taken off. Instructions
are counted by valgrind and are the same on any machine with this build; times are not.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

from msgspec import Struct

from weir.base import foreign
from weir.base.errors import UserError
from weir.base.page import Column, Status, Table
from weir.bench import sim
from weir.bench.rounds import Result, Rounds, machine

PROGRAM = "tools/bench/weir-cc"
LOOP = "fixed"
STATE_BYTES_MAX = 256  # CC_STATE_MAX_BYTES
NS_MAX = 100.0
COUNTED_ACKS = (20_000, 60_000)  # the difference leaves out the start
COLUMNS = (
    Column("control", "name"),
    Column("state", "state_bytes", "{} B".format),
    Column("instructions\nper ACK", "instructions", "{:.0f}".format),
    Column("\nns per ACK", "ns", "{:.1f}".format),
    Column("of it\nthe loop", "loop_ns", "{:.1f}".format),
)


class Line(Struct):
    """A control's line of weir-cc; ns is per ACK."""

    name: str
    state_bytes: int
    ns: float


class Row(Struct):
    """Figures of a control, less those of the loop in the same round."""

    name: str
    state_bytes: int
    ns: float
    loop_ns: float
    instructions: float | None
    within: bool


class Controls(Result):
    """The result of `weir bench cc`."""

    rounds: int
    machine: str
    rows: list[Row]

    def medians(self) -> dict[str, float]:
        return {row.name: row.ns for row in self.rows}

    def parts(self) -> Iterator[Table | Status | str]:
        """Yields the table and its notes."""
        yield Table(COLUMNS, self.rows)
        beyond = ", ".join(row.name for row in self.rows if not row.within)
        limits = f"{STATE_BYTES_MAX} bytes of state and {NS_MAX:.0f} ns per ACK"
        yield f"beyond {limits}: {beyond}" if beyond else f"all are within {limits}"
        yield (
            f"1 Gbit/s, 20 ms, two segments per ACK, 256 flows in turns; median of {self.rounds}"
            " rounds; the loop's own cost, that of `fixed`, is taken off"
        )
        if any(row.instructions is None for row in self.rows):
            yield "instructions are counted by valgrind, which is not installed"


def parse_instructions(text: str) -> int:
    """Returns the total that callgrind writes to standard error."""
    found = re.search(r"Collected : (\d+)", text)
    if found is None:
        raise UserError("valgrind counted nothing", 1)
    return int(found.group(1))


def instructions(program: Path, name: str) -> float:
    """Counts the instructions of an ACK, the loop's included."""
    valgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    few, many = (
        parse_instructions(sim.child([*valgrind, program, name, acks])[1]) for acks in COUNTED_ACKS
    )
    # weir-cc measures after a tenth more.
    return (many - few) / (1.1 * (COUNTED_ACKS[1] - COUNTED_ACKS[0]))


def report(rounds: Sequence[Mapping[str, Line]], counted: Mapping[str, float]) -> Controls:
    """Returns the result of all rounds."""
    rows = []
    loop_ns = [lines[LOOP].ns for lines in rounds]
    for name, line in rounds[0].items():
        if name != LOOP:
            ns = median(lines[name].ns - loop for lines, loop in zip(rounds, loop_ns, strict=True))
            count = counted[name] - counted[LOOP] if name in counted else None
            within = line.state_bytes <= STATE_BYTES_MAX and ns <= NS_MAX
            rows.append(Row(name, line.state_bytes, ns, median(loop_ns), count, within))
    return Controls(len(rounds), machine(), rows)


def measure(acks: int, rounds: Rounds) -> Controls:
    """Builds weir-cc and measures all controls in rounds; counts instructions unless alone."""
    program = sim.build_targets(PROGRAM) / PROGRAM
    measured: list[dict[str, Line]] = []
    for _ in range(rounds.repeat):
        out = sim.child([program, "-", acks])[0].splitlines()
        lines = [foreign.decode(line.encode(), Line, "weir-cc") for line in out]
        measured.append({line.name: line for line in lines})
    names = [] if rounds.alone or shutil.which("valgrind") is None else measured[0]
    return report(measured, {name: instructions(program, name) for name in names})
