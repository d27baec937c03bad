# SPDX-License-Identifier: BSD-3-Clause
"""weir sweep, attack, reproduce, evaluate, study: many runs."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from typer import Argument, Option

from weir.attack import run
from weir.base import programs, terminal
from weir.base.errors import UserError
from weir.cli import attack, complete
from weir.cli.arguments import (
    Beyond,
    Cell,
    Cluster,
    DrawSeed,
    Guests,
    Json,
    ManyFolder,
    Merge,
    NoReport,
    Part,
    Plan,
    Quick,
    ShowAll,
    Workers,
    WriteDocs,
)
from weir.cli.usage import commands
from weir.guests import kernels
from weir.many import grid, shards, sweep, sweep_page
from weir.plugin import kernel
from weir.studies.evaluate import criteria as evaluate
from weir.studies.evaluate import scene as evaluate_scene
from weir.studies.linux import cases as linux_cases
from weir.studies.linux import page as linux_page
from weir.study import documents, find, guests, parts, reproduce
from weir.study import sets as tried

app = commands()


def study_names() -> list[str]:
    return find.names()


@app.add(
    "sweep",
    "sweep configs/sweeps/buffer.yaml",
    "sweep configs/sweeps/buffer.yaml --all --json",
    "sweep configs/sweeps/buffer.yaml --cluster tcp://host:8786",
    "sweep configs/sweeps/buffer.yaml --shard 2/3",
    "sweep --merge runs/buffer-1of3 runs/buffer-2of3 runs/buffer-3of3 --out runs/buffer",
)
def sweep_(
    files: Annotated[
        list[Path],
        Argument(
            metavar="FILE|DIR...",
            help="A config, a grid and seeds; with --merge the folders of its parts.",
            autocompletion=complete.configs,
        ),
    ],
    out: ManyFolder = None,
    cluster: Cluster = None,
    workers: Workers = None,
    shard: Part = None,
    merge: Merge = False,
    any_version: Annotated[
        bool, Option("--any-version", help="Keep cells that another commit of Weir ran.")
    ] = False,
    show_all: ShowAll = False,
    as_json: Json = False,
) -> None:
    """Runs a grid of experiments into one Parquet table.

    Dask runs those that are not done yet.
    """
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


@app.add(
    "attack",
    "attack configs/attacks/boxes/low-rate-newreno.yaml --runs 300",
    "attack configs/quickstart.yaml --goal utilisation --time 2m --cc cubic",
    "attack configs/attacks/boxes/low-rate-newreno.yaml --seed 7 --json",
    "attack configs/quickstart.yaml --goal delay --cluster tcp://host:8786",
    "attack configs/attacks/boxes/worst-case.yaml --cc copa,cubic,bbr --runs 200",
)
def attack_(
    file: Annotated[
        Path,
        Argument(
            metavar="FILE",
            help="An attack (config, goal, box), or a config.",
            autocompletion=complete.configs,
        ),
    ],
    goal: Annotated[
        str | None, Option(help="utilisation, starvation, delay, loss or oscillation. [the file's]")
    ] = None,
    control: Annotated[
        str | None,
        Option("--cc", help="Of all flows: a,b,mine.so,linux:CC,quic:STACK:CC, one or several."),
    ] = None,
    beside: Annotated[
        str | None, Option(help="A control: harm is what is beyond its own in the same network.")
    ] = None,
    runs: Annotated[int | None, Option(min=1, help="Trials. [500 without --time]")] = None,
    time: Annotated[str | None, Option(help="How long to search: 2m.")] = None,
    seed: DrawSeed = 1,
    workers: Workers = None,
    cluster: Cluster = None,
    keep: Annotated[
        str, Option(help="Of the harm, what is left when the attack is minimised.")
    ] = "90%",
    out: ManyFolder = None,
    no_report: NoReport = False,
    register: Annotated[
        bool, Option("--register", help="Keep what is found in configs/attacks.")
    ] = False,
    write_docs: WriteDocs = False,
    as_json: Json = False,
) -> None:
    """Searches, within bounds, where a config's flows do worst."""
    options = run.Options(
        file=file,
        goal=goal,
        control=control,
        beside=beside,
        out=out,
        runs=runs,
        seconds=attack.seconds_of(time),
        seed=seed,
        cluster=cluster,
        workers=workers,
        keep=attack.share_of(keep),
        report=not no_report,
        register=register,
    )
    raise typer.Exit(attack.command(options, as_json=as_json, write_docs=write_docs))


