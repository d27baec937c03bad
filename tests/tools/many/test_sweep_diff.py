# SPDX-License-Identifier: BSD-3-Clause
"""Two sweeps compared: a planted change of 2 % is found and no other; intervals, t and Holm."""

import json
import math

import numpy as np
import polars as pl
import pytest
from weir.analysis import spread
from weir.base.errors import UserError
from weir.many import sweep_diff, sweep_table

SEEDS = 8
CELLS = [(count, limit, cc) for count in (1, 2, 5, 10, 20) for limit in ("1BDP", "2BDP", "10ms")
         for cc in ("cubic", "copa")]  # fmt: skip


def write(path, rng, *, planted=(), noise=0.004, first_seed=1, seeds=SEEDS, used=True):
    """A sweep's table; planted has the change of some cells' goodput."""
    rows = []
    for number, (count, limit, cc) in enumerate(CELLS):
        for seed in range(first_seed, first_seed + seeds):
            goodput = 1e7 * count * (1 + noise * rng.standard_normal())
            goodput *= 1 + dict(planted).get(number, 0)
            rows.append(
                {
                    "flows.0.count": count,
                    "link.limit": limit,
                    "flows.0.cc": cc,
                    "seed": seed,
                    "seed_used": used,
                    "status": "done",
                    "folder": f"cell-{number}-{seed}",
                    "digest": "same",  # of no telemetry
                    "groups.0.goodput_bps": goodput,
                    "links.forward.utilisation": 0.9,
                    "links.forward.queue_mean_ns": 2e6 * (1 + 0.05 * rng.standard_normal()),
                }
            )
    path.mkdir()
    pl.DataFrame(rows).write_parquet(path / "table.parquet")
    return sweep_table.load(path)


@pytest.mark.parametrize("seed", range(5))
def test_a_planted_change_of_2_percent_is_found_and_no_other(tmp_path, seed):
    rng = np.random.default_rng(seed)
    a = write(tmp_path / "a", rng)
    b = write(tmp_path / "b", rng, planted=[(17, -0.02)], first_seed=100)
    found = sweep_diff.compare(a, b)
    assert len(found.rows) == 2 * len(CELLS) == found.tests
    [changed] = [row for row in found.rows if row.kind == "changed"]
    assert (changed.point, changed.metric) == (CELLS[17], "goodput")
    assert -0.03 < changed.change < -0.01
    assert changed.p < 0.05


def test_the_same_runs_are_identical_and_need_no_test(tmp_path):
    a = write(tmp_path / "a", np.random.default_rng(1))
    b = write(tmp_path / "b", np.random.default_rng(1))
    found = sweep_diff.compare(a, b)
    assert {row.kind for row in found.rows} == {"identical"}
    assert found.tests == 0


def test_without_anything_random_a_difference_is_a_change(tmp_path):
    a = write(tmp_path / "a", np.random.default_rng(1), noise=0, seeds=1, used=False)
    rng = np.random.default_rng(1)
    b = write(tmp_path / "b", rng, noise=0, seeds=1, planted=[(3, 0.0001)], used=False)
    found = sweep_diff.compare(a, b, ["goodput"])
    assert [row.point for row in found.rows if row.kind == "changed"] == [CELLS[3]]
    c = write(tmp_path / "c", np.random.default_rng(2), seeds=1)
    d = write(tmp_path / "d", np.random.default_rng(3), seeds=1)
    assert {row.kind for row in sweep_diff.compare(c, d).rows} == {"one seed"}


def test_two_equal_seeds_beside_two_others_are_no_proof(tmp_path):
    """Their p was 0: of what half of the runs have, one pair of sweeps in eight changed."""
    several = [
        write(tmp_path / name, np.random.default_rng(1), noise=0, seeds=seeds, planted=planted)
        for name, seeds, planted in (
            ("a", 2, ()), ("b", 2, [(3, 0.01)]), ("c", 9, ()), ("d", 9, [(3, 0.01)])
        )
    ]  # fmt: skip
    for (a, b), kind in zip((several[:2], several[2:]), ("one seed", "changed"), strict=True):
        rows = sweep_diff.compare(a, b, ["goodput"]).rows
        assert [row.kind for row in rows if row.point == CELLS[3]] == [kind]
        assert {row.kind for row in rows if row.point != CELLS[3]} == {"identical"}


