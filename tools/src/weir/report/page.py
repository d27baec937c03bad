# SPDX-License-Identifier: BSD-3-Clause
"""A run's page: its numbers, figures, ledger and provenance."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import polars as pl

from weir.analysis import folder, labels, latency, listing, losses, measured, metrics, qlog, summary
from weir.analysis.model_parts import PathLedger
from weir.analysis.run_summary import RunLedger, RunSummary
from weir.base import page as pages
from weir.base import programs, units
from weir.base.errors import UserError
from weir.base.page import Column, Facts, Heading, Link, Part, Status, Table, Text, section
from weir.report import document, sections
from weir.report.data import RunData, read

if TYPE_CHECKING:
    from weir.analysis.folder import Run

DATA = (".json", ".ring", ".yaml", ".parquet", ".csv")


def write(run: Run, out: Path | None = None, on_progress: sections.Progress | None = None) -> Path:
    """Writes report.html into the run folder, or into `out`, and returns its path."""
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    path = (out or run.path) / "report.html"
    if path.is_dir():
        raise UserError(f"{path}: a folder has the report's name", 1)
    folder.write_report(path, page(run, path.parent, on_progress))
    return path


def page(run: Run, place: Path, on_progress: sections.Progress | None = None) -> str:
    """Returns the whole document, to be written into a folder `place`."""
    data = read(run)
    report = data.numbers
    figures = document.figures(sections.draw(data, on_progress))
    drops = losses.sentences(run) if data.captured else []
    parts: list[Part] = [
        *(Text(note, "note") for note in run.notes),
        *labelled(run),
        *branches(run, place),
        *traffic(report),
        *described([*real_path(run), *under_load(run), *transfers(data), *qlogs(run)]),
        Text(warmup(report, data.scene.warmup_s), "small"),
        *(Text(f"{line}.", "small") for line in [*summary.why_lines(report), *drops]),
        *emulation(run, report),
        *verdict(run, report),
        *section("Figures", figures),
        *ledger(report),
        *section("Data", Text(pages.joined(files(run, place), " · ")), name="data"),
        *section("Provenance", Facts(provenance(run))),
        pages.Source("Configuration as resolved", run.config_text),
    ]
    return document.render(pages.Page(title_of(run), parts, status(report), headline(report)))


def labelled(run: Run) -> list[Text]:
    """Returns what the user noted of the run."""
    known = labels.read(run.path)
    tags = f"Tags: {', '.join(known.tags)}." if known.tags else ""
    return [Text(known.note), Text(tags, "small")]


def branches(run: Run, place: Path) -> list[Text]:
    """Returns links to the run's branches: to their pages, or to their folders without one."""
    found = {path.name: path for path in listing.branches(run.path)}
    pages_of = {name: path / "report.html" for name, path in found.items()}
    links = [Link(name, address(page if page.exists() else found[name], place))
             for name, page in pages_of.items()]  # fmt: skip
    return [Text(["Branches: ", *pages.joined(links), "."])] if links else []


def described(tables: Iterable[tuple[str, Table]]) -> list[Part]:
    """Returns tables, each below a sentence that says what it is."""
    return [part for text, table in tables for part in (Text(f"{text}.", "small"), table)]


def verdicts(run: Run, report: RunSummary) -> list[str] | None:
    """Returns the verdicts. None: in virtual time there can be none, or nobody judged."""
    said = summary.verdict_lines(report)
    exact = run.summary.program in (None, summary.SIMULATOR)
    return None if (exact or run.summary.kind == "import") and not said else said


def verdict(run: Run, report: RunSummary) -> list[Part]:
    """Returns the section of verdicts, if there can be any."""
    said = verdicts(run, report)
    if said is None:
        return []
    return [Heading(f"Verdict{'' if said else ': nothing fell behind'}"), pages.Bullets(said)]


def files(run: Run, place: Path) -> list[Link]:
    """Returns links from a folder to the run's own files."""
    found = (p for p in run.path.iterdir() if p.suffix in DATA and not p.name.startswith("."))
    return [Link(p.name, address(p, place)) for p in sorted(found)]


def address(path: Path, place: Path) -> str:
    """Returns a file's address from a folder, for a link."""
    return quote(os.path.relpath(path.resolve(), place.resolve()))


def title_of(run: Run) -> str:
    """Returns the config's title, or the folder's name."""
    return str(run.config.get("title") or run.path.resolve().name)


