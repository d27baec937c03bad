# SPDX-License-Identifier: BSD-3-Clause
"""The names, colours and markers of all figures, in one table, so that they agree.

Colours are Okabe and Ito's (2008): distinct for readers with any of the common kinds of colour
blindness, and apart in lightness where print is grey.
"""

from __future__ import annotations

from collections import Counter
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
    """The name, colour, marker and dash of something in all figures."""

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
    "cobalt": Style("COBALT", ORANGE, "^", DASHES[1]),
    "pie": Style("PIE", BLUE, "P"),
    "docsis_pie": Style("DOCSIS-PIE", SKY, "P", DASHES[1]),
    "red": Style("RED", VERMILLION, "X"),
    "step": Style("step", GREEN, "D"),
    "dualpi2": Style("DualPI2", PURPLE, "s"),
    "drr": Style("DRR", GREEN, "^", DASHES[2]),
    "fq_codel": Style("FQ-CoDel", SKY, "D", DASHES[1]),
    "fq_pie": Style("FQ-PIE", ORANGE, "D", DASHES[2]),
    "cake": Style("CAKE", PURPLE, "o", DASHES[1]),
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
CONTROLS = ("copa", "newreno", "cubic", "bbr", "prague", "fixed")
# What is left of a look in grey print: each marker with each dash, neighbours unlike in both.
FORMS = tuple(
    (MARKERS[k % len(MARKERS)], DASHES[(k + k // len(MARKERS)) % len(DASHES)])
    for k in range(len(MARKERS) * len(DASHES))
)
FREE = tuple(
    form for form in FORMS if form not in {(STYLES[c].marker, STYLES[c].dash) for c in CONTROLS}
)  # that no control of STYLES has


def style(name: str, label: str | None = None, index: int = 0) -> Style:
    """Returns the look of something known, or the next of the cycle, which no known control has."""
    known = STYLES.get(name)
    if known is None:
        known = Style(name, CYCLE[index % len(CYCLE)], *FREE[index % len(FREE)])
    return replace(known, label=label or known.label)


def group_styles(groups: Sequence[tuple[str, str]]) -> list[Style]:
    """Returns looks of the flow groups, given (name, cc), of which either may be empty."""
    named = [
        (STYLES[cc].label if cc in STYLES and name in ("", cc) else name or cc, cc)
        for name, cc in groups
    ]
    return styles_of(named)


def styles_of(named: Sequence[tuple[str, str]]) -> list[Style]:
    """Returns looks of things, given (label, name), that differ from each other, in grey print too.

    The first of a name of STYLES has its look. Others have the colour that is used least and a
    marker with a dash that none of the others and no control of STYLES has. The same list always
    has the same looks, so one that is made for all figures of a page keeps them.
    """
    several = len({name for _, name in named}) < len(named)
    if len(named) > (len(CYCLE) if several else len(FREE)):
        return many_styles(named)
    places: dict[str, int] = {}
    for place, (_, name) in enumerate(named):
        if name in STYLES:
            places.setdefault(name, place)
    known = {place: STYLES[name] for name, place in places.items()}
    colours = Counter(one.colour for one in known.values())
    used = {(one.marker, one.dash) for one in known.values()}
    free = (form for form in FREE if form not in used)
    found = []
    for place, (label, _) in enumerate(named):
        if place in known:
            found.append(replace(known[place], label=label))
            continue
        colour = min(CYCLE, key=lambda one: colours[one])
        colours[colour] += 1
        found.append(Style(label, colour, *next(free)))
    return found


def many_styles(named: Sequence[tuple[str, str]]) -> list[Style]:
    """Returns looks of more things than there are colours: shades, or else a spectrum.

    Neighbours in colour differ in dash besides; as many as there are FORMS differ in grey print.
    """
    members = {name: [i for i, one in enumerate(named) if one[1] == name] for _, name in named}
    bases = [STYLES[name].colour for name in members if name in STYLES]
    known = len(bases) == len(members) and len(members) == len(set(bases))
    if not known or max(map(len, members.values())) > SHADES_MAX:
        members = {"": list(range(len(named)))}
    styles: dict[int, Style] = {}
    left = list(FORMS)
    for name, places in members.items():
        n = len(places)
        dark = 0.45 if n > 1 else 0.0
        colours = shades(STYLES[name].colour, n, dark) if name else spectrum(n)
        for k, (place, colour) in enumerate(zip(places, colours, strict=True)):
            left = left or list(FORMS)
            form = next((one for one in left if one[1] == DASHES[k % len(DASHES)]), left[0])
            left.remove(form)
            styles[place] = Style(named[place][0], colour, *form)
    return [styles[place] for place in range(len(named))]


def spectrum(n: int) -> list[str]:
    """Returns n colours in order, dark to light, the lightest still seen on white."""
    from matplotlib.colors import to_hex

    shown = mpl.colormaps["viridis"]
    return [to_hex(shown(0.93 * i / max(1, n - 1))) for i in range(n)]


def shades(colour: str, n: int, dark: float = 0.0, light: float = 0.62) -> list[str]:
    """Returns n shades of a colour: dark and light are shares of black and white at the ends."""
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
    """Sets type as small as a journal's, after use()."""
    mpl.rcParams.update(PAPER)


def use() -> None:
    """Sets matplotlib up for files, without a display, with the settings of all figures."""
    mpl.use("agg")
    mpl.rcParams.update(RC)
