# SPDX-License-Identifier: BSD-3-Clause
"""The Python API: what weir.open and weir.run give, and that it is no copy."""

import math
import os
import shlex
import subprocess
import sys
from functools import partialmethod
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib as mpl
import numpy as np
import polars as pl
import pytest
import synthetic
import weir
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from weir.analysis.stream import Stream

ROOT = Path(__file__).resolve().parents[3]
CONFIG = """\
seed: 3
duration: 2s
paths:
  forward:
    - link: {rate: 10Mbit, queue: {fifo: {limit: 30p}}}
    - delay: {delay: 5ms}
  reverse:
    - delay: {delay: 5ms}
flows:
  - {count: 2, cc: cubic}
telemetry: {level: 3, interval: 100ms}
"""


@pytest.fixture
def made(tmp_path):
    return weir.open(synthetic.make_run(tmp_path / "run", level=3))


@pytest.fixture
def recorded(tmp_path, weir_sim, monkeypatch):
    """A run of weir-sim through the API."""
    (tmp_path / "x.yaml").write_text(CONFIG)
    monkeypatch.setenv("WEIR_COMMAND", "")
    return weir.run(tmp_path / "x.yaml", out=tmp_path / "out", overrides={"flows.0.count": 3})


def test_a_stream_is_the_mapped_file(made):
    records = np.asarray(made.packets)
    assert isinstance(made.packets.records, np.memmap)
    assert np.shares_memory(records, made.packets.files[0].records)
    assert np.shares_memory(made.packets["sojourn_ns"], records)
    assert records.shape == (len(made.packets),) == (20_000,)
    with pytest.raises(ValueError, match="read-only"):
        records["ts_ns"] = 0


def test_columns_have_units_and_names(made):
    field = made.packets.field("event")
    assert field.values["drop"] == 3 == made.packets.number("event", "drop")
    assert made.packets.field("sojourn_ns").unit == "ns"
    assert "sojourn_ns" in made.packets.names
    for wrong in (
        lambda: made.packets["delay"],
        lambda: made.packets.field("delay"),
        lambda: made.packets.number("event", "lost"),
        lambda: made.packets.number("ts_ns", "zero"),
    ):
        with pytest.raises(weir.UserError, match=r"of packets|packets has no"):
            wrong()


def test_frames_and_tables_say_the_same(made):
    frame, table = made.interval.to_polars(), made.interval.to_arrow()
    assert frame.equals(pl.from_arrow(table))
    assert made.interval.to_polars(["flow_id"]).columns == ["flow_id"]
    assert table.schema.field("ts_ns").metadata[b"unit"] == b"ns"
    np.testing.assert_array_equal(made.interval["cwnd_segs"], frame["cwnd_segs"].to_numpy())


def test_batches_are_the_stream_in_order(made):
    batches = list(made.packets.batches(3000))
    assert [len(batch) for batch in batches] == [3000] * 6 + [2000]
    assert all(isinstance(batch.records, np.memmap) for batch in batches)
    whole = np.concatenate([batch["ts_ns"] for batch in batches])
    np.testing.assert_array_equal(whole, made.packets["ts_ns"])
    assert [len(part) for part in batches[0].batches(2000)] == [2000, 1000]


def test_what_was_not_recorded_is_said(made, tmp_path):
    assert made.streams == ("packets", "interval", "links", "events")
    with pytest.raises(weir.UserError, match="cc were not recorded"):
        _ = made.cc
    with pytest.raises(weir.UserError, match="there is no stream 'packet'"):
        made.stream("packet")
    with pytest.raises(weir.UserError, match="no such run folder"):
        weir.open(tmp_path / "nothing")


def test_two_programs_are_one_clock(tmp_path):
    """Live: the sender started 5 us after the switch."""
    for name, utc, n in (("switch", 1_000_000, 4), ("sender", 1_005_000, 3)):
        events = synthetic.empty("events", n)
        events["ts_ns"] = np.arange(n) * 10
        synthetic.write_ring(tmp_path / f"events-{name}.ring", "events", events, utc=utc)
    cc = synthetic.empty("cc", 3)
    cc["ts_ns"] = [1, 2, 3]
    synthetic.write_ring(tmp_path / "cc.ring", "cc", cc, utc=1_005_000)
    run = weir.open(tmp_path)
    times = [5000, 5010, 5020, 0, 10, 20, 30]
    assert list(run.events["ts_ns"]) == times
    assert list(run.events.records["ts_ns"]) == times
    assert list(run.events.to_polars()["ts_ns"]) == times
    assert [t for batch in run.events.batches(2) for t in batch["ts_ns"]] == times
    assert list(run.cc["ts_ns"]) == list(run.cc.records["ts_ns"]) == [5001, 5002, 5003]
    assert list(run.cc.files[0].records["ts_ns"]) == [1, 2, 3]
    assert np.shares_memory(run.cc["rtt_ns"], run.cc.files[0].records)


