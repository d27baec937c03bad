# SPDX-License-Identifier: BSD-3-Clause
"""weir pcap identify: the flows of captures, what each is taken for, and by what."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from rich.console import Console

from weir.analysis import captures
from weir.base import terminal, units
from weir.base.page import Table
from weir.identify import behaviour, classifier
from weir.identify.behaviour import Behaviour
from weir.identify.classifier import Found
from weir.runner import pcap

INTERVAL = "2ms"  # below a round trip, so that steps of one are told
COLUMNS = (
    "flow", "sender", "receiver", "control", "confidence", "distance", "next", "after a loss",
    "after a mark", "growth per RTT", "queue",
)  # fmt: skip


@dataclass(frozen=True)
class Flow:
    """A flow of a capture; without behaviour and control if it was too short to tell."""

    number: int
    sender: str
    receiver: str
    behaviour: Behaviour | None
    found: Found | None


def of_captures(files: Sequence[str], console: Console, interface: str = "") -> list[Flow]:
    """Returns flows of TCP that carry payload; the console is told of what is passed over."""
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


def row(flow: Flow) -> list[str]:
    """Returns a flow in the table."""
    head = [str(flow.number), flow.sender, flow.receiver]
    if flow.found is None or flow.behaviour is None:
        return [*head, "too short to tell", *[units.NONE] * (len(COLUMNS) - 4)]
    others = [name for name in flow.found.votes if name != flow.found.control]
    of = flow.behaviour
    return [
        *head, flow.found.control, share(flow.found.confidence), number(flow.found.distance),
        others[0] if others else units.NONE, share(of.cut), share(of.ecn_cut),
        number(unlogged(of.growth)), number(2**of.queue - 1),
    ]  # fmt: skip


def share(value: float | None) -> str:
    return units.NONE if value is None or math.isnan(value) else units.percent(value)


def number(value: float | None) -> str:
    return units.NONE if value is None or math.isnan(value) else units.number(value)


def unlogged(value: float) -> float:
    return math.copysign(math.expm1(abs(value)), value)


def show(flows: Sequence[Flow], console: Console) -> None:
    """Prints the table, and what it cannot say."""
    terminal.print_table(console, Table(COLUMNS, [row(flow) for flow in flows], left=4))
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
