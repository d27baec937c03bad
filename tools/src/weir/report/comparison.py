# SPDX-License-Identifier: BSD-3-Clause
"""Runs side by side: what differs, by how much, and figures with a line for each run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from pathlib import Path

import polars as pl

from weir.analysis import folder, latency, metrics, model_parts, qlog, summary, windows
from weir.analysis.folder import Run
from weir.analysis.model_parts import Group
from weir.analysis.run_summary import RunSummary
from weir.base import units
from weir.base.configs import Config
from weir.base.errors import UserError
from weir.base.foreign import Json
from weir.base.page import Heading, Link, Page, Part, Table, Text, section
from weir.report import balance, data, document, figures, lateness, page, pairing, sections, theme
from weir.report.data import busiest_link
from weir.report.figure import Figure, named
from weir.report.scene import Scene, banded, split_by
from weir.report.theme import Style

OBJECTIVE = "log(throughput) − ½ log(RTT)"
RUNS_MAX = len(theme.CYCLE)
NOISE = 1e-12  # relative: values that are nearer differ by rounding alone
KEYS_MAX = 60  # of configs that differ
Show = Callable[[float | None], str]


@dataclass(frozen=True)
class Compared:
    """A run that is compared, with its letter and its look."""

    name: str  # a letter and the folder's name
    style: Style
    data: data.RunData


@dataclass(frozen=True)
class Metric:
    """A number of each run, None where a run has none."""

    name: str
    show: Show
    values: Sequence[float | None]
    logarithm: bool = False  # its differences are no share of it


def read(runs: Sequence[Run], on_progress: sections.Progress | None = None) -> list[Compared]:
    """Reads the runs' streams and gives each a letter and a colour."""
    if not 2 <= len(runs) <= RUNS_MAX:
        raise UserError(f"give 2 to {RUNS_MAX} run folders, not {len(runs)}")
    loaded = []
    for index, run in enumerate(runs):
        if on_progress is not None:
            on_progress("reading", index, len(runs))
        loaded.append(data.read(run))
    if on_progress is not None:
        on_progress("reading", len(runs), len(runs))
    names = [f"{'ABCDEFGH'[i]}: {run.path.resolve().name}" for i, run in enumerate(runs)]
    styles = theme.styles_of(
        [(name, control(one)) for name, one in zip(names, loaded, strict=True)]
    )
    return [Compared(*one) for one in zip(names, styles, loaded, strict=True)]


def figures_of(
    runs: Sequence[Run], labels: Sequence[str] = (), on_progress: sections.Progress | None = None
) -> Iterator[Figure]:
    """Yields the figures of a run, or those of several side by side."""
    if len(runs) == 1:
        one = data.read(runs[0])
        return sections.draw(data.relabelled(one, labels) if labels else one, on_progress)
    several = read(runs, on_progress)
    return draw(relabelled(several, labels) if labels else several, on_progress)


def control(one: data.RunData) -> str:
    """Returns the congestion control of all groups of a run; "" if they have several, or none."""
    each = {group.cc or "" for group in one.numbers.groups}
    return each.pop() if len(each) == 1 else ""


def relabelled(compared: Sequence[Compared], labels: Sequence[str]) -> list[Compared]:
    """Returns runs with other names. UserError: there is not one for each."""
    if len(labels) != len(compared):
        raise UserError(
            f"--label is given {len(labels)} times for {len(compared)} runs: give one for each"
        )
    return [
        replace(one, name=name, style=replace(one.style, label=name))
        for one, name in zip(compared, labels, strict=True)
    ]


def write(
    compared: Sequence[Compared], out: Path, on_progress: sections.Progress | None = None
) -> Path:
    """Writes the page and returns its path."""
    if out.is_dir():
        out = out / "compare.html"
    out.parent.mkdir(parents=True, exist_ok=True)
    figures = document.figures(draw(compared, on_progress))
    parts: list[Part] = [
        *(ending(one, out.parent) for one in compared),
        *(Text(f"{one.name}: {note}", "note") for one in compared for note in one.data.run.notes),
        differences(compared),
        *section("How they ended", endings(compared)),
        *section("Figures", figures),
        *(section("Configuration", configs(compared)) or [Heading("Configuration: the same")]),
    ]
    title = " · ".join(one.name for one in compared)
    folder.write_whole(out, document.render(Page(title, parts)))
    return out


