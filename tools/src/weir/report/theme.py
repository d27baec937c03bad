# SPDX-License-Identifier: BSD-3-Clause
"""The names, colours and markers of all figures, in one table, so that they agree.

Colours are Okabe and Ito's (2008): distinct for readers with any of the common kinds of colour
blindness, and apart in lightness where print is grey.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

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
    marker: str  # of matplotlib's: "o", "s", a letter as "$R$"
    dash: Dash = "-"
    hatch: str = ""  # of an area in grey print


VIRIDIS = (  # of heat maps: even steps of matplotlib's
    "#440154", "#48186a", "#472d7b", "#424086", "#3b528b", "#33638d", "#2c728e", "#26828e",
    "#21918c", "#1fa088", "#28ae80", "#3fbc73", "#5ec962", "#84d44b", "#addc30", "#d8e219",
    "#fde725",
)  # fmt: skip
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
LABELS = {  # of controls that have no look of their own
    "bbr3": "BBRv3", "compound": "Compound", "dctcp": "DCTCP", "fast": "FAST",
    "illinois": "Illinois", "ledbat": "LEDBAT", "lola": "LoLa", "pcc": "PCC Allegro",
    "swift": "Swift", "timely": "TIMELY", "vegas": "Vegas", "vivace": "PCC Vivace",
    "westwood": "Westwood+",
}  # fmt: skip
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
        known = Style(LABELS.get(name, name), CYCLE[index % len(CYCLE)], *FREE[index % len(FREE)])
    return replace(known, label=label or known.label)


def group_styles(groups: Sequence[tuple[str, str]]) -> list[Style]:
    """Returns looks of the flow groups, given (name, cc), of which either may be empty."""
    named = [(style(cc).label if name in ("", cc) else name, cc) for name, cc in groups]
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


def rgb(colour: str) -> tuple[float, float, float]:
    """Returns red, green and blue of #rrggbb, from 0 to 1."""
    r, g, b = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    return r, g, b


def to_hex(parts: Sequence[float]) -> str:
    return "#" + "".join(f"{round(255 * part):02x}" for part in parts)


def viridis(share: float) -> str:
    """Returns a colour of the scale, from its dark end, 0, to its light one, 1."""
    place = share * (len(VIRIDIS) - 1)
    low = min(int(place), len(VIRIDIS) - 2)
    ends = zip(rgb(VIRIDIS[low]), rgb(VIRIDIS[low + 1]), strict=True)
    return to_hex([a + (b - a) * (place - low) for a, b in ends])


def spectrum(n: int) -> list[str]:
    """Returns n colours in order, dark to light, the lightest still seen on white."""
    return [viridis(0.93 * i / max(1, n - 1)) for i in range(n)]


def shades(colour: str, n: int, dark: float = 0.0, light: float = 0.62) -> list[str]:
    """Returns n shades of a colour: dark and light are shares of black and white at the ends."""
    found = []
    for i in range(n):
        mix = -dark + (light + dark) * i / max(1, n - 1)  # of black below 0, of white above
        toward = 1.0 if mix > 0 else 0.0
        r, g, b = (c + (toward - c) * abs(mix) for c in rgb(colour))
        found.append(to_hex((r, g, b)))
    return found
