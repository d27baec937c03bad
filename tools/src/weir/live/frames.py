# SPDX-License-Identifier: BSD-3-Clause
"""Frames of live programs, or of a sweep, as tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from weir.base import terminal, units
from weir.base.page import Column, Table
from weir.live import client
from weir.live.sample import Frame, Row, Sample, frame, take


def in_state(state: str) -> Column:
    return Column(state, lambda row: row["flows"][state], "count")


PERCENT = partial(units.percent, decimals=1)
SWEEPS = (
    Column("sweep", "name"),
    *(Column(name, unit="count") for name in ("cells", "done", "reused", "failed", "running")),
    Column("left", "left_ns"),
)
LCORES = (
    Column("program"),
    Column("prefix"),
    Column("cpu", unit=str),
    Column("busy", unit=PERCENT),
    Column("iteration", "iteration_mean_ns"),
    Column("longest", "iteration_max_ns"),
    Column("time", lambda row: f"{row['elapsed_s']:.1f} of {units.number(row['duration_s'])} s"),
)
PORTS = (
    Column("port", "name"),
    Column("program"),
    Column("device", "dev"),
    Column("", lambda row: "up" if row["up"] else "down"),
    Column("in", "rx_bps"),
    Column("", "rx_pps", "pkt/s"),
    Column("out", "tx_bps"),
    Column("", "tx_pps", "pkt/s"),
    Column("dropped", unit="count"),
)
PATHS = (
    Column("path", "name"),
    Column("rate", "out_bps"),
    Column("of", "rate_bps"),
    Column("used", "utilisation", PERCENT),
    Column("queue", "queue_pkts", lambda count: f"{units.count(count)} pkt"),
    Column("delay", "queue_ns"),
    Column("inside", "inside_pkts"),
    Column("drops", unit="count"),
    Column("marks", unit="count"),
    Column("late", "late_mean_ns"),
)
GROUPS = (
    Column("group", "name"),
    Column("cc"),
    *map(in_state, ("open", "waiting", "done", "failed")),
    Column("goodput", "goodput_bps"),
    Column("RTT", "srtt_mean_ns"),
    Column("cwnd", lambda row: row["cwnd_mean_segs"] or None, "segs"),
    Column("paced", "pacing_bps"),
    Column("resent", "retransmits", "count"),
)


def fitting(made: Table, spare: Sequence[int], width: int) -> Table:
    """Returns a table that a line has room for, without as few of its spare columns as will do."""
    sizes, kept = terminal.widths(made), list(range(len(made.columns)))
    for left_out in spare:
        if sum(sizes[place] for place in kept) - terminal.GAP <= width:
            break
        kept.remove(left_out)
    return made.chosen(kept)


def tables(shown: Frame) -> Iterator[tuple[Table, tuple[int, ...]]]:
    """Yields a table for each kind of thing that there is, and its spare columns.

    A narrow terminal does without these, in this order.
    """
    if "sweeps" in shown:
        yield Table(SWEEPS, shown["sweeps"]), (3, 5)
        return
    links = shown["links"]
    paths: list[Row] = []
    for path in shown["paths"]:
        first, *rest = [link for link in links if link["path"] == path["name"]] or [{}]
        paths.append({**first, **path})
        paths += [{**link, "inside_pkts": "", "late_mean_ns": ""} for link in rest]
    for made, spare in (
        (Table(LCORES, shown["lcores"], 2), (4, 5, 1)),
        (Table(PORTS, shown["ports"], 4), (2, 1, 7, 5, 3)),
        (Table(PATHS, paths), (6, 9, 8, 2, 4)),
        (Table(GROUPS, shown["groups"], 2), (3, 9, 5, 4, 1, 8)),
    ):
        if made:
            yield made, spare


class Watch:
    """Samples of the programs that run, until none does. A context manager."""

    def __init__(self, prefixes: Sequence[str]) -> None:
        self.every = not prefixes
        self.programs = client.select(prefixes)
        self.last: list[Sample] = []

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        for program in self.programs:
            program.close()

    def sample(self) -> list[Sample]:
        """Takes a sample of each program; those that have ended are left out from now on."""
        if self.every:
            self.programs += client.running(but=[program.prefix for program in self.programs])
        samples = []
        for program in list(self.programs):
            try:
                samples.append(take(program))
            except (client.Ended, TimeoutError):
                program.close()
                self.programs.remove(program)
        self.last = samples or self.last
        return samples

    def frames(self, interval_s: float, quits: Callable[[float], bool]) -> Iterator[Frame]:
        """Yields a frame per interval, until nothing runs or the user quits."""
        before = self.sample()
        while before and not quits(interval_s):
            now = self.sample()
            if now:
                yield frame(before, now)
            before = now
