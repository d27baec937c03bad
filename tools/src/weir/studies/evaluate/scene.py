# SPDX-License-Identifier: BSD-3-Clause
"""Runs of `weir evaluate`: a control in a place of a scene, judged by what CUBIC does there."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from weir.analysis.folder import Run
from weir.base import configs, tables
from weir.base.errors import UserError
from weir.study.claim import Claim, Setup
from weir.study.measures import of_run, queue_ms, utilisation, within
from weir.study.scenario import Measure, lost_percent, of_group, shown, transfers_ms

CONFIG = Path(__file__).with_name("path.yaml")
STANDARD = "cc: cubic"
SEEDS = 5  # of --full
LINK = "{link: {rate: 50Mbit, queue: {fifo: {limit: 250kB}}}}"
WEB = "source: {closed: {think: 500ms, sizes: {law: fixed, mean: 100kB}}}"


class Bound(NamedTuple):
    """Bounds of a value, or of it over that of CUBIC in its place, and where they are from."""

    tolerance: str
    beside: bool = False
    low: float = -math.inf
    high: float = math.inf


HARM = "RFC 9743, section 5.2: no more harm than a standards-track control; here CUBIC in its place"
OURS = "our own band: the RFC gives no number"
BOUNDS = {
    "harm": Bound(HARM, True, high=1),
    "time": Bound(f"{HARM}; a tenth more is ours", True, high=1.1),
    "lost": Bound(f"{HARM}; half as much again is ours", True, high=1.5),
    "goodput": Bound(f"{HARM}; half is ours", True, low=0.5),
    "used": Bound(f"{OURS}; half of what CUBIC uses there", True, low=0.5),
    "tenth": Bound(f"{OURS}; a tenth of an equal share is called starvation", low=5),
    "fair": Bound(f"{OURS}; Jain's index of 0.9", low=0.9),
    "backoff": Bound(
        "RFC 9743, section 5.1.1: full backoff is one packet in a round trip, and then less",
        high=10 / 0.04,
    ),
}


@dataclass(frozen=True)
class Control:
    """A control that is evaluated: its name on the page, and the keys of a group that uses it."""

    name: str
    keys: str

    def runs(self, scene: Scene) -> bool:
        """Returns whether it can: guests have no pauses, and QUIC programs start at once."""
        own = " ".join(flow for flow in scene.flows if "NEW" in flow)
        cannot = ("source:", "jitter:", "stagger:") if "quic:" in self.keys else ("source:",)
        return "stack:" not in self.keys or not any(word in own for word in cannot)


def control_of(text: str) -> Control:
    """Reads what configs.control_of does, and FILE.py:CLASS."""
    file, _, name = text.rpartition(":")
    if stack := configs.stack_of(text):
        return Control(text.replace(":", "-"), f"stack: {configs.text(stack)}")
    if text.startswith("{"):
        return Control(configs.control_name(text), f"cc: {json.dumps(configs.control_of(text))}")
    if text.endswith(".so"):
        return Control(Path(text).stem, f"cc: {{plugin: {existing(text)}}}")
    if file.endswith(".py") and name:
        python = json.dumps(f"{json.loads(existing(file))}:{name}")
        return Control(name, f"cc: {{python: {python}}}")
    if text not in tables.read()["cc"]:
        raise UserError(
            f"'{text}' is no control: it is one of weir list cc, FILE.so, FILE.py:CLASS,"
            " linux:CC or quic:STACK:CC, or {plugin: FILE.so, KEY: VALUE}"
        )
    return Control(text, f"cc: {text}")


def existing(file: str) -> str:
    path = Path(file).resolve()
    if not path.is_file():
        raise UserError(f"'{file}' is not there")
    return json.dumps(str(path))


@dataclass(frozen=True)
class Scene:
    """A run of the report: groups of flows, `NEW` where the control is, and changes of the path."""

    name: str
    flows: tuple[str, ...] = ("NEW",)
    changes: tuple[str, ...] = ()

    def setup(self, keys: str, name: str) -> Setup:
        flows = ", ".join("{" + flow.replace("NEW", keys) + "}" for flow in self.flows)
        override = (f"flows=[{flows}]", *self.changes)
        return Setup(f"{self.name}{name}", CONFIG, override, (0, SEEDS))


@dataclass(frozen=True)
class Question:
    """A measurement of a scene; judged, if it has a bound, whose fields are the last ones here."""

    scene: Scene
    says: str
    measure: Measure
    unit: str = ""
    tolerance: str = ""
    beside: bool = False
    low: float = -math.inf
    high: float = math.inf

    def claim(self, control: Control, source: str) -> Claim:
        """Makes the claim of a control."""
        setups: tuple[Setup, ...] = (self.scene.setup(control.keys, ""),)
        says, measure, unit = f"{self.scene.name}: {self.says}", self.measure, self.unit
        if not self.tolerance:
            return shown(says, source, setups, measure, unit)
        if self.beside:
            setups, measure = (*setups, self.scene.setup(STANDARD, "-cubic")), over(measure)
            says, unit = f"{says}, over that with CUBIC in its place", "times"
        return Claim(
            says,
            source,
            "direction",
            setups,
            measure,
            unit,
            low=self.low,
            high=self.high,
            tolerance=self.tolerance,
            why=f"The bound: {self.tolerance}.",
        )


def over(measure: Measure) -> Callable[[Run, Run], float]:
    """Makes the measure of a value over another run's; two that are both 0 are equal."""

    def measured(run: Run, other: Run) -> float:
        own, beside = measure(run), measure(other)
        if own is None or beside is None:
            return math.nan
        if not beside:
            return 1.0 if not own else math.inf
        return float(own / beside)

    return measured


