# SPDX-License-Identifier: BSD-3-Clause
"""weir run, probe and replay."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import to_builtins
from typer import Option

from weir import api
from weir.analysis import folder, summary
from weir.base import programs, terminal
from weir.base.errors import UserError, unheard
from weir.cli.arguments import (
    ConfigArgument,
    Duration,
    Force,
    Json,
    Live,
    NoReport,
    Overrides,
    RunArgument,
    RunFolder,
    Seed,
)
from weir.cli.usage import commands
from weir.runner.bar import Bar
from weir.runner.options import Options, default_out
from weir.runner.run import read_only, run_live, run_sim

if TYPE_CHECKING:
    from rich.console import Console

    from weir.analysis.folder import Run

app = commands()


@app.add(
    "run",
    "run configs/quickstart.yaml",
    "run configs/quickstart.yaml -o flows.0.count=10 -o paths.forward.link.rate=100Mbit",
    "run configs/quickstart.yaml --duration 5s --out runs/mine --json",
    "run configs/loopback-10g.yaml --live",
    "run configs/quickstart.yaml --check",
)
def run_(
    config: ConfigArgument,
    override: Overrides = None,
    out: RunFolder = None,
    seed: Seed = None,
    duration: Duration = None,
    branch_at: Annotated[
        str | None, Option(help="Go on in several ways from this time on, one for each --branch.")
    ] = None,
    branch: Annotated[
        list[str] | None,
        Option(metavar="NAME=CHANGES", help="slow='{forward.link.rate: 5Gbit}'; repeated."),
    ] = None,
    live: Live = False,
    hosts: Annotated[
        Path | None,
        Option(metavar="INVENTORY", help="With --live: on the hosts of Ansible's inventory."),
    ] = None,
    no_report: NoReport = False,
    pcap: Annotated[Path | None, Option(help="Also write the packets, as on the wire.")] = None,
    force: Force = False,
    threads: Annotated[
        int | None,
        Option(
            min=1, help="In virtual time: processors to use; same results. [2 where they are idle]"
        ),
    ] = None,
    check: Annotated[
        bool, Option("--check", help="Only say what is wrong with the config.")
    ] = False,
    print_config: Annotated[
        bool, Option("--print-config", help="Only print the config with all defaults.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Runs an experiment, shows what came out, writes a report."""
    if (branch_at is None) != (branch is None):
        raise UserError("--branch-at and --branch belong together: a time, and what changes then")
    place = out or default_out(config, override or (), seed, live)
    override = [*(override or ()), *branches(branch_at, branch or ())]
    options = Options(
        config=config,
        out=place,
        overrides=tuple(override),
        seed=seed,
        duration=duration,
        pcap=pcap,
        force=force,
        threads=threads,
    )
    if hosts is not None and not live:
        raise UserError("--hosts needs --live")
    runner = run_live if live else run_sim
    if hosts is not None:
        from weir.hosts import deployment, inventory, session

        if check:
            raise typer.Exit(deployment.check(options, inventory.read(hosts)))
        runner = partial(session.run, source=hosts)
    if check or print_config:
        only = "--check" if check else "--print-config"
        raise typer.Exit(read_only(replace(options, only=only), live))
    programs.identify()
    with Bar(terminal.console(stderr=True)) as bar:
        status, loaded = api.execute(options, bar, runner)
    if loaded is None:
        raise typer.Exit(status)  # the program said why
    with folder.locked(options.out):
        screen = terminal.console(stderr=as_json)
        with unheard():
            if as_json:
                print(json.dumps(loaded.summary_json, indent=1), flush=True)
            elif loaded.summary.ended:
                summary.show(loaded.summary, screen)
                say_delay(loaded, screen)
        shown = options.out
        if not no_report:
            from weir.report import page  # a second, which --no-report and --check do without

            try:
                shown = page.write(loaded)
            except UserError as error:
                print(f"weir: {error}", file=sys.stderr)
                status = status or error.status
        screen.print(str(shown), soft_wrap=True)
        for place in sorted((options.out / "branches").glob("*")):
            screen.print(str(place), soft_wrap=True)
        say_notes([loaded])
    raise typer.Exit(status)


