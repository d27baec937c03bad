# SPDX-License-Identifier: BSD-3-Clause
"""The weir command: wiring only. What it does is in the modules it calls."""

from __future__ import annotations

import enum
import itertools
import json
import logging
import os
import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core

from weir.base import typed
from weir.base.errors import UserError, drop_output, guarded, nearest, unheard
from weir.base.version import VERSION
from weir.cli import bench as bench_commands
from weir.cli import complete, usage
from weir.cli import docs as docs_command
from weir.cli import figures as figure_commands
from weir.cli import folders as folder_commands
from weir.cli import guests as guest_commands
from weir.cli import pcap as pcap_commands
from weir.cli import plugin as plugin_commands
from weir.cli import setup as setup_commands
from weir.cli import shell as shell_command
from weir.cli import sweeps as sweep_commands
from weir.cli import trace as trace_commands
from weir.cli.usage import examples


class Commands(typer.core.TyperGroup):
    """All commands: what Ctrl-C ends says so, and who reads no more has seen enough."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that was typed; of another word, what was probably meant."""
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            raise UserError(usage.unknown(args[0], self.list_commands(ctx)))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Writes the list of --help, in groups."""
        wide = max(map(len, self.commands))
        for title, names in usage.GROUPS.items():
            rows = [
                (f"{name:{wide}}", self.commands[name].get_short_help_str(usage.SUMMARY))
                for name in names
            ]
            with formatter.section(title):
                formatter.write_dl(rows)

    def invoke(self, ctx: Any) -> Any:
        """Runs the command."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except BrokenPipeError:
            drop_output()
            raise typer.Exit(0) from None
        except KeyboardInterrupt:
            print("\nweir: interrupted", file=sys.stderr)
            raise typer.Exit(130) from None


app = typer.Typer(
    cls=Commands,
    help="Runs Weir's experiments and turns them into numbers and figures.",
    context_settings={"help_option_names": ["-h", "--help"]},
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    epilog=usage.exit_statuses()
    + "\n\n"
    + examples(
        "run configs/quickstart.yaml",
        "COMMAND --help",
        "list codel",
    ),
)

app.add_typer(bench_commands.app, name="bench")
app.add_typer(pcap_commands.app, name="pcap")
app.add_typer(guest_commands.app, name="guests")
app.add_typer(setup_commands.app, name="setup")
app.add_typer(plugin_commands.new_app, name="new")
app.add_typer(plugin_commands.check_app, name="check")
app.add_typer(trace_commands.app, name="trace")

RunArgument = Annotated[
    Path, typer.Argument(metavar="RUN", help="A run folder.", autocompletion=complete.runs)
]
ConfigArgument = Annotated[
    Path,
    typer.Argument(
        metavar="CONFIG", help="An experiment in YAML.", autocompletion=complete.configs
    ),
]
SummaryJson = Annotated[bool, typer.Option("--json", help="The summary as JSON.")]