def ending(one: Compared, place: Path) -> Text:
    """Returns how a run ended, with a link from a folder to it."""
    status = page.status(one.data.numbers)
    return Text([Link(one.name, link(one, place)), f": {status.text}"], f"status {status.kind}")


def link(one: Compared, place: Path) -> str:
    """Returns the address of a run's report, or of its folder, from a folder."""
    report = one.data.run.path / "report.html"
    return page.address(report if report.exists() else one.data.run.path, place)


def numbers(compared: Sequence[Compared]) -> list[Metric]:
    """Returns numbers of the runs: totals, each group, the busiest link, the run's own error."""
    reports = [one.data.numbers for one in compared]

    def totals(number: Callable[[Group], float | None]) -> list[float | None]:
        return [summary.of_flows(report, number) for report in reports]

    found = [
        Metric("flows", units.count, totals(lambda group: group.flows)),
        Metric("goodput", units.rate, totals(lambda group: group.goodput_bps)),
        Metric("Jain's index", units.ratio, [r.jfi for r in reports]),
    ]
    pairs = pairing.pairs(reports)
    for name, show, number in PAIRED if len(pairs) > 1 else PAIRED[1:]:
        found += [
            Metric(f"{name}, {pair.label}", show, _of(reports, pair, number), name == OBJECTIVE)
            for pair in pairs[:KEYS_MAX]
        ]
    found += _qlogs(compared, pairs[:KEYS_MAX])
    loads = [latency.under_load(one.data.run) for one in compared]
    pings = [None if one is None else one.median_ns for one in loads]
    found.append(Metric("delay under load, median", units.time, pings))
    rpm = [None if one is None else one.rpm for one in loads]
    found.append(Metric("round trips per minute under load", units.number, rpm))
    # Runs may differ in length: counts are per segment or per second of what was measured.
    sent = totals(lambda group: group.sent_segs)
    spans = [one.data.scene.duration_s - one.data.scene.warmup_s for one in compared]
    resent = totals(lambda group: group.retransmits)
    first = [None if s is None or r is None else s - r for s, r in zip(sent, resent, strict=True)]
    found.append(Metric("segments sent again per first", units.percent, _over(resent, first)))
    reduced = totals(lambda group: group.cwnd_reductions)
    found.append(Metric("window reductions per second", units.number, _over(reduced, spans)))
    busiest = [summary.busiest(report) for report in reports]

    def of_links(number: Callable[[model_parts.Link], float | None]) -> list[float | None]:
        return [number(link[1]) if link else None for link in busiest]

    found += [
        Metric("utilisation", units.percent, of_links(lambda link: link.utilisation)),
        Metric("queue, mean (packets)", units.number, of_links(lambda link: link.queue_mean_pkts)),
        Metric("queueing delay, mean", units.time, of_links(lambda link: link.queue_mean_ns)),
        Metric("queueing delay, p99", units.time, of_links(lambda link: link.sojourn_p99_ns)),
    ]
    for label, kind in (("drops", "drops"), ("CE marks", "marks")):
        counts = of_links(attrgetter(kind))
        name = f"{label} at the busiest link per second"
        found.append(Metric(name, units.number, _over(counts, spans)))
    for label, part in (("median", "p50"), ("p99", "p99"), ("largest", "max")):
        late = attrgetter(f"emulation.delay_error_{part}_ns")
        times = [units.known(late(report)) for report in reports]
        found.append(Metric(f"emulation's error of delay, {label}", units.time, times))
    rates = [units.known(report.emulation.rate_error_ppm) for report in reports]
    found.append(Metric("emulation's error of rate (ppm)", units.number, rates))
    return [m for m in found if any(value is not None for value in m.values)]


def _over(values: Sequence[float | None], by: Sequence[float | None]) -> list[float | None]:
    return [
        None if value is None or not over else value / over
        for value, over in zip(values, by, strict=True)
    ]


def _of(
    reports: Sequence[RunSummary], pair: pairing.Pair, number: Callable[[Group], float | None]
) -> list[float | None]:
    return [
        None if place is None else number(report.groups[place])
        for report, place in zip(reports, pair.groups, strict=True)
    ]


