# SPDX-License-Identifier: BSD-3-Clause
"""Analyses captures: pcap and pcapng."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from weir.analysis import captures, folder, run_summary
from weir.base import programs, terminal
from weir.cli import complete
from weir.cli.arguments import Force, Json, NoReport, RunFolder, ShowAll
from weir.cli.usage import commands
from weir.identify import table
from weir.runner import options, pcap

app = commands(__doc__)

Files = Annotated[
    list[str],
    Argument(
        metavar="FILE...",
        help="Captures; several are parts of one. '-': standard input.",
        autocompletion=complete.captures,
    ),
]

Interval = Annotated[str, Option(help="Of what is recorded over time.")]
Interface = Annotated[
    str, Option(metavar="NAME,...", help="Read these interfaces only, as the summary names them.")
]


def run_of(
    command: str, files: list[str], out: Path, settings: dict[str, str], force: bool
) -> tuple[int, folder.Run]:
    """Runs weir-pcap; returns its exit status, also that of one ended early, and the run."""
    programs.identify()
    status = pcap.run_pcap(command, files, out, settings, force, terminal.console(stderr=True))
    if status not in (0, 130, 143):
        raise typer.Exit(status)
    return status, folder.load(out)


@app.add(
    "analyze",
    "pcap analyze run.pcapng",
    "pcap analyze a.pcap b.pcap --out runs/capture --warmup 5s",
    "pcap analyze - --level 0 --json < run.pcapng",
)
def analyze_(
    files: Files,
    out: RunFolder = None,
    level: Annotated[
        int, Option(min=0, max=3, help="2, 3: also segments of some flows, of all.")
    ] = 1,
    interval: Interval = "100ms",
    warmup: Annotated[str, Option(help="Left out of all sums and means.")] = "0s",
    interface: Interface = "",
    title: Annotated[str, Option(help="One line for the report.")] = "",
    force: Force = False,
    no_report: NoReport = False,
    as_json: Json = False,
) -> None:
    """Follows every TCP flow of a capture; the result is a run folder with a report."""
    out = out or options.default_out(Path(files[0]))
    settings = {"level": str(level), "interval": interval, "warmup": warmup, "title": title}
    settings["interface"] = interface
    status, loaded = run_of("analyze", files, out, settings, force)
    screen = terminal.console(stderr=as_json)
    if as_json:
        print(json.dumps(loaded.summary_json, indent=1))
    else:
        captures.show(loaded, screen)
    shown = out
    if not no_report and level > 0:
        from weir.report import page

        shown = page.write(loaded)
    screen.print(str(shown), soft_wrap=True)
    raise typer.Exit(status)


@app.add("flows", "pcap flows run.pcapng", "pcap flows run.pcapng --all --json")
def flows_(
    files: Files,
    interface: Interface = "",
    as_json: Json = False,
    show_all: ShowAll = False,
) -> None:
    """Lists the TCP flows of a capture. A flow is a direction that carries payload."""
    said = terminal.console(stderr=True)
    flows, numbers = pcap.flows_of(files, said, interface)
    if as_json:
        print(json.dumps(captures.as_dicts(flows), indent=1))
    else:
        said = terminal.console()
        most = None if show_all else captures.FLOWS_SHOWN
        captures.show_flows(flows, numbers, said, most)
    for sentence in captures.conditions(numbers) if flows.height else []:
        said.print(sentence, soft_wrap=True, style="yellow", markup=False)


@app.add("identify", "pcap identify run.pcapng", "pcap identify a.pcap b.pcap --json")
def identify_(
    files: Files,
    interface: Interface = "",
    as_json: Json = False,
) -> None:
    """Names the congestion control of each TCP flow of a capture, by how it behaves."""
    found = table.of_captures(files, terminal.console(stderr=True), interface)
    if as_json:
        print(json.dumps(table.as_dicts(found), indent=1))
    else:
        table.show(found, terminal.console())


@app.add(
    "compare",
    "pcap compare ingress.pcapng egress.pcapng",
    "pcap compare in.pcap out.pcap --level 3 --json",
    "pcap compare run.pcapng",
)
def compare_(
    ingress: Annotated[
        str,
        Argument(
            metavar="INGRESS",
            help="On one side, or on both: then interfaces say which.",
            autocompletion=complete.captures,
        ),
    ],
    egress: Annotated[
        str | None,
        Argument(metavar="[EGRESS]", help="On the other.", autocompletion=complete.captures),
    ] = None,
    out: RunFolder = None,
    level: Annotated[int, Option(min=1, max=3, help="3: also every packet.")] = 1,
    interval: Interval = "100ms",
    from_: Annotated[
        str, Option("--from", metavar="NAME,...", help="Read these interfaces of INGRESS.")
    ] = "",
    to: Annotated[str, Option(metavar="NAME,...", help="And these of EGRESS.")] = "",
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Finds the packets of both sides of a bottleneck again: delays, losses, marks, reordering."""
    out = out or options.default_out(Path(ingress))
    settings = {"level": str(level), "interval": interval, "from": from_, "to": to}
    files = [ingress] if egress is None else [ingress, egress]
    status, loaded = run_of("compare", files, out, settings, force)
    screen = terminal.console(stderr=as_json)
    found = loaded.summary_json
    if as_json:
        print(json.dumps(found, indent=1))
    else:
        captures.show_compared(run_summary.comparison(found, str(out)), screen)
    screen.print(str(out), soft_wrap=True)
    raise typer.Exit(status)