def branches(at: str | None, given: Sequence[str]) -> Iterator[str]:
    """Yields the override that --branch-at and --branch stand for. UserError: a bad --branch."""
    named = [one.partition("=") for one in given]
    for name, _, changes in named:
        if not name or not changes.startswith("{"):
            raise UserError(
                f"--branch {name}: write NAME=CHANGES such as slow='{{forward.link.rate: 5Gbit}}'"
            )
    if at is not None:
        runs = ", ".join(f"{json.dumps(name)}: {changes}" for name, _, changes in named)
        yield f"branches={{at: {json.dumps(at)}, runs: {{{runs}}}}}"


@app.add(
    "probe",
    "probe configs/copa-steady.yaml",
    "probe configs/copa-steady.yaml -o flows.0.count=20 --size 10MB --at 20s",
    "probe configs/loopback-10g.yaml --live --interval 5ms --count 40",
)
def probe_(
    config: ConfigArgument,
    override: Overrides = None,
    at: Annotated[str | None, Option(help="Of the first probe. [half of the run]")] = None,
    count: Annotated[int | None, Option(help="Probes, up to 64. [20]")] = None,
    interval: Annotated[str | None, Option(help="Between two probes. [10ms]")] = None,
    delta: Annotated[float | None, Option(help="The Copa flow's. [0.5]")] = None,
    size: Annotated[str | None, Option(help="The transfer's. [1MB]")] = None,
    rtt_min: Annotated[
        str | None, Option(help="RTT without queues, if it is known. [the smallest seen]")
    ] = None,
    alone: Annotated[
        bool, Option("--alone", help="Without the config's own flows: to a loaded path.")
    ] = False,
    live: Live = False,
    out: RunFolder = None,
    seed: Seed = None,
    duration: Duration = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Estimates the rate that a Copa flow would obtain.

    A few small packets are sent beside the config's flows. Copa, NSDI 2018, appendix:
    rate 1 / (delta dq), completion 2 RTT + size / rate.
    """
    from weir.live import probe

    probing = probe.Probing(at, count, interval, delta, size, rtt_min, alone)
    overrides = (probe.override(config, probing, duration), *(override or ()))
    place = out or default_out(config, override or (), seed, live)
    options = Options(
        config=config, out=place, overrides=overrides, seed=seed, duration=duration, force=force
    )
    programs.identify()
    console = terminal.console(stderr=True)
    with Bar(console, "probing", rename=probe.renamer(config)) as bar:
        status, loaded = api.execute(options, bar, run_live if live else run_sim)
    if status != 0 or loaded is None:
        raise typer.Exit(status or 1)
    estimate = probe.found(loaded.summary)
    if as_json:
        print(json.dumps(to_builtins(estimate), indent=1))
    else:
        terminal.print_table(terminal.console(), probe.table(estimate))


@app.add("replay", "replay runs/proof", "replay runs/proof --out runs/again")
def replay_(
    run_folder: RunArgument,
    out: Annotated[Path | None, Option(help="Of the replay. [RUN/replay]")] = None,
) -> None:
    """Repeats a run from its recorded arrivals, and compares.

    They go through its paths again, and every decision must be the same.
    """
    from weir.live import replay  # has numpy, which takes a tenth of a second

    with Bar(terminal.console(stderr=True), "replaying") as bar:
        found, numbers = replay.replay(run_folder, out or run_folder / "replay", bar.progress)
    print(replay.sentence(found, numbers))
    raise typer.Exit(0 if found.difference is None else 1)


def say_delay(run: Run, screen: Console) -> None:
    """Prints what pings say of the delay under load, if any group pings."""
    if not any(run.path.glob("transfers*.ring")):  # which has each ping
        return
    from weir.analysis import latency  # has polars, which takes half a second

    found = latency.under_load(run)
    if found is not None:
        said = zip(found.table.columns, found.table.rows[0], strict=True)
        parts = [f"{name} {value}" for name, value in said]
        screen.print(f"delay of pings: {', '.join(parts)}", soft_wrap=True)


def say_notes(runs: Iterable[folder.Run]) -> None:
    """Prints what reports say about the data, once it was read."""
    for note in (note for run in runs for note in run.notes):
        print(f"weir: {note}", file=sys.stderr)
