# SPDX-License-Identifier: BSD-3-Clause
"""Pages of the league: one table over all controls, and a page of each."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import yaml

from weir.analysis import folder
from weir.attack import registry
from weir.attack.box import victims
from weir.base import markdown, units
from weir.base.page import Column as Shown
from weir.base.page import Heading, Link, Mark, Page, Part, Source, Table, Text, joined, section
from weir.base.typed import program
from weir.league import entry, measure, standing
from weir.league.entry import Entry, Worst
from weir.league.standing import COLUMNS, Cell, Standing
from weir.plugin import check
from weir.report import document, theme
from weir.report.figure import (
    Axis,
    Figure,
    Panel,
    Points,
    Rule,
    Strokes,
    floats,
    named,
)
from weir.studies.evaluate.scene import Question
from weir.study.study_page import quantity

LAWS = Path(__file__).with_name("laws.yaml")
TITLE = "The league of congestion controls"
WIN = 3  # ranks that count as a win, if the whole interval is within
UNFAIR = 0.5  # of what CUBIC leaves to the other one
SHOWN = 3  # scenes of a list
DIGITS = 2


def short(value: float) -> str:
    return units.number(value, DIGITS)


def brief(value: float) -> str:
    """Returns a value with at most two decimals, for a table that is wide."""
    return short(value) if value >= 0.1 else f"{value:.2f}"


def law(one: Entry) -> str:
    """Returns the law in three sentences; of a control from outside what it says of itself."""
    known = yaml.safe_load(LAWS.read_text(encoding="utf-8"))
    return str(known.get(one.written, f"{one.summary[:1].upper()}{one.summary[1:]}."))


def unused(one: Entry) -> str:
    return units.NONE if one.worst is None else f"{short(100 * one.worst.harm)}"


def cost(one: Entry) -> str:
    return units.NONE if one.instructions is None else f"{one.instructions:.0f}"


def table(found: Standing, names: Sequence[str] = ()) -> Table:
    """Returns a row for each control; names: how the first column has them."""
    rows = [
        [name, *(cell.text(brief) for cell in cells), unused(one), cost(one)]
        for name, one, cells in zip(
            names or [one.name for one in found.entries], found.entries, found.cells, strict=True
        )
    ]
    heads = [f"{one.name} ({one.unit})" if one.unit else one.name for one in COLUMNS]
    return Table(["control", *heads, "worst", "cost"], rows)


def ranks(found: Standing) -> Table:
    rows = [
        [one.name, place.places, short(place.value), *(cell.places for cell in cells)]
        for one, cells, place in zip(found.entries, found.cells, found.places, strict=True)
    ]
    return Table(["control", "place", "mean rank", *(one.name for one in COLUMNS)], rows)


def legend() -> Table:
    """Returns what each column is, and over how many scenes."""
    rows = [
        [one.name, one.says, "less" if one.less else "more", f"{len(one.scenes())}"]
        for one in COLUMNS
    ]
    worst = (
        f"% of the capacity that one flow leaves unused in the worst of {measure.TRIALS} networks"
    )
    cost = "instructions per ACK, without the loop's, by valgrind: weir bench cc"
    rows += [["worst", worst, "less", units.NONE], ["cost", cost, "less", units.NONE]]
    return Table(["column", "what it is", "better", "scenes"], rows, 2)


METHOD = (
    "Each number is a mean over scenes of `weir evaluate`, of ratios the geometric one, with the"
    " 95 % interval of a paired bootstrap over scenes (and seeds, with --full). A rank has the"
    " range that it takes over the same draws. The place is the rank of the mean rank over the"
    f" first {len(COLUMNS)} columns, with equal weights, which are our choice: read the columns."
    " A control that hardly sends has no queue and no losses, so read use first. Those that need"
    " marks, or a data centre, are out of their place here."
)


def method() -> Text:
    return Text([Mark(one) if n % 2 else one for n, one in enumerate(METHOD.split("`")) if one])


def places(found: Standing) -> Figure:
    """Shows the place of each control with its interval."""
    known = [(n, one) for n, one in enumerate(found.places) if math.isfinite(one.rank)]
    at = floats([float(n) for n, _ in known])
    columns = {key: floats([getattr(one, key) for _, one in known])
               for key in ("rank", "rank_low", "rank_high")}  # fmt: skip
    style = theme.Style("", theme.BLUE, "o")
    ticks = [(float(n), one.name) for n, one in enumerate(found.entries)]
    panel = Panel(
        Axis("place", 0, whole=True),
        Axis(ticks=ticks, reversed=True),
        [
            Strokes(at, columns["rank_low"], columns["rank_high"], style, lying=True, width=2.0),
            Points(columns["rank"], at, style),
        ],
    )
    height = 0.22 * len(found.entries) + 0.7
    return named("places", Figure([panel], height_in=height), "Places with 95 % intervals.")


def league(found: Standing, commit: str) -> Page:
    """Returns the page over all controls."""
    links = joined(Link(one.name, f"{one.name}.html") for one in found.entries)
    origin = f"Rows that are kept are of commit {commit}." if commit else ""
    return Page(
        TITLE,
        [
            method(),
            table(found),
            Text(["A page of each: ", *links, "."]),
            document.figures([places(found)]),
            *section("Ranks", ranks(found)),
            *section("Columns", legend(), Text(origin, "small")),
        ],
        wide=True,
    )


def means(cells: Sequence[Cell]) -> Table:
    """Returns a row for each column of the league, in words."""
    rows = [[c.says, f"{x.text(short)} {c.unit}".strip(), x.places]
            for c, x in zip(COLUMNS, cells, strict=True)]  # fmt: skip
    return Table([Shown("column", unit=""), "mean over scenes", "rank"], rows)


def ratios(cells: Sequence[Cell]) -> Figure:
    """Shows the ratios to CUBIC with their intervals."""
    own = [(c, cell) for c, cell in zip(COLUMNS, cells, strict=True)
           if c.ratio and math.isfinite(cell.value)]  # fmt: skip
    at = np.arange(float(len(own)))
    style = theme.Style("", theme.BLUE, "o")
    low, value, high = (
        floats([getattr(x, key) for _, x in own]) for key in ("low", "value", "high")
    )
    better = {False: "more is better", True: "less is better"}
    ticks = [(float(n), f"{c.name}, {better[c.less]}") for n, (c, _) in enumerate(own)]
    panel = Panel(
        Axis("% of CUBIC's", scale="log"),
        Axis(low=-0.6, high=len(own) - 0.4, ticks=ticks, reversed=True),
        [Strokes(at, low, high, style, lying=True, width=2.0), Points(value, at, style),
         Rule(100.0, upright=True)],
    )  # fmt: skip
    return named("ratios", Figure([panel], height_in=1.9), "Means over scenes with 95 % intervals.")


def trade_off(one: Entry, base: Entry) -> Figure:
    """Shows use of the link and delay in the scenes of the control alone, beside CUBIC's."""
    marks = []
    own = theme.Style(one.name, theme.BLUE, "o")
    for row, style in ((base, theme.Style("CUBIC", theme.FAINT, "^")), (one, own)):
        pairs = [(at(row, s.name, 1), at(row, s.name, 0)) for s in COLUMNS[1].scenes()]
        known = floats([pair for pair in pairs if None not in pair]).reshape(-1, 2)
        marks.append(Points(known[:, 0], known[:, 1], style))
    x = Axis("mean time in the queue (ms)", 0, scale="symlog", linear_to=0.1)
    panel = Panel(x, Axis("link used (%)", 0, 105), marks)
    return named("scenes", Figure([panel], height_in=2.9), "Each scene alone.")