def test_gap_records_are_left_out(tmp_path):
    cc = synthetic.empty("cc", 5)
    cc["ts_ns"] = [1, 2, 2**64 - 1, 4, 5]
    synthetic.write_ring(tmp_path / "cc.ring", "cc", cc, lost=7, gaps=1)
    run = weir.open(tmp_path)
    assert (len(run.cc), run.cc.lost) == (4, 7)
    assert list(run.cc["ts_ns"]) == list(run.cc.records["ts_ns"]) == [1, 2, 4, 5]
    assert [list(batch["ts_ns"]) for batch in run.cc.batches(2)] == [[1, 2], [4], [5]]
    assert run.cc.to_arrow().num_rows == 4


def test_a_run_and_what_it_recorded(recorded, tmp_path):
    assert recorded.path == tmp_path / "out"
    assert recorded.config["flows"][0]["count"] == "3"
    assert recorded.manifest.command.endswith("-o flows.0.count=3")
    assert recorded.summary.ledger.balanced
    assert set(np.unique(recorded.cc["flow_id"])) == {0, 1, 2}
    assert len(recorded.flows) >= 3


def test_a_run_that_cannot_be_says_why(tmp_path, weir_sim):
    (tmp_path / "x.yaml").write_text(CONFIG.replace("10Mbit", "10Mbitt"))
    with pytest.raises(weir.UserError, match="10Mbitt") as caught:
        weir.run(tmp_path / "x.yaml", out=tmp_path / "out")
    assert caught.value.status == 2
    (tmp_path / "x.yaml").write_text(CONFIG)
    with pytest.raises(weir.UserError, match="count"):
        weir.run(tmp_path / "x.yaml", out=tmp_path / "out", overrides={"flows.0.count": "many"})


def test_a_config_may_be_a_dict(tmp_path, weir_sim, monkeypatch):
    """And the command that the manifest has runs the same again."""
    monkeypatch.setenv("WEIR_COMMAND", "")
    config = {
        "seed": 3,
        "duration": "1s",
        "paths": {
            "forward": [
                {"link": {"rate": "10Mbit", "queue": {"fifo": {"limit": "30p"}}}},
                {"delay": {"delay": "5ms"}},
            ],
            "reverse": [{"delay": {"delay": "5ms"}}],
        },
        "flows": [{"count": 2, "cc": "cubic", "tlp": False}],
        "telemetry": {"level": 1, "interval": "100ms"},
    }
    run = weir.run(config, out=tmp_path / "a", overrides={"flows.0.count": 1})
    assert run.config["flows"][0]["tlp"] == "no"
    assert run.config["flows"][0]["count"] == "1"
    assert run.summary.ledger.balanced
    command = shlex.split(run.manifest.command)
    assert command[:3] == ["weir", "run", str(tmp_path / "a" / "config.yaml")]
    repeated = weir.run(command[2], out=tmp_path / "b")
    assert repeated.summary.digest == run.summary.digest
    config["paths"]["forward"][0]["link"]["rate"] = "10Mbitt"
    with pytest.raises(weir.UserError, match="10Mbitt"):
        weir.run(config, out=tmp_path / "c")


def test_overrides_are_written_as_the_config_is(tmp_path, weir_sim):
    (tmp_path / "x.yaml").write_text(CONFIG)
    overrides = {
        "flows.0": {"count": 1, "cc": {"copa": {"delta": 0.25}}},
        "paths.forward.link.queue": {"fifo": {"limit": "20p"}},
        "telemetry.arrivals": True,
    }
    run = weir.run(tmp_path / "x.yaml", out=tmp_path / "out", overrides=overrides, duration="1s")
    assert run.config["telemetry"]["arrivals"] == "yes"
    assert run.config["flows"][0]["cc"]["copa"]["delta"] == "0.25"
    assert len(run.arrivals) > 0


def test_a_tail_follows_and_ends(recorded):
    found = list(recorded.cc.tail(0.01))
    assert sum(map(len, found)) == len(recorded.cc)
    parts = [batch.to_polars() for batch in found if len(batch) > 0]
    assert pl.concat(parts).equals(recorded.cc.to_polars())


def test_a_tail_sees_what_is_written_while_it_looks(tmp_path, build):
    """ring_writer writes as the programs do, slowly."""
    writer = build / "tests/tools/ring_writer"
    argv = [writer, "--records", "2000", "--dir", tmp_path, "--virtual"]
    subprocess.run(argv, check=True, capture_output=True)
    whole = (tmp_path / "packets.ring").read_bytes()
    path = tmp_path / "packets.ring"
    half = synthetic.empty("packets", 1000)
    synthetic.write_ring(path, "packets", half, closed=False)
    stream = weir.open(tmp_path).packets
    tail = stream.tail(0.001)
    assert len(next(tail)) == 1000
    assert len(next(tail)) == 0
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(whole[4096:])
        file.seek(0)
        file.write(whole[:4096])
    rest = [batch for batch in tail if len(batch) > 0]
    assert sum(map(len, rest)) == 1000
    assert list(np.concatenate([b["ts_ns"] for b in rest])) == list(range(1000, 2000))


