# SPDX-License-Identifier: BSD-3-Clause
"""Shows the running programs once a second: ports, paths, groups of flows, lcores.

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

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from weir.base import terminal
from weir.base.errors import UserError, guarded
from weir.live import serve
from weir.live.ctl import Parser
from weir.live.frames import Watch, fitting, tables
from weir.live.sample import Frame
from weir.many import progress

INTERVAL_S_MIN = 0.1
DEFAULT_ADDRESS = "127.0.0.1:8790"
EXAMPLES = (
    *("top", "top --once --json", "top --interval 0.2", "top --serve"),
    "top --serve 127.0.0.1:9000 --sweep runs/buffer",
)


def render(shown: Frame, width: int) -> Group:
    """Returns a frame as rich draws it."""
    parts: list[RenderableType] = []
    for made, spare in tables(shown):
        table = terminal.rich_table(fitting(made, spare, width))
        parts += [*([Text()] if parts else []), table]
    return Group(*parts)


def seconds(text: str) -> float:
    """Returns an interval in s. ArgumentTypeError: it is no number, or too short."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not INTERVAL_S_MIN <= value < math.inf:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number from {INTERVAL_S_MIN}")
    return value


def parser() -> Parser:
    """Returns the parser of `weir top`."""
    made = Parser(
        prog="weir top",
        description="Watches the live programs that run: ports, paths, groups of flows, lcores."
        " q ends it.",
        epilog="Examples: " + "; ".join(f"weir {each}" for each in EXAMPLES),
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
            serve.serve(asked.serve, asked.token, watch, frames)
        else:
            show(frames, asked.once, asked.json, terminal.console())
    return 0


def watched(asked: argparse.Namespace) -> Watch | progress.Watch:
    return Watch(asked.prefix) if asked.sweep is None else progress.Watch(asked.sweep)


def show(frames: Iterator[Frame], once: bool, as_json: bool, out: Console) -> None:
    """Shows frames until the programs end, or q or Ctrl-C is pressed; or only one."""
    if once:
        first = next(frames, None)
        if first is None:
            raise UserError("the program has ended", 1)
        frames = iter([first])
    draw(frames, as_json, out)


@contextlib.contextmanager
def keyboard() -> Iterator[Callable[[float], bool]]:
    """Yields a function that waits so many seconds, or until q, and returns whether q came."""
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
    """Prints a frame, on a terminal in the place of the one before."""
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
