# SPDX-License-Identifier: BSD-3-Clause
"""The script that draws a figure again from its table, for a paper's own changes: --code."""

from __future__ import annotations

import pprint
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from weir.analysis import folder
from weir.base.errors import UserError
from weir.report import figure as values
from weir.report import table
from weir.report.figure import Axis, Band, Bars, Field, Figure, Mark, Panel, Rule
from weir.report.theme import Style

TEXT = '''\
#!/usr/bin/env python3
"""Draws {name} from {data}, which is read beside this file; needs matplotlib alone."""

import csv
import sys
from pathlib import Path

import matplotlib.pyplot as plt

here = Path(__file__).resolve()
data = {{}}  # x and y of each series of a mark, by the numbers of panel and mark
with here.with_name({data!r}).open(newline="") as file:
    for row in csv.DictReader(file):
        series = data.setdefault((int(row["panel"]), int(row["mark"])), {{}})
        x, y = series.setdefault(row["line"], ([], []))
        x.append(float(row["x"] or "nan"))
        y.append(float(row["y"] or "nan"))
data = {{place: list(series.values()) for place, series in data.items()}}

plt.rcParams.update({settings})
figure, grid = plt.subplots(
    {rows}, {columns}, figsize=({width:.3g}, {height:.3g}), height_ratios={ratios}, squeeze=False
)
axes = grid.ravel()
'''
END = """
shown = {{}}
for ax in axes:
    handles, labels = ax.get_legend_handles_labels()
    shown = dict(zip(labels, handles)) | shown
if shown:
    figure.legend(shown.values(), shown.keys(), loc="outside upper left", ncols={keys})
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else here.with_name({name!r}), dpi={dpi})
"""


def check(out: Path) -> None:
    """Raises UserError if a figure in this file's format has no script."""
    if out.suffix in (".csv", ".parquet"):
        raise UserError(f"{out}: --code is for a figure: .pdf, .png or .svg")


def write(
    figure: Figure, out: Path, width_in: float, settings: Mapping[str, Any], dpi: int
) -> tuple[Path, Path]:
    """Writes out.py and out.csv beside a figure; returns their paths. settings: of matplotlib."""
    data, script = out.with_suffix(".csv"), out.with_suffix(".py")
    table.write(figure, data)
    folder.write_whole(script, text(figure, out, width_in, settings, dpi))
    return script, data


