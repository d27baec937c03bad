# SPDX-License-Identifier: BSD-3-Clause
"""The figure of an attack: what the flows got, and below it what the network did, over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from weir.attack.box import victims
from weir.attack.element import link_of
from weir.base import units
from weir.base.configs import Config
from weir.report import theme
from weir.report.figure import Axis, Figure, Line, Mark, Panel, Rule, Span, floats
from weir.report.scene import TIME
from weir.report.theme import Style

if TYPE_CHECKING:
    from weir.analysis.folder import Run

HEIGHT_IN = 6.4
POINTS = 2000  # of a drawn delay


def goodput_mbps(run: Run, groups: list[int]) -> tuple[Any, Any]:
    """Returns times in s, and the goodput of some groups together in the interval before each."""
    records = run.stream("interval").records
    first, chosen = 0, set()
    for index, group in enumerate(run.summary.groups):
        if index in groups:
            chosen |= set(range(first, first + group.flows))
        first += group.flows
    times, places = np.unique(records["ts_ns"], return_inverse=True)
    own = np.isin(records["flow_id"], list(chosen))
    delivered = np.bincount(places, np.where(own, records["delivered_bytes"], 0), len(times))
    length_s = np.diff(times, prepend=0) / 1e9
    return times / 1e9, delivered * 8 / length_s / 1e6


def queue_ms(run: Run) -> tuple[Any, Any]:
    """Returns times in s, and the mean time in the first link's queue before each."""
    links = run.stream("links").records
    links = links[links["link"] == 0]
    return links["ts_ns"] / 1e9, links["sojourn_mean_ns"] / 1e6


def rate_mbps(config: Config, end_s: float) -> tuple[list[float], list[float]]:
    """Returns the times at which the link's rate changes, and the rate from each in Mbit/s."""
    times, rates = [0.0], [units.config_rate_bps(link_of(config)[1]["rate"]) or 0.0]
    for item in config.get("schedule", []):
        if "forward.link.rate" in item:
            times.append((units.config_time_ns(item["at"]) or 0) / 1e9)
            rates.append(units.config_rate_bps(item["forward.link.rate"]) or 0.0)
    return [*times, end_s], [rate / 1e6 for rate in [*rates, rates[-1]]]


def added_ms(stage: dict[str, Any], times_s: Any) -> Any:
    """Returns the delay that a stage periodic_delay asks for at some times."""
    delays = np.array([(units.config_time_ns(word) or 0) / 1e6 for word in stage["delays"].split()])
    period_s = (units.config_time_ns(stage["period"]) or 1) / 1e9
    return delays[(times_s % period_s / period_s * len(delays)).astype(int) % len(delays)]


def losses_s(config: Config) -> list[tuple[float, float]]:
    """Returns the beginnings and ends of the times in which all packets are lost."""
    found, begun = [], None
    for item in config.get("schedule", []):
        rate = next((value for key, value in item.items() if key.endswith(".lost.rate")), None)
        when = (units.config_time_ns(item["at"]) or 0) / 1e9
        if rate == "100%":
            begun = when
        elif rate == "0%" and begun is not None:
            found.append((begun, when))
    return found


def _network(run: Run, config: Config, end_s: float) -> list[Mark]:
    at, rate = rate_mbps(config, end_s)
    lost = Style("all is lost", theme.ORANGE, "")
    marks: list[Mark] = [
        Span(begin, max(end, begin + end_s / 500), lost, upright=True)
        for begin, end in losses_s(config)
    ]
    marks.append(Line(floats(at), floats(rate), Style("link", theme.FAINT, ""), steps="post"))
    own = victims(config)
    others = [i for i in range(len(run.summary.groups)) if i not in own]
    if others:
        style = Style("cross traffic", theme.VERMILLION, "")
        marks.append(Line(*goodput_mbps(run, others), style, width=0.8))
    return marks


def _delays(config: Config, end_s: float) -> list[Mark]:
    times_s = np.linspace(0, end_s, POINTS, endpoint=False)
    marks: list[Mark] = []
    for index, (path, stages) in enumerate(config["paths"].items()):
        for stage in stages:
            name, params = next(iter(stage.items()))
            if name == "periodic_delay":
                colour = theme.CYCLE[index % len(theme.CYCLE)]
                style = Style(f"added on path {path}", colour, "")
                marks.append(Line(times_s, added_ms(params, times_s), style, width=0.8))
    return marks


def trace(run: Run, benign: Run, config: Config) -> Figure:
    """Shows goodput and queue with and without the attack, and below them what the network did."""
    end_s = units.measured(run.summary.virtual_s)
    dotted = theme.DASHES[2]
    rates: list[Mark] = []
    for place, index in enumerate(victims(config)):
        colour = theme.CYCLE[place % len(theme.CYCLE)]
        name = run.summary.groups[index].name
        rates.append(Line(*goodput_mbps(run, [index]), Style(f"{name}, attacked", colour, "")))
        plain = Style(f"{name}, benign", colour, "", dotted)
        rates.append(Line(*goodput_mbps(benign, [index]), plain, width=1))
    queues: list[Mark] = [
        Line(*queue_ms(run), Style("queue, attacked", theme.INK, "")),
        Line(*queue_ms(benign), Style("queue, benign", theme.FAINT, "", dotted), width=1),
    ]
    shown = {
        "goodput (Mbit/s)": rates,
        "time in the queue (ms)": queues,
        "rate (Mbit/s)": _network(run, config, end_s),
        "delay added (ms)": _delays(config, end_s),
    }
    time = Axis(TIME, 0, end_s, is_time=True)
    panels = [Panel(time, Axis(label, 0), marks) for label, marks in shown.items() if marks]
    return Figure(panels, height_in=HEIGHT_IN)


def progress(worst: list[float], benign: float, unit: str) -> Figure:
    """Shows the worst harm after each trial."""
    factor = 100 if unit == "%" else 1
    trials = np.arange(1.0, len(worst) + 1)
    level = Style("benign network", theme.FAINT, "", theme.DASHES[2])
    marks: list[Mark] = [
        Line(trials, factor * floats(worst), Style("worst so far", theme.BLUE, ""), steps="post"),
        Rule(factor * benign, level),
    ]
    return Figure([Panel(Axis("trial", whole=True), Axis(f"harm ({unit})"), marks)], height_in=2.4)
