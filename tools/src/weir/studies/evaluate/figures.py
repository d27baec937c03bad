# SPDX-License-Identifier: BSD-3-Clause
"""The figures of `weir evaluate`: shares beside others, and rates and delay over time."""

from __future__ import annotations

from collections.abc import Iterator

from weir.analysis.folder import Run
from weir.report import theme
from weir.report.figure import Axis, Figure, Mark, Panel, Rule, named
from weir.report.theme import Style
from weir.studies.evaluate.criteria import setup_named
from weir.studies.evaluate.scene import Control
from weir.study.claim import Found
from weir.study.curves import points, rates_and_delay
from weir.study.measures import queue_ms, utilisation
from weir.study.scenario import share_percent

HEIGHT_IN = 3.0
EVEN = Style("equal parts", theme.INK, "")
DEPTHS = (0.5, 1, 4)
OTHERS = ("cubic", "newreno")
TAIL_DROP = ("2Mbit-80ms", "20Mbit-20ms", "100Mbit-100ms", "500Mbit-10ms")
CURVES = (
    ("a-second-flow", "A second flow of the control begins at 15 s (section 5.1.4)."),
    ("cubic-1BDP", "Beside CUBIC, in a buffer of a bandwidth-delay product (section 5.2.1)."),
    ("steps", "The capacity falls to a tenth at 20 s and returns at 30 s (section 7.7)."),
    ("longer", "The round trip grows from 40 to 90 ms at 20 s (section 7.2)."),
)


def first(found: Found, name: str, keys: str) -> Run | None:
    setup = setup_named(name, keys)
    runs = None if setup is None else found.runs(setup)
    return runs[0] if runs else None


def shares(found: Found, control: Control) -> Figure | None:
    """Shows the control's part of both goodputs, by the depth of the queue."""
    marks: list[Mark] = []
    for colour, other in zip(theme.CYCLE, OTHERS, strict=False):
        runs = [(d, first(found, f"{other}-{d:g}BDP", control.keys)) for d in DEPTHS]
        rows = [(d, share_percent(0)(run)) for d, run in runs if run is not None]
        if rows:
            marks.append(points(rows, Style(f"beside {theme.style(other).label}", colour, "o")))
    if not marks:
        return None
    x = Axis("queue (BDP)", scale="log", ticks=[(d, f"{d:g}") for d in DEPTHS])
    panel = Panel(x, Axis(f"{control.name}'s part (%)", 0, 100), [*marks, Rule(50, EVEN)])
    return Figure([panel], height_in=HEIGHT_IN)


def trade_off(found: Found, control: Control) -> Figure | None:
    """Shows use of the link and delay, over the range of paths of section 6.1."""
    marks: list[Mark] = []
    for number, path in enumerate(TAIL_DROP):
        runs = [first(found, f"{path}-{d}BDP", control.keys) for d in ("0.25", "1", "4")]
        rows = [(queue_ms(run), utilisation(run)) for run in runs if run is not None]
        if rows:
            colour = theme.CYCLE[number % len(theme.CYCLE)]
            marks.append(points(rows, Style(path.replace("-", ", "), colour, "o")))
    if not marks:
        return None
    x = Axis("mean time in the queue (ms)", scale="symlog", linear_to=0.1)
    return Figure([Panel(x, Axis("link used (%)"), marks)], height_in=HEIGHT_IN)


def draw(found: Found, control: Control) -> Iterator[Figure]:
    """Yields each figure whose runs are there."""
    if (figure := shares(found, control)) is not None:
        caption = "The control's part of both goodputs beside one flow of another (section 5.2.1)."
        yield named("", figure, caption)
    if (figure := trade_off(found, control)) is not None:
        caption = "One flow on the paths of section 6.1; queues of 0.25, 1 and 4 BDP are joined."
        yield named("", figure, caption)
    for name, caption in CURVES:
        run = first(found, name, control.keys)
        if run is not None:
            yield named("", rates_and_delay(run), caption)