QLOG: tuple[tuple[str, Callable[[qlog.Logged], float | None], Show], ...] = (
    ("packets lost, less spurious", lambda log: log.lost_indeed, units.count),
    ("least RTT", lambda log: log.min_rtt_ns, units.time),
    ("mean smoothed RTT", lambda log: log.smoothed_rtt_ns, units.time),
)


def _qlogs(compared: Sequence[Compared], groups: Sequence[pairing.Pair]) -> list[Metric]:
    """Returns figures of the opening side's qlogs, for groups of which a run has just one."""
    runs = [qlog.found_in(one.data.run.path, one.data.run.summary) for one in compared]
    found = []
    for pair in groups:
        each = [
            [log for log in run if log.side == "stack" and log.group == place]
            for run, place in zip(runs, pair.groups, strict=True)
        ]
        for label, of, show in QLOG:
            values = [of(own[0]) if len(own) == 1 else None for own in each]
            found.append(Metric(f"qlog: {label}, {pair.label}", show, values))
    return found


def _objective(group: Group) -> float | None:
    """Returns Copa's objective of a group's mean flow."""
    goodput, flows, rtt_ns = group.goodput_bps, group.flows, group.rtt_mean_ns
    return metrics.objective(goodput / flows, rtt_ns) if goodput and flows and rtt_ns else None


# Numbers of each group; the first is of several groups, as it is the run's where there is one.
PAIRED: tuple[tuple[str, Show, Callable[[Group], float | None]], ...] = (
    ("goodput", units.rate, lambda group: group.goodput_bps),
    ("mean RTT", units.time, lambda group: group.rtt_mean_ns),
    (OBJECTIVE, units.number, _objective),
)


def apart(value: float, base: float) -> float:
    """Returns a value's distance from another; 0 where only the rounding of sums differs."""
    return 0.0 if math.isclose(value, base, rel_tol=NOISE) else value - base


def difference(value: float | None, base: float | None, show: Show, logarithm: bool = False) -> str:
    """Returns a value's difference from a base, and its share of that: +1.20 ms (+3.1 %)."""
    if value is None or base is None:
        return units.NONE
    if apart(value, base) == 0:
        return "0"
    sign = "+" if value > base else "−"
    percent = abs(value - base) / abs(base) * 100 if base else 0.0
    size = f"{percent:.3g}" if percent < 1000 else f"{percent:,.0f}"
    share = f" ({sign}{size} %)" if base and not logarithm else ""
    distance = show(abs(value - base))
    if show is units.percent:
        distance = distance.replace("%", "points")  # 10 % more of 50 % are 5 points
    return f"{sign}{distance}{share}"


def differences(compared: Sequence[Compared]) -> Table:
    """Returns each number of each run, and how far the later runs are from the first."""
    letters = [one.name[0] for one in compared]
    columns = ["", compared[0].name]
    for one in compared[1:]:
        columns += [one.name, f"{one.name[0]} − {letters[0]}"]
    rows = []
    for metric in numbers(compared):
        base = metric.values[0]
        row = [metric.name, metric.show(base)]
        for value in metric.values[1:]:
            row += [metric.show(value), difference(value, base, metric.show, metric.logarithm)]
        rows.append(row)
    return Table(columns, rows)


def as_json(compared: Sequence[Compared]) -> Json:
    """Returns the runs, and each number of each with its difference from the first."""
    rows = [
        {
            "name": m.name,
            "values": list(m.values),
            "differences": [
                None if v is None or m.values[0] is None else apart(v, m.values[0])
                for v in m.values
            ],
        }
        for m in numbers(compared)
    ]
    return {"runs": [str(one.data.run.path) for one in compared], "numbers": rows}


def endings(compared: Sequence[Compared]) -> Table:
    """Returns the verdict, ledger, seed and commit of each run."""
    rows = []
    for one in compared:
        report, run = one.data.numbers, one.data.run
        ledger = summary.balance(report)
        seed = run.manifest.seed if report.seed is None else report.seed
        commit = (run.manifest.commit or "")[:12]
        rows.append(
            [one.name, summary.end_of(report), ledger, "" if seed is None else str(seed), commit]
        )
    return Table(("run", "verdict", "ledger", "seed", "commit"), rows, left=5)


