# SPDX-License-Identifier: BSD-3-Clause
"""A run as one HTML file that needs no other: figures, tables, ledger, provenance.

What the page says is put together here; templates/run.html.j2 says how it is shown.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import polars as pl

from weir.analysis import folder, labels, latency, losses, metrics, qlog, summary
from weir.base import programs, units
from weir.base.errors import UserError
from weir.base.page import Status, Table
from weir.report import bottleneck, document, interactive, sections, theme
from weir.report.data import RunData, read

if TYPE_CHECKING:
    from weir.analysis.folder import Run

DATA = (".json", ".ring", ".yaml", ".parquet", ".csv")


def write(run: Run, out: Path | None = None, on_progress: sections.Progress | None = None) -> Path:
    """Writes report.html into the run folder, or into `out`, and returns its path."""
    theme.use()
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    path = (out or run.path) / "report.html"
    if path.is_dir():
        raise UserError(f"{path}: a folder has the report's name", 1)
    folder.write_whole(path, page(run, path.parent, on_progress))
    return path


def page(run: Run, place: Path, on_progress: sections.Progress | None = None) -> str:
    """The whole document, to be written into a folder `place`."""
    data = read(run)
    report = data.numbers
    return document.render(
        "run.html.j2",
        title=title_of(run),
        status=status(report),
        headline=headline(report),
        notes=run.notes,
        labels=labels.read(run.path),
        traffic=traffic(report),
        transfers=[*under_load(run), *transfers(data), *qlogs(run)],
        warmup=warmup(report, data.scene.warmup_s),
        why=[*summary.why_lines(report), *(losses.sentences(run) if captured(run) else [])],
        emulation=emulation(report),
        exact=run.summary.get("program") == summary.SIMULATOR,
        verdicts=verdicts(run, report),
        bokeh=interactive.script(),
        figures=document.embed_interactive(
            (d.figure, d.caption) for d in sections.draw(data, on_progress)
        ),
        ledger=ledger(report),
        files=files(run, place),
        provenance=provenance(run),
        config=run.config_text,
    )


def captured(run: Run) -> bool:
    """Is it a capture's analysis, which cannot know what dropped the packets?"""
    return run.summary.get("program") == summary.ANALYSER


def verdicts(run: Run, report: dict[str, Any]) -> list[str] | None:
    """What the reader must know; None: in virtual time nothing could, or nobody judged."""
    said = summary.verdict_lines(report)
    exact = run.summary.get("program", summary.SIMULATOR) == summary.SIMULATOR
    return None if (exact or run.summary.get("kind") == "import") and not said else said


def files(run: Run, place: Path) -> list[tuple[str, str]]:
    """The run's own files, as links from a folder: names and addresses."""
    found = (p for p in run.path.iterdir() if p.suffix in DATA and not p.name.startswith("."))
    return [(p.name, address(p, place)) for p in sorted(found)]


def address(path: Path, place: Path) -> str:
    """A file's address from a folder, for a link."""
    return quote(os.path.relpath(path.resolve(), place.resolve()))


def title_of(run: Run) -> str:
    """The config's title, or the folder's name."""
    return str(run.config.get("title") or run.path.resolve().name)


def status(report: dict[str, Any]) -> Status:
    """How the run ended, worst first: its end, its ledger, what fell behind."""
    balanced = report.get("ledger", {}).get("balanced")
    if "verdict" not in report:
        return Status("bad", "The run did not end by itself.")
    if balanced is False:
        return Status("bad", "The ledger is not balanced: packets are missing from it.")
    if report.get("kind") == "import":
        return Status("warn", "A result of another program: nobody has judged it.")
    found = summary.verdict_lines(report)
    if found:
        more = f" And {len(found) - 1} more, under Verdict." if len(found) > 1 else ""
        return Status("warn", f"{found[0].rstrip('.')}.{more}")
    return Status("good", "ok" if balanced is None else "ok: every packet is accounted for")


def headline(report: dict[str, Any]) -> list[tuple[str, str]]:
    """The few numbers that a reader wants first."""
    numbers = []
    groups = report.get("groups", [])
    if groups:
        numbers += [
            ("flows", units.count(summary.total(groups, "flows"))),
            ("goodput", units.rate(summary.total(groups, "goodput_bps"))),
        ]
    link = bottleneck.busiest(report)
    if link is not None:
        numbers += [
            ("utilisation", units.percent(link[1].get("utilisation"))),
            ("mean queueing delay", units.time(link[1].get("queue_mean_ns"))),
        ]
    if report.get("jfi") is not None:
        numbers.append(("Jain's index", units.ratio(report["jfi"])))
    if report.get("ledger"):
        numbers.append(("ledger", summary.balance(report)))
    return numbers


