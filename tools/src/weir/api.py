# SPDX-License-Identifier: BSD-3-Clause
"""The Python API's runs: opens one, runs one, and shows one with its figures."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from weir.analysis import folder
from weir.base import configs
from weir.base.configs import Config
from weir.base.errors import UserError
from weir.base.programs import identify
from weir.runner.options import Options, default_out, refuse_sweep
from weir.runner.run import run_live, run_sim
from weir.runner.session import Listener, Silent, end_if_interrupted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from weir.report.glance import Chosen


class Run(folder.Run):
    """A run folder that was read, as `weir.open` and `weir.run` give it: with its figures."""

    def __repr__(self) -> str:
        from weir.report import glance

        return glance.text(self)

    def _repr_html_(self) -> str:
        """Returns what a notebook shows: the tables of the report."""
        from weir.report import glance

        return glance.html(self)

    def figure(self, name: str) -> Chosen:
        """Returns a figure of the report by its name, which a notebook shows: run.figure("rtt").

        Its frame() is its data, its paper() a figure of matplotlib's, its code() a script that
        draws it. UserError: there is none.
        """
        from weir.report import glance

        return glance.figure(self, name)

    def plot(self, figure: str, *, ax: Axes | Sequence[Axes] | None = None) -> Figure:
        """Returns a figure of the report by its name, as `weir plot` lists them: run.plot("rtt").

        ax: draws into these axes instead, one for each panel of the figure, and returns theirs.
        UserError: there is no such figure, or it has another number of panels.
        """
        from weir.report import glance

        return glance.plot(self, figure, ax)


def open(path: Path | str) -> Run:
    """Reads a run folder; half a run is a run, with a note."""
    return Run(**vars(folder.load(path)))


def run(
    config: Path | str | Config,
    *,
    overrides: Config | None = None,
    out: Path | str | None = None,
    seed: int | None = None,
    duration: str | None = None,
    live: bool = False,
    force: bool = False,
) -> Run:
    """Runs an experiment and opens what it recorded: `weir run CONFIG` without the report.

    config is a file, or what would be in one as a dict; files that a dict names have whole paths.
    overrides replaces values of the config by their keys: {"flows.0.count": 10}. out is the run
    folder [runs/CONFIG-CHANGES-TIME]; force replaces the run in it. duration has its unit: "10s".
    Ctrl-C ends the run early, its folder complete, and raises KeyboardInterrupt (SIGTERM and SIGHUP
    raise SystemExit). UserError: the config is wrong, the programs were not built, or the run
    failed; its folder then has what there was to record.
    """
    given = tuple(f"{key}={configs.text(value)}" for key, value in (overrides or {}).items())
    listener = Silent()
    with configs.as_file(config) as path:
        place = default_out(path, given, seed, live) if out is None else Path(out)
        options = Options(
            config=path, out=place, overrides=given, seed=seed, duration=duration, force=force
        )
        # A dict's file goes; the folder has what it said.
        lasting = place / "config.yaml" if isinstance(config, Mapping) else path
        os.environ["WEIR_COMMAND"] = shlex.join(replace(options, config=lasting).command(live))
        identify()
        status, loaded = execute(options, listener, run_live if live else run_sim)
    end_if_interrupted(status)
    if status != 0 or loaded is None:
        said = listener.lines[-1] if listener.lines else f"the run ended with status {status}"
        raise UserError(said.removeprefix("weir: "), status or 1)
    return loaded


def execute(
    options: Options, listener: Listener, runner: Callable[[Options, Listener], int]
) -> tuple[int, Run | None]:
    """Runs an experiment; returns the exit status, and the run, None if it never began.

    runner: run_sim, run_live, or another that returns an exit status and tells the listener why.
    """
    refuse_sweep(options.config)
    before = folder.written(options.out)
    with folder.locked(options.out):
        pass  # the programs lock it themselves
    status = runner(options, listener)
    if folder.written(options.out) == before:
        return status or 1, None
    with folder.locked(options.out):
        return status, open(options.out)
