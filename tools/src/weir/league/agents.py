# SPDX-License-Identifier: BSD-3-Clause
"""The benchmark of weir.gym as a table: controls, a trained agent and the oracle side by side.

A control runs in the place of the agent, in the episodes that an agent has with the same seeds, and
has the same score. A class in Python is called once a step, as an agent is. agents.json beside this
file has the rows of BASELINES.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from weir.analysis import folder, spread
from weir.base import units
from weir.base.errors import UserError
from weir.base.page import Part, Table, Text
from weir.environments import benchmark, trained
from weir.environments.benchmark import STEP, TESTS, Environment
from weir.league import entry
from weir.league.entry import Entry, File, Values
from weir.many.cells import parted, run_cells
from weir.runner.options import Options
from weir.studies.evaluate.scene import Control, control_of

KEPT = Path(__file__).with_name("agents.json")
TRAINED = "trained"
BASELINES = ("newreno", "cubic", "bbr", TRAINED)
SCORE, GOODPUT, QUEUE, ORACLE = range(4)  # places in what benchmark.measured returns
Interval = tuple[float, float, float]  # mean, low and high


def control(written: str) -> Control:
    """Returns a baseline, or what the command line names."""
    if written == TRAINED:
        found = Control(TRAINED, control_of(f"{trained.__file__}:Trained").keys)
    else:
        found = control_of(written)
    return Control(found.name, found.keys.replace("{python: ", f"{{every: {STEP}, python: "))


def cells(one: Control, name: str, environment: Environment) -> list[Options]:
    """Returns the runs of a control in an environment, one for each test seed."""
    episodes, made = environment.episodes(one.keys), []
    for seed in TESTS:
        overrides, number = episodes.begin(np.random.default_rng(seed))
        texts = tuple(f"{key}={value}" for key, value in overrides.items())
        place = Path(f"{one.name}-{name}-{seed}")
        made.append(Options(config=benchmark.LINK, out=place, overrides=texts, seed=number))
    return made


def row(written: str, out: Path, screen: Console, workers: int | None) -> Entry:
    """Runs a control in all environments and returns its row."""
    one, environments = control(written), benchmark.read()
    runs = {name: cells(one, name, environment) for name, environment in environments.items()}
    screen.print(f"{one.name}:", markup=False)
    whole = [cell for some in runs.values() for cell in some]
    ran, failed = parted(run_cells(whole, out / one.name, workers=workers, console=screen))
    scores = {
        name: [measured(ran.get(cell.name), environments[name]) for cell in some]
        for name, some in runs.items()
    }
    return Entry(name=one.name, written=written, summary="", scores=scores, failed=failed)


def measured(run: Path | None, environment: Environment) -> Values:
    """Returns the rounded values of a run; of one that failed none is known."""
    if run is None:
        return [None] * 4
    found = benchmark.measured(folder.load(run), environment.base_rtt_ns)
    return [None if one is None else float(f"{one:.{entry.DIGITS}g}") for one in found]


def digest() -> str:
    """Returns a digest of what is run: with another one, kept rows are outdated."""
    files = (benchmark.PLACE, benchmark.LINK)
    text = b"".join(file.read_bytes() for file in files) + json.dumps(list(TESTS)).encode()
    return hashlib.sha256(text).hexdigest()[:16]


def kept() -> File | None:
    return entry.kept(KEPT, digest())


def all_rows(
    given: Sequence[str], out: Path, screen: Console, rerun: bool, workers: int | None
) -> list[Entry]:
    """Returns the rows of BASELINES, kept ones unless `rerun`, then of those given."""
    file = None if rerun else kept()
    rows = [row(one, out, screen, workers) for one in BASELINES] if file is None else file.rows
    for written in given:
        if control(written).name in BASELINES:
            raise UserError(f"league: {written}: the benchmark has a row of that name")
    return [*rows, *(row(one, out, screen, workers) for one in given)]


def interval(values: Sequence[float | None]) -> Interval:
    """Returns a mean over the seeds with its interval; NaN is not known."""
    known = np.array([value for value in values if value is not None], np.float64)
    if known.size < len(values):
        return (np.nan,) * 3
    (mean,), (low,), (high,) = spread.intervals([known])
    return float(mean), float(low), float(high)


def column(one: Entry, name: str, index: int) -> Values:
    """Returns what its runs in an environment have of the values of benchmark.measured."""
    return [seed[index] for seed in one.scores[name]]


def gaps(one: Entry, name: str) -> Values:
    """Returns how far its scores are below the oracle's, seed by seed."""
    pairs = [(seed[ORACLE], seed[SCORE]) for seed in one.scores[name]]
    return [None if None in pair else pair[0] - pair[1] for pair in pairs]  # type: ignore[operator]


def below(one: Entry) -> float | None:
    """Returns the mean of these gaps over the environments in which they are known."""
    known = [mean for name in one.scores if math.isfinite(mean := interval(gaps(one, name))[0])]
    return math.fsum(known) / len(known) if known else None


def decimals(value: float | None) -> str:
    return units.NONE if value is None else f"{value:.2f}"


def table(rows: Sequence[Entry]) -> Table:
    """Returns the scores: an environment a line, the oracle and a control a column."""
    lines = []
    for name in rows[0].scores:
        columns = [column(rows[0], name, ORACLE), *(column(one, name, SCORE) for one in rows)]
        lines.append([name, *(spread.stated(decimals, *interval(one)) for one in columns)])
    lines.append(["below the oracle", units.NONE, *(decimals(below(one)) for one in rows)])
    return Table(["environment", "oracle", *(one.name for one in rows)], lines)


def details(rows: Sequence[Entry]) -> Table:
    """Returns the mean gap to the oracle with its interval, goodput and queue."""

    def cell(one: Entry, name: str) -> str:
        goodput, queue = (interval(column(one, name, at))[0] for at in (GOODPUT, QUEUE))
        gap = spread.stated(decimals, *interval(gaps(one, name)))
        return f"{gap}; {units.number(goodput)} %; {units.number(queue)} ms"

    lines = [[name, *(cell(one, name) for one in rows)] for name in rows[0].scores]
    return Table(["environment", *(one.name for one in rows)], lines)


def site() -> Iterator[Part]:
    """Yields the benchmark for the site: environments, scores, goodput and queues."""
    rows = [[name, one.shows, one.base_rtt] for name, one in benchmark.read().items()]
    yield Table(("environment", "what it has", "smallest RTT"), rows, 2)
    file = kept()
    if file is None:
        yield Text("The scores are of other environments: `tools/weir league --gym --write-docs`.")
        return
    yield Text(f"Mean scores with 95 % intervals over {len(TESTS)} seeds, of commit {file.commit}:")
    yield table(file.rows)
    yield Text(
        "How far that is below the oracle, seed by seed; mean goodput, of the path's; mean"
        " RTT beyond the path's:"
    )
    yield details(file.rows)


def data(rows: Sequence[Entry]) -> list[dict[str, Any]]:
    """Returns the rows as numbers, for --json."""
    return [{"name": one.name, "below": below(one), "failed": one.failed,
             "seeds": list(TESTS), "scores": one.scores} for one in rows]  # fmt: skip
