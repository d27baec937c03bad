# SPDX-License-Identifier: BSD-3-Clause
"""Measures Weir's own speed. Each benchmark keeps its medians: see history."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from msgspec import to_builtins

from weir.base import terminal
from weir.base.errors import UserError
from weir.bench import (
    captures,
    cards,
    controls,
    corescale,
    disciplines,
    history,
    instructions,
    live,
    sim,
    threads,
)
from weir.bench.rounds import Result, Rounds
from weir.bootstrap import SetupError
from weir.cli.arguments import FigureFile, Json
from weir.cli.figures import put_figure
from weir.cli.host import cpu_list
from weir.cli.usage import commands
from weir.report import paper

app = commands(__doc__)

Against = Annotated[
    str | None,
    typer.Option(
        metavar="COMMIT", help="Builds this commit and compares it with this build, in rounds."
    ),
]
Loads = Annotated[
    str,
    typer.Option(
        metavar="N[@GBIT],...", help="Numbers of flows, at 10 Gbit/s unless said: 50000@100."
    ),
]
Flows = Annotated[str, typer.Option(metavar="N,N,...", help="Numbers of flows.")]
Repeat = Annotated[int, typer.Option(min=1, help="Rounds; medians are shown.")]
Measure = Callable[[Rounds], Result]
Command = Callable[..., Measure]  # of a benchmark's own options


def benchmark(
    name: str, *shown: str, repeat: int = 3, peers: tuple[str, ...] = ()
) -> Callable[[Command], Command]:
    """Adds a command with --repeat, --against and --json; `peers` are options without --against."""

    def add(command: Command) -> Command:
        def run(
            repeat: Repeat = repeat, against: Against = None, as_json: Json = False, **own: object
        ) -> None:
            if against is not None and any(own[option] is not None for option in peers):
                without = " and ".join(f"--{option}" for option in peers)
                raise UserError(f"--against compares this build alone: without {without}")
            measure = command(**own)
            rounds = Rounds(repeat, terminal.console(stderr=True), against is not None)
            try:
                found = (
                    measure(rounds)
                    if against is None
                    else history.against(against, name, measure, rounds)
                )
            except SetupError as error:
                raise UserError(str(error), 1) from None
            if against is None:
                history.append(name, found.medians())
            if as_json:
                print(found.json())
            else:
                terminal.show(terminal.console(), found.parts())
            if found.failed:
                raise typer.Exit(1)

        own = inspect.signature(command, eval_str=True).parameters.values()
        common = list(inspect.signature(run, eval_str=True).parameters.values())[:3]
        run.__signature__ = inspect.Signature([*own, *common])  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in (*own, *common)}
        run.__doc__ = command.__doc__
        app.add(name, *shown)(run)
        return command

    return add


@benchmark(
    "corescale",
    "bench corescale --flows 100,1000 --no-ns3",
    "bench corescale --no-ns3 --htsim ~/csg-htsim",
    "bench corescale --flows 5000 --repeat 5 --against HEAD~1",
    peers=("htsim", "out"),
)
def corescale_(
    flows: Loads = "100,1000,5000,50000,50000@100",
    no_ns3: Annotated[bool, typer.Option("--no-ns3", help="Leave ns-3 out.")] = False,
    htsim: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Also htsim: a clone of csg-htsim that has been built."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Keep bench.json and the run folders here.")
    ] = None,
) -> Measure:
    """Measures a packet in weir-sim, beside a bare loop, htsim and ns-3, in rounds."""
    loads = sim.parse_loads(flows)
    return partial(corescale.measure, loads, with_ns3=not no_ns3, htsim=htsim, out=out)


@benchmark("threads", "bench threads", "bench threads --flows 50000@100 --threads 2 --repeat 5")
def threads_(
    flows: Annotated[
        str, typer.Option(metavar="N[@GBIT]", help="Flows, at 10 Gbit/s unless said: 50000@100.")
    ] = "5000",
    counts: Annotated[
        str,
        typer.Option(
            "--threads", metavar="N,N,...", help="Numbers of threads; 1 is always measured."
        ),
    ] = "1,2,4,8",
) -> Measure:
    """Measures how much faster threads make a run, beside as many independent copies of it."""
    return partial(threads.measure, sim.parse_load(flows), threads.parse(counts))


@benchmark(
    "live",
    "bench live --list",
    "bench live --rows 'null-64-*' --repeat 5",
    "bench live --full --json",
)
def live_(
    rows: Annotated[
        str | None, typer.Option(metavar="ROW,ROW,...", help="Rows, * for any: null-64-*.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick/--full", help="A few minutes, or every row.")
    ] = True,
    seconds: Annotated[float, typer.Option(min=0.1, help="How long each is measured.")] = 1.0,
    list_rows: Annotated[bool, typer.Option("--list", help="Only name the rows.")] = False,
) -> Measure:
    """Measures a live packet, beside testpmd, Open vSwitch, the kernel and a bare loop."""
    cases = live.choose(rows, quick)
    if list_rows:
        print("\n".join(case.name for case in (cases if rows else live.all_cases())))
        raise typer.Exit
    return partial(live.measure, cases, seconds)


@benchmark(
    "cards",
    "bench cards 0000:3b:00.0 0000:3b:00.1",
    "bench cards 0000:3b:00.0 0000:3b:00.1 --lcores 2,4 --seconds 60",
)
def cards_(
    first: Annotated[str, typer.Argument(metavar="CARD", help="A port's `dev`, which sends.")],
    second: Annotated[str, typer.Argument(metavar="CARD", help="The one that its cable goes to.")],
    lcores: Annotated[str, typer.Option(metavar="CPU,CPU,...", help="CPUs that poll.")] = "1",
    seconds: Annotated[float, typer.Option(min=0.1, help="How long each is measured.")] = 10.0,
) -> Measure:
    """Measures two network cards, or two ports of one, that are joined by a cable."""
    cpus = sorted(cpu_list(lcores))
    if not cpus:
        raise UserError(f"bench cards: --lcores: '{lcores}' is no list of CPUs, as 2,4")
    return partial(cards.measure, (first, second), cpus, seconds)


@benchmark("cc", "bench cc", "bench cc --repeat 5 --json")
def cc_(
    acks: Annotated[int, typer.Option(min=1000, help="Per control and round.")] = 2_000_000,
) -> Measure:
    """Measures an ACK of each congestion control: instructions, time, bytes of state."""
    return partial(controls.measure, acks)


@benchmark(
    "instructions",
    "bench instructions",
    "bench instructions --controls newreno --json",
    repeat=1,
)
def instructions_(
    names: Annotated[
        str, typer.Option("--controls", metavar="NAME,NAME,...", help="Congestion controls.")
    ] = ",".join(instructions.CONTROLS),
    keep: Annotated[
        bool, typer.Option("--keep", help="Compare later builds with these counts: at a release.")
    ] = False,
) -> Measure:
    """Counts instructions and cache misses of a data packet in weir-sim, by valgrind.

    More than 2 % above the last release's counts is a failure, if compiler and options are its.
    """
    return partial(instructions.measure, names.split(","), keep)


@benchmark("aqm", "bench aqm", "bench aqm --flows 5000 --repeat 20", repeat=7)
def aqm_(
    flows: Flows = "100,5000,65536",
    packets: Annotated[int, typer.Option(min=1000, help="Per discipline and round.")] = 1_000_000,
) -> Measure:
    """Measures a packet of each fair queue in virtual time, above a fifo, without losses."""
    return partial(disciplines.measure, sim.parse_flows(flows), packets)


@benchmark("pcap", "bench pcap --packets 1000000 --repeat 1", "bench pcap --json")
def pcap_(
    flows: Flows = "10,1000,100000",
    packets: Annotated[
        int, typer.Option(min=10_000, help="At least, of each capture; its flows' start is more.")
    ] = 10_000_000,
) -> Measure:
    """Measures a packet of a capture, beside tcptrace, tshark and scapy, in rounds.

    The others read the beginning of the capture with about 1000 flows, as the table says.
    """
    return partial(captures.measure, sim.parse_flows(flows), packets)


@app.add(
    "history",
    "bench history",
    "bench history corescale --file bench.jsonl",
    "bench history cards --term",
    "bench history --out history.pdf",
)
def history_(
    bench: Annotated[str | None, typer.Argument(metavar="[BENCH]", help="Only this one.")] = None,
    file: Annotated[
        Path | None, typer.Option(help="Read this. [~/.local/state/weir/bench.jsonl]")
    ] = None,
    out: FigureFile = None,
    term: Annotated[bool, typer.Option("--term", help="Draws them on the terminal.")] = False,
    as_json: Json = False,
) -> None:
    """Lists or draws the medians that each benchmark found, with date, commit and machine.

    A commit is compared with this build by any benchmark with --against COMMIT.
    """
    entries = history.read(file, bench)
    if as_json:
        print(json.dumps(to_builtins(entries), indent=1))
    elif out or term:
        put_figure(history.figure(entries), "history", out, paper.Shape("page"), term)
    else:
        terminal.show(terminal.console(), history.parts(entries))
