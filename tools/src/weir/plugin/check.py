# SPDX-License-Identifier: BSD-3-Clause
"""weir check cc: what a congestion control must do on any path, and what it does on usual ones.

The control answers by hand first, to values that no path gives (tools/check/cc.c), then to the
transport: losses, timeouts, pauses, marks, spurious recoveries. A check that can be passed only by
one kind of control is none: each says what any control must do.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import msgspec

from weir.analysis import run_summary
from weir.analysis.run_summary import RunSummary
from weir.attack import registry
from weir.base import tables, units
from weir.base.errors import UserError
from weir.base.programs import find_program

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


PATH = """
seed: 1
duration: {duration}
warmup: {warmup}
paths:
  forward:
    - loss: {{rate: {loss}}}
    - link: {{rate: {rate}, queue: {queue}}}
    - delay: {{delay: 20ms}}
  reverse:
    - delay: {{delay: 20ms}}
flows:
{flows}schedule: [{schedule}]
telemetry: {{level: 1}}
"""
USUAL = {
    "duration": "30s",
    "warmup": "10s",
    "loss": "0%",
    "rate": "50Mbit",
    "queue": "{fifo: {limit: 1BDP}}",
    "schedule": "",
}


def config(*flows: str, **changes: str) -> str:
    groups = "".join(f"  - {{{group}}}\n" for group in flows or ("cc: CC",))
    return PATH.format(**{**USUAL, **changes, "flows": groups})


def written(control: str) -> str:
    """Returns the value of `cc` in a config: a name, or a plug-in by its file."""
    if not control.endswith(".so"):
        return control
    return json.dumps({"plugin": str(Path(control).resolve())})


def run(text: str, control: str, *options: str) -> Done:
    """Runs an experiment with the control in it."""
    with tempfile.TemporaryDirectory(prefix="weir-check-") as folder:
        argv = [str(find_program("sim")), "-", "--out", f"{folder}/run", "--json", *options]
        try:
            done = subprocess.run(
                argv,
                input=text.replace("CC", written(control)),
                capture_output=True,
                text=True,
                timeout=RUN_S_MAX,
            )
        except subprocess.TimeoutExpired:
            return Done(None, f"the run did not end within {RUN_S_MAX} s")
    if done.returncode != 0 or not done.stdout:
        return Done(None, why(done))
    return Done(run_summary.decode(json.loads(done.stdout), "weir-sim"))


def why(done: subprocess.CompletedProcess[str]) -> str:
    """Returns the last sentence of a program that has no answer."""
    said = done.stderr.strip().splitlines()
    return said[-1] if said else f"it ended the program with status {done.returncode}"


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
    if not control.endswith(".so") and control not in tables.read()["cc"]:
        raise UserError(
            f"check: '{control}' is neither a plug-in, FILE.so, nor one of weir list cc"
        )
    path = str(Path(control).resolve()) if control.endswith(".so") else control
    argv = [str(find_program("check-cc")), path]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=RUN_S_MAX)
    except subprocess.TimeoutExpired:
        return [Result("any values", False, f"the calls did not end within {RUN_S_MAX} s")]
    if done.returncode == 2:
        raise UserError(done.stderr.strip().partition(": ")[2])
    if done.returncode != 0 or not done.stdout:
        return [Result("any values", False, why(done))]
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


def goes_on(done: Done, at_least: float, counted: str) -> tuple[bool | None, str]:
    """Returns whether the control used so much of the link, or None if nothing was `counted`.

    The second value is a text on both.
    """
    if done.summary is None:
        return False, done.said
    count = getattr(done.summary.groups[0], counted)
    used = units.measured(done.summary.links["forward"].utilisation)
    found = f"{units.percent(used, 0)} of the link; {counted.replace('_', ' ')}: {count}"
    return (used >= at_least if count > 0 else None), found


def timeouts(control: str) -> Result:
    """Checks that it uses the link soon after a path was down for 3 s."""
    down = "{at: 5s, forward.loss.rate: 100%}, {at: 8s, forward.loss.rate: 0%}"
    # What ends while it is measured is the timeout that found the path back.
    done = run(config(warmup="4s", schedule=down), control)
    return Result("timeouts", *goes_on(done, 0.3, "timeouts"))


def spurious(control: str) -> Result:
    """Checks that it uses the link after a delay that lets timeouts fire and loses nothing."""
    longer = "{at: 12s, forward.delay.delay: 900ms}, {at: 14s, forward.delay.delay: 20ms}"
    done = run(config(schedule=longer), control)
    return Result("undo", *goes_on(done, 0.3, "spurious_timeouts"))


def pauses(control: str) -> Result:
    """Checks that no transfer of a source that pauses stands still."""
    source = "source: {closed: {sizes: {mean: 500kB}, think: 2s, times: fixed, connection: keep}}"
    done = run(config(f"cc: CC, {source}"), control)
    if done.summary is None:
        return Result("idle", False, done.said)
    megabytes = done.summary.groups[0].acked_bytes / 1e6
    # 20 s are measured; a transfer of 500 kB takes 0.5 s at a third of the link, and 2 s of pause.
    return Result("idle", megabytes >= 3, f"{megabytes:.1f} MB in pieces of 0.5 MB, 2 s between")


def marks(control: str) -> Result:
    """Checks that it answers a queue that marks; one that says it does not is refused there."""
    queue = "{codel: {target: 5ms, ecn: yes}}"
    done = run(config("cc: CC, ecn: ect0", queue=queue), control)
    if done.summary is None and "does not answer ECN marks" in done.said:
        return Result("ECN", None, "it says that it does not answer marks; `ecn:` is refused")
    if done.summary is None:
        return Result("ECN", False, done.said)
    link = done.summary.links["forward"]
    marked = link.marks / done.summary.groups[0].sent_segs
    used = units.measured(link.utilisation)
    # CoDel marks more and more until it is heard. Weir's own have up to 1.5 % of packets marked
    # here (Prague, which wants marks), one that does not listen has 20 %.
    found = f"{units.percent(marked, 2)} of packets marked, {units.percent(used, 0)} of the link"
    return Result("ECN", marked < 0.05 and used > 0.3, found)


def lossy(control: str) -> Result:
    """Checks that some data arrives where a third of all packets is lost."""
    done = run(config(loss="30%", rate="1Mbit", warmup="0s", duration="120s"), control)
    return Result("heavy loss", *goes_on(done, 0.0001, "timeouts"))


def repeats(control: str) -> Result:
    """Checks that telemetry has the same bytes twice, on one thread and on two."""
    text = config("cc: CC, count: 5, stagger: 1s", loss="0.1%")
    runs = [run(text, control, "--threads", threads) for threads in ("1", "1", "2")]
    wrong = next((done.said for done in runs if done.summary is None), None)
    if wrong is not None:
        return Result("same bytes", False, wrong)
    digests = {done.summary.digest for done in runs if done.summary is not None}
    return Result("same bytes", len(digests) == 1, "twice on one thread, once on two")


CHECKS: tuple[Callable[[str], Result], ...] = (timeouts, spurious, pauses, marks, lossy, repeats)


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


def conformance(control: str) -> list[Result]:
    """Runs all checks, on as many CPUs as there are."""
    first = by_hand(control)
    if not all(result.passed in (True, None) for result in first):
        return first
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return first + list(pool.map(lambda check: check(control), CHECKS))


def name_of(control: str) -> str:
    """Returns a plug-in's file without its folder; a control's name."""
    return Path(control).name.removesuffix(".so")


def scenarios(control: str) -> list[Number]:
    """Runs the eight scenarios, for the control and those that stand beside it."""
    controls = list(dict.fromkeys([control, *BESIDE]))
    cells = [(text, control) for _, text, _ in SCENARIOS for control in controls]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = list(pool.map(lambda cell: run(*cell, "--threads", "1"), cells))
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
    named = {
        name_of(one): json.loads(written(one)) if one.endswith(".so") else one
        for one in dict.fromkeys([control, *BESIDE])
    }
    return registry.tried(named)