@app.command(
    "run",
    epilog=examples(
        "run configs/quickstart.yaml",
        "run configs/quickstart.yaml -o flows.0.count=10 -o paths.forward.link.rate=100Mbit",
        "run configs/quickstart.yaml --duration 5s --out runs/mine --json",
        "run configs/loopback-10g.yaml --live",
        "run configs/quickstart.yaml --check",
    ),
)
def run_(
    config: ConfigArgument,
    override: Annotated[
        list[str] | None,
        typer.Option(
            "-o",
            metavar="KEY=VALUE",
            help="Replaces a value: -o flows.0.count=10.",
            autocompletion=complete.keys,
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The run folder. [runs/CONFIG-CHANGES-TIME]")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Replaces the config's.")] = None,
    duration: Annotated[str | None, typer.Option(help="Replaces the config's: 10s.")] = None,
    live: Annotated[
        bool, typer.Option("--live", help="On real ports with DPDK, not in virtual time.")
    ] = False,
    hosts: Annotated[
        Path | None,
        typer.Option(metavar="INVENTORY", help="With --live: on the hosts of Ansible's inventory."),
    ] = None,
    no_report: Annotated[bool, typer.Option("--no-report", help="Only run and measure.")] = False,
    pcap: Annotated[
        Path | None, typer.Option(help="Also write the packets, as on the wire.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the run in the folder, and the capture.")
    ] = False,
    threads: Annotated[
        int | None,
        typer.Option(
            min=1, help="In virtual time: processors to use; same results. [2 where they are idle]"
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only say what is wrong with the config.")
    ] = False,
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Only print the config with all defaults.")
    ] = False,
    as_json: SummaryJson = False,
) -> None:
    """Runs an experiment, shows what came out, writes a report."""
    from weir import api
    from weir.analysis import folder, summary
    from weir.base import programs, terminal
    from weir.runner.bar import Bar
    from weir.runner.options import Options, default_out
    from weir.runner.run import read_only

    options = Options(
        config,
        out or default_out(config, override or (), seed, live),
        override or (),
        seed,
        duration,
        pcap,
        force,
        threads,
    )
    if hosts is not None and not live:
        raise UserError("--hosts needs --live")
    if hosts is not None and check:
        from weir.hosts import inventory, plan

        raise typer.Exit(plan.check(options, inventory.read(hosts)))
    if check or print_config:
        options.only = "--check" if check else "--print-config"
        raise typer.Exit(read_only(options, live))
    programs.identify()
    with Bar(terminal.console(stderr=True)) as bar:
        status, loaded = api.execute(options, bar, live, hosts)
    if loaded is None:
        raise typer.Exit(status)  # the program said why
    with folder.locked(options.out):
        screen = terminal.console(stderr=as_json)
        with unheard():
            if as_json:
                print(json.dumps(loaded.summary, indent=1), flush=True)
            elif loaded.summary:
                summary.show(loaded.summary, screen)
                say_delay(loaded, screen)
        shown = options.out
        if not no_report:
            from weir.report import page

            try:
                shown = page.write(loaded)
            except UserError as error:
                print(f"weir: {error}", file=sys.stderr)
                status = status or error.status
        screen.print(str(shown), soft_wrap=True)
        say_notes(loaded.notes)
    raise typer.Exit(status)


app.command(
    "shell",
    epilog=examples(
        "shell --rate 50Mbit --delay 20ms -- curl -O https://www.debian.org/",
        "shell --delay 20ms --up up.trace --down down.trace",
        "shell configs/quickstart.yaml --server 'iperf3 -s' -- sh -c 'iperf3 -c $WEIR_SERVER'",
    ),
)(shell_command.shell_)


