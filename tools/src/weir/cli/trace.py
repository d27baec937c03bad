# SPDX-License-Identifier: BSD-3-Clause
"""Recorded links: files for the stage replay."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from weir.base import terminal, units
from weir.base.errors import UserError
from weir.cli.arguments import DrawSeed, FigureFile, Force, Json
from weir.cli.usage import commands
from weir.trace import fit, formats, statistics, steps
from weir.trace.steps import Steps

app = commands(__doc__)

File = Annotated[Path, Argument(metavar="FILE", help="A recording.")]
From = Annotated[
    str,
    Option(
        "--from",
        metavar="FORMAT",
        help="steps (ours), mahimahi, csv, pcap, iperf3, leocc, pantheon, 5g or theaterq.",
    ),
]
Step = Annotated[
    str, Option(metavar="TIME", help="Rates are means over so much, where packets are times.")
]
Delays = Annotated[
    Path | None, Option(metavar="FILE", help="leocc: one-way delay in ms of each 10 ms.")
]
COLUMN = "csv: the column, and the unit of its numbers: "
At = Annotated[str | None, Option("--at", metavar="NAME:UNIT", help=f"{COLUMN}time:s")]
Rate = Annotated[str | None, Option("--rate", metavar="NAME:UNIT", help=f"{COLUMN}dl:kbps")]
Delay = Annotated[str | None, Option("--delay", metavar="NAME:UNIT", help=f"{COLUMN}owd:ms")]
Loss = Annotated[str | None, Option("--loss", metavar="NAME", help="csv: likewise, a ratio.")]


def step_of(text: str) -> float:
    """Returns the length of an interval."""
    step_ns = units.config_time_ns(text)
    if step_ns is None or step_ns < 1e3:
        raise UserError(f"--step: '{text}' is not a time of 1us or more, such as 100ms")
    return step_ns


def checked(out: Path, force: bool) -> Path:
    """Returns where a file may be written."""
    if out.exists() and not force:
        raise UserError(f"{out} is there already: --force replaces it")
    if not out.parent.is_dir():
        raise UserError(f"{out.parent}: no such folder")
    return out


def read(
    file: Path,
    name: str,
    step: str,
    delays: Path | None,
    columns: dict[str, str | None] | None = None,
) -> Steps:
    chosen = {stem: column for stem, column in (columns or {}).items() if column is not None}
    return formats.read(file, name, formats.Reading(step_of(step), chosen, delays))


@app.add(
    "import",
    "trace import lte.trace --from mahimahi --out lte.csv",
    "trace import drive.csv --from csv --at time:s --rate dl:kbps --out drive-steps.csv",
    "trace import bw.txt --from leocc --delays delay.txt --step 10ms --out starlink.csv",
)
def import_(
    file: File,
    from_: From,
    out: Annotated[Path, Option(help="The file for the stage replay.")],
    step: Step = "100ms",
    delays: Delays = None,
    at: At = None,
    rate: Rate = None,
    delay: Delay = None,
    loss: Loss = None,
    force: Force = False,
) -> None:
    """Reads a recording of another program and writes it for the stage replay."""
    columns = {"at": at, "rate": rate, "delay": delay, "loss": loss}
    found = read(file, from_, step, delays, columns)
    steps.write(found, checked(out, force))
    print(f"{out}: {len(found.at_ns):,} steps in {units.time(found.end_ns)}")


@app.add(
    "show",
    "trace show lte.csv",
    "trace show lte.csv --out lte.svg",
    "trace show lte.trace --from mahimahi --json",
)
def show_(
    file: File,
    from_: From = "steps",
    step: Step = "100ms",
    delays: Delays = None,
    out: FigureFile = None,
    as_json: Json = False,
) -> None:
    """Shows what a trace has: mean, percentiles, outages, and its rate over time."""
    found = read(file, from_, step, delays)
    if out is not None:
        from weir.report import paper  # takes a second

        paper.check(out)
        paper.write(statistics.figure(found), out, paper.Shape("page"))
    if as_json:
        print(json.dumps(asdict(statistics.of(found)), indent=1))
    else:
        statistics.show(found, terminal.console())


@app.add("fit", "trace fit lte.csv", "trace fit lte.csv --model ar --order 2 --out model.csv")
def fit_(
    file: File,
    from_: From = "steps",
    model: Annotated[str, Option(help="markov (two states) or ar (autoregression).")] = "markov",
    step: Step = "100ms",
    delays: Delays = None,
    order: Annotated[int, Option(help="ar: so many rates before each decide.")] = 1,
    out: Annotated[Path | None, Option(help="A trace drawn from the model; ar needs it.")] = None,
    duration: Annotated[str, Option(help="Of that trace.")] = "600s",
    seed: DrawSeed = 1,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Models a trace's rate: the stage that runs the model, and how far it is from the trace."""
    length_ns, step_ns = units.config_time_ns(duration), step_of(step)
    if length_ns is None or length_ns < step_ns:
        raise UserError(f"--duration: '{duration}' is not a time of a --step or more, such as 600s")
    if out is None and model == "ar":
        raise UserError("--model ar: no stage draws it: name a file for a trace of it with --out")
    count = round(length_ns / step_ns)
    fitted = fit.fit(read(file, from_, step, delays), model, step_ns, order, seed, count)
    if out is not None:
        steps.write(fitted.steps(count), checked(out, force))
    if as_json:
        print(json.dumps(fitted.numbers(str(out)), indent=1))
        return
    print(fitted.model.stage(str(out)))
    far = fitted.error
    print(
        f"# error: distribution {units.percent(far.distribution)} of the mean rate, autocorrelation"
        f" {far.autocorrelation:.3f} on average over {far.lags} lags of {units.time(step_ns)}"
    )
