# SPDX-License-Identifier: BSD-3-Clause
"""The networks of weir check cc, and the bounds that any congestion control keeps in them."""

from __future__ import annotations

from dataclasses import dataclass

from weir.analysis.run_summary import RunSummary
from weir.base import units

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