@app.command(
    "probe",
    epilog=examples(
        "probe configs/copa-steady.yaml",
        "probe configs/copa-steady.yaml -o flows.0.count=20 --size 10MB --at 20s",
        "probe configs/loopback-10g.yaml --live --interval 5ms --count 40",
    ),
)
def probe_(
    config: ConfigArgument,
    override: Annotated[
        list[str] | None,
        typer.Option(
            "-o",
            metavar="KEY=VALUE",
            help="Replaces a value: -o flows.0.count=10.",
            autocompletion=complete.keys,
        ),
    ] = None,
    at: Annotated[str | None, typer.Option(help="Of the first probe. [half of the run]")] = None,
    count: Annotated[int | None, typer.Option(help="Probes, up to 64. [20]")] = None,
    interval: Annotated[str | None, typer.Option(help="Between two probes. [10ms]")] = None,
    delta: Annotated[float | None, typer.Option(help="The Copa flow's. [0.5]")] = None,
    size: Annotated[str | None, typer.Option(help="The transfer's. [1MB]")] = None,
    rtt_min: Annotated[
        str | None, typer.Option(help="RTT without queues, if it is known. [the smallest seen]")
    ] = None,
    alone: Annotated[
        bool, typer.Option("--alone", help="Without the config's own flows: to a loaded path.")
    ] = False,
    live: Annotated[
        bool, typer.Option("--live", help="On real ports with DPDK, not in virtual time.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="The run folder. [runs/CONFIG-CHANGES-TIME]")
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Replaces the config's.")] = None,
    duration: Annotated[str | None, typer.Option(help="Replaces the config's: 10s.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the run in the folder.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The estimate as JSON.")] = False,
) -> None:
    """Estimates the rate that a Copa flow would obtain.

    A few small packets are sent beside the config's flows. Copa, NSDI 2018, appendix:
    rate 1 / (delta dq), completion 2 RTT + size / rate.
    """
    from weir import api
    from weir.base import programs, terminal
    from weir.live import probe
    from weir.runner.bar import Bar
    from weir.runner.options import Options, default_out

    probing = probe.Probing(at, count, interval, delta, size, rtt_min, alone)
    overrides = [probe.override(config, probing, duration), *(override or ())]
    place = out or default_out(config, override or (), seed, live)
    options = Options(config, place, overrides, seed, duration, None, force)
    programs.identify()
    console = terminal.console(stderr=True)
    with Bar(console, "probing", rename=probe.renamer(config)) as bar:
        status, loaded = api.execute(options, bar, live)
    if status != 0 or loaded is None:
        raise typer.Exit(status or 1)
    estimate = probe.found(loaded.summary)
    if as_json:
        print(json.dumps(estimate, indent=1))
    else:
        probe.show(estimate, terminal.console())


@app.command("qlog", epilog=examples("qlog runs/quic", "qlog runs/quic --json"))
def qlog_(
    run: RunArgument,
    as_json: Annotated[bool, typer.Option("--json", help="The figures as JSON.")] = False,
) -> None:
    """Shows what QUIC programs in guests logged, beside the paths.

    They have written it into $WEIR_OUT; the paths have their own counts.
    """
    from weir.analysis import folder, qlog
    from weir.base import terminal

    found = qlog.of_run(run, folder.load(run).summary)
    if as_json:
        print(json.dumps(found, indent=1))
        return
    screen = terminal.console()
    terminal.print_table(screen, terminal.table(qlog.COLUMNS, qlog.rows(found), left=2))


@app.command(
    "init",
    epilog=examples(
        "init",
        "init mine.yaml --rate 1Gbps --rtt 40ms --flows '10 cubic, 10 bbr' --duration 60",
        "init mine.yaml --force",
    ),
)
def init_(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The config.", autocompletion=complete.configs)
    ] = Path("experiment.yaml"),
    rate: Annotated[str | None, typer.Option(help="Of the bottleneck: 100Mbit.")] = None,
    rtt: Annotated[str | None, typer.Option(help="Round trip without queues: 20ms.")] = None,
    buffer: Annotated[str | None, typer.Option(help="1BDP, 100pkt, 1MB or 50ms.")] = None,
    flows: Annotated[str | None, typer.Option(help="Such as '2 copa, 10 cubic'.")] = None,
    duration: Annotated[str | None, typer.Option(help="Of the run: 30s.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file.")] = False,
) -> None:
    """Writes a first config, with comments.

    It asks for rate, round trip, buffer, flows and duration.
    """
    from weir.cli import init

    given = {"rate": rate, "rtt": rtt, "buffer": buffer, "flows": flows, "duration": duration}
    init.write(file, given, force, lambda: sys.stdin is not None and sys.stdin.isatty())
    name = shlex.quote(str(file))
    print(f"{name} is written; next: {typed.program()} run {name}")


@app.command(
    "sweep",
    epilog=examples(
        "sweep configs/sweeps/buffer.yaml",
        "sweep configs/sweeps/buffer.yaml --all --json",
        "sweep configs/sweeps/buffer.yaml --cluster tcp://host:8786",
        "sweep configs/sweeps/buffer.yaml --shard 2/3",
        "sweep --merge runs/buffer-1of3 runs/buffer-2of3 runs/buffer-3of3 --out runs/buffer",
    ),
)
def sweep_(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE|DIR...",
            help="A config, a grid and seeds; with --merge the folders of its parts.",
            autocompletion=complete.configs,
        ),
    ],
    out: Annotated[Path | None, typer.Option(help="The folder of its runs. [runs/FILE]")] = None,
    cluster: Annotated[str | None, typer.Option(metavar="WHERE", help=usage.CLUSTER)] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Cells at a time here; jobs of slurm, pbs.")
    ] = None,
    shard: Annotated[
        str | None, typer.Option(metavar="I/N", help="Only part I of N, into runs/FILE-IofN.")
    ] = None,
    merge: Annotated[
        bool, typer.Option("--merge", help="Put all parts of a sweep together in --out.")
    ] = False,
    any_version: Annotated[
        bool, typer.Option("--any-version", help="Keep cells that another commit of Weir ran.")
    ] = False,
    show_all: Annotated[
        bool, typer.Option("--all", help="Show every cell, not only the first ones.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The table as JSON.")] = False,
) -> None:
    """Runs a grid of experiments into one Parquet table.

    Dask runs those that are not done yet.
    """
    from weir.base import programs, terminal
    from weir.many import grid, shards, sweep, sweep_page

    programs.identify()
    file = files[0]
    if merge:
        if out is None or cluster or workers or shard:
            raise UserError("--merge runs nothing: it takes the folders of the parts and --out")
        table, asked = sweep.merge(files, out)
    else:
        if len(files) > 1:
            raise UserError(f"{files[1]}: one sweep at a time; folders of its parts want --merge")
        asked, part = grid.read(file), shards.read(shard)
        name = file.stem if shard is None else f"{file.stem}-{part.index}of{part.count}"
        out = out or Path("runs") / name
        table = sweep.execute(
            asked,
            out,
            terminal.console(stderr=True),
            cluster=cluster,
            workers=workers,
            any_version=any_version,
            shard=part,
        )
    page = sweep_page.write(out)
    if as_json:
        print(json.dumps(table.to_dicts(), indent=1))
    else:
        screen = terminal.console()
        sweep.show(table, asked, screen, None if show_all else sweep.ROWS_SHOWN)
        screen.print(str(out / "table.parquet"), soft_wrap=True)
        screen.print(str(page), soft_wrap=True)
    raise typer.Exit(1 if "failed" in table["status"] else 0)


