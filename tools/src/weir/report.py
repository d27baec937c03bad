# SPDX-License-Identifier: BSD-3-Clause
"""A run as one HTML file that needs nothing else: figures, tables, ledger, provenance."""

from __future__ import annotations

import base64
import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from weir import figures, look, metrics, summary, units

if TYPE_CHECKING:
    import numpy.typing as npt
    from matplotlib.figure import Figure

    from weir.folder import Run
    from weir.ring import Ring

CHUNK_RECORDS = 1 << 22
DEQUEUE = 2  # enum tel_packet_event
EVENTS_SHOWN = (1, 2, 5, 7)  # enum tel_event: reduction, timeout, mode change, spurious
CWND_FLOWS = 6
CWND_POINTS = 4000  # of each flow
CAPTION_BAND = "Line: median flow; band: 5th to 95th percentile."


def write(run: Run) -> Path:
    """Writes report.html into the run folder and returns its path."""
    look.use()
    path = run.path / "report.html"
    partial = path.with_name(f".report-{os.getpid()}.html")
    partial.write_text(page(run), encoding="utf-8")
    partial.replace(path)
    return path


def page(run: Run) -> str:
    """The whole document."""
    drawn = [
        f"<figure>{inline_svg(figure, f'f{n}-')}<figcaption><b>Figure {n}.</b> {escape(caption)}"
        "</figcaption></figure>"
        for n, (figure, caption) in enumerate(draw(run), start=1)
    ]
    title = title_of(run)
    body = [
        f"<header><h1>{escape(title)}</h1>{headline(run.summary)}</header>",
        *(f'<p class="note">{escape(note)}</p>' for note in run.notes),
        *tables(run.summary, warmup_s(run)),
        *drawn,
        *ledger(run.summary),
        provenance(run),
    ]
    if run.config_text:
        body.append(
            "<details><summary>Configuration as resolved</summary>"
            f"<pre>{escape(run.config_text)}</pre></details>"
        )
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}'
        '</title><meta name="viewport" content="width=device-width">'
        f"<style>{fonts()}{CSS}</style></head>\n<body>\n" + "\n".join(body) + "\n</body></html>\n"
    )


def title_of(run: Run) -> str:
    """The config's title, or the folder's name."""
    return str(run.config.get("title") or run.path.resolve().name)


# What is drawn.


def draw(run: Run) -> Iterator[tuple[Figure, str]]:
    """Each figure that the run has data for, with its caption."""
    interval, links = run.frame("interval"), run.frame("links")
    warmup_ns = warmup_s(run) * metrics.NS_PER_S
    scene = figures.Scene(
        groups=look.group_styles(
            [(str(g.get("name", "")), str(g.get("cc", ""))) for g in run.summary.get("groups", [])]
        ),
        duration_s=duration_s(run, interval, links),
        warmup_s=warmup_s(run),
        links=list(run.summary.get("links", {})),
    )
    flows = None if interval is None else flow_data(interval, warmup_ns, scene)
    if flows is not None:
        yield from draw_rates(run, flows, scene)
    if links is not None:
        yield from draw_links(run, links, warmup_ns, scene)
    if flows is not None:
        yield from draw_shares(run, flows, scene)
    yield from draw_events(run, links, scene)


def warmup_s(run: Run) -> float:
    """Where measuring began."""
    known = run.summary.get("warmup_s")
    if known is not None:
        return float(known)
    return (units.config_time_ns(run.config.get("warmup", "0")) or 0.0) / metrics.NS_PER_S


def duration_s(run: Run, *frames: pl.DataFrame | None) -> float:
    """Length of the run: what the summary says, else the last record."""
    known = run.summary.get("virtual_s")
    if known:
        return float(known)
    ends = [f["ts_ns"].to_numpy().max() for f in frames if f is not None]
    return float(max(ends, default=metrics.NS_PER_S)) / metrics.NS_PER_S


@dataclass(frozen=True)
class FlowData:
    """What the intervals say about flows."""

    length_ns: int  # of an interval
    rated: pl.DataFrame  # the intervals, with rates
    each: pl.DataFrame  # one row per flow, after the warm-up

    @property
    def few(self) -> bool:
        """Are they drawn one by one?"""
        return self.each.height <= figures.FEW