def status(report: RunSummary) -> Status:
    """Returns how the run ended, worst first: its end, its ledger, what fell behind."""
    balanced = report.ledger.balanced
    if not report.ended:
        return Status("bad", "The run did not end by itself.")
    if balanced is False:
        return Status("bad", "The ledger is not balanced: packets are missing from it.")
    if report.kind == "import":
        return Status("warn", "A result of another program: nobody has judged it.")
    found = summary.verdict_lines(report)
    if found:
        more = f" And {len(found) - 1} more, under Verdict." if len(found) > 1 else ""
        return Status("warn", f"{found[0].rstrip('.')}.{more}")
    return Status("good", "ok" if balanced is None else "ok: every packet is accounted for")


def headline(report: RunSummary) -> list[tuple[str, str]]:
    """Returns the few numbers that a reader wants first."""
    numbers = []
    if report.groups:
        goodput_bps = summary.of_flows(report, lambda group: group.goodput_bps)
        numbers += [
            ("flows", units.count(summary.of_flows(report, lambda group: group.flows))),
            ("goodput", units.rate(goodput_bps)),
        ]
    link = summary.busiest(report)
    if link is not None:
        numbers += [
            ("utilisation", units.percent(link[1].utilisation)),
            ("mean queueing delay", units.time(link[1].queue_mean_ns)),
        ]
    if report.jfi is not None:
        numbers.append(("Jain's index", units.ratio(report.jfi)))
    if report.ledger:
        numbers.append(("ledger", summary.balance(report)))
    return numbers


def traffic(report: RunSummary) -> list[Table]:
    """Returns the tables of groups of flows, of links and of cards, where they have rows."""
    parts = (summary.groups(report), summary.links(report), summary.cards(report))
    return [table for table in parts if table]


def qlogs(run: Run) -> list[tuple[str, Table]]:
    """Returns the table of qlogs beside the paths' counts; its text says if a file is none."""
    text = (
        "What QUIC programs say in their qlogs, of the whole run, and what the paths have counted"
    )
    try:
        found = qlog.found_in(run.path, run.summary)
    except UserError as error:
        return [(f"{text}: {error}", qlog.table([]))]
    return [(text, qlog.table(found))] if found else []


def real_path(run: Run) -> list[tuple[str, Table]]:
    """Returns what `weir measure` found out about a path; its text has what it could not."""
    found = measured.read(run.path)
    return [(". ".join([measured.TEXT, *found.notes]), found.table)] if found else []


def under_load(run: Run) -> list[tuple[str, Table]]:
    """Returns the delay of pings without and with the load, and responsiveness."""
    found = latency.under_load(run)
    text = "Delay under load: round trips of pings before and beside the bulk flows, and how many a"
    text += " minute has with the load"
    return [(text, found.table)] if found is not None else []


COMPLETIONS = (
    Column("group", "label"),
    Column("size", lambda row: metrics.size_bin(row["bin"])),
    Column("transfers", "count", "count"),
    Column("unfinished", unit="count"),
    Column("mean", "mean_ns"),
    Column("p50", "p50_ns"),
    Column("p95", "p95_ns"),
    Column("p99", "p99_ns"),
    Column("slowdown", "slowdown_mean", "{:.2f}".format),
    Column("p99 slowdown", "slowdown_p99", "{:.2f}".format),
)
VIDEOS = (
    Column("group", "label"),
    Column("video streams", "streams", "count"),
    Column("segments", unit="{:.4g}".format),
    Column("bitrate", "bitrate_mean_bps"),
    Column("switches", unit="{:.3g}".format),
    Column("stalls", unit="{:.3g}".format),
    Column("stood still", lambda row: row["still_ns"] / row["played_ns"], "%"),
)


def transfers(data: RunData) -> list[tuple[str, Table]]:
    """Returns completion times by size, and video streams, each with a sentence on it."""
    frame = data.run.frame("transfers")
    if frame is None:
        return []
    closed = data.run.values("transfers", "event")["close"]
    since_ns = data.scene.warmup_s * metrics.NS_PER_S
    tables = []
    times = metrics.completion_times(frame, closed, since_ns)
    if times.height:
        text = (
            "Completion times by size, and over the time on an empty path (slowdown), of the"
            " transfers that finished: those of the unfinished would be longer"
        )
        tables.append((text, Table(COMPLETIONS, with_labels(times, data), left=2)))
    groups = range(len(data.run.config.get("flows") or []))
    videos = [n for n in groups if latency.source(data.run.config, n) == "video"]
    video = frame.filter(pl.col("group").is_in(videos))
    streams = metrics.video_streams(video, closed, since_ns)
    if streams.height:
        means = streams.group_by("group", maintain_order=True).agg(
            pl.len().alias("streams"), pl.exclude("flow_id").mean()
        )
        text = "Video: per stream, with one segment in reserve when playback starts"
        tables.append((text, Table(VIDEOS, with_labels(means, data))))
    return tables