@app.command(
    "attack",
    epilog=examples(
        "attack configs/attacks/boxes/low-rate-newreno.yaml --runs 300",
        "attack configs/quickstart.yaml --goal utilisation --time 2m --cc cubic",
        "attack configs/attacks/boxes/low-rate-newreno.yaml --seed 7 --json",
        "attack configs/quickstart.yaml --goal delay --cluster tcp://host:8786",
        "attack configs/attacks/boxes/worst-case.yaml --cc copa,cubic,bbr --runs 200",
    ),
)
def attack_(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="An attack (config, goal, box), or a config.",
            autocompletion=complete.configs,
        ),
    ],
    goal: Annotated[
        str | None,
        typer.Option(help="utilisation, starvation, delay, loss or oscillation. [the file's]"),
    ] = None,
    control: Annotated[
        str | None,
        typer.Option("--cc", help="Of all flows: a control, or several: a,b,c."),
    ] = None,
    runs: Annotated[int | None, typer.Option(min=1, help="Trials. [500 without --time]")] = None,
    time: Annotated[str | None, typer.Option(help="How long to search: 2m.")] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**20, help="Of the search.")] = 1,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Trials at a time. [one per CPU]")
    ] = None,
    cluster: Annotated[str | None, typer.Option(metavar="WHERE", help=usage.CLUSTER)] = None,
    keep: Annotated[
        str, typer.Option(help="Of the harm, what is left when the attack is minimised.")
    ] = "90%",
    out: Annotated[
        Path | None, typer.Option(help="Its folder; goes on there. [runs/attack-FILE-SEED]")
    ] = None,
    no_report: Annotated[bool, typer.Option("--no-report", help="No page.")] = False,
    register: Annotated[
        bool, typer.Option("--register", help="Keep what is found in configs/attacks.")
    ] = False,
    write_docs: Annotated[
        bool, typer.Option("--write-docs", help="The table of several --cc into attack.md.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The result as JSON.")] = False,
) -> None:
    """Searches, within bounds, where a config's flows do worst."""
    from weir.cli import attack

    given = attack.Given(
        file,
        goal,
        control,
        runs,
        time,
        seed,
        cluster,
        workers,
        keep,
        out,
        not no_report,
        register,
        write_docs,
    )
    raise typer.Exit(attack.command(given, as_json))


