# SPDX-License-Identifier: BSD-3-Clause
"""Workloads of the papers in a closed loop: live video, many controls at once."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from weir.analysis import metrics

from .conftest import Program, Run, Simulate

CLOSE = 2
LADDER_BPS = (250e3, 500e3, 1e6, 1.5e6, 2e6, 3e6)
STEADY = """
seed: 1
duration: 40s
paths:
  forward:
    - link: {rate: 10Mbit, queue: {fifo: {limit: 1BDP}}}
    - delay: {delay: 20ms}
  reverse: [{delay: {delay: 20ms}}]
flows:
  - {cc: cubic, source: {video: {}}}
telemetry: {level: 1}
"""


def segments(run: Run) -> np.ndarray:
    """A stream's finished segments, in order."""
    transfers = run.records("transfers")
    finished = transfers[transfers["event"] == CLOSE]
    return finished[np.argsort(finished["number"])]


def test_a_stream_climbs_to_its_encoders_limit(simulate: Simulate) -> None:
    """10 Mbit/s carry all of the ladder: 3 Mbit/s, a segment a second, and nothing waits."""
    run = simulate(STEADY)
    sent = segments(run)
    bps = sent["size_bytes"] * 8 * 1e9 / sent["gap_ns"]

    assert (np.diff(sent["start_ns"].astype(np.int64)) == 10**9).all()
    assert set(bps) <= set(LADDER_BPS)
    assert bps[0] == LADDER_BPS[0]
    assert bps[-1] == LADDER_BPS[-1]
    assert (np.diff(bps) >= 0).all()
    # A segment of 375 kB takes 0.32 s at 10 Mbit/s, and a few round trips more at first.
    assert (sent["ts_ns"] - sent["start_ns"])[-10:].max() < 0.5e9
    frame = pl.DataFrame({name: sent[name] for name in sent.dtype.names if name})
    (stream,) = metrics.video_streams(frame, CLOSE).to_dicts()
    assert stream["segments"] == len(sent) >= 38
    assert stream["stalls"] == 0


@pytest.mark.parametrize(
    ("rate", "rung"), [("4Mbit", 2e6), ("1300kbit", 500e3), ("700kbit", 250e3)]
)
def test_the_bitrate_follows_the_goodput(simulate: Simulate, rate: str, rung: float) -> None:
    """At most four fifths of what the link carries, headers and a round trip subtracted."""
    run = simulate(STEADY, f"paths.forward.link.rate={rate}", "duration=80s", "warmup=40s")
    sent = segments(run)
    bps = sent["size_bytes"] * 8 * 1e9 / sent["gap_ns"]

    assert np.median(bps) in (rung, LADDER_BPS[LADDER_BPS.index(rung) + 1])
    assert bps.mean() < 0.9 * run.link["rate_bps"]


def test_a_slower_link_lowers_the_bitrate_at_once(simulate: Simulate) -> None:
    """From 10 Mbit/s to 600 kbit/s at 20 s: within a few segments the lowest bitrates."""
    run = simulate(STEADY, "schedule=[{at: 20s, forward.link.rate: 600kbit}]", "duration=60s")
    sent = segments(run)
    bps = sent["size_bytes"] * 8 * 1e9 / sent["gap_ns"]
    number = sent["number"]

    assert bps[(number > 12) & (number < 19)].min() == 3e6
    assert bps[(number >= 24) & (number < 30)].max() <= 250e3
    assert metrics.video_streams(frame_of(sent), CLOSE)["stalls"][0] > 0


CALL = "flows=[{cc: cubic, source: {media: {min: 240kbit, max: %s, spread: 0}}}]"


def test_a_frame_on_an_empty_path_takes_a_round_trip(simulate: Simulate) -> None:
    """40 ms, and 1052 B at 10 Mbit/s: 1000 B of payload and headers; 30 frames a second."""
    run = simulate(STEADY, CALL % "240kbit", "paths.forward.link.framing=ip", "duration=5s")
    sent = segments(run)

    assert (sent["size_bytes"] == 1000).all()
    assert set((sent["ts_ns"] - sent["start_ns"])[1:]) == {40_000_000 + 1052 * 800}
    assert len(sent) == 148  # those of 5 s, without the last, which is on its way