def traffic(report: dict[str, Any]) -> list[Table]:
    """The groups of flows and the links, those that there are."""
    return [table for table in (summary.groups(report), summary.links(report)) if table]


def qlogs(run: Run) -> list[tuple[str, Table]]:
    """What programs wrote in qlogs, beside what the paths counted; a file that is none is named."""
    text = (
        "What QUIC programs say in their qlogs, of the whole run, and what the paths have counted"
    )
    try:
        found = qlog.found_in(run.path, run.summary)
    except UserError as error:
        return [(f"{text}: {error}", qlog.table([]))]
    return [(text, qlog.table(found))] if found else []


def under_load(run: Run) -> list[tuple[str, Table]]:
    """Delay of pings without and with the load, and responsiveness."""
    found = latency.under_load(run)
    text = "Delay under load: round trips of pings before and beside the bulk flows, and how many a"
    text += " minute has with the load"
    return [(text, found.table)] if found is not None else []


COMPLETION_COLUMNS = (
    "group",
    "size",
    "transfers",
    "unfinished",
    "mean",
    "p50",
    "p95",
    "p99",
    "slowdown",
    "p99 slowdown",
)
VIDEO_COLUMNS = (
    "group",
    "video streams",
    "segments",
    "bitrate",
    "switches",
    "stalls",
    "stood still",
)


def transfers(data: RunData) -> list[tuple[str, Table]]:
    """Completion times by size, and video streams; each with a sentence that says what it is."""
    frame = data.run.frame("transfers")
    if frame is None:
        return []
    closed = data.run.values("transfers", "event")["close"]
    since_ns = data.scene.warmup_s * metrics.NS_PER_S
    tables = []
    rows = completion_rows(metrics.completion_times(frame, closed, since_ns), data)
    if rows:
        text = (
            "Completion times by size, and over the time on an empty path (slowdown), of the"
            " transfers that finished: those of the unfinished would be longer"
        )
        tables.append((text, Table(COMPLETION_COLUMNS, rows, left=2)))
    video = frame.filter(pl.col("group").is_in(video_groups(data.run)))
    rows = video_rows(metrics.video_streams(video, closed, since_ns), data)
    if rows:
        text = "Video: per stream, with one segment in reserve when playback starts"
        tables.append((text, Table(VIDEO_COLUMNS, rows)))
    return tables


def completion_rows(times: pl.DataFrame, data: RunData) -> list[list[str]]:
    """A row for each group and size."""
    return [
        [
            data.scene.group(row["group"]).label,
            metrics.size_bin(row["bin"]),
            units.count(row["count"]),
            units.count(row["unfinished"]),
            *(units.time(row[name]) for name in ("mean_ns", "p50_ns", "p95_ns", "p99_ns")),
            *(
                units.NONE if row[name] is None else f"{row[name]:.2f}"
                for name in ("slowdown_mean", "slowdown_p99")
            ),
        ]
        for row in times.iter_rows(named=True)
    ]


def video_groups(run: Run) -> list[int]:
    """Numbers of the groups whose source is `video`."""
    groups = run.config.get("flows") or []
    return [
        number
        for number, group in enumerate(groups)
        if isinstance(group, dict)
        and (group.get("source") == "video" or "video" in (group.get("source") or {}))
    ]


def video_rows(streams: pl.DataFrame, data: RunData) -> list[list[str]]:
    """A row for each group: means over its streams."""
    if streams.height == 0:
        return []
    means = streams.group_by("group", maintain_order=True).agg(
        pl.len().alias("streams"), pl.exclude("flow_id").mean()
    )
    return [
        [
            data.scene.group(row["group"]).label,
            units.count(row["streams"]),
            f"{row['segments']:.4g}",
            units.rate(row["bitrate_mean_bps"]),
            f"{row['switches']:.3g}",
            f"{row['stalls']:.3g}",
            units.percent(row["still_ns"] / row["played_ns"]),
        ]
        for row in means.iter_rows(named=True)
    ]


def warmup(report: dict[str, Any], length_s: float) -> str | None:
    """The length of the warm-up, if any table leaves it out."""
    return units.time(length_s * metrics.NS_PER_S) if length_s and traffic(report) else None