@app.command(
    "reproduce",
    epilog=examples(
        "reproduce all --plan",
        "reproduce copa",
        "reproduce corescale --full --out runs/corescale",
        "reproduce copa --print-config c8-copa",
        "reproduce linux",
    ),
)
def reproduce_(
    study: Annotated[
        str, typer.Argument(metavar="STUDY|SUITE|all", autocompletion=complete.studies)
    ],
    quick: Annotated[
        bool,
        typer.Option("--quick/--full", help="Few seeds and minutes, or the source's own lengths."),
    ] = True,
    out: Annotated[
        Path | None, typer.Option(help="The folder. [runs/STUDY-quick or -full]")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Cells at a time here; jobs of slurm, pbs.")
    ] = None,
    cluster: Annotated[str | None, typer.Option(metavar="WHERE", help=usage.CLUSTER)] = None,
    only_plan: Annotated[
        bool, typer.Option("--plan", help="Only show the cells and what they cost.")
    ] = False,
    cell: Annotated[
        str | None,
        typer.Option("--print-config", metavar="CELL", help="Print a cell as a config, run none."),
    ] = None,
    write_docs: Annotated[
        bool,
        typer.Option(
            "--write-docs",
            help="Of all and of suites: put the results into tools/docs/reference.",
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The tables as JSON.")] = False,
) -> None:
    """Runs a published study, or all, or Linux's TCP beside ours.

    It writes a page and a Parquet table.
    """
    from weir.base import programs, terminal
    from weir.study import linux_page, reproduce, studies

    programs.identify()
    known = studies.names()
    if study not in known:
        listed = f"there are {', '.join(known[:-1])} and {known[-1]}"
        raise UserError(f"'{study}' cannot be reproduced; {nearest(study, known, listed)}")
    if write_docs and study not in ("all", *studies.SUITES):
        kept = ", ".join(["all", *studies.SUITES])
        raise UserError(f"--write-docs: the documents have the results of {kept}")
    screen = terminal.console(stderr=as_json)
    if study == "linux":
        plan = linux_page.plan(quick, out)
        if cell is not None:
            raise UserError("--print-config: the cells of linux are in its run folders")
        if only_plan and as_json:
            print(json.dumps(linux_page.plan_rows(plan), indent=1))
        elif only_plan:
            linux_page.show_plan(plan, workers or os.cpu_count() or 1, screen)
        else:
            raise typer.Exit(
                linux_page.run(plan, screen, cluster=cluster, workers=workers, as_json=as_json)
            )
        return
    chosen = studies.chosen(study)
    plans = [
        reproduce.plan(one, quick, out / one.name if out and len(chosen) > 1 else out)
        for one in chosen
    ]
    if cell is not None:
        reproduce.print_config(plans, cell)
    elif only_plan and as_json:
        print(json.dumps([row for made in plans for row in reproduce.plan_rows(made)], indent=1))
    elif only_plan:
        reproduce.show_plan(plans, workers or os.cpu_count() or 1, screen)
    else:
        raise typer.Exit(
            reproduce.run_all(
                study,
                plans,
                out,
                screen,
                cluster=cluster,
                workers=workers,
                as_json=as_json,
                write_docs=write_docs,
            )
        )


@app.command(
    "evaluate",
    epilog=examples(
        "evaluate copa",
        "evaluate ./mine.so --out runs/mine",
        "evaluate mine.py:MyControl --plan",
        "evaluate linux:bbr",
        "evaluate copa --print-config cubic-1BDP",
    ),
)
def evaluate_(
    control: Annotated[
        str, typer.Argument(metavar="CC", help="A name, FILE.so, FILE.py:CLASS, or linux:NAME.")
    ],
    quick: Annotated[
        bool, typer.Option("--quick/--full", help="One run of each case, or five seeds.")
    ] = True,
    out: Annotated[Path | None, typer.Option(help="The folder. [runs/evaluate-CC-quick]")] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Cells at a time. [one per CPU]")
    ] = None,
    only_plan: Annotated[
        bool, typer.Option("--plan", help="Only show the cells and what they cost.")
    ] = False,
    cell: Annotated[
        str | None,
        typer.Option("--print-config", metavar="CELL", help="Print a cell as a config, run none."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The table as JSON.")] = False,
) -> None:
    """Evaluates a congestion control by RFC 9743's criteria.

    It writes a page and a Parquet table.
    """
    from weir.base import programs, terminal
    from weir.study import evaluate, evaluate_scene, reproduce

    programs.identify()
    one = evaluate.study(evaluate_scene.control_of(control), control)
    made = reproduce.plan(one, quick, out)
    screen = terminal.console(stderr=as_json)
    reproduce.refuse(made)
    if cell is not None:
        reproduce.print_config([made], cell)
    elif only_plan:
        reproduce.show_plan([made], workers or os.cpu_count() or 1, screen)
    else:
        raise typer.Exit(
            reproduce.run_all(
                made.study.name, [made], out, screen, workers=workers, as_json=as_json
            )
        )


@app.command(
    "study",
    epilog=examples(
        'study copa --set "velocity_rtts: 6"',
        'study copa --set "delta: 0.4" --set "delta: 0.6" --out runs/deltas',
        'study papers --cc cubic --set "beta: 0.8"',
    ),
)
def study_(
    study: Annotated[str, typer.Argument(metavar="STUDY", autocompletion=complete.studies)],
    sets: Annotated[
        list[str],
        typer.Option("--set", metavar="PARAMETERS", help="Parameters of the control; repeated."),
    ],
    control: Annotated[
        str, typer.Option("--cc", metavar="CONTROL", help="The control they are of.")
    ] = "copa",
    quick: Annotated[
        bool, typer.Option("--quick/--full", help="Few seeds and minutes, or the source's own.")
    ] = True,
    out: Annotated[Path | None, typer.Option(help="The folder. [runs/STUDY-sets]")] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Cells at a time. [one per CPU]")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The table as JSON.")] = False,
) -> None:
    """Tries parameters of a control on every claim of a study.

    Beside them stands what it has by default.
    """
    from weir.base import programs, terminal
    from weir.study import sets as tried
    from weir.study import studies

    programs.identify()
    if study not in studies.STUDIES:
        raise UserError(f"'{study}' is no study; there are {', '.join(studies.STUDIES)}")
    place = out or Path("runs") / f"{study}-sets"
    chosen = tried.Sets(control, ("", *sets))
    one = studies.STUDIES[study]
    screen = terminal.console(stderr=as_json)
    raise typer.Exit(tried.run(one, chosen, quick, place, screen, workers, as_json))


# These two parse their own command line: weir.__main__ starts them without this module, whose
# imports take longer than all that they do. This is for the shell's completion; a test compares.
@app.command("top")
def top_(
    prefix: Annotated[list[str] | None, typer.Option(metavar="NAME")] = None,
    interval: Annotated[float, typer.Option(metavar="S")] = 1.0,
    once: Annotated[bool, typer.Option("--once")] = False,
    as_json: Annotated[bool, typer.Option("--json")] = False,
    sweep: Annotated[Path | None, typer.Option("--sweep", metavar="DIR")] = None,
    serve: Annotated[str | None, typer.Option("--serve", metavar="ADDR:PORT")] = None,
    token: Annotated[str | None, typer.Option("--token")] = None,
) -> None:
    """Watches live programs: ports, paths, groups of flows, lcores."""
    from weir.live import top

    raise typer.Exit(top.main())


@app.command("ctl")
def ctl_(
    orders: Annotated[
        list[str] | None,
        typer.Argument(metavar="[KEY=VALUE...|measure|stop]", autocompletion=complete.orders),
    ] = None,
    prefix: Annotated[str | None, typer.Option(metavar="NAME")] = None,
    as_json: Annotated[bool, typer.Option("--json")] = False,
) -> None:
    """Changes a running switch: ctl forward.link.rate=5Gbit.

    Alone, it shows what may be changed.
    """
    from weir.live import ctl

    raise typer.Exit(ctl.main())


@app.command("report", epilog=examples("report runs/mine", "report runs/mine --out pages"))
def report_(
    run_folder: RunArgument,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where report.html goes. [the folder itself]")
    ] = None,
) -> None:
    """Writes report.html for a run or a sweep; prints its path."""
    from weir.analysis import folder
    from weir.base import terminal
    from weir.report import page
    from weir.runner.bar import Count

    if sweep_commands.is_sweep([run_folder]):
        from weir.many import sweep_page

        print(sweep_page.write(run_folder, out))
        return
    loaded = folder.load(run_folder)
    with Count(terminal.console(stderr=True), "parts") as bar:
        written = page.write(loaded, out, bar.update)
    print(written)
    say_notes(loaded.notes)