def at(one: Entry, scene: str, index: int) -> float | None:
    """Returns a value of a scene, as a mean over seeds."""
    values = [seed[index] for seed in one.scores.get(scene, [])]
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def wins(one: Entry, base: Entry, cells: Sequence[Cell]) -> Iterator[Part]:
    """Yields the columns in which it is surely among the first, and its best scenes."""
    rows = [[c.says, x.text(short), x.places] for c, x in zip(COLUMNS, cells, strict=True)
            if x.rank_high <= WIN]  # fmt: skip
    yield Table(["column", "mean", "rank"], rows)
    if not rows:
        yield Text(f"In no column is its whole interval within the first {WIN} ranks.")
    for index, less, says in ((0, False, "use of the link"), (1, True, "time in the queue")):
        found = [(entry.over(at(one, s.name, index), at(base, s.name, index)), s.name)
                 for s in COLUMNS[1].scenes()]  # fmt: skip
        known = sorted((v if less else -v, name) for v, name in found if v is not None)
        best = ", ".join(f"{name} ({short(abs(v))})" for v, name in known[:SHOWN])
        yield Text(f"Its best scenes by {says}, times CUBIC's: {best}." if best else "")


def command(*words: str) -> str:
    return f"{program()} {shlex.join(words)}"


def bound(asked: Question) -> str:
    least = math.isfinite(asked.low)
    return f"at least {short(asked.low)}" if least else f"at most {short(asked.high)}"


def breaks(one: Entry, base: Entry) -> Iterator[Part]:
    """Yields demands that do not hold, the worst network and the known attacks, with commands."""
    rows = [
        [scene.name, asked.says, quantity(v, "times" if asked.beside else asked.unit), bound(asked)]
        for scene, asked, v, holds in entry.judged(one, base)
        if holds is False
    ]
    yield Table(["scene", "what does not hold", "here", "holds"], rows, 2)
    yield Text("" if rows else "All demands that can be judged hold.")
    if rows:
        scene = str(rows[0][0])
        printed = command("evaluate", one.written, "--print-config", scene)
        text = f"{printed} > {scene}.yaml\n{command('run', f'{scene}.yaml')}"
        yield Source("The first of these scenes as a config, and its run", text)
    if one.worst is not None:
        harm, benign = (short(100 * value) for value in (one.worst.harm, one.worst.benign))
        yield Text(
            f"In the worst of {measure.TRIALS} networks one flow leaves {harm} % of the capacity"
            f" unused, without its changes {benign} %. The changes: {network(one.worst)}."
        )
        options = ["--runs", str(measure.TRIALS), "--seed", str(measure.SEED)]
        search = [
            "attack",
            f"configs/attacks/boxes/{measure.BOX.name}",
            "--cc",
            one.written,
            *options,
        ]
        found = ["run", one.worst.file] if one.worst.file else search
        yield Source("The worst network again", command(*found))
    yield Table(["known attack", "harm to", "with it", "without"], one.attacks, 2)
    yield Source("The known attacks as runs", "\n".join(map(shlex.join, attacked(one))))


