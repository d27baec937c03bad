# SPDX-License-Identifier: BSD-3-Clause
"""weir bench history and --against: what is kept, and when two builds differ."""

import json
import os
from math import nan

import pytest
from msgspec import to_builtins
from weir.base.errors import UserError
from weir.bench import history
from weir.bench.rounds import Result


def test_medians_are_kept_and_listed(weir, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert history.read() == []
    history.append("cc", {"copa": 12.5, "reno": 3.0})
    history.append("corescale", {"5,000": 120.0})
    kept = [json.loads(line) for line in (tmp_path / "weir/bench.jsonl").read_text().splitlines()]
    assert [to_builtins(entry) for entry in history.read()] == kept
    assert [set(entry) for entry in kept] == [{"bench", "commit", "date", "machine", "rows"}] * 2
    assert [entry.bench for entry in history.read(bench="cc")] == ["cc"]
    done = weir("bench", "history", "cc", env={"XDG_STATE_HOME": str(tmp_path), "COLUMNS": "200"})
    assert done.status == 0
    assert "copa  12.5 ns" in done.out
    assert "5,000" not in done.out


def test_a_history_is_drawn(weir, monkeypatch, tmp_path):
    """A panel for each benchmark and machine; a row that an entry lacks is not known there."""
    old = {"commit": "0123456789ab", "date": "2026-01-31T10:00:00Z", "machine": "old"}
    lines = [
        {"bench": "cc", "rows": {"copa": 2000.0, "reno": 3000.0}, **old},
        {"bench": "cc", "rows": {"copa": 1000.0}, **old, "commit": None},
        {"bench": "cc", "rows": {"copa": 500.0}, **old, "machine": "new"},
        {"bench": "instructions", "rows": {"copa": 1e3}, **old},
    ]
    (tmp_path / "b.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    first, second, counted = history.figure(history.read(tmp_path / "b.jsonl")).panels
    assert [line.y.tolist() for line in first.marks] == [
        [2, 1],
        pytest.approx([3, nan], nan_ok=True),
    ]
    assert [line.y.tolist() for line in (*second.marks, *counted.marks)] == [[500], [1000]]
    assert (first.y.label, second.y.label, counted.y.label) == (
        *("median (µs)", "median (ns)"),
        "median",
    )
    assert first.x.ticks == [(0, "0123456"), (1, "-")]
    drawn = weir("bench", "history", "--file", tmp_path / "b.jsonl", "--out", tmp_path / "h.csv")
    assert drawn.status == 0, drawn.err
    assert "copa" in (tmp_path / "h.csv").read_text()
    done = weir("bench", "history", "--term", env={"XDG_STATE_HOME": str(tmp_path)})
    assert (done.status, done.err.splitlines()[0][:33]) == (1, "weir: no benchmark has been run y")


def test_a_history_that_cannot_be_written_or_read(monkeypatch, tmp_path, capfd, weir):
    (tmp_path / "weir").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    history.append("cc", {"copa": 12.5})
    assert "these figures are not kept" in capfd.readouterr().err
    (tmp_path / "broken").write_text("x\n")
    done = weir("bench", "history", "--file", "broken")
    assert done.status == 2
    assert done.err.startswith("weir: broken: not a history of benchmarks: JSON is malformed")


def test_a_row_differs_if_all_rounds_agree():
    here = [
        {"slow": 110, "noisy": 100, "fast": 80, "new": 1},
        {"slow": 240, "noisy": 90, "fast": 9},
    ]
    there = [{"slow": 100, "noisy": 90, "fast": 100}, {"slow": 200, "noisy": 100, "fast": 10}]
    slow, noisy, fast = history.compare(here, there)
    assert (slow.ratio, slow.ratio_min, slow.ratio_max) == pytest.approx((1.15, 1.1, 1.2))
    assert [row.direction() for row in (slow, noisy, fast)] == ["slower", "", "faster"]


def test_both_builds_are_measured_in_turn(monkeypatch, tmp_path, rounds, shown):
    monkeypatch.setenv("WEIR_BUILD", str(tmp_path / "here"))
    monkeypatch.setattr(history, "build_commit", lambda commit: tmp_path / "there")
    order = []

    class Found(Result):
        def medians(self):
            return {"row": 100.0 if order[-1] == "there" else 110.0}

    def measure(rounds):
        assert rounds.repeat == 1
        order.append(os.environ["WEIR_BUILD"].rpartition("/")[2])
        return Found()

    found = history.against("HEAD", "cc", measure, rounds(2))
    assert order == ["here", "there", "there", "here"]
    assert os.environ["WEIR_BUILD"] == str(tmp_path / "here")
    assert found.rows[0].ratio == pytest.approx(1.1)
    text = shown(found)
    assert "slower" in text
    assert "if nothing differed, 0.500 of 1 rows would seem to" in text


def test_what_cannot_be_compared(weir):
    done = weir("bench", "cc", "--against", "HEAD", "--repeat", "1")
    assert done.status == 2
    assert done.err.startswith("weir: --against: one round says nothing of its noise")
    with pytest.raises(UserError, match="'no-such' is no commit of"):
        history.full_commit("no-such")
    done = weir("bench", "cc", "--against", "--version")
    assert done.status == 2
    assert done.err.startswith("weir: --against: '--version' is no commit of")


def test_weir_sim_alone_is_compared(weir):
    done = weir("bench", "corescale", "--htsim", "clone", "--against", "HEAD")
    assert done.status == 2
    assert done.err.startswith("weir: --against compares this build alone: without --htsim and")