folder_commands.register(app)
sweep_commands.register(app)
app.command(
    "plot",
    epilog=examples(
        "plot runs/mine",
        "plot runs/mine --figure rtt --out rtt.pdf",
        "plot runs/a runs/b --figure rtt --width page --out both.svg",
        "plot runs/buffer --x buffer --y goodput --by cc --facet flows --logx --width page",
        "plot runs/buffer --x buffer --heat flows --y delay --where cc=copa --out heat.png",
    ),
)(figure_commands.plot_)
app.command(
    "compare",
    epilog=examples("compare runs/a runs/b", "compare runs/a runs/b runs/c --json"),
)(figure_commands.compare_)


@app.command("summary", epilog=examples("summary runs/mine", "summary runs/mine --json"))
def summary_(
    run_folder: RunArgument,
    as_json: Annotated[bool, typer.Option("--json", help="summary.json as it is.")] = False,
) -> None:
    """Shows what came out of a run."""
    from weir.analysis import folder, summary
    from weir.base import terminal

    loaded = folder.load(run_folder)
    if not loaded.summary:
        raise UserError(f"{run_folder}: the run did not end by itself: it has no summary.json", 1)
    if as_json:
        print(json.dumps(loaded.summary, indent=1))
    else:
        summary.show(loaded.summary, terminal.console())
        say_delay(loaded, terminal.console())