@app.add(
    "reproduce",
    "reproduce all --plan",
    "reproduce copa",
    "reproduce corescale --full --out runs/corescale",
    "reproduce copa --print-config c8-copa",
    "reproduce linux",
    "reproduce corescale --guests",
    "reproduce corescale --beyond --plan",
    "reproduce all --full --shard 2/3",
    "reproduce --merge runs/all-full-1of2 runs/all-full-2of2 --out runs/all-full",
)
def reproduce_(
    names: Annotated[
        list[str],
        Argument(
            metavar="STUDY|SUITE|FOLDER|all",
            help="What to run; with --merge the folders of its parts.",
            autocompletion=study_names,
        ),
    ],
    quick: Quick = True,
    with_guests: Guests = False,
    beyond: Beyond = False,
    out: ManyFolder = None,
    workers: Workers = None,
    cluster: Cluster = None,
    shard: Part = None,
    merge: Merge = False,
    only_plan: Plan = False,
    cell: Cell = None,
    write_docs: WriteDocs = False,
    as_json: Json = False,
) -> None:
    """Runs a published study, or all, or Linux's TCP beside ours.

    It writes a page and a Parquet table.
    """
    programs.identify()
    screen = terminal.console(stderr=as_json)
    if merge:
        if out is None or cluster or workers or shard or only_plan or cell or with_guests:
            raise UserError("--merge runs nothing: it takes the folders of the parts and --out")
        places = [Path(name) for name in names]
        raise typer.Exit(parts.merge(places, out, screen, as_json=as_json, write_docs=write_docs))
    study, *others = names
    if others:
        raise UserError(f"{others[0]}: one name at a time; folders of its parts want --merge")
    if with_guests and (shard is not None or study == find.LINUX):
        what = "linux has them anyway" if shard is None else "its cells are run together"
        raise UserError(f"--guests: {what}")
    if with_guests and not quick:
        raise UserError("--guests: its cells have one length; leave --full away")
    if study == find.LINUX:
        if shard is not None:
            raise UserError("--shard: the cells of linux are run together")
        matrix = linux_page.matrix_of(quick, out)
        if cell is not None:
            raise UserError("--print-config: the cells of linux are in its run folders")
        if only_plan and as_json:
            print(json.dumps(linux_page.plan_rows(matrix), indent=1))
        elif only_plan:
            linux_page.show_plan(matrix, workers or os.cpu_count() or 1, screen)
        else:
            kernels.needed("reproduce linux")
            for name in linux_cases.IN_FILES:
                kernel.compiled(name, matrix.controls)
            raise typer.Exit(
                linux_page.run(matrix, screen, cluster=cluster, workers=workers, as_json=as_json)
            )
        return
    study = f"{study}-beyond" if beyond else study
    chosen = find.chosen(study)
    if with_guests:
        study = f"{study} --guests"
        chosen = guests.studies_of(chosen)
    part = shards.read(shard)
    if shard is not None:
        own = chosen[0].name if len(chosen) == 1 else study
        scale = "quick" if quick else "full"
        out = out or Path("runs") / f"{own}-{scale}-{part.index}of{part.count}"
    campaigns = reproduce.campaigns(chosen, quick, out)
    if cell is not None or only_plan:
        show(campaigns, cell, workers, as_json, part)
        return
    if shard is not None and out is not None:
        if write_docs or as_json:
            raise UserError("--shard only runs cells: results are what --merge shows and writes")
        raise typer.Exit(
            parts.run(study, campaigns, part, out, screen, cluster=cluster, workers=workers)
        )
    if with_guests:
        kernels.needed("--guests")
        kernel.for_studies({name for one in chosen for name in one.sources})
    status = reproduce.run_all(
        *(study, campaigns, out, screen, reproduce.simulating(screen, cluster, workers)),
        as_json=as_json,
        commit=documents.commit(chosen) if write_docs else "",
    )
    raise typer.Exit(status)