def emulation(report: dict[str, Any]) -> Table | None:
    """How exact a live run was."""
    return summary.emulation(report) or None


@dataclass(frozen=True)
class Ledger:
    """Every packet accounted for: in + duplicated = out + inside + drops by reason."""

    balanced: bool | None
    sentence: str
    faults: list[str]
    table: Table


def ledger(report: dict[str, Any]) -> Ledger | None:
    """The ledger, if there is one: the account of all ports, then of each path."""
    accounts = report.get("ledger")
    if not accounts:
        return None
    balanced = accounts.get("balanced")
    rows = port_rows(accounts)
    for name, path in accounts.get("paths", {}).items():
        rows += path_rows(name, path, balanced is not False)
    table = Table(("path", "", "packets", "bytes"), rows, left=2)
    faults = [summary.sentence(one) for one in report.get("faults", [])]
    return Ledger(balanced, summary.balance(report), faults, table)


def port_rows(accounts: dict[str, Any]) -> list[list[str]]:
    """The account of a switch's ports, in packets; none in virtual time."""
    received, gone = summary.port_terms(accounts)
    if not received:
        return []
    rows = []
    for index, (label, count) in enumerate(received + gone):
        sign = "− " if index >= len(received) else "+ " if index else ""
        rows.append(["" if index else "all ports", sign + label, units.count(count or 0), ""])
    rest = sum(count for _, count in received) - sum(count for _, count in gone)
    return [*rows, ["", "=" if accounts["balanced"] is False else "= 0", f"{rest:,}", ""]]


TERMS = (
    ("in", "in"),
    ("duplicated", "+ duplicated"),
    ("out", "− out"),
    ("inside", "− still inside"),
)


def path_rows(name: str, path: dict[str, Any], balanced: bool) -> list[list[str]]:
    """The account of one path."""
    terms = [
        (label, path.get(key, {}).get("pkts"), path.get(key, {}).get("bytes"))
        for key, label in TERMS
        if key != "duplicated" or path.get(key, {}).get("pkts")
    ]
    terms += [(f"− dropped: {reason}", pkts, size) for reason, pkts, size in summary.drops(path)]
    rows = [
        ["" if index else name, label, units.count(pkts or 0), units.count(size or 0)]
        for index, (label, pkts, size) in enumerate(terms)
    ]
    return [*rows, ["", "= 0" if balanced else "=", *remainder(path)]]


def remainder(path: dict[str, Any]) -> list[str]:
    """What a path's account leaves over, in packets and bytes; zero if it balances."""
    left = []
    for unit in ("pkts", "bytes"):
        rest = path.get("in", {}).get(unit, 0) + path.get("duplicated", {}).get(unit, 0)
        rest -= path.get("out", {}).get(unit, 0) + path.get("inside", {}).get(unit, 0)
        rest -= sum(counted.get(unit, 0) for counted in path.get("drops", {}).values())
        left.append(f"{rest:,}")
    return left


def provenance(run: Run) -> list[tuple[str, str]]:
    """What made this run, so that it can be made again."""
    known = {**run.manifest, **run.summary}
    host = known.get("host")
    if isinstance(host, dict):
        host = "; ".join(f"{key} {value}" for key, value in host.items())
    rows = [
        ("command", known.get("command")),
        ("command line", known.get("command_line")),
        ("program", f"{known.get('program', '')} {known.get('version', '')}".strip()),
        ("commit", known.get("commit")),
        ("seed", summary.seed(known)),
        ("config hash", known.get("config_hash")),
        ("telemetry digest", known.get("digest")),
        ("started", known.get("started_utc")),
        ("host", host),
        ("versions", versions(known.get("versions"))),
        ("speed", summary.speed(run.summary)),
        ("verdict", known.get("verdict")),
        ("folder", run.path.resolve()),
    ]
    return [
        (name, " ".join(map(str, value)) if isinstance(value, list) else str(value))
        for name, value in rows
        if value not in (None, "")
    ]


def versions(built: object) -> str:
    """What the programs were built with, and what made the run and this page."""
    named = built if isinstance(built, dict) else {}
    page = ", ".join(f"{name} {version}" for name, version in programs.versions().items())
    ran = named.get("tools")
    parts = [f"{name} {version}" for name, version in named.items() if name != "tools"]
    if ran and ran != page:
        parts.append(f"run with {ran}")
    return "; ".join([*parts, f"this page: {page}"])
