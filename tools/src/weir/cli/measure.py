# SPDX-License-Identifier: BSD-3-Clause
"""weir measure and fit: a real path, and a model of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from msgspec import to_builtins
from typer import Argument, Option

from weir.analysis import folder, measured
from weir.base import programs, terminal, units
from weir.base.errors import UserError
from weir.cli.arguments import Force, Json, NoReport, RunArgument, RunFolder
from weir.cli.usage import commands
from weir.measure import fit, measure
from weir.runner import options

app = commands()


@app.add(
    "measure",
    "measure user@far.example",
    "measure far.example --server --port 5201 --seconds 20",
    "measure far.example --download --control bbr --out runs/home",
)
def measure_(
    host: Annotated[str, Argument(metavar="HOST", help="The other end, as ssh has it.")],
    ssh: Annotated[str, Option(metavar="COMMAND", help="With its options: 'ssh -p 2222'.")] = "ssh",
    server: Annotated[
        bool, Option("--server", help="Without ssh: iperf3 -s runs there already.")
    ] = False,
    port: Annotated[int, Option(min=1, max=65535, help="Of iperf3's server.")] = 5201,
    seconds: Annotated[float, Option(min=2, max=3600, help="Of the TCP flow.")] = 10,
    control: Annotated[
        str | None, Option(metavar="NAME", help="Of the flow's sender. [its kernel's default]")
    ] = None,
    download: Annotated[bool, Option("--download", help="The other end sends.")] = False,
    tcp_only: Annotated[
        bool, Option("--tcp-only", help="Without UDP, which fills the path for some seconds.")
    ] = False,
    most: Annotated[str, Option(metavar="RATE", help="Of UDP.")] = "1Gbit",
    mtu: Annotated[int, Option(min=576, max=9000, help="Of the path, in bytes.")] = 1500,
    out: RunFolder = None,
    force: Force = False,
    no_report: NoReport = False,
    as_json: Json = False,
) -> None:
    """Measures the path to another host.

    iperf3 and pings, with captures where they are permitted; the result is a run folder.
    """
    most_bps = units.config_rate_bps(most)
    if not most_bps:
        raise UserError(f"--most: '{most}' is not a rate, such as 100Mbit")
    if host.startswith("-"):
        raise UserError(f"HOST: '{host}' begins with a dash")
    programs.identify()
    screen = terminal.console(stderr=as_json)
    wanted = measure.Wanted(
        host, None if server else ssh, port, seconds, control, download, tcp_only, most_bps, mtu
    )
    place = out or options.default_out(Path(host.rpartition("@")[2].replace("/", "_") + ".host"))
    measure.write(wanted, place, force, terminal.console(stderr=True))
    loaded, found = folder.load(place), measured.read(place)
    assert found
    if as_json:
        print(json.dumps(to_builtins(found), indent=1))
    terminal.print_table(screen, found.table)
    for note in found.notes:
        screen.print(note, soft_wrap=True, style="yellow", markup=False)
    shown = place
    if not no_report:
        from weir.report import page

        shown = page.write(loaded)
    screen.print(str(shown), soft_wrap=True)


@app.add("fit", "fit runs/home", "fit runs/home --out home.yaml --no-run")
def fit_(
    run_folder: RunArgument,
    out: Annotated[Path | None, Option(help="The config. [RUN/fitted.yaml]")] = None,
    no_run: Annotated[bool, Option("--no-run", help="Only write the config.")] = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Fits a model to a measured path, and compares.

    The model is a config. Its run in virtual time stands beside the measurement.
    """
    folder.check(run_folder)
    found = measured.read(run_folder)
    if found is None:
        raise UserError(f"{run_folder}: was not measured: `weir measure HOST` makes such a run")
    place = out or run_folder / "fitted.yaml"
    fitted = fit.fit(found)
    rows = fit.write(place, fit.config_text(found, fitted), found, not no_run, force)
    screen = terminal.console(stderr=as_json)
    if as_json:
        print(json.dumps(to_builtins(fitted) | {"compared": to_builtins(rows)}, indent=1))
    terminal.print_table(screen, fitted.table)
    if rows:
        terminal.print_table(screen, fit.table(rows))
    for sentence in fitted.unknown:
        screen.print(sentence, soft_wrap=True, style="yellow", markup=False)
    screen.print(str(place), soft_wrap=True)