def test_the_command_prints_what_changed_and_exits_with_1(weir_here, tmp_path):
    rng = np.random.default_rng(1)
    write(tmp_path / "a", rng)
    b = write(tmp_path / "b", rng, planted=[(17, 0.03)], first_seed=100)
    done = weir_here("diff", "a", "b")
    assert done.status == 1
    assert "60 comparisons: 1 changed, 59 within their spread" in done.out
    assert "by Welch's t test over seeds, p raised by Holm's method, level 5 %" in done.out
    assert done.out.count("changed") == 2
    read = json.loads(weir_here("diff", "a", "b", "--json").out)
    assert sum(row["kind"] == "changed" for row in read["rows"]) == 1
    none = weir_here("diff", "a", "b", "--where", "cc=copa", "--where", "count=1")
    assert none.status == 0
    assert "6 comparisons: 6 within their spread" in none.out
    b.frame.head(SEEDS).write_parquet(tmp_path / "short.parquet")
    assert (
        "29 combinations are only in the first sweep" in weir_here("diff", "a", "short.parquet").out
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("a", "nowhere"), "nowhere: not a sweep: no table.parquet in it"),
        (("a", "other.parquet"), "it has no seed, status, folder"),
        (("a", "text.parquet"), "text.parquet: not a Parquet table"),
        (("a", "a", "--y", "speed"), "'speed' is no number of a; there is goodput"),
        (("a", "a", "--y", "rtt"), "a has no mean RTT: no run of it ended"),
        (("a", "a", "--where", "copa"), "--where: 'copa' is not KEY=VALUE"),
        (("a", "a", "--where", "count=7"), "flows.0.count is never 7, only 1, 2, 5, 10, 20"),
        (("a", "a", "--where", "speed=7"), "'speed' is no parameter that varies in a; there is"),
        (("a", "less.parquet"), "have not the same parameters: link.limit"),
    ],
)
def test_what_is_wrong_is_one_sentence(weir_here, tmp_path, words, sentence):
    a = write(tmp_path / "a", np.random.default_rng(1))
    pl.DataFrame({"x": [1]}).write_parquet(tmp_path / "other.parquet")
    (tmp_path / "text.parquet").write_text("x")
    a.frame.drop("link.limit").write_parquet(tmp_path / "less.parquet")
    done = weir_here("diff", *words)
    assert done.status in (1, 2)
    assert sentence in done.err
    assert done.err.count("\n") == 1


def test_welch_is_that_of_a_textbook():
    """Equal spreads of 1 and means 2 apart: t = 2 / sqrt(2 / 3), 4 degrees of freedom."""
    a, b = np.array([1.0, 2, 3]), np.array([3.0, 4, 5])
    assert spread.welch(a, b) == pytest.approx(0.07048, abs=1e-5)
    assert spread.welch(a, a) == pytest.approx(1)
    assert spread.welch(np.ones(2), np.ones(3)) == 1
    assert spread.welch(np.ones(2), np.zeros(3)) == 2 / 10  # of 10 ways to part them
    assert spread.welch(np.ones(5), np.zeros(5)) == 2 / 252
    assert math.isnan(spread.welch(a, b[:1]))


def test_holm_is_that_of_a_textbook():
    assert spread.holm([0.01, 0.04, 0.03, math.nan]) == pytest.approx(
        [0.03, 0.06, 0.06, math.nan], nan_ok=True
    )


def test_the_interval_of_a_mean_is_students():
    """Of 1, 2, 3: 2 with s / sqrt(3) = 0.57735 and t = 4.302653 with 2 degrees of freedom."""
    parts = [np.array([1.0, 2, 3]), np.array([7.0]), np.array([]), np.array([5.0, 5])]
    mean, low, high = spread.intervals(parts)
    assert (mean[0], low[0], high[0]) == pytest.approx((2, 2 - 2.484138, 2 + 2.484138))
    assert math.isnan(mean[2])
    assert np.isnan([low[1:], high[1:]]).all()  # of one value, none and equal ones: not known


@pytest.mark.parametrize("n", [2, 3, 5, 10])
def test_intervals_cover_as_often_as_they_are_said_to(n):
    """Of 20,000 means of n normal values; the share has a standard deviation of 0.15 %."""
    _, low, high = spread.intervals(list(np.random.default_rng(0).normal(size=(20_000, n))))
    assert np.mean((low <= 0) & (high >= 0)) == pytest.approx(spread.COVERED, abs=0.006)


def test_parameters_and_numbers_have_short_names(tmp_path):
    table = write(tmp_path / "a", np.random.default_rng(1))
    assert table.axis("buffer").key == table.axis("limit").key == "link.limit"
    assert table.axis("flows").numbers == (1, 2, 5, 10, 20)
    assert table.metric("goodput").unit == "bit/s"
    assert table.metric("delay").label == "delay"
    with pytest.raises(UserError, match="may be"):
        table.axis("0")


@pytest.mark.parametrize(
    ("texts", "numbers", "unit"),
    [
        (["0.5BDP", "1BDP"], (0.5, 1), "BDP"),
        (["10pkt", "100pkt"], (10, 100), "packets"),
        (["500us", "10ms"], (0.5, 10), "ms"),
        (["500kbit", "1Gbit"], (0.0005, 1), "Gbit/s"),
        (["10", "20"], (10, 20), ""),
        (["1BDP", "10ms"], None, ""),
        (["copa", "cubic"], None, ""),
        (["1.2.3", "1"], None, ""),
    ],
)
def test_values_are_numbers_of_one_unit(texts, numbers, unit):
    assert sweep_table.measured(texts) == (numbers, unit)


def test_a_control_with_parameters_is_called_by_both():
    assert sweep_table.called("flows.0.cc", "{copa: {delta: 0.1}}") == "copa, delta 0.1"
    assert sweep_table.called("flows.0.cc", "{plugin: ./mine.so}") == "mine"
    assert sweep_table.called("flows.0.cc", "cubic") == "cubic"
