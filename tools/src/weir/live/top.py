# SPDX-License-Identifier: BSD-3-Clause
"""What the running programs do, once a second: ports, paths, groups of flows, lcores.

As with ctl, the programs leave a tenth of their CPUs to this: it imports little.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from weir.base import terminal, units
from weir.base.errors import UserError, guarded
from weir.live import client
from weir.live.ctl import Parser
from weir.live.sample import Frame, Row, Sample, frame, take
from weir.many import progress

INTERVAL_S_MIN = 0.1
DEFAULT_ADDRESS = "127.0.0.1:8790"
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
    """A row for people."""
    counts = (row[name] for name in ("cells", "done", "reused", "failed", "running"))
    return [row["name"], *map(units.count, counts), units.time(row["left_ns"])]


def lcore_cells(row: Row) -> list[str]:
    """A row for people."""
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
    """A row for people."""
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
    """A row per path, its first link in it; a row more for each further link."""
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
    """A link's part of a path's row."""
    return [
        units.rate(link.get("rate_bps")),
        units.percent(link.get("utilisation"), 1),
        f"{units.count(link.get('queue_pkts'))} pkt" if link else units.NONE,
        units.time(link.get("queue_ns")),
    ]


def group_cells(row: Row) -> list[str]:
    """A row for people."""
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
    """The columns that a line has room for, without as few of the spare ones as will do."""
    kept = list(range(len(columns)))
    needed = [max(len(line[i]) for line in (columns, *rows)) for i in kept]
    for left_out in spare:
        if sum(needed[i] + 2 for i in kept) - 2 <= width:
            break
        kept.remove(left_out)
    return kept


def tables(shown: Frame) -> Iterator[tuple[Columns, list[list[str]]]]:
    """A frame for people: a table for each kind of thing that there is."""
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


def render(shown: Frame, width: int) -> Group:
    """A frame for a terminal."""
    parts: list[Any] = []
    for (columns, left, spare), rows in tables(shown):
        kept = fitting(columns, rows, spare, width)
        names = tuple(columns[i] for i in kept)
        cells = [[row[i] for i in kept] for row in rows]
        table = terminal.table(names, cells, sum(i < left for i in kept))
        parts += [*([Text()] if parts else []), table]
    return Group(*parts)


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
        """One of each program; those that have ended are left out from now on."""
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
        """A frame per interval, until nothing runs or the user quits."""
        before = self.sample()
        while before and not quits(interval_s):
            now = self.sample()
            if now:
                yield frame(before, now)
            before = now


def seconds(text: str) -> float:
    """An interval, not too short."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not INTERVAL_S_MIN <= value < math.inf:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from {INTERVAL_S_MIN}")
    return value


def parser() -> Parser:
    """What `weir top` takes."""
    made = Parser(
        prog="weir top",
        description="Watches the live programs that run: ports, paths, groups of flows, lcores."
        " q ends it.",
        epilog="Examples: weir top; weir top --once --json; weir top --interval 0.2;"
        " weir top --serve; weir top --serve 127.0.0.1:9000 --sweep runs/buffer",
    )
    made.add_argument(
        "--prefix",
        metavar="NAME",
        action="append",
        default=[],
        help="only the program with this prefix; repeatable",
    )
    made.add_argument(
        "--interval", metavar="S", type=seconds, default=1.0, help="seconds between samples [1]"
    )
    made.add_argument("--once", action="store_true", help="one frame, from two samples")
    made.add_argument("--json", action="store_true", help="a line of JSON per frame")
    made.add_argument("--sweep", metavar="DIR", type=Path, help="a sweep that runs, by its folder")
    made.add_argument(
        "--serve",
        metavar="ADDR:PORT",
        nargs="?",
        const=DEFAULT_ADDRESS,
        help=f"as a page for a browser, and /metrics for Prometheus [{DEFAULT_ADDRESS}]",
    )
    made.add_argument(
        "--token",
        default=os.environ.get("WEIR_TOKEN"),
        help="what each request to --serve must bring; needed beyond this machine [WEIR_TOKEN]",
    )
    return made


def main() -> int:
    """`weir top` by itself."""
    return guarded(lambda: execute(sys.argv[2:]))


def execute(argv: Sequence[str]) -> int:
    """Shows what the words ask for."""
    asked = parser().parse_args(list(argv))
    if asked.serve is not None and (asked.once or asked.json):
        raise UserError("--serve shows frames until the run ends: without --once and --json")
    if asked.sweep is not None and asked.prefix:
        raise UserError("--prefix chooses a live program: without --sweep")
    with watched(asked) as watch, keyboard() as quits, contextlib.suppress(KeyboardInterrupt):
        frames = watch.frames(asked.interval, quits)
        if asked.serve is not None:
            from weir.live import serve

            serve.serve(asked.serve, asked.token, watch, frames)
        else:
            show(frames, asked.once, asked.json, terminal.console())
    return 0


def watched(asked: argparse.Namespace) -> Watch | progress.Watch:
    """What is watched: programs, or a sweep."""
    return Watch(asked.prefix) if asked.sweep is None else progress.Watch(asked.sweep)


def show(frames: Iterator[Frame], once: bool, as_json: bool, out: Console) -> None:
    """Frames until the programs end, q or Ctrl-C, or only one."""
    if once:
        first = next(frames, None)
        if first is None:
            raise UserError("the program has ended", 1)
        frames = iter([first])
    draw(frames, as_json, out)


@contextlib.contextmanager
def keyboard() -> Iterator[Callable[[float], bool]]:
    """A function that waits for so many seconds, or until the user presses q: then it is true."""
    keys = sys.stdin.fileno() if sys.stdin is not None and sys.stdin.isatty() else -1
    if keys < 0 or os.tcgetpgrp(keys) != os.getpgrp():  # in the background keys are another's
        keys = -1

    def quits(seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        heard = [keys] if keys >= 0 else []
        while select.select(heard, [], [], max(0.0, deadline - time.monotonic()))[0]:
            if os.read(keys, 1) in (b"q", b"Q", b""):  # empty: the terminal is gone
                return True
        return False

    if keys < 0:
        yield quits
        return
    before = termios.tcgetattr(keys)
    tty.setcbreak(keys)
    try:
        yield quits
    finally:
        termios.tcsetattr(keys, termios.TCSADRAIN, before)


def draw(frames: Iterator[Frame], as_json: bool, out: Console) -> None:
    """On a terminal in the place of the frame before, else one after the other."""
    if as_json:
        for shown in frames:
            print(json.dumps(shown), flush=True)
    elif not out.is_terminal:
        for shown in frames:
            out.print(render(shown, out.width))
    else:
        # Neither wider nor higher than the terminal, or the next frame would miss its place.
        narrow = terminal.Screen(highlight=False, markup=False)
        with Live(console=narrow, auto_refresh=False, vertical_overflow="crop") as screen:
            for shown in frames:
                screen.update(render(shown, narrow.width), refresh=True)
