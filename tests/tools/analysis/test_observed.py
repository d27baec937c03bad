# SPDX-License-Identifier: BSD-3-Clause
"""What plug-ins observe, from weir-sim to the data of the report's figures."""

import os
import subprocess
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from weir.analysis import folder
from weir.base import tables
from weir.report import sections
from weir.report.data import read
from weir.report.figure import Line

ROOT = Path(__file__).resolve().parents[3]
SIM = Path(os.environ.get("WEIR_BUILD", ROOT / "build")) / "tools/sim/weir-sim"
pytestmark = pytest.mark.skipif(not SIM.exists(), reason=f"{SIM} is not built")

CONFIG = """
duration: 2s
paths:
  forward:
  - edges: {count: 2, rate: 30Mbit}
  - link: {rate: 20Mbit, queue: {codel: {limit: 4BDP}}}
  - delay: {delay: 10ms}
  reverse:
  - link: {rate: 20Mbit, queue: {fifo: {limit: 9pkt}}}
  - delay: {delay: 10ms}
flows:
- {count: 2, cc: newreno}
- {cc: copa}
telemetry: {level: 3, interval: 50ms}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("observed")
    (path / "c.yaml").write_text(CONFIG)
    argv = [SIM, path / "c.yaml", "--out", path / "run"]
    subprocess.run(argv, check=True, capture_output=True, timeout=60)
    return folder.load(path / "run")


def lines(figure):
    """What each panel shows: y data of each line by the label of the axis."""
    shown = {}
    for panel in figure.panels:
        shown[panel.y.label] = [mark.y for mark in panel.marks if isinstance(mark, Line)]
    return shown


def test_what_codel_observes_reaches_a_figure(run):
    edges, codel = sections.observations(run)
    assert (codel.name, codel.link, codel.path) == ("codel", 0, 0)
    count, dropping, spacing, last = (
        codel.numbers[n].to_numpy() for n in codel.numbers.columns[1:]
    )
    assert codel.numbers.columns[1:] == ["count", "dropping", "drop_spacing_ns", "count_last"]
    assert count.max() > 1
    assert (last[count > 0] >= 1).all()
    np.testing.assert_array_equal(dropping, count > 0)
    law = 100e6 / np.sqrt(count[count > 0])
    np.testing.assert_allclose(spacing[count > 0], law, rtol=1e-6)
    assert (edges.name, edges.link) == ("edges", 255)
    assert edges.numbers["queue_pkts"].max() > 1
    drawn = {one.caption: one for one in sections.draw_observed(read(run))}
    assert list(drawn) == [
        "What edges observed at path forward. There is a value at each interval's end.",
        "What CoDel observed at forward. There is a value at each interval's end.",
    ]
    shown = lines(drawn["What CoDel observed at forward. There is a value at each interval's end."])
    assert list(shown) == ["count", "dropping", "drop spacing (ms)", "count last"]
    np.testing.assert_array_equal(shown["count"][0], count)
    np.testing.assert_allclose(shown["drop spacing (ms)"][0], spacing / 1e6)


def test_every_field_of_acks_reaches_a_figure(run):
    data = read(run)
    drawn = [(one, one.caption) for one in sections.draw_acks(data, data.flows)]
    assert [text for _, text in drawn] == [
        "What the congestion controls were given. There is a value after each ACK.",
        "What NewReno observed. There is a value after each ACK.",
        "What Copa observed. There is a value after each ACK.",
    ]
    fields = [field.name for field in run.rings("cc")[0].schema.fields]
    left = [n for n in fields if n not in sections.CC_ELSEWHERE + sections.CC_OWN]
    cc = run.frame("cc")
    assert len(lines(drawn[0][0])) == sum((cc[name] != 0).any() for name in left)
    assert list(lines(drawn[2][0])) == ["velocity", "delta", "dq (ms)", "rtt min (ms)"]
    rtt = lines(drawn[0][0])["rtt (ms)"]
    assert len(rtt) == 3
    assert all((line > 0).all() for line in rtt), "0: there was no sample"
    states = sections.recoveries(data, [0, 1, 2])
    assert set(states["state"]) <= {"recovery", "loss"}
    lost = cc.filter(pl.col("state") != 0)
    assert set(states["flow_id"]) == set(lost["flow_id"])
    for flow, from_s, to_s, state in states.iter_rows():
        during = (pl.col("ts_ns") / 1e9).is_between(from_s, to_s, "left")
        own = cc.filter((pl.col("flow_id") == flow) & during)
        assert set(own["state"]) == {("open", "recovery", "loss").index(state)}


def test_files_say_who_observes_what(run):
    """Who is there, in the order of the config, and what `list` says of each."""
    (events,), (cc,) = run.rings("events"), run.rings("cc")
    listed = tables.read()
    assert [o.name for o in events.schema.observers] == ["edges", "codel"]
    assert [o.name for o in cc.schema.observers] == ["newreno", "copa"]
    for ring, kinds in ((events, ("aqm", "stage")), (cc, ("cc",))):
        for o in ring.schema.observers:
            entry = next(listed[kind][o.name] for kind in kinds if o.name in listed[kind])
            assert list(o.observed) == entry["observed"]
    assert cc.values("state") == {"open": 0, "recovery": 1, "loss": 2}
