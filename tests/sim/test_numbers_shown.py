# SPDX-License-Identifier: BSD-3-Clause
"""What reports, comparisons and sweeps show, by the definitions of numbers.md."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from weir.analysis import captures, folder, metrics, windows
from weir.base import programs
from weir.many import sweep
from weir.report import comparison, data, sections
from weir.report.figure import Band, Line
from weir.study import measures

from .conftest import Run, Simulate

PATHS = """
seed: 1
paths:
  forward:
    - link: {rate: 10Mbit, queue: {fifo: {limit: 1BDP}}}
    - delay: {delay: 10ms}
  reverse:
    - delay: {delay: 10ms}
"""
LEVEL_1 = "telemetry: {level: 1, interval: 100ms}\n"
ON_OFF = (
    "duration: 60s\n"
    + PATHS
    + "flows: [{count: 4, cc: cubic, source: {on_off: {on: 200ms, off: 2s}}}]\n"
    + LEVEL_1
)
DOWN = (
    "duration: 20s\n"
    + PATHS.replace("1BDP", "20pkt")
    + "schedule: [{at: 10s, forward.link.rate: 0bit}, {at: 11s, forward.link.rate: 10Mbit}]\n"
    + "flows: [{cc: cubic}]\n"
)
STEADY = (
    PATHS.replace("1BDP", "20pkt")
    + "flows: [{source: {udp: {rate: 20Mbit, size: 1200B}}}]\n"
    + LEVEL_1
)


def read(run: Run) -> data.RunData:
    """What its report is drawn from."""
    return data.read(folder.load(run.folder))


def drawn(found: data.RunData, name: str) -> sections.Drawn:
    """A figure of the report."""
    return next(figure for figure in sections.draw(found) if figure.name == name)


def test_a_window_has_the_rate_of_the_whole_window(simulate: Simulate) -> None:
    """Flows that are on for a tenth of the time: 0.73 Mbit/s each over all windows, which is what
    they got, and 1.50 over the windows in which they have records. Over the records' own time it
    had been 3.04. One window more of some 117 with a late ACK in it is 1 %."""
    found = read(simulate(ON_OFF))
    assert found.flows is not None
    each, length = sections.windowed(found, found.flows)
    by_window = each.group_by("time_s").agg(pl.col("goodput_bps").sum())["goodput_bps"]
    whole_bps = found.numbers.groups[0].goodput_bps / 4

    assert length == 1.0
    assert by_window.max() < 10e6
    assert each["goodput_bps"].sum() / (60 * 4) == pytest.approx(whole_bps, rel=1e-9)
    assert whole_bps == pytest.approx(0.73e6, abs=0.01e6)
    assert each["goodput_bps"].mean() == pytest.approx(1.50e6, rel=0.02)


def test_the_last_window_ends_with_the_run() -> None:
    """4 Mbit in the half second that a window of a second still has are 8 Mbit/s."""
    rated = pl.DataFrame(
        {
            "time_s": [0.5, 1.25],
            "flow_id": [0, 0],
            "group": [0, 0],
            "length_ns": [10**9, 5 * 10**8],
            "goodput_bps": [4e6, 8e6],
            "rtt_mean_ns": [1, 1],
            "rtt_samples": [1, 1],
        }
    )
    found = windows.windows(rated, 1.0, 1.5)
    assert found["goodput_bps"].to_list() == [4e6, 8e6]
    assert found["time_s"].to_list() == [0.5, 1.25]


def test_an_interval_behind_a_gap_is_no_longer_than_others(simulate: Simulate) -> None:
    """No flow from 4 s to 10 s: the next has 4.63 Mbit/s at 10.05 s, and not 0.077 at 7.1 s."""
    text = "flows: [{cc: cubic, stop: 4s}, {cc: cubic, start: 10s}]\n"
    found = read(simulate("duration: 20s\n" + PATHS + text + LEVEL_1))
    assert found.flows is not None
    late = found.flows.rated.filter(pl.col("time_s") > 5).sort("ts_ns").row(0, named=True)

    assert late["length_ns"] == 10**8
    assert late["time_s"] == pytest.approx(10.05)
    assert late["goodput_bps"] == pytest.approx(4.63e6, abs=0.01e6)
    ((first, last),) = metrics.gaps(found.flows.rated)
    assert 4 < first < 4.5
    assert last == pytest.approx(10)
    areas = [m for m in drawn(found, "goodput").panels[0].marks if isinstance(m, Band)]
    assert areas
    for area in areas:  # nothing between zeros at both ends
        assert not ((area.x > first + 0.01) & (area.x < last - 0.01)).any()
        assert (area.high[np.isclose(area.x, last)] == 0).all()


def test_a_capture_ends_within_an_interval(weir_sim: Path, simulate: Simulate) -> None:
    """5 s in intervals of 3 s: flows add up to what the summary says of the capture."""
    run = simulate("duration: 5s\n" + PATHS + "flows: [{cc: cubic}]\n")
    pcap, out = run.folder / "run.pcap", run.folder / "seen"
    argv = [weir_sim, run.folder / "config.yaml", "--out", run.folder / "c", "--pcap", pcap]
    subprocess.run(argv, check=True, timeout=60, capture_output=True)
    analyse = [programs.find_program("pcap"), "analyze", pcap, "--interval", "3s", "--out", out]
    subprocess.run(analyse, check=True, timeout=60, capture_output=True)
    found = data.read(folder.load(out))
    assert found.flows is not None
    total = found.flows.each["goodput_bps"].sum()

    # The summary counts what is acknowledged in sequence, the flows what is by SACK too.
    assert total == pytest.approx(found.numbers.groups[0].goodput_bps, rel=0.01)
    assert found.flows.rated["length_ns"].max() == 3 * 10**9
    last = found.flows.rated.sort("ts_ns")["length_ns"][-1]
    duration_s = found.run.summary.captured.duration_s
    assert last == pytest.approx((duration_s - 3) * 1e9, abs=1)


def test_mathis_goes_by_the_time_that_a_flow_was_there() -> None:
    """A flow that sends from 45 s to 60 s, 15 MB: 8 Mbit/s, not 2 over the minute."""
    table = pl.DataFrame({"flow_id": [0, 1], "delivered_bytes": [60 * 10**6, 15 * 10**6]})
    found = pl.DataFrame({"flow_id": [0, 1], "ts_ns": [60 * 10**9] * 2})
    delays = pl.DataFrame({"flow_id": [0, 1], "data_ns": [60 * 10**9, 15 * 10**9]})
    assert captures.over_own_time(table, found, delays, 0)["goodput_bps"].to_list() == [8e6] * 2
    # Of the first only what is after a warm-up of 30 s counts; here that is all it delivered.
    late = captures.over_own_time(table, found, delays, 30e9)["goodput_bps"].to_list()
    assert late == [16e6, 8e6]


def test_runs_of_unequal_length_compare_by_rates(simulate: Simulate) -> None:
    """The same overload for 20 s and 40 s: as many drops per second, not twice as many."""
    ran = [simulate(f"duration: {s}s\n" + STEADY) for s in (20, 40)]
    compared = comparison.read([folder.load(run.folder) for run in ran])
    values = {metric.name: metric.values for metric in comparison.numbers(compared)}
    first, second = values["drops at the busiest link per second"]

    assert first is not None
    assert second == pytest.approx(first, rel=0.002)  # the queue fills once: 20 packets
    assert first == pytest.approx(1095, rel=0.01)
    assert "drops at the busiest link" not in values


def test_bins_of_events_are_whole_intervals(simulate: Simulate) -> None:
    """A constant 1095 drops a second, drawn as 1314 and 660 in turns by bins of 0.167 s."""
    figure = drawn(read(simulate("duration: 20s\n" + STEADY)), "events")
    [bars] = figure.panels[0].marks
    heights = bars.high

    assert heights.size >= 60
    # A packet more or less in an interval of 0.1 s is 10 a second.
    assert np.abs(heights[1:] - 1095).max() <= 15


def test_a_mean_rtt_is_of_samples() -> None:
    """A flow with 90 samples of 10 ms and one with 10 of 110 ms: 20 ms, not 60."""
    flows = pl.DataFrame(
        {
            "flow_id": [0, 1],
            "group": [0, 0],
            "goodput_bps": [1.0, 1.0],
            "rtt_mean_ns": [10e6, 110e6],
            "rtt_samples": [90, 10],
            **{
                name: [1, 1]
                for name in ("acked_bytes", "sent_segs", "retransmits", "cwnd_reductions", "drops")
            },
        }
    )
    assert metrics.per_group(flows)["rtt_mean_ns"].to_list() == [20e6]


@pytest.mark.slow
def test_the_report_has_the_summary_s_mean_rtt(simulate: Simulate) -> None:
    """Of rtt-unfairness the groups' order had turned round: 82.0 and 35.5 ms, flows' means."""
    run = simulate("rtt-unfairness", "telemetry.level=1")
    found = read(run)
    assert found.flows is not None
    shown = metrics.per_group(found.flows.each)["rtt_mean_ns"].to_list()
    # Records have means in whole nanoseconds.
    assert shown == pytest.approx([g["rtt_mean_ns"] for g in run.groups], abs=1)


def test_percentiles_of_rtts_weigh_intervals_by_samples(simulate: Simulate) -> None:
    """A queue that fills and empties: each interval counts as often as it has samples."""
    run = folder.load(simulate("duration: 10s\n" + PATHS + "flows: [{cc: cubic}]\n").folder)
    records = run.interval.records
    expanded = np.repeat(records["rtt_mean_ns"], records["rtt_samples"].astype(np.int64)) / 1e6
    for p in (50, 75, 95):
        assert measures.rtt_ms(p)(run) == np.percentile(expanded, p, method="inverted_cdf")


def test_jains_index_of_the_report_is_the_summary_s(simulate: Simulate) -> None:
    """Flows that never begin do not count; one that is never answered has begun, and counts."""
    text = (
        "duration: 10s\nwarmup: 5s\n"
        + PATHS
        + "  dead: [{loss: {rate: 100%}}]\n"
        + "flows: [{count: 2, cc: copa}, {cc: copa, start: 20s},"
        + " {cc: copa, path: {forward: dead}}]\n"
        + LEVEL_1
    )
    run = simulate(text)
    found = read(run)
    assert found.flows is not None
    shown = metrics.jfi(found.flows.each["goodput_bps"].to_numpy())

    assert found.flows.each.height == 3
    assert shown == pytest.approx(run.summary["jfi"], rel=1e-9)
    assert shown == pytest.approx(2 / 3, rel=0.01)
    assert "of the flows that have begun" in drawn(found, "shares").caption


def test_an_outage_leaves_the_figures_of_its_link(simulate: Simulate) -> None:
    """A rate of 0 at the end of an interval made 0/0, and queue and delay were gone."""
    found = read(simulate(DOWN + LEVEL_1))
    names = {figure.name for figure in sections.draw(found)}
    assert {"queue", "delay"} <= names

    two = DOWN.replace("link: {rate", "link: {name: first, rate").replace(
        "forward.link", "forward.first"
    )
    two = two.replace("    - delay", "    - link: {name: second, rate: 9Mbit}\n    - delay", 1)
    found = read(simulate(two + LEVEL_1))
    marks = drawn(found, "queue").panels[0].marks
    assert len({mark.style.label for mark in marks if isinstance(mark, Line)}) == 2


@pytest.mark.slow
def test_the_largest_of_all_acks_is_drawn(simulate: Simulate) -> None:
    """In an outage the RTT of one ACK of 100,000 is 1036.9 ms, and the largest window 76."""
    run = simulate(DOWN + "telemetry: {level: 3, interval: 100ms}\n", "duration=120s")
    found = read(run)
    acks = folder.load(run.folder).cc.records
    shown = drawn(found, "acks").panels
    (rtt,) = (panel for panel in shown if panel.y.label.lower().startswith("rtt ("))
    (cwnd,) = drawn(found, "cwnd").panels
    peak = max(np.nanmax(mark.y) for mark in rtt.marks)

    assert acks["rtt_ns"].max() / 1e6 == pytest.approx(1036.9, abs=0.1)
    unit_ns = {"s": 1e9, "ms": 1e6}[rtt.y.label.partition("(")[2].rstrip(")")]
    assert peak == pytest.approx(acks["rtt_ns"].max() / unit_ns)
    assert np.max(cwnd.marks[0].y) == acks["cwnd_segs"].max()


def test_a_sweep_has_the_figures_of_objects() -> None:
    """Completion times, base RTTs and probes of groups are columns, too."""
    group = {"goodput_bps": 1.0, "transfers": {"completion_p99_ns": 5}, "probe": {"dq_ns": 2}}
    found = sweep.figures({"groups": [{**group, "base_rtt": {"max_ns": 7}}], "links": {}})
    assert found["groups.0.transfers.completion_p99_ns"] == 5
    assert found["groups.0.base_rtt.max_ns"] == 7
    assert found["groups.0.probe.dq_ns"] == 2