def show(
    campaigns: Sequence[reproduce.Campaign],
    cell: str | None,
    workers: int | None,
    as_json: bool,
    part: shards.Shard = shards.WHOLE,
) -> None:
    """Prints one cell as a config, or the cells of a part with what they cost."""
    cells = part.of(reproduce.planned(campaigns))
    if cell is not None:
        reproduce.print_config(campaigns, cell)
    elif as_json:
        print(json.dumps(reproduce.plan_rows(cells), indent=1))
    else:
        reproduce.show_plan(cells, workers or os.cpu_count() or 1, terminal.console())


@app.add(
    "evaluate",
    "evaluate copa",
    "evaluate ./mine.so --out runs/mine",
    "evaluate mine.py:MyControl --plan",
    'evaluate "{copa: {delta: 0.4}}"',
    "evaluate linux:bbr",
    "evaluate quic:ngtcp2:bbr",
    "evaluate copa --print-config cubic-1BDP",
)
def evaluate_(
    control: Annotated[
        str,
        Argument(
            metavar="CC",
            help="A name, FILE.so, FILE.py:CLASS, linux:CC, quic:STACK:CC"
            " or {plugin: FILE.so, KEY: VALUE}.",
        ),
    ],
    quick: Quick = True,
    out: ManyFolder = None,
    workers: Workers = None,
    only_plan: Plan = False,
    cell: Cell = None,
    as_json: Json = False,
) -> None:
    """Evaluates a congestion control by RFC 9743's criteria.

    It writes a page and a Parquet table.
    """
    programs.identify()
    one = evaluate.study(evaluate_scene.control_of(control), control)
    campaign = reproduce.Campaign(one, quick, out)
    if cell is not None or only_plan:
        reproduce.refuse(campaign)
        show([campaign], cell, workers, as_json)
        return
    judge(campaign, workers, as_json)


def judge(campaign: reproduce.Campaign, workers: int | None, as_json: bool) -> NoReturn:
    """Runs a study that is made for a control of the user's."""
    reproduce.refuse(campaign)
    screen = terminal.console(stderr=as_json)
    name, runs = campaign.study.name, reproduce.simulating(screen, workers=workers)
    raise typer.Exit(
        reproduce.run_all(name, [campaign], campaign.out, screen, runs, as_json=as_json)
    )


@app.add(
    "study",
    'study copa --set "velocity_rtts: 6"',
    'study copa --set "delta: 0.4" --set "delta: 0.6" --out runs/deltas',
    'study papers --cc cubic --set "beta: 0.8"',
    'study corescale --cc bbr --set "plugin: ./bbr.so"',
    'study c4 --cc cubic --set "stack: linux:cubic" --set "stack: quic:ngtcp2:cubic"',
    "study c4 --cc ./c4.so",
    'study rmcat --cc "{plugin: ./scream.so, rmax: 1Gbit}"',
)
def study_(
    study: Annotated[str, Argument(metavar="STUDY", autocompletion=study_names)],
    sets: Annotated[
        list[str] | None,
        Option(
            "--set",
            metavar="PARAMETERS",
            help="Parameters of the control, or in its place a plug-in or a stack; repeated.",
        ),
    ] = None,
    control: Annotated[
        str,
        Option(
            "--cc",
            metavar="CONTROL",
            help="The control they are of; without --set one that c4 or rmcat is to judge.",
        ),
    ] = "copa",
    quick: Quick = True,
    out: ManyFolder = None,
    workers: Workers = None,
    as_json: Json = False,
) -> None:
    """Tries parameters of a control on every claim of a study.

    Beside them stands what it has by default. Without --set, c4 or rmcat judges a control that it
    does not name, such as a plug-in.
    """
    programs.identify()
    chosen = find.chosen(study)
    if len(chosen) > 1:
        raise UserError(f"'{study}' is several studies: {', '.join(one.name for one in chosen)}")
    (one,) = chosen
    if not sets:
        own = reproduce.Campaign(tried.of_control(one, control), quick, out)
        judge(own, workers, as_json)
    place = out or Path("runs") / f"{one.name}-sets"
    screen = terminal.console(stderr=as_json)
    raise typer.Exit(
        tried.run(one, tried.Sets(control, ("", *sets)), quick, place, screen, workers, as_json)
    )
