# SPDX-License-Identifier: BSD-3-Clause
"""weir pcap identify: the flows of captures, what each is taken for, and by what."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from rich.console import Console

from weir.analysis import captures
from weir.base import terminal
from weir.base.page import Column, Table
from weir.identify import behaviour, classifier
from weir.identify.behaviour import Behaviour
from weir.identify.classifier import Found
from weir.runner import pcap

INTERVAL = "2ms"  # below a round trip, so that steps of one are told


@dataclass(frozen=True)
class Flow:
    """A flow of a capture; without behaviour and control if it was too short to tell."""

    number: int
    sender: str
    receiver: str
    behaviour: Behaviour | None
    found: Found | None


def of_captures(files: Sequence[str], console: Console, interface: str = "") -> list[Flow]:
    """Returns TCP flows that carry payload; what is passed over is printed."""
    settings = {"interval": INTERVAL, "interface": interface}
    with pcap.analysed(files, console, settings) as loaded:
        named = {row["flow_id"]: row for row in captures.flows(loaded).iter_rows(named=True)}
        behaves = behaviour.of_run(loaded)
        passed_over = loaded.summary.ledger.capture.get("udp")
    if passed_over:
        console.print(
            f"{passed_over:,} packets of UDP are passed over: QUIC encrypts what its flows lose",
            soft_wrap=True,
        )
    return [
        Flow(
            number, named[number]["src"], named[number]["dst"], of,
            None if of is None else classifier.identify(of),
        )
        for number, of in behaves.items()
    ]  # fmt: skip


def as_dicts(flows: Sequence[Flow]) -> list[dict[str, object]]:
    """Returns rows for JSON: what was not seen is null."""

    def known(numbers: dict[str, float]) -> dict[str, float | None]:
        return {name: value if math.isfinite(value) else None for name, value in numbers.items()}

    return [
        {
            "flow_id": flow.number, "sender": flow.sender, "receiver": flow.receiver,
            "found": None if flow.found is None else asdict(flow.found),
            "behaviour": None if flow.behaviour is None else known(asdict(flow.behaviour)),
        }
        for flow in flows
    ]  # fmt: skip


def unlogged(value: float) -> float:
    return math.copysign(math.expm1(abs(value)), value)


def runner_up(flow: Flow) -> str | None:
    """Returns the control that a flow is most like besides the one that was found."""
    votes = flow.found.votes if flow.found else ()
    return next((name for name in votes if flow.found and name != flow.found.control), None)


def behaves(header: str, number: Callable[[Behaviour], float], unit: str = "") -> Column:
    """Returns a column of a flow's behaviour, unknown if the flow was too short to tell."""
    return Column(header, lambda flow: number(flow.behaviour) if flow.behaviour else None, unit)


FLOWS = (
    Column("flow", "number", str),
    Column("sender"),
    Column("receiver"),
    Column("control", lambda flow: flow.found.control if flow.found else "too short to tell"),
    Column("confidence", lambda flow: flow.found.confidence if flow.found else None, "%"),
    Column("distance", lambda flow: flow.found.distance if flow.found else None),
    Column("next", runner_up),
    behaves("after a loss", lambda of: of.cut, "%"),
    behaves("after a mark", lambda of: of.ecn_cut, "%"),
    behaves("growth per RTT", lambda of: unlogged(of.growth)),
    behaves("queue", lambda of: 2**of.queue - 1),
)


def show(flows: Sequence[Flow], console: Console) -> None:
    """Prints the table, and what it cannot say."""
    terminal.print_table(console, Table(FLOWS, flows, left=4))
    if any(flow.found is not None for flow in flows):
        console.print(
            "distance: 1 is that up to which the nearest control is believed;"
            " next: what a flow is most like besides",
            soft_wrap=True,
        )
    if any(flow.found is None for flow in flows):
        console.print(
            f"A flow shorter than {behaviour.STEPS_MIN} round trips is too short to tell.",
            soft_wrap=True,
        )
