# SPDX-License-Identifier: BSD-3-Clause
"""Prints the end of `weir shell`: a row for each direction, and what disturbed it."""

from __future__ import annotations

from typing import Any

from weir.analysis import summary as tables
from weir.base import terminal, units
from weir.base.page import Table

COLUMNS = ("", "carried", "rate", "used", "mean queue", "p99 queue", "drops", "delay error")


def rows(summary: dict[str, Any], swap: bool) -> list[list[str]]:
    """Returns what passed up, then down, its link, and how late packets left: median, p99."""
    paths = ("reverse", "forward") if swap else ("forward", "reverse")
    return [row(summary, name, path) for name, path in zip(("up", "down"), paths, strict=True)]


def row(summary: dict[str, Any], name: str, path: str) -> list[str]:
    """Returns the figures of a direction."""
    account = summary.get("ledger", {}).get("paths", {}).get(path, {})
    carried = account.get("out", {}).get("bytes")
    seconds = summary.get("virtual_s")
    link = summary.get("links", {}).get(path, {})
    lost = sum(count for _, count, _ in tables.drops(account))
    ports = summary.get("emulation", {}).get("ports", [])
    late: dict[str, Any] = next((port for port in ports if port.get("path") == path), {})
    errors = [units.time(late.get(f"delay_error_{q}_ns")) for q in ("p50", "p99")]
    return [
        name,
        units.size(carried),
        units.rate(8 * carried / seconds if seconds and carried is not None else None),
        units.percent(link.get("utilisation"), 1),
        units.time(link.get("queue_mean_ns")),
        units.time(link.get("sojourn_p99_ns")),
        units.count(lost),
        ", ".join(errors),
    ]


def show(summary: dict[str, Any], swap: bool) -> None:
    """Prints the table on standard error. An interrupted switch is how a shell ends."""
    screen = terminal.console(stderr=True)
    terminal.print_table(screen, Table(COLUMNS, rows(summary, swap), left=1))
    facts = [*summary.get("faults", []), *summary.get("verdicts", [])]
    for fact in facts:
        if fact["cause"] != "interrupted":
            screen.print(tables.sentence(fact), style="yellow", soft_wrap=True, markup=False)
    if not summary.get("ledger", {}).get("balanced"):
        screen.print("ledger: NOT BALANCED", style="bold red")
