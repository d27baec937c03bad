# SPDX-License-Identifier: BSD-3-Clause
"""The figure of an attack: what the flows got, and below it what the network did, over time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from weir.attack.box import victims
from weir.attack.element import link_of
from weir.base import units
from weir.base.configs import Config
from weir.report import axes, theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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


def _network(axis: Axes, run: Run, config: Config, end_s: float) -> None:
    axis.step(*rate_mbps(config, end_s), where="post", color=theme.FAINT, label="link")
    own = victims(config)
    others = [i for i in range(len(run.summary.groups)) if i not in own]
    if others:
        axis.plot(*goodput_mbps(run, others), color=theme.VERMILLION, lw=0.8, label="cross traffic")
    for begin, end in losses_s(config):
        axis.axvspan(begin, max(end, begin + end_s / 500), color=theme.ORANGE, lw=0)
    axis.set(ylabel="rate (Mbit/s)", ylim=(0, None))


def _delays(axis: Axes, config: Config, end_s: float) -> None:
    times_s = np.linspace(0, end_s, POINTS, endpoint=False)
    for index, (path, stages) in enumerate(config["paths"].items()):
        for stage in stages:
            name, params = next(iter(stage.items()))
            colour = theme.CYCLE[index % len(theme.CYCLE)]
            if name == "periodic_delay":
                label = f"added on path {path}"
                axis.plot(times_s, added_ms(params, times_s), color=colour, lw=0.8, label=label)
    axis.set(ylabel="delay added (ms)", ylim=(0, None))


def trace(run: Run, benign: Run, config: Config) -> Figure:
    """Draws goodput and queue with and without the attack, and below them what the network did."""
    figure = Figure(figsize=(axes.WIDTH_IN, HEIGHT_IN))
    held = any("periodic_delay" in stage for path in config["paths"].values() for stage in path)
    panels = figure.subplots(3 + held, 1, sharex=True)
    end_s = units.measured(run.summary.virtual_s)
    for place, index in enumerate(victims(config)):
        colour = theme.CYCLE[place % len(theme.CYCLE)]
        name = run.summary.groups[index].name
        panels[0].plot(*goodput_mbps(run, [index]), color=colour, label=f"{name}, attacked")
        panels[0].plot(
            *goodput_mbps(benign, [index]), color=colour, ls=":", lw=1, label=f"{name}, benign"
        )
    panels[1].plot(*queue_ms(run), color=theme.INK, label="queue, attacked")
    panels[1].plot(*queue_ms(benign), color=theme.FAINT, ls=":", label="queue, benign")
    panels[0].set(ylabel="goodput (Mbit/s)", ylim=(0, None))
    panels[1].set(ylabel="time in the queue (ms)", ylim=(0, None))
    _network(panels[2], run, config, end_s)
    if held:
        _delays(panels[3], config, end_s)
    panels[-1].set(xlabel="time (s)")
    axes.legend(figure)
    return figure


def progress(worst: list[float], benign: float, label: str) -> Figure:
    """Draws the worst harm after each trial."""
    figure = Figure(figsize=(axes.WIDTH_IN, 2.4))
    axis = figure.subplots()
    axis.plot(range(1, len(worst) + 1), worst, color=theme.BLUE, label="worst so far")
    axis.axhline(benign, color=theme.FAINT, ls=":", label="benign network")
    axis.set(xlabel="trial", ylabel=label)
    axes.legend(figure)
    return figure