def path(
    rate: str = "50Mbit", ms: str = "40", queue: str = "fifo: {limit: 1BDP}"
) -> tuple[str, ...]:
    """Sets another link, round trip in ms, and queue."""
    half = f"{float(ms) / 2}ms"
    return (
        f"paths.forward.link.rate={rate}",
        f"paths.forward.link.queue={{{queue}}}",
        f"paths.forward.delay.delay={half}",
        f"paths.reverse.delay.delay={half}",
    )


def sent_between(from_s: float, to_s: float) -> Measure:
    """Makes the measure of the segments sent within a time."""

    return lambda run: float(within(run, "interval", from_s, to_s)["sent_segs"].sum())


def sent_per_trip(from_s: float, to_s: float, rtt_s: float) -> Measure:
    """Makes the measure of the segments sent in a round trip within a time."""
    sent = sent_between(from_s, to_s)
    return lambda run: float(sent(run) or 0) * rtt_s / (to_s - from_s)


@of_run
def back_s(run: Run, at_s: float, mbps: float) -> float:
    """Returns how long after a time goodput reaches a rate; infinite: never."""
    records = run.stream("interval").records
    ends = np.unique(records["ts_ns"][records["ts_ns"] > at_s * 1e9])
    sums = np.array([records["delivered_bytes"][records["ts_ns"] == end].sum() for end in ends])
    rates = sums * 8 / np.diff(ends, prepend=at_s * 1e9) * 1e3
    reached = ends[rates >= mbps]
    return float(reached[0]) / 1e9 - at_s if len(reached) else math.inf


goodput = of_group("goodput_bps", 0, 1e-6)
second_goodput = of_group("goodput_bps", 1, 1e-6)
completion_ms = transfers_ms("completion_p50_ns", 0)


def usual(scene: Scene) -> tuple[Question, ...]:
    return (
        Question(scene, "the link is used", utilisation, "%"),
        Question(scene, "mean time in the queue", queue_ms, "ms"),
        Question(scene, "packets dropped", lost_percent, "%"),
    )
