# SPDX-License-Identifier: BSD-3-Clause
"""RFC 9743, sections 6 and 7: paths of general use, and special cases."""

from __future__ import annotations

from collections.abc import Iterator

from weir.studies.evaluate.scene import (
    USED,
    Question,
    Scene,
    back_s,
    depth,
    goodput,
    no_more_lost,
    no_slower,
    path,
    schedule,
    stages,
    usual,
)
from weir.study.measures import utilisation
from weir.study.scenario import (
    between_ms,
    goodput_between,
    late_jfi,
    lost_percent,
    marked_percent,
    share_percent,
)


def tail_drop() -> Iterator[Question]:
    for rate, ms in (("2Mbit", 80), ("20Mbit", 20), ("100Mbit", 100), ("500Mbit", 10)):
        for bdp in (0.25, 1, 4):
            yield from usual(Scene(f"{rate}-{ms}ms-{bdp:g}BDP", changes=path(rate, ms, depth(bdp))))


def wired() -> Iterator[Question]:
    """Yields a path without losses but the queue's, with stable capacity: the text's baseline."""
    scene = Scene("wired", changes=path("200Mbit", 5))
    yield from usual(scene)
    yield Question(scene, "the link is used", utilisation, "", True, low=0.5, tolerance=USED)


def wireless() -> Iterator[Question]:
    """Yields losses of a radio, a capacity that varies, waits for a shared medium."""
    for percent in ("0.1", "1"):
        scene = Scene(
            f"loss-{percent}%".replace("%", ""), changes=stages(f"{{loss: {{rate: {percent}%}}}}")
        )
        yield Question(
            scene, f"{percent} % of packets lost at random: goodput of 50 Mbit/s", goodput, "Mbit/s"
        )
        yield Question(scene, "goodput", goodput, "", True, low=0.5, tolerance=USED)
    varying = Scene(
        "capacity",
        changes=schedule(
            *(
                f"at: {at}s, forward.link.rate: {rate}Mbit"
                for at, rate in zip(range(11, 40, 2), (20, 60, 10, 40, 80) * 3, strict=True)
            )
        ),
    )
    yield from usual(varying)
    yield Question(varying, "the link is used", utilisation, "", True, low=0.5, tolerance=USED)
    wifi = Scene("wifi", changes=stages("{wifi_jitter: {}}"))
    yield Question(wifi, "waits of a shared medium: goodput of 50 Mbit/s", goodput, "Mbit/s")
    yield Question(wifi, "goodput", goodput, "", True, low=0.5, tolerance=USED)


QUEUES = {
    "codel": "codel: {limit: 1BDP, ecn: yes}",
    "fq_codel": "fq_codel: {}",
    "pie": "pie: {limit: 1BDP, ecn: yes}",
    "dualpi2": "dualpi2: {}",
}


def queues() -> Iterator[Question]:
    """Yields other disciplines, and ECN as the control asks for it."""
    for name, queue in QUEUES.items():
        scene = Scene(name, ("NEW, count: 2",), path(queue=queue))
        yield from usual(scene)
        yield Question(scene, "packets marked", marked_percent, "%")
        yield Question(scene, "the link is used", utilisation, "", True, low=0.5, tolerance=USED)
    beside = Scene("fq_codel-beside", ("NEW", "cc: cubic"), path(queue=QUEUES["fq_codel"]))
    yield Question(
        beside, "beside CUBIC: the control's part of both goodputs", share_percent(0), "%"
    )


def varying_delay() -> Iterator[Question]:
    """Yields a round trip that changes."""
    longer = Scene("longer", changes=schedule("at: 20s, forward.delay.delay: 70ms"))
    yield Question(
        longer, "40 ms become 90 ms: goodput of the last 15 s", goodput_between(25, 40, 0), "Mbit/s"
    )
    yield Question(longer, "goodput", goodput, "", True, low=0.5, tolerance=USED)
    shorter = Scene(
        "shorter", changes=(*path(ms=90), *schedule("at: 20s, forward.delay.delay: 5ms"))
    )
    yield Question(
        shorter,
        "90 ms become 50 ms: mean time in the queue of the last 15 s",
        between_ms(25, 40),
        "ms",
    )
    jitter = Scene(
        "jitter", changes=stages("{jitter: {mean: 5ms, spread: 5ms, distribution: uniform}}")
    )
    yield Question(jitter, "up to 10 ms of jitter: goodput of 50 Mbit/s", goodput, "Mbit/s")
    yield Question(jitter, "goodput", goodput, "", True, low=0.5, tolerance=USED)


def constrained() -> Iterator[Question]:
    """Yields 100 kbit/s and 500 ms: four packets of BDP."""
    scene = Scene(
        "100kbit-500ms",
        changes=(*path("100kbit", 500, "fifo: {limit: 10pkt}"), "duration=100s", "warmup=20s"),
    )
    yield from usual(scene)


def high_delay() -> Iterator[Question]:
    scene = Scene("600ms", changes=(*path("20Mbit", 600), "duration=100s", "warmup=30s"))
    yield from usual(scene)
    yield Question(scene, "goodput", goodput, "", True, low=0.5, tolerance=USED)


def reordering() -> Iterator[Question]:
    """Yields packets that come late."""
    for percent in (1, 5):
        scene = Scene(
            f"late-{percent}",
            changes=(f"paths.forward.delay.late={percent}%", "paths.forward.delay.late_by=20ms"),
        )
        yield Question(
            scene, f"{percent} % of packets 20 ms late: goodput of 50 Mbit/s", goodput, "Mbit/s"
        )
        yield Question(scene, "goodput", goodput, "", True, low=0.5, tolerance=USED)


def transients() -> Iterator[Question]:
    """Yields a capacity that falls and returns, and flows that come at once."""
    step = Scene(
        "steps",
        changes=schedule("at: 20s, forward.link.rate: 5Mbit", "at: 30s, forward.link.rate: 50Mbit"),
    )
    yield Question(
        step,
        "50 Mbit/s become 5: mean time in the queue in the 5 s after",
        between_ms(20, 25),
        "ms",
    )
    yield no_slower(
        step,
        "mean time in the queue after the fall",
        between_ms(20, 25),
    )
    yield Question(step, "5 become 50 Mbit/s: until 40 are used", back_s(30, 40), "s")
    onset = Scene("onset", ("NEW, count: 2", "cc: cubic, count: 20, start: 20s"))
    yield Question(onset, "20 CUBIC flows come: packets dropped", lost_percent, "%")
    yield no_more_lost(onset)
    down = Scene(
        "down-3s",
        changes=(
            *stages("{loss: {rate: 0%}}"),
            *schedule("at: 15s, forward.loss.rate: 100%", "at: 18s, forward.loss.rate: 0%"),
        ),
    )
    yield Question(
        down,
        "3 s without a path: from its return until half of the link is used",
        back_s(18, 25),
        "s",
    )


def data_centre() -> Iterator[Question]:
    """Yields eight flows to one port; the RFC asks for no comparison there."""
    scene = Scene(
        "incast",
        ("NEW, count: 8",),
        (*path("1Gbit", 0.2, "fifo: {limit: 250kB}"), "duration=5s", "warmup=1s"),
    )
    yield from usual(scene)
    yield Question(scene, "Jain's index of the last 2 s", late_jfi(2), "")
