# SPDX-License-Identifier: BSD-3-Clause
"""Prints the end of `weir shell`: a row for each direction, and what disturbed it."""

from __future__ import annotations

from weir.analysis import summary as tables
from weir.analysis.run_summary import RunSummary
from weir.base import terminal, units
from weir.base.page import Table

COLUMNS = ("", "carried", "rate", "used", "mean queue", "p99 queue", "drops", "delay error")


def rows(summary: RunSummary, swap: bool) -> list[list[str]]:
    """Returns rows of COLUMNS: what passed up, then what passed down."""
    paths = ("reverse", "forward") if swap else ("forward", "reverse")
    return [row(summary, name, path) for name, path in zip(("up", "down"), paths, strict=True)]


def row(summary: RunSummary, name: str, path: str) -> list[str]:
    """Returns the figures of a direction."""
    account, link = summary.ledger.paths.get(path), summary.links.get(path)
    carried = account.out.bytes if account else None
    seconds = summary.virtual_s
    lost = sum(count for _, count, _ in tables.drops(account)) if account else None
    late = next((port for port in summary.emulation.ports or () if port.path == path), None)
    errors = (late.delay_error_p50_ns, late.delay_error_p99_ns) if late else (None, None)
    return [
        name,
        units.size(carried),
        units.rate(8 * carried / seconds if seconds and carried is not None else None),
        units.percent(link.utilisation if link else None, 1),
        units.time(link.queue_mean_ns if link else None),
        units.time(link.sojourn_p99_ns if link else None),
        units.count(lost),
        ", ".join(map(units.time, errors)),
    ]


def show(summary: RunSummary, swap: bool) -> None:
    """Prints table and facts on standard error."""
    screen = terminal.console(stderr=True)
    terminal.print_table(screen, Table(COLUMNS, rows(summary, swap), left=1))
    for fact in (*summary.faults, *summary.verdicts):
        screen.print(tables.sentence(fact), style="yellow", soft_wrap=True, markup=False)
    if not summary.ledger.balanced:
        screen.print("ledger: NOT BALANCED", style="bold red")