def with_labels(rows: pl.DataFrame, data: RunData) -> list[dict[str, Any]]:
    """Returns rows of groups, each with the label of its group."""
    return [{**row, "label": data.scene.group(row["group"]).label} for row in rows.to_dicts()]


def warmup(report: RunSummary, length_s: float) -> str:
    """Returns a sentence on the warm-up, if any table leaves it out."""
    if not length_s or not traffic(report):
        return ""
    late = units.time(length_s * metrics.NS_PER_S)
    counted = "; the ledger counts all" if report.ledger else ""
    return f"Measured after a warm-up of {late}{counted}."


def emulation(run: Run, report: RunSummary) -> list[Part]:
    """Returns the table of how exact a live run was, or that virtual time is exact."""
    exact = run.summary.program == summary.SIMULATOR
    made = summary.emulation(report)
    text = "Virtual time: there is no emulation error." if exact and not made else ""
    return [made, Text(text, "small")]


def ledger(report: RunSummary) -> list[Part]:
    """Returns the section of the ledger: the account of all ports, then of each path.

    Every packet is accounted for: in + duplicated = out + inside + drops by reason.
    """
    accounts = report.ledger
    if not accounts:
        return []
    balanced = accounts.balanced
    sentence = summary.balance(report)
    rows = port_rows(accounts)
    for name, path in accounts.paths.items():
        rows += path_rows(name, path, balanced is not False)
    return [
        Heading(["Ledger: ", sentence if balanced else pages.Mark(sentence, "bad")]),
        *(Text(f"{summary.sentence(one)}.") for one in report.faults),
        Table(("path", "", "packets", "bytes"), rows, left=2),
    ]


Entry = tuple[str, str, int, int | str]  # of the ledger: path, what it counts, packets, bytes


def port_rows(accounts: RunLedger) -> list[Entry]:
    """Returns the account of a switch's ports, in packets; none in virtual time."""
    received, gone = summary.port_terms(accounts)
    if not received:
        return []
    signs = ["", *["+ "] * (len(received) - 1), *["− "] * len(gone)]
    rows: list[Entry] = [
        ("all ports" if not sign else "", sign + label, count or 0, "")
        for sign, (label, count) in zip(signs, received + gone, strict=True)
    ]
    rest = sum(count for _, count in received) - sum(count for _, count in gone)
    return [*rows, ("", "=" if accounts.balanced is False else "= 0", rest, "")]


def path_rows(name: str, path: PathLedger, balanced: bool) -> list[Entry]:
    """Returns the account of one path, and what it leaves over: zero if it balances."""
    ends = [
        ("in", 1, path.entered),
        *([("+ duplicated", 1, path.duplicated)] if path.duplicated.pkts else []),
        ("− out", -1, path.out),
        ("− still inside", -1, path.inside),
    ]
    terms = [(label, sign, counted.pkts, counted.bytes) for label, sign, counted in ends]
    terms += [(f"− dropped: {why}", -1, pkts, size) for why, pkts, size in summary.drops(path)]
    rows: list[Entry] = [
        ("" if n else name, label, pkts, size) for n, (label, _, pkts, size) in enumerate(terms)
    ]
    rest_pkts = sum(sign * pkts for _, sign, pkts, _ in terms)
    rest_bytes = sum(sign * size for _, sign, _, size in terms)
    return [*rows, ("", "= 0" if balanced else "=", rest_pkts, rest_bytes)]


def provenance(run: Run) -> list[tuple[str, str]]:
    """Returns all that it takes to make the run again."""
    made, report = run.manifest, run.summary
    program = (report.program or made.program, report.version or made.version)
    rows = [
        ("command", made.command),
        ("command line", " ".join(made.command_line)),
        ("program", " ".join(filter(None, program))),
        ("commit", made.commit),
        ("seed", summary.seed(report) or made.seed),
        ("config hash", made.config_hash),
        ("telemetry digest", report.digest),
        ("started", made.started_utc and f"{made.started_utc:%Y-%m-%dT%H:%M:%SZ}"),
        ("host", "; ".join(f"{key} {value}" for key, value in made.host.items())),
        ("versions", versions(made.versions)),
        ("speed", summary.speed(report)),
        ("verdict", report.verdict or made.verdict),
        ("folder", run.path.resolve()),
    ]
    return [(name, str(value)) for name, value in rows if value not in (None, "")]


def versions(named: dict[str, str | int]) -> str:
    """Returns versions of the programs' parts and of the tools that made run and page."""
    page = ", ".join(f"{name} {version}" for name, version in programs.versions().items())
    ran = named.get("tools")
    parts = [f"{name} {version}" for name, version in named.items() if name != "tools"]
    if ran and ran != page:
        parts.append(f"run with {ran}")
    return "; ".join([*parts, f"this page: {page}"])
