# SPDX-License-Identifier: BSD-3-Clause
"""Measures an ACK of each congestion control: instructions, time and state.

weir-cc runs each in a closed loop; the loop's own cost, that of `fixed`, is taken off. Instructions
are counted by valgrind and are the same on any machine with this build; times are not.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console

from weir import bootstrap
from weir.base import programs, terminal
from weir.base.errors import UserError
from weir.base.page import Table
from weir.bench import sim

PROGRAM = "tools/bench/weir-cc"
LOOP = "fixed"
STATE_BYTES_MAX = 256  # CC_STATE_MAX_BYTES
NS_MAX = 100.0
COUNTED_ACKS = (20_000, 60_000)  # the difference leaves out the start
COLUMNS = ("control", "state", "instructions\nper ACK", "\nns per ACK", "of it\nthe loop")


def run(argv: Sequence[str | Path]) -> subprocess.CompletedProcess[str]:
    """Runs a program; UserError: it failed."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = done.stderr.strip() or f"exit {done.returncode}"
        raise UserError(f"{Path(argv[0]).name}: {said}", 1)
    return done


def parse(text: str) -> dict[str, tuple[int, float]]:
    """Returns state in bytes and ns per ACK, by control, as weir-cc prints them."""
    lines = [json.loads(line) for line in text.splitlines()]
    return {line["name"]: (int(line["state_bytes"]), float(line["ns"])) for line in lines}


def parse_instructions(text: str) -> int:
    """Returns the total that callgrind writes to standard error."""
    found = re.search(r"Collected : (\d+)", text)
    if found is None:
        raise UserError("valgrind counted nothing", 1)
    return int(found.group(1))


def instructions(program: Path, name: str) -> float:
    """Counts the instructions of an ACK, the loop's included."""
    counts = []
    for acks in COUNTED_ACKS:
        argv = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
        counts.append(parse_instructions(run([*argv, program, name, str(acks)]).stderr))
    # weir-cc measures after a tenth more.
    return (counts[1] - counts[0]) / (1.1 * (COUNTED_ACKS[1] - COUNTED_ACKS[0]))


def report(
    rounds: Sequence[Mapping[str, tuple[int, float]]], counted: Mapping[str, float]
) -> dict[str, Any]:
    """Returns the figures of each control, less those of the loop in the same round."""
    rows = []
    for name, (state, _) in rounds[0].items():
        if name == LOOP:
            continue
        net = [one[name][1] - one[LOOP][1] for one in rounds]
        rows.append(
            {
                "name": name,
                "state_bytes": state,
                "ns": median(net),
                "loop_ns": median(one[LOOP][1] for one in rounds),
                "instructions": counted[name] - counted[LOOP] if name in counted else None,
                "within": state <= STATE_BYTES_MAX and median(net) <= NS_MAX,
            }
        )
    return {"rounds": len(rounds), "machine": sim.machine(), "rows": rows}


def measure(repeat: int, acks: int, counted: bool = True) -> dict[str, Any]:
    """Builds weir-cc and measures all controls in rounds; counts instructions or not."""
    try:
        sim.build_targets(PROGRAM)
    except bootstrap.SetupError as error:
        raise UserError(str(error), 1) from None
    program = programs.build_dir() / PROGRAM
    rounds = [parse(run([program, "-", str(acks)]).stdout) for _ in range(repeat)]
    names = rounds[0] if counted and shutil.which("valgrind") is not None else {}
    return report(rounds, {name: instructions(program, name) for name in names})


def medians(found: Mapping[str, Any]) -> dict[str, float]:
    return {row["name"]: row["ns"] for row in found["rows"]}


def show(found: Mapping[str, Any], screen: Console) -> None:
    """Prints the table, and what has to be known to read it."""
    table = []
    for row in found["rows"]:
        counted = row["instructions"]
        table.append(
            [
                row["name"],
                f"{row['state_bytes']} B",
                "–" if counted is None else f"{counted:.0f}",
                f"{row['ns']:.1f}",
                f"{row['loop_ns']:.1f}",
            ]
        )
    terminal.print_table(screen, Table(COLUMNS, table, left=1))
    screen.print()
    beyond = [row["name"] for row in found["rows"] if not row["within"]]
    limits = f"{STATE_BYTES_MAX} bytes of state and {NS_MAX:.0f} ns per ACK"
    screen.print(
        f"beyond {limits}: {', '.join(beyond)}" if beyond else f"all are within {limits}",
        soft_wrap=True,
    )
    screen.print(
        f"1 Gbit/s, 20 ms, two segments per ACK, 256 flows in turns; median of {found['rounds']}"
        " rounds; the loop's own cost, that of `fixed`, is taken off",
        soft_wrap=True,
    )
    if any(row["instructions"] is None for row in found["rows"]):
        screen.print("instructions are counted by valgrind, which is not installed")
