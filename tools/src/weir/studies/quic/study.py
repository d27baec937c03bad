# SPDX-License-Identifier: BSD-3-Clause
"""A matrix of QUIC stacks by networks: throughput, share beside Linux CUBIC, losses, spurious ones.

A stack is one connection from a program of ours around its library, or Debian's of ngtcp2, in Linux
guests (weir guests add NAME). Goodput counts UDP payload that left the path, QUIC's own bytes with
it. Spurious are packets that the sender declared lost and that were acknowledged after that.
Nothing is published of these networks, and so nothing is judged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from weir.analysis import qlog
from weir.analysis.folder import Run
from weir.study.claim import Claim, Experiment, Setup, Study
from weir.study.measures import goodput, utilisation
from weir.study.scenario import lost_percent, share_percent, shown

HERE = Path(__file__).parent
SOURCE = "ours: nobody has published these networks"
STACKS = (
    *(("ngtcp2", cc) for cc in ("cubic", "reno", "bbr", "bbr2")),
    *(("aioquic", cc) for cc in ("cubic", "reno")),
    *(("msquic", cc) for cc in ("cubic", "bbr")),
    ("quic-go", "reno"),
    *(("quiche", cc) for cc in ("cubic", "reno", "bbr2_gcongestion")),
    *(("quinn", cc) for cc in ("cubic", "reno", "bbr")),
    *(("s2n-quic", cc) for cc in ("cubic", "bbr")),
)
LINK = "{link: {rate: 10Mbit, queue: {fifo: {limit: 1BDP}}}}"
QUICK = ("duration=5s", "warmup=1s")


def client(count: Callable[[qlog.Logged], float | None]) -> Callable[[Run], float | None]:
    """Makes the measure of a number that the sending side's qlogs have; None: one has not."""

    def measure(run: Run) -> float | None:
        logs = qlog.found_in(run.path, run.summary)
        sent = [count(log) for log in logs if log.side == "stack"]
        known = [one for one in sent if one is not None]
        return float(sum(known)) if known and len(known) == len(sent) else None

    return measure


USUAL = (
    ("goodput", goodput, "Mbit/s"),
    ("packets dropped by the queue", lost_percent, "%"),
    ("packets declared lost", client(lambda log: log.lost), ""),
    ("of these spurious", client(lambda log: log.spurious), ""),
)
# Name, title, other flows, changes, measures.
NETWORKS = (
    ("alone", "alone on 10 Mbit/s and 40 ms", "", (), (("link used", utilisation, "%"), *USUAL)),
    (
        "loss",
        "1 % of packets lost at random",
        "",
        (f"paths.forward=[{LINK}, {{loss: {{rate: 1%}}}}, {{delay: {{delay: 20ms}}}}]",),
        USUAL,
    ),
    (
        "late",
        "2 % of packets 10 ms late",
        "",
        ("paths.forward.delay.late=2%", "paths.forward.delay.late_by=10ms"),
        USUAL,
    ),
    (
        "beside",
        "beside Linux's CUBIC",
        ", {count: 1, stack: {linux: {cc: cubic}}}",
        (),
        (("its part of both goodputs", share_percent(0), "%"), *USUAL),
    ),
)


def experiments() -> list[Experiment]:
    """Makes an experiment for each network, with every stack."""
    made = []
    for name, title, others, changes, measures in NETWORKS:
        claims: list[Claim] = []
        for stack, cc in STACKS:
            flows = f"flows=[{{count: 1, stack: {{quic: {{{stack}: {{cc: {cc}}}}}}}}}{others}]"
            own = (flows, *changes)
            setup = Setup(f"{name}-{stack}-{cc}", HERE / "path.yaml", own, quick=QUICK)
            claims += [
                replace(shown(f"{stack} {cc}: {says}", SOURCE, (setup,), measure, unit), kept=True)
                for says, measure, unit in measures
            ]
        made.append(Experiment(name, title, tuple(claims)))
    return made


STUDY = Study(
    "quic",
    "QUIC stacks by networks",
    SOURCE,
    tuple(experiments()),
    HERE,
    drawn=None,
)