def flow_data(interval: pl.DataFrame, warmup_ns: float, scene: figures.Scene) -> FlowData:
    """Rates of the intervals, totals of the flows; a run that ended in its warm-up counts whole."""
    length = metrics.step_ns(interval)
    measured = metrics.between(interval, warmup_ns)
    span_ns = scene.duration_s * metrics.NS_PER_S - warmup_ns
    if measured.height == 0:
        measured, span_ns = interval, scene.duration_s * metrics.NS_PER_S
    each = metrics.per_flow(measured, max(span_ns, length))
    return FlowData(length, metrics.with_rates(interval, length), each)


def draw_rates(run: Run, flows: FlowData, scene: figures.Scene) -> Iterator[tuple[Figure, str]]:
    """Throughput and RTT over time."""
    bottleneck = busiest(run.summary)
    rate = bottleneck[1].get("rate_bps") if bottleneck else None
    yield (
        figures.throughput(flows.rated, flows.each, rate, scene),
        f"Goodput over time, means of {units.time(flows.length_ns)}."
        + ("" if flows.few else f" Right: per flow. {CAPTION_BAND}")
        + (" The dotted line ends the warm-up." if scene.warmup_s else ""),
    )
    if bool((flows.rated["rtt_samples"] > 0).any()):
        yield (
            figures.rtt(flows.rated, flows.each, propagation_ns(run.config), scene),
            f"Round-trip time as the senders see it, means of {units.time(flows.length_ns)}."
            + ("" if flows.few else f" {CAPTION_BAND}"),
        )


def draw_shares(run: Run, flows: FlowData, scene: figures.Scene) -> Iterator[tuple[Figure, str]]:
    """Who got how much, and the windows behind it."""
    count = flows.each.height
    index = metrics.jfi(flows.each["goodput_bps"].to_numpy())
    yield (
        figures.shares(flows.each, scene),
        f"Shares of {units.count(count)} flows after the warm-up;"
        f" Jain's index {summary.ratio(index)}.",
    )
    chosen = metrics.typical_flows(flows.each, CWND_FLOWS)
    few = "." if count <= CWND_FLOWS else " of a few: per group the median, least and best served."
    yield (
        figures.cwnd(window_samples(run, flows.rated, chosen), chosen, scene),
        f"Congestion window{few}",
    )