def configs(compared: Sequence[Compared]) -> Table:
    """Returns the keys of the configs whose values differ."""
    flat = [_flat(config) for config in _with_named_groups(compared)]
    keys = sorted({key for each in flat for key in each})
    rows = [[key, *(each.get(key, units.NONE) for each in flat)] for key in keys]
    rows = [row for row in rows if len(set(row[1:])) > 1]
    columns = ["key", *(one.name for one in compared)]
    return Table(columns, rows[:KEYS_MAX], left=len(columns))


def _with_named_groups(compared: Sequence[Compared]) -> list[Config]:
    """Returns the configs; groups at different places have names as keys, not numbers."""
    found = [one.data.run.config for one in compared]
    pairs = pairing.pairs([one.data.numbers for one in compared])
    if all(len({place for place in pair.groups if place is not None}) == 1 for pair in pairs):
        return found
    named = []
    for run, config in enumerate(found):
        groups = config.get("flows") or []
        places = {pair.label: pair.groups[run] for pair in pairs}
        flows = {name: groups[n] for name, n in places.items() if n is not None and n < len(groups)}
        named.append({**config, "flows": flows})
    return named


def _flat(value: object, prefix: str = "") -> dict[str, str]:
    """Returns a config's leaves by the names that -o takes: flows.0.count."""
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, list):
        parts = {str(index): part for index, part in enumerate(value)}.items()
    else:
        return {prefix: str(value)}
    found: dict[str, str] = {}
    for key, part in parts:
        found |= _flat(part, f"{prefix}.{key}" if prefix else str(key))
    return found


def draw(
    compared: Sequence[Compared], on_progress: sections.Progress | None = None
) -> Iterator[Figure]:
    """Yields the figures, each with all runs that have data for it."""
    parts = [partial(draw_common, compared), partial(draw_emulation, compared)]
    yield from sections.in_steps(parts, on_progress)


def draw_emulation(compared: Sequence[Compared]) -> Iterator[Figure]:
    """Yields how late packets of live runs were."""
    late = [
        [tail for one in compared for tail in lateness.tails(one.data.numbers, {key: one.style})]
        for key in ("delay_error_cdf", "pacing_error_cdf")
    ]
    if any(late):
        yield named(
            "emulation",
            lateness.of_runs(*late),
            "The live runs' own error. A line is the share of packets that were transmitted later"
            " than they should by more than a time.",
        )


def draw_common(compared: Sequence[Compared]) -> Iterator[Figure]:
    """Yields the figures of runs of any kind."""
    scene = Scene(
        groups=[one.style for one in compared],
        duration_s=max(one.data.scene.duration_s for one in compared),
        links=[one.name for one in compared],
        link_styles=[one.style for one in compared],
    )
    with_flows = [(i, one, one.data.flows) for i, one in enumerate(compared) if one.data.flows]
    if with_flows:
        yield from draw_flows([(i, one) for i, one, _ in with_flows], scene)
    links = []
    for index, one in enumerate(compared):
        found = busiest_link(one.data)
        if found is not None:
            links.append(found[1].with_columns(link=pl.lit(index, pl.UInt16)))
    if links:
        names = ["ts_ns", "time_s", "link", "queue_mean_pkts", "queue_max_pkts", "length_ns"]
        names += ["sojourn_mean_ns", "sojourn_max_ns", "drops", "marks"]
        yield from draw_links(compared, pl.concat([part.select(names) for part in links]), scene)


