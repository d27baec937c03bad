# SPDX-License-Identifier: BSD-3-Clause
"""Frames of live programs, or of a sweep, as tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from weir.base import units
from weir.live import client
from weir.live.sample import Frame, Row, Sample, frame, take

Columns = tuple[tuple[str, ...], int, tuple[int, ...]]
# Columns, how many of them hold names, and those a narrow terminal does without, in this order.
LCORES = (
    ("program", "prefix", "cpu", "busy", "iteration", "longest", "time"),
    2,
    (4, 5, 1),
)
PORTS = (
    ("port", "program", "device", "", "in", "", "out", "", "dropped"),
    4,
    (2, 1, 7, 5, 3),
)
PATHS = (
    ("path", "rate", "of", "used", "queue", "delay", "inside", "drops", "marks", "late"),
    1,
    (6, 9, 8, 2, 4),
)
GROUPS = (
    (
        "group",
        "cc",
        "open",
        "waiting",
        "done",
        "failed",
        "goodput",
        "RTT",
        "cwnd",
        "paced",
        "resent",
    ),
    2,
    (3, 9, 5, 4, 1, 8),
)
SWEEPS = (("sweep", "cells", "done", "reused", "failed", "running", "left"), 1, (3, 5))


def sweep_cells(row: Row) -> list[str]:
    """Returns a row for people."""
    counts = (row[name] for name in ("cells", "done", "reused", "failed", "running"))
    return [row["name"], *map(units.count, counts), units.time(row["left_ns"])]


def lcore_cells(row: Row) -> list[str]:
    """Returns a row for people."""
    return [
        row["program"],
        row["prefix"],
        str(row["cpu"]),
        units.percent(row["busy"], 1),
        units.time(row["iteration_mean_ns"]),
        units.time(row["iteration_max_ns"]),
        f"{row['elapsed_s']:.1f} of {units.number(row['duration_s'])} s",
    ]


def port_cells(row: Row) -> list[str]:
    """Returns a row for people."""
    return [
        row["name"],
        row["program"],
        row["dev"],
        "up" if row["up"] else "down",
        units.rate(row["rx_bps"]),
        f"{units.number(row['rx_pps'])} pkt/s",
        units.rate(row["tx_bps"]),
        f"{units.number(row['tx_pps'])} pkt/s",
        units.count(row["dropped"]),
    ]


def path_cells(path: Row, links: Sequence[Row]) -> Iterator[list[str]]:
    """Yields a row per path, its first link in it; a row more for each further link."""
    first = links[0] if links else {}
    yield [
        path["name"],
        units.rate(path["out_bps"]),
        *link_cells(first),
        units.count(path["inside_pkts"]),
        units.count(path["drops"]),
        units.count(first.get("marks")),
        units.time(path["late_mean_ns"]),
    ]
    for link in links[1:]:
        rate = units.rate(link["out_bps"])
        drops, marks = units.count(link["drops"]), units.count(link["marks"])
        yield [link["name"], rate, *link_cells(link), "", drops, marks, ""]


def link_cells(link: Row) -> list[str]:
    """Returns a link's part of a path's row."""
    return [
        units.rate(link.get("rate_bps")),
        units.percent(link.get("utilisation"), 1),
        f"{units.count(link.get('queue_pkts'))} pkt" if link else units.NONE,
        units.time(link.get("queue_ns")),
    ]


def group_cells(row: Row) -> list[str]:
    """Returns a row for people."""
    flows = row["flows"]
    return [
        row["name"],
        row["cc"],
        *(units.count(flows[state]) for state in ("open", "waiting", "done", "failed")),
        units.rate(row["goodput_bps"]),
        units.time(row["srtt_mean_ns"]),
        f"{units.number(row['cwnd_mean_segs'])} segs" if row["cwnd_mean_segs"] else units.NONE,
        units.rate(row["pacing_bps"]),
        units.count(row["retransmits"]),
    ]


def fitting(
    columns: Sequence[str], rows: Sequence[Sequence[str]], spare: Sequence[int], width: int
) -> list[int]:
    """Returns the columns that a line has room for, without as few of the spare ones as will do."""
    kept = list(range(len(columns)))
    needed = [max(len(line[i]) for line in (columns, *rows)) for i in kept]
    for left_out in spare:
        if sum(needed[i] + 2 for i in kept) - 2 <= width:
            break
        kept.remove(left_out)
    return kept


def tables(shown: Frame) -> Iterator[tuple[Columns, list[list[str]]]]:
    """Yields a frame for people: a table for each kind of thing that there is."""
    if "sweeps" in shown:
        yield SWEEPS, [sweep_cells(row) for row in shown["sweeps"]]
        return
    links = shown["links"]
    paths: list[list[str]] = []
    for path in shown["paths"]:
        paths += path_cells(path, [link for link in links if link["path"] == path["name"]])
    for columns, rows in (
        (LCORES, [lcore_cells(row) for row in shown["lcores"]]),
        (PORTS, [port_cells(row) for row in shown["ports"]]),
        (PATHS, paths),
        (GROUPS, [group_cells(row) for row in shown["groups"]]),
    ):
        if rows:
            yield columns, rows


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