def text(figure: Figure, out: Path, width_in: float, settings: Mapping[str, Any], dpi: int) -> str:
    """Returns the script, which reads the figure's table beside it and writes `out` there."""
    columns = min(figure.columns, len(figure.panels))
    head = TEXT.format(
        name=out.name,
        data=out.with_suffix(".csv").name,
        settings=pprint.pformat(dict(settings), width=100, compact=True),
        rows=-(-len(figure.panels) // columns),
        columns=columns,
        width=width_in,
        height=figure.height_in,
        ratios=[panel.weight for panel in figure.panels[::columns]],
    )
    lines = [line for n, panel in enumerate(figure.panels) for line in panel_code(panel, n)]
    hidden = -len(figure.panels) % columns
    if hidden:
        lines += [f"for ax in axes[-{hidden}:]:", "    ax.set_visible(False)"]
    fields = [m.label for panel in figure.panels for m in panel.marks if isinstance(m, Field)]
    if fields:
        lines.append(f"figure.colorbar(field, ax=grid, label={fields[-1]!r}, aspect=30, pad=0.01)")
    end = END.format(name=out.name, dpi=dpi, keys=max(1, columns + 1))
    return "\n".join([head, *lines, end])


def panel_code(panel: Panel, number: int) -> list[str]:
    """Returns the lines that draw a panel; number: its place, from 0."""
    lines = [f"ax = axes[{number}]"]
    stack: list[tuple[str, Band]] = []
    for place, mark in enumerate(panel.marks, start=1):
        count = sum(1 for columns in values.series(mark) if columns.x.size)
        read = f"data[{number + 1}, {place}]" if count else "[([], []), ([], [])]"
        if isinstance(mark, Band) and mark.stacked:
            stack.append((read, mark))
        else:
            lines += mark_code(mark, read)
    if stack:
        heights = ", ".join(f"{read}[0][1]" for read, _ in stack)
        colours, labels = ([getattr(m.style, of) for _, m in stack] for of in ("colour", "label"))
        lines.append(
            f"ax.stackplot({stack[0][0]}[0][0], {heights}, colors={colours}, labels={labels},"
            f" alpha={stack[0][1].opacity}, zorder=1)"
        )
    for name, axis, limits in zip("xy", (panel.x, panel.y), values.ends(panel), strict=True):
        lines += axis_code(name, axis, limits)
    return [*lines, *([f"ax.set_title({panel.title!r}, loc='left')"] if panel.title else []), ""]


def axis_code(name: str, axis: Axis, limits: tuple[float, float]) -> list[str]:
    """Returns the lines that set an axis up."""
    lines = []
    if axis.scale != "linear":
        more = f", linthresh={axis.linear_to}" if axis.scale == "symlog" else ""
        lines.append(f"ax.set_{name}scale({axis.scale!r}{more})")
    low, high = reversed(limits) if axis.reversed else limits
    lines.append(f"ax.set_{name}lim({low:.6g}, {high:.6g})")
    if axis.label:
        lines.append(f"ax.set_{name}label({axis.label!r})")
    if axis.ticks:
        places, names = zip(*axis.ticks, strict=True)
        lines.append(f"ax.set_{name}ticks({list(map(float, places))}, {list(names)})")
    return lines


def arguments(style: Style, **more: object) -> str:
    """Returns keyword arguments as text: the colour, those given, and the label if there is one."""
    given = {"color": style.colour, **more} | ({"label": style.label} if style.label else {})
    return ", ".join(f"{key}={value!r}" for key, value in given.items())


def mark_code(mark: Mark, read: str) -> list[str]:
    """Returns the lines that draw a mark, whose series are in the list `read` names."""
    style = mark.style
    if isinstance(mark, values.Line):
        more: dict[str, object] = {"linestyle": style.dash, "linewidth": mark.width}
        if mark.steps:
            more["drawstyle"] = f"steps-{mark.steps}"
        if mark.markers:
            more |= {"marker": style.marker or "o", "markersize": 3.5, "markevery": mark.markers}
        return [f"ax.plot(*{read}[0], {arguments(style, **more)})"]
    if isinstance(mark, values.Points):
        more = {"marker": style.marker or "o", "markersize": mark.size, "linestyle": "none"}
        more |= {"markerfacecolor": "white"} if mark.hollow else {}
        if not mark.at_edge:
            return [f"ax.plot(*{read}[0], {arguments(style, **more)})"]
        across = "transform=ax.get_xaxis_transform(), clip_on=False"
        return [f"ax.plot({read}[0][0], [1], {across}, {arguments(style, **more)})"]
    if isinstance(mark, Band):
        said = arguments(style, alpha=mark.opacity, linewidth=0)
        return [f"(x, low), (_, high) = {read}", f"ax.fill_between(x, low, high, {said})"]
    if isinstance(mark, values.Strokes):
        said = arguments(style, linewidth=mark.width, alpha=mark.opacity)
        if mark.lying:
            return [f"(low, at), (high, _) = {read}", f"ax.hlines(at, low, high, {said})"]
        return [f"(at, low), (_, high) = {read}", f"ax.vlines(at, low, high, {said})"]
    if isinstance(mark, Bars):
        return bars_code(mark, read)
    if isinstance(mark, values.Box):
        return [f"ax.boxplot({read}[0][1], positions=[{mark.at}], widths={mark.width},"
                " manage_ticks=False)"]  # fmt: skip
    if isinstance(mark, values.Polygon):
        return [
            f"ax.fill(*{read}[0], color={style.colour!r}, alpha=0.2, linewidth=0)",
            f"ax.plot(*{read}[0], {arguments(style, linestyle=style.dash, linewidth=0.9)})",
        ]
    if isinstance(mark, Field):
        span = f"vmin={mark.low:.6g}, vmax={mark.high:.6g}"
        return [
            f"field = ax.pcolormesh([row[1] for row in {read}], cmap='viridis', {span})",
            "ax.spines[:].set_visible(False)",
            "ax.grid(visible=False)",
        ]
    if isinstance(mark, values.Label):
        return [f"ax.annotate({mark.text!r}, ({mark.x!r}, {mark.y!r}), xytext={mark.away},"
                f" textcoords='offset points', va='center', fontsize={mark.size})"]  # fmt: skip
    kind = ("axv" if mark.upright else "axh") + ("line" if isinstance(mark, Rule) else "span")
    if isinstance(mark, Rule):
        said = arguments(style, linewidth=mark.width, linestyle=style.dash)
        return [f"ax.{kind}({mark.at!r}, {said})"]
    return [f"ax.{kind}({mark.low!r}, {mark.high!r}, {arguments(style, linewidth=0)})"]


def bars_code(mark: Bars, read: str) -> list[str]:
    """Returns the lines that draw bars; those of a run's end may be narrower than others."""
    widths = np.unique(mark.width)
    width = float(widths[0]) if widths.size == 1 else [float(each) for each in mark.width]
    if mark.lying:
        said = arguments(mark.style, height=width)
        return [f"(low, at), (high, _) = {read}",
                f"ax.barh(at, [b - a for a, b in zip(low, high)], left=low, {said})"]  # fmt: skip
    return [f"(at, low), (_, high) = {read}",
            "ax.bar(at, [b - a for a, b in zip(low, high)], bottom=low,"
            f" {arguments(mark.style, width=width)})"]  # fmt: skip