def draw_flows(compared: Sequence[tuple[int, Compared]], scene: Scene) -> Iterator[Figure]:
    """Yields goodput, RTT, fairness, the trade-off and a window of each run's flows."""
    totals, parts, each, late, cwnds = [], [], [], [], []
    first = pairing.pairs([one.data.numbers for _, one in compared])[:1]
    for place, (index, one) in enumerate(compared):
        flows = one.data.flows
        assert flows is not None
        own = flows.rated.with_columns(group=pl.lit(index, pl.UInt16))
        total = own.group_by("time_s").agg(goodput_bps=pl.col("goodput_bps").sum())
        totals.append((one.style, total.sort("time_s")))
        parts.append(own.select("time_s", "group", "goodput_bps", "rtt_mean_ns", "rtt_samples"))
        windowed, length_s = sections.windowed(one.data, flows)
        each.append((one.style, windowed))
        after = sections.measured(windowed, length_s, one.data.scene.warmup_s)
        late.append((one.style, after))
        own_group = flows.each.filter(pl.col("group").is_in([p.groups[place] for p in first]))
        chosen = metrics.typical_flows(own_group if own_group.height else flows.each, 1)
        cwnds.append((one.style, sections.window_samples(one.data.run, flows.rated, chosen)))
    goodput = figures.Quantity("goodput_bps", "goodput of all flows", "bit/s")
    yield named(
        "goodput",
        figures.panels([goodput], totals, scene),
        "Goodput of all flows over time. The flows of a run are added up.",
    )
    both = pl.concat(parts)
    spread = metrics.spread_over_time(both, "goodput_bps", 0.05, 0.95)
    drawn = "A line is the median flow, a band the 5th to 95th percentile of flows."
    figure = banded(spread, units.RATE_STEPS, "goodput per flow", scene)
    yield named("goodput-per-flow", figure, f"Goodput per flow over time. {drawn}")
    measured = both.filter(pl.col("rtt_samples") > 0)
    if measured.height > 0:
        spread = metrics.spread_over_time(measured, "rtt_mean_ns", 0.05, 0.95)
        figure = banded(spread, units.TIME_STEPS, "RTT", scene)
        yield named(
            "rtt", figure, f"Round-trip time over time. {drawn} The table's mean is of all samples."
        )
    yield named(
        "fairness",
        balance.fairness(each, scene),
        "Jain's index of goodput over time. It is 1 where all flows get the same.",
    )
    tradeoff = balance.tradeoff(late)
    if tradeoff is not None:
        yield named(
            "tradeoff",
            tradeoff,
            "Goodput against RTT. A marker is the mean, and an ellipse one standard deviation, of"
            " a run's flows in windows after the warm-up. Better is up and to the right.",
        )
    window = figures.Quantity("cwnd_segs", "cwnd", "segments")
    yield named(
        "cwnd",
        figures.panels([window], cwnds, scene),
        "Congestion window over time. Shown is the flow whose goodput is the median of"
        + (f" {first[0].label}." if first else " all.")
        + (
            " For a capture it is the data in flight."
            if any(one.data.captured for _, one in compared)
            else ""
        ),
    )


def draw_links(compared: Sequence[Compared], links: pl.DataFrame, scene: Scene) -> Iterator[Figure]:
    """Yields queue, its delay, drops and marks at each run's busiest link."""
    yield named(
        "queue",
        figures.queue(links, scene),
        "Queue and queueing delay at the busiest link over time. Lines are means of intervals; the"
        " shade above reaches to the largest value in each.",
    )
    distributions = []
    for one in compared:
        found = busiest_link(one.data)
        if found is None or one.data.links is None:
            continue
        known, _ = sections.delays(one.data, one.data.links, [found[0]])
        distributions += [replace(cdf, label=one.name, style=one.style) for cdf in known[:1]]
    if distributions:
        yield named(
            "delay",
            figures.delay_cdf(distributions),
            "Distribution of queueing delay after the warm-up, and its tail. It is that of each"
            " run's busiest link.",
        )
    happened = [kind for kind in ("drops", "marks") if int(links[kind].sum()) > 0]
    if happened:
        names = {"drops": "drops per second", "marks": "CE marks per second"}
        rates = _event_rates(links, scene)
        series = [(compared[i].style, part) for i, part in split_by(rates, "link")]
        quantities = [figures.Quantity(kind, names[kind], "") for kind in happened]
        yield named(
            "events",
            figures.panels(quantities, series, scene),
            "Drops and CE marks at the busiest link over time. Each value is the number per second"
            " in a window.",
        )


def _event_rates(links: pl.DataFrame, scene: Scene) -> pl.DataFrame:
    """Returns drops and marks per second in windows, by link."""
    length = windows.length_s(scene.duration_s, metrics.step_ns(links))
    span_s = pl.col("length_ns").sum() / metrics.NS_PER_S
    rates = {kind: pl.col(kind).sum() / span_s for kind in ("drops", "marks")}
    middle = ((pl.col("time_s") / length).floor() + 0.5) * length
    return links.group_by("link", time_s=middle).agg(**rates).sort("link", "time_s")
