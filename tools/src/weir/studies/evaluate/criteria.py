# SPDX-License-Identifier: BSD-3-Clause
"""Criteria of RFC 9743 for a new congestion control, for its draft's section on evaluation.

RFC 9743 (the successor of RFC 5033) lists criteria and gives no numbers; RFC 5166 lists metrics.
What can be judged is the comparison that section 5.2 makes: whether a control does more harm than
the standards-track ones do in its place. So a run is repeated with CUBIC (RFC 9438), and a claim
bounds the control by what came out there. What has no such comparison is shown. The numbers of
sections are those of the RFC, read in its working group's repository.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from weir.studies.evaluate import flows, paths
from weir.studies.evaluate.scene import Control, Question, Scene
from weir.study.claim import Claim, Experiment, Setup, Study

GUEST = "a guest's flows have no source with pauses, and a QUIC stack's all start at once."


@dataclass(frozen=True)
class Criterion:
    """A section of RFC 9743: its runs, or why it has none."""

    section: str
    title: str
    rows: Callable[[], Iterator[Question]] | None = None
    why: str = ""

    def experiment(self, control: Control) -> Experiment:
        """Makes the experiment with a control."""
        source = f"RFC 9743, section {self.section}"
        rows = list(self.rows()) if self.rows else []
        claims = [row.claim(control, source) for row in rows if control.runs(row.scene)]
        for name in dict.fromkeys(row.scene.name for row in rows if not control.runs(row.scene)):
            claims.append(Claim(f"{name}: all of it", source, "not comparable", why=GUEST))
        if self.why:
            what = "what else it asks" if claims else "what it asks"
            claims.append(Claim(what, source, "not comparable", why=self.why))
        return Experiment(self.section, self.title, tuple(claims))


CRITERIA = (
    Criterion("5.1.1", "protection against congestion collapse", flows.collapse),
    Criterion("5.1.2", "protection against bufferbloat", flows.bloat),
    Criterion("5.1.3", "protection against high packet loss", flows.losses),
    Criterion("5.1.4", "fairness within the algorithm", flows.fairness),
    Criterion("5.1.5", "short flows", flows.short_flows),
    Criterion("5.2.1", "existing general-purpose congestion control", flows.standard),
    Criterion(
        "5.2.2",
        "real-time congestion control",
        flows.real_time,
        "no flow here is a media source with a control of its own (RFC 8867): a constant rate"
        " and live video over CUBIC stand for it.",
    ),
    Criterion("5.2.3", "short and long flows of other controls", flows.short_and_long),
    Criterion(
        "5.3.1",
        "differences with congestion control principles",
        why="the draft has to say how it deviates from RFC 2914 and RFC 7141: no run can.",
    ),
    Criterion(
        "5.3.2",
        "incremental deployment",
        why="the draft has to say what it needs of routers, receivers and middleboxes: no run can.",
    ),
    Criterion("6.1", "paths with tail-drop queues", paths.tail_drop),
    Criterion(
        "6.2",
        "tunnels",
        why="the paths here have no encapsulation, which matters to controls that need signals of"
        " routers.",
    ),
    Criterion("6.3", "wired paths", paths.wired),
    Criterion("6.4", "wireless paths", paths.wireless),
    Criterion(
        "7.1",
        "active queue management and ECN",
        paths.queues,
        "circuit breakers (section 7.1.1) end flows by rules of their own: no stage has them.",
    ),
    Criterion("7.2", "paths with varying delay", paths.varying_delay),
    Criterion(
        "7.3",
        "Internet of Things",
        paths.constrained,
        "power and memory of a host are not measured; `weir bench cc` has the time per ACK.",
    ),
    Criterion("7.4", "paths with high delay", paths.high_delay),
    Criterion(
        "7.5",
        "misbehaving nodes",
        why="receivers that acknowledge what has not arrived, and attackers, are not run here.",
    ),
    Criterion("7.6", "extreme packet reordering", paths.reordering),
    Criterion("7.7", "transient events and sudden changes of the path", paths.transients),
    Criterion("7.8", "multipath transport", why="a connection here has one path."),
    Criterion("7.9", "data centers", paths.data_centre),
)


def scenes() -> Iterator[Scene]:
    for criterion in CRITERIA:
        for row in criterion.rows() if criterion.rows else ():
            yield row.scene


def setup_named(name: str, keys: str) -> Setup | None:
    """Returns the run of a scene with a control; None: no criterion asks for it."""
    return next((scene.setup(keys, "") for scene in scenes() if scene.name == name), None)


def study(control: Control, written: str) -> Study:
    """Makes the report of a control. written: the control as the command line has it."""

    return Study(
        f"evaluate-{control.name}",
        f"{control.name}: an evaluation after RFC 9743",
        "Criteria: M. Duke, G. Fairhurst, Specifying New Congestion Control Algorithms, RFC 9743,"
        " 2025. Metrics: S. Floyd, RFC 5166, 2008",
        tuple(criterion.experiment(control) for criterion in CRITERIA),
        Path(__file__).parent,
        (control,),
        command=f"evaluate {written}",
    )
