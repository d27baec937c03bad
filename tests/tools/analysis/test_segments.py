# SPDX-License-Identifier: BSD-3-Clause
"""Segments of a run: the same as in its capture, and what the figures of them show."""

import subprocess
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import weir
from matplotlib.figure import Figure
from polars.testing import assert_frame_equal
from weir.analysis import segments
from weir.base.errors import UserError
from weir.report import data, grey, sections, segment_figures, segment_sections
from weir.report.figure import Points, Rule, thinned

CONFIG = """
title: one CUBIC flow with losses
seed: 1
duration: 1500ms
paths:
  forward:
    - link: {rate: 10Mbit, queue: {fifo: {limit: 20p}}}
    - delay: {delay: 20ms}
  reverse:
    - delay: {delay: 20ms}
flows:
  - {cc: cubic}
telemetry: {level: 3, segments: yes}
"""
SAME = (
    "ts_ns", "seq", "ack", "payload_bytes", "inflight_bytes", "flags", "ecn", "sack_start",
    "sack_end",
)  # fmt: skip


@pytest.fixture(scope="module")
def run(weir_sim, tmp_path_factory):
    folder = tmp_path_factory.mktemp("segments")
    (folder / "c.yaml").write_text(CONFIG)
    argv = [weir_sim, folder / "c.yaml", "--out", folder / "run", "--pcap", folder / "a.pcap"]
    subprocess.run(argv, check=True, capture_output=True)
    return weir.open(folder / "run")


def test_they_are_those_of_the_capture(run, build):
    argv = [build / "tools/pcap/weir-pcap", "analyze", run.path.parent / "a.pcap", "--level", "3"]
    subprocess.run([*argv, "--out", run.path.parent / "pcap"], check=True, capture_output=True)
    theirs, own = (r.frame("segments") for r in (weir.open(run.path.parent / "pcap"), run))
    assert own.height == theirs.height > 1500
    # weir-pcap learns which end is the sender from the first payload: until then it says 0.
    handshake = own.head(3)
    assert handshake["forward"].to_list() == [1, 0, 1]
    assert theirs.head(3)["forward"].to_list() == [0, 0, 0]
    own = own.with_columns(
        forward=pl.when(pl.int_range(pl.len()) >= 3).then("forward").otherwise(0)
    )
    shown = [
        f.select(*SAME, pl.col("forward").cast(pl.UInt8), resent=pl.col("kind") & 1)
        for f in (own, theirs)
    ]
    assert_frame_equal(*(f.sort("ts_ns", "forward", "seq", "ack") for f in shown))
    assert shown[0]["resent"].sum() == run.summary.groups[0].retransmits > 20
    assert weir.open(run.path.parent / "pcap").plot("stevens").axes[0].lines


def frame(rows):
    """Records by hand: time, forward, seq, ack, payload, kind."""
    names = ("ts_ns", "forward", "seq", "ack", "payload_bytes", "kind")
    made = pl.DataFrame(rows, list(names), orient="row")
    more = {"flow_id": 0, "flags": 16, "window_bytes": 1000, "sack_start": None, "sack_end": None}
    return made.with_columns(pl.lit(v).cast(pl.Int64).alias(k) for k, v in more.items())


ROWS = [
    (0, 1, 2**32 - 100, 1, 100, 0),  # dropped
    (1, 1, 0, 1, 100, 0),
    (2, 0, 1, 2**32 - 100, 0, 0),
    (3, 0, 1, 2**32 - 100, 0, 0),
    (4, 1, 2**32 - 100, 1, 100, 1),
    (5, 0, 1, 100, 0, 0),
]


def test_numbers_rise_beyond_the_wrap_and_what_a_row_does_not_have_is_null():
    found = segments.numbered(frame(ROWS))
    base = 2**32 - 100
    assert found["start"].to_list() == [base, base + 100, None, None, base, None]
    assert found["end"].to_list() == [base + 100, base + 200, None, None, base + 100, None]
    assert found["ack"].to_list() == [None, None, base, base, None, base + 200]
    assert found["window"].to_list()[5] == base + 1200
    assert found["duplicate"].to_list() == [False, False, False, True, False, False]
    assert found["resent"].to_list() == [False] * 4 + [True, False]
    assert found["sack_start"].null_count() == 6


def test_a_dropped_packets_bytes_and_their_retransmission_are_found():
    flow = segments.numbered(frame(ROWS))
    assert segments.fate(flow, 0) == (2**32 - 100, 4e-9)
    assert segments.fate(flow, 1) == (2**32, None)
    assert segments.fate(flow, None) == segments.fate(flow, 99) == (None, None)


def named(panel):
    return {mark.style.label: mark for mark in reversed(panel.marks) if mark.style.label}


def test_strokes_stairs_and_ticks_are_the_segments():
    panel = segment_figures.stevens(segments.numbered(frame(ROWS[1:2] + ROWS[2:4])))
    lines = named(panel)
    assert set(lines) == {"ACK", "segment", "duplicate ACK"}  # the window ends far above
    assert not segment_figures.window_near(segments.numbered(frame(ROWS)))
    near = segments.numbered(frame(ROWS).with_columns(window_bytes=300))
    assert segment_figures.window_near(near)  # 500 B above the first, with 200 B of data
    assert (lines["segment"].low, lines["segment"].high) == (0, 100)
    assert lines["duplicate ACK"].x == pytest.approx([3e-9])


