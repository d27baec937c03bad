# SPDX-License-Identifier: BSD-3-Clause
"""The base class of congestion controls in Python, and their parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar, cast

from weir.control.measurements import Measurements

Value = TypeVar("Value", float, int, bool, str)
UNITS = ("", "time", "rate", "bytes", "ratio")  # enum unit of common/base/units.h


@dataclass
class Parameter:
    """A key of the control in a config."""

    default: float | int | bool | str
    help: str
    min: float = 0
    max: float = math.inf
    unit: str = ""
    choices: Sequence[str] = ()

    @property
    def kind(self) -> str:
        """Name of the type in C: float, int, bool or choice."""
        if isinstance(self.default, str):
            return "choice" if self.choices else "text"
        return type(self.default).__name__

    @property
    def text(self) -> str:
        """The default as a config has it."""
        if isinstance(self.default, bool):
            return "yes" if self.default else "no"
        suffix = {"time": "ns", "rate": "bit", "bytes": "B"}.get(self.unit, "")
        return f"{self.default}{suffix}"

    def wrong(self) -> str | None:
        """Returns why it cannot be a parameter, or None."""
        if self.kind == "text":
            return "a text needs choices"
        if self.kind == "choice":
            return None if self.default in self.choices else "its default is none of its choices"
        if self.unit not in UNITS:
            return f"unit: {self.unit} is none of {', '.join(UNITS[1:])}"
        if not 0 <= self.min <= float(self.default) <= self.max:
            return f"{self.default} is not in [{self.min}, {self.max}], from 0 upwards"
        return None

    def value(self, number: float) -> float | int | bool | str:
        """Returns an instance's value from weir-sim's number, which is in ns, bit/s or bytes."""
        if self.kind == "choice":
            return self.choices[int(number)]
        return type(self.default)(number)


def parameter(
    default: Value,
    help: str,
    *,
    min: float = 0,
    max: float = math.inf,
    unit: str = "",
    choices: Sequence[str] = (),
) -> Value:
    """Declares a key of the control in a config; an instance's attribute has its value.

    The type is the default's: float, int, bool, or str with choices. unit is time, rate, bytes or
    ratio: a config then has "20ms" or "10Mbit", an instance nanoseconds, bit/s, bytes, a part.
    """
    return cast(Value, Parameter(default, help, min, max, unit, choices))


class Control:
    """A congestion control, with an instance for each flow.

    A method changes `cwnd_segs` and `pacing_bps`; they are the flow's when it returns. One that is
    not overridden is not called, and costs nothing. The first line of a class's docstring is its
    summary.
    """

    cwnd_segs: float = 10.0  # the window in segments, of which a part counts; below 1 it is 1
    pacing_bps: float = 0.0  # payload per second; 0: not paced
    ssthresh_segs: float = 0.0  # for `pacing: srtt`, with has_ssthresh
    mode: int = 0  # its place in `modes`, in the interval records; a change is an event
    flow: int = 0  # number of the flow, in the order of starts

    observed: ClassVar[Sequence[str]] = ()  # up to four attributes, recorded with each ACK
    modes: ClassVar[Sequence[str]] = ()  # up to 16 names, of the modes 0, 1, ...
    prr: ClassVar[bool] = True  # the transport moves to a smaller window step by step (RFC 9937)
    ecn: ClassVar[bool] = False  # it answers ECN echoes, which come to on_loss
    codepoint: ClassVar[int] = 0  # of its packets, where a group does not say: 1 ECT(0), 2 ECT(1)
    feedback: ClassVar[int] = 0  # of marks: 0 classic, 1 DCTCP's, 2 AccECN
    answers_in_on_ack: ClassVar[bool] = False  # it answers losses and echoes in on_ack
    ack_each: ClassVar[bool] = False  # receivers acknowledge each segment
    any_idle: ClassVar[bool] = False  # on_idle, however short the pause was
    has_ssthresh: ClassVar[bool] = False  # it has a slow start, which ends at ssthresh_segs
    together: ClassVar[bool] = False  # at multiples of `every`, all flows at once, as weir.gym's

    def init(self, m: Measurements) -> None:
        """Begins a connection whose parameters are set; m has the handshake's RTT."""

    def on_ack(self, m: Measurements) -> None:
        """Ends an interval: an ACK, a round trip or a time, as `every` of the config says."""

    def on_loss(self, m: Measurements) -> None:
        """Reacts to the first loss, or ECN echo (m.ecn), of a window."""

    def on_rto(self, m: Measurements) -> None:
        """Reacts to a retransmission timeout."""

    def on_spurious(self, m: Measurements) -> None:
        """Learns that the losses of the last episode were none."""

    def on_idle(self, m: Measurements) -> None:
        """Begins to send once more after a pause."""

    @classmethod
    def parameters(cls) -> dict[str, Parameter]:
        """Returns the keys in a config, in the order in which the classes define them."""
        found: dict[str, Parameter] = {}
        for base in reversed(cls.__mro__):
            found |= {k: v for k, v in vars(base).items() if isinstance(v, Parameter)}
        return found
