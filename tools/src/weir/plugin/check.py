# SPDX-License-Identifier: BSD-3-Clause
"""weir check cc: what a congestion control must do on any path, and what it does on usual ones.

The control answers by hand first, to values that no path gives (tools/check/cc.c), then to the
transport: losses, timeouts, pauses, marks, spurious recoveries. A check that can be passed only by
one kind of control is none: each says what any control must do.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec

from weir.analysis import run_summary
from weir.analysis.run_summary import RunSummary
from weir.attack import registry
from weir.base import configs, programs, tables, units
from weir.base.errors import UserError
from weir.base.programs import find_program
from weir.plugin.conditions import CONDITIONS, config

BESIDE = ("newreno", "cubic", "bbr", "copa")
RUN_S_MAX = 120


@dataclass(frozen=True)
class Result:
    """Outcome of a check; with `passed` None it does not apply."""

    name: str
    passed: bool | None
    found: str


@dataclass(frozen=True)
class Number:
    """A number of a scenario, for the control and those beside it."""

    scenario: str
    what: str
    values: dict[str, str]


@dataclass(frozen=True)
class Done:
    """A run: its summary, or the sentence in its place."""

    summary: RunSummary | None
    said: str = ""


def written(control: str) -> str:
    """Returns configs.control_of as text for a config."""
    value = configs.control_of(control)
    return value if isinstance(value, str) else json.dumps(value)


def run(text: str, control: str, *options: str) -> Done:
    """Runs an experiment with the control in it."""
    with tempfile.TemporaryDirectory(prefix="weir-check-") as folder:
        argv = [str(find_program("sim")), "-", "--out", f"{folder}/run", "--json", *options]
        pipe = subprocess.PIPE
        with programs.child(argv, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
            try:
                out, err = process.communicate(text.replace("CC", written(control)), RUN_S_MAX)
            except subprocess.TimeoutExpired:
                process.kill()
                return Done(None, f"the run did not end within {RUN_S_MAX} s")
    if process.returncode != 0 or not out:
        return Done(None, why(err, process.returncode))
    return Done(run_summary.decode(json.loads(out), "weir-sim"))


def why(said: str, status: int) -> str:
    """Returns the last sentence of a program that has no answer."""
    lines = said.strip().splitlines()
    return lines[-1] if lines else f"it ended the program with status {status}"


def summary_of(done: Done, control: str) -> RunSummary:
    """Returns the summary of a run that must have ended well."""
    if done.summary is None:
        raise UserError(f"check: {control}: {done.said}", 1)
    return done.summary


class Calls(msgspec.Struct):
    """The answer of weir-check-cc."""

    calls: int
    fault: str | None
    allocations: int | None
    same: bool
    moved_same: bool


def by_hand(control: str) -> list[Result]:
    """Checks what it answers to values that no path gives."""
    named = control.endswith(".so") or control.startswith("{")
    if not named and control not in tables.read()["cc"]:
        raise UserError(
            f"check: '{control}' is neither a plug-in, FILE.so, nor one of weir list cc; one with"
            " parameters is {plugin: FILE.so, KEY: VALUE}"
        )
    argv = [str(find_program("check-cc")), written(control)]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=RUN_S_MAX)
    except subprocess.TimeoutExpired:
        return [Result("any values", False, f"the calls did not end within {RUN_S_MAX} s")]
    if done.returncode == 2:
        raise UserError(done.stderr.strip().partition(": ")[2])
    if done.returncode != 0 or not done.stdout:
        return [Result("any values", False, why(done.stderr, done.returncode))]
    said = msgspec.json.decode(done.stdout, type=Calls)
    calls, counted = f"{said.calls} calls with values from 0 to huge", said.allocations
    return [
        Result("any values", said.fault is None, said.fault or f"{calls}: windows and rates"),
        Result(
            "no allocation",
            None if counted is None else counted == 0,
            "this build cannot count" if counted is None else f"{counted} in {calls}",
        ),
        Result("same answers", said.same, f"{calls}, twice"),
        Result("state moves", said.moved_same, "the same calls while the flow's memory moves"),
    ]


def bounded(name: str, control: str, folder: Path) -> Result:
    """Checks that the control keeps the bounds of a condition.

    If it does not, its config is written into the folder, for weir run.
    """
    condition = CONDITIONS[name]
    done = run(condition.config, control)
    if done.summary is None and "does not answer ECN marks" in done.said:
        return Result(name, None, "it says that it does not answer marks; `ecn:` is refused")
    kept, found = condition.verdict(done.summary) if done.summary else (False, done.said)
    if kept is False:
        found += to_run(name, condition.config, control, folder)
    return Result(name, kept, found)


def to_run(name: str, text: str, control: str, folder: Path) -> str:
    """Writes the config of a check into the folder; returns how it is run."""
    path = folder / f"{name.replace(' ', '-')}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.lstrip().replace("CC", written(control)))
    return f"; to run it: weir run {path}"


APART = """
seed: 1
duration: 25s
paths:
  forward:
    - link: {{rate: 20Mbit, queue: {{fifo: {{limit: 1BDP}}}}}}
    - delay: {{delay: 10ms}}
  other:
    - loss: {{rate: {loss}}}
    - link: {{rate: 20Mbit, queue: {{fifo: {{limit: 1BDP}}}}}}
    - delay: {{delay: 10ms}}
  reverse:
    - delay: {{delay: 10ms}}
  back:
    - delay: {{delay: 10ms}}
flows:
  - {{cc: CC, start: 10s}}
  - {{cc: CC, path: {{forward: other, reverse: back}}}}
