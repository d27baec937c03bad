# SPDX-License-Identifier: BSD-3-Clause
"""Measures a packet of each fair-queueing discipline in virtual time, above a fifo.

weir-aqm gives each a closed loop with the same flows, windows and arrivals, without a transport and
without losses; the loops run in turns in one process, and a fifo's cost in the same round is taken
off. So what is compared is the discipline alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from rich.console import Console

from weir import bootstrap
from weir.base import programs, terminal, units
from weir.base.errors import UserError
from weir.base.page import Table
from weir.bench import sim
from weir.bench.controls import run

PROGRAM = "tools/bench/weir-aqm"
BASE = "fifo"
ABOVE_NS_MAX = 40.0
LIMIT = "limit: 1000000pkt"  # above what is ever queued
MEMORY = "memlimit: 4GB"  # of cake, for that limit
REST = "target: 900s, interval: 900s"
# A discipline is at rest if no delay is above its target. With its defaults, 300 ms of queue make
# CoDel and COBALT mark; PIE's probability would only grow until it drops all, as no flow answers.
CASES = {
    BASE: (BASE, LIMIT),
    "drr": ("drr", LIMIT),
    "fq_codel": ("fq_codel", f"{LIMIT}, {REST}"),
    "fq_codel, marking": ("fq_codel", LIMIT),
    "fq_pie": ("fq_pie", f"{LIMIT}, target: 10s"),
    "cake": ("cake", f"{MEMORY}, {LIMIT}, buckets: 65536, {REST}"),
    "cake, marking": ("cake", f"{MEMORY}, {LIMIT}, buckets: 65536"),
}
COLUMNS = (
    "discipline",
    "\nflows",
    "ns above fifo\nper packet",
    "\nfrom",
    "\nto",
    "\nfifo and loop",
    "marked\nper packet",
)

Round = Mapping[str, Mapping[str, float]]  # by case, what weir-aqm prints


def parse(text: str) -> list[Round]:
    """Returns rounds from weir-aqm's lines: a line per case, in order, again and again."""
    lines = [json.loads(line) for line in text.splitlines()]
    count = len(CASES)
    return [
        dict(zip(CASES, lines[i : i + count], strict=True)) for i in range(0, len(lines), count)
    ]


def rows(flows: int, packets: int, rounds: Sequence[Round]) -> list[dict[str, Any]]:
    """Returns the figures of each case, less the fifo's in the same round."""
    found = []
    for name in CASES:
        if name == BASE:
            continue
        above = [one[name]["ns"] - one[BASE]["ns"] for one in rounds]
        found.append(
            {
                "name": name,
                "flows": flows,
                "above_ns": median(above),
                "above_ns_min": min(above),
                "above_ns_max": max(above),
                "fifo_ns": median(one[BASE]["ns"] for one in rounds),
                "marked": rounds[-1][name]["marked"] / packets,
                "dropped": rounds[-1][name]["dropped"],
                "within": median(above) <= ABOVE_NS_MAX,
            }
        )
    return found


def measure(flows: Sequence[int], repeat: int, packets: int) -> dict[str, Any]:
    """Builds weir-aqm and measures all cases in rounds."""
    try:
        sim.build_targets(PROGRAM)
    except bootstrap.SetupError as error:
        raise UserError(str(error), 1) from None
    program = programs.build_dir() / PROGRAM
    cases = [text for name, params in CASES.values() for text in (name, f"{{{params}}}")]
    found: list[dict[str, Any]] = []
    for count in flows:
        done = run([program, str(count), str(packets), str(repeat), *cases])
        found += rows(count, packets, parse(done.stdout))
    return {"rounds": repeat, "machine": sim.machine(), "rows": found}


def medians(found: Mapping[str, Any]) -> dict[str, float]:
    return {f"{row['name']}, {row['flows']:,} flows": row["above_ns"] for row in found["rows"]}


def show(found: Mapping[str, Any], screen: Console) -> None:
    """Prints the table, and what has to be known to read it."""
    cells = [
        [
            row["name"],
            units.count(row["flows"]),
            f"{row['above_ns']:.1f}",
            f"{row['above_ns_min']:.1f}",
            f"{row['above_ns_max']:.1f}",
            f"{row['fifo_ns']:.1f}",
            f"{row['marked']:.2f}",
        ]
        for row in found["rows"]
    ]
    terminal.print_table(screen, Table(COLUMNS, cells, left=1))
    screen.print()
    beyond = [f"{row['name']} ({row['flows']:,})" for row in found["rows"] if not row["within"]]
    limit = f"{ABOVE_NS_MAX:.0f} ns above fifo"
    screen.print(
        f"beyond {limit}: {'; '.join(beyond)}" if beyond else f"all are within {limit}",
        soft_wrap=True,
    )
    screen.print(
        f"10 Gbit/s, 20 ms, 250,000 packets queued; median of {found['rounds']} rounds, each less"
        " the fifo's cost in it; no packet is lost, and there is no transport",
        soft_wrap=True,
    )
