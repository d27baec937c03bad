# SPDX-License-Identifier: BSD-3-Clause
"""Criteria of RFC 9743 for a new congestion control, for its draft's section on evaluation.

RFC 9743 (the successor of RFC 5033) lists criteria and gives no numbers; RFC 5166 lists metrics.
What can be judged is the comparison that section 5.2 makes: whether a control does more harm than
the standards-track ones do in its place. So a run is repeated with CUBIC (RFC 9438), and a claim
bounds the control by what came out there. What has no such comparison is shown. The numbers of
sections are those of the RFC, read in its working group's repository.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from weir.base.foreign import Json
from weir.studies.evaluate import scene as evaluate_scene
from weir.studies.evaluate.scene import BOUNDS, WEB, Control, Question, Scene, path, usual
from weir.study import measures, scenario, written
from weir.study.claim import Experiment, Setup, Study
from weir.study.scenario import cannot

FILE = Path(__file__).with_name("criteria.yaml")
KNOWN = {**vars(measures), **vars(scenario), **vars(evaluate_scene)}
GUEST = "a guest's flows have no source with pauses, and a QUIC stack's all start at once."


@dataclass(frozen=True)
class Criterion:
    """A section of RFC 9743: what is asked of its runs, or why it has none."""

    section: str
    title: str
    rows: tuple[Question, ...]
    why: str = ""

    def experiment(self, control: Control) -> Experiment:
        """Makes the experiment with a control."""
        source = f"RFC 9743, section {self.section}"
        claims = [row.claim(control, source) for row in self.rows if control.runs(row.scene)]
        without = (row.scene.name for row in self.rows if not control.runs(row.scene))
        for name in dict.fromkeys(without):
            claims.append(cannot(f"{name}: all of it", source, GUEST))
        if self.why:
            what = "what else it asks" if claims else "what it asks"
            claims.append(cannot(what, source, self.why))
        return Experiment(self.section, self.title, tuple(claims))


class QuestionAsked(msgspec.Struct, forbid_unknown_fields=True):
    """A measurement, as the file has it."""

    says: str
    measure: str
    unit: str = ""
    bound: str = ""


class SceneAsked(msgspec.Struct, forbid_unknown_fields=True):
    """A run and what is asked of it, as the file has it."""

    asks: list[QuestionAsked | str]
    flows: tuple[str, ...] = ("NEW",)
    path: dict[str, str] = {}
    stages: list[str] = []
    schedule: list[object] = []
    set: list[str] = []

    def questions(self, name: str) -> Iterator[Question]:
        """Yields what is asked, in the order of the file."""
        stages = ", ".join([evaluate_scene.LINK, *self.stages, "{delay: {delay: 20ms}}"])
        items = [f"{{{item}}}" for entry in self.schedule for item in written.repeated(entry)]
        changes = (
            *(path(**self.path) if self.path else ()),
            *((f"paths.forward=[{stages}]",) if self.stages else ()),
            *((f"schedule=[{', '.join(items)}]",) if items else ()),
            *self.set,
        )
        scene = Scene(name, tuple(flow.replace("WEB", WEB) for flow in self.flows), changes)
        for one in self.asks:
            if isinstance(one, str):
                yield from usual(scene)
            else:
                measure = written.measure_of(one.measure, KNOWN)
                bound = BOUNDS[one.bound] if one.bound else ()
                yield Question(scene, one.says, measure, one.unit, *bound)


class CriterionAsked(msgspec.Struct, forbid_unknown_fields=True):
    """A section, whose scenes are not repeated yet."""

    title: str
    scenes: Json = {}
    why: str = ""


def read() -> Iterator[Criterion]:
    """Yields the criteria of the file."""
    for section, asked in written.rows(FILE, dict[str, CriterionAsked]).items():
        scenes = written.entries(asked.scenes)
        each = [written.convert(of, SceneAsked).questions(name) for name, of in scenes]
        rows = tuple(question for questions in each for question in questions)
        yield Criterion(section, asked.title, rows, asked.why)


CRITERIA = tuple(read())


def setup_named(name: str, keys: str) -> Setup | None:
    """Returns the run of a scene with a control; None: no criterion asks for it."""
    rows = (row for criterion in CRITERIA for row in criterion.rows)
    return next((row.scene.setup(keys, "") for row in rows if row.scene.name == name), None)


def study(control: Control, typed: str) -> Study:
    """Makes the report of a control. typed: the control as the command line has it."""
    return Study(
        f"evaluate-{control.name}",
        f"{control.name}: an evaluation after RFC 9743",
        "Criteria: M. Duke, G. Fairhurst, Specifying New Congestion Control Algorithms, RFC 9743,"
        " 2025. Metrics: S. Floyd, RFC 5166, 2008",
        tuple(criterion.experiment(control) for criterion in CRITERIA),
        Path(__file__).parent,
        (control,),
        command=f"evaluate {typed}",
    )