telemetry: {{level: 0}}
"""


def alone(control: str, folder: Path) -> Result:
    """Checks that a flow does the same whatever happens to another one on paths of its own."""
    runs = [run(APART.format(loss=loss), control, "--threads", "1") for loss in ("0%", "5%")]
    wrong = next((done.said for done in runs if done.summary is None), None)
    if wrong is not None:
        return Result("own state", False, wrong)
    acked = [done.summary.groups[0].acked_bytes for done in runs if done.summary is not None]
    found = "{} and {} bytes, beside a flow on other paths without losses and with 5 %"
    same, said = acked[0] == acked[1], found.format(*acked)
    if not same:
        said += to_run("own state", APART.format(loss="5%"), control, folder)
        said += ", and with -o paths.other.0.loss.rate=0%"
    return Result("own state", same, said)


def repeats(control: str, folder: Path) -> Result:
    """Checks that telemetry has the same bytes twice, on one thread and on two."""
    text = config("cc: CC, count: 5, stagger: 1s", loss="0.1%")
    runs = [run(text, control, "--threads", threads) for threads in ("1", "1", "2")]
    wrong = next((done.said for done in runs if done.summary is None), None)
    if wrong is not None:
        return Result("same bytes", False, wrong)
    digests = {done.summary.digest for done in runs if done.summary is not None}
    same, said = len(digests) == 1, "twice on one thread, once on two"
    if not same:
        said += to_run("same bytes", text, control, folder) + " --threads 1, and compare digests"
    return Result("same bytes", same, said)


def utilisation(summary: RunSummary) -> str:
    return units.percent(summary.links["forward"].utilisation, 1)


def queue(summary: RunSummary) -> str:
    return units.time(summary.links["forward"].queue_mean_ns)


def worst(summary: RunSummary) -> str:
    return units.time(summary.links["forward"].sojourn_p99_ns)


def fairness(summary: RunSummary) -> str:
    jfi = summary.groups[0].jfi
    return units.NONE if jfi is None else f"{jfi:.3f}"


def goodputs(summary: RunSummary) -> list[float]:
    return [group.goodput_bps for group in summary.groups]


def part(summary: RunSummary) -> str:
    mine, other = goodputs(summary)
    return units.percent(mine / (mine + other), 1)


def times(summary: RunSummary) -> str:
    mine, other = goodputs(summary)
    return f"{mine / other:.2f}" if other else units.NONE


Reader = Callable[[RunSummary], str]
STEPS = "{at: 15s, forward.link.rate: 10Mbit}, {at: 22s, forward.link.rate: 50Mbit}"
SCENARIOS: tuple[tuple[str, str, dict[str, Reader]], ...] = (
    ("alone", config(), {"link used": utilisation, "queue": queue}),
    (
        "buffer of 0.1 BDP",
        config(queue="{fifo: {limit: 0.1BDP}}"),
        {"link used": utilisation},
    ),
    (
        "buffer of 10 BDP",
        config(queue="{fifo: {limit: 10BDP}}", duration="60s", warmup="20s"),
        {"queue": queue, "link used": utilisation},
    ),
    ("1 % of packets lost", config(loss="1%"), {"link used": utilisation, "queue": queue}),
    (
        "two, 5 s apart",
        config("cc: CC, count: 2, stagger: 5s", duration="60s", warmup="20s"),
        {"Jain's index": fairness},
    ),
    (
        "RTTs of 40 and 160 ms",
        config("cc: CC, base_rtt: 40ms", "cc: CC, base_rtt: 160ms", duration="60s", warmup="20s"),
        {"short over long": times},
    ),
    (
        "beside CUBIC",
        config("cc: CC", "cc: cubic", duration="60s", warmup="20s"),
        {"part of the goodput": part},
    ),
    (
        "50, 10, 50 Mbit/s",
        config(schedule=STEPS),
        {"link used": utilisation, "p99 of the queue": worst},
    ),
)


def conformance(control: str, folder: Path) -> list[Result]:
    """Runs all checks; folder: of the configs of those that fail."""
    first = by_hand(control)
    if not all(result.passed in (True, None) for result in first):
        return first
    checks: list[Callable[[str, Path], Result]] = [alone, repeats]
    checks[:0] = (partial(bounded, name) for name in CONDITIONS)
    return [*first, *programs.several(partial(check, control, folder) for check in checks)]


def name_of(control: str) -> str:
    """Returns a plug-in's file without its folder, and its end if no control within is named so."""
    name = configs.control_name(control)
    return f"{name}.so" if control != name and name in tables.read()["cc"] else name


def scenarios(control: str) -> list[Number]:
    """Runs the eight scenarios, for the control and those that stand beside it."""
    controls = list(dict.fromkeys([control, *BESIDE]))
    cells = [(text, control) for _, text, _ in SCENARIOS for control in controls]
    runs = programs.several(partial(run, *cell, "--threads", "1") for cell in cells)
    numbers = []
    for row, (name, _, readers) in enumerate(SCENARIOS):
        own = dict(zip(controls, runs[row * len(controls) :], strict=False))
        numbers += [
            Number(
                name, what, {name_of(key): read(summary_of(done, key)) for key, done in own.items()}
            )
            for what, read in readers.items()
        ]
    return numbers


def attacks(control: str) -> list[registry.Tried]:
    """Runs the control, and those beside it, under the attacks of configs/attacks."""
    several = dict.fromkeys([control, *BESIDE])
    return registry.tried({name_of(one): configs.control_of(one) for one in several})
