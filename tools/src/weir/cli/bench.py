# SPDX-License-Identifier: BSD-3-Clause
"""Measures Weir's own speed. Each benchmark keeps its medians: see history."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

import typer

from weir.base import terminal
from weir.base.errors import UserError
from weir.bench import captures, controls, corescale, disciplines, history, live, sim, threads
from weir.cli.arguments import Json
from weir.cli.usage import commands

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


def finish(
    name: str,
    module: ModuleType,
    measure: Callable[[int], dict[str, Any]],
    repeat: int,
    against: str | None,
    as_json: bool,
) -> dict[str, Any]:
    """Measures, keeps the medians or compares them with a commit's, and shows what was found."""
    show = module.show
    if against is None:
        found = measure(repeat)
        history.append(name, module.medians(found))
    else:
        found = history.against(
            against, name, measure, module.medians, repeat, terminal.console(stderr=True)
        )
        show = history.show_comparison
    if as_json:
        print(json.dumps(found, indent=1))
    else:
        show(found, terminal.console())
    return found


@app.add(
    "corescale",
    "bench corescale --flows 100,1000 --no-ns3",
    "bench corescale --no-ns3 --htsim ~/csg-htsim",
    "bench corescale --flows 5000 --repeat 5 --against HEAD~1",
)
def corescale_(
    flows: Loads = "100,1000,5000,50000,50000@100",
    repeat: Repeat = 3,
    no_ns3: Annotated[bool, typer.Option("--no-ns3", help="Leave ns-3 out.")] = False,
    htsim: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Also htsim: a clone of csg-htsim that has been built."),
    ] = None,
    against: Against = None,
    as_json: Json = False,
    out: Annotated[
        Path | None, typer.Option(help="Keep bench.json and the run folders here.")
    ] = None,
) -> None:
    """Measures a packet in weir-sim, beside a bare loop, htsim and ns-3, in rounds."""
    if against is not None and (htsim is not None or out is not None):
        raise UserError("--against compares weir-sim alone: without --htsim and --out")
    loads = sim.parse_loads(flows)
    screen = terminal.console(stderr=True)
    finish(
        "corescale",
        corescale,
        lambda rounds: corescale.measure(
            loads,
            rounds,
            screen,
            with_ns3=not no_ns3,
            htsim=htsim,
            out=out,
            alone=against is not None,
        ),
        repeat,
        against,
        as_json,
    )


@app.add("threads", "bench threads", "bench threads --flows 50000@100 --threads 2 --repeat 5")
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
    repeat: Repeat = 3,
    against: Against = None,
    as_json: Json = False,
) -> None:
    """Measures how much faster threads make a run, beside as many independent copies of it."""
    load, numbers = sim.parse_load(flows), threads.parse(counts)
    screen = terminal.console(stderr=True)
    finish(
        "threads",
        threads,
        lambda rounds: threads.measure(load, numbers, rounds, screen, alone=against is not None),
        repeat,
        against,
        as_json,
    )


@app.add(
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
    repeat: Repeat = 3,
    seconds: Annotated[float, typer.Option(min=0.1, help="How long each is measured.")] = 1.0,
    list_rows: Annotated[bool, typer.Option("--list", help="Only name the rows.")] = False,
    against: Against = None,
    as_json: Json = False,
) -> None:
    """Measures a live packet, beside testpmd, Open vSwitch, the kernel and a bare loop."""
    cases = live.choose(rows, quick)
    if list_rows:
        print("\n".join(case.name for case in (cases if rows else live.all_cases())))
        return
    screen = terminal.console(stderr=True)
    found = finish(
        "live",
        live,
        lambda rounds: live.measure_all(cases, rounds, seconds, screen, against is not None),
        repeat,
        against,
        as_json,
    )
    raise typer.Exit(1 if against is None and live.failed(found) else 0)


@app.add("cc", "bench cc", "bench cc --repeat 5 --json")
def cc_(
    repeat: Repeat = 3,
    acks: Annotated[int, typer.Option(min=1000, help="Per control and round.")] = 2_000_000,
    against: Against = None,
    as_json: Json = False,
) -> None:
    """Measures an ACK of each congestion control: instructions, time, bytes of state."""
    finish(
        "cc",
        controls,
        lambda rounds: controls.measure(rounds, acks, counted=against is None),
        repeat,
        against,
        as_json,
    )


@app.add("aqm", "bench aqm", "bench aqm --flows 5000 --repeat 20")
def aqm_(
    flows: Flows = "100,5000,65536",
    repeat: Repeat = 7,
    packets: Annotated[int, typer.Option(min=1000, help="Per discipline and round.")] = 1_000_000,
    against: Against = None,
    as_json: Json = False,
) -> None:
    """Measures a packet of each fair queue in virtual time, above a fifo, without losses."""
    counts = sim.parse_flows(flows)
    finish(
        "aqm",
        disciplines,
        lambda rounds: disciplines.measure(counts, rounds, packets),
        repeat,
        against,
        as_json,
    )


@app.add("pcap", "bench pcap --packets 1000000 --repeat 1", "bench pcap --json")
def pcap_(
    flows: Flows = "10,1000,100000",
    packets: Annotated[int, typer.Option(min=10_000, help="Of each capture.")] = 10_000_000,
    repeat: Repeat = 3,
    against: Against = None,
    as_json: Json = False,
) -> None:
    """Measures a packet of a capture, beside tcptrace, tshark and scapy, in rounds.

    The others read the beginning of the capture with about 1000 flows, as the table says.
    """
    counts = sim.parse_flows(flows)
    readers = captures.READERS if against is None else captures.READERS[:1]
    screen = terminal.console(stderr=True)
    finish(
        "pcap",
        captures,
        lambda rounds: captures.measure_all(counts, packets, rounds, screen, readers),
        repeat,
        against,
        as_json,
    )


@app.add("history", "bench history", "bench history corescale --file bench.jsonl")
def history_(
    bench: Annotated[str | None, typer.Argument(metavar="[BENCH]", help="Only this one.")] = None,
    file: Annotated[
        Path | None, typer.Option(help="Read this. [~/.local/state/weir/bench.jsonl]")
    ] = None,
    as_json: Json = False,
) -> None:
    """Lists the medians that each benchmark found, with date, commit and machine.

    A commit is compared with this build by any benchmark with --against COMMIT.
    """
    entries = history.read(file, bench)
    if as_json:
        print(json.dumps(entries, indent=1))
    else:
        history.show(entries, terminal.console())
