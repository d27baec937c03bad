# SPDX-License-Identifier: BSD-3-Clause
"""The last seconds of an episode as a picture: window, rate and queue of each agent's flow."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from weir.control import Measurements

if TYPE_CHECKING:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

SECONDS = 5.0
PANELS: tuple[tuple[str, Callable[[Measurements], float]], ...] = (
    ("window, segments", lambda m: m.cwnd_segs),
    ("rate, Mbit/s", lambda m: m.throughput_bps / 1e6),
    # By the flow's own RTTs: an agent does not see the link's queue, which others may share.
    (
        "queue, ms",
        lambda m: (m.rtt_mean_ns - m.rtt_min_ns) / 1e6 if m.rtt_samples > 0 else np.nan,
    ),
)


class View:
    """The picture of an episode as it runs."""

    def __init__(self) -> None:
        self._steps: deque[tuple[float, list[tuple[float, ...]]]] = deque()
        self._canvas: FigureCanvasAgg | None = None

    def add(self, measured: Sequence[Measurements]) -> None:
        """Keeps a step of the flows that have begun, and drops what is older than SECONDS."""
        now_s = max(m.now_ns for m in measured) / 1e9
        self._steps.append((now_s, [tuple(value(m) for _, value in PANELS) for m in measured]))
        while self._steps[0][0] < now_s - SECONDS:
            self._steps.popleft()

    def picture(self) -> NDArray[np.uint8]:
        """Returns an array of height, width and RGB."""
        if self._canvas is None:
            self._canvas = canvas()
        times = [now_s for now_s, _ in self._steps]
        flows = len(self._steps[-1][1])
        rows = np.full((len(times), flows, len(PANELS)), np.nan)
        for row, (_, values) in zip(rows, self._steps, strict=True):
            row[: len(values)] = values
        for n, axes in enumerate(self._canvas.figure.axes):
            for line in axes.get_lines():
                line.remove()
            axes.set_prop_cycle(None)
            axes.plot(times, rows[:, :, n], linewidth=1, marker=".", markersize=2)
            axes.set_xlim(max(times[-1] - SECONDS, 0), max(times[-1], SECONDS))
            axes.relim()
            axes.autoscale(axis="y")
            axes.set_ylim(bottom=0)
        self._canvas.draw()  # type: ignore[no-untyped-call]
        pixels: NDArray[np.uint8] = np.asarray(self._canvas.buffer_rgba())  # type: ignore[no-untyped-call]
        return pixels[..., :3].copy()


def canvas() -> FigureCanvasAgg:
    """Returns an empty figure of 480 x 360 pixels. An agent that is not seen needs no matplotlib,
    whose import takes as long as an episode."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # Without the layout that the process may have set: the margins are below. matplotlib's types
    # leave this value out.
    figure = Figure(figsize=(6.4, 4.8), dpi=75, layout="none")  # type: ignore[arg-type]
    for axes, (label, _) in zip(figure.subplots(len(PANELS), sharex=True), PANELS, strict=True):
        axes.set_ylabel(label)
    figure.axes[-1].set_xlabel("time, s")
    figure.subplots_adjust(left=0.12, right=0.98, top=0.97, bottom=0.12)
    return FigureCanvasAgg(figure)
