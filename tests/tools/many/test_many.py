# SPDX-License-Identifier: BSD-3-Clause
"""Many runs as one frame, and means over their seeds."""

import json

import polars as pl
import pytest
import weir
from synthetic import make_run
from weir.base import configs


@pytest.fixture
def runs(tmp_path):
    """Two controls with two seeds each; `synthetic` writes a config without the control."""
    for cc in ("copa", "cubic"):
        for seed in (1, 2):
            run = make_run(tmp_path / f"runs/deep/{cc}-{seed}", groups=((cc, cc, 2),), seconds=1)
            (run / "config.yaml").write_text(
                f"seed: {seed}\ntitle: {cc}\n"
                f"flows:\n  - {{count: 2, cc: {{{cc}: {{delta: {seed}}}}}}}\n"
            )
            summary = json.loads((run / "summary.json").read_text()) | {"seed": seed}
            summary["groups"][0]["goodput_bps"] += seed
            (run / "summary.json").write_text(json.dumps(summary))
    return tmp_path / "runs"


def test_a_row_for_each_number_with_the_keys_that_differ(runs):
    frame = weir.open_many(f"{runs}/**")
    keys = ["flows.0.cc", "flows.0.cc.copa.delta", "flows.0.cc.cubic.delta"]
    last = ["group", "link", "metric", "value", "unit"]
    assert frame.columns == ["run", "seed", "seed_used", *keys, *last]
    one = frame.filter(pl.col("metric") == "goodput_bps")
    assert one["flows.0.cc"].to_list() == ["copa", "copa", "cubic", "cubic"]
    assert one["flows.0.cc.copa.delta"].to_list() == ["1", "2", None, None]
    assert set(one["unit"]) == {"bit/s"}
    known = weir.open(one["run"][0]).summary.groups[0].goodput_bps
    assert one["value"][0] == known
    assert frame.equals(weir.open_many(runs))
    assert frame.equals(weir.open_many([runs / "deep", runs / "deep/copa-1"]))


def test_a_table_has_means_and_intervals_over_seeds(runs):
    table = weir.table(runs, by=["flows.0.cc"], metrics=["goodput_bps", "queue_mean_pkts"])
    assert table.columns[:3] == ["flows.0.cc", "group", "link"]
    groups = table.filter(pl.col("group").is_not_null())
    assert groups["goodput_bps_n"].to_list() == [2, 2]
    row = groups.row(0, named=True)
    assert row["goodput_bps_low"] < row["goodput_bps"] < row["goodput_bps_high"]
    links = table.filter(pl.col("link").is_not_null())
    assert links["queue_mean_pkts_n"].to_list() == [2, 2]
    assert links["queue_mean_pkts_low"].to_list() == [None, None]  # both have the same


def test_what_is_not_there_is_one_sentence(runs):
    with pytest.raises(weir.UserError, match="there is no run in"):
        weir.open_many(f"{runs}/nowhere/**")
    with pytest.raises(weir.UserError, match=r"the runs do not differ in flows\.0\.rtt"):
        weir.table(runs, by=["flows.0.rtt"])
    with pytest.raises(weir.UserError, match="no run has a number 'speed'"):
        weir.table(runs, metrics=["speed"])
    assert dict(configs.leaves({"a": {"b": ["1", "2"]}})) == {"a": "b", "a.b.0": "1", "a.b.1": "2"}
