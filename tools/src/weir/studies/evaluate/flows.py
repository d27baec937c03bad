# SPDX-License-Identifier: BSD-3-Clause
"""RFC 9743, section 5: the control alone, among its like, and beside other controls."""

from __future__ import annotations

from collections.abc import Iterator

from weir.studies.evaluate.scene import (
    BACKOFF,
    FAIR,
    HARM,
    TENTH,
    Question,
    Scene,
    back_s,
    depth,
    no_less,
    no_more_lost,
    no_slower,
    path,
    schedule,
    second_goodput,
    sent_between,
    stages,
)
from weir.study.measures import queue_ms
from weir.study.scenario import late_jfi, lost_percent, p99_ms, ratio, share_percent, transfers_ms

WEB = "source: {closed: {think: 500ms, sizes: {law: fixed, mean: 100kB}}}"


def collapse() -> Iterator[Question]:
    """Yields an outage, most packets lost, and more flows than packets fit."""
    outage = Scene(
        "outage",
        changes=(
            *stages("{loss: {rate: 0%}}"),
            *schedule("at: 10s, forward.loss.rate: 100%", "at: 30s, forward.loss.rate: 0%"),
            "duration=80s",
        ),
    )
    yield Question(
        outage,
        "packets in the last 10 s of 20 s without any ACK (a round trip: 40 ms)",
        sent_between(20, 30),
        "",
        high=10 / 0.04,
        tolerance=BACKOFF,
    )
    yield Question(outage, "after it: until half of the link is used again", back_s(30, 25), "s")
    heavy = Scene("half-lost", changes=(*stages("{loss: {rate: 50%}}"),))
    yield Question(
        heavy,
        "packets per round trip of 40 ms while each second one is lost",
        lambda run: float(sent_between(10, 40)(run) or 0) * 0.04 / 30,
        "",
    )
    crowd = Scene(
        "crowd", ("NEW, count: 100, jitter: 5s",), path("5Mbit", 40, "fifo: {limit: 50pkt}")
    )
    yield Question(
        crowd, "packets dropped of 100 flows that share 17 packets of BDP", lost_percent, "%"
    )
    yield no_more_lost(crowd)


def bloat() -> Iterator[Question]:
    for bdp in (1, 4, 16):
        scene = Scene(f"queue-{bdp}BDP", changes=path(queue=depth(bdp)))
        yield Question(scene, "mean time in the queue", queue_ms, "ms")
        yield Question(scene, "mean time in the queue", queue_ms, "", True, high=1, tolerance=HARM)


def losses() -> Iterator[Question]:
    """Yields runs with short queues."""
    for flows, bdp in ((1, 0.25), (5, 0.5), (5, 1), (20, 0.5)):
        scene = Scene(
            f"{flows}-flows-{bdp:g}BDP",
            (f"NEW, count: {flows}, jitter: 2s",),
            path(queue=depth(bdp)),
        )
        yield Question(scene, "packets dropped", lost_percent, "%")
        yield no_more_lost(scene)


def fairness() -> Iterator[Question]:
    """Yields flows of the control among themselves."""
    alike = Scene("five-flows", ("NEW, count: 5, stagger: 2s",))
    yield Question(
        alike, "Jain's index of the last 20 s", late_jfi(20), "", low=0.9, tolerance=FAIR
    )
    late = Scene("a-second-flow", ("NEW", "NEW, start: 15s"))
    yield Question(
        late,
        "Jain's index of the last 10 s, 15 s after the second has begun",
        late_jfi(10),
        "",
        low=0.9,
        tolerance=FAIR,
    )
    unequal = Scene("round-trips", ("NEW, base_rtt: 40ms", "NEW, base_rtt: 160ms"))
    yield Question(
        unequal, "goodput of the flow of 40 ms over that of 160 ms", ratio(0, 1), "times"
    )


def short_flows() -> Iterator[Question]:
    """Yields transfers of 100 kB beside a long flow, all of the control."""
    alone = Scene("short-alone", (f"NEW, count: 5, {WEB}",))
    yield Question(
        alone,
        "100 kB on an idle link: median completion",
        transfers_ms("completion_p50_ns", 0),
        "ms",
    )
    beside = Scene("short-and-long", (f"NEW, count: 5, {WEB}", "NEW"))
    yield Question(
        beside,
        "100 kB beside a long flow: median completion",
        transfers_ms("completion_p50_ns", 0),
        "ms",
    )
    yield Question(
        beside,
        "100 kB beside a long flow: 99th percentile",
        transfers_ms("completion_p99_ns", 0),
        "ms",
    )
    yield no_slower(
        beside,
        "median completion",
        transfers_ms("completion_p50_ns", 0),
    )
    yield Question(beside, "the long flow's goodput", second_goodput, "Mbit/s")


def standard() -> Iterator[Question]:
    """Yields runs beside CUBIC and NewReno, and what these lose to it and not to their like."""
    for other in ("cubic", "newreno"):
        for bdp in (0.5, 1, 4):
            scene = Scene(f"{other}-{bdp:g}BDP", ("NEW", f"cc: {other}"), path(queue=depth(bdp)))
            yield Question(
                scene,
                f"{other}'s part of both goodputs",
                share_percent(1),
                "%",
                low=5,
                tolerance=TENTH,
            )
            yield Question(
                scene, "the control's part", share_percent(0), "%", low=5, tolerance=TENTH
            )
            yield no_less(
                scene,
                f"{other}'s goodput",
                second_goodput,
            )
            yield no_slower(
                scene,
                "mean time in the queue",
                queue_ms,
            )


def real_time() -> Iterator[Question]:
    """Yields a call and live video beside the control."""
    call = Scene("call", ("NEW", "source: {udp: {rate: 1Mbit, size: 200B}}"))
    yield Question(call, "99th percentile of its time in the queue", p99_ms, "ms")
    yield no_slower(
        call,
        "99th percentile of its time in the queue",
        p99_ms,
    )
    yield Question(call, "what arrives of 1 Mbit/s", second_goodput, "Mbit/s")
    video = Scene("video", ("NEW", "cc: cubic, source: {video: {}}"), path("5Mbit"))
    yield Question(video, "live video at 5 Mbit/s: its goodput", second_goodput, "Mbit/s")
    yield no_less(
        video,
        "live video's goodput",
        second_goodput,
    )


def short_and_long() -> Iterator[Question]:
    """Yields short transfers of CUBIC beside a long flow of the control, and the reverse."""
    short = Scene("cubic-short", (f"cc: cubic, count: 5, {WEB}", "NEW"))
    yield Question(
        short, "CUBIC's 100 kB: median completion", transfers_ms("completion_p50_ns", 0), "ms"
    )
    yield no_slower(
        short,
        "CUBIC's 100 kB: median completion",
        transfers_ms("completion_p50_ns", 0),
    )
    long = Scene("cubic-long", (f"NEW, count: 5, {WEB}", "cc: cubic"))
    yield Question(
        long,
        "goodput of a long CUBIC flow beside short ones of the control",
        second_goodput,
        "Mbit/s",
    )
    yield no_less(
        long,
        "goodput of a long CUBIC flow",
        second_goodput,
    )
