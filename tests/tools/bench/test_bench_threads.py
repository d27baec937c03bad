# SPDX-License-Identifier: BSD-3-Clause
"""weir bench threads: efficiency is taken within a round; rows beyond the CPUs have none."""

import io
import os

import pytest
from rich.console import Console
from weir.base.errors import UserError
from weir.bench import sim, threads


def sample(speed, used=1):
    return sim.Sample(
        wall_s=20 / speed,
        cpu_s=20 / speed,
        virtual_s=20,
        data_segs=1e6,
        queue_fill=0.9,
        dropped=0,
        peak_bytes=None,
        threads=used,
    )


def rows():
    """Two rounds; in the second the machine was half as fast. Two CPUs."""
    return [
        threads.Row(1, [sample(8), sample(4)]),
        threads.Row(
            2,
            [sample(12, 2), sample(6, 2)],
            [[sample(7.5), sample(7.5)], [sample(3), sample(4.5)]],
        ),
        threads.Row(4, [sample(12, 2), sample(4, 2)]),
    ]


def test_efficiency_is_the_median_of_the_rounds():
    one, two, four = threads.report(sim.Load(5000), rows(), 2)["rows"]
    assert two["efficiency"] == pytest.approx(0.8)
    assert two["over_one"] == pytest.approx(1.5)
    assert two["copies_speed"] == pytest.approx((15 + 7.5) / 2)
    assert (one["used"], two["used"], four["used"]) == (1, 2, 2)
    assert [row["efficiency"] for row in (one, four)] == [None, None]
    assert [row["beyond_cpus"] for row in (one, two, four)] == [False, False, True]


def test_the_table_marks_rows_beyond_the_cpus():
    found = threads.report(sim.Load(50000, 100), rows(), 2)
    out = io.StringIO()
    threads.show(found, Console(file=out, width=120))
    lines = out.getvalue().splitlines()
    four = next(line for line in lines if line.split()[:1] == ["4*"])
    assert four.split().count("–") == 2  # copies, efficiency
    assert any(line.startswith("*: more threads than the 2 CPUs") for line in lines)
    assert any(line.startswith("50,000 at 100 Gbit/s flows; ") for line in lines)
    assert list(threads.medians(found)) == [
        f"50,000 at 100 Gbit/s, {count} threads" for count in (1, 2, 4)
    ]


def test_one_thread_is_always_measured():
    assert threads.parse("8, 2") == [1, 2, 8]
    for text in ("", "0", "x", "2,65"):
        with pytest.raises(UserError, match="is not a number in"):
            threads.parse(text)


def test_threads_and_copies_run(weir_sim, build, monkeypatch):
    monkeypatch.setenv("WEIR_BUILD", str(build))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    length = sim.Length(warmup_s=0.1, measured_s=0.1)
    found = threads.measure(sim.Load(3), [1, 2, 4], 1, Console(file=io.StringIO()), length=length)
    assert [row["efficiency"] is None for row in found["rows"]] == [True, False, True]
    assert found["rows"][1]["used"] == 2
