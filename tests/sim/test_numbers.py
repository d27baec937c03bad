# SPDX-License-Identifier: BSD-3-Clause
"""One definition per number (numbers.md): what it counts, over which time, without what."""

from __future__ import annotations

import numpy as np
import pytest
from weir.analysis import folder

from .conftest import Simulate

CLOSE = 2
PATHS = """
paths:
  forward:
    - link: {rate: 100Mbit, queue: {fifo: {limit: 1BDP}}}
    - delay: {delay: 10ms}
  reverse:
    - delay: {delay: 10ms}
"""


def test_a_warmup_ends_an_interval(simulate: Simulate) -> None:
    """1.05 s of warm-up in intervals of 0.5 s: the records behind it are the summary's numbers.

    An interval that began in the warm-up had made 96.56 Mbit/s of 94.15.
    """
    run = simulate(
        "seed: 1\nduration: 2900ms\nwarmup: 1050ms\n"
        + PATHS
        + "flows: [{count: 2, cc: cubic}]\ntelemetry: {level: 1, interval: 500ms}\n"
    )
    (group,) = run.groups
    rings = folder.load(run.folder)
    ends = [0.5, 1.0, 1.05, 1.5, 2.0, 2.5, 2.9]

    for stream in ("interval", "links"):
        found = np.unique(rings.stream(stream).records["ts_ns"])
        assert found.tolist() == [round(end * 1e9) for end in ends], stream
    records = rings.interval.records
    late = records[records["ts_ns"] > 1_050_000_000]
    for name in ("acked_bytes", "sent_segs", "retransmits", "cwnd_reductions", "drops"):
        assert late[name].sum() == group[name], name
    goodput_bps = late["delivered_bytes"].sum() * 8 / (2.9 - 1.05)
    assert goodput_bps == pytest.approx(group["goodput_bps"], rel=1e-12)
    links = rings.links.records
    forward = links[(links["link"] == 0) & (links["ts_ns"] > 1_050_000_000)]
    assert forward["out_bytes"].sum() == run.link["out_bytes"]


def test_transfers_of_the_warmup_are_left_out(simulate: Simulate) -> None:
    """Completion times are those of transfers that began at or after the warm-up's end.

    1054 of web-search's had been counted, the whole run's; 899 began after 100 ms. A percentile is
    within half a bucket of the exact one (common/base/hist.h): 1/64.
    """
    run = simulate("web-search")
    found = run.groups[0]["transfers"]
    records = folder.load(run.folder).stream("transfers").records
    warmup_ns = round(run.summary["warmup_s"] * 1e9)
    closed = records[(records["event"] == CLOSE) & (records["start_ns"] >= warmup_ns)]
    took = np.sort((closed["ts_ns"] - closed["start_ns"]).astype(float))

    assert found["measured"] == closed.size == 899
    assert found["completion_mean_ns"] == pytest.approx(took.mean(), rel=1e-9)
    assert took.mean() == pytest.approx(1.744e6, rel=1e-3)
    for part, right in ((50, 138.47e3), (95, 8.14e6), (99, 21.06e6)):
        exact = took[int(np.ceil(part / 100 * took.size)) - 1]
        assert exact == pytest.approx(right, rel=1e-3)
        assert found[f"completion_p{part}_ns"] == pytest.approx(exact, rel=1 / 64)
    slowdown = ((closed["ts_ns"] - closed["start_ns"]) / closed["ideal_ns"]).mean()
    assert found["slowdown_mean"] == pytest.approx(slowdown, rel=1e-9)
    assert found["slowdown_mean"] == pytest.approx(1.5035, rel=1e-3)


def test_probes_of_the_warmup_are_left_out(simulate: Simulate) -> None:
    """20 probes, 10 ms apart from 20 ms on (the handshake): those of the first 100 ms are not
    answered after it. The probe that is sent at 20 + 10 k ms is back 20 ms later."""
    text = PATHS + "flows: [{cc: cubic, source: {probe: {}}}]\nseed: 1\nduration: 1s\n"

    assert simulate(text).groups[0]["probe"]["answered"] == 20
    assert simulate(text, "warmup=105ms").groups[0]["probe"]["answered"] == 20 - 7
    assert simulate(text, "warmup=900ms").groups[0]["probe"]["answered"] == 0