@app.command(
    "export",
    epilog=examples(
        "export runs/mine --to parquet",
        "export runs/mine --to csv --stream interval --flow 7 --out tables",
        "export runs/mine --to qlog",
        "export runs/mine --to flent",
    ),
)
def export_(
    run_folder: RunArgument,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="parquet|csv|qlog|qlog-0.3|pcapng|flent",
            autocompletion=complete.formats,
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where the files go. [RUN/export]")
    ] = None,
    stream: Annotated[
        list[str] | None,
        typer.Option(
            help="A stream, for tables. [all that were recorded]", autocompletion=complete.streams
        ),
    ] = None,
    flow: Annotated[list[int] | None, typer.Option(min=0, help="Only this flow. [all]")] = None,
    compress: Annotated[bool, typer.Option("--compress", help="CSV with zstd: .csv.zst.")] = False,
) -> None:
    """Writes a run's telemetry for other programs.

    It prints the names of the files.
    """
    from weir import export
    from weir.analysis import folder
    from weir.base import terminal
    from weir.runner.bar import Count

    loaded = folder.load(run_folder)
    with Count(terminal.console(stderr=True)) as bar:
        files = export.write(
            loaded,
            to,
            out,
            streams=stream or (),
            flows=flow or (),
            compress=compress,
            on_progress=bar.update,
        )
    for file in files:
        print(file)
    say_notes(loaded.notes)


@app.command(
    "import",
    epilog=examples(
        "import rrul-2026-11-28.flent.gz",
        "import iperf3.json --out runs/iperf3",
    ),
)
def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Of flent, or of iperf3 -J.")],
    out: Annotated[Path | None, typer.Option(help="The folder. [runs/FILE]")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace what is there.")] = False,
) -> None:
    """Makes a run folder of a result of flent or iperf3."""
    from weir.analysis import imported

    print(imported.write(file, out or Path("runs") / file.name.partition(".")[0], force))


@app.command("replay", epilog=examples("replay runs/proof", "replay runs/proof --out runs/again"))
def replay_(
    run_folder: RunArgument,
    out: Annotated[Path | None, typer.Option(help="Of the replay. [RUN/replay]")] = None,
) -> None:
    """Repeats a run from its recorded arrivals, and compares.

    They go through its paths again, and every decision must be the same.
    """
    from weir.base import terminal
    from weir.live import replay
    from weir.runner.bar import Bar

    with Bar(terminal.console(stderr=True), "replaying") as bar:
        found, numbers = replay.replay(run_folder, out or run_folder / "replay", bar.progress)
    print(replay.sentence(found, numbers))
    raise typer.Exit(0 if found.difference is None else 1)


@app.command(
    "list",
    epilog=examples(
        "list", "list cc", "list codel", "list mine.so", "list mine.py:MyControl", "list flows"
    ),
)
def list_(
    name: Annotated[
        str | None,
        typer.Argument(
            autocompletion=complete.names,
            metavar="[KIND|NAME]",
            help="aqm, stage, path, cc, source, stack, base_rtt, flows, run, live, stream, number,"
            " or one of what they list; or a control of yours: mine.so, mine.py:MyControl.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The tables as JSON.")] = False,
) -> None:
    """Lists controls, disciplines, stages, keys and telemetry.

    NAME alone has a page.
    """
    from weir.base import tables
    from weir.cli import pager
    from weir.runner import session

    done = tables.ask(*([name] if name else []), *(["--json"] if as_json else []))
    if done.returncode != 0:
        print(session.from_weir(done.stderr), end="", file=sys.stderr)
        raise typer.Exit(done.returncode)
    pager.show(done.stdout)