def network(worst: Worst) -> str:
    return "; ".join(f"{where}: {what}" for where, what in worst.network.items())


def attacked(one: Entry) -> Iterator[list[str]]:
    """Yields the command of each known attack with this control in place of all others."""
    value = check.written(one.written)
    for known in registry.read() if one.attacks else ():
        options = [f"flows.{group}.cc={value}" for group in victims(known.config)]
        file = f"configs/attacks/{known.name}.yaml"
        yield [program(), "run", file, *(word for one in options for word in ("-o", one))]


def unfair(one: Entry, base: Entry) -> Iterator[Part]:
    """Yields what others get beside it, the least first."""
    found = []
    for scene in standing.COLUMNS[-1].scenes():
        own, its = (at(row, scene.name, 5) for row in (one, base))
        times = entry.over(own, its)
        if own is not None and its is not None and times is not None:
            found.append((times, scene, own, its))
    found.sort(key=lambda row: row[0])
    hit = [scene.name for times, scene, *_ in found if times < UNFAIR]
    yield Text(
        f"The other control has less than {UNFAIR:g} of its goodput beside CUBIC in {len(hit)} of"
        f" {len(found)} scenes." if found else ""
    )  # fmt: skip
    rows = [[scene.name, short(own), short(its), short(times)] for times, scene, own, its in found]
    yield Table(["scene", "the other's Mbit/s", "beside CUBIC", "times"], rows)
    alike = [(at(one, s.name, 3), s.name) for s in COLUMNS[4].scenes()]
    low = sorted((v, name) for v, name in alike if v is not None and v < 0.9)
    listed = ", ".join(f"{name} ({short(v)})" for v, name in low)
    yield Text(f"Jain's index of its own flows is below 0.9 in: {listed}." if listed else "")


def control(found: Standing, name: str) -> Page:
    """Returns the page of one control."""
    one, cells, place = found.of(name)
    base = entry.base_of(found.entries)
    failed = [Text([Mark(f"{cell} failed: {why}", "bad")]) for cell, why in one.failed.items()]
    return Page(
        f"{name} in the league",
        [
            Text(law(one)),
            Text(f"Source: {one.reference}." if one.reference else "", "small"),
            *failed,
            means(cells),
            document.figures([ratios(cells), trade_off(one, base)]),
            *section("Where it wins", *wins(one, base, cells)),
            *section("What breaks it", *breaks(one, base)),
            *section("Beside others", *unfair(one, base)),
            Heading("Method"),
            method(),
            Text(["All claims of the control: ", Mark(command("evaluate", one.written)), "."]),
            Text([Link("The league", "index.html")]),
        ],
        headline=[("place", place.places), ("of controls", str(len(found.entries))),
                  ("unused at worst", f"{unused(one)} %" if one.worst else units.NONE),
                  ("instructions per ACK", cost(one))],
    )  # fmt: skip


def site(into: Path | None = None) -> str:
    """Returns the site's page of the kept rows; writes the pages that it leads to into a folder."""
    file = entry.kept()
    if file is None:
        return "# League\n\nIts rows are of other scenes: `tools/weir league --write-docs`.\n"
    found = standing.standing(file.rows)
    if into is not None:
        write(found, into, file.commit)
    names = [f"[{one.name}](league/{one.name}.html)" for one in found.entries]
    whole = Link("places and ranks with their intervals", "league/index.html")
    origin = Text(["Also: ", whole, f". The rows are of commit {file.commit}."])
    made = Page("League", [Text(METHOD), table(found, names), origin, legend()])
    return markdown.page(made).replace("–", "\u2060–\u2060")  # no line ends within an interval


def data(found: Standing) -> list[dict[str, object]]:
    """Returns the rows as numbers, for --json."""
    return [
        {
            "name": one.name,
            "place": asdict(place),
            **{c.name: asdict(cell) for c, cell in zip(COLUMNS, cells, strict=True)},
            "worst": one.worst,
            "instructions": one.instructions,
            "digest": one.digest,
        }
        for one, cells, place in zip(found.entries, found.cells, found.places, strict=True)
    ]


def write(found: Standing, out: Path, commit: str = "") -> Path:
    """Writes all pages into a folder; returns the first one's file."""
    out.mkdir(parents=True, exist_ok=True)
    folder.write_whole(out / "index.html", document.render(league(found, commit)))
    for one in found.entries:
        folder.write_whole(out / f"{one.name}.html", document.render(control(found, one.name)))
    return out / "index.html"
