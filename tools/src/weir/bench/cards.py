# SPDX-License-Identifier: BSD-3-Clause
"""Measures two network cards that are joined by a cable: weir-sender sends from one to the other.

Weir was built without cards, so that all of this is what their owners find. The rows say what a
port carries with large and with small frames, and how exactly paced segments leave when there is
room: the latter as the program sees it, which is when it gave them to the card.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from weir.base import units
from weir.base.errors import UserError
from weir.base.page import Column, Status, Table
from weir.base.programs import find_program
from weir.bench.rounds import Result, Rounds, machine
from weir.live import pci

Summary = dict[str, Any]
ROWS = {  # segments, and the flows that send them
    "1460 B, as fast as it goes": "{count: 100, cc: cubic, mss: 1460B}",
    "536 B, as fast as it goes": "{count: 100, cc: cubic, mss: 536B}",
    "1460 B, 1 Gbit/s paced": "{count: 100, cc: {fixed: {rate: 10Mbit}}, mss: 1460B}",
}
ROLES = ("sender", "receiver")
COLUMNS = (
    Column("row"),
    Column("goodput", "goodput_bps", units.rate),
    Column("frames/s", "frames_per_s", units.count),
    Column("missed", unit=units.count),
    Column("retransmits", unit=units.count),
    Column("RTT", "rtt_mean_ns", units.time),
    Column("pacing error p99", "pacing_error_p99_ns", units.time),
    Column("busiest lcore", "busy", units.percent),
)
NOTE = "missed: frames that the cards had no room for; pacing error: until the card has a segment"


class Row(Struct):
    """Figures of a row."""

    row: str
    goodput_bps: float
    frames_per_s: float
    missed: int | None
    retransmits: int
    rtt_mean_ns: float | None
    pacing_error_p99_ns: int | None
    busy: float
    verdict: str


class CardsResult(Result):
    """The result, with what the machine says of its cards."""

    machine: str
    cards: list[str]
    lcores: list[int]
    duration_s: float
    rounds: int
    rows: list[Row]

    def medians(self) -> dict[str, float]:
        return {row.row: 1e9 / row.frames_per_s for row in self.rows if row.frames_per_s > 0}

    def parts(self) -> Iterator[Table | Status | str]:
        """Yields the cards, the table, and what the program said of each run."""
        cards, lcores = " and ".join(self.cards), ", ".join(map(str, self.lcores))
        yield f"{self.machine}; {cards}; lcores {lcores}; medians of {self.rounds} rounds"
        yield Table(COLUMNS, self.rows)
        yield NOTE
        for row in self.rows:
            if row.verdict != "ok":
                yield Status("warn", f"{row.row}: {row.verdict}")


def config(flows: str, devices: Sequence[str], lcores: Sequence[int]) -> str:
    """Returns weir-sender's configuration."""
    ports = "".join(
        f'\n      - {{name: {role}, role: {role}, dev: "{dev}"}}'
        for role, dev in zip(ROLES, devices, strict=True)
    )
    return (
        f"flows: [{flows}]\ntelemetry: {{level: 0}}\n"
        "live:\n  allow_nic: yes\n"
        f"  sender:\n    lcores: [{', '.join(map(str, lcores))}]\n    ports:{ports}\n"
    )


def described(device: str) -> str:
    """Returns a card's address with its identifiers and the slot's rate, or other devices as is."""
    folder = pci.ROOT / "sys/bus/pci/devices" / device
    if not folder.exists():
        return device
    ids = ":".join(pci.read(folder / name).removeprefix("0x") for name in ("vendor", "device"))
    link = pci.Link.read(pci.Card(folder), "current")
    return f"{device} [{ids}{f', {link}' if link else ''}]"


def figures(name: str, found: Summary) -> Row:
    """Returns the figures of a run from its summary."""
    ports, group = found["sender_ports"], found["groups"][0]
    missed = [port["driver_missed"] for port in ports]
    lcores = found.get("sender_lcores") or [found["sender_lcore"]]
    return Row(
        name,
        group["goodput_bps"],
        ports[0]["tx_frames"] / found["virtual_s"],
        None if None in missed else sum(missed),
        group["retransmits"],
        group["rtt_mean_ns"],
        found.get("emulation", {}).get("pacing_error_p99_ns"),
        max(lcore["busy"] for lcore in lcores),
        found["verdict"],
    )


def once(flows: str, devices: Sequence[str], lcores: Sequence[int], seconds: float) -> Summary:
    """Runs weir-sender and returns its summary. UserError: it could not run."""
    with tempfile.TemporaryDirectory(prefix="weir-cards") as folder:
        file, out = Path(folder, "config.yaml"), Path(folder, "run")
        file.write_text(config(flows, devices, lcores), encoding="utf-8")
        argv = [
            *map(str, (find_program("sender"), file, "--out", out)),
            "--duration",
            f"{seconds}s",
        ]
        done = subprocess.run(argv, capture_output=True, text=True)
        if done.returncode != 0:
            raise UserError(f"bench cards: {done.stderr.strip()[-400:]}", 1)
        summary: Summary = json.loads((out / "summary-sender.json").read_bytes())
        return summary


def measure(
    devices: Sequence[str], lcores: Sequence[int], seconds: float, rounds: Rounds
) -> CardsResult:
    """Measures all rows in rounds, and keeps of each the run of median goodput."""
    runs: dict[str, list[Row]] = {name: [] for name in ROWS}
    for number in rounds:
        for name, flows in ROWS.items():
            rounds.say(number, name)
            runs[name].append(figures(name, once(flows, devices, lcores, seconds)))
    middles = [
        sorted(rows, key=lambda row: row.goodput_bps)[len(rows) // 2] for rows in runs.values()
    ]
    found = [described(device) for device in devices]
    return CardsResult(machine(), found, list(lcores), seconds, rounds.repeat, middles)