def window_samples(run: Run, rated: pl.DataFrame, chosen: Sequence[int]) -> pl.DataFrame:
    """Windows after each ACK where they were recorded (level 2 and 3), else at interval ends."""
    columns = ["time_s", "flow_id", "group", "cwnd_segs"]
    at_end = pl.col("ts_ns") / metrics.NS_PER_S
    wanted = np.asarray(chosen, dtype=np.uint32)
    found = []
    for ring in run.rings("cc"):
        for part in chunks(ring, ("ts_ns", "flow_id", "group", "cwnd_segs")):
            keep = np.isin(part["flow_id"], wanted)
            found.append(pl.DataFrame({name: column[keep] for name, column in part.items()}))
    acks = pl.concat(found) if found else pl.DataFrame()
    if acks.height > 0 and acks["flow_id"].n_unique() == len(chosen):
        thin = max(1, acks.height // (CWND_POINTS * len(chosen)))
        nth = pl.int_range(pl.len()).over("flow_id")
        return acks.filter(nth % thin == 0).with_columns(time_s=at_end).select(columns)
    kept_rows = rated.filter(pl.col("flow_id").is_in(list(chosen)))
    return kept_rows.with_columns(time_s=at_end).select(columns)


def chunks(ring: Ring, names: Sequence[str]) -> Iterator[dict[str, npt.NDArray[Any]]]:
    """A ring's columns, a few million records at a time."""
    columns = {name: ring.column(name) for name in names}
    for start in range(0, len(columns[names[0]]), CHUNK_RECORDS):
        yield {name: column[start : start + CHUNK_RECORDS] for name, column in columns.items()}


def draw_links(
    run: Run, links: pl.DataFrame, warmup_ns: float, scene: figures.Scene
) -> Iterator[tuple[Figure, str]]:
    """Queue over time and the distribution of its delay."""
    length = metrics.step_ns(links)
    timed = links.with_columns(time_s=(pl.col("ts_ns") - length / 2) / metrics.NS_PER_S)
    busy = (
        timed.group_by("link")
        .agg(load=(pl.col("out_bytes") * 8 / pl.col("rate_bps")).sum())
        .filter(pl.col("load") > 0)
        .sort("load", descending=True)
    )
    if busy.height == 0:
        return
    top = float(busy["load"][0])
    kept = busy.filter(pl.col("load") > 0.05 * top)["link"].to_list()[: figures.LINKS_DRAWN]
    yield (
        figures.queue(timed.filter(pl.col("link").is_in(kept)), scene),
        f"Queue and queueing delay. Lines: means of {units.time(length)}; shaded: up to the"
        " largest value in each.",
    )
    packets = packet_delays(run, kept, warmup_ns, scene)
    if packets:
        yield (
            figures.delay_cdf(packets),
            "Queueing delay of every recorded packet after the warm-up; right: its tail.",
        )
        return
    means = []
    for link in kept:
        part = metrics.between(timed, warmup_ns).filter(pl.col("link") == link)
        delay, share = metrics.ecdf(part["sojourn_mean_ns"], part["out_pkts"])
        name = link_name(scene, link)
        if delay.size > 0:
            points = summary_points(run.summary.get("links", {}).get(name, {}))
            means.append(figures.Cdf(name, delay, share, points))
    if means:
        yield (
            figures.delay_cdf(means),
            f"Queueing delay after the warm-up; right: its tail. Line: means of"
            f" {units.time(length)}, by packets; points: single packets, from the summary."
            " Telemetry level 3 gives the whole distribution.",
        )


def summary_points(link: dict[str, Any]) -> list[tuple[str, float, float]]:
    """What the summary knows of every packet's delay."""
    known = (("median", "sojourn_p50_ns", 0.5), ("p99", "sojourn_p99_ns", 0.99))
    return [(name, float(link[key]), q) for name, key, q in known if link.get(key) is not None]


def link_name(scene: figures.Scene, link: int) -> str:
    """A link's name in the summary."""
    return scene.links[link] if link < len(scene.links) else f"link {link}"


def packet_delays(
    run: Run, links: Iterable[int], warmup_ns: float, scene: figures.Scene
) -> list[figures.Cdf]:
    """CDFs of time in the queue from packets.ring, if packets were recorded."""
    rings = run.rings("packets")
    found = []
    for link in links:
        parts = []
        for ring in rings:
            for part in chunks(ring, ("ts_ns", "sojourn_ns", "event", "link")):
                keep = (part["event"] == DEQUEUE) & (part["link"] == link)
                parts.append(part["sojourn_ns"][keep & (part["ts_ns"] > warmup_ns)])
        delay, share = metrics.binned_cdf(parts)
        if delay.size > 0:
            points = [
                (name, value, q)
                for name, q in (("median", 0.5), ("p99", 0.99))
                if (value := metrics.quantile_of_cdf(delay, share, q)) is not None
            ]
            found.append(figures.Cdf(link_name(scene, link), delay, share, points))
    return found


def draw_events(
    run: Run, links: pl.DataFrame | None, scene: figures.Scene
) -> Iterator[tuple[Figure, str]]:
    """Drops, marks, window reductions, timeouts and mode changes, as rates."""
    length_s = scene.duration_s / 120
    kinds = []
    if links is not None:
        kinds += [
            links.select("ts_ns", pl.lit(kind).alias("kind"), count=pl.col(kind).cast(pl.Float64))
            for kind in ("drops", "marks")
        ]
    recorded = run.frame("events")
    if recorded is not None:
        shown = recorded.filter(pl.col("event").is_in(list(EVENTS_SHOWN)))
        names = pl.format("event {}", pl.col("event"))
        kinds.append(shown.select("ts_ns", kind=names, count=pl.lit(1.0)))
    if not kinds:
        return
    middle = ((pl.col("ts_ns") - 1) / (length_s * metrics.NS_PER_S)).floor() + 0.5
    counts = (
        pl.concat(kinds)
        .filter((pl.col("count") > 0) & (pl.col("ts_ns") > 0))
        .group_by("kind", time_s=middle * length_s)
        .agg(pl.col("count").sum())
    )
    if counts.height > 0:
        yield (
            figures.events(counts, scene, length_s),
            f"What happened when, in bins of {units.time(length_s * metrics.NS_PER_S)}.",
        )


def busiest(report: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """The link with the highest utilisation."""
    links: dict[str, dict[str, Any]] = report.get("links", {})
    return max(links.items(), key=lambda item: float(item[1].get("utilisation") or 0), default=None)


def propagation_ns(config: dict[str, Any]) -> float | None:
    """Constant delay of forward and reverse path, if it is the same for all flows."""
    if any(units.config_time_ns(group.get("base_rtt", "0")) for group in config.get("flows", [])):
        return None
    total = 0.0
    for name in ("forward", "reverse"):
        for stage in config.get("paths", {}).get(name, []):
            params = stage.get("delay") if isinstance(stage, dict) else None
            if isinstance(params, dict):
                total += units.config_time_ns(params.get("delay", "0")) or 0.0
    return total or None


# What is written.


def headline(report: dict[str, Any]) -> str:
    """The few numbers a reader wants first."""
    cells = []
    groups = report.get("groups", [])
    if groups:
        total = sum(group.get("goodput_bps") or 0 for group in groups)
        flows = sum(group.get("flows") or 0 for group in groups)
        cells += [("flows", units.count(flows)), ("goodput", units.rate(total))]
    link = busiest(report)
    if link is not None:
        cells += [
            ("utilisation", units.percent(link[1].get("utilisation"))),
            ("mean queueing delay", units.time(link[1].get("queue_mean_ns"))),
        ]
    if report.get("jfi") is not None:
        cells.append(("Jain's index", summary.ratio(report["jfi"])))
    balanced = report.get("ledger", {}).get("balanced")
    if balanced is not None:
        cells.append(("ledger", "balanced" if balanced else "not balanced"))
    items = (f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in cells)
    return f"<dl>{''.join(items)}</dl>"


def html_table(columns: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """A table; the first `left` columns hold names."""
    kinds = ["l" if index < left else "r" for index in range(len(columns))]
    head = "".join(f'<th class="{k}">{escape(c)}</th>' for k, c in zip(kinds, columns, strict=True))
    body = "".join(
        "<tr>"
        + "".join(f'<td class="{k}">{escape(c)}</td>' for k, c in zip(kinds, row, strict=True))
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def tables(report: dict[str, Any], warmup: float) -> Iterator[str]:
    """Groups, links, emulation."""
    groups, links = summary.group_rows(report), summary.link_rows(report)
    if groups:
        yield html_table(summary.GROUP_COLUMNS, groups, left=2)
    if links:
        yield html_table(summary.LINK_COLUMNS, links)
    if warmup and (groups or links):
        since = units.time(warmup * metrics.NS_PER_S)
        yield f'<p class="small">Measured after a warm-up of {since}; the ledger counts all.</p>'
    emulation = report.get("emulation")
    if isinstance(emulation, dict):
        yield html_table(
            ("emulation error", "delay, median", "delay, p99", "rate"),
            [
                [
                    "this run's own",
                    units.time(emulation.get("delay_error_p50_ns")),
                    units.time(emulation.get("delay_error_p99_ns")),
                    f"{units.number(emulation.get('rate_error_ppm'))} ppm",
                ]
            ],
        )


def ledger(report: dict[str, Any]) -> Iterator[str]:
    """Every packet accounted for: in = out + inside + drops by reason."""
    paths = list(summary.ledger_paths(report))
    if not paths:
        return
    balanced = report.get("ledger", {}).get("balanced")
    verdict = "balanced" if balanced else '<strong class="bad">not balanced</strong>'
    yield f"<h2>Ledger: {verdict}</h2>"
    cell: Callable[[Any], str] = lambda value: units.count(value or 0)  # noqa: E731
    rows = []
    for name, path in paths:
        for key in ("in", "out", "inside"):
            counted = path.get(key, {})
            label = {"in": "in", "out": "− out", "inside": "− still inside"}[key]
            rows.append(
                [
                    name if key == "in" else "",
                    label,
                    cell(counted.get("pkts")),
                    cell(counted.get("bytes")),
                ]
            )
        rows += [
            ["", f"− dropped: {reason}", cell(p), cell(b)] for reason, p, b in summary.drops(path)
        ]
        rows.append(["", "= 0" if balanced else "=", *remainder(path)])
    yield html_table(("path", "", "packets", "bytes"), rows, left=2)


def remainder(path: dict[str, Any]) -> list[str]:
    """What a path's account leaves over, in packets and bytes; zero if it balances."""
    left = []
    for unit in ("pkts", "bytes"):
        rest = path.get("in", {}).get(unit, 0)
        rest -= path.get("out", {}).get(unit, 0) + path.get("inside", {}).get(unit, 0)
        rest -= sum(counted.get(unit, 0) for counted in path.get("drops", {}).values())
        left.append(f"{rest:,}")
    return left


def provenance(run: Run) -> str:
    """What made this run, so that it can be made again."""
    known = {**run.manifest, **run.summary}
    host = known.get("host")
    if isinstance(host, dict):
        host = "; ".join(f"{key} {value}" for key, value in host.items())
    rows = [
        ("command", known.get("command_line", known.get("command"))),
        ("program", f"{known.get('program', '')} {known.get('version', '')}".strip()),
        ("commit", known.get("commit")),
        ("seed", known.get("seed")),
        ("config hash", known.get("config_hash")),
        ("telemetry digest", known.get("digest")),
        ("started", known.get("started_utc")),
        ("host", host),
        ("speed", summary.speed(known)),
        ("verdict", known.get("verdict")),
        ("folder", run.path.resolve()),
    ]
    text = [
        (name, " ".join(map(str, value)) if isinstance(value, list) else str(value))
        for name, value in rows
        if value not in (None, "")
    ]
    cells = "".join(f"<tr><th>{n}</th><td><code>{escape(v)}</code></td></tr>" for n, v in text)
    return f'<h2>Provenance</h2><table class="facts">{cells}</table>'


# How it is embedded.


def inline_svg(figure: Figure, prefix: str) -> str:
    """A figure as an SVG element whose ids do not meet those of its neighbours."""
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]
    return re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{prefix}", text)


@cache
def fonts() -> str:
    """The figures' typeface for the page: matplotlib's own STIX, cut down to Latin text."""
    import matplotlib as mpl
    from fontTools import subset

    faces_dir = Path(mpl.get_data_path()) / "fonts/ttf"
    wanted = [*range(0x20, 0x7F), *range(0xA0, 0x180), *range(0x370, 0x400)]
    wanted += [0x2009, 0x2013, 0x2014, 0x2018, 0x2019, 0x2026, 0x2212, 0x2264, 0x2265]
    faces = []
    for name, weight in (("STIXGeneral", 400), ("STIXGeneralBol", 700)):
        options = subset.Options(flavor="woff", layout_features=["kern", "liga"])
        options.drop_tables += ["FFTM"]  # a font editor's time stamps
        out = io.BytesIO()
        with subset.load_font(str(faces_dir / f"{name}.ttf"), options) as font:
            cut = subset.Subsetter(options)
            cut.populate(unicodes=wanted)
            cut.subset(font)
            subset.save_font(font, out, options)
        data = base64.b64encode(out.getvalue()).decode()
        faces.append(
            f"@font-face{{font-family:STIXGeneral;font-weight:{weight};"
            f"src:url(data:font/woff;base64,{data}) format('woff')}}\n"
        )
    return "".join(faces)


CSS = """
body { font: 17px/1.45 STIXGeneral, "STIX Two Text", "Times New Roman", serif; color: #222;
  background: #fff; max-width: 900px; margin: 2.5em auto 4em; padding: 0 1.2em; }
h1 { font-size: 1.7em; line-height: 1.2; margin: 0 0 .5em; font-weight: 700; }
h2 { font-size: 1.15em; margin: 2em 0 .4em; }
dl { display: flex; flex-wrap: wrap; gap: .4em 2.4em; margin: 0 0 1.6em; }
dt { font-size: .82em; color: #666; }
dd { margin: 0; font-size: 1.25em; }
figure { margin: 2em 0; }
figure svg { width: 100%; height: auto; display: block; }
figcaption { font-size: .9em; margin-top: .5em; color: #333; }
table { border-collapse: collapse; margin: 0 0 1.4em; width: 100%; font-size: .95em;
  border-top: 1.2px solid #222; border-bottom: 1.2px solid #222; }
thead th { border-bottom: .7px solid #222; font-weight: 400; color: #555; }
th, td { padding: .22em .9em .22em 0; white-space: nowrap; }
th:last-child, td:last-child { padding-right: 0; }
.l { text-align: left; }
.r { text-align: right; font-variant-numeric: tabular-nums; }
.facts th { text-align: left; font-weight: 400; color: #555; vertical-align: top; }
.facts td { white-space: normal; overflow-wrap: anywhere; width: 100%; }
code, pre { font: .8em/1.45 ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
pre { background: #f6f6f6; padding: 1em; overflow-x: auto; }
details { margin-top: 2em; }
summary { cursor: pointer; }
.bad { color: #c00000; }
.small { font-size: .9em; margin-top: -.8em; color: #555; }
.note { border-left: 3px solid #E69F00; padding-left: .8em; }
@media print { body { margin: 0; max-width: none; } figure, table { break-inside: avoid; } }
"""