def test_a_dense_flow_has_strokes_between_gaps():
    """As many as a page shows, and the caption says of how many."""
    rows = [(i, 1, i * 100, 1, 100, i % 2) for i in range(12_000)]
    whole = segment_figures.sequence(segments.numbered(frame(rows)), "")
    drawn = thinned(replace(whole, caption="Segments."))
    [panel] = drawn.panels
    lines = named(panel)
    for name in ("segment", "retransmission"):
        assert 2000 < lines[name].low.size <= 4000
        assert lines[name].high - lines[name].low == pytest.approx(1e-4)  # of 1.2 MB
    letters = [m for m in panel.marks if isinstance(m, Points) and m.style.marker == "$R$"]
    assert [mark.x.size for mark in letters] == [40]
    assert " of 18,040 points: " in drawn.caption


def test_the_report_has_them(run):
    drawn = {one.name: one for one in sections.draw(data.read(run))}
    assert {"sequence", "stevens", "drop"} <= set(drawn)
    assert "queue full" in drawn["drop"].caption
    flow = segment_sections.of_flow(data.read(run), 0)
    resent = named(drawn["stevens"].panels[0])["retransmission"]
    assert resent.low.size == int(flow["resent"].sum())
    first = flow.filter("resent").row(0, named=True)
    ends = [resent.low[0], resent.high[0]]
    assert ends == pytest.approx([first["start"] / 1e6, first["end"] / 1e6])
    panels = drawn["drop"].panels
    [drop_s], [at] = (getattr(named(panels[0])["dropped"], axis) for axis in "xy")
    assert at * 1e3 == first["start"]  # the first that was dropped is the first that is sent again
    dropped = run.frame("packets").filter(pl.col("event") == 3).row(0, named=True)
    assert drop_s == dropped["ts_ns"] / 1e9
    cwnd = panels[2].marks[0].x
    assert cwnd[0] <= panels[1].marks[0].x[0] < drop_s  # what held when it begins
    assert named(panels[1])["queue"].y.max() * 1e3 == run.frame("packets")["queue_bytes"].max()
    for name in ("stevens", "drop"):
        for panel in grey.separate(drawn[name]).panels:
            assert list(grey.alike(panel)) == []


def test_a_drop_behind_the_queue(weir_sim, tmp_path):
    """Of a stage that is no link: shown beside the queue that the flow passed."""
    config = CONFIG.replace("  reverse:", "    - loss: {rate: 3%}\n  reverse:", 1)
    argv = [weir_sim, "-", "--out", tmp_path / "r"]
    subprocess.run(argv, input=config, capture_output=True, text=True, check=True)
    read = data.read(weir.open(tmp_path / "r"))
    around = segment_sections.around_drop(read)
    first = segment_sections.of_flow(read, 0).filter("resent").row(0, named=True)
    assert (around.start, around.resent_s) == (first["start"], first["time_s"])
    assert around.reason == "loss"
    assert around.drops["queue_bytes"].to_list() == [0]
    assert around.arrivals.height > 20
    assert around.queue["queue_bytes"].max() > 0


def test_a_drop_of_which_nothing_is_known_has_no_mark():
    nothing = pl.DataFrame({"time_s": [0.0, 1.0], "queue_bytes": [0, 10], "cwnd_segs": [1.0, 2.0]})
    around = segment_figures.Around(
        flow=segments.numbered(frame(ROWS)),
        arrivals=nothing.head(0),
        queue=nothing,
        drops=nothing.head(0),
        cwnd=nothing,
        drop_s=0.5,
        reason="aqm",
        start=None,
        resent_s=None,
    )
    figure = segment_figures.timeline(around)
    top = figure.panels[0]
    assert "dropped" not in named(top)
    assert [mark.at for mark in top.marks if isinstance(mark, Rule)] == [0.5]  # one moment


@pytest.mark.parametrize("level", [0, 1])
def test_they_need_level_2(weir_sim, level):
    words = [weir_sim, "-", "--check", "-o", f"telemetry.level={level}"]
    done = subprocess.run(words, input=CONFIG, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.endswith("segments: they need level 2 or 3\n")


def test_they_change_nothing_and_without_them_there_is_no_figure(weir_sim, run, tmp_path):
    argv = [weir_sim, "-", "--out", tmp_path / "r", "-o", "telemetry.segments=no"]
    subprocess.run(argv, input=CONFIG, capture_output=True, text=True, check=True)
    without = weir.open(tmp_path / "r")
    assert without.summary.digest == run.summary.digest
    assert "segments" not in without.streams
    with pytest.raises(UserError, match="'drop'"):
        without.plot("drop")


def test_a_sample_without_a_flow_has_no_figure(weir_sim, tmp_path):
    """Level 2 takes 1 % of one flow, which is none: there is a ring, and no record in it."""
    argv = [weir_sim, "-", "--out", tmp_path / "r", "-o", "telemetry.level=2"]
    subprocess.run(argv, input=CONFIG, capture_output=True, text=True, check=True)
    without = weir.open(tmp_path / "r")
    assert len(without.stream("segments").records) == 0
    with pytest.raises(UserError, match="no figure 'stevens'"):
        without.plot("stevens")


@pytest.mark.parametrize("name", ["stevens", "drop"])
def test_axes_of_ones_own(run, name):
    panels = Figure().subplots(1 if name == "stevens" else 3)
    assert run.plot(name, ax=panels) is np.ravel(panels)[0].figure
    assert "SACK" in np.ravel(panels)[0].get_legend_handles_labels()[1]
    with pytest.raises(UserError, match="panels: give as many axes"):
        run.plot(name, ax=[*np.ravel(panels), Figure().subplots()])


def test_a_run_of_captures_has_none(weir_sim):
    config = "duration: 1s\npaths: {forward: [{source: {pcap: a.pcap}}]}\n"
    words = [weir_sim, "-", "--check", "-o", "telemetry.segments=yes", "-o", "telemetry.level=2"]
    done = subprocess.run(words, input=config, capture_output=True, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "segments: this run has captures and no flows" in done.stderr
