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
    - delay: {{delay: {delay}, late: {late}, late_by: 50ms}}
  reverse:
    - loss: {{rate: 0%}}
    - delay: {{delay: {delay}}}
flows:
{flows}schedule: [{schedule}]
telemetry: {{level: 1}}
"""
USUAL = {
    "duration": "30s",
    "warmup": "10s",
    "loss": "0%",
    "rate": "50Mbit",
    "delay": "20ms",
    "late": "0%",
    "queue": "{fifo: {limit: 1BDP}}",
    "schedule": "",
}


def config(*flows: str, **changes: str) -> str:
    groups = "".join(f"  - {{{group}}}\n" for group in flows or ("cc: CC",))
    return PATH.format(**{**USUAL, **changes, "flows": groups})


def packets(limit: int) -> str:
    """Returns a queue of so many packets."""
    return f"{{fifo: {{limit: {limit}pkt}}}}"


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


@dataclass(frozen=True)
class Condition:
    """A network, and the bounds that any control keeps there, whatever its goals are.

    used: least goodput of all flows, as a part of the link's rate; lost: largest part of the first
    group's segments that the path drops; marked: of them that it marks. They are at least a tenth
    beyond what the controls within and those of Linux 6.1 and 6.12 have; most are far beyond it.
    counted: without any of these in the summary the condition has not been met.
    """

    config: str
    used: float = 0.0
    lost: float = 1.0
    marked: float = 1.0
    counted: str = ""

    def verdict(self, summary: RunSummary) -> tuple[bool | None, str]:
        """Returns whether a run kept the bounds, and what was seen."""
        first, link = summary.groups[0], summary.links["forward"]
        goodput = sum(units.measured(group.goodput_bps) for group in summary.groups)
        sent = units.measured(first.sent_segs) or 1
        seen = (
            (goodput / units.measured(link.rate_mean_bps), "of the link", "least", self.used),
            (units.measured(first.drops) / sent, "of packets lost", "most", self.lost),
            (link.marks / sent, "of packets marked", "most", self.marked),
        )
        said, kept = [], True
        for value, what, end, bound in seen:
            if bound == (0.0 if end == "least" else 1.0):
                continue
            good = value >= bound if end == "least" else value <= bound
            wanted = "" if good else f" (at {end} {units.percent(bound, 1)} wanted)"
            said.append(f"{units.percent(value, 1)} {what}{wanted}")
            kept = kept and good
        count = getattr(first, self.counted) if self.counted else 1
        if self.counted:
            said.append(f"{self.counted.replace('_', ' ')}: {count}")
        return kept if count > 0 else None, ", ".join(said)


def pieces(size: str, pause: str) -> str:
    """Returns a flow that sends so much at a time over one connection, with pauses."""
    sizes = f"sizes: {{mean: {size}}}, think: {pause}, times: fixed, connection: keep"
    return f"cc: CC, source: {{closed: {{{sizes}}}}}"


DOWN = "{at: 5s, forward.loss.rate: 100%}, {at: 8s, forward.loss.rate: 0%}"
LATE = "{at: 12s, forward.delay.delay: 900ms}, {at: 14s, forward.delay.delay: 20ms}"
FIVE = ", ".join(  # losses of a connection that has sent more than 2^32 bytes
    f"{{at: {at}s, forward.loss.rate: 100%}}, {{at: {at + 0.02}s, forward.loss.rate: 0%}}"
    for at in (38, 38.5, 39, 39.5, 40)
)
LONG = {"duration": "60s", "warmup": "20s"}
CONDITIONS = {
    # What ends while it is measured is the timeout that found the path back.
    "timeouts": Condition(config(warmup="4s", schedule=DOWN), used=0.3, counted="timeouts"),
    "undo": Condition(config(schedule=LATE), used=0.3, counted="spurious_timeouts"),
    # 2.5 MB in 20 s; a piece takes 0.5 s at a third of the link.
    "idle": Condition(config(pieces("500kB", "2s")), used=0.02),
    # CoDel marks more and more until it is heard. Of Linux's DCTCP, which wants marks, it marks
    # 12 % of the packets here, of a control that does not listen 18 % or more.
    "ECN": Condition(
        config("cc: CC, ecn: ect0", queue="{codel: {target: 5ms, ecn: yes}}"),
        used=0.3,
        marked=0.15,
    ),
    "heavy loss": Condition(
        config(loss="30%", rate="1Mbit", warmup="0s", duration="120s"),
        used=0.0001,
        counted="timeouts",
    ),
    "steady link": Condition(config(), used=0.6, lost=0.05),
    "small segments": Condition(config("cc: CC, mss: 536B"), used=0.5, lost=0.1),
    "short round trips": Condition(
        config(rate="1Gbit", delay="150us", queue=packets(100), duration="6s", warmup="1s"),
        used=0.5,
    ),
    "4 GB": Condition(
        config(
            "cc: CC, mss: 9000B",
            rate="1Gbit",
            delay="10ms",
            queue="{fifo: {limit: 0.5BDP}}",
            schedule=FIVE,
            duration="60s",
            warmup="45s",
        ),
        used=0.4,
        lost=0.1,
    ),
    "after losses": Condition(
        config(
            loss="10%",
            delay="2ms",
            schedule="{at: 8s, forward.loss.rate: 0%}",
            duration="40s",
            warmup="15s",
        ),
        used=0.5,
        lost=0.05,
    ),
    "small windows": Condition(
        config(loss="3%", rate="5Mbit", delay="2ms", queue=packets(4), duration="40s"), lost=0.15
    ),
    "marks in a row": Condition(
        config("cc: CC, ecn: ect0", queue="{step: {limit: 2BDP, threshold: 0.5BDP}}", **LONG),
        used=0.7,
        lost=0.05,
    ),
    "bursts": Condition(
        config(pieces("500kB", "2s"), rate="500Mbit", queue=packets(100)), lost=0.01
    ),
    "slower link": Condition(
        config(
            queue=packets(160),
            schedule="{at: 10s, forward.link.rate: 10Mbit}",
            duration="150s",
            warmup="110s",
        ),
        used=0.5,
        lost=0.1,
    ),
    "shorter path": Condition(
        config(delay="100ms", schedule="{at: 10s, forward.delay.delay: 10ms}", **LONG), used=0.5
    ),
    "reordering": Condition(
        config(late="0.2%", queue="{fifo: {limit: 0.5BDP}}", **LONG), used=0.3, lost=0.12
    ),
    "lost ACKs": Condition(
        config(schedule="{at: 1s, reverse.loss.rate: 50%}", **LONG), used=0.2, lost=0.15
    ),
    "receive window": Condition(config("cc: CC, rwnd: 64kB"), used=0.12, lost=0.01),
    "two flows": Condition(config("cc: CC", "cc: CC, start: 10s", **LONG), used=0.5, lost=0.08),
}


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
    """Runs all checks, on as many CPUs as there are.

    folder: of the configs of those that fail.
    """
    first = by_hand(control)
    if not all(result.passed in (True, None) for result in first):
        return first
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        rest = list(pool.map(lambda name: bounded(name, control, folder), CONDITIONS))
        others = pool.map(lambda check: check(control, folder), (alone, repeats))
        return [*first, *rest, *others]


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
