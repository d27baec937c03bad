# SPDX-License-Identifier: BSD-3-Clause
"""One table of names, colours and markers, so that every figure agrees with every other.

Colours are Okabe and Ito's (2008): distinct for readers with any of the common kinds of colour
blindness, and apart in lightness where print is grey.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import matplotlib as mpl

BLUE, VERMILLION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY, BLACK, GREY = "#E69F00", "#56B4E9", "#000000", "#777777"
INK, FAINT, GRID = "#222222", "#9a9a9a", "#e4e4e4"

Dash = str | tuple[int, tuple[float, ...]]
DASHES: tuple[Dash, ...] = ("-", (0, (4, 1.5)), (0, (1.6, 1.1)), (0, (5, 1.2, 1.6, 1.2)))


@dataclass(frozen=True)
class Style:
    """How something looks wherever it appears."""

    label: str
    colour: str
    marker: str
    dash: Dash = "-"


# By name, as configs write them.
STYLES = {
    "copa": Style("Copa", BLUE, "o"),
    "newreno": Style("NewReno", VERMILLION, "s", DASHES[1]),
    "cubic": Style("CUBIC", GREEN, "^", DASHES[2]),
    "bbr": Style("BBR", PURPLE, "D", DASHES[3]),
    "prague": Style("Prague", SKY, "v", DASHES[1]),
    "fixed": Style("fixed window", GREY, "x"),
    # Links and queue disciplines.
    "forward": Style("forward", INK, "o"),
    "reverse": Style("reverse", FAINT, "s"),
    "fifo": Style("FIFO", INK, "o"),
    "codel": Style("CoDel", ORANGE, "v"),
    "cobalt": Style("COBALT", ORANGE, "^"),
    "pie": Style("PIE", BLUE, "P"),
    "docsis_pie": Style("DOCSIS-PIE", SKY, "P"),
    "red": Style("RED", VERMILLION, "X"),
    "step": Style("step", GREEN, "D"),
    "dualpi2": Style("DualPI2", PURPLE, "s"),
    "drr": Style("DRR", GREEN, "^"),
    "fq_codel": Style("FQ-CoDel", SKY, "D"),
    "fq_pie": Style("FQ-PIE", ORANGE, "D"),
    "cake": Style("CAKE", PURPLE, "o"),
    # Kinds of event, as events.ring names them.
    "reduction": Style("window reduction", VERMILLION, "v"),
    "timeout": Style("timeout", BLACK, "X"),
    "recovered": Style("recovery ends", GREEN, "^"),
    "slow_start_end": Style("slow start ends", SKY, "o"),
    "cc_mode": Style("mode change", PURPLE, "D"),
    "parameter": Style("parameter change", ORANGE, "|"),
    "spurious": Style("spurious retransmission", GREY, "x"),
    "port": Style("port change", BLUE, "P"),
    "observed": Style("what a queue observes", GREY, "s"),
    "undo": Style("reduction taken back", GREEN, "D"),
    "drops": Style("drops", VERMILLION, "v"),
    "marks": Style("CE marks", ORANGE, "^"),
}
CYCLE = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK, GREY)
MARKERS = "os^DvPX*"
SHADES_MAX = 6  # of one colour that are told apart, with dashes


def style(name: str, label: str | None = None, index: int = 0) -> Style:
    """The look of something known, or the next of the cycle."""
    known = STYLES.get(name)
    if known is None:
        dash = DASHES[index % len(DASHES)]
        known = Style(name, CYCLE[index % len(CYCLE)], MARKERS[index % len(MARKERS)], dash)
    return replace(known, label=label or known.label)


def group_styles(groups: Sequence[tuple[str, str]]) -> list[Style]:
    """Looks of the flow groups, given (name, cc): by algorithm if that tells them apart."""
    algorithms = [cc for _, cc in groups]
    if len(set(algorithms)) == len(groups) and all(cc in STYLES for cc in algorithms):
        return [style(cc, STYLES[cc].label if name in ("", cc) else name) for name, cc in groups]
    if len(groups) > len(CYCLE):
        return many_styles(groups)
    return [style("", name or cc, i) for i, (name, cc) in enumerate(groups)]


def many_styles(groups: Sequence[tuple[str, str]]) -> list[Style]:
    """Looks of more groups than there are colours: shades of their algorithm's, else a spectrum.

    Neighbours in colour differ in dash besides.
    """
    members = {cc: [i for i, group in enumerate(groups) if group[1] == cc] for _, cc in groups}
    bases = [STYLES[cc].colour for cc in members if cc in STYLES]
    known = len(bases) == len(members) and len(members) == len(set(bases))
    if not known or max(map(len, members.values())) > SHADES_MAX:
        members = {"": list(range(len(groups)))}
    styles = {}
    for cc, places in members.items():
        n = len(places)
        dark = 0.45 if n > 1 else 0.0
        colours = shades(STYLES[cc].colour, n, dark) if cc else spectrum(n)
        for k, (place, colour) in enumerate(zip(places, colours, strict=True)):
            label = groups[place][0] or groups[place][1]
            marker, dash = MARKERS[k % len(MARKERS)], DASHES[k % len(DASHES)]
            styles[place] = Style(label, colour, marker, dash)
    return [styles[place] for place in range(len(groups))]


def spectrum(n: int) -> list[str]:
    """n colours in order, dark to light, the lightest still seen on white."""
    from matplotlib.colors import to_hex

    shown = mpl.colormaps["viridis"]
    return [to_hex(shown(0.93 * i / max(1, n - 1))) for i in range(n)]


def shades(colour: str, n: int, dark: float = 0.0, light: float = 0.62) -> list[str]:
    """n shades of a colour: dark is the share of black in the first, light of white in the last."""
    from matplotlib.colors import to_hex, to_rgb

    found = []
    for i in range(n):
        mix = -dark + (light + dark) * i / max(1, n - 1)  # of black below 0, of white above
        toward = 1.0 if mix > 0 else 0.0
        r, g, b = (c + (toward - c) * abs(mix) for c in to_rgb(colour))
        found.append(to_hex((r, g, b)))
    return found


RC: dict[Any, Any] = {
    "font.family": ["STIXGeneral", "DejaVu Sans"],
    "mathtext.fontset": "stix",
    "font.size": 9.5,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9.5,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "legend.fontsize": 8.5,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.linewidth": 0.6,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.1,
    "lines.solid_capstyle": "round",
    "legend.frameon": False,
    "legend.handlelength": 1.4,
    "legend.borderaxespad": 0.0,
    "figure.constrained_layout.use": True,
    "figure.constrained_layout.w_pad": 0.06,
    "svg.fonttype": "none",
    "svg.hashsalt": "weir",  # the same data, the same file
    "pdf.fonttype": 42,
}


SMALL = ("xtick.labelsize", "ytick.labelsize", "legend.fontsize")
PAPER: dict[Any, Any] = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "figure.constrained_layout.w_pad": 0.02,
    "figure.constrained_layout.h_pad": 0.02,
}


def use_paper() -> None:
    """Type as small as a journal's, after use()."""
    mpl.rcParams.update(PAPER)


def use() -> None:
    """Sets matplotlib up: no display, our look."""
    mpl.use("agg")
    mpl.rcParams.update(RC)