app.command("docs", epilog=examples("docs", "docs --where", "docs --build site"))(
    docs_command.docs_
)


class SchemaOf(enum.StrEnum):
    """What `schema` describes."""

    CONFIG = "config"
    SUMMARY = "summary"


@app.command(
    "schema",
    epilog=examples(
        "schema > schema.json", "schema --plugin mine.so", "schema --plugin mine.py:MyControl"
    ),
)
def schema_(
    what: Annotated[SchemaOf, typer.Argument(help="A config, or a run's summary.json.")] = (
        SchemaOf.CONFIG
    ),
    plugin: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|FILE:CLASS", help="A congestion control of yours: its parameters too."
        ),
    ] = None,
) -> None:
    """Prints the JSON Schema of a config, or of summary.json.

    It is for editors and other programs.
    """
    from weir.analysis import model
    from weir.base import schema

    of = model.schema() if what is SchemaOf.SUMMARY else schema.of_config(plugin)
    print(schema.text(of), end="")


@app.command("completion", epilog=examples("completion bash", "completion zsh > _weir"))
def completion_(
    shell: Annotated[complete.Shell, typer.Argument(metavar="bash|zsh|fish")],
) -> None:
    """Prints what a shell needs to complete commands.

    In bash: source <(weir completion bash).
    """
    print(complete.script(shell))


@app.command("doctor", epilog=examples("doctor", "doctor --json"))
def doctor_(
    as_json: Annotated[bool, typer.Option("--json", help="The checks as JSON.")] = False,
) -> None:
    """Checks this machine, and says what to fix and how."""
    from weir.base import terminal
    from weir.cli import doctor

    found = doctor.checks()
    if as_json:
        print(json.dumps([asdict(check) for check in found], indent=1))
    else:
        doctor.show(found, terminal.console())
    raise typer.Exit(1 if doctor.bad(found) else 0)


def say_delay(run: Any, screen: Any) -> None:
    """What pings say of the delay under load, if any group pings."""
    from weir.analysis import latency

    found = latency.under_load(run)
    if found is not None:
        said = zip(latency.COLUMNS, found.row(), strict=True)
        parts = [f"{name} {value}" for name, value in said]
        screen.print(f"delay of pings: {', '.join(parts)}", soft_wrap=True)


def say_notes(notes: list[str]) -> None:
    """What the report says about the data, also here."""
    for note in notes:
        print(f"weir: {note}", file=sys.stderr)


def version(value: bool) -> None:
    """--version."""
    if value:
        print(f"weir {VERSION}")
        raise typer.Exit


@app.callback()
def options(
    show_version: Annotated[
        bool, typer.Option("--version", callback=version, is_eager=True, help="Shows the version.")
    ] = False,
) -> None:
    """Takes what stands before the command."""


def main() -> int:
    """Every bad input is one sentence on standard error and the right exit status."""
    # Where the user's home cannot be written, matplotlib says so in three lines, and draws.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    return guarded(command)


def command() -> int:
    """Runs the command that sys.argv names."""
    if complete.VARIABLE in os.environ:
        from typer.completion import completion_init  # type: ignore[attr-defined]

        completion_init()
    if "--out=" in sys.argv or ("--out", "") in itertools.pairwise(sys.argv):
        raise UserError("--out: the name is empty")  # a Path would be the working directory
    if sys.argv[1:2] == ["help"]:
        sys.argv[1:] = [*sys.argv[2:], "--help"]
    asked = complete.VARIABLE in os.environ  # by a shell, which knows one name
    try:
        status = app(prog_name="weir" if asked else typed.program(), standalone_mode=False)
    except typer.Abort:
        print("\nweir: interrupted", file=sys.stderr)
        return 130
    except (UserError, OSError, MemoryError):
        raise
    except Exception as error:
        # Usage errors of typer's parser, which has no public name for them.
        if not hasattr(error, "format_message"):
            raise
        said = usage.sentence(error)
        print(said if said.startswith("Usage:") else f"weir: {said}", file=sys.stderr)
        return int(getattr(error, "exit_code", 2))
    return status if isinstance(status, int) else 0
