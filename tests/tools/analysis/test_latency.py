# SPDX-License-Identifier: BSD-3-Clause
"""Delay under load: which groups ping, what is trimmed, and round trips per minute."""

import numpy as np
import pytest
import weir
from synthetic import ROOT
from weir.analysis import latency

RRUL = ROOT / "configs/flent/rrul.yaml"


def test_the_mean_of_the_smallest_95_percent():
    """Of 20 values the largest is left out; by weight, part of one may count."""
    values = np.array([1000.0, *range(1, 20)])
    assert latency.trimmed_mean(values) == pytest.approx(10)
    assert latency.trimmed_mean(np.array([4.0])) == 4
    weighed = latency.trimmed_mean(np.array([1.0, 3.0]), np.array([1, 1]))
    assert weighed == pytest.approx((1 * 1 + 3 * 0.9) / 1.9)
    assert latency.trimmed_mean(np.empty(0)) is None


@pytest.mark.parametrize(
    ("given", "trips"),
    [
        ("bulk", None),
        ({"closed": {"connection": "keep", "sizes": {"mean": "64B"}}}, 1),
        ({"closed": {"connection": "new", "sizes": {"mean": "1448B"}}}, 2),
        ({"closed": {"sizes": {"mean": "1449B"}}}, None),
        ({"closed": {"sizes": {"mean": "64B", "law": "pareto"}}}, None),
        ({"request": {"sizes": {"mean": "1kB"}}}, 1),
        ({"poisson": {"sizes": {"mean": "64B"}}}, None),
    ],
)
def test_a_ping_is_a_transfer_of_one_segment(given, trips):
    found = latency.ping_groups({"flows": [{"cc": "cubic"}, {"cc": "cubic", "source": given}]})
    assert found == ({} if trips is None else {1: trips})


def test_responsiveness_is_a_minute_over_the_mean_of_both_times():
    """20 ms of pings and 40 ms on the load's own connections: 2000 round trips."""
    both = latency.UnderLoad(None, None, None, None, 20e6, 40e6)
    assert both.rpm == pytest.approx(2000)
    assert latency.UnderLoad(None, None, None, None, 20e6, None).rpm == pytest.approx(3000)
    assert latency.UnderLoad(None, None, None, None, None, 40e6).rpm is None
    assert both.table.rows[0] == ["–", "–", "–", "–", "2,000"]


@pytest.mark.parametrize(("queue", "said"), [(None, 250), ("cake", 2550)])
def test_rrul_has_the_round_trips_that_its_comment_says(queue, said, tmp_path):
    assert str(said) in RRUL.read_text()
    ways = ("forward", "reverse")
    overrides = {f"paths.{way}.link.queue": queue for way in ways} if queue else {}
    found = latency.under_load(weir.run(RRUL, overrides=overrides, out=tmp_path / "run"))
    assert found.idle_ns == pytest.approx(20.07e6, rel=1e-3)  # 20 ms, and 84 B each way
    assert found.rpm == pytest.approx(said, rel=0.02)


def test_delay_one_way_is_the_queue_and_the_path(tmp_path):
    """A datagram that finds the queue empty has the 10 ms of the path; none waits behind one."""
    config = ROOT / "configs/flent/voip.yaml"
    run = weir.run(config, duration="5s", overrides={"warmup": "1s"}, out=tmp_path / "run")
    delays = latency.one_way(run, 0)["delay_ns"].to_numpy()
    assert delays.size == 250
    assert delays[0] == delays.min() == 10e6


def test_without_pings_there_is_no_row(tmp_path):
    run = weir.run(ROOT / "configs/lola-two.yaml", duration="1s", out=tmp_path / "run")
    assert latency.under_load(run) is None