def test_percentiles_per_flow(recorded):
    found = recorded.packets.percentile("sojourn_ns", 99, where={"event": "dequeue"})
    assert found.columns == ["flow_id", "records", "sojourn_ns"]
    dequeued = recorded.packets["event"] == 2
    for flow, records, p99 in found.rows():
        mine = dequeued & (recorded.packets["flow_id"] == flow)
        assert records == mine.sum() > 0
        assert p99 == weir.metrics.percentile(recorded.packets["sojourn_ns"][mine], 99)
    with pytest.raises(weir.UserError, match="101 is not a percentage"):
        recorded.packets.percentile("sojourn_ns", 101)
    with pytest.raises(weir.UserError, match="need whole numbers"):
        recorded.interval.percentile("cwnd_segs", 50)


values = st.one_of(st.integers(0, 5), st.integers(0, 2**63), st.sampled_from([255, 256, 257]))
pairs = st.lists(st.tuples(st.sampled_from([0, 1, 7, 70_000]), values), max_size=60)


@pytest.mark.slow
@given(pairs=pairs, p=st.sampled_from([0, 1, 33, 50, 99, 99.9, 100]))
def test_percentiles_are_exact(pairs, p):
    records = synthetic.empty("interval", len(pairs))
    for record, (flow, value) in zip(records, pairs, strict=True):
        record["flow_id"], record["delivered_bytes"] = flow, value
    with TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        synthetic.write_ring(Path(place) / "interval.ring", "interval", records)
        patch.setattr(Stream, "batches", partialmethod(Stream.batches, 7))
        found = weir.open(place).interval.percentile("delivered_bytes", p)
    assert found["flow_id"].to_list() == sorted({flow for flow, _ in pairs})
    for flow, count, value in found.rows():
        mine = [one for key, one in pairs if key == flow]
        assert count == len(mine)
        assert value == sorted(mine)[max(math.ceil(len(mine) * p / 100 - 1e-9), 1) - 1]


def test_importing_is_light():
    """Names come when they are used: the command line starts with few of them."""
    code = "import sys, weir; weir.open; assert not {'polars', 'matplotlib'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ)
    assert set(weir.__all__) <= set(dir(weir))
    assert all(getattr(weir, name) is not None for name in weir.__all__)
    with pytest.raises(AttributeError):
        _ = weir.no_such_name


def test_a_run_is_shown_in_three_lines_and_as_tables(made):
    """Its repr had 23,000 characters."""
    lines = repr(made).splitlines()
    assert len(lines) == 3
    assert len(repr(made)) < 500
    assert lines[0].startswith(
        f"<Run {made.path}: '4 synthetic flows', weir-sim, 20.0 s; ok: every"
    )
    assert "goodput" in lines[1]
    assert lines[2] == "  streams: packets, interval, links, events>"
    shown = made._repr_html_()
    assert '<td class="l">copa</td>' in shown
    assert "4 synthetic flows" in shown
    assert "<html" not in shown


def test_dir_shows_what_is_ours():
    assert dir(weir) == sorted([*weir.__all__, "__version__"])
    for module, name in ((weir.metrics, "jfi"), (weir.figures, "rtt")):
        shown = dir(module)
        assert name in shown
        assert not {"np", "pl", "Any", "annotations", "units", "Floats"} & set(shown)
        assert all(getattr(module, each).__module__ == module.__name__ for each in shown)


def test_the_package_says_that_it_has_types():
    assert (Path(weir.__file__).parent / "py.typed").exists()


def test_a_run_draws_its_figures_and_into_axes_of_the_user(made):
    before = dict(mpl.rcParams)
    figure = made.plot("rtt")
    own = Figure()
    above, below = own.subplots(2)
    assert made.plot("rtt", ax=above) is own
    assert dict(mpl.rcParams) == before  # the user's own look stays
    (panel,) = figure.axes
    assert above.get_ylabel() == panel.get_ylabel() == "RTT (ms)"
    assert above.get_ylim() == panel.get_ylim()
    labels = above.get_legend_handles_labels()[1]
    assert labels[:2] == ["flow 0", "flow 1"]
    for mine, theirs in zip(above.lines, panel.lines, strict=True):
        np.testing.assert_array_equal(mine.get_ydata(), theirs.get_ydata())
        assert mine.get_color() == theirs.get_color()
        assert mine.get_transform().contains_branch(above.transAxes) == (
            theirs.get_transform().contains_branch(panel.transAxes)
        )
    assert made.plot("goodput", ax=below) is own
    assert len(below.collections) == 4
    assert below.get_ylim() == made.plot("goodput").axes[0].get_ylim()
    own.draw_without_rendering()
    with pytest.raises(
        weir.UserError, match="'queue' has 2 panels: give as many axes in ax, not 1"
    ):
        made.plot("queue", ax=above)
    made.plot("queue", ax=own.subplots(1, 2))
    with pytest.raises(weir.UserError, match="there is no figure 'nothing'"):
        made.plot("nothing")
