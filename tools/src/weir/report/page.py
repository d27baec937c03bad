# SPDX-License-Identifier: BSD-3-Clause
"""A run as one HTML file that needs nothing else: figures, tables, ledger, provenance."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weir import run as run_
from weir import summary, units
from weir.analysis import folder, metrics
from weir.errors import UserError
from weir.report import sections, theme

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from weir.analysis.folder import Run


def write(run: Run, out: Path | None = None) -> Path:
    """Writes report.html into the run folder, or into `out`, and returns its path."""
    theme.use()
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    path = (out or run.path) / "report.html"
    if path.is_dir():
        raise UserError(f"{path}: a folder has the report's name", 1)
    folder.write_whole(path, page(run))
    return path


def page(run: Run) -> str:
    """The whole document."""
    told = sections.read(run)
    drawn = [
        f"<figure>{inline_svg(figure, f'f{n}-')}<figcaption><b>Figure {n}.</b> {escape(caption)}"
        "</figcaption></figure>"
        for n, (figure, caption) in enumerate(sections.draw(told), start=1)
    ]
    title = title_of(run)
    body = [
        f"<header><h1>{escape(title)}</h1>{headline(told.numbers)}</header>",
        *(f'<p class="note">{escape(note)}</p>' for note in run.notes),
        *tables(told.numbers, told.scene.warmup_s),
        *verdicts(told.numbers),
        *drawn,
        *ledger(told.numbers),
        provenance(run),
    ]
    if run.config_text:
        body.append(
            "<details><summary>Configuration as resolved</summary>"
            f"<pre>{escape(run.config_text)}</pre></details>"
        )
    return document(title, body)


def document(title: str, body: Sequence[str], css: str = "") -> str:
    """A page of ours that needs no other file."""
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}'
        '</title><meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{fonts()}{CSS}{css}</style></head>\n<body>\n"
        + "\n".join(body)
        + "\n</body></html>\n"
    )


def title_of(run: Run) -> str:
    """The config's title, or the folder's name."""
    return str(run.config.get("title") or run.path.resolve().name)


# What is written.


def headline(report: dict[str, Any]) -> str:
    """The few numbers a reader wants first."""
    cells = []
    groups = report.get("groups", [])
    if groups:
        total = sum(group.get("goodput_bps") or 0 for group in groups)
        flows = sum(group.get("flows") or 0 for group in groups)
        cells += [("flows", units.count(flows)), ("goodput", units.rate(total))]
    link = sections.busiest(report)
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
    whole = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="scroll">{whole}</div>'


def tables(report: dict[str, Any], warmup: float) -> Iterator[str]:
    """Groups, links, emulation."""
    groups, links = summary.group_rows(report), summary.link_rows(report)
    if groups:
        yield html_table(summary.GROUP_COLUMNS, groups, left=2)
    if links:
        yield html_table(summary.LINK_COLUMNS, links)
    if warmup and (groups or links):
        since = units.time(warmup * metrics.NS_PER_S)
        ledger_too = "; the ledger counts all" if report.get("ledger") else ""
        yield f'<p class="small">Measured after a warm-up of {since}{ledger_too}.</p>'
    errors = summary.emulation_rows(report)
    if errors:
        yield html_table(summary.EMULATION_COLUMNS, errors)


def verdicts(report: dict[str, Any]) -> Iterator[str]:
    """Which part of a live run fell behind, if any did."""
    if "verdicts" not in report:
        return
    lines = summary.verdict_lines(report)
    yield f"<h2>Verdict{'' if lines else ': nothing fell behind'}</h2>"
    if lines:
        yield f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"


def ledger(report: dict[str, Any]) -> Iterator[str]:
    """Every packet accounted for: in = out + inside + drops by reason."""
    paths = report.get("ledger", {}).get("paths", {})
    balanced = report.get("ledger", {}).get("balanced")
    if balanced is None:
        return
    verdict = "balanced" if balanced else '<strong class="bad">not balanced</strong>'
    yield f"<h2>Ledger: {verdict}</h2>"
    for fault in report.get("faults", []):
        yield f"<p>{escape(fault)}.</p>"
    cell: Callable[[Any], str] = lambda value: units.count(value or 0)  # noqa: E731
    rows = []
    came, gone = summary.port_terms(report["ledger"])
    for index, (label, count) in enumerate(came + gone):
        sign = "− " if index >= len(came) else "+ " if index else ""
        rows.append(["" if index else "all ports", sign + label, cell(count), ""])
    if came:
        left = sum(count for _, count in came) - sum(count for _, count in gone)
        rows.append(["", "= 0" if balanced else "=", f"{left:,}", ""])
    if not paths and not rows:
        return
    for name, path in paths.items():
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


def versions(built: object) -> str:
    """What the programs were built with, and what made the run and this page."""
    named = built if isinstance(built, dict) else {}
    page = ", ".join(f"{name} {version}" for name, version in run_.versions().items())
    ran = named.get("tools")
    parts = [f"{name} {version}" for name, version in named.items() if name != "tools"]
    if ran and ran != page:
        parts.append(f"run with {ran}")
    return "; ".join([*parts, f"this page: {page}"])


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
.scroll table { margin: 0; }
.scroll { overflow-x: auto; margin: 0 0 1.4em;
  /* A shadow at an edge beyond which the table goes on: white moves with the table and hides it. */
  background: linear-gradient(to right, #fff 40%, #fff0) 0 0 / 2.4em 100% no-repeat local,
    linear-gradient(to left, #fff 40%, #fff0) 100% 0 / 2.4em 100% no-repeat local,
    linear-gradient(to right, #0003, #0000) 0 0 / .8em 100% no-repeat scroll,
    linear-gradient(to left, #0003, #0000) 100% 0 / .8em 100% no-repeat scroll; }
@media (max-width: 700px) {
  body { margin: 1em auto 2em; }
  h1 { font-size: 1.3em; }
  .facts th, .facts td { display: block; padding-right: 0; }
}
@media print { body { margin: 0; max-width: none; } figure, table { break-inside: avoid; } }
"""