def test_pacing_counts_what_a_short_segment_has(simulate: Simulate) -> None:
    """Frames of 2000 B are 480 kbit/s, below a pacing rate of 600 kbit/s: none waits for another.

    The second segment leaves when the first's 1448 B are paid for, and its 604 B take 483 us. As
    two whole segments a frame would need 695 kbit/s, and each would wait longer than the last.
    """
    call = (CALL % "480kbit").replace("min: 240", "min: 480")
    paced = call.replace("cubic", "{fixed: {cwnd: 100, rate: 600kbit}}")
    run = simulate(STEADY, paced, "paths.forward.link.framing=ip", "duration=10s")
    sent = segments(run)

    took_ms = (sent["ts_ns"] - sent["start_ns"])[2:] / 1e6
    assert took_ms == pytest.approx(40 + 1448 * 8 / 600 + 604 * 8e-4, abs=0.001)


@pytest.mark.parametrize("cc", ["cubic", "bbr3", "copa"])
def test_an_encoder_follows_its_control(simulate: Simulate, cc: str) -> None:
    """On 1 Mbit/s near that from 10 s on; from 20 s on 500 kbit/s, and 15 s later below that."""
    run = simulate(
        STEADY,
        (CALL % "3Mbit").replace("cubic", cc),
        "paths.forward.link.rate=1Mbit",
        "paths.forward.link.queue.fifo.limit=300ms",
        "schedule=[{at: 20s, forward.link.rate: 500kbit}]",
    )
    sent = segments(run)
    at_s, bps = sent["start_ns"] / 1e9, sent["size_bytes"] * 8e9 / sent["gap_ns"]

    assert 0.7e6 < bps[(at_s > 10) & (at_s < 20)].mean() < 1.0e6
    assert bps[at_s > 35].mean() < 0.5e6


def frame_of(records: np.ndarray) -> pl.DataFrame:
    """Records as the tools have them."""
    return pl.DataFrame({name: records[name] for name in records.dtype.names if name})


@pytest.mark.parametrize(
    ("group", "sentence"),
    [
        ("{cc: cubic, source: {video: {ladder: 1Mbit 1Mbit}}}", "'1Mbit' does not rise"),
        ("{cc: cubic, source: {video: {ladder: fast}}}", "'fast' is not a bitrate"),
        ('{cc: cubic, source: {video: {ladder: " "}}}', "no bitrate"),
        ("{cc: cubic, source: {video: {safety: 0}}}", "safety"),
        ("{cc: cubic, source: {media: {min: 2Mbit}}}", "max: the bitrate is below min"),
        ("{cc: cubic, source: {media: {fps: 0}}}", "fps"),
    ],
)
def test_wrong_groups_are_refused(sim: Program, group: str, sentence: str) -> None:
    sim.refuse(STEADY.replace("{cc: cubic, source: {video: {}}}", group), sentence)


@pytest.mark.slow
def test_eight_controls_twice_the_same(simulate: Simulate) -> None:
    """configs/eight-controls.yaml, at a tenth of its rate and a twentieth of its time."""
    less = ("paths.forward.link.rate=1Gbit", "paths.forward.link.queue.fifo.limit=37500kB")
    short = (*less, "duration=4s", "warmup=2s")
    first, second = simulate("eight-controls", *short), simulate("eight-controls", *short)

    assert first.summary["digest"] == second.summary["digest"]
    assert len({group["cc"] for group in first.groups}) == 8
    assert all(group["goodput_bps"] > 0 for group in first.groups)


def test_a_small_response_is_no_whole_segment(simulate: Simulate) -> None:
    """100 B on a connection that is kept are 100 B on the wire and in the goodput.

    A pause of 100 ms and a round trip of 20.152 ms (a frame of 190 B at 10 Mbit/s): 832 transfers
    in 100 s, 8 bit of 100 B each. Padded to segments the goodput was 14.48 times that.
    """
    small = STEADY.replace("20ms", "10ms").replace("40s", "100s")
    run = simulate(
        small,
        "flows=[{cc: cubic, source: {closed: {think: 100ms, times: fixed, connection: keep,"
        " sizes: {law: fixed, mean: 100B}}}}]",
    )
    group = run.groups[0]

    assert group["transfers"]["finished"] == 832
    assert group["goodput_bps"] == 832 * 100 * 8 / 100
    assert group["transfers"]["completion_mean_ns"] == 20_152_000
    # 100 B of payload, 66 of headers and 4 of FCS; two frames, without payload, are shorter.
    assert run.link["out_bytes"] / run.link["out_pkts"] == pytest.approx(170, abs=0.5)