def test_a_fin_is_no_segment_of_data(simulate: Simulate) -> None:
    """50 transfers of one segment: 50 segments with payload were sent, and 50 FINs."""
    run = simulate(
        "seed: 1\nduration: 5s\n"
        + PATHS
        + "flows: [{count: 50, cc: cubic, source: {size: {bytes: 1448B}}}]\n"
        + "telemetry: {level: 1, interval: 100ms}\n"
    )
    flows = folder.load(run.folder).flows.records

    assert run.groups[0]["sent_segs"] == 50
    assert run.groups[0]["acked_bytes"] == 50 * 1448
    assert flows[flows["event"] == CLOSE]["sent_segs"].tolist() == [1] * 50


def test_a_lost_fin_is_no_retransmission_of_data(simulate: Simulate) -> None:
    """A path that drops half of all packets: retransmissions are segments beyond the file's."""
    run = simulate(
        "seed: 3\nduration: 600s\n"
        + PATHS.replace("    - link", "    - loss: {rate: 50%}\n    - link", 1)
        + "flows: [{count: 40, cc: newreno, source: {size: {bytes: 2896B}}}]\n"
        + "telemetry: {level: 1, interval: 1s}\n"
    )
    (group,) = run.groups

    assert run.summary["flows"]["done"] == 40
    assert group["retransmits"] > 0
    assert group["sent_segs"] == 2 * 40 + group["retransmits"]


def test_an_interval_counts_all_its_drops(simulate: Simulate) -> None:
    """829,364 drops in four intervals: 65,535 a record had left 262,140 of them."""
    run = simulate(
        "seed: 1\nduration: 4s\n"
        + PATHS.replace("100Mbit", "10Mbit").replace("1BDP", "20pkt")
        + "flows: [{source: {udp: {rate: 2Gbit, size: 1200B}}}]\n"
        + "telemetry: {level: 1, interval: 1s}\n"
    )
    records = folder.load(run.folder).interval.records

    assert records["drops"].sum() == run.groups[0]["drops"] == run.link["drops"]
    # 2 Gbit/s of 1200 bytes less 10 Mbit/s of frames, less those that are still queued.
    assert records["drops"].max() == pytest.approx(2e9 / (8 * 1200) - 10e6 / (8 * 1246), abs=30)


def test_a_flow_that_never_begins_is_no_unfairness(simulate: Simulate) -> None:
    """Four flows share alike, four are to start after the run: Jain's index is 1, not 0.5.

    A flow that has begun and gets nothing counts: of two, one behind a path that drops all, 0.5.
    """
    text = "seed: 1\nduration: 10s\nwarmup: 5s\n" + PATHS
    alike = "flows: [{count: 4, cc: copa, ack_every: 1}, {count: 4, cc: copa, start: 20s}]\n"
    run = simulate(text + alike)

    assert run.summary["jfi"] == pytest.approx(1, abs=1e-3)
    assert run.groups[0]["jfi"] == run.summary["jfi"]
    assert run.groups[1]["jfi"] is None
    assert run.summary["flows"]["waiting"] == 4

    dead = (
        "  dead: [{loss: {rate: 100%}}]\nflows: [{cc: copa}, {cc: copa, path: {forward: dead}}]\n"
    )
    assert simulate(text + dead).summary["jfi"] == 0.5


def test_what_was_sent_in_vain_is_an_event(simulate: Simulate) -> None:
    """A DSACK tells of a retransmission that was not needed: the summary counts those events.

    Only the analysis of a capture had written them.
    """
    run = simulate(
        "seed: 1\nduration: 5s\nwarmup: 1s\n"
        + PATHS
        + "schedule: [{at: 2s, reverse.delay.delay: 500ms}, {at: 3s, reverse.delay.delay: 10ms}]\n"
        + "flows: [{count: 4, cc: cubic}]\ntelemetry: {level: 1, interval: 100ms}\n"
    )
    spurious = folder.load(run.folder).values("events", "event")["spurious"]
    records = run.records("events")

    assert run.groups[0]["spurious"] == 4  # the timeout of each
    assert (records["event"] == spurious).sum() == 4
